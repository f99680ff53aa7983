#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/checks.h"
#include "support/compare.h"
#include "support/elements.h"
#include "support/run.h"

/// Gradients against differences of the library's own forward op, computed in double.
namespace gradsmith::support {

namespace {

using reference::Attributes;
using reference::Shape;
using reference::Tensor;
using reference::Tensors;

/// How many elements of a tensor are checked one by one, and along how many random directions all
/// of them are.
constexpr std::size_t kElements = 64;
constexpr int kDirections = 3;
/// Steps of the differences; an agreement at any of them is one. The first is exact for ops that
/// are linear in each argument, the others serve where the forward curves sharply.
constexpr double kSteps[] = {0x1p-6, 0x1p-9, 0x1p-12};
/// How far differences of fourth order may be off, relative to the largest gradient.
constexpr double kDifferenceError = 1e-6;
/// Rounding of two losses in double that nearly cancel, relative to the sum of |dY| |Y|, before the
/// step divides it.
constexpr double kLossRounding = 0x1p-47;

/// The forward's row whose floating types are double, and whose others are the gradient's, by their
/// names.
const Row* ForwardRowOfDoubles(const Subject& subject) {
  const auto type_of = [](const Row& row, std::string_view parameter) {
    const auto& parameters = row.op->type_parameters;
    const auto found = std::find(parameters.begin(), parameters.end(), parameter);
    return found == parameters.end()
               ? DataType::kDouble
               : row.types[static_cast<std::size_t>(found - parameters.begin())];
  };
  for (const Row* row : subject.registry->rows()) {
    const auto fits = [&](std::string_view parameter) {
      const DataType own = type_of(*row, parameter);
      return own == DataType::kDouble ||
             (!IsFloating(own) && own == type_of(*subject.row, parameter));
    };
    const auto& parameters = row->op->type_parameters;
    if (row->op->name == subject.op().gradient_of && row->backend == Backend::kCpu &&
        std::all_of(parameters.begin(), parameters.end(), fits)) {
      return row;
    }
  }
  return nullptr;
}

/// Numbers from 0.5 to 1.5, as far apart as they can be: an op that takes the larger of two takes
/// the same one while they move by little.
Tensor Apart(const Shape& dims, reference::Random& random) {
  const std::int64_t count = reference::Count(dims);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.5 + ((static_cast<double>(i) + 0.5) / static_cast<double>(count));
  }
  random.Shuffle(values);
  return {dims, values};
}

/// Binds the symbols of shapes, and computes shapes from them.
class Symbols {
 public:
  Symbols(const OpSchema& op, const Attributes& attributes) : op_(op), attributes_(attributes) {}

  /// Binds what the shapes of the given tensors tell. One with several lists waits until all but
  /// one of them are known from others.
  void Bind(std::span<const TensorSpec> specs, const Tensors& given) {
    std::vector<const TensorSpec*> waiting;
    for (const TensorSpec& spec : specs) {
      if (given.contains(std::string(spec.name))) {
        waiting.push_back(&spec);
      }
    }
    const auto bind = [&](const TensorSpec* spec) {
      return BindOne(*spec, given.find(spec->name)->second.dims);
    };
    while (std::erase_if(waiting, bind) > 0) {
    }
  }

  [[nodiscard]] Shape Expand(const TensorSpec& spec) const {
    Shape dims;
    for (const DimSpec& entry : EntriesOf(spec)) {
      if (entry.kind == DimSpec::Kind::kCeil) {
        dims.push_back((values_.at(entry.symbol)[0] + entry.constant - 1) / entry.constant);
        continue;
      }
      const Shape value =
          entry.kind == DimSpec::Kind::kConstant ? Shape{entry.constant} : values_.at(entry.symbol);
      std::transform(value.begin(), value.end(), std::back_inserter(dims), [&](auto v) {
        return v / Divisor(entry);
      });
    }
    return dims;
  }

