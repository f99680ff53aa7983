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
    : context_(std::move(context)),
      filters_(filters),
      w_f_(RandomFilters(filters, random)),
      scale_({filters}, 1),
      bias_({filters}),
      w_b_(RandomFilters(filters, random)),
      bias_b_({1}),
      running_mean_({filters}),
      running_var_({filters}, 1) {}

void Autoencoder::Encode(const Tensor& images, Activations& activations) {
  // No bias here: batch normalization would take it out again.
  Check(gradsmith::Conv<float>(
      context_, {.strides = kStrides, .pads = kPads}, {.X = images, .W = w_f_.value},
      {.Y = activations.convolved}));
  Check(gradsmith::BatchNormalization<float, float, float>(
      context_, {.epsilon = kEpsilon},
      {.X = activations.convolved,
       .scale = scale_.value,
       .B = bias_.value,
       .running_mean = running_mean_,
       .running_var = running_var_},
      {.Y = activations.code,
       .running_mean = running_mean_,
       .running_var = running_var_,
       .saved_mean = activations.saved_mean,
       .saved_inv_std = activations.saved_inv_std}));
  Relu(activations.code);
}

Tensor Autoencoder::Decode(const Tensor& code) const {
  Tensor drawn({code.dims[0], 1, kImageSide, kImageSide});
  Check(gradsmith::ConvTranspose<float>(
      context_, {.strides = kStrides, .pads = kPads},
      {.X = code, .W = w_b_.value, .B = bias_b_.value}, {.Y = drawn}));
  return drawn;
}

void Autoencoder::Backward(
    const Tensor& d_drawn,
    const Tensor& images,
    const Activations& activations) {
  Tensor d_code(activations.code.dims);
  Check(gradsmith::ConvTransposeGrad<float>(
      context_, {.strides = kStrides, .pads = kPads},
      {.dY = d_drawn, .X = activations.code, .W = w_b_.value},
      {.dX = d_code, .dW = w_b_.gradient, .dB = bias_b_.gradient}));
  ReluGrad(activations.code, d_code);
  Tensor d_convolved(activations.convolved.dims);
  Check(gradsmith::BatchNormalizationGrad<float, float, float>(
      context_, {.epsilon = kEpsilon},
      {.dY = d_code,
       .X = activations.convolved,
       .scale = scale_.value,
       .saved_mean = activations.saved_mean,
       .saved_inv_std = activations.saved_inv_std},
      {.dX = d_convolved, .dScale = scale_.gradient, .dBias = bias_.gradient}));
  // dX would be the gradient of the images: nobody needs it, so it is left out and not computed.
  Check(gradsmith::ConvGrad<float>(
      context_, {.strides = kStrides, .pads = kPads},
      {.dY = d_convolved, .X = images, .W = w_f_.value}, {.dW = w_f_.gradient}));
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

Tensor Autoencoder::Reconstruct(const Tensor& images) const {
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
  Check(gradsmith::Conv<float>(
      context_, {.strides = kStrides, .pads = kPads}, {.X = images, .W = w, .B = b}, {.Y = code}));
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
