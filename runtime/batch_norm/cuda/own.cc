#include "batch_norm/cuda/own.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "batch_norm/cuda/arguments.h"
#include "batch_norm/cuda/finish.h"
#include "batch_norm/cuda/own_plan.h"
#include "batch_norm/cuda/own_slices.h"
#include "batch_norm/cuda/resident.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::batch_norm {
namespace {

using internal::CeilDivide;
using own::IsShort;
using own::MakePlan;
using own::Path;
using own::Plan;
using own::Policy;
using own::PolicyOf;
using own::SamplesPerChannel;
using own::ShortPlan;
using own::SumAlike;

// ---------------------------------------------------------------------------------------------
// Workspace
// ---------------------------------------------------------------------------------------------

/// Two sums of each slice.
constexpr std::int64_t kPartials = 2;

/// The coefficients, then the slices' sums, whichever the path: strides of tensors that are not
/// known yet have a say in it.
std::size_t WorkspaceBytes(const cuda::DeviceInfo& device, const ConstTensorRef& X) {
  const std::int64_t channels = X.dims[1];
  const std::int64_t samples = SamplesPerChannel(X.dims);
  if (channels == 0) {
    return 0;
  }
  return static_cast<std::size_t>(
             (channels * own::kAllCoefficients) +
             (kPartials * own::MostPartials(PolicyOf(device), channels, samples, X.type))) *
         sizeof(double);
}

struct Workspace {
  Workspace(void* data, std::int64_t channels)
      : coefficients(static_cast<double*>(data)),
        partials(coefficients + (own::kAllCoefficients * channels)) {}

  double* coefficients;
  double* partials;
};

// ---------------------------------------------------------------------------------------------
// Launches
// ---------------------------------------------------------------------------------------------

/// Steps that have a kernel for each path and element type.
enum class Step : unsigned char {
  kMoments,
  kBiasSums,
  kGradientSums,
  kNormalize,
  kInputGradient,
  kReluGradientSums,
  kNormalizeRelu,
  kReluInputGradient,
};
/// Those before are in the image of batch normalization alone.
constexpr int kFirstOfRelu = static_cast<int>(Step::kReluGradientSums);

constexpr std::array<std::array<std::string_view, own::kPaths>, 8> kNames = {{
    {"gradsmith_bn_moments_rows", "gradsmith_bn_moments_columns", "gradsmith_bn_moments_vectors"},
    {"gradsmith_bn_bias_sums_rows", "gradsmith_bn_bias_sums_columns",
     "gradsmith_bn_bias_sums_vectors"},
    {"gradsmith_bn_gradient_sums_rows", "gradsmith_bn_gradient_sums_columns",
     "gradsmith_bn_gradient_sums_vectors"},
    {"gradsmith_bn_normalize_rows", "gradsmith_bn_normalize_columns",
     "gradsmith_bn_normalize_vectors"},
    {"gradsmith_bn_input_gradient_rows", "gradsmith_bn_input_gradient_columns",
     "gradsmith_bn_input_gradient_vectors"},
    {"gradsmith_bn_relu_gradient_sums_rows", "gradsmith_bn_relu_gradient_sums_columns",
     "gradsmith_bn_relu_gradient_sums_vectors"},
    {"gradsmith_bn_relu_normalize_rows", "gradsmith_bn_relu_normalize_columns",
     "gradsmith_bn_relu_normalize_vectors"},
    {"gradsmith_bn_relu_input_gradient_rows", "gradsmith_bn_relu_input_gradient_columns",
     "gradsmith_bn_relu_input_gradient_vectors"},
}};

Result<CUkernel> FindKernel(Step step, Path path, DataType type) {
  using Table = cuda::KernelTable<kNames.size() * own::kPaths>;
  static auto& plain = *new Table(cuda::kImage_batch_norm);
  static auto& relu = *new Table(cuda::kImage_batch_norm_relu);
  const int i = static_cast<int>(step);
  const int j = static_cast<int>(path);
  return (i < kFirstOfRelu ? plain : relu).Find((i * own::kPaths) + j, kNames[i][j], type);
}

/// The kernels that do all of a call, one for each activation and element type.
class WholeKernels {
 public:
  WholeKernels(std::string_view plain, std::string_view relu) : names_({plain, relu}) {}

  Result<CUkernel> Find(Activation activation, DataType type) {
    auto& table = activation == Activation::kNone ? plain_ : relu_;
    return table.Find(0, names_.at(static_cast<int>(activation)), type);
  }

 private:
  cuda::KernelTable<1> plain_{cuda::kImage_batch_norm};
  cuda::KernelTable<1> relu_{cuda::kImage_batch_norm_relu};
  std::array<std::string_view, 2> names_;
};

template <typename... Arguments>
Status RunStep(
    CUstream stream,
    Step step,
    DataType type,
    const Plan& plan,
    const Arguments&... arguments) {
  const Result<CUkernel> kernel = FindKernel(step, plan.path, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.blocks_x),
      .blocks_y = static_cast<unsigned>(plan.walk.slices),
      .threads = own::kThreads};
  return cuda::Launch(*kernel, shape, stream, plan.walk, plan.operands, arguments...);
}

