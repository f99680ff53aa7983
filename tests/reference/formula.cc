#include "reference/formula.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numbers>
#include <stdexcept>
#include <utility>

namespace gradsmith::reference {

namespace {

using Real = long double;
using Arguments = std::span<const CountingNumber>;

/// Data keep as far away from where a function bends: farther than the gradients' differences step.
constexpr Real kMargin = 0.125L;

template <CountingNumber (*kFunction)(const CountingNumber&)>
CountingNumber OfOne(Arguments x) {
  return kFunction(x[0]);
}

template <CountingNumber (*kFunction)(const CountingNumber&, const CountingNumber&)>
CountingNumber OfTwo(Arguments x) {
  return kFunction(x[0], x[1]);
}

CountingNumber Difference(Arguments x) {
  return x[0] - x[1];
}

CountingNumber Negated(Arguments x) {
  return -x[0];
}

CountingNumber Selected(Arguments x) {
  return Where(x[0], x[1], x[2]);
}

CountingNumber Pi(Arguments /*x*/) {
  return Constant(std::numbers::pi_v<Real>);
}

CountingNumber NotANumber(Arguments /*x*/) {
  return Given(std::numeric_limits<Real>::quiet_NaN());
}

CountingNumber Infinite(Arguments /*x*/) {
  return Given(std::numeric_limits<Real>::infinity());
}

// ---- By their names

struct Entry {
  std::string_view name;
  CountingNumber (*function)(Arguments);
  bool is_exact = false;
};

constexpr std::array kEntries = {
    Entry{"add", &OfTwo<&operator+ >, true},
    Entry{"subtract", &Difference, true},
    Entry{"multiply", &OfTwo<&operator*>, true},
    Entry{"divide", &OfTwo<&operator/ >},
    Entry{"negate", &Negated, true},
    Entry{"less", &OfTwo<&Less>, true},
    Entry{"less_equal", &OfTwo<&LessEqual>, true},
    Entry{"greater", &OfTwo<&Greater>, true},
    Entry{"greater_equal", &OfTwo<&GreaterEqual>, true},
    Entry{"equal", &OfTwo<&Equal>, true},
    Entry{"not_equal", &OfTwo<&NotEqual>, true},
    Entry{"and", &OfTwo<&And>, true},
    Entry{"or", &OfTwo<&Or>, true},
    Entry{"not", &OfOne<&Not>, true},
    Entry{"where", &Selected, true},
    Entry{"mul0", &OfTwo<&Mul0>, true},
    Entry{"div0", &OfTwo<&Div0>},
    Entry{"abs", &OfOne<&Abs>, true},
    Entry{"sign", &OfOne<&Sign>, true},
    Entry{"min", &OfTwo<&Min>, true},
    Entry{"max", &OfTwo<&Max>, true},
    Entry{"pow", &OfTwo<&Pow>},
    Entry{"exp", &OfOne<&Exp>},
    Entry{"expm1", &OfOne<&Expm1>},
    Entry{"log", &OfOne<&Log>},
    Entry{"log1p", &OfOne<&Log1p>},
    Entry{"erf", &OfOne<&Erf>},
    Entry{"erfc", &OfOne<&Erfc>},
    Entry{"cdf", &OfOne<&Cdf>},
    Entry{"pdf", &OfOne<&Pdf>},
    Entry{"tanh", &OfOne<&Tanh>},
    Entry{"sigmoid", &OfOne<&Sigmoid>},
    Entry{"softplus", &OfOne<&Softplus>},
    Entry{"sqrt", &OfOne<&Sqrt>},
    Entry{"rsqrt", &OfOne<&Rsqrt>},
    Entry{"sin", &OfOne<&Sin>},
    Entry{"cos", &OfOne<&Cos>},
    Entry{"tan", &OfOne<&Tan>},
    Entry{"asin", &OfOne<&Asin>},
    Entry{"acos", &OfOne<&Acos>},
    Entry{"atan", &OfOne<&Atan>},
    Entry{"sinh", &OfOne<&Sinh>},
    Entry{"cosh", &OfOne<&Cosh>},
    Entry{"asinh", &OfOne<&Asinh>},
    Entry{"acosh", &OfOne<&Acosh>},
    Entry{"atanh", &OfOne<&Atanh>},
    Entry{"atan2", &OfTwo<&Atan2>},
    Entry{"pi", &Pi},
    Entry{"nan", &NotANumber},
    Entry{"inf", &Infinite},
};

Real AttributeAsReal(const Attributes& attributes, std::string_view name) {
  const AttributeValue& value = attributes.find(name)->second;
  if (const auto* real = std::get_if<double>(&value)) {
    return *real;
  }
  if (const auto* truth = std::get_if<bool>(&value)) {
    return *truth ? 1 : 0;
  }
  return static_cast<Real>(std::get<std::int64_t>(value));
}

/// Whether dims, which are aligned at their ends, are those of the space or 1.
bool IsBroadcast(const Shape& dims, const Shape& space) {
  for (std::size_t back = 1; back <= dims.size(); ++back) {
    if (back > space.size() ||
        (dims[dims.size() - back] != 1 && dims[dims.size() - back] != space[space.size() - back])) {
      return false;
    }
  }
  return true;
}

/// Counted from the last, the dims that are not 1. Whether all inputs fit is for IsBroadcast to
/// say.
std::optional<Shape> Joined(const Shapes& inputs, const std::set<std::string, std::less<>>& names) {
  Shape space;
  for (const std::string& name : names) {
    const auto input = inputs.find(name);
    if (input == inputs.end()) {
      continue;
    }
    const Shape& dims = input->second;
    space.insert(space.begin(), std::max(dims.size(), space.size()) - space.size(), 1);
    for (std::size_t back = 1; back <= dims.size(); ++back) {
      const std::int64_t dim = dims[dims.size() - back];
      if (dim != 1) {
        space[space.size() - back] = dim;
      }
    }
  }
  return space;
}

Expected ZeroSums(const Shape& dims) {
  Expected sums;
  sums.value = MakeTensor(dims, [] { return 0; });
  sums.terms.resize(sums.value.values.size());
  sums.bound.resize(sums.value.values.size());
  sums.error.resize(sums.value.values.size());
  return sums;
}

/// Adds a term to a sum whose order is the kernel's: the bound is that of the terms' absolute
/// values.
void AddTerm(const CountingNumber& term, std::size_t at, Expected& sums) {
  sums.value.values[at] += static_cast<double>(term.value);
  sums.terms[at] += 1;
  sums.bound[at] += static_cast<double>(std::max(term.bound, std::abs(term.value) / term.unit));
  sums.error[at] += static_cast<double>(term.error);
}

/// The rounding of so many additions, and a few, of the terms' absolute values.
void AddRoundings(const std::vector<double>& magnitudes, Expected& sums) {
  constexpr double kFew = 4;
  for (std::size_t i = 0; i < magnitudes.size(); ++i) {
    sums.error[i] += (sums.terms[i] + kFew) * magnitudes[i];
  }
}

}  // namespace

FormulaPart PartOf(const FormulaNode& node) {
  const auto* const found = std::ranges::find(kEntries, node.operation, &Entry::name);
  if (found != kEntries.end()) {
    return {.function = found->function, .is_exact = found->is_exact};
  }
  if (node.operation != "number" && node.name.empty()) {
    throw std::invalid_argument("no formula has " + std::string(node.operation));
  }
  return {.is_exact = node.operation != "number" || Constant(node.number).error == 0};
}

CountingNumber LeafOf(const FormulaNode& node, const Attributes& attributes, double of_input) {
  if (node.operation == "number") {
    return Constant(node.number);
  }
  const bool is_there = attributes.contains(node.name);
  if (node.operation == "given") {
    return Given(is_there ? 1 : 0);
  }
  if (node.operation == "chosen") {
    const AttributeValue& value = attributes.find(node.name)->second;
    return Given(std::get<std::string>(value) == node.value ? 1 : 0);
  }
  if (node.operation == "attribute") {
    return !is_there ? Given(0) : Constant(AttributeAsReal(attributes, node.name));
  }
  return Given(of_input);
}

CountingNumber NumberOf(
    std::span<const FormulaNode> nodes,
    std::size_t node,
    const Numbers& inputs,
    const Attributes& attributes) {
  const FormulaNode& formula = nodes[node];
  if (const FormulaFunction function = PartOf(formula).function; function != nullptr) {
    std::vector<CountingNumber> arguments;
    for (const std::size_t argument : formula.arguments) {
      arguments.push_back(NumberOf(nodes, argument, inputs, attributes));
    }
    return function(arguments);
  }
  const auto input = inputs.find(formula.name);
  return LeafOf(formula, attributes, input == inputs.end() ? 0 : input->second);
}

double DrawNumber(Random& random) {
  constexpr double kLargest = 4;
  return random.Real(-kLargest, kLargest);
}

std::optional<ExactData> ExactInputs(
    const Shapes& inputs,
    const DrawWhole& draw_whole,
    const std::set<std::string>& inexact,
    int level,
    Random& random) {
  // Small tensors may come out all zero by chance: each is tried several times.
  constexpr std::array<std::int64_t, 4> kLargest = {15, 7, 3, 1};
  constexpr int kTries = 4;
  if (level >= static_cast<int>(kLargest.size()) * kTries) {
    return std::nullopt;
  }
  const std::int64_t largest = kLargest[static_cast<std::size_t>(level / kTries)];
  ExactData data;
  for (const auto& [name, dims] : inputs) {
    data.inputs[name] = MakeTensor(dims, [&] {
      const std::optional<double> whole = draw_whole(name);
      return whole ? *whole : static_cast<double>(random.Integer(-largest, largest));
    });
  }
  for (const std::string& name : inexact) {
    data.inexact[name] = "its formula divides, or has functions that are rounded";
  }
  return data;
}

std::set<std::string> InexactOf(
    const std::vector<FormulaOutput>& outputs,
    const std::vector<bool>& exact) {
  std::set<std::string> inexact;
  for (const FormulaOutput& output : outputs) {
    if (!exact[output.node]) {
      inexact.insert(std::string(output.name));
    }
  }
  return inexact;
}

bool HasMargin(const CountingNumber& value) {
  return std::isfinite(value.value) && value.margin >= kMargin;
}

/// An element of each input: those that are broadcast to the same place.
class FormulaOracle::Place {
 public:
  Place(const Tensors& inputs, const Shape& space) : inputs_(inputs), space_(space) {}

