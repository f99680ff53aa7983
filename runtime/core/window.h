#ifndef GRADSMITH_CORE_WINDOW_H_
#define GRADSMITH_CORE_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/shape_rules.h"
#include "core/window_axis.h"
#include "gradsmith/attributes.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Where windows lie that move along an input, as those of convolution and of pooling do, and what
/// their attributes must be. How many there are says kWindows (core/shape_rules.h).
namespace gradsmith::internal {

/// Wide holds a sum of several products of two int64.
__extension__ using Wide = __int128;

/// Sizes and offsets along a padded axis stay below this, so that kernels add two of them without a
/// thought.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 62;

/// WindowSpan returns how many positions there are from a placed window's first to its last.
inline Wide WindowSpan(std::int64_t size, std::int64_t dilation) {
  return (Wide{dilation} * (size - 1)) + 1;
}

/// SplitPads are so many pads in halves; an odd one goes to the end or to the beginning. Less than
/// none is none: the surplus positions are then in no window.
struct SplitPads {
  SplitPads(Extent total, bool odd_at_end) {
    const std::int64_t pads = std::max<Extent>(total, 0).number;
    const std::int64_t half = pads / 2;
    begin = odd_at_end ? half : pads - half;
    end = pads - begin;
  }

  std::int64_t begin;
  std::int64_t end;
};

/// WindowFault is why windows cannot be placed.
enum class WindowFault : std::uint8_t {
  kNone,
  kWindowTooLarge,  ///< it spans more than kMaxExtent
  kInputTooLarge,   ///< with pads, it has more than kMaxExtent positions
};

/// PlaceWindows returns the windows of a generated shape rule that ends in `windows(D, K)`, with
/// the pads that auto_pad sets, or sets the fault.
template <typename Rule>
WindowAxis PlaceWindows(const Rule& rule, AutoPad auto_pad, WindowFault* fault) {
  WindowAxis axis{
      .input = rule.input.number,
      .size = rule.size.number,
      .stride = rule.stride.number,
      .dilation = rule.dilation.number,
      .pad_begin = rule.pad_begin.number,
      .pad_end = rule.pad_end.number};
  if (rule.span > kMaxExtent || rule.padded > kMaxExtent) {
    *fault = rule.span > kMaxExtent ? WindowFault::kWindowTooLarge : WindowFault::kInputTooLarge;
    return axis;
  }
  *fault = WindowFault::kNone;
  axis.output = rule.value.number;
  if (auto_pad == AutoPad::SAME_UPPER || auto_pad == AutoPad::SAME_LOWER) {
    const Extent total = ((rule.value - 1) * rule.stride) + rule.span - rule.input;
    const SplitPads pads(axis.output == 0 ? 0 : total, auto_pad == AutoPad::SAME_UPPER);
    axis.pad_begin = pads.begin;
    axis.pad_end = pads.end;
  }
  return axis;
}

/// WindowList is a list attribute of windows: it is empty or has `factor` numbers for each spatial
/// axis.
struct WindowList {
  std::string_view name;
  const IntList& list;
  int factor;
  std::int64_t minimum;
};

/// CheckWindowLists returns the error of the first list of another length, or with a number below
/// its minimum.
Status CheckWindowLists(std::span<const WindowList> lists, int rank);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_WINDOW_H_
