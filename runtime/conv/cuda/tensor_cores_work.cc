#include "conv/cuda/tensor_cores_work.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "conv/cuda/channels_last.h"
#include "core/tiles.h"
#include "cuda/module.h"

namespace gradsmith::conv::tensor_cores {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;

/// Positions, sizes and chunks are counted in 32 bits, sums of a few among them.
constexpr std::int64_t kMostPositions = 1 << 28;
constexpr std::int64_t kMostChunks = 1 << 30;
constexpr std::int64_t kMostOffset = std::numeric_limits<std::int16_t>::max();

int VectorOf(const Task& task) {
  return kChunkBytes / static_cast<int>(SizeOf(task.problem.type));
}

/// The group's channels are whole chunks.
bool HasWholeChunks(const Task& task) {
  const Problem& problem = task.problem;
  const std::int64_t vector = VectorOf(task);
  return problem.x_channels / problem.group % vector == 0 &&
         problem.y_channels / problem.group % vector == 0;
}

bool HasSmallSizes(const Task& task) {
  const Problem& problem = task.problem;
  bool small =
      problem.group <= cuda::kMostBlocksYz && NumElements(DimsOf(problem, kW)) <= kMostChunks;
  for (const Operand operand : {kX, kY}) {
    const std::int64_t elements = NumElements(DimsOf(problem, operand));
    const std::int64_t channels = DimsOf(problem, operand)[1];
    small =
        small && elements / VectorOf(task) <= kMostChunks && elements / channels <= kMostPositions;
  }
  for (const Axis& axis : AxesOf(problem)) {
    small = small && axis.w * axis.dilation <= kMostOffset &&
            std::abs(axis.pad_begin) <= kMostOffset && axis.y * axis.stride <= kMostPositions;
  }
  return small;
}

/// The taps by which the source reaches every `step`-th result from `first` on: for each axis the
/// taps and how far the source is from the result's place.
std::vector<std::pair<int, int>> TapsOf(Primitive primitive, const Axis& axis, std::int64_t first) {
  std::vector<std::pair<int, int>> taps;
  for (std::int64_t tap = 0; tap < axis.w; ++tap) {
    const std::int64_t from = (tap * axis.dilation) - axis.pad_begin;
    if (primitive == Primitive::kForward) {
      taps.emplace_back(tap, from);
    } else if ((first - from) % axis.stride == 0) {
      taps.emplace_back(tap, (first - from) / axis.stride);
    }
  }
  return taps;
}

class PartsMaker {
 public:
  PartsMaker(const Task& task, CorrelateArguments* arguments)
      : task_(task), axes_(AxesOf(task.problem)), arguments_(arguments) {}

  /// False where there are too many parts or taps.
  bool Make() {
    const bool is_forward = task_.primitive == Primitive::kForward;
    std::array<std::int64_t, kSpatialRank> steps{};
    for (int i = 0; i < kSpatialRank; ++i) {
      const Axis& axis = axes_.at(i);
      steps.at(i) = is_forward ? 1 : std::min(axis.stride, axis.x);
    }
    for (std::int64_t i = 0; i < steps[0]; ++i) {
      for (std::int64_t j = 0; j < steps[1]; ++j) {
        for (std::int64_t k = 0; k < steps[2]; ++k) {
          if (!Add({i, j, k})) {
            return false;
          }
        }
      }
    }
    // Those with most to do first: the others fill up what these leave of the last wave.
    std::stable_sort(
        std::begin(arguments_->parts), std::begin(arguments_->parts) + parts_,
        [](const Part& a, const Part& b) { return a.taps > b.taps; });
    return true;
  }

  [[nodiscard]] int parts() const { return parts_; }

 private:
  bool Add(const std::array<std::int64_t, kSpatialRank>& first) {
    const bool is_forward = task_.primitive == Primitive::kForward;
    std::array<std::vector<std::pair<int, int>>, kSpatialRank> taps;
    std::size_t count = 1;
    for (int i = 0; i < kSpatialRank; ++i) {
      taps.at(i) = TapsOf(task_.primitive, axes_.at(i), first.at(i));
      count *= taps.at(i).size();
    }
    if (count == 0 && task_.accumulate) {
      return true;  // there is nothing to add
    }
    if (parts_ == kMostParts || taps_ + count > kMostTaps) {
      return false;
    }
    Part& part = arguments_->parts[parts_++];
    part.first_tap = static_cast<int>(taps_);
    part.taps = static_cast<int>(count);
    std::int64_t rows = task_.problem.batch;
    for (int i = 0; i < kSpatialRank; ++i) {
      const Axis& axis = axes_.at(i);
      const std::int64_t size = is_forward ? axis.y : CeilDivide(axis.x - first.at(i), axis.stride);
      part.first[i] = static_cast<int>(first.at(i));
      part.sizes[i] = DivisorOf(size);
      rows *= size;
    }
    part.rows = static_cast<int>(rows);
    AddTaps(taps);
    return true;
  }

  void AddTaps(const std::array<std::vector<std::pair<int, int>>, kSpatialRank>& taps) {
    for (const auto& [i, from_i] : taps[0]) {
      for (const auto& [j, from_j] : taps[1]) {
        for (const auto& [k, from_k] : taps[2]) {
          const std::int64_t filter = (((i * axes_[1].w) + j) * axes_[2].w) + k;
          arguments_->taps[taps_++] = {
              {static_cast<std::int16_t>(from_i), static_cast<std::int16_t>(from_j),
               static_cast<std::int16_t>(from_k)},
              static_cast<std::int16_t>(filter)};
        }
      }
    }
  }

