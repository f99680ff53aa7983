#ifndef GRADSMITH_ATTRIBUTES_H_
#define GRADSMITH_ATTRIBUTES_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/tensor.h"

namespace gradsmith {

/// AutoPad is how a convolution's pads come about (ONNX Conv, attribute `auto_pad`). With NOTSET
/// they are `pads`, and with VALID there are none. With SAME_UPPER and SAME_LOWER there are so many
/// that the output has ceil(input / stride) positions, an odd one at the end or at the beginning.
enum class AutoPad : std::uint8_t { NOTSET, SAME_UPPER, SAME_LOWER, VALID };

/// LossReduction is what becomes of the losses of all samples (ONNX SoftmaxCrossEntropyLoss,
/// attribute `reduction`). With mean it is their mean, weighted where samples have weights, and
/// with sum their sum; with none they stay as they are, one for each sample.
enum class LossReduction : std::uint8_t { mean, sum, none };

/// AttributeValue is the value of an attribute whose op is chosen at run time. An enum's value is
/// its name.
class AttributeValue {
 public:
  using Variant = std::variant<std::int64_t, double, std::string, IntList, bool, FloatList>;

  // NOLINTBEGIN(google-explicit-constructor): {"group", 2} is to be written without a name for the
  // value
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  AttributeValue(I value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point F>
  AttributeValue(F value) : value_(static_cast<double>(value)) {}
  AttributeValue(std::string value) : value_(std::move(value)) {}
  AttributeValue(const char* value) : value_(std::string(value)) {}
  AttributeValue(const IntList& value) : value_(value) {}
  template <std::same_as<bool> B>  // nothing else is to become a bool
  AttributeValue(B value) : value_(value) {}
  AttributeValue(const FloatList& value) : value_(value) {}
  // NOLINTEND(google-explicit-constructor)

  [[nodiscard]] const Variant& variant() const { return value_; }

 private:
  Variant value_;
};

/// Attribute is a name and a value, for example {"strides", IntList{2, 2}}.
struct Attribute {
  std::string name;
  AttributeValue value;
};

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_ATTRIBUTES_H_
