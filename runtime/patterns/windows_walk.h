#ifndef GRADSMITH_PATTERNS_WINDOWS_WALK_H_
#define GRADSMITH_PATTERNS_WINDOWS_WALK_H_

#include <cstdint>

#include "patterns/windows_task.h"

/// How the pattern `windows` (patterns/windows.h) goes through windows: CPU and CUDA share it.
/// Compiled by kernels as well: plain C++17.
///
/// An Access says how memory is met: its `Position` is the integer that counts along an axis, Load
/// returns an element as an accumulator, LoadLanes and StoreLanes move some neighbours, and
/// Quotient divides what is not negative by an axis' stride.
namespace gradsmith::internal {

/// Site is an element of a tensor (N, C, D...): the first of those that are computed at once.
template <typename P>
struct Site {
  std::int64_t batch = 0;
  std::int64_t channel = 0;
  P at[kWindowAxes] = {};
};

template <typename P>
GRADSMITH_WINDOWS std::int64_t OffsetOf(const PerDim<std::int64_t>& strides, const Site<P>& site) {
  std::int64_t offset = (site.batch * strides.batch) + (site.channel * strides.channel);
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    offset += site.at[axis] * strides.axes[axis];
  }
  return offset;
}

/// Taps are the positions of a window along an axis, from `begin` on, `dilation` apart, before
/// `end`.
template <typename P>
struct Taps {
  P begin;
  P end;
};

template <typename P>
GRADSMITH_WINDOWS P SpanOf(const WindowAxis& axis) {
  return ((static_cast<P>(axis.size) - 1) * static_cast<P>(axis.dilation)) + 1;
}

/// WindowBegin returns where a window begins, which may be before the input.
template <typename P>
GRADSMITH_WINDOWS P WindowBegin(const WindowAxis& axis, P window) {
  return (window * static_cast<P>(axis.stride)) - static_cast<P>(axis.pad_begin);
}

/// TapsInside returns the taps of a window that lie in the input.
template <typename P>
GRADSMITH_WINDOWS Taps<P> TapsInside(const WindowAxis& axis, P begin) {
  const P dilation = static_cast<P>(axis.dilation);
  const P end = begin + SpanOf<P>(axis);
  const P input = static_cast<P>(axis.input);
  if (begin < 0) {
    begin = dilation == 1 ? 0 : begin + ((dilation - 1 - begin) / dilation * dilation);
  }
  return {begin, end < input ? end : input};
}

/// TapCount returns how many taps a window has in the input, or in the input and its pads.
template <typename P>
GRADSMITH_WINDOWS P TapCount(const WindowAxis& axis, P begin, bool counts_padding) {
  const P dilation = static_cast<P>(axis.dilation);
  Taps<P> taps = TapsInside(axis, begin);
  if (counts_padding) {
    const P padded = static_cast<P>(axis.input + axis.pad_end);
    const P end = begin + SpanOf<P>(axis);
    taps = {begin, end < padded ? end : padded};
  }
  const P extent = taps.end - taps.begin;
  if (extent <= 0) {
    return 0;
  }
  return dilation == 1 ? extent : (extent + dilation - 1) / dilation;
}

/// WindowCount returns how many taps divide a window's sum.
template <typename A, typename P>
GRADSMITH_WINDOWS A WindowCount(const WindowsTask& task, const P (&begins)[kWindowAxes]) {
  A count = 1;
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    count *= static_cast<A>(TapCount(task.axes[axis], begins[axis], task.counts_padding));
  }
  return count;
}

/// ForEachTap calls visit(offset, place) with those taps of a window that lie in the input, in the
/// window's order: how far they are into a channel of a tensor with the strides, and into its index
/// in elements. It ends where visit returns false.
template <typename P, typename Visit>
GRADSMITH_WINDOWS void ForEachTap(
    const WindowsTask& task,
    const P (&begins)[kWindowAxes],
    const PerDim<std::int64_t>& strides,
    const Visit& visit) {
  const Taps<P> outer = TapsInside(task.axes[0], begins[0]);
  const Taps<P> middle = TapsInside(task.axes[1], begins[1]);
  const Taps<P> inner = TapsInside(task.axes[2], begins[2]);
  for (P i = outer.begin; i < outer.end; i += static_cast<P>(task.axes[0].dilation)) {
    for (P j = middle.begin; j < middle.end; j += static_cast<P>(task.axes[1].dilation)) {
      const std::int64_t row = (i * strides.axes[0]) + (j * strides.axes[1]);
      const std::int64_t place = (i * task.places.axes[0]) + (j * task.places.axes[1]);
      for (P k = inner.begin; k < inner.end; k += static_cast<P>(task.axes[2].dilation)) {
        if (!visit(row + (k * strides.axes[2]), place + (k * task.places.axes[2]))) {
          return;
        }
      }
    }
  }
}

