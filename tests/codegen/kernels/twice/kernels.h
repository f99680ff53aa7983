// A header that says a thing for two compilers.
struct Scale {
#if SOMETHING
  double factor = 1;
#else
  double factor = 2;
#endif
};