 private:
  /// Whether the dims tell every symbol of the shape.
  bool BindOne(const TensorSpec& spec, const Shape& dims) {
    const std::vector<DimSpec> entries = EntriesOf(spec);
    const auto unknown = std::count_if(entries.begin(), entries.end(), [&](const DimSpec& entry) {
      return IsList(entry) && !KnownLength(entry);
    });
    if (unknown > 1) {
      return false;
    }
    std::size_t rest = dims.size();
    for (const DimSpec& entry : entries) {
      rest -= IsList(entry) ? KnownLength(entry).value_or(0) : 1;
    }
    auto dim = dims.begin();
    for (const DimSpec& entry : entries) {
      const auto count =
          static_cast<std::ptrdiff_t>(IsList(entry) ? KnownLength(entry).value_or(rest) : 1);
      if (entry.kind != DimSpec::Kind::kConstant && entry.kind != DimSpec::Kind::kCeil) {
        Shape value(dim, dim + count);
        std::for_each(value.begin(), value.end(), [&](auto& v) { v *= Divisor(entry); });
        values_[entry.symbol] = value;
      }
      dim += count;
    }
    return true;
  }

  /// The entries of the shape that are there with these attributes.
  [[nodiscard]] std::vector<DimSpec> EntriesOf(const TensorSpec& spec) const {
    std::vector<DimSpec> entries(spec.shape.begin(), spec.shape.end());
    std::erase_if(entries, [&](const DimSpec& entry) {
      if (entry.condition < 0) {
        return false;
      }
      const AttributeSpec& attribute = op_.attributes[entry.condition];
      const reference::AttributeValue& value = attributes_.find(attribute.name)->second;
      const bool holds =
          attribute.kind == AttributeKind::kEnum
              ? std::get<std::string>(value) == attribute.choices[entry.condition_value]
              : std::get<bool>(value);
      return !holds;
    });
    return entries;
  }
  [[nodiscard]] bool IsList(const DimSpec& entry) const {
    return entry.kind == DimSpec::Kind::kSymbol && op_.symbols[entry.symbol].is_list;
  }
  [[nodiscard]] std::optional<std::size_t> KnownLength(const DimSpec& entry) const {
    const auto known = values_.find(entry.symbol);
    return known == values_.end() ? std::nullopt : std::optional(known->second.size());
  }
  [[nodiscard]] std::int64_t Divisor(const DimSpec& entry) const {
    return entry.kind == DimSpec::Kind::kQuotient
               ? std::get<std::int64_t>(
                     attributes_.find(op_.attributes[entry.divisor].name)->second)
               : 1;
  }

  const OpSchema& op_;
  const Attributes& attributes_;
  std::map<int, Shape> values_;
};

/// The forward op in double, with the loss sum(dY * Y).
class Forward {
 public:
  Forward(const Row& row, Kernel kernel, const Case& gradient_case, const OpSchema& gradient)
      : row_(row), kernel_(std::move(kernel)) {
    for (const TensorSpec& input : gradient.inputs) {
      for (const std::string_view of : input.gradient_of) {
        output_of_gradient_[std::string(input.name)] = std::string(of);
      }
      Note(input, gradient_case.inputs, known_output_dims_);
    }
    for (const TensorSpec& output : gradient.outputs) {
      Note(output, gradient_case.outputs, known_dims_);
    }
  }

  /// Adds the inputs that the gradient does not read.
  void Complete(const Attributes& attributes, Tensors& inputs, reference::Random& random) const {
    for (const TensorSpec& spec : row_.op->inputs) {
      const std::string name(spec.name);
      const auto known = known_dims_.find(name);
      if (known != known_dims_.end() && !inputs.contains(name)) {
        inputs[name] = Apart(known->second, random);
      }
    }
    // Those of which the gradient has none either have the dims that the others tell.
    Symbols symbols(*row_.op, attributes);
    symbols.Bind(row_.op->inputs, inputs);
    for (const TensorSpec& spec : row_.op->inputs) {
      const std::string name(spec.name);
      if (!inputs.contains(name)) {
        inputs[name] = Apart(symbols.Expand(spec), random);
      }
    }
  }

