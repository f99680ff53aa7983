#ifndef GRADSMITH_CORE_NO_CUDA_NO_CUDA_H_
#define GRADSMITH_CORE_NO_CUDA_NO_CUDA_H_

#include "gradsmith/status.h"

namespace gradsmith::internal {

/// NoCuda is the error of every call on CUDA in a build without it.
Status NoCuda();

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_NO_CUDA_NO_CUDA_H_