  const Task& task_;
  std::array<Axis, kSpatialRank> axes_;
  CorrelateArguments* arguments_;
  int parts_ = 0;
  std::size_t taps_ = 0;
};

/// What taps along the last axis share, where all results are reached by the same.
void SetLine(const Task& task, CorrelateArguments* arguments) {
  const Axis axis = AxesOf(task.problem).back();
  const std::vector<std::pair<int, int>> taps = TapsOf(task.primitive, axis, 0);
  const auto [least, most] = std::minmax_element(
      taps.begin(), taps.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  arguments->line_taps = static_cast<int>(taps.size());
  if (!taps.empty()) {
    arguments->line_offset = least->second;
    arguments->line_span = most->second - least->second;
  }
}

}  // namespace

int DepthOf(const Task& task) {
  return kDepthBytes / static_cast<int>(SizeOf(task.problem.type));
}

std::array<Axis, kSpatialRank> AxesOf(const Problem& problem) {
  std::array<Axis, kSpatialRank> axes;
  std::copy_n(
      problem.axes.begin(), problem.spatial_rank,
      axes.begin() + (kSpatialRank - problem.spatial_rank));
  return axes;
}

std::int64_t ProductOf(const std::array<Axis, kSpatialRank>& axes, std::int64_t Axis::*size) {
  std::int64_t product = 1;
  for (const Axis& axis : axes) {
    product *= axis.*size;
  }
  return product;
}

bool Fits(const cuda::DeviceInfo& device, const Task& task) {
  return device.compute_capability() >= kFirstWithTensorCores && !IsEmpty(task.problem) &&
         HasWholeChunks(task) && IsChannelsLast(task) && HasSmallSizes(task);
}

std::optional<Correlation> MakeCorrelation(const Task& task) {
  Correlation correlation;
  CorrelateArguments& arguments = correlation.arguments;
  const Problem& problem = task.problem;
  const bool is_forward = task.primitive == Primitive::kForward;
  const std::array<Axis, kSpatialRank> axes = AxesOf(problem);
  for (int i = 0; i < kSpatialRank; ++i) {
    const Axis& axis = axes.at(i);
    arguments.source_sizes[i] = static_cast<int>(is_forward ? axis.x : axis.y);
    arguments.result_sizes[i] = static_cast<int>(is_forward ? axis.y : axis.x);
    arguments.source_step[i] = static_cast<int>(is_forward ? axis.stride : 1);
    arguments.result_step[i] = static_cast<int>(is_forward ? 1 : axis.stride);
  }
  const auto x_channels = static_cast<int>(problem.x_channels);
  const auto y_channels = static_cast<int>(problem.y_channels);
  const auto group = static_cast<int>(problem.group);
  arguments.source_pitch = is_forward ? x_channels : y_channels;
  arguments.result_pitch = is_forward ? y_channels : x_channels;
  arguments.depth = arguments.source_pitch / group;
  arguments.columns = arguments.result_pitch / group;
  arguments.filter_taps = static_cast<int>(ProductOf(axes, &Axis::w));
  PartsMaker parts(task, &arguments);
  if (!parts.Make()) {
    return std::nullopt;
  }
  correlation.parts = parts.parts();
  SetLine(task, &arguments);
  return correlation;
}

bool FitsByLines(const Correlation& correlation, Tile tile) {
  const CorrelateArguments& arguments = correlation.arguments;
  if (correlation.parts != 1 || arguments.line_taps < tile.stages - 1 ||
      arguments.source_step[kSpatialRank - 1] != 1) {
    return false;
  }
  const std::int64_t size = arguments.parts[0].sizes[kSpatialRank - 1].divisor;
  const std::int64_t lines = CeilDivide(tile.rows - 1, size) + 1;
  return tile.rows + (lines * arguments.line_span) <= LineRowsOf(tile.rows);
}

FilterArguments MakeFilterArguments(const Task& task) {
  FilterArguments arguments{};
  const Problem& problem = task.problem;
  const std::array<Axis, kSpatialRank> axes = AxesOf(problem);
  arguments.x_pitch = static_cast<int>(problem.x_channels);
  arguments.y_pitch = static_cast<int>(problem.y_channels);
  arguments.rows = static_cast<int>(problem.y_channels / problem.group);
  arguments.channels = static_cast<int>(problem.x_channels / problem.group);
  arguments.columns = arguments.channels * static_cast<int>(ProductOf(axes, &Axis::w));
  arguments.positions = static_cast<int>(problem.batch * ProductOf(axes, &Axis::y));
  arguments.is_pointwise = IsPointwise(problem);
  for (int i = 0; i < kSpatialRank; ++i) {
    const Axis& axis = axes.at(i);
    arguments.x_sizes[i] = static_cast<int>(axis.x);
    arguments.y_sizes[i] = DivisorOf(axis.y);
    arguments.filter_sizes[i] = static_cast<int>(axis.w);
    arguments.stride[i] = static_cast<int>(axis.stride);
    arguments.pad[i] = static_cast<int>(axis.pad_begin);
    arguments.dilation[i] = static_cast<int>(axis.dilation);
  }
  return arguments;
}

bool FitsByLines(const Task& task) {
  const Axis axis = AxesOf(task.problem).back();
  const std::int64_t depth = DepthOf(task);
  const std::int64_t span = (axis.w - 1) * axis.dilation;
  const std::int64_t lines = CeilDivide(depth - 1, axis.y) + 1;
  return axis.w == kFilterLineTaps && axis.stride == 1 && depth + (lines * span) <= kFilterLineRows;
}

}  // namespace gradsmith::conv::tensor_cores
