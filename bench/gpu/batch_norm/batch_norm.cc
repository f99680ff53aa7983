#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/batch_norm/legacy_batch_norm.h"
#include "gpu/cases.h"
#include "gradsmith/cache.h"

namespace gradsmith::bench {

namespace {

/// The tensors of a set of arguments.
enum Tensor : std::uint8_t {
  kX,
  kDY,
  kY,
  kDX,
  kScale,
  kB,
  kDScale,
  kDBias,
  kRunningMean,
  kRunningVar,
  kSavedMean,
  kSavedInvStd,
  kTensors
};

/// Of the gradient, for each element: 2 to normalize it, 3 for the sums of dScale and dBias, 5 for
/// dX.
constexpr double kOperations = 10;
/// The least that the gradient must move: X, dY and dX. Channels are next to nothing.
constexpr double kImages = 3;

template <typename T, typename T1, typename T2>
class BatchNormCase {
 public:
  BatchNormCase(Gpu* gpu, const SuiteCase& suite_case, CaseOptions options, bool relu)
      : gpu_(gpu),
        case_options_(std::move(options)),
        relu_(relu),
        dims_(suite_case.Numbers("shape")),
        strides_(StridesOf(dims_, suite_case.channels_last())),
        sets_(MakeSets(gpu, dims_)),
        device_(gpu->Options().device) {}

  JsonObject Measure() {
    JsonObject result;
    // Heuristics are measured first, as afterwards they would find what the search remembered.
    Require(ClearCache());
    AddHeuristic(&result);
    Require(ClearCache());
    const Context context(Options(SearchMode::kBenchmark));
    Prepare(context);
    result.Add("sets", sets_.count());
    result.Add("set_bytes", static_cast<double>(sets_.set_bytes()));
    const auto elements = static_cast<double>(NumElements(dims_));
    result.Add("operations", kOperations * elements);
    result.Add("bytes", kImages * elements * static_cast<double>(sizeof(T)));
    JsonObject ours;
    ours.Add("forward", Time([&](int set) { return Forward(context, set); }));
    ours.Add("backward", Time([&](int set) { return Backward(context, set); }));
    result.Add("ours", ours);
    Save(context);
    if (!relu_) {
      result.Add("legacy", MeasureLegacy());
    }
    return result;
  }

 private:
  static ArgumentSets MakeSets(Gpu* gpu, const Dims& dims) {
    const std::int64_t elements = NumElements(dims);
    std::vector<ArgumentSets::Tensor> tensors;
    for (int tensor = 0; tensor < kTensors; ++tensor) {
      if (tensor < kScale) {
        tensors.push_back({kDataTypeOf<T>, elements});
      } else {
        tensors.push_back({tensor < kRunningMean ? kDataTypeOf<T1> : kDataTypeOf<T2>, dims[1]});
      }
    }
    return {gpu, tensors};
  }

  [[nodiscard]] ContextOptions Options(SearchMode mode) const {
    ContextOptions options = gpu_->Options();
    options.search_mode = mode;
    options.search_budget_seconds = case_options_.budget_seconds;
    return options;
  }

  /// Writes the statistics that the gradient reads.
  void Prepare(const Context& context) const {
    for (int set = 0; set < sets_.count(); ++set) {
      Require(Forward(context, set));
    }
  }

  /// Adds what the host's clock says of the gradient's first call of a new shape, until its result
  /// is there, and the times of those that follow.
  void AddHeuristic(JsonObject* result) {
    const Context context(Options(SearchMode::kHeuristic));
    Prepare(context);
    gpu_->Wait();
    const Stopwatch first;
    Require(Backward(context, 0));
    gpu_->Wait();
    result->Add("first_call_ms", first.Seconds() * 1e3);
    const JsonObject backward = Time([&](int set) { return Backward(context, set); });
    result->Add("heuristic", JsonObject().Add("backward", backward));
  }

