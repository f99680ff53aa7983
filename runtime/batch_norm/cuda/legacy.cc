#include "batch_norm/cuda/legacy.h"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "cuda/cudnn.h"
#include "cuda/legacy_descriptor.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::batch_norm {

namespace {

using cuda::Cudnn;
using cuda::TensorDescriptor;
using cuda::ToStatus;

// The op takes any epsilon from zero on.
static_assert(CUDNN_BN_MIN_EPSILON <= 0);
/// The gradient does not use it: it is given the saved statistics.
constexpr double kUnusedEpsilon = 1e-5;

Status DescribeTensor(const StagedForm& form, TensorDescriptor* descriptor) {
  const TensorRef& X = XOf(form.inner);
  const Dims dims = Expanded(X.dims);
  const Strides strides = DenseStrides(dims, form.channels_last);
  if (NumElements(dims) > std::numeric_limits<int>::max()) {
    return Unsupported("the legacy API counts elements in 32 bits");
  }
  std::array<int, kMaxRank> sizes{};
  std::array<int, kMaxRank> steps{};
  for (int i = 0; i < dims.size(); ++i) {
    sizes.at(i) = static_cast<int>(dims[i]);
    steps.at(i) = static_cast<int>(strides[i]);
  }
  if (Status status = ToStatus(
          Cudnn().cudnnCreateTensorDescriptor(descriptor->place()), "making a tensor descriptor");
      !status.ok()) {
    return status;
  }
  return ToStatus(
      Cudnn().cudnnSetTensorNdDescriptor(
          descriptor->raw(), cuda::ToCudnn(X.type), dims.size(), sizes.data(), steps.data()),
      "describing a tensor");
}

Status DeriveParameters(
    const TensorDescriptor& tensor,
    cudnnBatchNormMode_t mode,
    TensorDescriptor* descriptor) {
  if (Status status = ToStatus(
          Cudnn().cudnnCreateTensorDescriptor(descriptor->place()), "making a tensor descriptor");
      !status.ok()) {
    return status;
  }
  return ToStatus(
      Cudnn().cudnnDeriveBNTensorDescriptor(descriptor->raw(), tensor.raw(), mode),
      "describing the parameters");
}

/// Factor is a scaling factor in the type that cuDNN reads it in.
class Factor {
 public:
  Factor(double value, DataType type)
      : wide_(value), narrow_(static_cast<float>(value)), is_wide_(type == DataType::kDouble) {}
  [[nodiscard]] const void* get() const {
    return is_wide_ ? static_cast<const void*>(&wide_) : &narrow_;
  }

 private:
  double wide_;
  float narrow_;
  bool is_wide_;
};

class LegacyPlan final : public internal::Plan {
 public:
  LegacyPlan(
      const cuda::DeviceInfo& device,
      cuda::CudnnHandle& handle,
      const StagedForm& form,
      cudnnBatchNormMode_t mode,
      TensorDescriptor tensor,
      TensorDescriptor parameter)
      : device_(device),
        handle_(handle),
        task_(form.inner),
        mode_(mode),
        tensor_(std::move(tensor)),
        parameter_(std::move(parameter)) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    if (Status status = handle_.UseStream(launch.stream); !status.ok()) {
      return status;
    }
    return DirectionOf(task_) == Direction::kForward ? RunForward(launch) : RunBackward(launch);
  }

 private:
  /// cuDNN updates running statistics in place: what they were before is copied to where they will
  /// be.
  Status CopyRunning(const internal::Launch& launch, int input, int output) {
    const TensorRef& described = task_.tensors[output];
    if (!described.present || launch.operands[input] == launch.operands[output]) {
      return {};
    }
    const ConstTensorRef from(
        described.type, launch.operands[input], described.dims, described.strides);
    const TensorRef to(described.type, launch.operands[output], described.dims, described.strides);
    return cuda::CopyTensor(device_, launch.stream, from, to);
  }

  /// An operand's address; null where the form has none.
  [[nodiscard]] void* At(const internal::Launch& launch, int operand) const {
    return task_.tensors[operand].present ? launch.operands[operand] : nullptr;
  }

  Status RunForward(const internal::Launch& launch) {
    using namespace forward;  // NOLINT(google-build-using-namespace): names of one list
    Status status = CopyRunning(launch, kRunningMean, kNewRunningMean);
    if (status.ok()) {
      status = CopyRunning(launch, kRunningVar, kNewRunningVar);
    }
    if (!status.ok()) {
      return status;
    }
    const Factor one(1, XOf(task_).type);
    const Factor zero(0, XOf(task_).type);
    const cudnnStatus_t result = Cudnn().cudnnBatchNormalizationForwardTraining(
        handle_.raw(), mode_, one.get(), zero.get(), tensor_.raw(), At(launch, kX), tensor_.raw(),
        At(launch, kY), parameter_.raw(), At(launch, kScale), At(launch, kB),
        1 - launch.scalars[kMomentum], At(launch, kNewRunningMean), At(launch, kNewRunningVar),
        launch.scalars[kEpsilon], At(launch, kSavedMean), At(launch, kSavedInvStd));
    return result == CUDNN_STATUS_SUCCESS
               ? Status()
               : ToStatus(result, "running the legacy batch normalization");
  }

  Status RunBackward(const internal::Launch& launch) {
    using namespace backward;  // NOLINT(google-build-using-namespace): names of one list
    const DataType type = XOf(task_).type;
    const Factor one(1, type);
    const Factor data_factor(task_.tensors[kDX].accumulate ? 1 : 0, type);
    const Factor parameter_factor(task_.tensors[kDScale].accumulate ? 1 : 0, type);
    const cudnnStatus_t result = Cudnn().cudnnBatchNormalizationBackward(
        handle_.raw(), mode_, one.get(), data_factor.get(), one.get(), parameter_factor.get(),
        tensor_.raw(), At(launch, kX), tensor_.raw(), At(launch, kDY), tensor_.raw(),
        At(launch, kDX), parameter_.raw(), At(launch, kScale), At(launch, kDScale),
        At(launch, kDBias), kUnusedEpsilon, At(launch, kSavedMean), At(launch, kSavedInvStd));
    return result == CUDNN_STATUS_SUCCESS
               ? Status()
               : ToStatus(result, "running the gradient of the legacy batch normalization");
  }

  const cuda::DeviceInfo& device_;
  cuda::CudnnHandle& handle_;
  cuda::OpTask task_;
  cudnnBatchNormMode_t mode_;
  TensorDescriptor tensor_;
  TensorDescriptor parameter_;
};

}  // namespace

Result<std::unique_ptr<internal::Plan>> BuildLegacyPlan(
    const cuda::DeviceInfo& device,
    cuda::CudnnHandle& handle,
    const StagedForm& form,
    bool persistent) {
  const cudnnBatchNormMode_t mode =
      persistent ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
  TensorDescriptor tensor;
  TensorDescriptor parameter;
  Status status = DescribeTensor(form, &tensor);
  if (status.ok()) {
    status = DeriveParameters(tensor, mode, &parameter);
  }
  if (!status.ok()) {
    return status;
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<LegacyPlan>(
      device, handle, form, mode, std::move(tensor), std::move(parameter)));
}

}  // namespace gradsmith::batch_norm
