#include "reference/definitions.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gradsmith::reference {

namespace {

bool Has(const Tensors& inputs, const std::string& name) {
  return inputs.contains(name);
}

Tensors Accumulated(const Tensors& inputs, const Attributes& /*attributes*/) {
  Tensor buffer = inputs.at("accumulation_buffer");
  const Tensor& value = inputs.at("value");
  const bool overwrites =
      Has(inputs, "overwrite_flag") && inputs.at("overwrite_flag").values[0] != 0;
  for (std::size_t i = 0; i < buffer.values.size(); ++i) {
    buffer.values[i] = value.values[i] + (overwrites ? 0 : buffer.values[i]);
  }
  return {{"accumulation_buffer_out", buffer}};
}

/// Labels of samples, and how much each counts: the weight of its class, or 0 where it is ignored.
std::vector<double> WeightsOfLabels(const Tensors& inputs, std::int64_t classes) {
  std::vector<double> weights;
  for (const double label : inputs.at("label").values) {
    const bool is_class = label >= 0 && label < static_cast<double>(classes);
    const bool is_ignored =
        Has(inputs, "ignore_index") && label == inputs.at("ignore_index").values[0];
    const bool has_weights = Has(inputs, "weight");
    if (!is_class || is_ignored) {
      weights.push_back(0);
    } else {
      weights.push_back(
          has_weights ? inputs.at("weight").values[static_cast<std::size_t>(label)] : 1);
    }
  }
  return weights;
}

/// The chain rule for a mean, a sum or each of -weight * log(softmax)[label]: softmax, less 1 at
/// the label.
Tensors CrossEntropyGradient(const Tensors& inputs, const Attributes& attributes) {
  Tensor gradient = inputs.at("log_prob");
  const std::int64_t classes = gradient.dims[1];
  const std::int64_t samples = Count(inputs.at("label").dims);
  const std::int64_t in_image = gradient.dims[0] == 0 ? 0 : samples / gradient.dims[0];
  const std::vector<double> weights = WeightsOfLabels(inputs, classes);
  const auto& reduction = std::get<std::string>(attributes.find("reduction")->second);
  double divisor = 0;
  for (const double weight : weights) {
    divisor += reduction == "mean" ? weight : 0;
  }
  for (std::size_t i = 0; i < gradient.values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t image = at / (classes * in_image);
    const std::int64_t own_class = at / in_image % classes;
    const auto sample = static_cast<std::size_t>(image * in_image + at % in_image);
    const bool is_label = inputs.at("label").values[sample] == static_cast<double>(own_class);
    double& value = gradient.values[i];
    if (weights[sample] == 0) {
      value = 0;
    } else {
      const double incoming = inputs.at("dY").values[reduction == "none" ? sample : 0];
      const double part = weights[sample] / (reduction == "mean" ? divisor : 1);
      value = incoming * part * (std::exp(value) - (is_label ? 1 : 0));
    }
    value += Has(inputs, "bias") ? inputs.at("bias").values[i] : 0;
  }
  return {{"dX", gradient}};
}

}  // namespace

Definition DefinitionOf(std::string_view op) {
  if (op.starts_with("InPlaceAccumulatorV2")) {
    return &Accumulated;
  }
  return op.starts_with("SoftmaxCrossEntropyLossInternalGrad") ? &CrossEntropyGradient : nullptr;
}

}  // namespace gradsmith::reference
