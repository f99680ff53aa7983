#include "patterns/cuda/map_kernel_name.h"

#include "cuda/kernel_table.h"
#include "cuda/module.h"

namespace gradsmith::cuda {

std::string MapKernelName(const KernelImage& image, const std::string& name, DataType type) {
  std::string own = name + "_" + std::string(KernelSuffix(type));
  const bool is_short = type == DataType::kMLFloat16 || type == DataType::kBFloat16;
  if (!is_short || FindKernel({&image}, own.c_str()).ok()) {
    return own;
  }
  return name + "_short";
}

}  // namespace gradsmith::cuda