  void MoveTo(std::int64_t element) { element_ = element; }

  /// Whether the bit of the place is set in words.
  [[nodiscard]] bool HasBit(std::string_view words) const {
    constexpr std::int64_t kBitsOfWord = 32;
    const double word =
        inputs_.find(words)->second.values[static_cast<std::size_t>(element_ / kBitsOfWord)];
    const double without_lower =
        std::floor(word / std::exp2(static_cast<double>(element_ % kBitsOfWord)));
    return std::fmod(without_lower, 2) == 1;
  }

  /// The element of an input; 0 where it is absent.
  [[nodiscard]] double Value(std::string_view name) const {
    const auto input = inputs_.find(name);
    return input == inputs_.end() ? 0 : input->second.values[Index(input->second.dims)];
  }
  [[nodiscard]] bool Has(std::string_view name) const { return inputs_.contains(name); }

  /// Index is the place of the element in a tensor of these dims.
  [[nodiscard]] std::size_t Index(const Shape& dims) const {
    std::int64_t rest = element_;
    std::int64_t index = 0;
    std::int64_t stride = 1;
    for (std::size_t axis = space_.size(); axis-- > 0;) {
      const std::int64_t position = rest % space_[axis];
      rest /= space_[axis];
      const std::size_t ahead = space_.size() - dims.size();
      if (axis >= ahead && dims[axis - ahead] != 1) {
        index += position * stride;
        stride *= dims[axis - ahead];
      }
    }
    return static_cast<std::size_t>(index);
  }