/// `known` keeps the kernel once it is found.
template <typename Finish>
Status RunFinish(
    CUstream stream,
    const char* name,
    std::atomic<CUkernel>* known,
    const Finish& finish,
    const Workspace& workspace) {
  CUkernel kernel = known->load(std::memory_order_acquire);
  if (kernel == nullptr) {
    const Result<CUkernel> found = cuda::FindKernel({&cuda::kImage_batch_norm}, name);
    if (!found.ok()) {
      return found.status();
    }
    kernel = *found;
    known->store(kernel, std::memory_order_release);
  }
  const std::int64_t blocks = CeilDivide(finish.walk.channels, own::kFinishChannels);
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(std::min(blocks, own::kMaxBlocksX)),
      .threads = own::kFinishChannels * own::kFinishLanes};
  const double* partials = workspace.partials;
  return cuda::Launch(kernel, shape, stream, finish, partials, workspace.coefficients);
}

/// The whole of a forward call.
Status RunWhole(
    CUstream stream,
    Activation activation,
    DataType type,
    const Plan& plan,
    own::ForwardFinish finish,
    const Workspace& workspace) {
  static auto& kernels = *new WholeKernels("gradsmith_bn_forward", "gradsmith_bn_relu_forward");
  const Result<CUkernel> kernel = kernels.Find(activation, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  // The output may have a say in which dims are one.
  finish.walk = plan.walk;
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.blocks_x), .threads = own::kThreads};
  return cuda::Launch(*kernel, shape, stream, finish, plan.operands, workspace.coefficients);
}

/// The whole of a call, a thread for each channel.
template <typename Finish>
Status RunShort(
    CUstream stream,
    Activation activation,
    DataType type,
    const Plan& plan,
    const Finish& finish) {
  constexpr bool kForward = std::is_same_v<Finish, own::ForwardFinish>;
  static auto& kernels =
      kForward
          ? *new WholeKernels("gradsmith_bn_short_forward", "gradsmith_bn_relu_short_forward")
          : *new WholeKernels("gradsmith_bn_short_backward", "gradsmith_bn_relu_short_backward");
  const Result<CUkernel> kernel = kernels.Find(activation, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan.blocks_x), .threads = own::kShortThreads};
  return cuda::Launch(*kernel, shape, stream, finish, plan.operands);
}

Status
FinishForward(CUstream stream, const own::ForwardFinish& finish, const Workspace& workspace) {
  static std::atomic<CUkernel> kernel = nullptr;
  return RunFinish(stream, "gradsmith_bn_finish_forward", &kernel, finish, workspace);
}

Status
FinishBackward(CUstream stream, const own::BackwardFinish& finish, const Workspace& workspace) {
  static std::atomic<CUkernel> kernel = nullptr;
  return RunFinish(stream, "gradsmith_bn_finish_backward", &kernel, finish, workspace);
}

/// Y from the coefficients.
Status Normalize(
    const Policy& policy,
    CUstream stream,
    Activation activation,
    const ConstTensorRef& X,
    const TensorRef& Y,
    const Workspace& workspace) {
  const ConstTensorRef output = Y;
  const Plan plan = MakePlan(policy, {nullptr, &X, &output});
  const double* coefficients = workspace.coefficients;
  const Step step = activation == Activation::kNone ? Step::kNormalize : Step::kNormalizeRelu;
  return RunStep(stream, step, X.type, plan, coefficients);
}

Plan InputGradientPlan(
    const Policy& policy,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const TensorRef& dX) {
  const ConstTensorRef output = dX;
  Plan plan = MakePlan(policy, {inputs.dY, inputs.X, &output});
  plan.operands.accumulate = dX.accumulate;
  return plan;
}

/// dX from the coefficients.
Status InputGradient(
    const Policy& policy,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const TensorRef& dX,
    const Workspace& workspace) {
  const Plan plan = InputGradientPlan(policy, inputs, dX);
  const double* coefficients = workspace.coefficients;
  const Step step =
      ActivationOf(inputs) == Activation::kNone ? Step::kInputGradient : Step::kReluInputGradient;
  return RunStep(stream, step, dX.type, plan, coefficients);
}

/// The whole of a gradient in one launch; kUnsupported where it cannot be, as where what is asked
/// for, or how it lies, has the map go another way than the sums.
Status RunAtOnce(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    const Plan& sums,
    own::BackwardFinish finish,
    const Workspace& workspace) {
  if (sums.path != Path::kVectors || !IsPresent(outputs.dX)) {
    return {StatusCode::kUnsupported, {}};
  }
  const Plan all = InputGradientPlan(PolicyOf(device), inputs, *outputs.dX);
  const Activation activation = ActivationOf(inputs);
  const DataType type = inputs.dY->type;
  // A map that is cut finer is quicker apart.
  if (!SumAlike(sums, all) || all.walk.slices != sums.walk.slices ||
      !IsResident(device, activation, type, all.blocks_x, all.walk, all.operands)) {
    return {StatusCode::kUnsupported, {}};
  }
  finish.walk = all.walk;
  return RunResident(
      device, stream, activation, type, all.blocks_x, finish, all.operands, workspace.partials,
      workspace.coefficients);
}

