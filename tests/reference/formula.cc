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

constexpr Real kFar = std::numeric_limits<Real>::infinity();
/// Data keep as far away from where a function bends: farther than the gradients' differences step.
constexpr Real kMargin = 0.125L;
/// Roundings of a library's function that is off by a few units in the last place.
constexpr Real kOfFunction = 16;
/// What an accumulator of floats loses of numbers near 0, in units of its roundoff.
constexpr Real kUnderflow = 0x1p-126L;
/// More than any accumulator's roundoff: two numbers that are as near may compare either way.
constexpr Real kRoundoff = 0x1p-23L;

Real Rounding(Real value, Real count) {
  return count * std::max(std::abs(value), kUnderflow);
}

/// The first-order error of a product of an error and a slope, of which the former may be zero.
Real Carried(Real slope, Real error) {
  return error == 0 ? 0 : std::abs(slope) * error;
}

CountingNumber Known(Real value, Real unit, Real bound, Real margin, Real error) {
  return {
      .value = value,
      .error = error,
      .unit = unit,
      .bound = std::isfinite(value) ? std::max(bound, std::abs(value) / unit) : bound,
      .margin = margin};
}

Real LargerBound(const CountingNumber& a, const CountingNumber& b) {
  return std::max(a.bound, b.bound);
}

Real SmallerMargin(const CountingNumber& a, const CountingNumber& b) {
  return std::min(a.margin, b.margin);
}

// ---- Arithmetic

CountingNumber Sum(const CountingNumber& a, const CountingNumber& b, Real sign) {
  const Real value = a.value + sign * b.value;
  return Known(
      value, std::min(a.unit, b.unit), LargerBound(a, b), SmallerMargin(a, b),
      a.error + b.error + Rounding(value, 1));
}

CountingNumber Add(Arguments x) {
  return Sum(x[0], x[1], 1);
}

CountingNumber Subtract(Arguments x) {
  return Sum(x[0], x[1], -1);
}

CountingNumber Multiply(Arguments x) {
  const Real value = x[0].value * x[1].value;
  return Known(
      value, x[0].unit * x[1].unit, LargerBound(x[0], x[1]), SmallerMargin(x[0], x[1]),
      Carried(x[1].value, x[0].error) + Carried(x[0].value, x[1].error) + Rounding(value, 1));
}

CountingNumber Divide(Arguments x) {
  const Real value = x[0].value / x[1].value;
  const Real margin = std::min(SmallerMargin(x[0], x[1]), std::abs(x[1].value));
  return Known(
      value, x[0].unit, LargerBound(x[0], x[1]), margin,
      Carried(1 / x[1].value, x[0].error) + Carried(value / x[1].value, x[1].error) +
          Rounding(value, 1));
}

CountingNumber Negate(Arguments x) {
  CountingNumber result = x[0];
  result.value = -result.value;
  return result;
}

CountingNumber Mul0(Arguments x) {
  return x[0].value == 0 ? x[0] : Multiply(x);
}

CountingNumber Div0(Arguments x) {
  return x[0].value == 0 ? x[0] : Divide(x);
}

// ---- Comparisons: 1 or 0, with an error where rounding may have decided

CountingNumber Compared(Arguments x, bool value) {
  const Real distance = std::abs(x[0].value - x[1].value);
  const Real error = x[0].error + x[1].error;
  const bool is_sure = error == 0 || !(distance <= error * kRoundoff);
  const Real margin = std::isnan(distance) ? kFar : distance;
  return Known(
      value ? 1 : 0, 1, LargerBound(x[0], x[1]), std::min(SmallerMargin(x[0], x[1]), margin),
      is_sure ? 0 : 1);
}

CountingNumber Less(Arguments x) {
  return Compared(x, x[0].value < x[1].value);
}
CountingNumber LessEqual(Arguments x) {
  return Compared(x, x[0].value <= x[1].value);
}
CountingNumber Greater(Arguments x) {
  return Compared(x, x[0].value > x[1].value);
}
CountingNumber GreaterEqual(Arguments x) {
  return Compared(x, x[0].value >= x[1].value);
}
CountingNumber Equal(Arguments x) {
  return Compared(x, x[0].value == x[1].value);
}
CountingNumber NotEqual(Arguments x) {
  return Compared(x, x[0].value != x[1].value);
}

CountingNumber Joined(Arguments x, bool value) {
  return Known(
      value ? 1 : 0, 1, LargerBound(x[0], x[1]), SmallerMargin(x[0], x[1]),
      std::max(x[0].error, x[1].error));
}

