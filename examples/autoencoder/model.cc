#include "model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "data.h"

namespace {

constexpr int kKernelSide = 6;
constexpr gradsmith::IntList kStrides = {4, 4};
constexpr gradsmith::IntList kPads = {1, 1, 1, 1};
constexpr double kEpsilon = 1e-5;

Parameter RandomFilters(int filters, std::mt19937& random) {
  Parameter w({filters, 1, kKernelSide, kKernelSide});
  std::normal_distribution<float> normal(0, 1.0F / kKernelSide);
  std::ranges::generate(w.value.values, [&] { return normal(random); });
  return w;
}

void Relu(Tensor& tensor) {
  for (float& value : tensor.values) {
    value = std::max(value, 0.0F);
  }
}

/// A gradient passes ReLU where ReLU let something through.
void ReluGrad(const Tensor& output, Tensor& gradient) {
  for (std::size_t i = 0; i < output.values.size(); ++i) {
    if (output.values[i] <= 0) {
      gradient.values[i] = 0;
    }
  }
}

double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += double{a[i]} * b[i];
  }
  return sum;
}

}  // namespace

Autoencoder::Autoencoder(gradsmith::Context context, int filters, std::mt19937& random)
    : memory_(std::move(context)),
      filters_(filters),
      w_f_(RandomFilters(filters, random)),
      scale_({filters}, 1),
      bias_({filters}),
      w_b_(RandomFilters(filters, random)),
      bias_b_({1}),
      running_mean_({filters}),
      running_var_({filters}, 1) {}

void Autoencoder::Encode(const Tensor& images, Activations& activations) {
  Transfer t(memory_);
  const gradsmith::TensorView<float> convolved = t.Out(activations.convolved);
  // No bias here: batch normalization would take it out again.
  Check(gradsmith::Conv<float>(
      memory_.context(), {.strides = kStrides, .pads = kPads},
      {.X = t.In(images), .W = t.In(w_f_.value)}, {.Y = convolved}));
  Check(gradsmith::BatchNormalization<float, float, float>(
      memory_.context(), {.epsilon = kEpsilon},
      {.X = convolved,
       .scale = t.In(scale_.value),
       .B = t.In(bias_.value),
       .running_mean = t.In(running_mean_),
       .running_var = t.In(running_var_)},
      {.Y = t.Out(activations.code),
       .running_mean = t.Out(running_mean_),
       .running_var = t.Out(running_var_),
       .saved_mean = t.Out(activations.saved_mean),
       .saved_inv_std = t.Out(activations.saved_inv_std)}));
  t.Finish();
  Relu(activations.code);
}

Tensor Autoencoder::Decode(const Tensor& code) {
  Tensor drawn({code.dims[0], 1, kImageSide, kImageSide});
  Transfer t(memory_);
  Check(gradsmith::ConvTranspose<float>(
      memory_.context(), {.strides = kStrides, .pads = kPads},
      {.X = t.In(code), .W = t.In(w_b_.value), .B = t.In(bias_b_.value)}, {.Y = t.Out(drawn)}));
  t.Finish();
  return drawn;
}

void Autoencoder::Backward(
    const Tensor& d_drawn,
    const Tensor& images,
    const Activations& activations) {
  Tensor d_code(activations.code.dims);
  Transfer decoder(memory_);
  Check(gradsmith::ConvTransposeGrad<float>(
      memory_.context(), {.strides = kStrides, .pads = kPads},
      {.dY = decoder.In(d_drawn), .X = decoder.In(activations.code), .W = decoder.In(w_b_.value)},
      {.dX = decoder.Out(d_code),
       .dW = decoder.Out(w_b_.gradient),
       .dB = decoder.Out(bias_b_.gradient)}));
  decoder.Finish();
  ReluGrad(activations.code, d_code);

  Tensor d_convolved(activations.convolved.dims);
  Transfer encoder(memory_);
  const gradsmith::TensorView<float> d_convolved_view = encoder.Out(d_convolved);
  Check(gradsmith::BatchNormalizationGrad<float, float, float>(
      memory_.context(), {.epsilon = kEpsilon},
      {.dY = encoder.In(d_code),
       .X = encoder.In(activations.convolved),
       .scale = encoder.In(scale_.value),
       .saved_mean = encoder.In(activations.saved_mean),
       .saved_inv_std = encoder.In(activations.saved_inv_std)},
      {.dX = d_convolved_view,
       .dScale = encoder.Out(scale_.gradient),
       .dBias = encoder.Out(bias_.gradient)}));
  // dX would be the gradient of the images: nobody needs it, so it is left out and not computed.
  Check(gradsmith::ConvGrad<float>(
      memory_.context(), {.strides = kStrides, .pads = kPads},
      {.dY = d_convolved_view, .X = encoder.In(images), .W = encoder.In(w_f_.value)},
      {.dW = encoder.Out(w_f_.gradient)}));
  encoder.Finish();
}

double Autoencoder::ComputeGradients(const Tensor& images) {
  const std::int64_t count = images.dims[0];
  const gradsmith::Dims code_dims = {count, filters_, kCodeSide, kCodeSide};
  Activations activations = {
      .convolved = Tensor(code_dims),
      .saved_mean = Tensor({filters_}),
      .saved_inv_std = Tensor({filters_}),
      .code = Tensor(code_dims)};
  Encode(images, activations);
  const Tensor drawn = Decode(activations.code);
  Tensor d_drawn(drawn.dims);
  for (std::size_t i = 0; i < drawn.values.size(); ++i) {
    d_drawn.values[i] = 2 * (drawn.values[i] - images.values[i]) / static_cast<float>(count);
  }
  Backward(d_drawn, images, activations);
  return MeanSquaredError(drawn, images);
}

Tensor Autoencoder::Reconstruct(const Tensor& images) {
  // With fixed statistics, batch normalization is a factor and an offset for each filter: it folds
  // into the convolution.
  Tensor w = w_f_.value;
  Tensor b = bias_.value;
  for (int m = 0; m < filters_; ++m) {
    const auto factor =
        static_cast<float>(scale_.value.values[m] / std::sqrt(running_var_.values[m] + kEpsilon));
    for (float& tap : w.At(m)) {
      tap *= factor;
    }
    b.values[m] -= running_mean_.values[m] * factor;
  }
  Tensor code({images.dims[0], filters_, kCodeSide, kCodeSide});
  Transfer t(memory_);
  Check(gradsmith::Conv<float>(
      memory_.context(), {.strides = kStrides, .pads = kPads},
      {.X = t.In(images), .W = t.In(w), .B = t.In(b)}, {.Y = t.Out(code)}));
  t.Finish();
  Relu(code);
  return Decode(code);
}

double Autoencoder::Alignment() const {
  double sum = 0;
  for (int m = 0; m < filters_; ++m) {
    const auto w_f = w_f_.value.At(m);
    const auto w_b = w_b_.value.At(m);
    sum += Dot(w_f, w_b) / std::sqrt(Dot(w_f, w_f) * Dot(w_b, w_b));
  }
  return sum / filters_;
}

double MeanSquaredError(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    sum += std::pow(double{a.values[i]} - b.values[i], 2);
  }
  return sum / static_cast<double>(a.values.size());
}
