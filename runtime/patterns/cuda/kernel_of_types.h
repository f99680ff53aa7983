#ifndef GRADSMITH_PATTERNS_CUDA_KERNEL_OF_TYPES_H_
#define GRADSMITH_PATTERNS_CUDA_KERNEL_OF_TYPES_H_

#include <string>

#include "cuda/kernel_image.h"
#include "gradsmith/types.h"
#include "patterns/rows.h"

/// Which kernel of a pattern computes which element types. Half and bf16 often have one, which
/// launches tell the format (cuda/kernels/short_float.cuh).
namespace gradsmith::cuda {

/// NameForTypes returns the name of the kernel in the image that computes the types: that of their
/// own if there is one, else that which serves half and bf16 both.
std::string
NameForTypes(const KernelImage& image, const std::string& name, const internal::RowsTypes& types);

/// IsBfloat16 says which format a launch tells such a kernel. No kernel serves half beside bf16.
constexpr bool IsBfloat16(const internal::RowsTypes& types) {
  return types.first == DataType::kBFloat16 || types.second == DataType::kBFloat16;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_KERNEL_OF_TYPES_H_