CountingNumber And(Arguments x) {
  return Joined(x, x[0].value != 0 && x[1].value != 0);
}
CountingNumber Or(Arguments x) {
  return Joined(x, x[0].value != 0 || x[1].value != 0);
}
CountingNumber Not(Arguments x) {
  CountingNumber result = x[0];
  result.value = 1 - result.value;
  return result;
}

/// What is not selected counts for nothing, unless rounding may have selected it.
CountingNumber Where(Arguments x) {
  const CountingNumber& selected = x[0].value != 0 ? x[1] : x[2];
  const Real doubt = x[0].error == 0 ? 0 : std::abs(x[1].value - x[2].value) * 0x1p53L;
  return Known(
      selected.value, selected.unit, LargerBound(x[0], selected), SmallerMargin(x[0], selected),
      selected.error + (std::isnan(doubt) ? 0 : doubt));
}

// ---- What bends

CountingNumber Abs(Arguments x) {
  CountingNumber result = x[0];
  result.value = std::abs(result.value);
  result.margin = std::min(result.margin, result.value);
  return result;
}

CountingNumber Sign(Arguments x) {
  CountingNumber result = x[0];
  const Real value = result.value;
  result.margin = std::min(result.margin, std::abs(value));
  if (value != 0 && !std::isnan(value)) {
    result.value = value > 0 ? 1 : -1;
  }
  result.error = 0;
  return result;
}

CountingNumber Extremum(Arguments x, bool takes_first) {
  const bool is_first = std::isnan(x[0].value) || (takes_first && !std::isnan(x[1].value));
  CountingNumber result = is_first ? x[0] : x[1];
  const Real distance = std::abs(x[0].value - x[1].value);
  result.margin = std::min(SmallerMargin(x[0], x[1]), std::isnan(distance) ? kFar : distance);
  result.bound = LargerBound(x[0], x[1]);
  result.unit = std::min(x[0].unit, x[1].unit);
  result.error = std::max(x[0].error, x[1].error);
  return result;
}

CountingNumber Min(Arguments x) {
  return Extremum(x, x[0].value < x[1].value);
}
CountingNumber Max(Arguments x) {
  return Extremum(x, x[0].value > x[1].value);
}

// ---- Functions of one number

/// A function, its derivative, and how far from an argument it ends or grows beyond all bounds.
struct Smooth {
  Real (*value)(Real) = nullptr;
  Real (*slope)(Real) = nullptr;
  Real (*margin)(Real) = [](Real) { return kFar; };
};

template <const Smooth& kSmooth>
CountingNumber Applied(Arguments x) {
  const Real value = kSmooth.value(x[0].value);
  return Known(
      value, x[0].unit, x[0].bound, std::min(x[0].margin, kSmooth.margin(x[0].value)),
      Carried(kSmooth.slope(x[0].value), x[0].error) + Rounding(value, kOfFunction));
}

Real LogisticOf(Real x) {
  return 1 / (1 + std::exp(-x));
}

Real FromZero(Real x) {
  return x;
}

Real FromOne(Real x) {
  return 1 - std::abs(x);
}

constexpr Smooth kExp = {
    .value = [](Real x) { return std::exp(x); },
    .slope = [](Real x) { return std::exp(x); }};
constexpr Smooth kExpm1 = {
    .value = [](Real x) { return std::expm1(x); },
    .slope = [](Real x) { return std::exp(x); }};
constexpr Smooth kLog = {
    .value = [](Real x) { return std::log(x); },
    .slope = [](Real x) { return 1 / x; },
    .margin = &FromZero};
constexpr Smooth kLog1p = {
    .value = [](Real x) { return std::log1p(x); },
    .slope = [](Real x) { return 1 / (1 + x); },
    .margin = [](Real x) { return 1 + x; }};
constexpr Smooth kErf = {
    .value = [](Real x) { return std::erf(x); },
    .slope = [](Real x) { return 2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-x * x); }};
constexpr Smooth kErfc = {
    .value = [](Real x) { return std::erfc(x); },
    .slope = [](Real x) { return -2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-x * x); }};
constexpr Smooth kTanh = {
    .value = [](Real x) { return std::tanh(x); },
    .slope = [](Real x) { return 1 / (std::cosh(x) * std::cosh(x)); }};
constexpr Smooth kSigmoid = {.value = &LogisticOf, .slope = [](Real x) {
                               return LogisticOf(x) * LogisticOf(-x);
                             }};
constexpr Smooth kSoftplus = {
    .value = [](Real x) { return x > 100 ? x : std::log1p(std::exp(x)); },
    .slope = &LogisticOf};
