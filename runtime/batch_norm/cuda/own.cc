#include "batch_norm/cuda/own.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "batch_norm/cuda/arguments.h"
#include "core/grid.h"
#include "cuda/kernel_table.h"

namespace gradsmith::batch_norm {
namespace {

using internal::Grid;
using own::Operand;
using own::Operands;
using own::Parameter;
using own::Walk;

static_assert(own::kSampleDims == Grid::kRank && own::kInner == Grid::kLast);
static_assert(static_cast<int>(DataType::kFloat) == own::kFloat);
static_assert(static_cast<int>(DataType::kDouble) == own::kDouble);
static_assert(static_cast<int>(DataType::kMLFloat16) == own::kHalf);
static_assert(static_cast<int>(DataType::kBFloat16) == own::kBFloat16);

std::int64_t CeilDivide(std::int64_t a, std::int64_t b) {
  return a == 0 ? 0 : ((a - 1) / b) + 1;
}

template <typename Ref>
bool IsPresent(const Ref* tensor) {
  return tensor != nullptr && tensor->present;
}

// ---------------------------------------------------------------------------------------------
// Plans
// ---------------------------------------------------------------------------------------------

/// How a kernel's threads lie. The numbers are part of the kernels' places in the tables below.
enum class Path : unsigned char {
  kRows,      ///< along the samples of a channel
  kChannels,  ///< along channels
  kVectors,   ///< along channels, several for each thread
};
constexpr int kPaths = 3;

/// What a GPU needs to be busy, whichever it is: the order of sums must not depend on it.
constexpr std::int64_t kRowBlocks = 1024;
constexpr std::int64_t kChannelBlocks = 512;
/// More terms than these and a thread's sum gets coarse.
constexpr std::int64_t kLongestSum = 1024;
/// Fewer and a slice is not worth its block.
constexpr std::int64_t kShortestRowSlice = 2048;
constexpr std::int64_t kShortestChannelSum = 8;
constexpr std::int64_t kMaxSlices = 1 << 15;
constexpr std::int64_t kMaxBlocksX = 1 << 30;

std::int64_t PerVector(DataType type) {
  return own::kVectorBytes / static_cast<std::int64_t>(SizeOf(type));
}

/// PickWidth returns the power of two up to `largest` whose multiples waste the fewest threads on
/// `count`; from 32 on the larger one where they waste alike.
int PickWidth(std::int64_t count, int largest) {
  int width = 1;
  while (width < count && width < 32) {
    width *= 2;
  }
  for (int wider = 2 * width; width >= 32 && wider <= largest; wider *= 2) {
    if (CeilDivide(count, wider) * wider <= CeilDivide(count, width) * width) {
      width = wider;
    }
  }
  return width;
}

std::int64_t ClampSlices(std::int64_t wanted, std::int64_t longest, std::int64_t shortest) {
  return std::clamp<std::int64_t>(std::max(std::min(wanted, shortest), longest), 1, kMaxSlices);
}

std::int64_t RowSlices(std::int64_t channels, std::int64_t samples) {
  return ClampSlices(
      CeilDivide(kRowBlocks, channels), CeilDivide(samples, own::kThreads * kLongestSum),
      CeilDivide(samples, kShortestRowSlice));
}

int ChannelWidth(std::int64_t channels, std::int64_t per_thread) {
  return PickWidth(CeilDivide(channels, per_thread), 64);
}

std::int64_t Tiles(std::int64_t channels, std::int64_t per_thread) {
  return CeilDivide(channels, ChannelWidth(channels, per_thread) * per_thread);
}

std::int64_t ChannelSlices(std::int64_t channels, std::int64_t samples, std::int64_t per_thread) {
  const std::int64_t lanes = own::kThreads / ChannelWidth(channels, per_thread);
  return ClampSlices(
      CeilDivide(kChannelBlocks, Tiles(channels, per_thread)),
      CeilDivide(samples, lanes * kLongestSum), CeilDivide(samples, lanes * kShortestChannelSum));
}

std::int64_t SamplesPerChannel(const Dims& dims) {
  std::int64_t samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1 : dims[i];
  }
  return samples;
}

/// The tensors that a kernel goes through: dY, X and the output, null where it does not use them.
using Tensors = std::array<const ConstTensorRef*, 3>;

Grid SampleGrid(const ConstTensorRef& tensor) {
  Grid grid;
  grid.counts[0] = tensor.dims[0];
  grid.strides[0] = tensor.strides[0];
  for (int i = 2; i < tensor.rank(); ++i) {
    grid.counts[i - 1] = tensor.dims[i];
    grid.strides[i - 1] = tensor.strides[i];
  }
  return grid;
}

/// Plan is how to go through some tensors together.
struct Plan {
  Path path = Path::kRows;
  Walk walk{};
  Operands operands{};
  std::int64_t blocks_x = 1;
};

/// Fills in the sample dims, made as few as serve all tensors.
void SetDims(const Tensors& tensors, const ConstTensorRef& leader, Plan* plan) {
  std::array<Operand*, 3> operands = {
      &plan->operands.dY, &plan->operands.X, &plan->operands.output};
  std::array<Grid, 3> grids;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    grids[k] = SampleGrid(tensors[k] != nullptr ? *tensors[k] : leader);
  }
  internal::Collapse(grids);
  plan->walk.channels = leader.dims[1];
  plan->walk.samples = SamplesPerChannel(leader.dims);
  std::ranges::copy(grids[0].counts, std::begin(plan->walk.counts));
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k] != nullptr) {
      operands[k]->data = const_cast<void*>(tensors[k]->data);
      operands[k]->channel_stride = tensors[k]->strides[1];
      std::ranges::copy(grids[k].strides, std::begin(operands[k]->strides));
    }
  }
}

