#ifndef GRADSMITH_TESTS_REFERENCE_FORMULA_H_
#define GRADSMITH_TESTS_REFERENCE_FORMULA_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/counting_number.h"
#include "reference/oracle.h"

/// The oracle of operators that have formulas: an interpreter of their trees.
namespace gradsmith::reference {

/// FormulaNode is a part of a formula: a function of nodes before it by the name that the language
/// has for it ("exp", "add", "less", "where"), a constant likewise ("pi"), a "number", an "input"
/// or "attribute" by its name, or whether an attribute that is named has a value ("chosen").
struct FormulaNode {
  std::string_view operation;
  std::vector<std::size_t> arguments = {};
  double number = 0;
  std::string_view name = {};
  /// The dims that a "sum", "mean", "max" or "variance" reduces, or a "count" counts
  /// (named_formula.h).
  std::vector<std::string_view> over = {};
  std::string_view value = {};
};

/// FormulaOutput is an output's name and the node of its value. It is a sum where `sum_like` is the
/// name of an input, whose dims it has: of all values that are at the place of one of its elements.
struct FormulaOutput {
  std::string_view name;
  std::size_t node = 0;
  std::string_view sum_like = {};
};

/// FormulaData is what a generated test says of an operator's formulas.
struct FormulaData {
  std::span<const FormulaNode> nodes;
  std::vector<FormulaOutput> outputs;
  /// The inputs that are broadcast to the dims of the others.
  std::set<std::string, std::less<>> broadcast = {};
  /// Those of them that broadcast to each other: together they make the dims of the others.
  std::set<std::string, std::less<>> joined = {};
  /// Those of words of 32, of which each place has a bit ("bit").
  std::set<std::string, std::less<>> bits = {};
  /// The inputs that are truth values.
  std::set<std::string, std::less<>> masks = {};
  /// What the operator that this one is the gradient of makes of the same inputs: data are such
  /// that it is finite and bends nowhere near.
  std::span<const std::size_t> domain = {};
  /// Values of attributes with which results of integers are short.
  Attributes exact_attributes = {};
};

/// FormulaFunction computes what the language calls by a name.
using FormulaFunction = CountingNumber (*)(std::span<const CountingNumber> arguments);

/// FormulaPart is how a node is computed that reduces nothing.
struct FormulaPart {
  /// Null for numbers, inputs and attributes.
  FormulaFunction function = nullptr;
  /// Whether integers give exact results: what is computed adds, multiplies, compares and selects.
  bool is_exact = false;
};

/// PartOf throws where the language has no such node.
FormulaPart PartOf(const FormulaNode& node);

/// LeafOf returns the value of a number, an attribute or an input, of which `of_input` is the
/// element.
CountingNumber LeafOf(const FormulaNode& node, const Attributes& attributes, double of_input);

/// Numbers are one for each input, by its name.
using Numbers = std::map<std::string, double, std::less<>>;

/// NumberOf returns what a node gives where every element of an input is the same number.
CountingNumber NumberOf(
    std::span<const FormulaNode> nodes,
    std::size_t node,
    const Numbers& inputs,
    const Attributes& attributes);

/// HasMargin is true of a number that is finite, and far enough from where functions bend that data
/// may be there.
bool HasMargin(const CountingNumber& value);

/// DrawNumber returns a number from -4 to 4 for random data, and kNowhereSmooth says that none was
/// found at which formulas do not bend.
double DrawNumber(Random& random);
inline constexpr const char* kNowhereSmooth =
    "no numbers from -4 to 4 are found where the formulas are finite and do not bend";

/// DrawWhole draws an element of an input of integers or truth values; nothing for others.
using DrawWhole = std::function<std::optional<double>(const std::string& input)>;

/// ExactInputs returns small integers for each input whose elements are not whole by themselves;
/// nothing where there is no such level. `inexact` are outputs that do not come out exact of them.
std::optional<ExactData> ExactInputs(
    const Shapes& inputs,
    const DrawWhole& draw_whole,
    const std::set<std::string>& inexact,
    int level,
    Random& random);

/// InexactOf returns the outputs whose node is not exact.
std::set<std::string> InexactOf(
    const std::vector<FormulaOutput>& outputs,
    const std::vector<bool>& exact);

/// FormulaOracle evaluates an operator's formulas in long double, with a running analysis of how
/// far off float or double may be. Outputs that are no sums have the dims of the inputs that are
/// not broadcast, and where all are, the dims to which these broadcast together.
class FormulaOracle final : public Oracle {
 public:
  explicit FormulaOracle(FormulaData data);

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
  /// A value for each node.
  using Values = std::vector<CountingNumber>;

  class Place;

  /// Evaluate computes all nodes at one place of the inputs.
  void Evaluate(const Place& place, const Attributes& attributes, Values& values) const;
  /// The dims of the inputs that are not broadcast, or to which those broadcast that are joined;
  /// nothing where inputs do not fit together.
  [[nodiscard]] std::optional<Shape> Space(const Shapes& inputs) const;
  /// 0 or 1 for an input of truth values, and a word of bits.
  [[nodiscard]] std::optional<double> DrawMask(const std::string& input, Random& random) const;
  /// A number of an input for random data.
  [[nodiscard]] double Draw(const std::string& input, Random& random) const;
  /// Whether results at the place are finite, and keep their distance from where they bend.
  [[nodiscard]] bool IsSmooth(const Values& values) const;

  FormulaData data_;
  /// What computes each node; null for numbers, inputs and attributes.
  std::vector<FormulaFunction> functions_;
  /// Whether integers give exact results there: what is computed adds, multiplies, compares and
  /// selects.
  std::vector<bool> exact_;
};

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_FORMULA_H_