constexpr Smooth kSqrt = {
    .value = [](Real x) { return std::sqrt(x); },
    .slope = [](Real x) { return 0.5L / std::sqrt(x); },
    .margin = &FromZero};
constexpr Smooth kRsqrt = {
    .value = [](Real x) { return 1 / std::sqrt(x); },
    .slope = [](Real x) { return -0.5L / (x * std::sqrt(x)); },
    .margin = &FromZero};
constexpr Smooth kSin = {
    .value = [](Real x) { return std::sin(x); },
    .slope = [](Real x) { return std::cos(x); }};
constexpr Smooth kCos = {
    .value = [](Real x) { return std::cos(x); },
    .slope = [](Real x) { return -std::sin(x); }};
constexpr Smooth kTan = {
    .value = [](Real x) { return std::tan(x); },
    .slope = [](Real x) { return 1 / (std::cos(x) * std::cos(x)); },
    .margin = [](Real x) { return std::abs(std::cos(x)) / 2; }};
constexpr Smooth kAsin = {
    .value = [](Real x) { return std::asin(x); },
    .slope = [](Real x) { return 1 / std::sqrt(1 - x * x); },
    .margin = &FromOne};
constexpr Smooth kAcos = {
    .value = [](Real x) { return std::acos(x); },
    .slope = [](Real x) { return -1 / std::sqrt(1 - x * x); },
    .margin = &FromOne};
constexpr Smooth kAtan = {
    .value = [](Real x) { return std::atan(x); },
    .slope = [](Real x) { return 1 / (1 + x * x); }};
constexpr Smooth kSinh = {
    .value = [](Real x) { return std::sinh(x); },
    .slope = [](Real x) { return std::cosh(x); }};
constexpr Smooth kCosh = {
    .value = [](Real x) { return std::cosh(x); },
    .slope = [](Real x) { return std::sinh(x); }};

CountingNumber Pow(Arguments x) {
  const Real value = std::pow(x[0].value, x[1].value);
  const Real by_base = x[1].value * std::pow(x[0].value, x[1].value - 1);
  const Real by_exponent = value * std::log(std::abs(x[0].value));
  return Known(
      value, x[0].unit, LargerBound(x[0], x[1]),
      std::min(SmallerMargin(x[0], x[1]), std::abs(x[0].value)),
      Carried(by_base, x[0].error) + Carried(by_exponent, x[1].error) +
          Rounding(value, kOfFunction));
}

// ---- Constants

/// The largest power of two, of 1 and less, that a number is a multiple of.
Real UnitOf(Real value) {
  constexpr Real kSmallest = 0x1p-60L;
  Real unit = 1;
  while (std::isfinite(value) && unit > kSmallest && std::fmod(value, unit) != 0) {
    unit /= 2;
  }
  return unit;
}

/// A number of the formulas or an attribute, which accumulators may have to round.
CountingNumber Constant(Real value) {
  const bool is_short = static_cast<Real>(static_cast<float>(value)) == value;
  return Known(value, UnitOf(value), 0, kFar, is_short ? 0 : Rounding(value, 1));
}

CountingNumber Pi(Arguments /*x*/) {
  return Constant(std::numbers::pi_v<Real>);
}

// ---- By their names

struct Entry {
  std::string_view name;
  CountingNumber (*function)(Arguments);
  bool is_exact = false;
};