/// Whether channels can be taken so many at once from every row of channels: by their strides, as
/// the order of sums must not depend on addresses. Absent operands have zeros.
bool HasVectors(const Tensors& tensors, const Plan& plan, std::int64_t per_vector) {
  const std::array<const Operand*, 3> operands = {
      &plan.operands.dY, &plan.operands.X, &plan.operands.output};
  bool result = plan.walk.channels % per_vector == 0;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    result = result && (tensors[k] == nullptr || operands[k]->channel_stride == 1) &&
             std::ranges::all_of(operands[k]->strides, [&](std::int64_t stride) {
               return stride % per_vector == 0;
             });
  }
  return result;
}

Path ChoosePath(
    const Tensors& tensors,
    const Plan& plan,
    const Operand& leader,
    std::int64_t per_vector) {
  const Walk& walk = plan.walk;
  const bool along_channels =
      walk.channels > 1 &&
      (walk.counts[own::kInner] == 1 || leader.channel_stride < leader.strides[own::kInner]);
  if (!along_channels) {
    return Path::kRows;
  }
  return HasVectors(tensors, plan, per_vector) ? Path::kVectors : Path::kChannels;
}

void CutRows(std::int64_t per_vector, Plan* plan) {
  Walk& walk = plan->walk;
  const std::int64_t inner = walk.counts[own::kInner];
  const std::int64_t length = std::min(inner, own::kPieceElements);
  // Rows that begin anywhere have one chunk more.
  const std::int64_t odd = inner % per_vector == 0 ? 0 : per_vector - 1;
  walk.pieces = CeilDivide(inner, own::kPieceElements);
  walk.width = PickWidth(CeilDivide(length + odd, per_vector), own::kThreads);
  walk.slices = RowSlices(walk.channels, walk.samples);
  plan->blocks_x = walk.channels;
}

void CutChannels(std::int64_t per_thread, Plan* plan) {
  Walk& walk = plan->walk;
  walk.pieces = 1;
  walk.width = ChannelWidth(walk.channels, per_thread);
  walk.slices = ChannelSlices(walk.channels, walk.samples, per_thread);
  plan->blocks_x = Tiles(walk.channels, per_thread);
}

/// Goes the way that suits the first tensor of X and dY that there is. None is empty.
Plan MakePlan(const Tensors& tensors) {
  const bool has_x = tensors[1] != nullptr;
  const ConstTensorRef& leader = has_x ? *tensors[1] : *tensors[0];
  Plan plan;
  SetDims(tensors, leader, &plan);
  const std::int64_t per_vector = PerVector(leader.type);
  plan.path = ChoosePath(tensors, plan, has_x ? plan.operands.X : plan.operands.dY, per_vector);
  if (plan.path == Path::kRows) {
    CutRows(per_vector, &plan);
  } else {
    CutChannels(plan.path == Path::kVectors ? per_vector : 1, &plan);
  }
  plan.blocks_x = std::min(plan.blocks_x, kMaxBlocksX);
  return plan;
}

