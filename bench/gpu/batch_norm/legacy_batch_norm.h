#ifndef GRADSMITH_BENCH_GPU_BATCH_NORM_LEGACY_BATCH_NORM_H_
#define GRADSMITH_BENCH_GPU_BATCH_NORM_LEGACY_BATCH_NORM_H_

#include <cudnn_ops.h>

#include "gpu/legacy.h"
#include "gpu/measure.h"

/// Batch normalization by cuDNN's legacy API.
namespace gradsmith::bench {

/// LegacyChannels is how the legacy API is told of a tensor's channels; they are float for tensors
/// of half.
class LegacyChannels : public LegacyTensor {
 public:
  explicit LegacyChannels(const LegacyTensor& tensor);
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
  LegacyChannels channels_;
  bool is_double_;
};

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_BATCH_NORM_LEGACY_BATCH_NORM_H_
