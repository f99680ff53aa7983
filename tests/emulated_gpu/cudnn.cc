/// A cuDNN that has none of its kernels for the emulated GPU: what is asked for is not supported.

#include "cuda/cudnn.h"

#include <cudnn_graph.h>

// The headers declare them with other types: only the linker's names are the same.
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define EMULATED_GPU_REFUSAL(name)                                      \
  extern "C" __attribute__((weak)) int Refusal_##name() __asm__(#name); \
  extern "C" int Refusal_##name() {                                     \
    return CUDNN_STATUS_NOT_SUPPORTED;                                  \
  }
GRADSMITH_CUDNN_FUNCTIONS(EMULATED_GPU_REFUSAL)
#undef EMULATED_GPU_REFUSAL
