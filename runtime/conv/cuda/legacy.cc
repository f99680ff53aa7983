#include "conv/cuda/legacy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/candidate_name.h"
#include "cuda/cudnn.h"
#include "cuda/legacy_descriptor.h"

namespace gradsmith::conv {

namespace {

using cuda::Cudnn;
using cuda::ToStatus;
using internal::Candidate;

/// More than any primitive has algorithms.
constexpr int kMaxAlgorithms = 32;

using cuda::LegacyDescriptor;
using cuda::TensorDescriptor;
using FilterDescriptor =
    LegacyDescriptor<cudnnFilterDescriptor_t, &cuda::CudnnApi::cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = LegacyDescriptor<
    cudnnConvolutionDescriptor_t,
    &cuda::CudnnApi::cudnnDestroyConvolutionDescriptor>;

/// Ints is a list as the legacy API takes it: of int, with at least four dims and two spatial axes.
struct Ints {
  std::vector<int> values;
  bool fits = true;

  void Add(std::int64_t value) {
    fits = fits && value <= std::numeric_limits<int>::max();
    values.push_back(static_cast<int>(value));
  }
};

/// Dims or strides of a tensor; a lone spatial axis becomes [1, L], whose first stride is `outer`.
Ints TensorInts(const IntList& list, std::int64_t outer) {
  Ints ints;
  for (int i = 0; i < list.size(); ++i) {
    if (i == 2 && list.size() == 3) {
      ints.Add(outer);
    }
    ints.Add(list[i]);
  }
  return ints;
}

Ints AxisInts(const Problem& problem, std::int64_t Axis::*field, std::int64_t fill) {
  Ints ints;
  if (problem.spatial_rank == 1) {
    ints.Add(fill);
  }
  for (int i = 0; i < problem.spatial_rank; ++i) {
    ints.Add(problem.axes[i].*field);
  }
  return ints;
}

Status MakeTensor(const Task& task, Operand operand, TensorDescriptor* descriptor) {
  const Dims dims = DimsOf(task.problem, operand);
  const Strides& strides = StridesOf(task.problem, operand);
  const Ints sizes = TensorInts(dims, 1);
  const Ints steps = TensorInts(strides, dims[dims.size() - 1] * strides[strides.size() - 1]);
  if (!sizes.fits || !steps.fits) {
    return Unsupported("the legacy API counts dims and strides in 32 bits");
  }
  if (Status status = ToStatus(
          Cudnn().cudnnCreateTensorDescriptor(descriptor->place()), "making a tensor descriptor");
      !status.ok()) {
    return status;
  }
  return ToStatus(
      Cudnn().cudnnSetTensorNdDescriptor(
          descriptor->raw(), cuda::ToCudnn(task.problem.type),
          static_cast<int>(sizes.values.size()), sizes.values.data(), steps.values.data()),
      "describing a tensor");
}

Status MakeFilter(const Task& task, FilterDescriptor* descriptor) {
  const Dims dims = DimsOf(task.problem, kW);
  const bool channels_last = task.problem.w_strides == ChannelsLastStrides(dims);
  if (!channels_last && task.problem.w_strides != ContiguousStrides(dims)) {
    return Unsupported("the legacy API takes dense filters only");
  }
  const Ints sizes = TensorInts(dims, 1);
  if (!sizes.fits) {
    return Unsupported("the legacy API counts dims in 32 bits");
  }
  if (Status status = ToStatus(
          Cudnn().cudnnCreateFilterDescriptor(descriptor->place()), "making a filter descriptor");
      !status.ok()) {
    return status;
  }
  return ToStatus(
      Cudnn().cudnnSetFilterNdDescriptor(
          descriptor->raw(), cuda::ToCudnn(task.problem.type),
          channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
          static_cast<int>(sizes.values.size()), sizes.values.data()),
      "describing a filter");
}

Status MakeConvolution(const Problem& problem, ConvolutionDescriptor* descriptor) {
  for (int i = 0; i < problem.spatial_rank; ++i) {
    if (problem.axes[i].pad_begin != problem.axes[i].pad_end) {
      return Unsupported("the legacy API takes symmetric pads only");
    }
  }
  const Ints pads = AxisInts(problem, &Axis::pad_begin, 0);
  const Ints strides = AxisInts(problem, &Axis::stride, 1);
  const Ints dilations = AxisInts(problem, &Axis::dilation, 1);
  if (!pads.fits || !strides.fits || !dilations.fits) {
    return Unsupported("the legacy API counts pads and strides in 32 bits");
  }
  const cuda::CudnnApi& cudnn = Cudnn();
  if (Status status = ToStatus(
          cudnn.cudnnCreateConvolutionDescriptor(descriptor->place()),
          "making a convolution descriptor");
      !status.ok()) {
    return status;
  }
  if (Status status = ToStatus(
          cudnn.cudnnSetConvolutionNdDescriptor(
              descriptor->raw(), static_cast<int>(pads.values.size()), pads.values.data(),
              strides.values.data(), dilations.values.data(), CUDNN_CROSS_CORRELATION,
              problem.type == DataType::kDouble ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
          "describing the convolution");
      !status.ok()) {
    return status;
  }
  return ToStatus(
      cudnn.cudnnSetConvolutionGroupCount(descriptor->raw(), static_cast<int>(problem.group)),
      "setting the groups");
}

}  // namespace

bool IsTf32(DataType type, cudnnMathType_t math) {
  return type == DataType::kFloat && math != CUDNN_FMA_MATH;
}

class LegacyConvolution {
 public:
  static Result<std::unique_ptr<LegacyConvolution>> Make(const Task& task) {
    auto made = std::make_unique<LegacyConvolution>();
    Status status = MakeTensor(task, kX, &made->x);
    if (status.ok()) {
      status = MakeTensor(task, kY, &made->y);
    }
    if (status.ok()) {
      status = MakeFilter(task, &made->w);
    }
    if (status.ok()) {
      status = MakeConvolution(task.problem, &made->convolution);
    }
    return status.ok() ? Result(std::move(made)) : status;
  }

