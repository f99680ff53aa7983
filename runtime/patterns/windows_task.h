#ifndef GRADSMITH_PATTERNS_WINDOWS_TASK_H_
#define GRADSMITH_PATTERNS_WINDOWS_TASK_H_

#include <cstdint>

#include "core/window_axis.h"

/// Compiled by kernels as well: plain C++17.
#ifdef __CUDACC__
#define GRADSMITH_WINDOWS __device__ __forceinline__
#else
#define GRADSMITH_WINDOWS inline
#endif

namespace gradsmith::internal {

inline constexpr int kWindowAxes = 3;
inline constexpr int kMaxWindowTensors = 4;

/// Whether a number is none.
template <typename A>
GRADSMITH_WINDOWS bool IsNan(A x) {
  return x != x;  // NOLINT(misc-redundant-expression): std::isnan is of the host alone
}

/// PerDim has a number for each dim of a tensor (N, C, D...) with three spatial axes. Where there
/// are fewer, those that are missing come first and have one position.
template <typename Number>
struct PerDim {
  Number batch = 0;
  Number channel = 0;
  Number axes[kWindowAxes] = {};
};

/// WindowsTask is a computation by the pattern `windows` (patterns/windows.h): the windows, and for
/// each tensor, in the order that the functor says, where it begins and its strides in elements.
struct WindowsTask {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  WindowAxis axes[kWindowAxes] = {};
  /// Whether windows count what they hold of the padding.
  bool counts_padding = false;
  /// Whether any dilation is more than one.
  bool is_dilated = false;
  /// Whether the output is added to what it holds.
  bool accumulate = false;
  /// How far apart neighbours in the input are in the index of all its elements.
  PerDim<std::int64_t> places;
  PerDim<std::int64_t> strides[kMaxWindowTensors] = {};
  void* tensors[kMaxWindowTensors] = {};
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_WINDOWS_TASK_H_
