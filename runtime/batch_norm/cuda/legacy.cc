#include "batch_norm/cuda/legacy.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
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

/// How cuDNN is called: what describes the large tensors and the parameters, and by which
/// functions.
struct LegacyCall {
  cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
  TensorDescriptor tensor;
  TensorDescriptor parameter;
  /// Whether the functions that end in Ex are called.
  bool extended = false;
  std::size_t workspace = 0;
};

bool IsExtended(const StagedForm& form, bool persistent) {
  return persistent && form.channels_last;
}

/// What the extended functions' forward would keep for their gradient: nothing, as a rule. We have
/// not called that forward.
Status KeepsNothing(cuda::CudnnHandle& handle, const LegacyCall& call) {
  std::size_t kept = 0;
  const Status status = ToStatus(
      Cudnn().cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
          handle.raw(), call.mode, CUDNN_BATCHNORM_OPS_BN, nullptr, call.tensor.raw(), &kept),
      "asking what batch normalization keeps");
  return !status.ok() || kept == 0
             ? status
             : Unsupported("its forward keeps " + std::to_string(kept) + " bytes for the gradient");
}

Status AskForWorkspace(cuda::CudnnHandle& handle, bool is_forward, LegacyCall* call) {
  cudnnTensorDescriptor_t tensor = call->tensor.raw();
  return ToStatus(
      is_forward ? Cudnn().cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                       handle.raw(), call->mode, CUDNN_BATCHNORM_OPS_BN, tensor, nullptr, tensor,
                       call->parameter.raw(), nullptr, &call->workspace)
                 : Cudnn().cudnnGetBatchNormalizationBackwardExWorkspaceSize(
                       handle.raw(), call->mode, CUDNN_BATCHNORM_OPS_BN, tensor, nullptr, tensor,
                       nullptr, tensor, call->parameter.raw(), nullptr, &call->workspace),
      "asking for the workspace of batch normalization");
}

Result<LegacyCall> MakeCall(cuda::CudnnHandle& handle, const StagedForm& form, bool persistent) {
  LegacyCall call;
  call.mode = persistent ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
  call.extended = IsExtended(form, persistent);
  Status status = DescribeTensor(form, &call.tensor);
  if (status.ok()) {
    status = DeriveParameters(call.tensor, call.mode, &call.parameter);
  }
  if (status.ok() && call.extended) {
    status = KeepsNothing(handle, call);
  }
  if (status.ok() && call.extended) {
    status = AskForWorkspace(handle, DirectionOf(form.inner) == Direction::kForward, &call);
  }
  if (!status.ok()) {
    return status;
  }
  return call;
}

class LegacyPlan final : public internal::Plan {
 public:
  LegacyPlan(
      const cuda::DeviceInfo& device,
      cuda::CudnnHandle& handle,
      const StagedForm& form,
      LegacyCall call)
      : device_(device), handle_(handle), task_(form.inner), call_(std::move(call)) {}

  [[nodiscard]] std::size_t workspace() const override { return call_.workspace; }