  TensorDescriptor x;
  TensorDescriptor y;
  FilterDescriptor w;
  ConvolutionDescriptor convolution;
};

namespace {

struct Choice {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;

  [[nodiscard]] std::string Text() const {
    return "algorithm " + std::to_string(algorithm) + "/math " +
           std::to_string(static_cast<int>(math));
  }

  static Result<Choice> Parse(const std::string& text) {
    std::string_view rest = text;
    std::int64_t algorithm = 0;
    std::int64_t math = 0;
    if (!internal::TakeNumber(&rest, "algorithm ", &algorithm) ||
        !internal::TakeNumber(&rest, "/math ", &math) || !rest.empty()) {
      return InvalidArgument("'" + text + "' is not an algorithm of the legacy API");
    }
    Choice choice;
    choice.algorithm = static_cast<int>(algorithm);
    choice.math = static_cast<cudnnMathType_t>(math);
    return choice;
  }
};

bool Transforms(cudnnConvolutionFwdAlgo_t algorithm) {
  return algorithm >= CUDNN_CONVOLUTION_FWD_ALGO_FFT;
}
bool Transforms(cudnnConvolutionBwdDataAlgo_t algorithm) {
  return algorithm >= CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT;
}
bool Transforms(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT ||
         algorithm >= CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD;
}

/// The math types that are worth listing for an element type, the quicker first. The list that
/// cuDNN gives depends on the one that is set.
std::vector<cudnnMathType_t> MathsOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return {CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH};
    case DataType::kDouble:
      return {CUDNN_DEFAULT_MATH};
    default:
      break;
  }
  return {CUDNN_TENSOR_OP_MATH, CUDNN_DEFAULT_MATH};
}

/// Adds the algorithms that were found under a math type, each once.
template <typename Performance>
void AddCandidates(
    std::span<const Performance> found,
    cudnnMathType_t math,
    DataType type,
    std::vector<Candidate>* candidates) {
  for (const Performance& algorithm : found) {
    if (algorithm.status != CUDNN_STATUS_SUCCESS) {
      continue;
    }
    const Choice choice{static_cast<int>(algorithm.algo), math};
    const std::string id = choice.Text();
    const auto known = std::find_if(
        candidates->begin(), candidates->end(),
        [&](const auto& listed) { return listed.id == id; });
    if (known != candidates->end()) {
      known->workspace = std::max(known->workspace, algorithm.memory);
      continue;
    }
    Candidate candidate;
    candidate.id = id;
    candidate.engine = std::to_string(choice.algorithm);
    candidate.workspace = algorithm.memory;
    candidate.notes.deterministic = algorithm.determinism == CUDNN_DETERMINISTIC;
    candidate.notes.tf32 = IsTf32(type, math);
    candidate.notes.transforms = Transforms(algorithm.algo);
    candidates->push_back(std::move(candidate));
  }
}

class LegacyPlan final : public internal::Plan {
 public:
  LegacyPlan(
      cuda::CudnnHandle& handle,
      const Task& task,
      Choice choice,
      std::unique_ptr<LegacyConvolution> descriptors)
      : handle_(handle),
        primitive_(task.primitive),
        is_double_(task.problem.type == DataType::kDouble),
        accumulate_(task.accumulate),
        choice_(choice),
        descriptors_(std::move(descriptors)) {}

