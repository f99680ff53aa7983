#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cases.h"
#include "gpu/legacy.h"
#include "gradsmith/cache.h"
#include "gradsmith/conv_algorithms.h"

namespace gradsmith::bench {

namespace {

/// The tensors of a set of arguments.
enum Tensor : std::uint8_t { kX, kW, kY, kDX, kDW, kDB };

/// Which outputs a call computes.
struct Wanted {
  const char* name;
  bool dX, dW, dB;
};
constexpr std::array<Wanted, 4> kWanted = {
    {{"dX", true, false, false},
     {"dW", false, true, false},
     {"dB", false, false, true},
     {"all", true, true, true}}};

struct Shapes {
  Dims x, w, y;
  Strides x_strides, w_strides, y_strides;
  ConvGradAttributes attributes;
};

Shapes ShapesOf(const SuiteCase& suite_case) {
  const IntList spatial = suite_case.Numbers("spatial");
  const IntList kernel = suite_case.Numbers("kernel");
  const IntList pad = suite_case.Numbers("pad");
  const std::int64_t groups = suite_case.Number("groups");
  Shapes shapes;
  shapes.x = {suite_case.Number("N"), suite_case.Number("C")};
  shapes.w = {suite_case.Number("K"), suite_case.Number("C") / groups};
  shapes.y = {suite_case.Number("N"), suite_case.Number("K")};
  ConvGradAttributes& attributes = shapes.attributes;
  attributes.strides = suite_case.Numbers("stride");
  attributes.dilations = suite_case.Numbers("dilation");
  attributes.group = groups;
  for (int side = 0; side < 2; ++side) {
    for (const std::int64_t p : pad) {
      attributes.pads.push_back(p);
    }
  }
  for (int i = 0; i < spatial.size(); ++i) {
    shapes.x.push_back(spatial[i]);
    shapes.w.push_back(kernel[i]);
    const std::int64_t reach = (attributes.dilations[i] * (kernel[i] - 1)) + 1;
    shapes.y.push_back(((spatial[i] + (2 * pad[i]) - reach) / attributes.strides[i]) + 1);
  }
  const bool last = suite_case.channels_last();
  shapes.x_strides = StridesOf(shapes.x, last);
  shapes.w_strides = StridesOf(shapes.w, last);
  shapes.y_strides = StridesOf(shapes.y, last);
  return shapes;
}

/// Floating-point operations of dX, and as many of dW.
double OperationsOf(const Shapes& shapes) {
  return 2.0 * static_cast<double>(NumElements(shapes.y)) *
         static_cast<double>(NumElements(shapes.w)) / static_cast<double>(shapes.w[0]);
}

ArgumentSets MakeSets(Gpu* gpu, DataType type, const Shapes& shapes) {
  const std::int64_t x = NumElements(shapes.x);
  const std::int64_t w = NumElements(shapes.w);
  const std::int64_t y = NumElements(shapes.y);
  return {gpu, {{type, x}, {type, w}, {type, y}, {type, x}, {type, w}, {type, shapes.w[0]}}};
}

template <typename T>
class ConvCase {
 public:
  ConvCase(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options)
      : gpu_(gpu),
        case_options_(options),
        shapes_(ShapesOf(suite_case)),
        sets_(MakeSets(gpu, kDataTypeOf<T>, shapes_)),
        device_(gpu->Options().device) {
    options_ = gpu->Options();
    options_.allow_tf32 = suite_case.Text("type") == "tf32";
    options_.deterministic = false;  // as PyTorch: the default for double is to be
    options_.search_budget_seconds = options.budget_seconds;
  }

  JsonObject Measure() {
    Require(ClearCache());
    JsonObject result;
    result.Add("sets", sets_.count());
    result.Add("set_bytes", static_cast<double>(sets_.set_bytes()));
    result.Add("operations", OperationsOf(shapes_));
    // By heuristics first: afterwards they would find what the search remembered.
    JsonObject ours;
    ours.Add("heuristic", MeasureOurs(SearchMode::kHeuristic));
    ours.Add("benchmark", MeasureOurs(SearchMode::kBenchmark));
    result.Add("ours", ours);
    JsonObject kernels;
    for (const CachedChoice& choice : CachedChoices()) {
      kernels.Add(choice.problem, choice.kernel);
    }
    result.Add("kernels", kernels);
    Save();
    JsonObject legacy;
    AddLegacy(&legacy, "dX", ConvPrimitive::kBackwardData, kDX, kW, kY);
    AddLegacy(&legacy, "dW", ConvPrimitive::kBackwardFilter, kX, kDW, kY);
    AddLegacyBias(&legacy);
    result.Add("legacy", legacy);
    return result;
  }

 private:
  Status Call(const Context& context, const Wanted& wanted, int set) const {
    const auto at = [&](Tensor tensor) { return static_cast<T*>(sets_.At(set, tensor)); };
    ConvGradInputs<T> inputs;
    inputs.dY = {at(kY), shapes_.y, shapes_.y_strides, device_};
    inputs.X = {at(kX), shapes_.x, shapes_.x_strides, device_};
    inputs.W = {at(kW), shapes_.w, shapes_.w_strides, device_};
    ConvGradOutputs<T> outputs;
    if (wanted.dX) {
      outputs.dX = {at(kDX), shapes_.x, shapes_.x_strides, device_};
    }
    if (wanted.dW) {
      outputs.dW = {at(kDW), shapes_.w, shapes_.w_strides, device_};
    }
    if (wanted.dB) {
      outputs.dB = {at(kDB), {shapes_.w[0]}, device_};
    }
    return ConvGrad<T>(context, shapes_.attributes, inputs, outputs);
  }