  /// Computes all outputs; a default one where the call fails.
  [[nodiscard]] std::optional<Tensors> Run(const Tensors& inputs, Report& report) const {
    std::vector<TestTensor> given;
    std::vector<ConstTensorRef> refs;
    for (const TensorSpec& spec : row_.op->inputs) {
      const Tensor& tensor = inputs.find(spec.name)->second;
      given.emplace_back(TypeOf(spec), tensor.dims, Layout::kContiguous, Device{});
      given.back().Fill(tensor.values);
      refs.emplace_back(given.back().Ref());
    }
    const std::vector<ConstTensorRef> known = KnownOutputs();
    const Result<std::vector<Dims>> shapes = kernel_.InferShapes(
        std::span<const ConstTensorRef>(refs), std::span<const ConstTensorRef>(known));
    report.FailIfNot(shapes.status(), "shapes of the forward op");
    if (!shapes.ok()) {
      return std::nullopt;
    }
    std::vector<TestTensor> made;
    std::vector<TensorRef> output_refs;
    for (std::size_t i = 0; i < shapes->size(); ++i) {
      const Shape dims((*shapes)[i].begin(), (*shapes)[i].end());
      made.emplace_back(TypeOf(row_.op->outputs[i]), dims, Layout::kContiguous, Device{});
      output_refs.push_back(made.back().Ref());
    }
    const Status status = kernel_.Run(ContextFor(row_, 1), refs, output_refs);
    report.FailIfNot(status, "the forward op");
    Tensors outputs;
    for (std::size_t i = 0; i < made.size(); ++i) {
      outputs[std::string(row_.op->outputs[i].name)] = {made[i].dims(), made[i].Values()};
    }
    return status.ok() ? std::optional(std::move(outputs)) : std::nullopt;
  }

  /// The sum of dY * Y, and of its terms' absolute values.
  struct LossValue {
    double sum = 0;
    double magnitude = 0;
  };

  [[nodiscard]] LossValue Loss(const Tensors& inputs, const Tensors& incoming, Report& report)
      const {
    const std::optional<Tensors> outputs = Run(inputs, report);
    LossValue loss;
    for (const auto& [gradient, output] : output_of_gradient_) {
      const std::vector<double>& dy = incoming.at(gradient).values;
      for (std::size_t i = 0; outputs && i < dy.size(); ++i) {
        const double term = dy[i] * outputs->at(output).values[i];
        loss.sum += term;
        loss.magnitude += std::abs(term);
      }
    }
    return loss;
  }

  [[nodiscard]] const OpSchema& op() const { return *row_.op; }

 private:
  /// The dims of what a tensor is the gradient of are its own.
  static void Note(
      const TensorSpec& spec,
      std::span<const NamedShape> given,
      std::map<std::string, Shape>& known) {
    for (const NamedShape& shape : given) {
      for (const std::string_view of : spec.gradient_of) {
        if (shape.name == spec.name) {
          known[std::string(of)] = shape.dims;
        }
      }
    }
  }

  /// The outputs as far as the gradients that come in tell their dims, without data.
  [[nodiscard]] std::vector<ConstTensorRef> KnownOutputs() const {
    std::vector<ConstTensorRef> outputs;
    for (const TensorSpec& spec : row_.op->outputs) {
      const auto known = known_output_dims_.find(std::string(spec.name));
      outputs.push_back(
          known == known_output_dims_.end()
              ? ConstTensorRef()
              : ConstTensorRef(TypeOf(spec), nullptr, ToIntList(known->second)));
    }
    return outputs;
  }

  [[nodiscard]] DataType TypeOf(const TensorSpec& spec) const {
    return spec.type_parameter < 0 ? spec.fixed_type : row_.types[spec.type_parameter];
  }

