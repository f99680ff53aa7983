#include "conv/cuda/preference.h"

#include <algorithm>
#include <cstdint>

#include "conv/cuda/depthwise.h"
#include "conv/cuda/direct.h"
#include "conv/cuda/first_layers.h"
#include "conv/cuda/graph.h"
#include "conv/cuda/legacy.h"
#include "conv/cuda/planes_arguments.h"
#include "core/tiles.h"

namespace gradsmith::conv {

namespace {

using internal::KernelName;

/// Below, the launches of copies weigh more than what they gain.
constexpr std::int64_t kEnoughElements = std::int64_t{1} << 23U;

/// The same where depthwise kernels of many taps are left for others.
constexpr std::int64_t kEnoughForDepthwise = std::int64_t{1} << 20U;

bool IsNarrow(const Problem& problem) {
  return SizeOf(problem.type) == 2;
}

/// How many elements x and y have together.
std::int64_t ElementsOf(const Problem& problem) {
  return NumElements(DimsOf(problem, kX)) + NumElements(DimsOf(problem, kY));
}

bool HasEnoughElements(const Problem& problem) {
  return ElementsOf(problem) >= kEnoughElements;
}

bool AreChannelsFirst(const Problem& problem) {
  return problem.x_strides == ContiguousStrides(DimsOf(problem, kX)) &&
         problem.y_strides == ContiguousStrides(DimsOf(problem, kY));
}

bool HasOneTap(const Problem& problem) {
  return std::all_of(
      problem.axes.begin(), problem.axes.begin() + problem.spatial_rank,
      [](const Axis& axis) { return axis.w == 1; });
}

bool HasSteps(const Problem& problem) {
  return std::any_of(
      problem.axes.begin(), problem.axes.begin() + problem.spatial_rank,
      [](const Axis& axis) { return axis.stride > 1; });
}

/// Elements of x for each of y, of a channel.
double StepsOf(const Problem& problem) {
  double steps = 1;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    steps *= static_cast<double>(problem.axes[i].stride);
  }
  return steps;
}

/// A matrix product that multiplies enough for each element to make up for copies of all.
bool IsDenseProduct(const Problem& problem) {
  constexpr std::int64_t kEnoughForEach = 128;
  const std::int64_t x = problem.x_channels;
  const std::int64_t y = problem.y_channels;
  return x * y >= kEnoughForEach * (x + y);
}

std::int64_t FewestChannels(const Problem& problem) {
  return std::min(problem.x_channels, problem.y_channels) / problem.group;
}

/// The filter's gradient of a layer that takes or makes images.
bool IsFilterOfImages(const Task& task) {
  constexpr std::int64_t kImage = 4;
  return IsFilter(task) && task.problem.group == 1 && FewestChannels(task.problem) <= kImage;
}

/// Kernels that multiply half and bf16 in float, one after the other.
bool HasNoTensorCores(const KernelName& kernel) {
  return kernel.IsEngine(kGraph, 1) ||
         (kernel.source == kLegacy && kernel.variant.ends_with("math 0"));
}

/// In half and bf16: where few channels leave the tiles of cuDNN's first choice for a filter's
/// gradient empty, at many taps.
bool FiltersAreOursInHalf(const Task& task) {
  constexpr std::int64_t kManyTaps = 5;
  constexpr std::int64_t kFewChannels = 40;
  const Problem& problem = task.problem;
  if (task.primitive != Primitive::kBackwardFilter || problem.group != 1 || !IsLongRunning(task)) {
    return false;
  }
  if (IsFilterOfImages(task)) {
    return std::all_of(
        problem.axes.begin(), problem.axes.begin() + problem.spatial_rank,
        [](const Axis& axis) { return axis.w >= kManyTaps; });
  }
  return FewestChannels(problem) <= kFewChannels && !HasOneTap(problem) && !HasSteps(problem);
}

/// cuDNN's engines multiply most of TF32 as quickly as ours; not what leaves their tiles empty.
bool OursComeFirstInTf32(const Task& task, bool has_window) {
  constexpr std::int64_t kFew = 64;
  if (task.primitive == Primitive::kForward) {
    return false;
  }
  const Problem& problem = task.problem;
  return has_window || IsFilterOfImages(task) ||
         (IsFilter(task) && FewestChannels(problem) <= kFew && !HasOneTap(problem) &&
          !HasSteps(problem));
}

}  // namespace

bool AreChannelsLast(const Problem& problem) {
  return problem.x_strides[1] == 1 && problem.y_strides[1] == 1;
}

bool IsLongRunning(const Task& task) {
  constexpr double kProducts = 1e9;
  return ProductsOf(task) > kProducts;
}

