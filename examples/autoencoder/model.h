#ifndef AUTOENCODER_MODEL_H_
#define AUTOENCODER_MODEL_H_

#include <random>
#include <vector>

#include "tensor.h"
#include "transfer.h"

/// Parameter is a tensor that is trained and the gradient of the loss with respect to it.
struct Parameter {
  explicit Parameter(const gradsmith::Dims& dims, float fill = 0)
      : value(dims, fill), gradient(dims) {}

  Tensor value;
  Tensor gradient;
};

/// Autoencoder squeezes an 8x8 image into a code of 4 values per filter and draws it again:
///
///     image (1, 8, 8) -> Conv(w_f) -> BatchNormalization -> ReLU -> code (filters, 2, 2)
///                     -> ConvTranspose(w_b) -> image (1, 8, 8)
///
/// Encoder and decoder have separate weights, both (filters, 1, 6, 6). ConvTranspose is the
/// transpose of the Conv that has the same filter, so a decoder that transposes its encoder has a
/// w_b that is proportional to w_f, filter by filter. Nothing in the model forces that.
class Autoencoder {
 public:
  static constexpr int kCodeSide = 2;

  Autoencoder(gradsmith::Context context, int filters, std::mt19937& random);

  /// ComputeGradients runs forward and backward on images (N, 1, 8, 8) and leaves the gradient of
  /// the squared error per image in every parameter. Returns the mean squared error per pixel.
  double ComputeGradients(const Tensor& images);

  /// Reconstruct encodes and decodes images with the running statistics of batch normalization.
  Tensor Reconstruct(const Tensor& images);

  /// Alignment returns the cosine between w_b and w_f transposed, averaged over the filters.
  [[nodiscard]] double Alignment() const;

  std::vector<Parameter*> Parameters() { return {&w_f_, &scale_, &bias_, &w_b_, &bias_b_}; }

 private:
  /// What the forward pass leaves for the backward pass.
  struct Activations {
    Tensor convolved;
    Tensor saved_mean;
    Tensor saved_inv_std;
    Tensor code;
  };

  void Encode(const Tensor& images, Activations& activations);
  Tensor Decode(const Tensor& code);
  void Backward(const Tensor& d_drawn, const Tensor& images, const Activations& activations);

  DeviceMemory memory_;
  int filters_;
  Parameter w_f_;
  Parameter scale_;
  Parameter bias_;
  Parameter w_b_;
  Parameter bias_b_;
  Tensor running_mean_;
  Tensor running_var_;
};

/// MeanSquaredError returns the mean over all values of the squared difference.
double MeanSquaredError(const Tensor& a, const Tensor& b);

#endif  // AUTOENCODER_MODEL_H_
