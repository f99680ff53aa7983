#include "emulated_gpu/kernel.h"

namespace emulated_gpu {

std::vector<Kernel*>& Kernels() {
  static auto& kernels = *new std::vector<Kernel*>;
  return kernels;
}

}  // namespace emulated_gpu