/// ReduceWindow computes kLanes neighbouring channels of an output, each from its window.
template <typename Functor, typename T, int kLanes, typename Access>
GRADSMITH_WINDOWS void ReduceWindow(
    const WindowsTask& task,
    const Access& access,
    const Site<typename Access::Position>& site) {
  using A = typename Access::template Accumulates<T>;
  using P = typename Access::Position;
  typename Functor::template State<A> states[kLanes];
  P begins[kWindowAxes];
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    begins[axis] = WindowBegin(task.axes[axis], site.at[axis]);
  }
  const PerDim<std::int64_t>& strides = task.strides[0];
  const T* from = static_cast<const T*>(task.tensors[0]) + (site.batch * strides.batch) +
                  (site.channel * strides.channel);
  const std::int64_t place =
      (site.batch * task.places.batch) + (site.channel * task.places.channel);
  ForEachTap(task, begins, strides, [&](std::int64_t offset, std::int64_t in_channel) {
    T values[kLanes];
    access.template LoadLanes<kLanes>(from + offset, values);
    for (int lane = 0; lane < kLanes; ++lane) {
      Functor::Take(
          access.template Load<A>(&values[lane]), place + (lane * task.places.channel) + in_channel,
          &states[lane]);
    }
    return true;
  });
  A count = 1;
  if constexpr (Functor::kCounts) {
    count = WindowCount<A>(task, begins);
  }
  T values[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    values[lane] = access.template Round<T>(Functor::Value(states[lane], count));
  }
  access.template StoreLanes<kLanes>(
      values, static_cast<T*>(task.tensors[1]) + OffsetOf(task.strides[1], site));
  if constexpr (Functor::kPlaces) {
    if (task.tensors[2] != nullptr) {
      std::int64_t indices[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) {
        indices[lane] = Functor::Place(states[lane]);
      }
      access.template StoreLanes<kLanes>(
          indices, static_cast<std::int64_t*>(task.tensors[2]) + OffsetOf(task.strides[2], site));
    }
  }
}

/// WindowAt is a window that holds the element of which the gradient is computed.
template <typename T, typename Access>
struct WindowAt {
  using A = typename Access::template Accumulates<T>;
  using P = typename Access::Position;

  const WindowsTask& task;
  const Access& access;
  /// The input's channel; null where the functor does not read the input.
  const T* input;
  /// The element's index among all elements of the input, and among those of its channel.
  std::int64_t place;
  std::int64_t in_channel;
  /// How many taps a window without padding has.
  A whole;
  P begins[kWindowAxes];
  /// How many taps divide the window's sum.
  A count;

  /// Whether the element is the one that the window's maximum comes from: the first that equals it,
  /// or the last NaN where it is not a number. `x` is the element.
  [[nodiscard]] GRADSMITH_WINDOWS bool IsChosen(A x, A maximum) const {
    const bool is_nan = IsNan(maximum);
    if (!(x == maximum || (is_nan && IsNan(x)))) {
      return false;
    }
    bool is_chosen = true;
    bool is_behind = false;
    ForEachTap(task, begins, task.strides[1], [&](std::int64_t offset, std::int64_t other) {
      const bool is_own = other == in_channel;
      is_behind = is_behind || is_own;
      if (!is_own && is_behind == is_nan) {
        const A rival = access.template Load<A>(input + offset);
        is_chosen = !(is_nan ? IsNan(rival) : rival == maximum);
      }
      return is_chosen && (is_nan || !is_behind);
    });
    return is_chosen;
  }
};

/// Windows are some of those along an axis, from begin to end, without end.
template <typename P>
struct Windows {
  P begin;
  P end;
};

/// HoldingWindows returns the windows along an axis that reach over a position.
template <typename Access, typename P>
GRADSMITH_WINDOWS Windows<P>
HoldingWindows(const WindowsTask& task, const Access& access, int axis, P position) {
  const WindowAxis& windows = task.axes[axis];
  const P pad = static_cast<P>(windows.pad_begin);
  const P span = SpanOf<P>(windows);
  const P begin = position + pad < span ? 0 : access.Quotient(axis, position + pad - span) + 1;
  const P end = access.Quotient(axis, position + pad) + 1;
  return {begin, end < static_cast<P>(windows.output) ? end : static_cast<P>(windows.output)};
}