  Status AskWorkspace() {
    const cuda::CudnnApi& cudnn = Cudnn();
    const LegacyConvolution& d = *descriptors_;
    cudnnStatus_t result = CUDNN_STATUS_SUCCESS;
    switch (primitive_) {
      case Primitive::kForward:
        result = cudnn.cudnnGetConvolutionForwardWorkspaceSize(
            handle_.raw(), d.x.raw(), d.w.raw(), d.convolution.raw(), d.y.raw(),
            static_cast<cudnnConvolutionFwdAlgo_t>(choice_.algorithm), &workspace_);
        break;
      case Primitive::kBackwardData:
        result = cudnn.cudnnGetConvolutionBackwardDataWorkspaceSize(
            handle_.raw(), d.w.raw(), d.y.raw(), d.convolution.raw(), d.x.raw(),
            static_cast<cudnnConvolutionBwdDataAlgo_t>(choice_.algorithm), &workspace_);
        break;
      case Primitive::kBackwardFilter:
        result = cudnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(
            handle_.raw(), d.x.raw(), d.y.raw(), d.convolution.raw(), d.w.raw(),
            static_cast<cudnnConvolutionBwdFilterAlgo_t>(choice_.algorithm), &workspace_);
        break;
    }
    return ToStatus(result, "asking for the workspace of " + choice_.Text());
  }

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    if (Status status = handle_.UseStream(launch.stream); !status.ok()) {
      return status;
    }
    const cudnnStatus_t result = RunAlgorithm(launch);
    return result == CUDNN_STATUS_SUCCESS ? Status()
                                          : ToStatus(result, "running " + choice_.Text());
  }

 private:
  cudnnStatus_t RunAlgorithm(const internal::Launch& launch) {
    const cuda::CudnnApi& cudnn = Cudnn();
    const LegacyConvolution& d = *descriptors_;
    const double one = 1;
    const float one_float = 1;
    const double beta = accumulate_ ? 1 : 0;
    const float beta_float = accumulate_ ? 1 : 0;
    const void* alpha = is_double_ ? static_cast<const void*>(&one) : &one_float;
    const void* factor = is_double_ ? static_cast<const void*>(&beta) : &beta_float;
    void* x = launch.operands[kX];
    void* w = launch.operands[kW];
    void* y = launch.operands[kY];
    switch (primitive_) {
      case Primitive::kForward:
        return cudnn.cudnnConvolutionForward(
            handle_.raw(), alpha, d.x.raw(), x, d.w.raw(), w, d.convolution.raw(),
            static_cast<cudnnConvolutionFwdAlgo_t>(choice_.algorithm), launch.workspace, workspace_,
            factor, d.y.raw(), y);
      case Primitive::kBackwardData:
        return cudnn.cudnnConvolutionBackwardData(
            handle_.raw(), alpha, d.w.raw(), w, d.y.raw(), y, d.convolution.raw(),
            static_cast<cudnnConvolutionBwdDataAlgo_t>(choice_.algorithm), launch.workspace,
            workspace_, factor, d.x.raw(), x);
      case Primitive::kBackwardFilter:
        break;
    }
    return cudnn.cudnnConvolutionBackwardFilter(
        handle_.raw(), alpha, d.x.raw(), x, d.y.raw(), y, d.convolution.raw(),
        static_cast<cudnnConvolutionBwdFilterAlgo_t>(choice_.algorithm), launch.workspace,
        workspace_, factor, d.w.raw(), w);
  }