  template <typename E>
  [[nodiscard]] TensorView<E> Image(int set, Tensor tensor) const {
    return {static_cast<E*>(sets_.At(set, tensor)), dims_, strides_, device_};
  }
  template <typename E>
  [[nodiscard]] TensorView<E> Channels(int set, Tensor tensor) const {
    return {static_cast<E*>(sets_.At(set, tensor)), {dims_[1]}, device_};
  }

  Status Forward(const Context& context, int set) const {
    if (relu_) {
      BatchNormalizationReluInputs<T, T1, T2> inputs;
      BatchNormalizationReluOutputs<T, T1, T2> outputs;
      SetForward(set, &inputs, &outputs);
      return BatchNormalizationRelu<T, T1, T2>(context, {}, inputs, outputs);
    }
    BatchNormalizationInputs<T, T1, T2> inputs;
    BatchNormalizationOutputs<T, T1, T2> outputs;
    SetForward(set, &inputs, &outputs);
    return BatchNormalization<T, T1, T2>(context, {}, inputs, outputs);
  }

  Status Backward(const Context& context, int set) const {
    if (relu_) {
      BatchNormalizationReluGradInputs<T, T1, T2> inputs;
      BatchNormalizationReluGradOutputs<T, T1, T2> outputs;
      SetBackward(set, &inputs, &outputs);
      inputs.B = Channels<T1>(set, kB);
      return BatchNormalizationReluGrad<T, T1, T2>(context, {}, inputs, outputs);
    }
    BatchNormalizationGradInputs<T, T1, T2> inputs;
    BatchNormalizationGradOutputs<T, T1, T2> outputs;
    SetBackward(set, &inputs, &outputs);
    return BatchNormalizationGrad<T, T1, T2>(context, {}, inputs, outputs);
  }

  template <typename Inputs, typename Outputs>
  void SetForward(int set, Inputs* inputs, Outputs* outputs) const {
    inputs->X = Image<T>(set, kX);
    inputs->scale = Channels<T1>(set, kScale);
    inputs->B = Channels<T1>(set, kB);
    inputs->running_mean = Channels<T2>(set, kRunningMean);
    inputs->running_var = Channels<T2>(set, kRunningVar);
    outputs->Y = Image<T>(set, kY);
    outputs->running_mean = Channels<T2>(set, kRunningMean);
    outputs->running_var = Channels<T2>(set, kRunningVar);
    outputs->saved_mean = Channels<T2>(set, kSavedMean);
    outputs->saved_inv_std = Channels<T2>(set, kSavedInvStd);
  }

  template <typename Inputs, typename Outputs>
  void SetBackward(int set, Inputs* inputs, Outputs* outputs) const {
    inputs->dY = Image<T>(set, kDY);
    inputs->X = Image<T>(set, kX);
    inputs->scale = Channels<T1>(set, kScale);
    inputs->saved_mean = Channels<T2>(set, kSavedMean);
    inputs->saved_inv_std = Channels<T2>(set, kSavedInvStd);
    outputs->dX = Image<T>(set, kDX);
    outputs->dScale = Channels<T1>(set, kDScale);
    outputs->dBias = Channels<T1>(set, kDBias);
  }

  /// Null where the legacy API does not take the types or the layout.
  JsonObject MeasureLegacy() {
    JsonObject result;
    constexpr bool kTaken =
        std::is_same_v<T1, T2> && (std::is_same_v<T1, float> || std::is_same_v<T, T1>);
    if constexpr (!kTaken) {
      return result.AddNull("forward").AddNull("backward");
    }
    const LegacyBatchNorm legacy(*gpu_, kDataTypeOf<T>, dims_, strides_);
    const auto add = [&](const char* name, const Gpu::Call& call) {
      if (call(0).ok()) {
        result.Add(name, gpu_->Time(sets_.count(), case_options_.samples, call).Json());
      } else {
        result.AddNull(name);
      }
    };
    add("forward", [&](int set) { return legacy.Forward(LegacyArguments(set)); });
    add("backward", [&](int set) { return legacy.Backward(LegacyArguments(set)); });
    return result;
  }

