// A header in which a brace is missing.
struct Attributes {
  double factor = 1;

  struct Scale : Attributes {};
