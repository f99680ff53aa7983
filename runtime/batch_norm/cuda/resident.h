#ifndef GRADSMITH_BATCH_NORM_CUDA_RESIDENT_H_
#define GRADSMITH_BATCH_NORM_CUDA_RESIDENT_H_

#include <cuda.h>

#include <cstdint>

#include "batch_norm/activation.h"
#include "batch_norm/cuda/arguments.h"
#include "cuda/device.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// Batch normalization's gradient in one launch, along columns of vectors.
namespace gradsmith::batch_norm {

/// IsResident says whether it can be: the inputs are aligned to vectors, and blocks have their
/// channels to themselves or the device has room for so many for each of the walk's slices at once.
bool IsResident(
    const cuda::DeviceInfo& device,
    Activation activation,
    DataType type,
    std::int64_t blocks,
    const own::Walk& walk,
    const own::Operands& operands);

/// RunResident launches them. kUnsupported where the device has less room than it says; nothing is
/// written then.
Status RunResident(
    const cuda::DeviceInfo& device,
    CUstream stream,
    Activation activation,
    DataType type,
    std::int64_t blocks,
    const own::BackwardFinish& finish,
    const own::Operands& operands,
    double* partials,
    double* coefficients);

}  // namespace gradsmith::batch_norm

#endif  // GRADSMITH_BATCH_NORM_CUDA_RESIDENT_H_
