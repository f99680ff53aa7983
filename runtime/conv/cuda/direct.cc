#include "conv/cuda/direct.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>

#include "conv/cuda/direct_arguments.h"
#include "cuda/driver.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"

namespace gradsmith::conv {
namespace {

using direct::Arguments;
using direct::AxisArguments;
using direct::Sample;

static_assert(static_cast<int>(Primitive::kForward) == direct::kForward);
static_assert(static_cast<int>(Primitive::kBackwardData) == direct::kBackwardData);
static_assert(static_cast<int>(Primitive::kBackwardFilter) == direct::kBackwardFilter);
static_assert(direct::kSpatialRank == kMaxSpatialRank);
AxisArguments ToArguments(const Axis& axis) {
  const std::int64_t common = std::gcd(axis.stride, axis.dilation);
  return {
      .x = axis.x,
      .w = axis.w,
      .y = axis.y,
      .stride = axis.stride,
      .dilation = axis.dilation,
      .pad = axis.pad_begin,
      .tap_step = axis.stride / common,
      .y_step = axis.dilation / common};
}

/// The first two strides, and those of the spatial axes as the last ones.
void CopyStrides(const Strides& from, std::int64_t (&to)[direct::kRank]) {
  std::fill(std::begin(to), std::end(to), 0);
  to[0] = from[0];
  to[1] = from[1];
  for (int i = 2; i < from.size(); ++i) {
    to[direct::kRank - from.size() + i] = from[i];
  }
}

void SetResult(Primitive primitive, const Problem& problem, Arguments* arguments) {
  auto& dims = arguments->dims;
  const std::int64_t* strides = nullptr;
  std::int64_t AxisArguments::*size = nullptr;
  switch (primitive) {
    case Primitive::kForward:
      dims[0] = problem.batch;
      dims[1] = problem.y_channels;
      strides = arguments->y_strides;
      size = &AxisArguments::y;
      break;
    case Primitive::kBackwardData:
      dims[0] = problem.batch;
      dims[1] = problem.x_channels;
      strides = arguments->x_strides;
      size = &AxisArguments::x;
      break;
    case Primitive::kBackwardFilter:
      dims[0] = problem.y_channels;
      dims[1] = arguments->x_channels;
      strides = arguments->w_strides;
      size = &AxisArguments::w;
      break;
  }
  for (int i = 0; i < direct::kSpatialRank; ++i) {
    dims[2 + i] = arguments->axes[i].*size;
  }
  arguments->count =
      std::accumulate(std::begin(dims), std::end(dims), std::int64_t{1}, std::multiplies<>());
  arguments->channels_innermost = strides[1] < strides[direct::kRank - 1];
}

Arguments MakeArguments(Primitive primitive, const Problem& problem) {
  Arguments arguments{};
  arguments.primitive = static_cast<int>(primitive);
  arguments.batch = problem.batch;
  arguments.x_channels = problem.x_channels / problem.group;
  arguments.y_channels = problem.y_channels / problem.group;
  const int missing = direct::kSpatialRank - problem.spatial_rank;
  for (int i = 0; i < direct::kSpatialRank; ++i) {
    arguments.axes[i] = ToArguments(i < missing ? Axis() : problem.axes[i - missing]);
  }
  CopyStrides(problem.x_strides, arguments.x_strides);
  CopyStrides(problem.w_strides, arguments.w_strides);
  CopyStrides(problem.y_strides, arguments.y_strides);
  SetResult(primitive, problem, &arguments);
  return arguments;
}

/// A primitive's tensors: what the kernels read as a and b, and the result.
template <typename Void>
struct Operands {
  const void* a;
  const void* b;
  Void* result;
};

template <typename Void>
Operands<Void> OperandsOf(Primitive primitive, Void* x, Void* w, Void* y) {
  switch (primitive) {
    case Primitive::kForward:
      return {x, w, y};
    case Primitive::kBackwardData:
      return {y, w, x};
    case Primitive::kBackwardFilter:
      break;
  }
  return {x, y, w};
}

/// Enough blocks for any GPU; each thread goes on to further elements.
constexpr std::int64_t kMaxBlocks = 1 << 16;

enum Kernel : unsigned char { kDirectKernel, kByBlocksKernel, kCheckKernel };
constexpr std::array<const char*, 3> kKernelNames = {
    "gradsmith_conv_direct", "gradsmith_conv_direct_by_blocks", "gradsmith_conv_check"};

Result<CUkernel> FindKernel(Kernel kernel, DataType type) {
  static auto& table = *new cuda::KernelTable<kKernelNames.size()>(cuda::kImage_conv_direct);
  return table.Find(kernel, kKernelNames.at(kernel), type);
}

/// Places on each end of each dim, and spread over all.
constexpr std::int64_t kBorder = 64;
constexpr std::int64_t kStrata = 3584;
constexpr std::int64_t kFewestStrata = 28;

constexpr std::int64_t
SampledElements(std::int64_t border, std::int64_t strata, unsigned neighbours) {
  return (std::int64_t{1} << direct::kRank) +
         (((border * 2 * direct::kRank) + strata) * neighbours);
}

constexpr std::int64_t ShareOf(std::int64_t number, double share) {
  return static_cast<std::int64_t>(static_cast<double>(number) * share);
}

/// Which of `count` elements are checked, each a sum of so many products.
Sample MakeSample(std::int64_t count, double terms, unsigned neighbours, double most_share) {
  // A search compares each candidate that seems to be the quickest, so that a check must be quick:
  // an H200 adds up so many products in some 15 ms.
  constexpr double kMostProducts = 0x1.0p31;
  constexpr double kSmallestShare = 1.0 / 32;
  const double products =
      terms * static_cast<double>(SampledElements(kBorder, kStrata, neighbours));
  const double share = std::clamp(kMostProducts / products, kSmallestShare, 1.0) * most_share;
  const std::int64_t border = std::max<std::int64_t>(ShareOf(kBorder, share), 1);
  const std::int64_t strata = std::max(ShareOf(kStrata, share), kFewestStrata);
  const std::int64_t sampled = SampledElements(border, strata, neighbours);
  if (count <= std::max(sampled, ShareOf(kFullCheck, share))) {
    return {.count = count, .border = 0, .strata = 0, .neighbours = neighbours, .all = true};
  }
  return {
      .count = sampled, .border = border, .strata = strata, .neighbours = neighbours, .all = false};
}
static_assert(kStrata <= kFullCheck);

/// Returns how many neighbouring elements one block adds up. Where channels are innermost, the
/// numbers that an element of a filter's gradient is summed from lie a line of channels apart, and
/// the memory brings those of its neighbours along: adding these up costs little more traffic.
unsigned NeighboursOf(Primitive primitive, const Problem& problem) {
  constexpr unsigned kWithinSector = 8;
  const Strides& strides = problem.x_strides;
  const bool channels_innermost = strides[1] < strides[strides.size() - 1];
  return primitive == Primitive::kBackwardFilter && channels_innermost ? kWithinSector : 1;
}

Sample
MakeSample(Primitive primitive, const Problem& problem, std::int64_t count, SampleSize size) {
  constexpr double kSmallShare = 1.0 / 8;
  return MakeSample(
      count, TermsOf({.primitive = primitive, .problem = problem}),
      NeighboursOf(primitive, problem), size == SampleSize::kLarge ? 1 : kSmallShare);
}

/// The threads of a block, a power of two: of few terms most of a large block's would wait.
unsigned BlockThreadsFor(double terms, unsigned neighbours) {
  constexpr double kEach = 16;
  constexpr unsigned kFewest = 32;
  unsigned threads = kFewest;
  while (threads < direct::kMaxBlockThreads && threads * kEach < terms * neighbours) {
    threads *= 2;
  }
  return threads;
}

class DirectPlan final : public internal::Plan {
 public:
  DirectPlan(const cuda::DeviceInfo& device, const Task& task) : device_(device), task_(task) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    return Direct(
        device_, launch.stream, task_.primitive, task_.problem, launch.operands[kX],
        launch.operands[kW], launch.operands[kY], task_.accumulate);
  }