  cuda::CudnnHandle& handle_;
  Primitive primitive_;
  bool is_double_;
  bool accumulate_;
  Choice choice_;
  std::unique_ptr<LegacyConvolution> descriptors_;
  std::size_t workspace_ = 0;
};

}  // namespace

namespace {

/// Asks cuDNN for a primitive's algorithms, with the descriptors' math type: get(room, count,
/// list).
template <typename Performance, typename Get>
Status AddListed(Get get, cudnnMathType_t math, DataType type, std::vector<Candidate>* candidates) {
  std::array<Performance, kMaxAlgorithms> found{};
  int count = 0;
  if (Status status =
          ToStatus(get(kMaxAlgorithms, &count, found.data()), "asking for the legacy algorithms");
      !status.ok()) {
    return status;
  }
  AddCandidates(
      std::span<const Performance>(found).first(static_cast<std::size_t>(count)), math, type,
      candidates);
  return {};
}

Status AddAlgorithms(
    cuda::CudnnHandle& handle,
    const Task& task,
    const LegacyConvolution& d,
    cudnnMathType_t math,
    std::vector<Candidate>* candidates) {
  const cuda::CudnnApi& cudnn = Cudnn();
  const DataType type = task.problem.type;
  switch (task.primitive) {
    case Primitive::kForward:
      return AddListed<cudnnConvolutionFwdAlgoPerf_t>(
          [&](auto... list) {
            return cudnn.cudnnGetConvolutionForwardAlgorithm_v7(
                handle.raw(), d.x.raw(), d.w.raw(), d.convolution.raw(), d.y.raw(), list...);
          },
          math, type, candidates);
    case Primitive::kBackwardData:
      return AddListed<cudnnConvolutionBwdDataAlgoPerf_t>(
          [&](auto... list) {
            return cudnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                handle.raw(), d.w.raw(), d.y.raw(), d.convolution.raw(), d.x.raw(), list...);
          },
          math, type, candidates);
    case Primitive::kBackwardFilter:
      break;
  }
  return AddListed<cudnnConvolutionBwdFilterAlgoPerf_t>(
      [&](auto... list) {
        return cudnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle.raw(), d.x.raw(), d.y.raw(), d.convolution.raw(), d.w.raw(), list...);
      },
      math, type, candidates);
}

Status SetMath(const LegacyConvolution& descriptors, cudnnMathType_t math) {
  return ToStatus(
      Cudnn().cudnnSetConvolutionMathType(descriptors.convolution.raw(), math),
      "setting the math type");
}

}  // namespace

Result<std::vector<Candidate>> ListLegacy(cuda::CudnnHandle& handle, const Task& task) {
  const Result<std::unique_ptr<LegacyConvolution>> descriptors = LegacyConvolution::Make(task);
  if (!descriptors.ok()) {
    return descriptors.status();
  }
  std::vector<Candidate> candidates;
  for (const cudnnMathType_t math : MathsOf(task.problem.type)) {
    Status status = SetMath(**descriptors, math);
    if (status.ok()) {
      status = AddAlgorithms(handle, task, **descriptors, math, &candidates);
    }
    if (!status.ok()) {
      return status;
    }
  }
  return candidates;
}

Result<std::unique_ptr<internal::Plan>>
BuildLegacyPlan(cuda::CudnnHandle& handle, const Task& task, const std::string& choice_text) {
  const Result<Choice> choice = Choice::Parse(choice_text);
  if (!choice.ok()) {
    return choice.status();
  }
  Result<std::unique_ptr<LegacyConvolution>> descriptors = LegacyConvolution::Make(task);
  if (!descriptors.ok()) {
    return descriptors.status();
  }
  if (Status status = SetMath(**descriptors, choice->math); !status.ok()) {
    return status;
  }
  auto plan = std::make_unique<LegacyPlan>(handle, task, *choice, std::move(*descriptors));
  if (Status status = plan->AskWorkspace(); !status.ok()) {
    return status;
  }
  return std::unique_ptr<internal::Plan>(std::move(plan));
}

}  // namespace gradsmith::conv