  const Row& row_;
  Kernel kernel_;
  std::map<std::string, std::string> output_of_gradient_;
  std::map<std::string, Shape> known_dims_;
  std::map<std::string, Shape> known_output_dims_;
};

/// A direction in which one input moves: element -> how far.
using Direction = std::vector<std::pair<std::size_t, double>>;

/// The derivative of the loss along the direction, by differences of fourth order.
double Difference(
    const Forward& forward,
    Tensors inputs,
    const std::string& name,
    const Tensors& incoming,
    const Direction& direction,
    double step,
    Report& report) {
  const Tensor original = inputs.at(name);
  const auto loss_at = [&](double distance) {
    Tensor& moved = inputs.at(name);
    moved = original;
    for (const auto& [element, part] : direction) {
      moved.values[element] += distance * part;
    }
    return forward.Loss(inputs, incoming, report).sum;
  };
  return (8 * (loss_at(step) - loss_at(-step)) - (loss_at(2 * step) - loss_at(-2 * step))) /
         (12 * step);
}

std::vector<Direction> Directions(std::size_t count, reference::Random& random) {
  std::vector<std::size_t> elements(count);
  std::iota(elements.begin(), elements.end(), 0);
  random.Shuffle(elements);
  elements.resize(std::min(count, kElements));
  std::vector<Direction> directions;
  directions.reserve(elements.size() + kDirections);
  for (const std::size_t element : elements) {
    directions.push_back({{element, 1}});
  }
  for (int i = 0; i < kDirections && count > kElements; ++i) {
    Direction all(count);
    for (std::size_t element = 0; element < count; ++element) {
      all[element] = {element, random.Chance(0.5) ? 1 : -1};
    }
    directions.push_back(std::move(all));
  }
  return directions;
}

/// What a gradient output is compared by with respect to one of the inputs whose gradient it is.
struct Gradient {
  std::string name;
  std::string input;
  std::vector<double> values;
  Shape dims;
  /// Per element: rounding of the kernel, and of what it was given.
  std::vector<double> allowed;
  double largest = 0;
};

void CompareAlong(
    const Forward& forward,
    const Tensors& inputs,
    const Tensors& incoming,
    double loss_magnitude,
    const Gradient& gradient,
    const Direction& direction,
    Report& report) {
  double analytic = 0;
  double allowed = 0;
  for (const auto& [element, part] : direction) {
    analytic += gradient.values[element] * part;
    allowed += std::abs(part) * (gradient.allowed[element] + kDifferenceError * gradient.largest);
  }
  double numeric = 0;
  for (const double step : kSteps) {
    numeric = Difference(forward, inputs, gradient.input, incoming, direction, step, report);
    if (std::abs(analytic - numeric) <= allowed + kLossRounding * loss_magnitude / step) {
      return;
    }
  }
  std::ostringstream text;
  text.precision(12);
  text << gradient.name
       << (direction.size() == 1 ? IndexText(gradient.dims, direction[0].first)
                                 : std::string(" along a random direction"))
       << " is " << analytic << "; differences of " << forward.op().name << " with respect to "
       << gradient.input << " give " << numeric << ", " << allowed << " off at most";
  report.Fail(text.str());
}

/// The gradient op's inputs by where they come from.
struct Sources {
  Tensors incoming;  ///< gradients of the forward's outputs
  Tensors forward;   ///< all that the forward reads
  Tensors exact;     ///< all that the gradient reads, what the forward computed not rounded
};

/// Makes the data, what the gradient reads rounded to the row's types.
std::optional<Sources> MakeSources(
    const Subject& subject,
    const Case& problem,
    const Forward& forward,
    const Attributes& attributes,
    reference::Random& random,
    Report& report) {
  const reference::Shapes shapes = InputShapes(problem, AllPresent(subject.op().inputs));
  const Tensors drawn = WithHeldShapes(
      subject.op(), shapes, subject.oracle().MakeRandomData(shapes, attributes, random));
  Sources sources;
  sources.exact = Arguments(subject, problem, drawn).InputValues();
  std::vector<std::string> computed;
  for (const TensorSpec& spec : subject.op().inputs) {
    const std::string name(spec.name);
    const bool read = std::any_of(
        forward.op().inputs.begin(), forward.op().inputs.end(),
        [&](const TensorSpec& input) { return input.name == name; });
    if (!spec.gradient_of.empty()) {
      sources.incoming[name] = sources.exact[name];
    } else if (read) {
      sources.forward[name] = sources.exact[name];
    } else if (spec.shape_of.empty()) {
      computed.push_back(name);
    }
  }
  forward.Complete(attributes, sources.forward, random);
  const Tensors outputs = forward.Run(sources.forward, report).value_or(Tensors());
  if (outputs.empty()) {
    return std::nullopt;
  }
  for (const std::string& name : computed) {
    const auto output = outputs.find(name);
    if (output == outputs.end()) {
      report.Fail(
          "input " + name + " is neither an input nor an output of " +
          std::string(forward.op().name) + ", nor the gradient of one");
      return std::nullopt;
    }
    sources.exact[name] = output->second;
  }
  return sources;
}

/// Runs the row, and says how far each gradient may be off: by the kernel's rounding, and by as
/// much as rounding its inputs moves the oracle.
std::vector<Gradient> ComputeGradients(
    const Subject& subject,
    const Case& problem,
    const Tensors& exact_inputs,
    const Attributes& attributes,
    Report& report) {
  std::vector<Gradient> gradients;
  const std::optional<Kernel> kernel = MakeKernel(subject, problem.attributes, report);
  Arguments arguments(subject, problem, exact_inputs);
  if (!kernel || !RunPoisoned(
                     subject, *kernel, ContextFor(*subject.row, 2), arguments,
                     AllPresent(subject.op().outputs), "the gradient op", report)) {
    return gradients;
  }
  const auto rounded = subject.oracle().Run(arguments.InputValues(), attributes);
  const auto exact = subject.oracle().Run(exact_inputs, attributes);
  for (std::size_t i = 0; i < subject.op().outputs.size(); ++i) {
    const TensorSpec& spec = subject.op().outputs[i];
    if (spec.gradient_of.empty()) {
      continue;
    }
    const reference::Expected& expected = rounded.find(spec.name)->second;
    const std::vector<double>& unrounded = exact.find(spec.name)->second.value.values;
    Gradient gradient;
    gradient.name = std::string(spec.name);
    gradient.values = arguments.output(i).Values();
    gradient.dims = expected.value.dims;
    for (std::size_t j = 0; j < unrounded.size(); ++j) {
      const double value = expected.value.values[j];
      gradient.allowed.push_back(
          std::abs(value - unrounded[j]) +
          AllowedError(subject.AccumulatorType(), subject.TypeOf(spec), value, expected.error[j]));
      gradient.largest = std::max(gradient.largest, std::abs(value));
    }
    for (const std::string_view input : spec.gradient_of) {
      gradient.input = std::string(input);
      gradients.push_back(gradient);
    }
  }
  return gradients;
}

/// The attributes that the forward has too.
std::vector<Attribute> ForwardAttributes(const OpSchema& forward, const Attributes& attributes) {
  std::vector<Attribute> shared = ToAttributes(attributes);
  std::erase_if(shared, [&](const Attribute& attribute) {
    return std::none_of(
        forward.attributes.begin(), forward.attributes.end(),
        [&](const AttributeSpec& spec) { return spec.name == attribute.name; });
  });
  return shared;
}

}  // namespace