 private:
  const cuda::DeviceInfo& device_;
  Task task_;
};

}  // namespace

bool DirectSumsByBlocks(const Task& task) {
  constexpr double kManyTerms = 0x1.0p12;
  constexpr std::int64_t kFewElements = std::int64_t{1} << 18;
  const std::int64_t elements = NumElements(DimsOf(task.problem, ResultOf(task.primitive)));
  return TermsOf(task) >= kManyTerms && elements < kFewElements;
}

Status Direct(
    const cuda::DeviceInfo& /*device*/,
    CUstream stream,
    Primitive primitive,
    const Problem& problem,
    void* x,
    void* w,
    void* y,
    bool accumulate) {
  const Arguments arguments = MakeArguments(primitive, problem);
  if (arguments.count == 0) {
    return {};
  }
  const Task task = {.primitive = primitive, .problem = problem};
  const bool by_blocks = DirectSumsByBlocks(task);
  const Result<CUkernel> kernel =
      FindKernel(by_blocks ? kByBlocksKernel : kDirectKernel, problem.type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const Operands<void> operands = OperandsOf(primitive, x, w, y);
  if (by_blocks) {
    const unsigned neighbours = NeighboursOf(primitive, problem);
    const cuda::LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(((arguments.count - 1) / neighbours) + 1),
        .threads = BlockThreadsFor(TermsOf(task), neighbours)};
    return cuda::Launch(
        *kernel, shape, stream, arguments, neighbours, operands.a, operands.b, operands.result,
        accumulate);
  }
  const std::int64_t blocks = ((arguments.count - 1) / direct::kThreads) + 1;
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(std::min(blocks, kMaxBlocks)), .threads = direct::kThreads};
  return cuda::Launch(
      *kernel, shape, stream, arguments, operands.a, operands.b, operands.result, accumulate);
}