/// ForEachWindow calls visit(output, begins, count) with the windows that hold an element: the
/// window's site, where it begins, and how many taps it counts, which is 1 where kCounts is false.
template <typename A, bool kCounts, typename Access, typename P, typename Visit>
GRADSMITH_WINDOWS void ForEachWindow(
    const WindowsTask& task,
    const Access& access,
    const Site<P>& site,
    const Visit& visit) {
  const Windows<P> outer = HoldingWindows(task, access, 0, site.at[0]);
  const Windows<P> middle = HoldingWindows(task, access, 1, site.at[1]);
  const Windows<P> inner = HoldingWindows(task, access, 2, site.at[2]);
  const auto is_between_taps = [&](int axis, P begin) {
    return task.is_dilated &&
           (site.at[axis] - begin) % static_cast<P>(task.axes[axis].dilation) != 0;
  };
  const auto counted = [&](int axis, P begin) {
    return kCounts ? static_cast<A>(TapCount(task.axes[axis], begin, task.counts_padding)) : A{1};
  };
  Site<P> output = site;
  P begins[kWindowAxes];
  for (output.at[0] = outer.begin; output.at[0] < outer.end; ++output.at[0]) {
    begins[0] = WindowBegin(task.axes[0], output.at[0]);
    if (is_between_taps(0, begins[0])) {
      continue;
    }
    const A count = counted(0, begins[0]);
    for (output.at[1] = middle.begin; output.at[1] < middle.end; ++output.at[1]) {
      begins[1] = WindowBegin(task.axes[1], output.at[1]);
      if (is_between_taps(1, begins[1])) {
        continue;
      }
      const A row_count = count * counted(1, begins[1]);
      for (output.at[2] = inner.begin; output.at[2] < inner.end; ++output.at[2]) {
        begins[2] = WindowBegin(task.axes[2], output.at[2]);
        if (!is_between_taps(2, begins[2])) {
          visit(output, begins, row_count * counted(2, begins[2]));
        }
      }
    }
  }
}

/// GatherWindows computes an element of the gradient of the windows' input, from the windows that
/// hold it.
template <typename Functor, typename T, typename Access>
GRADSMITH_WINDOWS void GatherWindows(
    const WindowsTask& task,
    const Access& access,
    const Site<typename Access::Position>& site) {
  using A = typename Access::template Accumulates<T>;
  using P = typename Access::Position;
  using Key = typename Functor::template Key<T>;
  A x = 0;
  const T* input = nullptr;
  if constexpr (Functor::kReadsInput) {
    const T* from = static_cast<const T*>(task.tensors[1]);
    x = access.template Load<A>(from + OffsetOf(task.strides[1], site));
    input = from + (site.batch * task.strides[1].batch) + (site.channel * task.strides[1].channel);
  }
  A whole = 1;
  std::int64_t in_channel = 0;
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    whole *= static_cast<A>(task.axes[axis].size);
    in_channel += site.at[axis] * task.places.axes[axis];
  }
  const std::int64_t place =
      (site.batch * task.places.batch) + (site.channel * task.places.channel) + in_channel;
  typename Functor::template State<A> state;
  ForEachWindow<A, Functor::kCounts>(
      task, access, site, [&](const Site<P>& output, const P(&begins)[kWindowAxes], A count) {
        const WindowAt<T, Access> window{
            task, access, input, place, in_channel, whole, {begins[0], begins[1], begins[2]},
            count};
        const A dy = access.template Load<A>(
            static_cast<const T*>(task.tensors[0]) + OffsetOf(task.strides[0], output));
        Key key = {};
        if constexpr (Functor::kKey >= 0) {
          key = static_cast<const Key*>(
              task.tensors[Functor::kKey])[OffsetOf(task.strides[Functor::kKey], output)];
        }
        Functor::Take(window, dy, key, x, &state);
      });
  T* to = static_cast<T*>(task.tensors[Functor::kOutput]) +
          OffsetOf(task.strides[Functor::kOutput], site);
  const A sum = Functor::Value(state, whole);
  *to = access.template Round<T>(task.accumulate ? sum + access.template Load<A>(to) : sum);
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_WINDOWS_WALK_H_
