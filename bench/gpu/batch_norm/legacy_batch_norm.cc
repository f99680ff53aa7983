#include "gpu/batch_norm/legacy_batch_norm.h"

#include "cuda/cudnn.h"

namespace gradsmith::bench {

namespace {

using cuda::Cudnn;
using cuda::ToStatus;

constexpr double kEpsilon = 1e-5;
constexpr double kAverageFactor = 0.1;
constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL;

}  // namespace

LegacyChannels::LegacyChannels(const LegacyTensor& tensor) {
  Require(ToStatus(
      Cudnn().cudnnDeriveBNTensorDescriptor(raw(), tensor.raw(), kMode),
      "describing the parameters"));
}

LegacyBatchNorm::LegacyBatchNorm(
    const Gpu& gpu,
    DataType type,
    const Dims& dims,
    const Strides& strides)
    : handle_(LegacyHandle(gpu)),
      tensor_(type, dims, strides),
      channels_(tensor_),
      is_double_(type == DataType::kDouble) {}

Status LegacyBatchNorm::Forward(const LegacyBatchNormArguments& a) const {
  const LegacyFactors factors(is_double_);
  return ToStatus(
      Cudnn().cudnnBatchNormalizationForwardTraining(
          handle_, kMode, factors.one, factors.zero, tensor_.raw(), a.X, tensor_.raw(), a.Y,
          channels_.raw(), a.scale, a.B, kAverageFactor, a.running_mean, a.running_var, kEpsilon,
          a.saved_mean, a.saved_inv_std),
      "running the legacy batch normalization");
}

Status LegacyBatchNorm::Backward(const LegacyBatchNormArguments& a) const {
  const LegacyFactors factors(is_double_);
  return ToStatus(
      Cudnn().cudnnBatchNormalizationBackward(
          handle_, kMode, factors.one, factors.zero, factors.one, factors.zero, tensor_.raw(), a.X,
          tensor_.raw(), a.dY, tensor_.raw(), a.dX, channels_.raw(), a.scale, a.dScale, a.dBias,
          kEpsilon, a.saved_mean, a.saved_inv_std),
      "running the gradient of the legacy batch normalization");
}

}  // namespace gradsmith::bench
