#ifndef GRADSMITH_TESTS_REFERENCE_NAMED_FORMULA_H_
#define GRADSMITH_TESTS_REFERENCE_NAMED_FORMULA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/formula.h"
#include "reference/oracle.h"

/// The oracle of operators whose formulas name dims: what reduces over some, and what is spread
/// along those that it lacks.
namespace gradsmith::reference {

/// NamedLength says how many dims a name has: so many, or those before an axis of an input.
struct NamedLength {
  std::string_view name;
  std::int64_t length = 0;
  std::string_view axis = {};
  std::string_view axis_of = {};
  /// Where it is not empty: a bool attribute that must have the value `where` for this to hold.
  std::string_view condition = {};
  bool where = false;
};

/// NamedIntegers is an input of integers: places along a dim, and a few beyond its ends unless
/// these are refused, or truth values.
struct NamedIntegers {
  std::string_view input;
  std::string_view dim = {};
  bool is_truth = false;
  bool is_signed = false;
  bool is_within = false;
};

/// NamedCondition is what decides whether some dims are there: an enum attribute that has the
/// value, or a bool attribute that is true, where that is empty.
struct NamedCondition {
  std::string_view attribute = {};
  std::string_view value = {};
};

/// NamedFormulaData is what a generated test says of such formulas.
struct NamedFormulaData {
  std::span<const FormulaNode> nodes;
  /// The names of the largest tensor's dims, in order.
  std::vector<std::string_view> names;
  /// How many dims they have, but for lists that the inputs' ranks tell.
  std::vector<NamedLength> lengths = {};
  /// The shapes of inputs and outputs, by names; "1" is a dim of 1 that has none.
  std::map<std::string_view, std::vector<std::string_view>> shapes;
  std::vector<FormulaOutput> outputs;
  /// Where the condition holds, what tensors and outputs are instead.
  NamedCondition condition = {};
  std::map<std::string_view, std::vector<std::string_view>> shapes_if = {};
  std::vector<FormulaOutput> outputs_if = {};
  std::vector<NamedIntegers> integers = {};
  /// The domain and attributes are what FormulaData has.
  std::span<const std::size_t> domain = {};
  Attributes exact_attributes = {};
  /// Where two names are one dim of tensors: the first name, and the attribute that says its
  /// length. The second stands behind it in shapes, with an asterisk.
  std::map<std::string_view, std::string_view> firsts = {};

  /// The shape of a tensor, and the outputs, in a call with these attributes.
  [[nodiscard]] const std::vector<std::string_view>& ShapeOf(
      std::string_view tensor,
      const Attributes& attributes) const;
  [[nodiscard]] std::vector<FormulaOutput> OutputsOf(const Attributes& attributes) const;

 private:
  [[nodiscard]] bool Holds(const Attributes& attributes) const;
};

/// NamedFormulaOracle evaluates node by node, each at every place of its own dims. An absent input
/// is 0.
class NamedFormulaOracle final : public Oracle {
 public:
  explicit NamedFormulaOracle(NamedFormulaData data);

  [[nodiscard]] std::optional<Shapes> OutputShapes(
      const Shapes& inputs,
      const Attributes& attributes) const override;
  [[nodiscard]] ExpectedOutputs Run(const Tensors& inputs, const Attributes& attributes)
      const override;
  /// MakeRandomData returns numbers from -4 to 4 where the operator, and the one that it is the
  /// gradient of, are finite and keep away from where they bend.
  [[nodiscard]] Tensors
  MakeRandomData(const Shapes& inputs, const Attributes& attributes, Random& random) const override;
  [[nodiscard]] std::optional<ExactData> MakeExactData(
      const Shapes& inputs,
      const Attributes& attributes,
      int level,
      Random& random) const override;
  [[nodiscard]] std::set<std::string> InexactOutputs() const override;
  [[nodiscard]] Attributes ExactAttributes() const override { return data_.exact_attributes; }

 private:
  class Space;
  /// A node's value at each place of its dims.
  using Values = std::vector<CountingNumber>;

  [[nodiscard]] std::vector<Values>
  Evaluate(const Space& space, const Tensors& inputs, const Attributes& attributes) const;
  /// Draws an element of an input of integers; nothing for others.
  [[nodiscard]] std::optional<double>
  DrawInteger(const Space& space, const std::string& input, Random& random) const;
  /// The values of a node without a function.
  [[nodiscard]] Values Leaves(
      const Space& space,
      std::size_t node,
      const std::vector<Values>& values,
      const Tensors& inputs,
      const Attributes& attributes) const;
  [[nodiscard]] bool IsInteger(std::size_t node) const;
  [[nodiscard]] Values Apply(
      const Space& space,
      std::size_t node,
      const std::vector<Values>& values,
      const Tensors& inputs,
      const Attributes& attributes) const;
  [[nodiscard]] Values
  Reduce(const Space& space, std::size_t node, const std::vector<Values>& values) const;
  /// The places of the whole space at which data are to be drawn anew.
  [[nodiscard]] std::vector<bool>
  Rough(const Space& space, const std::vector<Values>& values, const Attributes& attributes) const;

  NamedFormulaData data_;
  std::vector<FormulaFunction> functions_;
  std::vector<bool> exact_;
  /// The names of each node's dims.
  std::vector<std::set<std::string_view>> dims_;
  /// Whether a node compares an integer with an integer or a number as it was given: without error.
  std::vector<bool> compares_integers_;
  /// Whether a node reduces, or is made of one that does.
  std::vector<bool> reduces_;
};

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_NAMED_FORMULA_H_
