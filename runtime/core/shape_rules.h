#ifndef GRADSMITH_CORE_SHAPE_RULES_H_
#define GRADSMITH_CORE_SHAPE_RULES_H_

#include <compare>
#include <cstdint>
#include <limits>
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
    expect pad_begin + pad_end == 0 or (not same and auto_pad != VALID):
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

/// Extent is a whole number that stays at the ends of int64 where a result would pass them: what
/// attributes make of a size may be absurd, and is then too large.
struct Extent {
  constexpr Extent(std::int64_t number)  // NOLINT(google-explicit-constructor): sizes are numbers
      : number(number) {}

  friend constexpr Extent operator+(Extent a, Extent b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a.number, b.number, &sum) ? End(a.number > 0) : Extent(sum);
  }
  friend constexpr Extent operator-(Extent a, Extent b) {
    std::int64_t rest = 0;
    return __builtin_sub_overflow(a.number, b.number, &rest) ? End(a.number >= 0) : Extent(rest);
  }
  friend constexpr Extent operator*(Extent a, Extent b) {
    std::int64_t product = 0;
    const bool is_positive = (a.number > 0) == (b.number > 0);
    return __builtin_mul_overflow(a.number, b.number, &product) ? End(is_positive)
                                                                : Extent(product);
  }
  friend constexpr Extent operator-(Extent a) { return Extent(0) - a; }
  friend constexpr auto operator<=>(Extent a, Extent b) = default;

  std::int64_t number;

 private:
  static constexpr Extent End(bool is_positive) {
    using Limits = std::numeric_limits<std::int64_t>;
    return is_positive ? Limits::max() : Limits::min();
  }
};

/// FloorDiv rounds a quotient down. The divisor is 1 or more; for others it is 0.
constexpr Extent FloorDiv(Extent dividend, Extent divisor) {
  const std::int64_t a = dividend.number;
  const std::int64_t b = divisor.number;
  if (b < 1) {
    return 0;
  }
  if (((a | b) >> 32) == 0) {  // which takes a fraction of the time
    return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  }
  return (a / b) - static_cast<std::int64_t>(a % b < 0);
}

/// CeilDiv rounds a quotient up, likewise.
constexpr Extent CeilDiv(Extent dividend, Extent divisor) {
  return -FloorDiv(-dividend, divisor);
}

/// EntryOf returns a number of a list attribute, or `otherwise` where the list is shorter.
inline Extent EntryOf(const IntList& list, int place, std::int64_t otherwise) {
  return place < list.size() ? list[place] : otherwise;
}

/// FaultOf returns why a generated rule gives no size along an axis. It computes the rule anew, so
/// that a call for which it holds keeps no value of it in memory.
template <typename Rule, typename... Given>
[[gnu::cold, gnu::noinline]] Status FaultOf(int axis, const Given&... given) {
  return Rule{given..., axis}.Fault();
}

/// RuleText is a value as messages have it.
std::string RuleText(Extent number);
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
    if (rule.value < 0) {
      return InvalidArgument(
          "axis " + RuleText(axis) + ": the shape rule gives " + RuleText(rule.value) +
          " positions; expected 0 or more");
    }
    sizes.push_back(rule.value.number);
  }
  return sizes;
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SHAPE_RULES_H_