/// Channels without samples: there is nothing to go through, but results to write.
Walk EmptyWalk(const Dims& dims) {
  Walk walk{};
  walk.channels = dims[1];
  return walk;
}

// ---------------------------------------------------------------------------------------------
// Workspace
// ---------------------------------------------------------------------------------------------

/// pivot, factor, shift, slope
constexpr std::int64_t kCoefficients = 4;
/// Two sums of each slice.
constexpr std::int64_t kPartials = 2;

/// The coefficients, then the slices' sums, whichever the path: strides of tensors that are not
/// known yet have a say in it.
std::size_t WorkspaceBytes(const ConstTensorRef& X) {
  const std::int64_t channels = X.dims[1];
  const std::int64_t samples = SamplesPerChannel(X.dims);
  if (channels == 0) {
    return 0;
  }
  const std::int64_t slices = std::max(
      {RowSlices(channels, samples), ChannelSlices(channels, samples, 1),
       ChannelSlices(channels, samples, PerVector(X.type))});
  return static_cast<std::size_t>(channels * (kCoefficients + (kPartials * slices))) *
         sizeof(double);
}

struct Workspace {
  Workspace(void* data, std::int64_t channels)
      : coefficients(static_cast<double*>(data)),
        partials(coefficients + (kCoefficients * channels)) {}

  double* coefficients;
  double* partials;
};

// ---------------------------------------------------------------------------------------------
// Launches
// ---------------------------------------------------------------------------------------------

/// Steps that have a kernel for each path and element type.
enum class Step : unsigned char {
  kMoments,
  kGradientSums,
  kBiasSums,
  kNormalize,
  kInputGradient,
};

constexpr std::array<std::array<std::string_view, kPaths>, 5> kNames = {{
    {"gradsmith_bn_moments_rows", "gradsmith_bn_moments_channels", "gradsmith_bn_moments_vectors"},
    {"gradsmith_bn_gradient_sums_rows", "gradsmith_bn_gradient_sums_channels",
     "gradsmith_bn_gradient_sums_vectors"},
    {"gradsmith_bn_bias_sums_rows", "gradsmith_bn_bias_sums_channels",
     "gradsmith_bn_bias_sums_vectors"},
    {"gradsmith_bn_normalize_rows", "gradsmith_bn_normalize_channels",
     "gradsmith_bn_normalize_vectors"},
    {"gradsmith_bn_input_gradient_rows", "gradsmith_bn_input_gradient_channels",
     "gradsmith_bn_input_gradient_vectors"},
}};

Result<CUkernel> FindKernel(Step step, Path path, DataType type) {
  static auto& table = *new cuda::KernelTable<kNames.size() * kPaths>(cuda::kImage_batch_norm);
  const int i = static_cast<int>(step);
  const int j = static_cast<int>(path);
  return table.Find((i * kPaths) + j, kNames[i][j], type);
}

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
      .blocks_x = static_cast<unsigned>(std::min(blocks, kMaxBlocksX)),
      .threads = own::kFinishChannels * own::kFinishLanes};
  const double* partials = workspace.partials;
  return cuda::Launch(kernel, shape, stream, finish, partials, workspace.coefficients);
}

template <typename Ref>
Parameter ToParameter(const Ref* tensor) {
  Parameter parameter{};
  if (IsPresent(tensor)) {
    parameter.data = const_cast<void*>(tensor->data);
    parameter.stride = tensor->strides[0];
    parameter.type = static_cast<int>(tensor->type);
    parameter.present = true;
    parameter.accumulate = tensor->accumulate;
  }
  return parameter;
}

own::ForwardFinish MakeForwardFinish(
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    const Plan& plan) {
  return {
      .walk = plan.walk,
      .X = plan.operands.X,
      .type = static_cast<int>(inputs.X->type),
      .epsilon = attributes.epsilon,
      .momentum = attributes.momentum,
      .scale = ToParameter(inputs.scale),
      .bias = ToParameter(inputs.B),
      .running_mean = ToParameter(inputs.running_mean),
      .running_var = ToParameter(inputs.running_var),
      .new_running_mean = ToParameter(outputs.running_mean),
      .new_running_var = ToParameter(outputs.running_var),
      .saved_mean = ToParameter(outputs.saved_mean),
      .saved_inv_std = ToParameter(outputs.saved_inv_std)};
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
    CUstream stream,
    const ConstTensorRef& X,
    const TensorRef& Y,
    const Workspace& workspace) {
  const ConstTensorRef output = Y;
  const Plan plan = MakePlan({nullptr, &X, &output});
  const double* coefficients = workspace.coefficients;
  return RunStep(stream, Step::kNormalize, X.type, plan, coefficients);
}

