#include "reference/named_formula.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace gradsmith::reference {

namespace {

using Real = long double;
using Names = std::set<std::string_view>;
/// An index along each dim of the whole space.
using Indices = std::vector<std::int64_t>;
using Steps = std::vector<std::int64_t>;

// No set: oracles are made before it might be.
constexpr std::array<std::string_view, 6> kComparisons = {
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"};

/// Roundings of a kernel beside those of adding.
constexpr Real kFew = 8;

/// Whether an entry of a shape is one dim with the entry before it.
bool IsSecond(std::string_view entry) {
  return entry.starts_with('*');
}

Names NamesOf(const std::vector<std::string_view>& shape) {
  Names names;
  for (const std::string_view entry : shape) {
    names.insert(IsSecond(entry) ? entry.substr(1) : entry);
  }
  names.erase("1");
  return names;
}

/// The place of an element among those between which these are the steps.
std::size_t IndexOf(const Steps& steps, const Indices& at) {
  return static_cast<std::size_t>(
      std::inner_product(steps.begin(), steps.end(), at.begin(), std::int64_t{0}));
}

/// Many terms in any order: their sum, the sum of their sizes, and the largest.
struct Terms {
  CountingNumber sum;
  CountingNumber most = {.value = -std::numeric_limits<Real>::infinity()};
  Real size = 0;
  Real count = 0;

  void Add(const CountingNumber& term) {
    sum.value += term.value;
    sum.error += term.error;
    sum.unit = std::min(sum.unit, term.unit);
    sum.bound += std::max(term.bound, std::abs(term.value) / term.unit);
    sum.margin = std::min(sum.margin, term.margin);
    most.value = std::max(most.value, term.value);  // what is not a number is passed over
    most.error = std::max(most.error, term.error);
    most.unit = std::min(most.unit, term.unit);
    most.bound = std::max(most.bound, term.bound);
    most.margin = std::min(most.margin, term.margin);
    size += std::abs(term.value);
    count += 1;
  }

  [[nodiscard]] CountingNumber Sum() const {
    CountingNumber result = sum;
    result.error += (count + kFew) * size + kUnderflow;
    return result;
  }
  [[nodiscard]] CountingNumber Mean() const {
    CountingNumber result = Sum();
    result.value /= count;
    result.error = result.error / count + std::abs(result.value);
    return result;
  }
};

}  // namespace

bool NamedFormulaData::Holds(const Attributes& attributes) const {
  const auto found = attributes.find(condition.attribute);
  if (found == attributes.end()) {
    return false;
  }
  return condition.value.empty() ? std::get<bool>(found->second)
                                 : std::get<std::string>(found->second) == condition.value;
}

const std::vector<std::string_view>& NamedFormulaData::ShapeOf(
    std::string_view tensor,
    const Attributes& attributes) const {
  const auto other = shapes_if.find(tensor);
  return other != shapes_if.end() && Holds(attributes) ? other->second
                                                       : shapes.find(tensor)->second;
}

std::vector<FormulaOutput> NamedFormulaData::OutputsOf(const Attributes& attributes) const {
  std::vector<FormulaOutput> found = outputs;
  for (FormulaOutput& output : found) {
    const auto other = std::ranges::find(outputs_if, output.name, &FormulaOutput::name);
    if (other != outputs_if.end() && Holds(attributes)) {
      output = *other;
    }
  }
  return found;
}

/// The dims of a call by their names.
class NamedFormulaOracle::Space {
 public:
  /// Returns nothing where inputs do not fit together.
  static std::optional<Space>
  Of(const NamedFormulaData& data, const Shapes& inputs, const Attributes& attributes) {
    Space space;
    for (const auto& [name, attribute] : data.firsts) {
      space.bound_[name] = {std::get<std::int64_t>(attributes.find(attribute)->second)};
    }
    if (!space.FindLengths(data, inputs, attributes)) {
      return std::nullopt;
    }
    for (const auto& [name, dims] : inputs) {
      if (!space.Bind(data.ShapeOf(name, attributes), dims)) {
        return std::nullopt;
      }
    }
    for (const std::string_view name : data.names) {
      const auto bound = space.bound_.find(name);
      if (bound == space.bound_.end()) {
        return std::nullopt;
      }
      for (const std::int64_t dim : bound->second) {
        space.dims_.push_back(dim);
        space.names_.push_back(name);
      }
    }
    return space;
  }