Report CheckGradient(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  const Row* row = ForwardRowOfDoubles(subject);
  if (row == nullptr) {
    report.skipped = std::string(subject.op().gradient_of) + " has no row of doubles on the CPU";
    return report;
  }
  row = &RowForLists(*row, subject.op().list_length);
  const Attributes attributes = OracleAttributes(*subject.tests, problem.attributes);
  const Result<Kernel> kernel = Kernel::Create(*row, ForwardAttributes(*row->op, attributes));
  report.FailIfNot(kernel.status(), "creating the forward's kernel");
  if (!kernel.ok()) {
    return report;
  }
  const Forward forward(*row, *kernel, problem, subject.op());
  reference::Random random(seed);
  const std::optional<Sources> sources =
      MakeSources(subject, problem, forward, attributes, random, report);
  if (!sources) {
    return report;
  }
  const double loss_magnitude = forward.Loss(sources->forward, sources->incoming, report).magnitude;
  for (const Gradient& gradient :
       ComputeGradients(subject, problem, sources->exact, attributes, report)) {
    for (const Direction& direction : Directions(gradient.values.size(), random)) {
      CompareAlong(
          forward, sources->forward, sources->incoming, loss_magnitude, gradient, direction,
          report);
    }
  }
  return report;
}

}  // namespace gradsmith::support
