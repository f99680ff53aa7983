#ifndef GRADSMITH_CONV_CUDA_PARTS_H_
#define GRADSMITH_CONV_CUDA_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "conv/task.h"
#include "core/plan.h"
#include "cuda/device.h"

/// Batches that are computed in parts, one after the other: a limit of workspace has no room for
/// copies of the whole, or kernels do not count so many elements.
namespace gradsmith::conv {

/// CanBeCounted says whether x and y have no more elements than 32 bits count, 2^31 - 1, from their
/// first to their last.
bool CanBeCounted(const Problem& problem);

/// PartsWithin returns how many parts of the same size, a power of two, a batch is cut into so that
/// `bytes` of the whole become no more than a limit; 1 where there is no need to, or no way.
std::int64_t PartsWithin(const Task& task, std::size_t bytes, std::size_t limit);

/// PartsToCount returns how many parts of the same size, as few as may be, a batch is cut into so
/// that engines can count the elements of each part's tensors in 32 bits; 1 where they can count
/// those of the whole, or where no such parts can.
std::int64_t PartsToCount(const Task& task);

/// PartOf returns the task of each of so many parts: of the first, or of those that follow, which
/// add to a filter's gradient; but of half and bf16 no part adds, as they are added up in float.
Task PartOf(const Task& task, std::int64_t parts, bool is_first);

/// PartSumsBytes returns the workspace for that.
std::size_t PartSumsBytes(const Task& task);

/// MakePartsPlan returns a plan for a task from a plan for its first part and one for the others,
/// null where the first serves them as well.
std::unique_ptr<internal::Plan> MakePartsPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    std::int64_t parts,
    std::unique_ptr<internal::Plan> first,
    std::unique_ptr<internal::Plan> others);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_PARTS_H_