bool IsNaive(const Task& task, const KernelName& kernel) {
  return kernel.IsEngine(kGraph, 0) && task.primitive != Primitive::kForward &&
         task.problem.group == 1;
}

bool IsSlow(const Task& task, const KernelName& kernel) {
  constexpr double kProductsInHalf = 0x1.0p22;
  const bool is_narrow = IsNarrow(task.problem);
  const bool is_scalar = is_narrow && task.problem.group == 1 && HasNoTensorCores(kernel);
  return (IsLongRunning(task) && (is_scalar || IsNaive(task, kernel))) ||
         (IsNaive(task, kernel) && is_narrow && ProductsOf(task) >= kProductsInHalf);
}

bool DirectPays(const Task& task) {
  constexpr std::int64_t kImage = 4;
  const Problem& problem = task.problem;
  return problem.type == DataType::kDouble && task.primitive != Primitive::kForward &&
         !HasGroupOfEachChannel(problem) && FewestChannels(problem) <= kImage &&
         !IsDirectSlow(task);
}

bool IsDirectSlow(const Task& task) {
  constexpr double kTerms = 0x1.0p16;
  return TermsOf(task) >= kTerms && !DirectSumsByBlocks(task);
}

bool IsEndless(const Task& task, const KernelName& kernel) {
  constexpr double kEndless = 0x1.0p38;  // products
  if (task.primitive == Primitive::kBackwardData &&
      (kernel.IsEngine(kGraph, 1) || kernel.IsEngine(kLegacy, 1))) {
    constexpr double kManySteps = 64;
    const double steps = StepsOf(task.problem);
    const bool is_tried = IsNarrow(task.problem) || AreChannelsLast(task.problem);
    return is_tried && steps >= kManySteps && steps * ProductsOf(task) >= kEndless;
  }
  const DataType type = task.problem.type;
  const bool is_scalar =
      SizeOf(type) == 2 && kernel.IsEngine(kLegacy, 0) && task.primitive != Primitive::kForward;
  const bool is_naive = type != DataType::kDouble && IsNaive(task, kernel);
  return (is_scalar || is_naive) && ProductsOf(task) >= kEndless;
}

bool CudnnHasDepthwise(const Task& task) {
  const Problem& problem = task.problem;
  const bool has_three_taps =
      problem.spatial_rank == 2 && problem.axes[0].w == 3 && problem.axes[1].w == 3;
  return HasGroupOfEachChannel(problem) && AreChannelsLast(problem) && has_three_taps &&
         (problem.type == DataType::kMLFloat16 ||
          (problem.type == DataType::kFloat && IsFilter(task)));
}

bool WindowsPayForDepthwise(const Task& task) {
  const Problem& problem = task.problem;
  return IsNarrow(problem) && AreChannelsLast(problem) &&
         ElementsOf(problem) >= kEnoughForDepthwise;
}

bool BandsPay(const Task& task) {
  constexpr std::int64_t kMostTapsOfTiles = 49;
  constexpr std::int64_t kManyTaps = 25;
  constexpr std::int64_t kManyTapsOfFloat = 49;
  const Problem& problem = task.problem;
  const std::int64_t taps = TapsOf(problem);
  if (AreChannelsLast(problem)) {
    return taps > kMostTapsOfTiles && ElementsOf(problem) >= kEnoughForDepthwise;
  }
  const bool by_single_steps = problem.axes[0].stride == 1;
  return problem.spatial_rank == 1 ? by_single_steps
                                   : taps >= (IsNarrow(problem) ? kManyTaps : kManyTapsOfFloat);
}

bool DenseRowsPay(const Task& task) {
  constexpr std::int64_t kManyTaps = 25;
  constexpr std::int64_t kMostTapsAtOnce = 9;
  const Problem& problem = task.problem;
  const std::int64_t taps = TapsOf(problem);
  const bool is_costly =
      taps >= kManyTaps || IsNarrow(problem) || task.primitive != Primitive::kForward;
  return AreChannelsLast(problem) && taps > kMostTapsAtOnce && is_costly &&
         ElementsOf(problem) >= kEnoughForDepthwise;
}

bool LinesPay(const Task& task) {
  bool by_single_steps = true;
  for (int i = 0; i < task.problem.spatial_rank; ++i) {
    by_single_steps = by_single_steps && task.problem.axes.at(i).stride == 1;
  }
  // Of volumes, the other kernels read each neighbour again.
  return by_single_steps || task.problem.spatial_rank == 3;
}