  [[nodiscard]] Shape ShapeOf(const std::vector<std::string_view>& entries) const {
    Shape shape;
    for (const std::string_view entry : entries) {
      if (IsSecond(entry)) {
        shape.back() *= bound_.find(entry.substr(1))->second.front();
        continue;
      }
      const Shape dims = entry == "1" ? Shape{1} : bound_.find(entry)->second;
      shape.insert(shape.end(), dims.begin(), dims.end());
    }
    return shape;
  }

  [[nodiscard]] std::size_t CountOf(const Names& own) const {
    std::int64_t count = 1;
    for (std::size_t dim = 0; dim < dims_.size(); ++dim) {
      count *= own.contains(names_[dim]) ? dims_[dim] : 1;
    }
    return static_cast<std::size_t>(count);
  }

  /// How far apart elements lie that are next to each other along each dim, among those that have
  /// the dims of these names; 0 along the others.
  [[nodiscard]] Steps StepsIn(const Names& own) const {
    Steps steps(dims_.size());
    std::int64_t step = 1;
    for (std::size_t dim = dims_.size(); dim-- > 0;) {
      if (own.contains(names_[dim])) {
        steps[dim] = step;
        step *= dims_[dim];
      }
    }
    return steps;
  }

  /// Calls visit(at) for every place of the dims of these names, in their order.
  template <typename Visit>
  void ForEach(const Names& own, const Visit& visit) const {
    const Steps steps = StepsIn(own);
    Indices at(dims_.size());
    for (std::size_t left = CountOf(own); left > 0; --left) {
      visit(at);
      for (std::size_t dim = dims_.size(); dim-- > 0;) {
        if (steps[dim] != 0 && ++at[dim] < dims_[dim]) {
          break;
        }
        at[dim] = 0;
      }
    }
  }

  /// How far along the one dim of a name a place lies, and how many there are.
  [[nodiscard]] std::int64_t PlaceAlong(std::string_view name, const Indices& at) const {
    return at[DimOf(name)];
  }
  [[nodiscard]] std::int64_t LengthAlong(std::string_view name) const { return dims_[DimOf(name)]; }

  [[nodiscard]] Names All() const { return {names_.begin(), names_.end()}; }

 private:
  [[nodiscard]] std::size_t DimOf(std::string_view name) const {
    return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  }

  bool
  FindLengths(const NamedFormulaData& data, const Shapes& inputs, const Attributes& attributes) {
    for (const NamedLength& given : data.lengths) {
      if (!given.condition.empty() &&
          std::get<bool>(attributes.find(given.condition)->second) != given.where) {
        continue;
      }
      std::int64_t length = given.length;
      if (!given.axis.empty()) {
        const auto rank = static_cast<std::int64_t>(inputs.find(given.axis_of)->second.size());
        length = std::get<std::int64_t>(attributes.find(given.axis)->second);
        length += length < 0 ? rank : 0;
        if (length < 0 || length >= rank) {
          return false;
        }
      }
      lengths_[given.name] = length;
    }
    for (std::size_t round = 0; round < data.names.size(); ++round) {
      for (const auto& [name, dims] : inputs) {
        FindLastLength(data.ShapeOf(name, attributes), dims);
      }
    }
    return true;
  }

  /// Finds the one length of a shape that is not known, as what the others leave of the rank.
  void FindLastLength(const std::vector<std::string_view>& shape, const Shape& dims) {
    auto rest = static_cast<std::int64_t>(dims.size());
    std::vector<std::string_view> unknown;
    for (const std::string_view entry : shape) {
      const auto known = lengths_.find(entry);
      if (IsSecond(entry)) {
        continue;
      }
      if (entry == "1" || known != lengths_.end()) {
        rest -= entry == "1" ? 1 : known->second;
      } else {
        unknown.push_back(entry);
      }
    }
    if (unknown.size() == 1 && rest >= 0) {
      lengths_[unknown.front()] = rest;
    }
  }

  bool Bind(const std::vector<std::string_view>& shape, const Shape& dims) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::string_view entry = shape[i];
      if (i + 1 < shape.size() && IsSecond(shape[i + 1])) {
        if (at == dims.size() || !BindSecond(shape[i + 1].substr(1), entry, dims[at])) {
          return false;
        }
        at += 1;
        i += 1;
        continue;
      }
      const auto known = lengths_.find(entry);
      if (entry != "1" && known == lengths_.end()) {
        return false;
      }
      const auto length = static_cast<std::size_t>(entry == "1" ? 1 : known->second);
      if (at + length > dims.size()) {
        return false;
      }
      const auto begin = dims.begin() + static_cast<std::ptrdiff_t>(at);
      const Shape own(begin, begin + static_cast<std::ptrdiff_t>(length));
      at += length;
      const bool fits =
          entry == "1" ? own == Shape{1} : bound_.try_emplace(entry, own).first->second == own;
      if (!fits) {
        return false;
      }
    }
    return at == dims.size();
  }

  /// Binds the second of the two names that one dim has: its length is what the first leaves.
  bool BindSecond(std::string_view name, std::string_view first, std::int64_t both) {
    const std::int64_t count = bound_.find(first)->second.front();
    const Shape own = {both / count};
    return both % count == 0 && bound_.try_emplace(name, own).first->second == own;
  }

  std::map<std::string_view, std::int64_t> lengths_;
  std::map<std::string_view, Shape> bound_;
  /// All dims, and the name of each.
  Shape dims_;
  std::vector<std::string_view> names_;
};

