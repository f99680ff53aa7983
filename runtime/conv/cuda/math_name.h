#ifndef GRADSMITH_CONV_CUDA_MATH_NAME_H_
#define GRADSMITH_CONV_CUDA_MATH_NAME_H_

#include "gradsmith/types.h"

namespace gradsmith::conv {

/// MathNameOf is what kernels on tensor cores that take float in TF32 are called by in their names.
inline const char* MathNameOf(DataType type) {
  switch (type) {
    case DataType::kMLFloat16:
      return "half";
    case DataType::kBFloat16:
      return "bf16";
    default:
      return "tf32";
  }
}

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_MATH_NAME_H_
