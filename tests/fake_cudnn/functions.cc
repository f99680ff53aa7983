/// A library that has all of cuDNN's functions that ours loads, and in which each does nothing and
/// succeeds, but for those of answers.cc.

#include "cuda/cudnn.h"

// The headers declare them with other types: only the linker's names are the same.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define GRADSMITH_FAKE(name)                                         \
  extern "C" __attribute__((weak)) int Fake_##name() __asm__(#name); \
  extern "C" int Fake_##name() {                                     \
    return 0;                                                        \
  }
GRADSMITH_CUDNN_FUNCTIONS(GRADSMITH_FAKE)
#undef GRADSMITH_FAKE