NamedFormulaOracle::NamedFormulaOracle(NamedFormulaData data) : data_(std::move(data)) {
  for (const FormulaNode& node : data_.nodes) {
    const bool reduces = !node.over.empty();
    const FormulaPart part = reduces ? FormulaPart() : PartOf(node);
    bool is_exact =
        reduces ? node.operation != "mean" && node.operation != "variance" : part.is_exact;
    bool below_reduces = reduces && node.operation != "count";
    Names dims;
    if (node.operation == "index") {
      dims.insert(node.name);
    }
    if (node.operation == "input") {
      // A call in which the input lacks some of its dims has the same along these.
      const auto all = data_.shapes_if.find(node.name);
      dims = NamesOf(data_.shapes.find(node.name)->second);
      dims.merge(all == data_.shapes_if.end() ? Names() : NamesOf(all->second));
    }
    for (const std::size_t argument : node.arguments) {
      is_exact = is_exact && exact_[argument];
      below_reduces = below_reduces || reduces_[argument];
      dims.insert(dims_[argument].begin(), dims_[argument].end());
    }
    for (const std::string_view name : node.over) {
      dims.erase(name);
    }
    const auto is_leaf = [&](std::size_t of) { return data_.nodes[of].arguments.empty(); };
    compares_integers_.push_back(
        std::ranges::find(kComparisons, node.operation) != kComparisons.end() &&
        std::ranges::all_of(node.arguments, is_leaf) &&
        std::ranges::any_of(node.arguments, [&](std::size_t of) { return IsInteger(of); }));
    functions_.push_back(part.function);
    exact_.push_back(is_exact);
    reduces_.push_back(below_reduces);
    dims_.push_back(std::move(dims));
  }
}

std::optional<Shapes> NamedFormulaOracle::OutputShapes(
    const Shapes& inputs,
    const Attributes& attributes) const {
  const std::optional<Space> space = Space::Of(data_, inputs, attributes);
  if (!space) {
    return std::nullopt;
  }
  Shapes shapes;
  for (const FormulaOutput& output : data_.outputs) {
    shapes[std::string(output.name)] = space->ShapeOf(data_.ShapeOf(output.name, attributes));
  }
  return shapes;
}

NamedFormulaOracle::Values NamedFormulaOracle::Apply(
    const Space& space,
    std::size_t node,
    const std::vector<Values>& values,
    const Tensors& inputs,
    const Attributes& attributes) const {
  if (functions_[node] == nullptr) {
    return Leaves(space, node, values, inputs, attributes);
  }
  const FormulaNode& formula = data_.nodes[node];
  std::vector<Steps> steps;
  for (const std::size_t argument : formula.arguments) {
    steps.push_back(space.StepsIn(dims_[argument]));
  }
  Values results;
  std::vector<CountingNumber> arguments(steps.size());
  space.ForEach(dims_[node], [&](const Indices& at) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      arguments[i] = values[formula.arguments[i]][IndexOf(steps[i], at)];
    }
    const CountingNumber result = functions_[node](arguments);
    results.push_back(compares_integers_[node] ? Given(result.value) : result);
  });
  return results;
}

