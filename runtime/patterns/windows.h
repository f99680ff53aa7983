#ifndef GRADSMITH_PATTERNS_WINDOWS_H_
#define GRADSMITH_PATTERNS_WINDOWS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/element.h"
#include "core/parallel.h"
#include "core/window_axis.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/windows_task.h"
#include "patterns/windows_walk.h"

/// The pattern `windows`: windows move along the spatial axes of tensors (N, C, D...), one to three
/// of them, in any layout. Nothing is written by two threads, so that all is repeatable bit for
/// bit. pool/functors.h has examples of both kinds of functors:
///
/// - A reduction makes each element of the output of those of the input that its window holds, in
///   the window's order. Tensors are the input, the output, and where kPlaces is true int64
///   indices, which may be absent. State<A> is made for each window, Take(x, place, &state) takes
///   an element and its index among all of the input, Value(state, count) is the result, where
///   count is of the window's elements, or with counts_padding of those in the padding too, if
///   kCounts is true; and Place(state) is the index.
/// - A gather makes each element of the input's gradient of the windows that hold it, in their
///   order. The first tensor is the output's gradient, the second the input where kReadsInput is
///   true, kKey is the one that has something else of each window (or -1), and kOutput the result.
///   Take(window, dy, key, x, &state) takes a window that holds the element (WindowAt of
///   patterns/windows_walk.h); one that no window holds gets the Value of a fresh State. On CUDA
///   most are computed by tiles instead, as the kind of key tells: each window gives its dY to the
///   element whose index the key is (int64), or to that which equals the key (which has the
///   input's type), or without a key dY / count to all of its elements.
///
/// A is double, or on CUDA float for tensors that are not of doubles. patterns/cuda/windows.cuh has
/// the same on CUDA.
namespace gradsmith::internal {

/// WindowsGeometry is what windows a call has.
struct WindowsGeometry {
  /// All kWindowAxes axes: those that the tensors do not have come first and are WindowAxis().
  std::array<WindowAxis, kWindowAxes> axes;
  /// How many axes the tensors have.
  int rank = 0;
  bool counts_padding = false;
  /// Whether indices count along the first spatial axis first, as storage_order 1 of ONNX has it.
  bool column_major = false;
};

/// MakeWindowsTask returns the task of a call, whose tensors have the dims that the geometry says;
/// one that is not present has no address. The first has the batch and the channels of all.
WindowsTask MakeWindowsTask(const WindowsGeometry& geometry, std::span<const TensorRef> tensors);

/// WindowsOperands says what the operands of a functor are, as sets of their places.
struct WindowsOperands {
  /// The operands that have an element for each of the input, and not for each window.
  unsigned over_input = 0;
  /// The operands that are int64, and not of the first one's type.
  unsigned indices = 0;
};

/// CheckWindows returns the error of the first operand whose dims are not what the windows say, or
/// that has another type. `names` are those of the operands.
Status CheckWindows(
    std::span<const TensorRef> tensors,
    const WindowsGeometry& geometry,
    const WindowsOperands& operands,
    std::span<const std::string_view> names);

/// The fewest elements that are worth a thread of their own.
inline constexpr std::int64_t kWindowsGrain = 1024;

/// WindowsOnCpu is how the CPU meets memory. Sums are in double: of a window of 2^24 elements float
/// holds no one of them any more.
struct WindowsOnCpu {
  using Position = std::int64_t;
  template <typename T>
  using Accumulates = double;

  const WindowsTask& task;

  template <typename A, typename T>
  [[nodiscard]] A Load(const T* from) const {
    return Convert<A>(*from);
  }
  template <typename T, typename A>
  [[nodiscard]] T Round(A value) const {
    return Convert<T>(value);
  }
  template <int kLanes, typename T>
  void LoadLanes(const T* from, T (&to)[kLanes]) const {
    std::copy_n(from, kLanes, to);
  }
  template <int kLanes, typename T>
  void StoreLanes(const T (&from)[kLanes], T* to) const {
    std::copy_n(from, kLanes, to);
  }
  [[nodiscard]] std::int64_t Quotient(int axis, std::int64_t number) const {
    return number / task.axes[axis].stride;
  }
};

/// SiteCounts are how many elements there are along each dim of the tensor that is computed: of the
/// windows' output, or of their input.
PerDim<std::int64_t> SiteCounts(const WindowsTask& task, bool of_output);

/// SiteTotal returns how many elements that is in all.
std::int64_t SiteTotal(const PerDim<std::int64_t>& counts);

/// ForEachSite calls visit(site) with each element of a tensor that has the counts and strides, on
/// the context's threads, along memory.
template <typename Visit>
void ForEachSite(
    const Context& context,
    const PerDim<std::int64_t>& counts,
    const PerDim<std::int64_t>& strides,
    const Visit& visit) {
  const bool channels_last = strides.channel < strides.axes[kWindowAxes - 1];
  // From the outermost to the one along which neighbours lie.
  using Order = std::array<std::int64_t, 2 + kWindowAxes>;
  const Order sizes =
      channels_last
          ? Order{counts.batch, counts.axes[0], counts.axes[1], counts.axes[2], counts.channel}
          : Order{counts.batch, counts.channel, counts.axes[0], counts.axes[1], counts.axes[2]};
  const std::int64_t total = SiteTotal(counts);
  ParallelFor(context, total, kWindowsGrain, [&](std::int64_t begin, std::int64_t end) {
    Order at{};
    std::int64_t rest = begin;
    for (std::size_t dim = at.size(); dim-- > 0;) {
      at[dim] = rest % sizes[dim];
      rest /= sizes[dim];
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const Site<std::int64_t> site = channels_last
                                          ? Site<std::int64_t>{at[0], at[4], {at[1], at[2], at[3]}}
                                          : Site<std::int64_t>{at[0], at[1], {at[2], at[3], at[4]}};
      visit(site);
      for (std::size_t dim = at.size(); dim-- > 0;) {
        ++at[dim];
        if (at[dim] < sizes[dim]) {
          break;
        }
        at[dim] = 0;
      }
    }
  });
}

/// ReduceWindowsOnCpu computes a reduction of windows of elements of a floating type.
template <typename Functor>
void ReduceWindowsOnCpu(const Context& context, DataType type, const WindowsTask& task) {
  VisitFloatingType(type, [&]<typename T>(std::type_identity<T> /*type*/) {
    ForEachSite(
        context, SiteCounts(task, /*of_output=*/true), task.strides[1],
        [&](const Site<std::int64_t>& site) {
          ReduceWindow<Functor, T, 1>(task, WindowsOnCpu{task}, site);
        });
  });
}

/// GatherWindowsOnCpu computes a gather from windows, of elements of a floating type. What is to be
/// added to is staged by the caller (core/accumulate.h).
template <typename Functor>
void GatherWindowsOnCpu(const Context& context, DataType type, const WindowsTask& task) {
  VisitFloatingType(type, [&]<typename T>(std::type_identity<T> /*type*/) {
    ForEachSite(
        context, SiteCounts(task, /*of_output=*/false), task.strides[Functor::kOutput],
        [&](const Site<std::int64_t>& site) {
          GatherWindows<Functor, T>(task, WindowsOnCpu{task}, site);
        });
  });
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_WINDOWS_H_
