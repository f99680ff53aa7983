// A header in which a semicolon is missing.
struct Scale {
  double factor = 1
};