/// A thread for each channel.
Status ShortBackward(
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    bool products) {
  const ConstTensorRef dX = IsPresent(outputs.dX) ? ConstTensorRef(*outputs.dX) : ConstTensorRef();
  Plan plan = ShortPlan({inputs.dY, products ? inputs.X : nullptr, dX.present ? &dX : nullptr});
  plan.operands.accumulate = dX.accumulate;
  return RunShort(
      stream, ActivationOf(inputs), inputs.dY->type, plan,
      MakeBackwardFinish(inputs, outputs, plan, products));
}

}  // namespace

std::size_t ForwardWorkspace(const cuda::DeviceInfo& device, const ConstTensorRef& X) {
  return WorkspaceBytes(device, X);
}

std::size_t BackwardWorkspace(const cuda::DeviceInfo& device, const ConstTensorRef& X) {
  return WorkspaceBytes(device, X);
}

Status Forward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    Activation activation,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    void* workspace) {
  const Policy& policy = PolicyOf(device);
  const ConstTensorRef& X = *inputs.X;
  if (X.dims[1] == 0) {
    return {};
  }
  if (IsShort(policy, X)) {
    const ConstTensorRef Y = IsPresent(outputs.Y) ? ConstTensorRef(*outputs.Y) : ConstTensorRef();
    const Plan plan = ShortPlan({nullptr, &X, Y.present ? &Y : nullptr});
    return RunShort(
        stream, activation, X.type, plan, MakeForwardFinish(attributes, inputs, outputs, plan));
  }
  const Workspace parts(workspace, X.dims[1]);
  Plan plan;
  plan.walk = own::EmptyWalk(X.dims);
  const bool empty = SamplesPerChannel(X.dims) == 0;
  if (!empty) {
    plan = MakePlan(policy, {nullptr, &X, nullptr});
  }
  const own::ForwardFinish finish = MakeForwardFinish(attributes, inputs, outputs, plan);
  if (plan.whole && IsPresent(outputs.Y)) {
    const ConstTensorRef Y = *outputs.Y;
    if (const Plan all = MakePlan(policy, {nullptr, &X, &Y}); SumAlike(plan, all)) {
      return RunWhole(stream, activation, X.type, all, finish, parts);
    }
  }
  if (!empty) {
    if (Status status =
            RunStep(stream, Step::kMoments, X.type, plan, own::Normalization{}, parts.partials);
        !status.ok()) {
      return status;
    }
  }
  if (Status status = FinishForward(stream, finish, parts); !status.ok()) {
    return status;
  }
  return empty || !IsPresent(outputs.Y)
             ? Status()
             : Normalize(policy, stream, activation, X, *outputs.Y, parts);
}

Status Backward(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const BatchNormalizationReluGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    void* workspace) {
  const Policy& policy = PolicyOf(device);
  const Dims& dims = inputs.dY->dims;
  const Activation activation = ActivationOf(inputs);
  const bool has_activation = activation != Activation::kNone;
  const bool products = has_activation || IsPresent(outputs.dX) || IsPresent(outputs.dScale);
  if (dims[1] == 0 || (!products && !IsPresent(outputs.dBias))) {
    return {};
  }
  if (IsShort(policy, *inputs.dY) && (!IsPresent(inputs.X) || IsShort(policy, *inputs.X))) {
    return ShortBackward(stream, inputs, outputs, products);
  }
  const Workspace parts(workspace, dims[1]);
  Plan plan;
  plan.walk = own::EmptyWalk(dims);
  const bool empty = SamplesPerChannel(dims) == 0;
  if (!empty) {
    plan = MakePlan(policy, {inputs.dY, products ? inputs.X : nullptr, nullptr});
  }
  const own::BackwardFinish finish = MakeBackwardFinish(inputs, outputs, plan, products);
  Status status = RunAtOnce(device, stream, inputs, outputs, plan, finish, parts);
  if (status.code() != StatusCode::kUnsupported) {
    return status;
  }
  if (!empty) {
    const Step alone = products ? Step::kGradientSums : Step::kBiasSums;
    const Step step = has_activation ? Step::kReluGradientSums : alone;
    status = RunStep(stream, step, inputs.dY->type, plan, finish.normalization, parts.partials);
    if (!status.ok()) {
      return status;
    }
  }
  status = FinishBackward(stream, finish, parts);
  if (!status.ok()) {
    return status;
  }
  return empty || !IsPresent(outputs.dX)
             ? Status()
             : InputGradient(policy, stream, inputs, *outputs.dX, parts);
}

}  // namespace gradsmith::batch_norm