  JsonObject MeasureOurs(SearchMode mode) {
    JsonObject result;
    ContextOptions options = options_;
    options.search_mode = mode;
    const Context context(options);
    for (const Wanted& wanted : kWanted) {
      const Stopwatch first;
      if (Status status = Call(context, wanted, 0); !status.ok()) {
        result.Add(wanted.name, JsonObject().Add("error", status.message()));
        continue;
      }
      gpu_->Wait();
      const double first_ms = first.Seconds() * 1e3;
      const Timing timing = gpu_->Time(sets_.count(), case_options_.samples, [&](int set) {
        return Call(context, wanted, set);
      });
      result.Add(wanted.name, timing.Json().Add("first_ms", first_ms));
    }
    return result;
  }

  [[nodiscard]] TensorRef Ref(int set, Tensor tensor) const {
    const Dims& dims = tensor == kY                    ? shapes_.y
                       : tensor == kW || tensor == kDW ? shapes_.w
                                                       : shapes_.x;
    const Strides& strides = tensor == kY                    ? shapes_.y_strides
                             : tensor == kW || tensor == kDW ? shapes_.w_strides
                                                             : shapes_.x_strides;
    return {kDataTypeOf<T>, sets_.At(set, tensor), dims, strides, device_};
  }

  /// The best legacy algorithm by timing: each that the policies allow is run, and those that come
  /// near the best are timed on all sets.
  void AddLegacy(
      JsonObject* legacy,
      const char* name,
      ConvPrimitive primitive,
      Tensor x,
      Tensor w,
      Tensor y) {
    const Context context(options_);
    const ConvGradAttributes& attributes = shapes_.attributes;
    const ConvGeometry geometry{
        attributes.strides, attributes.pads, attributes.dilations, attributes.group};
    std::vector<ConvAlgorithms> of_set;
    for (int set = 0; set < sets_.count(); ++set) {
      of_set.push_back(Take(ConvAlgorithms::Prepare(
          context, primitive, Ref(set, x), Ref(set, w), Ref(set, y), geometry)));
    }
    std::string best;
    Timing best_timing;
    int tried = 0;
    const auto time = [&](const std::string& algorithm, int samples) {
      return gpu_->Time(
          sets_.count(), samples, [&](int set) { return of_set[set].Run({algorithm}).status(); });
    };
    for (const ConvAlgorithm& algorithm : Take(of_set[0].List())) {
      if (!IsPlainLegacy(algorithm) || !of_set[0].Run({algorithm.name}).ok()) {
        continue;
      }
      gpu_->Wait();
      const Stopwatch once;
      Require(of_set[0].Run({algorithm.name}).status());
      gpu_->Wait();
      if (!best.empty() && once.Seconds() * 1e3 > (2 * best_timing.median) + 0.2) {
        continue;  // far from the best: not worth more of the machine's time
      }
      const Timing timing = time(algorithm.name, 3);
      ++tried;
      if (best.empty() || timing.median < best_timing.median) {
        best = algorithm.name;
        best_timing = timing;
      }
    }
    if (best.empty()) {
      legacy->AddNull(name);
      return;
    }
    const Timing timing = time(best, case_options_.samples);
    legacy->Add(name, timing.Json().Add("algorithm", best).Add("tried", tried));
  }

  void AddLegacyBias(JsonObject* legacy) {
    const LegacyBiasGradient gradient(*gpu_, kDataTypeOf<T>, shapes_.y, shapes_.y_strides);
    const auto run = [&](int set) { return gradient.Run(sets_.At(set, kY), sets_.At(set, kDB)); };
    if (!run(0).ok()) {
      legacy->AddNull("dB");
      return;
    }
    legacy->Add("dB", gpu_->Time(sets_.count(), case_options_.samples, run).Json());
  }

  [[nodiscard]] bool IsPlainLegacy(const ConvAlgorithm& algorithm) const {
    constexpr std::size_t kMostWorkspace = std::size_t{16} << 30U;
    return algorithm.name.starts_with("legacy/") && !algorithm.reduced_precision &&
           (options_.allow_tf32 || !algorithm.tf32) && algorithm.workspace <= kMostWorkspace;
  }

  void Save() {
    if (case_options_.save.empty()) {
      return;
    }
    ContextOptions options = options_;
    options.search_mode = SearchMode::kBenchmark;
    Require(Call(Context(options), kWanted.back(), 0));
    constexpr std::array<const char*, 6> kNames = {"X", "W", "dY", "dX", "dW", "dB"};
    for (const Tensor tensor : {kX, kW, kY, kDX, kDW, kDB}) {
      sets_.Save(*gpu_, tensor, case_options_.save + "/" + kNames.at(tensor) + ".bin");
    }
  }

  Gpu* gpu_;
  CaseOptions case_options_;
  Shapes shapes_;
  ArgumentSets sets_;
  Device device_;
  ContextOptions options_;
};

}  // namespace

JsonObject MeasureConv(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  switch (DataTypeOf(suite_case.Text("type"))) {
    case DataType::kFloat:
      break;
    case DataType::kDouble:
      return ConvCase<double>(gpu, suite_case, options).Measure();
    case DataType::kMLFloat16:
      return ConvCase<MLFloat16>(gpu, suite_case, options).Measure();
    case DataType::kBFloat16:
      return ConvCase<BFloat16>(gpu, suite_case, options).Measure();
  }
  return ConvCase<float>(gpu, suite_case, options).Measure();
}

}  // namespace gradsmith::bench
