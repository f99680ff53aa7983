#include "gpu/legacy.h"

#include <cudnn_cnn.h>

#include <array>

#include "cuda/cudnn.h"
#include "cuda/dynamic_library.h"
#include "cuda/thread_state.h"

namespace gradsmith::bench {

namespace {

using cuda::Cudnn;
using cuda::ToStatus;

constexpr double kEpsilon = 1e-5;
constexpr double kAverageFactor = 0.1;
constexpr cudnnBatchNormMode_t kMode = CUDNN_BATCHNORM_SPATIAL;

/// cuDNN reads factors in double for tensors of double and in float for all others.
struct Factors {
  explicit Factors(bool is_double)
      : one(is_double ? static_cast<const void*>(&kOnes.wide) : &kOnes.narrow),
        zero(is_double ? static_cast<const void*>(&kZeros.wide) : &kZeros.narrow) {}
  const void* one;
  const void* zero;

 private:
  struct Both {
    double wide;
    float narrow;
  };
  static constexpr Both kOnes = {1, 1};
  static constexpr Both kZeros = {0, 0};
};

cudnnHandle_t HandleOf(const Gpu& gpu) {
  cuda::CudnnHandle* handle = Take(cuda::ThreadState::OfThisThread(gpu.info()).handle());
  Require(handle->UseStream(gpu.stream()));
  return handle->raw();
}

}  // namespace

LegacyTensor::LegacyTensor() {
  Require(ToStatus(
      Cudnn().cudnnCreateTensorDescriptor(descriptor_.place()), "making a tensor descriptor"));
}

LegacyTensor::LegacyTensor(DataType type, const Dims& dims, const Strides& strides)
    : LegacyTensor() {
  // The legacy API has four dims at least: a dim of one is put after the channels.
  std::array<int, kMaxRank + 1> sizes{};
  std::array<int, kMaxRank + 1> steps{};
  int count = 0;
  for (int i = 0; i < dims.size(); ++i) {
    while (i == 2 && count + dims.size() - i < 4) {
      sizes.at(count) = 1;
      steps.at(count++) = static_cast<int>(dims[2] * strides[2]);
    }
    sizes.at(count) = static_cast<int>(dims[i]);
    steps.at(count++) = static_cast<int>(strides[i]);
  }
  while (count < 4) {
    sizes.at(count) = 1;
    steps.at(count++) = 1;
  }
  Require(ToStatus(
      Cudnn().cudnnSetTensorNdDescriptor(
          descriptor_.raw(), cuda::ToCudnn(type), count, sizes.data(), steps.data()),
      "describing a tensor"));
}

LegacyTensor LegacyTensor::ChannelsOf(const LegacyTensor& tensor) {
  LegacyTensor channels;
  Require(ToStatus(
      Cudnn().cudnnDeriveBNTensorDescriptor(channels.raw(), tensor.raw(), kMode),
      "describing the parameters"));
  return channels;
}

LegacyBiasGradient::LegacyBiasGradient(
    const Gpu& gpu,
    DataType type,
    const Dims& dY,
    const Strides& strides)
    : handle_(HandleOf(gpu)),
      dy_(type, dY, strides),
      db_(type, {1, dY[1]}, {dY[1], 1}),
      is_double_(type == DataType::kDouble) {
  const cuda::DynamicLibrary library = Take(cuda::DynamicLibrary::Open({cuda::LoadCudnn()->path}));
  Require(library.Find("cudnnConvolutionBackwardBias", &function_));
}

Status LegacyBiasGradient::Run(const void* dY, void* dB) const {
  const Factors factors(is_double_);
  return ToStatus(
      function_(handle_, factors.one, dy_.raw(), dY, factors.zero, db_.raw(), dB),
      "running the legacy bias gradient");
}

LegacyBatchNorm::LegacyBatchNorm(
    const Gpu& gpu,
    DataType type,
    const Dims& dims,
    const Strides& strides)
    : handle_(HandleOf(gpu)),
      tensor_(type, dims, strides),
      channels_(LegacyTensor::ChannelsOf(tensor_)),
      is_double_(type == DataType::kDouble) {}

Status LegacyBatchNorm::Forward(const LegacyBatchNormArguments& a) const {
  const Factors factors(is_double_);
  return ToStatus(
      Cudnn().cudnnBatchNormalizationForwardTraining(
          handle_, kMode, factors.one, factors.zero, tensor_.raw(), a.X, tensor_.raw(), a.Y,
          channels_.raw(), a.scale, a.B, kAverageFactor, a.running_mean, a.running_var, kEpsilon,
          a.saved_mean, a.saved_inv_std),
      "running the legacy batch normalization");
}

Status LegacyBatchNorm::Backward(const LegacyBatchNormArguments& a) const {
  const Factors factors(is_double_);
  return ToStatus(
      Cudnn().cudnnBatchNormalizationBackward(
          handle_, kMode, factors.one, factors.zero, factors.one, factors.zero, tensor_.raw(), a.X,
          tensor_.raw(), a.dY, tensor_.raw(), a.dX, channels_.raw(), a.scale, a.dScale, a.dBias,
          kEpsilon, a.saved_mean, a.saved_inv_std),
      "running the gradient of the legacy batch normalization");
}

}  // namespace gradsmith::bench