  [[nodiscard]] LegacyBatchNormArguments LegacyArguments(int set) const {
    const auto at = [&](Tensor tensor) { return sets_.At(set, tensor); };
    return {
        .X = at(kX),
        .dY = at(kDY),
        .Y = at(kY),
        .dX = at(kDX),
        .scale = at(kScale),
        .B = at(kB),
        .dScale = at(kDScale),
        .dBias = at(kDBias),
        .running_mean = at(kRunningMean),
        .running_var = at(kRunningVar),
        .saved_mean = at(kSavedMean),
        .saved_inv_std = at(kSavedInvStd)};
  }

  JsonObject Time(const Gpu::Call& call) {
    if (Status status = call(0); !status.ok()) {
      return JsonObject().Add("error", status.message());
    }
    return gpu_->Time(sets_.count(), case_options_.samples, call).Json();
  }

  void Save(const Context& context) {
    if (case_options_.save.empty()) {
      return;
    }
    Require(Forward(context, 0));
    Require(Backward(context, 0));
    constexpr std::array<const char*, kTensors> kNames = {
        "X",     "dY",           "Y",           "dX",         "scale",        "B", "dScale",
        "dBias", "running_mean", "running_var", "saved_mean", "saved_inv_std"};
    for (int tensor = 0; tensor < kTensors; ++tensor) {
      sets_.Save(
          *gpu_, tensor,
          case_options_.save + "/" + kNames.at(static_cast<std::size_t>(tensor)) + ".bin");
    }
  }

  Gpu* gpu_;
  CaseOptions case_options_;
  bool relu_;
  Dims dims_;
  Strides strides_;
  ArgumentSets sets_;
  Device device_;
};

/// Times both directions as chosen by timing, and the gradient by heuristics, whose first call is
/// timed by itself too.
template <bool kRelu>
JsonObject Measure(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  const std::string types = suite_case.Text("type") + "/" + suite_case.Text("scale_type");
  if (types == "f16/f32") {
    return BatchNormCase<MLFloat16, float, float>(gpu, suite_case, options, kRelu).Measure();
  }
  if (types == "f16/f16") {
    return BatchNormCase<MLFloat16, MLFloat16, float>(gpu, suite_case, options, kRelu).Measure();
  }
  if (types == "bf16/f32") {
    return BatchNormCase<BFloat16, float, float>(gpu, suite_case, options, kRelu).Measure();
  }
  if (types == "f32/f32") {
    return BatchNormCase<float, float, float>(gpu, suite_case, options, kRelu).Measure();
  }
  if (types == "f64/f64") {
    return BatchNormCase<double, double, double>(gpu, suite_case, options, kRelu).Measure();
  }
  throw std::runtime_error("unknown types " + types);
}

bool HasCase(const SuiteCase& suite_case) {
  return !suite_case.Text("shape").empty();
}

SuiteCase SmallCase() {
  return SuiteCase(
      {{"shape", "2,16,8,8"}, {"type", "f16"}, {"scale_type", "f32"}, {"layout", "NHWC"}});
}

constexpr std::array<CaseMeasure, 2> kMeasures = {
    {{.measure = &Measure<false>},
     {.option = "--relu",
      .what = "batch normalization with ReLU after it",
      .measure = &Measure<true>}}};
constexpr std::array<CaseKind, 1> kKinds = {
    {{.name = "batch_norm", .has = &HasCase, .measures = kMeasures, .small_case = &SmallCase}}};

}  // namespace

namespace batch_norm {

Family BenchFamily() {
  return {.name = "batch_norm", .kinds = kKinds};
}

}  // namespace batch_norm

}  // namespace gradsmith::bench