constexpr std::array kEntries = {
    Entry{"add", &Add, true},
    Entry{"subtract", &Subtract, true},
    Entry{"multiply", &Multiply, true},
    Entry{"divide", &Divide},
    Entry{"negate", &Negate, true},
    Entry{"less", &Less, true},
    Entry{"less_equal", &LessEqual, true},
    Entry{"greater", &Greater, true},
    Entry{"greater_equal", &GreaterEqual, true},
    Entry{"equal", &Equal, true},
    Entry{"not_equal", &NotEqual, true},
    Entry{"and", &And, true},
    Entry{"or", &Or, true},
    Entry{"not", &Not, true},
    Entry{"where", &Where, true},
    Entry{"mul0", &Mul0, true},
    Entry{"div0", &Div0},
    Entry{"abs", &Abs, true},
    Entry{"sign", &Sign, true},
    Entry{"min", &Min, true},
    Entry{"max", &Max, true},
    Entry{"pow", &Pow},
    Entry{"exp", &Applied<kExp>},
    Entry{"expm1", &Applied<kExpm1>},
    Entry{"log", &Applied<kLog>},
    Entry{"log1p", &Applied<kLog1p>},
    Entry{"erf", &Applied<kErf>},
    Entry{"erfc", &Applied<kErfc>},
    Entry{"tanh", &Applied<kTanh>},
    Entry{"sigmoid", &Applied<kSigmoid>},
    Entry{"softplus", &Applied<kSoftplus>},
    Entry{"sqrt", &Applied<kSqrt>},
    Entry{"rsqrt", &Applied<kRsqrt>},
    Entry{"sin", &Applied<kSin>},
    Entry{"cos", &Applied<kCos>},
    Entry{"tan", &Applied<kTan>},
    Entry{"asin", &Applied<kAsin>},
    Entry{"acos", &Applied<kAcos>},
    Entry{"atan", &Applied<kAtan>},
    Entry{"sinh", &Applied<kSinh>},
    Entry{"cosh", &Applied<kCosh>},
    Entry{"pi", &Pi},
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
    const Shape& dims = inputs.find(name)->second;
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

/// An element of each input: those that are broadcast to the same place.
class FormulaOracle::Place {
 public:
  Place(const Tensors& inputs, const Shape& space) : inputs_(inputs), space_(space) {}

  void MoveTo(std::int64_t element) { element_ = element; }

  [[nodiscard]] double Value(std::string_view name) const {
    const Tensor& tensor = inputs_.find(name)->second;
    return tensor.values[Index(tensor.dims)];
  }

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
    const auto* const found = std::ranges::find(kEntries, node.operation, &Entry::name);
    const bool is_leaf = found == kEntries.end();
    if (is_leaf && node.operation != "number" && node.name.empty()) {
      throw std::invalid_argument("no formula has " + std::string(node.operation));
    }
    bool is_exact =
        is_leaf ? node.operation != "number" || Constant(node.number).error == 0 : found->is_exact;
    for (const std::size_t argument : node.arguments) {
      is_exact = is_exact && exact_[argument];
    }
    functions_.push_back(is_leaf ? nullptr : found->function);
    exact_.push_back(is_exact);
  }
}

std::optional<Shape> FormulaOracle::Space(const Shapes& inputs) const {
  std::optional<Shape> space = data_.joined.empty() ? std::nullopt : Joined(inputs, data_.joined);
  for (const auto& [name, dims] : inputs) {
    if (!data_.broadcast.contains(name)) {
      if (space && *space != dims) {
        return std::nullopt;
      }
      space = dims;
    }
  }
  const bool fits = space && std::ranges::all_of(inputs, [&](const auto& input) {
                      return IsBroadcast(input.second, *space);
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
    } else if (node.operation == "number") {
      values.push_back(Constant(node.number));
    } else if (node.operation == "attribute") {
      values.push_back(Constant(AttributeAsReal(attributes, node.name)));
    } else {
      values.push_back(Known(place.Value(node.name), 1, 0, kFar, 0));
    }
  }
}

bool FormulaOracle::IsSmooth(const Values& values) const {
  const auto is_smooth = [&](std::size_t node) {
    return std::isfinite(values[node].value) && values[node].margin >= kMargin;
  };
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

Tensors FormulaOracle::MakeRandomData(
    const Shapes& inputs,
    const Attributes& attributes,
    Random& random) const {
  constexpr double kLargest = 4;
  constexpr int kRounds = 1000;
  constexpr const char* kNowhereSmooth =
      "no numbers from -4 to 4 are found where the formulas are finite and do not bend";
  const auto draw = [&] { return random.Real(-kLargest, kLargest); };
  Tensors data;
  for (const auto& [name, dims] : inputs) {
    data[name] = MakeTensor(dims, draw);
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
          tensor.values[place.Index(tensor.dims)] = draw();
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
  // Small tensors may come out all zero by chance: each is tried several times.
  constexpr std::array<std::int64_t, 4> kLargest = {15, 7, 3, 1};
  constexpr int kTries = 4;
  if (level >= static_cast<int>(kLargest.size()) * kTries) {
    return std::nullopt;
  }
  const std::int64_t largest = kLargest[static_cast<std::size_t>(level / kTries)];
  ExactData data;
  for (const auto& [name, dims] : inputs) {
    data.inputs[name] = MakeTensor(dims, [&] { return random.Integer(-largest, largest); });
  }
  for (const std::string& name : InexactOutputs()) {
    data.inexact[name] = "its formula divides, or has functions that are rounded";
  }
  return data;
}

std::set<std::string> FormulaOracle::InexactOutputs() const {
  std::set<std::string> inexact;
  for (const FormulaOutput& output : data_.outputs) {
    if (!exact_[output.node]) {
      inexact.insert(std::string(output.name));
    }
  }
  return inexact;
}

}  // namespace gradsmith::reference