Status CheckSample(
    const cuda::DeviceInfo& /*device*/,
    CUstream stream,
    Primitive primitive,
    const Problem& problem,
    const void* x,
    const void* w,
    const void* y,
    const void* before,
    cuda::Difference* difference,
    SampleSize size) {
  if (Status status = cuda::ToStatus(
          cuda::Driver().cuMemsetD8Async(
              reinterpret_cast<CUdeviceptr>(difference), 0, sizeof(*difference), stream),
          "clearing a difference");
      !status.ok()) {
    return status;
  }
  const Arguments arguments = MakeArguments(primitive, problem);
  if (arguments.count == 0) {
    return {};
  }
  const Result<CUkernel> kernel = FindKernel(kCheckKernel, problem.type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const Sample sample = MakeSample(primitive, problem, arguments.count, size);
  const double terms = TermsOf({.primitive = primitive, .problem = problem});
  const std::int64_t blocks = ((sample.count - 1) / sample.neighbours) + 1;
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(blocks),
      .threads = BlockThreadsFor(terms, sample.neighbours)};
  const Operands<const void> operands = OperandsOf(primitive, x, w, y);
  return cuda::Launch(
      *kernel, shape, stream, arguments, sample, operands.a, operands.b, operands.result, before,
      difference);
}

std::unique_ptr<internal::Plan> MakeDirectPlan(const cuda::DeviceInfo& device, const Task& task) {
  return std::make_unique<DirectPlan>(device, task);
}

std::int64_t CheckedElements(Primitive primitive, const Problem& problem, SampleSize size) {
  const std::int64_t count = NumElements(DimsOf(problem, ResultOf(primitive)));
  return MakeSample(primitive, problem, count, size).count;
}

}  // namespace gradsmith::conv