NamedFormulaOracle::Values NamedFormulaOracle::Leaves(
    const Space& space,
    std::size_t node,
    const std::vector<Values>& values,
    const Tensors& inputs,
    const Attributes& attributes) const {
  const FormulaNode& formula = data_.nodes[node];
  const auto input = inputs.find(formula.name);
  const bool is_given = input != inputs.end();
  Values results;
  const auto for_each = [&](const auto& value_at) {
    space.ForEach(dims_[node], [&](const Indices& at) { results.push_back(value_at(at)); });
    return results;
  };
  if (formula.operation == "index") {
    return for_each([&](const Indices& at) { return Given(space.PlaceAlong(formula.name, at)); });
  }
  if (formula.operation == "given" && is_given) {
    return for_each([](const Indices& /*at*/) { return Given(1); });
  }
  if (formula.operation == "lookup") {
    const Steps steps = space.StepsIn(dims_[node]);
    const Values& places = values[formula.arguments.front()];
    return for_each([&](const Indices& at) {
      const Real place = places[IndexOf(steps, at)].value;
      const bool has = is_given && place >= 0 && place < input->second.values.size();
      return Given(has ? input->second.values[static_cast<std::size_t>(place)] : 0);
    });
  }
  if (formula.operation != "input" || !is_given) {
    const CountingNumber leaf = LeafOf(formula, attributes, 0);
    return for_each([&](const Indices& /*at*/) { return leaf; });
  }
  const Steps steps = space.StepsIn(NamesOf(data_.ShapeOf(formula.name, attributes)));
  return for_each([&](const Indices& at) {
    return LeafOf(formula, attributes, input->second.values[IndexOf(steps, at)]);
  });
}

bool NamedFormulaOracle::IsInteger(std::size_t node) const {
  const FormulaNode& formula = data_.nodes[node];
  return formula.operation == "index" ||
         (formula.operation == "input" &&
          std::ranges::find(data_.integers, formula.name, &NamedIntegers::input) !=
              data_.integers.end());
}

std::optional<double> NamedFormulaOracle::DrawInteger(
    const Space& space,
    const std::string& input,
    Random& random) const {
  constexpr std::int64_t kOneIn = 8;
  const auto found = std::ranges::find(data_.integers, input, &NamedIntegers::input);
  if (found == data_.integers.end()) {
    return std::nullopt;
  }
  const std::int64_t places = found->dim.empty() ? kOneIn : space.LengthAlong(found->dim);
  if (found->is_truth) {
    return random.Integer(0, 1);
  }
  const bool goes_beyond = !found->is_within && random.Integer(1, kOneIn) == 1;
  if (places == 0 || goes_beyond) {
    return found->is_signed && random.Integer(0, 1) == 1 ? -1 : places;
  }
  return random.Integer(0, places - 1);
}

NamedFormulaOracle::Values NamedFormulaOracle::Reduce(
    const Space& space,
    std::size_t node,
    const std::vector<Values>& values) const {
  const FormulaNode& formula = data_.nodes[node];
  if (formula.operation == "count") {
    const Names counted(formula.over.begin(), formula.over.end());
    const auto count = static_cast<double>(space.CountOf(counted));
    return {LeafOf({.operation = "number", .number = count}, {}, 0)};
  }
  const std::size_t argument = formula.arguments.front();
  const Names& own = dims_[node];
  const Steps steps = space.StepsIn(own);
  const Steps term_steps = space.StepsIn(dims_[argument]);
  const auto at_term = [&](const Indices& at) { return values[argument][IndexOf(term_steps, at)]; };
  std::vector<Terms> terms(space.CountOf(own));
  space.ForEach(
      dims_[argument], [&](const Indices& at) { terms[IndexOf(steps, at)].Add(at_term(at)); });
  if (formula.operation == "variance") {
    std::vector<Terms> squares(terms.size());
    space.ForEach(dims_[argument], [&](const Indices& at) {
      const std::size_t of = IndexOf(steps, at);
      const CountingNumber mean = terms[of].Mean();
      CountingNumber square = at_term(at);
      const Real deviation = square.value - mean.value;
      square.error = 2 * std::abs(deviation) * (square.error + mean.error + std::abs(deviation));
      square.value = deviation * deviation;
      squares[of].Add(square);
    });
    terms = std::move(squares);
  }
  // Where deviations are no numbers, neither is a mean that they correct.
  const bool is_center = std::ranges::any_of(data_.nodes, [&](const FormulaNode& other) {
    return other.operation == "variance" && formula.operation == "mean" &&
           other.arguments == formula.arguments && other.over == formula.over;
  });
  Values results;
  for (const Terms& of : terms) {
    if (is_center && !std::isfinite(of.sum.value)) {
      results.push_back({.value = std::numeric_limits<Real>::quiet_NaN()});
    } else if (formula.operation == "max") {
      results.push_back(of.most);
    } else {
      results.push_back(formula.operation == "sum" ? of.Sum() : of.Mean());
    }
  }
  return results;
}

std::vector<NamedFormulaOracle::Values> NamedFormulaOracle::Evaluate(
    const Space& space,
    const Tensors& inputs,
    const Attributes& attributes) const {
  std::vector<Values> values;
  for (std::size_t node = 0; node < data_.nodes.size(); ++node) {
    values.push_back(
        data_.nodes[node].over.empty() ? Apply(space, node, values, inputs, attributes)
                                       : Reduce(space, node, values));
  }
  return values;
}

