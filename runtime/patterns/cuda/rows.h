#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_H_
#define GRADSMITH_PATTERNS_CUDA_ROWS_H_

#include <array>
#include <memory>
#include <span>
#include <string>

#include "core/plan.h"
#include "cuda/implementation.h"
#include "cuda/kernel_image.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/cuda/rows_policy.h"
#include "patterns/rows.h"
#include "patterns/rows_info.h"

/// The pattern `rows` (patterns/rows.h) on CUDA. An operator of it has a table of one row:
///
///     constexpr std::array kTable = {RowsBy<SoftmaxRows, kImage_my_rows>};
///     constexpr FamilyOnCuda kMyFamily = {.table = kTable};
///
/// where my_rows.cu has GRADSMITH_ROWS_KERNELS(MySoftmax, SoftmaxRows). The task's choices begin
/// with the row's axes (AddAxes).
namespace gradsmith::cuda {

/// AddAxes adds the axes of which rows are made to a task's choices.
inline void AddAxes(const internal::RowsAxes& axes, OpTask* task) {
  task->choices.push_back(axes.dims);
}

/// MakeRowsPlan returns the plan of a pass over tensors, whose kernels are in the image.
Result<std::unique_ptr<internal::Plan>> MakeRowsPlan(
    const RowsTarget& target,
    const KernelImage& image,
    const RowsKernels& kernels,
    std::span<const TensorRef> tensors,
    const internal::RowsAxes& axes);

/// MakeRowsPlan does so for a task, whose operator's name is that of the kernels.
Result<std::unique_ptr<internal::Plan>> MakeRowsPlan(
    const RowsTarget& target,
    const KernelImage& image,
    const OpTask& task,
    const RowsInfo& info);

template <typename Functor, const KernelImage& kImage>
Result<std::unique_ptr<internal::Plan>>
BuildRows(const Target& target, const OpTask& task, const std::string& /*variant*/) {
  return MakeRowsPlan({target.device}, kImage, task, kRowsInfo<Functor>);
}

template <typename Functor, const KernelImage& kImage>
inline constexpr Implementation RowsBy =
    {.name = "own/rows", .adds = true, .takes_all = true, .build = &BuildRows<Functor, kImage>};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_H_
