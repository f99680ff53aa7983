#ifndef GRADSMITH_BENCH_GPU_LEGACY_H_
#define GRADSMITH_BENCH_GPU_LEGACY_H_

#include <cudnn_ops.h>

#include "cuda/legacy_descriptor.h"
#include "gpu/measure.h"

/// What cuDNN's legacy API has beside convolutions, called plainly, as ONNX Runtime's training ops
/// did: the other route that the GPU benchmark times.
namespace gradsmith::bench {

/// LegacyTensor is how the legacy API is told of a tensor.
class LegacyTensor {
 public:
  /// Throws where cuDNN refuses it.
  LegacyTensor(DataType type, const Dims& dims, const Strides& strides);
  /// Of a batch normalization's channels; float for tensors of half.
  static LegacyTensor ChannelsOf(const LegacyTensor& tensor);

  [[nodiscard]] cudnnTensorDescriptor_t raw() const { return descriptor_.raw(); }

 private:
  LegacyTensor();
  cuda::TensorDescriptor descriptor_;
};

/// dB of a convolution: cudnnConvolutionBackwardBias, which nothing else here uses.
class LegacyBiasGradient {
 public:
  LegacyBiasGradient(const Gpu& gpu, DataType type, const Dims& dY, const Strides& strides);
  [[nodiscard]] Status Run(const void* dY, void* dB) const;

 private:
  cudnnHandle_t handle_;
  LegacyTensor dy_;
  LegacyTensor db_;
  bool is_double_;
  decltype(&cudnnConvolutionBackwardBias) function_ = nullptr;
};

/// Addresses of a batch normalization's tensors.
struct LegacyBatchNormArguments {
  const void* X;
  const void* dY;
  void* Y;
  void* dX;
  const void* scale;
  const void* B;
  void* dScale;
  void* dBias;
  void* running_mean;
  void* running_var;
  void* saved_mean;
  void* saved_inv_std;
};

/// Batch normalization in the mode CUDNN_BATCHNORM_SPATIAL.
class LegacyBatchNorm {
 public:
  LegacyBatchNorm(const Gpu& gpu, DataType type, const Dims& dims, const Strides& strides);
  [[nodiscard]] Status Forward(const LegacyBatchNormArguments& arguments) const;
  [[nodiscard]] Status Backward(const LegacyBatchNormArguments& arguments) const;

 private:
  cudnnHandle_t handle_;
  LegacyTensor tensor_;
  LegacyTensor channels_;
  bool is_double_;
};

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_LEGACY_H_
