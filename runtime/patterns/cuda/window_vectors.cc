#include "patterns/cuda/window_vectors.h"

#include <algorithm>

#include "cuda/alignment.h"

namespace gradsmith::cuda {

namespace {

using internal::kWindowAxes;
using internal::PerDim;
using internal::WindowsTask;

/// How many positions along each dim the t-th tensor of a task has.
PerDim<std::int64_t>
CountsOf(const WindowsKind& kind, const OpTask& task, const WindowsTask& windows, int t) {
  const bool is_over_input =
      kind.gathers ? t == task.operands() - 1 || (kind.reads_input && t == 1) : t == 0;
  return internal::SiteCounts(windows, /*of_output=*/!is_over_input);
}

}  // namespace

bool HasVectors(
    const TensorRef& tensor,
    int elements,
    std::initializer_list<std::pair<std::int64_t, std::int64_t>> others) {
  return AlignmentClass(tensor.data, tensor.type) == kVectorBytes &&
         std::ranges::all_of(
             others, [&](const auto& dim) { return dim.first == 1 || dim.second % elements == 0; });
}

bool HasChannels(
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    int elements) {
  for (int t = 0; t < task.operands(); ++t) {
    const PerDim<std::int64_t>& strides = windows.strides[t];
    const PerDim<std::int64_t> counts = CountsOf(kind, task, windows, t);
    if (task.tensors[t].present &&
        (strides.channel != 1 || !HasVectors(
                                     task.tensors[t], elements,
                                     {{counts.batch, strides.batch},
                                      {counts.axes[0], strides.axes[0]},
                                      {counts.axes[1], strides.axes[1]},
                                      {counts.axes[2], strides.axes[2]}}))) {
      return false;
    }
  }
  return windows.channels % elements == 0;
}

bool AreContiguous(const WindowsKind& kind, const OpTask& task, const WindowsTask& windows) {
  for (int t = 0; t < task.operands(); ++t) {
    if (!task.tensors[t].present) {
      continue;
    }
    const PerDim<std::int64_t> counts = CountsOf(kind, task, windows, t);
    const PerDim<std::int64_t>& strides = windows.strides[t];
    std::int64_t step = 1;
    bool is_contiguous = AlignmentClass(task.tensors[t].data, task.tensors[t].type) == kVectorBytes;
    const auto follows = [&](std::int64_t count, std::int64_t stride) {
      is_contiguous = is_contiguous && (count == 1 || stride == step);
      step *= count;
    };
    for (int axis = kWindowAxes - 1; axis >= 0; --axis) {
      follows(counts.axes[axis], strides.axes[axis]);
    }
    follows(counts.channel, strides.channel);
    follows(counts.batch, strides.batch);
    if (!is_contiguous) {
      return false;
    }
  }
  return true;
}

}  // namespace gradsmith::cuda
