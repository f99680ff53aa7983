#ifndef GRADSMITH_TESTS_REFERENCE_PLAIN_ORACLE_H_
#define GRADSMITH_TESTS_REFERENCE_PLAIN_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reference/counting_sum.h"
#include "reference/oracle.h"

/// What oracles of plain kernels share.
namespace gradsmith::reference {

/// The index of the element at a position of a dense tensor.
inline Shape IndexAt(const Shape& dims, std::int64_t position) {
  Shape index(dims.size());
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = position % dims[axis];
    position /= dims[axis];
  }
  return index;
}

/// The position of an element of a dense tensor, its last dims those that the index ends with.
inline std::size_t PositionOf(const Shape& dims, const Shape& index) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t at = index[index.size() - dims.size() + axis];
    position = position * dims[axis] + (dims[axis] == 1 ? 0 : at);
  }
  return static_cast<std::size_t>(position);
}

/// Sums that are rounded once beside their terms.
inline CountingSums Sums(const Shape& dims) {
  return {dims, /*roundings=*/1};
}

/// Data of numbers that need few digits, or of any. Outputs that may be inexact always are.
class PlainOracle : public Oracle {
 public:
  [[nodiscard]] Tensors MakeRandomData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      Random& random) const override {
    Tensors data;
    for (const auto& [name, dims] : inputs) {
      data[name] = MakeTensor(dims, [&] { return random.Real(-1, 1); });
    }
    return data;
  }

  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& /*attributes*/,
      int level,
      Random& random) const override {
    if (level > 1) {
      return std::nullopt;
    }
    ExactData data;
    for (const auto& [name, dims] : inputs) {
      data.inputs[name] = MakeTensor(dims, [&] { return random.Integer(1, level == 0 ? 5 : 2); });
    }
    for (const std::string& name : InexactOutputs()) {
      data.inexact[name] = "what it is made of is rounded";
    }
    return data;
  }
};

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_PLAIN_ORACLE_H_