/// dX from the coefficients.
Status InputGradient(
    CUstream stream,
    const BatchNormalizationGrad::Inputs& inputs,
    const TensorRef& dX,
    const Workspace& workspace) {
  const ConstTensorRef output = dX;
  Plan plan = MakePlan({inputs.dY, inputs.X, &output});
  plan.operands.accumulate = dX.accumulate;
  const double* coefficients = workspace.coefficients;
  return RunStep(stream, Step::kInputGradient, dX.type, plan, coefficients);
}

/// dScale, dBias, and the coefficients of dX.
Status SumGradients(
    CUstream stream,
    const BatchNormalizationGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    const Workspace& workspace) {
  const bool products = IsPresent(outputs.dX) || IsPresent(outputs.dScale);
  own::BackwardFinish finish = {
      .walk = EmptyWalk(inputs.dY->dims),
      .type = static_cast<int>(inputs.dY->type),
      .products = products,
      .scale = {},
      .saved_mean = {},
      .saved_inv_std = {},
      .dScale = ToParameter(outputs.dScale),
      .dBias = ToParameter(outputs.dBias)};
  if (products) {
    finish.scale = ToParameter(inputs.scale);
    finish.saved_mean = ToParameter(inputs.saved_mean);
    finish.saved_inv_std = ToParameter(inputs.saved_inv_std);
  }
  if (SamplesPerChannel(inputs.dY->dims) > 0) {
    const Plan plan = MakePlan({inputs.dY, products ? inputs.X : nullptr, nullptr});
    finish.walk = plan.walk;
    if (Status status = RunStep(
            stream, products ? Step::kGradientSums : Step::kBiasSums, inputs.dY->type, plan,
            finish.saved_mean, workspace.partials);
        !status.ok()) {
      return status;
    }
  }
  return FinishBackward(stream, finish, workspace);
}

}  // namespace

std::size_t ForwardWorkspace(const cuda::DeviceInfo& /*device*/, const ConstTensorRef& X) {
  return WorkspaceBytes(X);
}

std::size_t BackwardWorkspace(const cuda::DeviceInfo& /*device*/, const ConstTensorRef& X) {
  return WorkspaceBytes(X);
}

Status Forward(
    const cuda::DeviceInfo& /*device*/,
    CUstream stream,
    const Attributes& attributes,
    const BatchNormalization::Inputs& inputs,
    const BatchNormalization::Outputs& outputs,
    void* workspace) {
  const ConstTensorRef& X = *inputs.X;
  if (X.dims[1] == 0) {
    return {};
  }
  const bool empty = SamplesPerChannel(X.dims) == 0;
  const Workspace parts(workspace, X.dims[1]);
  Plan plan;
  plan.walk = EmptyWalk(X.dims);
  if (!empty) {
    plan = MakePlan({nullptr, &X, nullptr});
    if (Status status = RunStep(stream, Step::kMoments, X.type, plan, Parameter{}, parts.partials);
        !status.ok()) {
      return status;
    }
  }
  if (Status status =
          FinishForward(stream, MakeForwardFinish(attributes, inputs, outputs, plan), parts);
      !status.ok()) {
    return status;
  }
  return empty || !IsPresent(outputs.Y) ? Status() : Normalize(stream, X, *outputs.Y, parts);
}

Status Backward(
    const cuda::DeviceInfo& /*device*/,
    CUstream stream,
    const BatchNormalizationGrad::Inputs& inputs,
    const BatchNormalizationGrad::Outputs& outputs,
    void* workspace) {
  const Dims& dims = inputs.dY->dims;
  if (dims[1] == 0 ||
      (!IsPresent(outputs.dX) && !IsPresent(outputs.dScale) && !IsPresent(outputs.dBias))) {
    return {};
  }
  const Workspace parts(workspace, dims[1]);
  if (Status status = SumGradients(stream, inputs, outputs, parts); !status.ok()) {
    return status;
  }
  return SamplesPerChannel(dims) == 0 || !IsPresent(outputs.dX)
             ? Status()
             : InputGradient(stream, inputs, *outputs.dX, parts);
}

}  // namespace gradsmith::batch_norm
