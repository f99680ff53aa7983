#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_FLAT_H_
#define GRADSMITH_PATTERNS_CUDA_ROWS_FLAT_H_

#include <cstdint>
#include <memory>
#include <span>

#include "core/plan.h"
#include "cuda/kernel_image.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/cuda/rows_policy.h"
#include "patterns/rows_info.h"
#include "patterns/rows_task.h"

/// Flat rows (RowsFunctor::kIsFlat) on CUDA, for patterns/cuda/rows.h.
namespace gradsmith::cuda {

/// FlatAccess is how a kernel reads and writes elements, which is a part of its name: dense ones by
/// vectors, others by vectors along the last dim, or one by one.
enum class FlatAccess : std::uint8_t { kDense, kVectors, kElements };

FlatAccess FlatAccessOf(
    const internal::RowsTask& row,
    std::span<const TensorRef> tensors,
    const internal::RowsCounts& counts);

/// MakeFlatRowPlan returns the plan of a row of operands that CheckRows has passed. It returns an
/// error where there is more than one row.
Result<std::unique_ptr<internal::Plan>> MakeFlatRowPlan(
    const RowsTarget& target,
    const KernelImage& image,
    const RowsKernels& kernels,
    std::span<const TensorRef> tensors,
    const internal::RowsTask& row);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_FLAT_H_