  Status Run(const internal::Launch& launch) override {
    if (Status status = handle_.UseStream(launch.stream); !status.ok()) {
      return status;
    }
    if (DirectionOf(task_) == Direction::kBackward) {
      return ToStatus(Backward(launch), "running the gradient of the legacy batch normalization");
    }
    Status status = CopyRunning(launch, forward::kRunningMean, forward::kNewRunningMean);
    if (status.ok()) {
      status = CopyRunning(launch, forward::kRunningVar, forward::kNewRunningVar);
    }
    return status.ok() ? ToStatus(Forward(launch), "running the legacy batch normalization")
                       : status;
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

  cudnnStatus_t Forward(const internal::Launch& launch) {
    using namespace forward;  // NOLINT(google-build-using-namespace): names of one list
    const Factor one(1, XOf(task_).type);
    const Factor zero(0, XOf(task_).type);
    cudnnTensorDescriptor_t tensor = call_.tensor.raw();
    cudnnTensorDescriptor_t parameter = call_.parameter.raw();
    const double weight = 1 - launch.scalars[kMomentum];
    const double epsilon = launch.scalars[kEpsilon];
    if (call_.extended) {
      return Cudnn().cudnnBatchNormalizationForwardTrainingEx(
          handle_.raw(), call_.mode, CUDNN_BATCHNORM_OPS_BN, one.get(), zero.get(), tensor,
          At(launch, kX), nullptr, nullptr, tensor, At(launch, kY), parameter, At(launch, kScale),
          At(launch, kB), weight, At(launch, kNewRunningMean), At(launch, kNewRunningVar), epsilon,
          At(launch, kSavedMean), At(launch, kSavedInvStd), nullptr, launch.workspace,
          call_.workspace, nullptr, 0);
    }
    return Cudnn().cudnnBatchNormalizationForwardTraining(
        handle_.raw(), call_.mode, one.get(), zero.get(), tensor, At(launch, kX), tensor,
        At(launch, kY), parameter, At(launch, kScale), At(launch, kB), weight,
        At(launch, kNewRunningMean), At(launch, kNewRunningVar), epsilon, At(launch, kSavedMean),
        At(launch, kSavedInvStd));
  }

  cudnnStatus_t Backward(const internal::Launch& launch) {
    using namespace backward;  // NOLINT(google-build-using-namespace): names of one list
    const DataType type = XOf(task_).type;
    const Factor one(1, type);
    const Factor data_factor(task_.tensors[kDX].accumulate ? 1 : 0, type);
    const Factor parameter_factor(task_.tensors[kDScale].accumulate ? 1 : 0, type);
    cudnnTensorDescriptor_t tensor = call_.tensor.raw();
    cudnnTensorDescriptor_t parameter = call_.parameter.raw();
    if (call_.extended) {
      return Cudnn().cudnnBatchNormalizationBackwardEx(
          handle_.raw(), call_.mode, CUDNN_BATCHNORM_OPS_BN, one.get(), data_factor.get(),
          one.get(), parameter_factor.get(), tensor, At(launch, kX), nullptr, nullptr, tensor,
          At(launch, kDY), nullptr, nullptr, tensor, At(launch, kDX), parameter, At(launch, kScale),
          nullptr, At(launch, kDScale), At(launch, kDBias), kUnusedEpsilon, At(launch, kSavedMean),
          At(launch, kSavedInvStd), nullptr, launch.workspace, call_.workspace, nullptr, 0);
    }
    return Cudnn().cudnnBatchNormalizationBackward(
        handle_.raw(), call_.mode, one.get(), data_factor.get(), one.get(), parameter_factor.get(),
        tensor, At(launch, kX), tensor, At(launch, kDY), tensor, At(launch, kDX), parameter,
        At(launch, kScale), At(launch, kDScale), At(launch, kDBias), kUnusedEpsilon,
        At(launch, kSavedMean), At(launch, kSavedInvStd));
  }

  const cuda::DeviceInfo& device_;
  cuda::CudnnHandle& handle_;
  cuda::OpTask task_;
  LegacyCall call_;
};

}  // namespace

Result<std::size_t>
LegacyWorkspace(cuda::CudnnHandle& handle, const StagedForm& form, bool persistent) {
  if (!IsExtended(form, persistent)) {
    return std::size_t{0};
  }
  const Result<LegacyCall> call = MakeCall(handle, form, persistent);
  if (!call.ok()) {
    return call.status();
  }
  return call->workspace;
}

Result<std::unique_ptr<internal::Plan>> BuildLegacyPlan(
    const cuda::DeviceInfo& device,
    cuda::CudnnHandle& handle,
    const StagedForm& form,
    bool persistent) {
  Result<LegacyCall> call = MakeCall(handle, form, persistent);
  if (!call.ok()) {
    return call.status();
  }
  return std::unique_ptr<internal::Plan>(
      std::make_unique<LegacyPlan>(device, handle, form, std::move(*call)));
}

}  // namespace gradsmith::batch_norm
