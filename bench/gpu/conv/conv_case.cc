#include "gpu/conv/conv_case.h"

#include <set>
#include <string>

#include "gradsmith/cache.h"

namespace gradsmith::bench {

namespace {

ArgumentSets MakeSets(Gpu* gpu, DataType type, const ConvShapes& shapes) {
  const std::int64_t x = NumElements(shapes.x);
  const std::int64_t w = NumElements(shapes.w);
  const std::int64_t y = NumElements(shapes.y);
  return {gpu, {{type, x}, {type, w}, {type, y}, {type, x}, {type, w}, {type, shapes.y[1]}}};
}

template <typename Attributes>
Attributes AttributesOf(const ConvGeometry& geometry) {
  Attributes attributes;
  attributes.strides = geometry.strides;
  attributes.pads = geometry.pads;
  attributes.dilations = geometry.dilations;
  attributes.group = geometry.group;
  return attributes;
}

}  // namespace

ConvCase::ConvCase(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options)
    : gpu_(gpu),
      type_(DataTypeOf(suite_case.Text("type"))),
      allow_tf32_(suite_case.Text("type") == "tf32"),
      budget_seconds_(options.budget_seconds),
      shapes_(ShapesOf(suite_case)),
      attributes_(AttributesOf<ConvGradAttributes>(shapes_.geometry)),
      transposed_attributes_(AttributesOf<ConvTransposeGradAttributes>(shapes_.geometry)),
      device_(gpu->Options().device),
      sets_(MakeSets(gpu, type_, shapes_)) {
  transposed_attributes_.output_padding = shapes_.output_padding;
}

ContextOptions ConvCase::Options(SearchMode mode) const {
  ContextOptions options = gpu_->Options();
  options.allow_tf32 = allow_tf32_;
  options.deterministic = false;  // as PyTorch: the default for double is to be
  options.search_mode = mode;
  options.search_budget_seconds = budget_seconds_;
  return options;
}

template <typename Inputs, typename T>
Inputs ConvCase::InputsOf(int set) const {
  const auto at = [&](ConvTensor tensor) { return static_cast<T*>(sets_.At(set, tensor)); };
  Inputs inputs;
  inputs.dY = {at(kDY), shapes_.y, shapes_.y_strides, device_};
  inputs.X = {at(kX), shapes_.x, shapes_.x_strides, device_};
  inputs.W = {at(kW), shapes_.w, shapes_.w_strides, device_};
  return inputs;
}

template <typename Outputs, typename T>
Outputs ConvCase::OutputsOf(const WantedGradients& wanted, int set) const {
  const auto at = [&](ConvTensor tensor) { return static_cast<T*>(sets_.At(set, tensor)); };
  Outputs outputs;
  if (wanted.dX) {
    outputs.dX = {at(kDX), shapes_.x, shapes_.x_strides, device_};
  }
  if (wanted.dW) {
    outputs.dW = {at(kDW), shapes_.w, shapes_.w_strides, device_};
  }
  if (wanted.dB) {
    outputs.dB = {at(kDB), {shapes_.y[1]}, device_};
  }
  return outputs;
}

template <typename T>
Status ConvCase::CallOf(const Context& context, const WantedGradients& wanted, int set) const {
  if (shapes_.transposed) {
    return ConvTransposeGrad<T>(
        context, transposed_attributes_, InputsOf<ConvTransposeGradInputs<T>, T>(set),
        OutputsOf<ConvTransposeGradOutputs<T>, T>(wanted, set));
  }
  return ConvGrad<T>(
      context, attributes_, InputsOf<ConvGradInputs<T>, T>(set),
      OutputsOf<ConvGradOutputs<T>, T>(wanted, set));
}

template <typename T>
Status ConvCase::ForwardOf(const Context& context, int set) const {
  const auto at = [&](ConvTensor tensor) { return static_cast<T*>(sets_.At(set, tensor)); };
  const auto call = [&]<typename Inputs, typename Outputs>(
                        const auto& op, Inputs inputs, Outputs outputs) {
    inputs.X = {at(kX), shapes_.x, shapes_.x_strides, device_};
    inputs.W = {at(kW), shapes_.w, shapes_.w_strides, device_};
    outputs.Y = {at(kDY), shapes_.y, shapes_.y_strides, device_};
    return op(inputs, outputs);
  };
  if (shapes_.transposed) {
    auto attributes = AttributesOf<ConvTransposeAttributes>(shapes_.geometry);
    attributes.output_padding = shapes_.output_padding;
    return call(
        [&](const auto& inputs, const auto& outputs) {
          return ConvTranspose<T>(context, attributes, inputs, outputs);
        },
        ConvTransposeInputs<T>(), ConvTransposeOutputs<T>());
  }
  const auto attributes = AttributesOf<ConvAttributes>(shapes_.geometry);
  return call(
      [&](const auto& inputs, const auto& outputs) {
        return Conv<T>(context, attributes, inputs, outputs);
      },
      ConvInputs<T>(), ConvOutputs<T>());
}

template <typename Visit>
Status ConvCase::VisitType(const Visit& visit) const {
  switch (type_) {
    case DataType::kDouble:
      return visit(double{});
    case DataType::kMLFloat16:
      return visit(MLFloat16{});
    case DataType::kBFloat16:
      return visit(BFloat16{});
    default:
      break;
  }
  return visit(float{});
}

Status ConvCase::Call(const Context& context, const WantedGradients& wanted, int set) const {
  return VisitType([&]<typename T>(T /*type*/) { return CallOf<T>(context, wanted, set); });
}

Status ConvCase::Forward(const Context& context, int set) const {
  return VisitType([&]<typename T>(T /*type*/) { return ForwardOf<T>(context, set); });
}

TensorRef ConvCase::Ref(int set, ConvTensor tensor) const {
  void* data = sets_.At(set, tensor);
  if (tensor == kDY) {
    return {type_, data, shapes_.y, shapes_.y_strides, device_};
  }
  if (tensor == kW || tensor == kDW) {
    return {type_, data, shapes_.w, shapes_.w_strides, device_};
  }
  return {type_, data, shapes_.x, shapes_.x_strides, device_};
}

JsonObject ConvCase::Measure(const Context& context, const WantedGradients& wanted, int samples)
    const {
  return Time([&](int set) { return Call(context, wanted, set); }, samples);
}

JsonObject ConvCase::MeasureForward(const Context& context, int samples) const {
  return Time([&](int set) { return Forward(context, set); }, samples);
}

JsonObject ConvCase::Time(const std::function<Status(int set)>& call, int samples) const {
  const Stopwatch first;
  if (Status status = call(0); !status.ok()) {
    return JsonObject().Add("error", status.message());
  }
  gpu_->Wait();
  const double first_ms = first.Seconds() * 1e3;
  return gpu_->Time(sets_.count(), samples, call).Json().Add("first_ms", first_ms);
}

JsonObject ConvCase::Size() const {
  return JsonObject()
      .Add("sets", sets_.count())
      .Add("set_bytes", static_cast<double>(sets_.set_bytes()))
      .Add("operations", shapes_.Operations());
}

void ConvCase::Save(const std::string& folder) const {
  Require(Call(Context(Options(SearchMode::kBenchmark)), kAllGradients, 0));
  constexpr std::array<const char*, 6> kNames = {"X", "W", "dY", "dX", "dW", "dB"};
  for (const ConvTensor tensor : {kX, kW, kDY, kDX, kDW, kDB}) {
    sets_.Save(*gpu_, tensor, folder + "/" + kNames.at(tensor) + ".bin");
  }
}

JsonObject ChosenKernels() {
  JsonObject kernels;
  std::set<std::string> named;
  for (const CachedChoice& choice : CachedChoices()) {
    // The newest come first. Gradients together may be remembered beside several choices alone.
    if (named.insert(choice.problem).second) {
      kernels.Add(choice.problem, choice.kernel);
    }
  }
  return kernels;
}

}  // namespace gradsmith::bench
