#ifndef GRADSMITH_CORE_WINDOW_H_
#define GRADSMITH_CORE_WINDOW_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "core/window_axis.h"
#include "gradsmith/attributes.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Where windows lie that move along an input, as those of convolution and of pooling do: one rule
/// for how many there are, and what their attributes must be.
namespace gradsmith::internal {

/// Wide holds a sum of several products of two int64.
__extension__ using Wide = __int128;

/// Sizes and offsets along a padded axis stay below this, so that kernels add two of them without a
/// thought.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 62;

/// WindowSpan returns how many positions there are from a window's first to its last.
inline Wide WindowSpan(std::int64_t size, std::int64_t dilation) {
  return (Wide{dilation} * (size - 1)) + 1;
}

/// SplitPads halves pads; an odd one goes to the end or to the beginning. Less than none is none:
/// the surplus positions are then in no window.
void SplitPads(Wide total, bool odd_at_end, std::int64_t* pad_begin, std::int64_t* pad_end);

/// IsSame is true for SAME_UPPER and SAME_LOWER.
bool IsSame(AutoPad auto_pad);

/// WindowFault is why windows cannot be placed.
enum class WindowFault : std::uint8_t {
  kNone,
  kWindowTooLarge,  ///< it spans more than kMaxExtent
  kInputTooLarge,   ///< with pads, it has more than kMaxExtent positions
  kDoesNotReach,    ///< no window lies in the padded input
};

/// PlaceWindows sets axis->output, and the pads where auto_pad does. With `ceil_mode` and without
/// auto_pad, a last window may reach beyond the padded input, and none begins in the pads at the
/// end, as ONNX and PyTorch have it. An input without positions has as many windows as its pads
/// hold.
WindowFault PlaceWindows(AutoPad auto_pad, bool ceil_mode, WindowAxis* axis);

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

/// CheckPadSources returns an error where auto_pad sets the pads and `pads` gives some.
Status CheckPadSources(AutoPad auto_pad, const IntList& pads);

/// EntryOr returns a number of a list, or `absent` where the list is empty.
inline std::int64_t EntryOr(std::int64_t absent, const IntList& list, int i) {
  return list.empty() ? absent : list[i];
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_WINDOW_H_
