#ifndef GRADSMITH_CORE_SHAPE_RULES_H_
#define GRADSMITH_CORE_SHAPE_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "gradsmith/attributes.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// What shape rules are made of. A rule's formula is a text of its family's kernels.h, and the
/// generator makes of it a struct of <family>/shape_rules.h, which computes the size along one
/// axis. docs/schema.md explains the texts.
namespace gradsmith::internal {

/// The rule of windows that move along an input of D positions, each with K of them. Along an
/// input without positions there are as many windows as its pads hold. Without auto_pad, ceil_mode
/// lets the last window reach beyond the pads, but none begins in the pads at the end, as ONNX and
/// PyTorch have it.
inline constexpr std::string_view kWindows = R"(
    windows(D, K) is
    input = D
    size = K
    stride = entry(strides, 1)
    dilation = entry(dilations, 1)
    pad_begin = begin(pads, 0)
    pad_end = end(pads, 0)
    expect size >= 1: spatial axis {axis}: the window has size {size}; expected 1 or more
    same = auto_pad == SAME_UPPER or auto_pad == SAME_LOWER
    expect pad_begin + pad_end == 0 or not (same or auto_pad == VALID):
        attribute pads is {pads}; expected none, or zeros, where auto_pad is {auto_pad}
    span = dilation * (size - 1) + 1
    padded = input + pad_begin + pad_end
    room = padded - span
    rounds_up = ceil_mode and auto_pad != VALID
    fitting = where(rounds_up, ceil(room / stride), floor(room / stride)) + 1
    most = where(rounds_up, ceil((input + pad_begin) / stride), fitting)
    count = where(same, ceil(input / stride), max(min(fitting, most), 0))
    expect count >= 1 or input == 0:
        spatial axis {axis}: the padded input has {padded} positions ({input} and pads {pad_begin}, {pad_end});
        expected at least the {span} that the window spans (size {size}, dilation {dilation})
    count
)";

/// Wide holds a sum of several products of two int64.
__extension__ using Wide = __int128;

/// FitsInt64 returns whether a number needs no more than 64 bits.
inline bool FitsInt64(Wide number) {
  return static_cast<Wide>(static_cast<std::int64_t>(number)) == number;
}

/// FloorDiv rounds a quotient down. The divisor is 1 or more; for others it is 0.
inline Wide FloorDiv(Wide dividend, Wide divisor) {
  if (divisor < 1) {
    return 0;
  }
  if (((dividend | divisor) >> 32) == 0) {  // which takes a fraction of the time
    return static_cast<std::uint32_t>(dividend) / static_cast<std::uint32_t>(divisor);
  }
  return (dividend / divisor) - static_cast<Wide>(dividend % divisor < 0);
}

/// CeilDiv rounds a quotient up, likewise.
inline Wide CeilDiv(Wide dividend, Wide divisor) {
  return FloorDiv(dividend + divisor - 1, divisor);
}

/// EntryOf returns a number of a list attribute, or `otherwise` where the list is shorter.
inline Wide EntryOf(const IntList& list, int place, std::int64_t otherwise) {
  return place < list.size() ? list[place] : otherwise;
}

/// FaultOf returns why a generated rule gives no size along an axis. It computes the rule anew, so
/// that a call for which it holds keeps no value of it in memory.
template <typename Rule, typename... Given>
[[gnu::cold, gnu::noinline]] Status FaultOf(int axis, const Given&... given) {
  return Rule{given..., axis}.Fault();
}

/// RuleText is a value as messages have it.
std::string RuleText(Wide number);
std::string RuleText(const IntList& list);
std::string RuleText(AutoPad auto_pad);

/// SizesBy returns the sizes along all axes by a generated rule, or why there are none. The lists
/// of dims, of which the first is `dims`, have one length.
template <typename Rule, typename Attributes, typename... Lists>
Result<Dims> SizesBy(const Attributes& attributes, const Dims& dims, const Lists&... others) {
  if (((others.size() != dims.size()) || ...)) {
    return InvalidArgument(
        "a shape rule is given lists of dims of different lengths; expected one length");
  }
  Dims sizes;
  for (int axis = 0; axis < dims.size(); ++axis) {
    const Rule rule{attributes, dims, others..., axis};
    if (!rule.Holds()) {
      return FaultOf<Rule>(axis, attributes, dims, others...);
    }
    if (rule.value < 0 || !FitsInt64(rule.value)) {
      return InvalidArgument(
          "spatial axis " + RuleText(axis) + ": the shape rule gives " + RuleText(rule.value) +
          " positions; expected from 0 to 2^63 - 1");
    }
    sizes.push_back(static_cast<std::int64_t>(rule.value));
  }
  return sizes;
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SHAPE_RULES_H_