ExpectedOutputs NamedFormulaOracle::Run(const Tensors& inputs, const Attributes& attributes) const {
  const Space space = Space::Of(data_, ShapesOf(inputs), attributes).value();
  const std::vector<Values> values = Evaluate(space, inputs, attributes);
  const double terms = space.CountOf(space.All()) > 0 ? 1 : 0;
  ExpectedOutputs outputs;
  for (const FormulaOutput& output : data_.OutputsOf(attributes)) {
    const std::vector<std::string_view>& shape = data_.ShapeOf(output.name, attributes);
    Expected expected;
    expected.value.dims = space.ShapeOf(shape);
    const Steps steps = space.StepsIn(dims_[output.node]);
    space.ForEach(NamesOf(shape), [&](const Indices& at) {
      const CountingNumber& value = values[output.node][IndexOf(steps, at)];
      expected.value.values.push_back(static_cast<double>(value.value));
      expected.terms.push_back(terms);
      expected.bound.push_back(
          static_cast<double>(std::max(value.bound, std::abs(value.value) / value.unit)));
      expected.error.push_back(static_cast<double>(value.error));
    });
    outputs[std::string(output.name)] = std::move(expected);
  }
  return outputs;
}

std::vector<bool> NamedFormulaOracle::Rough(
    const Space& space,
    const std::vector<Values>& values,
    const Attributes& attributes) const {
  std::set<std::size_t> results(data_.domain.begin(), data_.domain.end());
  for (const FormulaOutput& output : data_.OutputsOf(attributes)) {
    results.insert(output.node);
  }
  // What is reduced, and what that is made of: where such a term bends, it alone is drawn anew.
  std::set<std::size_t> terms;
  for (std::size_t node = 0; node < data_.nodes.size(); ++node) {
    for (const std::size_t argument : data_.nodes[node].arguments) {
      if (reduces_[node] && !reduces_[argument]) {
        terms.insert(argument);
      }
    }
  }
  const Names all = space.All();
  const Steps of_all = space.StepsIn(all);
  std::vector<bool> rough(space.CountOf(all));
  for (const std::set<std::size_t>& nodes : {terms, results}) {
    for (const std::size_t node : nodes) {
      const Steps steps = space.StepsIn(dims_[node]);
      space.ForEach(all, [&](const Indices& at) {
        if (!HasMargin(values[node][IndexOf(steps, at)])) {
          rough[IndexOf(of_all, at)] = true;
        }
      });
    }
    if (std::ranges::find(rough, true) != rough.end()) {
      break;
    }
  }
  return rough;
}

Tensors NamedFormulaOracle::MakeRandomData(
    const Shapes& inputs,
    const Attributes& attributes,
    Random& random) const {
  constexpr int kRounds = 1000;
  const Space space = Space::Of(data_, inputs, attributes).value();
  const auto draw = [&](const std::string& name) {
    const std::optional<double> integer = DrawInteger(space, name, random);
    return integer ? *integer : DrawNumber(random);
  };
  Tensors data;
  for (const auto& [name, dims] : inputs) {
    data[name] = MakeTensor(dims, [&] { return draw(name); });
  }
  const Names all = space.All();
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<bool> rough = Rough(space, Evaluate(space, data, attributes), attributes);
    if (std::ranges::find(rough, true) == rough.end()) {
      return data;
    }
    const Steps of_all = space.StepsIn(all);
    space.ForEach(all, [&](const Indices& at) {
      if (!rough[IndexOf(of_all, at)]) {
        return;
      }
      for (auto& [name, tensor] : data) {
        const Steps steps = space.StepsIn(NamesOf(data_.ShapeOf(name, attributes)));
        tensor.values[IndexOf(steps, at)] = draw(name);
      }
    });
  }
  throw std::runtime_error(kNowhereSmooth);
}

std::optional<ExactData> NamedFormulaOracle::MakeExactData(
    const Shapes& inputs,
    const Attributes& attributes,
    int level,
    Random& random) const {
  const Space space = Space::Of(data_, inputs, attributes).value();
  const DrawWhole draw_integer = [&](const std::string& input) {
    return DrawInteger(space, input, random);
  };
  return ExactInputs(inputs, draw_integer, InexactOutputs(), level, random);
}

std::set<std::string> NamedFormulaOracle::InexactOutputs() const {
  std::set<std::string> inexact = InexactOf(data_.outputs, exact_);
  inexact.merge(InexactOf(data_.outputs_if, exact_));
  return inexact;
}

}  // namespace gradsmith::reference
