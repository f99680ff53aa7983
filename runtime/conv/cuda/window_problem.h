#ifndef GRADSMITH_CONV_CUDA_WINDOW_PROBLEM_H_
#define GRADSMITH_CONV_CUDA_WINDOW_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "conv/cuda/window_arguments.h"
#include "conv/task.h"

/// A task as the kernels of conv/cuda/window.h compute it.
namespace gradsmith::conv::window {

/// MayFit says whether the kernels may take a task where the device and the policies let them.
bool MayFit(const Task& task);

/// Fits says whether these do.
bool Fits(int compute_capability, const Task& task, bool allow_tf32);

/// Correlation is forward or backward data.
struct Correlation {
  CorrelateArguments arguments{};
  std::int64_t slabs = 1;
  int shared_bytes = 0;

  /// What lanes multiply by, of a slab.
  [[nodiscard]] std::int64_t fragment_bytes() const {
    return std::int64_t{arguments.sets} * arguments.steps * kFragmentBytes;
  }
  [[nodiscard]] std::size_t workspace() const {
    return static_cast<std::size_t>(slabs * fragment_bytes());
  }
  /// Slabs that add to the same columns follow each other.
  [[nodiscard]] int launches() const { return arguments.is_merged ? static_cast<int>(slabs) : 1; }
};

/// SharesChunks says whether all blocks of a set meet the same chunks.
bool SharesChunks(const CorrelateArguments& p);

/// MakeCorrelation and MakeFilter return nothing where there are too many taps or too little
/// shared memory.
std::optional<Correlation> MakeCorrelation(const Task& task);

/// Filter is the backward filter.
struct Filter {
  FilterArguments arguments{};
  std::int64_t slabs = 1;
  int shared_bytes = 0;
  std::int64_t blocks = 0;  ///< of threads, for each slab
  int row_blocks = 0;       ///< of the kernel

  [[nodiscard]] std::int64_t slices() const { return blocks * arguments.splits; }
  [[nodiscard]] std::size_t workspace() const {
    return static_cast<std::size_t>(slices()) *
           static_cast<std::size_t>(arguments.filter_elements) * sizeof(float);
  }
};

std::optional<Filter> MakeFilter(const Task& task, int multiprocessors);

}  // namespace gradsmith::conv::window

#endif  // GRADSMITH_CONV_CUDA_WINDOW_PROBLEM_H_