 private:
  const Tensors& inputs_;
  const Shape& space_;
  std::int64_t element_ = 0;
};

FormulaOracle::FormulaOracle(FormulaData data) : data_(std::move(data)) {
  for (const FormulaNode& node : data_.nodes) {
    const FormulaPart part = PartOf(node);
    bool is_exact = part.is_exact;
    for (const std::size_t argument : node.arguments) {
      is_exact = is_exact && exact_[argument];
    }
    functions_.push_back(part.function);
    exact_.push_back(is_exact);
  }
}

std::optional<Shape> FormulaOracle::Space(const Shapes& inputs) const {
  std::optional<Shape> space = data_.joined.empty() ? std::nullopt : Joined(inputs, data_.joined);
  for (const auto& [name, dims] : inputs) {
    if (!data_.broadcast.contains(name) && !data_.bits.contains(name)) {
      if (space && *space != dims) {
        return std::nullopt;
      }
      space = dims;
    }
  }
  const bool fits = space && std::ranges::all_of(inputs, [&](const auto& input) {
                      return data_.bits.contains(input.first) || IsBroadcast(input.second, *space);
                    });
  return fits ? space : std::nullopt;
}

std::optional<Shapes> FormulaOracle::OutputShapes(
    const Shapes& inputs,
    const Attributes& /*attributes*/) const {
  const std::optional<Shape> space = Space(inputs);
  if (!space) {
    return std::nullopt;
  }
  Shapes shapes;
  for (const FormulaOutput& output : data_.outputs) {
    shapes[std::string(output.name)] =
        output.sum_like.empty() ? *space : inputs.find(output.sum_like)->second;
  }
  return shapes;
}

void FormulaOracle::Evaluate(const Place& place, const Attributes& attributes, Values& values)
    const {
  values.clear();
  std::vector<CountingNumber> arguments;
  for (std::size_t i = 0; i < data_.nodes.size(); ++i) {
    const FormulaNode& node = data_.nodes[i];
    if (functions_[i] != nullptr) {
      arguments.clear();
      for (const std::size_t argument : node.arguments) {
        arguments.push_back(values[argument]);
      }
      values.push_back(functions_[i](arguments));
    } else if (node.operation == "bit") {
      values.push_back(Given(place.HasBit(node.name) ? 1 : 0));
    } else if (node.operation == "given" && place.Has(node.name)) {
      values.push_back(Given(1));
    } else {
      const double element = node.operation == "input" ? place.Value(node.name) : 0;
      values.push_back(LeafOf(node, attributes, element));
    }
  }
}

bool FormulaOracle::IsSmooth(const Values& values) const {
  const auto is_smooth = [&](std::size_t node) { return HasMargin(values[node]); };
  return std::ranges::all_of(
             data_.outputs, [&](const FormulaOutput& output) { return is_smooth(output.node); }) &&
         std::ranges::all_of(data_.domain, is_smooth);
}

ExpectedOutputs FormulaOracle::Run(const Tensors& inputs, const Attributes& attributes) const {
  const Shapes shapes = ShapesOf(inputs);
  const Shape space = *Space(shapes);
  ExpectedOutputs outputs;
  std::map<std::string_view, std::vector<double>> magnitudes;
  const Shapes output_shapes = *OutputShapes(shapes, attributes);
  for (const auto& [name, dims] : output_shapes) {
    outputs[name] = ZeroSums(dims);
  }
  for (const FormulaOutput& output : data_.outputs) {
    magnitudes[output.name].resize(
        output.sum_like.empty() ? 0 : outputs.find(output.name)->second.terms.size());
  }
  Place place(inputs, space);
  Values values;
  for (std::int64_t element = 0; element < Count(space); ++element) {
    place.MoveTo(element);
    Evaluate(place, attributes, values);
    for (const FormulaOutput& output : data_.outputs) {
      Expected& sums = outputs.find(output.name)->second;
      const std::size_t at = place.Index(sums.value.dims);
      AddTerm(values[output.node], at, sums);
      if (!output.sum_like.empty()) {
        magnitudes[output.name][at] += static_cast<double>(std::abs(values[output.node].value));
      }
    }
  }
  for (const auto& [name, magnitude] : magnitudes) {
    AddRoundings(magnitude, outputs.find(name)->second);
  }
  return outputs;
}

std::optional<double> FormulaOracle::DrawMask(const std::string& input, Random& random) const {
  if (data_.bits.contains(input)) {
    constexpr std::int64_t kLargestWord = (std::int64_t{1} << 32) - 1;
    return static_cast<double>(random.Integer(0, kLargestWord));
  }
  return data_.masks.contains(input)
             ? std::optional<double>(static_cast<double>(random.Integer(0, 1)))
             : std::nullopt;
}

double FormulaOracle::Draw(const std::string& input, Random& random) const {
  const std::optional<double> mask = DrawMask(input, random);
  return mask ? *mask : DrawNumber(random);
}

Tensors FormulaOracle::MakeRandomData(
    const Shapes& inputs,
    const Attributes& attributes,
    Random& random) const {
  constexpr int kRounds = 1000;
  Tensors data;
  for (const auto& [name, dims] : inputs) {
    data[name] = MakeTensor(dims, [&] { return Draw(name, random); });
  }
  const Shape space = *Space(inputs);
  Place place(data, space);
  Values values;
  bool is_smooth = false;
  for (int round = 0; round < kRounds && !is_smooth; ++round) {
    is_smooth = true;
    for (std::int64_t element = 0; element < Count(space); ++element) {
      place.MoveTo(element);
      Evaluate(place, attributes, values);
      for (int i = 0; i < kRounds && !IsSmooth(values); ++i) {
        is_smooth = false;
        for (auto& [name, tensor] : data) {
          if (!data_.bits.contains(name)) {
            tensor.values[place.Index(tensor.dims)] = Draw(name, random);
          }
        }
        Evaluate(place, attributes, values);
      }
      if (!IsSmooth(values) && data_.broadcast.empty()) {
        throw std::runtime_error(kNowhereSmooth);
      }
    }
  }
  if (!is_smooth) {
    throw std::runtime_error(kNowhereSmooth);
  }
  return data;
}

std::optional<ExactData> FormulaOracle::MakeExactData(
    const Shapes& inputs,
    const Attributes& /*attributes*/,
    int level,
    Random& random) const {
  const DrawWhole draw_mask = [&](const std::string& input) { return DrawMask(input, random); };
  return ExactInputs(inputs, draw_mask, InexactOutputs(), level, random);
}

std::set<std::string> FormulaOracle::InexactOutputs() const {
  return InexactOf(data_.outputs, exact_);
}

}  // namespace gradsmith::reference