bool FewChannelsPay(const Task& task, const FewChannels& few) {
  constexpr std::int64_t kFewest = 16;
  constexpr std::int64_t kFew = 40;
  constexpr std::int64_t kMostWaste = 3;
  constexpr std::int64_t kMostWasteInVolumes = 2;
  const Problem& problem = task.problem;
  const few_channels::KernelConfig config = few_channels::kConfigAt[few.config];
  const std::int64_t room = std::int64_t{config.x_channels} * config.y_channels;
  const std::int64_t channels = problem.x_channels * problem.y_channels;
  if (room > kMostWaste * channels) {
    return false;
  }
  if (IsFilter(task)) {
    return few.are_chunks || problem.x_channels <= kFew;
  }
  if (problem.spatial_rank == 3) {
    return few.are_chunks && problem.x_channels <= kFew && IsLongRunning(task) &&
           room <= kMostWasteInVolumes * channels;
  }
  const bool are_fewest = std::max(problem.x_channels, problem.y_channels) <= kFewest;
  return problem.x_channels <= kFew && (!few.are_chunks || are_fewest);
}

bool WarpgroupsPay(const Task& task, const Warpgroups& plan) {
  constexpr double kLeastShare = 0.6;
  return IsLongRunning(task) && plan.share >= kLeastShare;
}

bool WarpgroupsBeatTensorCores(const Warpgroups& plan) {
  constexpr double kLeastShare = 0.2;
  return plan.share >= kLeastShare;
}

bool WideLayersPay(const Task& task, const WideLayers& plan) {
  constexpr double kLeastShare = 0.65;
  return IsLongRunning(task) && plan.share >= kLeastShare;
}

bool WideLayersMayPay(const WideLayers& plan) {
  constexpr double kLeastShare = 0.25;
  return plan.share >= kLeastShare;
}

bool FirstLayersPay(const Task& task) {
  const std::int64_t columns = task.problem.axes[1].y;
  const std::int64_t room =
      internal::CeilDivide(columns, first_layers::kTile) * first_layers::kTile;
  return NumElements(DimsOf(task.problem, kY)) >= kEnoughForFirstLayers && 5 * columns >= 4 * room;
}

bool PlanesPay(const Task& task, const Planes& plan) {
  constexpr std::int64_t kMostOfImages = 4;
  const bool in_vectors = plan.arguments.has_x_vectors && plan.arguments.has_y_vectors;
  return (in_vectors || (IsFilter(task) && task.problem.type == DataType::kFloat)) &&
         task.problem.x_channels <= kMostOfImages &&
         2 * task.problem.y_channels >= planes::kBlockChannels;
}

bool OursComeFirst(const Task& task, bool in_tf32, bool has_window) {
  const Problem& problem = task.problem;
  if (CudnnHasDepthwise(task)) {
    return false;
  }
  if (IsNarrow(problem)) {
    return has_window || FiltersAreOursInHalf(task);
  }
  if (in_tf32) {
    return OursComeFirstInTf32(task, has_window);
  }
  // cuDNN's engines for plain matrix products take half as long as ours in double, but those for
  // steps twice as long.
  const bool is_product =
      HasOneTap(problem) && problem.group == 1 && (!HasSteps(problem) || SubsamplingPays(task));
  if (problem.type == DataType::kDouble) {
    constexpr double kEnoughProducts = 0x1.0p24;
    return !is_product && (ProductsOf(task) >= kEnoughProducts || IsFilterOfImages(task));
  }
  return IsLongRunning(task) || IsFilterOfImages(task);
}

bool ChannelsLastPays(const Task& task) {
  const Problem& problem = task.problem;
  return IsNarrow(problem) && problem.group == 1 && AreChannelsFirst(problem) &&
         (!HasOneTap(problem) || IsDenseProduct(problem)) && HasEnoughElements(problem);
}

bool PatchesPay(const Problem& problem) {
  constexpr std::int64_t kManyTaps = 9;
  constexpr std::int64_t kFewChannels = 32;
  const bool suits = TapsOf(problem) >= kManyTaps || problem.x_channels <= kFewChannels;
  return suits && HasEnoughElements(problem);
}

bool SubsamplingPays(const Task& task) {
  const Problem& problem = task.problem;
  return problem.group == 1 && AreChannelsFirst(problem) && HasEnoughElements(problem);
}

bool PaddingPays(const Problem& problem) {
  constexpr std::int64_t kMany = 16;
  constexpr std::int64_t kEnoughOfMany = std::int64_t{1} << 19U;
  if (!IsNarrow(problem)) {
    return false;
  }
  if (!HasEnoughElements(problem)) {
    return FewestChannels(problem) >= kMany && ElementsOf(problem) >= kEnoughOfMany;
  }
  return AreChannelsLast(problem) || problem.x_channels < 4;
}

}  // namespace gradsmith::conv
