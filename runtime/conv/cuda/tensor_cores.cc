#include "conv/cuda/tensor_cores.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conv/cuda/channels_last.h"
#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/tensor_cores_arguments.h"
#include "core/candidate_name.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using cuda::DivisorOf;
using internal::CeilDivide;
using tensor_cores::CorrelateArguments;
using tensor_cores::FilterArguments;
using tensor_cores::kSpatialRank;
using tensor_cores::kTiles;
using tensor_cores::Math;
using tensor_cores::Part;
using tensor_cores::Tile;

// --- what the kernels take ----------------------------------------------------------------------

/// Positions, sizes and chunks are counted in 32 bits, sums of a few among them.
constexpr std::int64_t kMostPositions = 1 << 28;
constexpr std::int64_t kMostChunks = 1 << 30;
constexpr std::int64_t kMostOffset = std::numeric_limits<std::int16_t>::max();

/// Terms that a stage holds of a line.
int DepthOf(const Task& task) {
  return tensor_cores::kDepthBytes / static_cast<int>(SizeOf(task.problem.type));
}

int VectorOf(const Task& task) {
  return tensor_cores::kChunkBytes / static_cast<int>(SizeOf(task.problem.type));
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

bool Fits(const cuda::DeviceInfo& device, const Task& task) {
  return device.compute_capability() >= kFirstWithTensorCores && !IsEmpty(task.problem) &&
         HasWholeChunks(task) && IsChannelsLast(task) && HasSmallSizes(task);
}

// --- arguments ----------------------------------------------------------------------------------

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
    if (parts_ == tensor_cores::kMostParts || taps_ + count > tensor_cores::kMostTaps) {
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

/// Correlation is what forward and backward data are launched with, but for what depends on the
/// tile.
struct Correlation {
  CorrelateArguments arguments{};
  int parts = 0;
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

/// Whether a panel has room for the ends of all lines that a tile has of the result, and the next
/// panel's time to arrive.
bool FitsByLines(const Correlation& correlation, Tile tile) {
  const CorrelateArguments& arguments = correlation.arguments;
  if (correlation.parts != 1 || arguments.line_taps < tile.stages - 1 ||
      arguments.source_step[kSpatialRank - 1] != 1) {
    return false;
  }
  const std::int64_t size = arguments.parts[0].sizes[kSpatialRank - 1].divisor;
  const std::int64_t lines = CeilDivide(tile.rows - 1, size) + 1;
  return tile.rows + (lines * arguments.line_span) <= tensor_cores::LineRowsOf(tile.rows);
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

/// The same for the filter's gradient, whose panels hold the positions of a stage.
bool FitsByLines(const Task& task) {
  const Axis axis = AxesOf(task.problem).back();
  const std::int64_t depth = DepthOf(task);
  const std::int64_t span = (axis.w - 1) * axis.dilation;
  const std::int64_t lines = CeilDivide(depth - 1, axis.y) + 1;
  return axis.w == tensor_cores::kFilterLineTaps && axis.stride == 1 &&
         depth + (lines * span) <= tensor_cores::kFilterLineRows;
}

// --- variants -----------------------------------------------------------------------------------

constexpr std::array<const char*, 5> kMathNames = {"float", "tf32", "double", "half", "bf16"};

Math MathFor(DataType type, bool in_tf32) {
  switch (type) {
    case DataType::kDouble:
      return Math::kDouble;
    case DataType::kMLFloat16:
      return Math::kHalf;
    case DataType::kBFloat16:
      return Math::kBfloat16;
    default:
      return in_tf32 ? Math::kTf32 : Math::kFloat;
  }
}

constexpr std::int64_t kMostSlices = 256;
constexpr const char* kSlices = "/slices";

/// Variant is what a candidate's id says: a math and one of its tiles, whether taps share rows, and
/// how many slices there may be, where that is less than usual.
struct Variant {
  Math math = Math::kFloat;
  int place = 0;
  Tile tile = {};
  bool by_lines = false;
  std::int64_t most_slices = kMostSlices;

  [[nodiscard]] std::string Id() const {
    return std::string(kMathNames.at(static_cast<std::size_t>(math))) +
           (by_lines ? "/lines/" : "/") + std::to_string(tile.rows) + "x" +
           std::to_string(tile.columns) +
           (most_slices < kMostSlices ? kSlices + std::to_string(most_slices) : "");
  }
};

/// Whether a text is the variant's id, but for the slices that it asks for: these are put down.
bool ReadAs(std::string_view text, Variant* variant) {
  const std::string id = variant->Id();
  if (!text.starts_with(id)) {
    return false;
  }
  text.remove_prefix(id.size());
  return text.empty() ||
         (internal::TakeNumber(&text, kSlices, &variant->most_slices) && text.empty() &&
          variant->most_slices >= 1 && variant->most_slices < kMostSlices);
}

std::vector<Variant> VariantsOf(const Task& task, bool in_tf32) {
  const Math math = MathFor(task.problem.type, in_tf32);
  std::vector<Variant> variants;
  variants.reserve(kTiles);
  for (int place = 0; place < kTiles; ++place) {
    variants.push_back({math, place, tensor_cores::TileAt(math, IsFilter(task), place)});
  }
  if (SizeOf(task.problem.type) > 2) {
    return variants;
  }
  if (IsFilter(task)) {
    variants.push_back({math, 0, tensor_cores::kFilterLineTile, /*by_lines=*/true});
  } else {
    for (int place = 0; place < tensor_cores::kLineTiles; ++place) {
      variants.push_back({math, place, tensor_cores::kLineTilesOfHalf[place], /*by_lines=*/true});
    }
  }
  return variants;
}

/// How many tiles a row of the filter's gradient has. By lines, columns come in units.
int ColumnTilesOf(const FilterArguments& arguments, const Variant& variant) {
  std::int64_t columns = arguments.columns;
  if (variant.by_lines) {
    const std::int64_t lines = columns / arguments.channels / tensor_cores::kFilterLineTaps;
    const std::int64_t units =
        lines * CeilDivide(arguments.channels, tensor_cores::kFilterLineChannels);
    columns = CeilDivide(units, tensor_cores::kFilterLineUnits) * variant.tile.columns;
  }
  return static_cast<int>(CeilDivide(columns, variant.tile.columns));
}

/// Grid is a launch: for each group, and for each part of a correlation, `blocks`, and for the
/// filter's gradient slices of the positions.
struct Grid {
  std::int64_t blocks = 0;
  std::int64_t slices = 1;
  /// Rounds of blocks, a round of those that sum only a part of the terms counting less.
  double rounds = 0;
};

std::int64_t RoomFor(const cuda::DeviceInfo& device, Tile tile) {
  return std::int64_t{device.multiprocessors()} * tile.blocks;
}

double RoundsOf(std::int64_t blocks, std::int64_t room, std::int64_t slices) {
  return static_cast<double>(CeilDivide(blocks * slices, room)) / static_cast<double>(slices);
}

/// How many positions one of so many slices has, in whole stages.
int PositionsOfSlice(const Task& task, const FilterArguments& arguments, std::int64_t slices) {
  const int depth = DepthOf(task);
  return static_cast<int>(CeilDivide(CeilDivide(arguments.positions, slices), depth) * depth);
}

/// GridOf has as many slices as keep the device busy, and few: their sums are added up afterwards.
/// `arguments` are all set but for slices.
Grid GridOf(
    const cuda::DeviceInfo& device,
    const Task& task,
    const FilterArguments& arguments,
    const Variant& variant) {
  constexpr std::int64_t kFewestStages = 8;
  constexpr double kWorthMore = 0.97;
  const Tile tile = variant.tile;
  const std::int64_t room = RoomFor(device, tile);
  const std::int64_t most = std::clamp<std::int64_t>(
      arguments.positions / (kFewestStages * DepthOf(task)), 1, variant.most_slices);
  Grid grid;
  grid.blocks = CeilDivide(arguments.rows, tile.rows) * arguments.column_tiles;
  const std::int64_t blocks = grid.blocks * task.problem.group;
  grid.rounds = RoundsOf(blocks, room, 1);
  for (std::int64_t slices = 2; slices <= most; ++slices) {
    const double rounds = RoundsOf(blocks, room, slices);
    if (rounds < kWorthMore * grid.rounds) {
      grid.slices = slices;
      grid.rounds = rounds;
    }
  }
  // There may be fewer than were asked for.
  grid.slices = CeilDivide(arguments.positions, PositionsOfSlice(task, arguments, grid.slices));
  return grid;
}

Grid GridOf(
    const cuda::DeviceInfo& device,
    const Task& task,
    const Correlation& correlation,
    Tile tile) {
  const std::int64_t column_tiles = CeilDivide(correlation.arguments.columns, tile.columns);
  Grid grid;
  for (int i = 0; i < correlation.parts; ++i) {
    const Part& part = correlation.arguments.parts[i];
    const std::int64_t blocks = CeilDivide(part.rows, tile.rows) * column_tiles;
    grid.blocks = std::max(grid.blocks, blocks);
    grid.rounds += RoundsOf(blocks * task.problem.group, RoomFor(device, tile), 1) * part.taps;
  }
  return grid;
}

/// Whether the only slice's sums go straight to the gradient.
bool IsWhole(const Grid& grid, const Variant& variant) {
  return grid.slices == 1 && !variant.by_lines;
}

/// How many bytes a slice's sums take: those of half and bf16 are in float.
std::size_t SliceBytes(const Task& task) {
  return static_cast<std::size_t>(NumElements(DimsOf(task.problem, kW))) *
         std::max(SizeOf(task.problem.type), sizeof(float));
}

std::size_t FilterWorkspace(const Task& task, const Grid& grid, const Variant& variant) {
  return IsWhole(grid, variant) ? 0 : static_cast<std::size_t>(grid.slices) * SliceBytes(task);
}

/// What a variant costs beside the others of its math: what its rounds multiply, and more for tiles
/// that read more often what they multiply, most of all where that is multiplied but once. By lines
/// `line_taps` read the same.
double CostOf(const Grid& grid, const Variant& variant, int line_taps) {
  const Tile tile = variant.tile;
  const bool is_once = variant.math != Math::kFloat && variant.math != Math::kDouble;
  const double weight = is_once ? 64 : 16;
  const double area = static_cast<double>(tile.rows) * tile.columns;
  const double columns = static_cast<double>(tile.columns) * (variant.by_lines ? line_taps : 1);
  const double reads = (1.0 / tile.rows) + (1.0 / columns);
  return grid.rounds * tile.blocks * area * (1 + (weight * reads));
}

/// How much is multiplied for what must be, as tiles and stages are filled up.
double WasteOf(std::int64_t size, std::int64_t multiple) {
  return static_cast<double>(CeilDivide(size, multiple) * multiple) / static_cast<double>(size);
}

/// Stages of half and bf16 end where there are no further terms of a product.
int MultipleOfTerms(const Task& task) {
  return SizeOf(task.problem.type) == 2 ? tensor_cores::TermsOfProduct(2) : DepthOf(task);
}

/// Whether tiles are so empty that other engines are quicker as a rule.
bool IsWasteful(const Task& task, Tile tile) {
  constexpr double kTooMuch = 2;
  const Problem& problem = task.problem;
  const std::int64_t x_channels = problem.x_channels / problem.group;
  const std::int64_t y_channels = problem.y_channels / problem.group;
  switch (task.primitive) {
    case Primitive::kForward:
      return WasteOf(x_channels, MultipleOfTerms(task)) * WasteOf(y_channels, tile.columns) >
             kTooMuch;
    case Primitive::kBackwardData:
      return WasteOf(y_channels, MultipleOfTerms(task)) * WasteOf(x_channels, tile.columns) >
             kTooMuch;
    case Primitive::kBackwardFilter:
      break;
  }
  const std::int64_t columns = x_channels * ProductOf(AxesOf(problem), &Axis::w);
  return WasteOf(y_channels, tile.rows) * WasteOf(columns, tile.columns) > kTooMuch;
}

constexpr std::size_t kBestTiles = 2;

/// How many candidates are worth a search's time. cuDNN multiplies half and bf16 by instructions of
/// Hopper's that take 500 to 700 TFLOP/s where channels fill its tiles, and ours can not: ours may
/// be quicker where channels are few.
std::size_t MostCandidates(const Task& task) {
  constexpr std::int64_t kFewChannels = 64;
  const Problem& problem = task.problem;
  if (SizeOf(problem.type) > 2) {
    return kTiles;
  }
  const std::int64_t fewest = std::min(problem.x_channels, problem.y_channels) / problem.group;
  return fewest <= kFewChannels ? kBestTiles : 0;
}

struct Ranked {
  double cost = 0;
  Variant variant;
  std::size_t workspace = 0;
};

/// Listing is what there is to choose from.
struct Listing {
  std::vector<Ranked> ranked;
  /// Tiles are empty for the most part.
  bool is_wasteful = true;
  /// There are fewer slices than would be quick, for want of workspace.
  bool is_short_of_workspace = false;
};

Listing RankFilters(
    const cuda::DeviceInfo& device,
    const Task& task,
    bool in_tf32,
    std::size_t workspace_limit) {
  Listing listing;
  FilterArguments arguments = MakeFilterArguments(task);
  for (Variant variant : VariantsOf(task, in_tf32)) {
    if (variant.by_lines && !FitsByLines(task)) {
      continue;
    }
    arguments.column_tiles = ColumnTilesOf(arguments, variant);
    Grid grid = GridOf(device, task, arguments, variant);
    if (FilterWorkspace(task, grid, variant) > workspace_limit) {
      listing.is_short_of_workspace = true;
      if (variant.by_lines) {
        continue;
      }
      variant.most_slices =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(workspace_limit / SliceBytes(task)));
      grid = GridOf(device, task, arguments, variant);
    }
    listing.is_wasteful = listing.is_wasteful && IsWasteful(task, variant.tile);
    listing.ranked.push_back(
        {CostOf(grid, variant, tensor_cores::kFilterLineTaps), variant,
         FilterWorkspace(task, grid, variant)});
  }
  return listing;
}

Listing RankCorrelations(const cuda::DeviceInfo& device, const Task& task, bool in_tf32) {
  Listing listing;
  const std::optional<Correlation> correlation = MakeCorrelation(task);
  if (!correlation) {
    return listing;
  }
  for (const Variant& variant : VariantsOf(task, in_tf32)) {
    if (variant.by_lines && !FitsByLines(*correlation, variant.tile)) {
      continue;
    }
    const Grid grid = GridOf(device, task, *correlation, variant.tile);
    listing.is_wasteful = listing.is_wasteful && IsWasteful(task, variant.tile);
    listing.ranked.push_back({CostOf(grid, variant, correlation->arguments.line_taps), variant, 0});
  }
  return listing;
}

/// The most promising first; one by lines, since beside the others its cost is a guess.
void KeepBest(std::size_t most, std::vector<Ranked>* ranked) {
  std::stable_sort(ranked->begin(), ranked->end(), [](const Ranked& a, const Ranked& b) {
    return a.cost < b.cost;
  });
  bool has_lines = false;
  std::erase_if(*ranked, [&](const Ranked& each) {
    return each.variant.by_lines && std::exchange(has_lines, true);
  });
  ranked->resize(std::min(ranked->size(), most));
}

// --- plans --------------------------------------------------------------------------------------

Result<CUkernel>
FindKernel(const cuda::DeviceInfo& device, Primitive primitive, Variant variant, int shared_bytes) {
  constexpr std::array<const char*, 3> kPrimitives = {"forward", "data", "filter"};
  const std::string name =
      std::string("gradsmith_tensor_cores_") + (variant.by_lines ? "lines_" : "") +
      kPrimitives.at(static_cast<std::size_t>(primitive)) + "_" +
      kMathNames.at(static_cast<std::size_t>(variant.math)) + "_" + std::to_string(variant.place);
  return cuda::FindKernelOf(
      shared_bytes, device.ordinal(),
      {&cuda::kImage_conv_tensor_cores_forward, &cuda::kImage_conv_tensor_cores_data,
       &cuda::kImage_conv_tensor_cores_filter, &cuda::kImage_conv_tensor_cores_lines,
       &cuda::kImage_conv_tensor_cores_filter_lines},
      name.c_str());
}

/// WholeFilterPlan has one slice, which leaves nothing to add up.
class WholeFilterPlan final : public internal::Plan {
 public:
  explicit WholeFilterPlan(const FilterSlices<FilterArguments>& slice) : slice_(slice) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    const void* x = launch.operands[kX];
    const void* y = launch.operands[kY];
    return cuda::Launch(
        slice_.kernel, slice_.shape, launch.stream, slice_.arguments, x, y, launch.operands[kW]);
  }

 private:
  FilterSlices<FilterArguments> slice_;
};

cuda::LaunchShape
LaunchShapeOf(const Task& task, Tile tile, std::int64_t blocks, std::int64_t y, int shared_bytes) {
  return {
      .blocks_x = static_cast<unsigned>(blocks),
      .blocks_y = static_cast<unsigned>(y),
      .blocks_z = static_cast<unsigned>(task.problem.group),
      .threads = static_cast<unsigned>(tensor_cores::ThreadsOf(tile)),
      .shared_bytes = static_cast<unsigned>(shared_bytes)};
}

Result<std::unique_ptr<internal::Plan>>
BuildFilter(const cuda::DeviceInfo& device, const Task& task, Variant variant) {
  const Tile tile = variant.tile;
  if (variant.by_lines && !FitsByLines(task)) {
    return InvalidArgument("'" + variant.Id() + "' does not fit the problem");
  }
  FilterArguments arguments = MakeFilterArguments(task);
  arguments.column_tiles = ColumnTilesOf(arguments, variant);
  const Grid grid = GridOf(device, task, arguments, variant);
  arguments.positions_of_slice = PositionsOfSlice(task, arguments, grid.slices);
  arguments.is_whole = IsWhole(grid, variant);
  arguments.accumulate = task.accumulate;
  const int shared_bytes =
      variant.by_lines ? tensor_cores::FilterLineSharedBytes()
                       : tensor_cores::SharedBytes(
                             tile, true, false, static_cast<int>(SizeOf(task.problem.type)));
  const Result<CUkernel> kernel = FindKernel(device, task.primitive, variant, shared_bytes);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const FilterSlices<FilterArguments> slices = {
      .kernel = *kernel,
      .shape = LaunchShapeOf(task, tile, grid.blocks, grid.slices, shared_bytes),
      .arguments = arguments,
      .count = grid.slices};
  if (arguments.is_whole) {
    return std::unique_ptr<internal::Plan>(std::make_unique<WholeFilterPlan>(slices));
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<FilterSlicesPlan<FilterArguments>>(
      task, slices, FilterWorkspace(task, grid, variant)));
}

Result<std::unique_ptr<internal::Plan>>
BuildCorrelate(const cuda::DeviceInfo& device, const Task& task, Variant variant) {
  std::optional<Correlation> correlation = MakeCorrelation(task);
  if (!correlation) {
    return InvalidArgument("the filter has too many taps");
  }
  const Tile tile = variant.tile;
  if (variant.by_lines && !FitsByLines(*correlation, tile)) {
    return InvalidArgument("'" + variant.Id() + "' does not fit the problem");
  }
  correlation->arguments.column_tiles =
      static_cast<int>(CeilDivide(correlation->arguments.columns, tile.columns));
  const Grid grid = GridOf(device, task, *correlation, tile);
  const bool columns_deep = task.primitive == Primitive::kForward;
  const auto element_bytes = static_cast<int>(SizeOf(task.problem.type));
  const int shared_bytes =
      variant.by_lines ? tensor_cores::LineSharedBytes(tile, columns_deep, element_bytes)
                       : tensor_cores::SharedBytes(tile, false, columns_deep, element_bytes);
  const Result<CUkernel> kernel = FindKernel(device, task.primitive, variant, shared_bytes);
  if (!kernel.ok()) {
    return kernel.status();
  }
  return std::unique_ptr<internal::Plan>(std::make_unique<CorrelatePlan<CorrelateArguments>>(
      task, correlation->arguments,
      LaunchShapeOf(task, tile, grid.blocks, correlation->parts, shared_bytes), *kernel));
}

}  // namespace

std::vector<internal::Candidate> ListTensorCores(
    const cuda::DeviceInfo& device,
    const Task& task,
    bool allow_tf32,
    std::size_t workspace_limit) {
  std::size_t most = MostCandidates(task);
  if ((most == 0 && !IsFilter(task)) || !Fits(device, task)) {
    return {};
  }
  Listing listing = IsFilter(task) ? RankFilters(device, task, allow_tf32, workspace_limit)
                                   : RankCorrelations(device, task, allow_tf32);
  if (listing.is_short_of_workspace) {
    most = std::max(most, kBestTiles);
  } else if (listing.is_wasteful) {
    return {};
  }
  KeepBest(most, &listing.ranked);
  std::vector<internal::Candidate> candidates;
  candidates.reserve(listing.ranked.size());
  for (const auto& [cost, variant, workspace] : listing.ranked) {
    candidates.push_back(
        {.id = variant.Id(),
         .engine = {},
         .notes = {.tf32 = variant.math == Math::kTf32},
         .workspace = workspace});
  }
  return candidates;
}

Result<std::unique_ptr<internal::Plan>> BuildTensorCoresPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    bool allow_tf32,
    const std::string& choice) {
  if (Fits(device, task)) {
    for (const bool in_tf32 : {false, true}) {
      for (Variant variant : VariantsOf(task, in_tf32)) {
        const bool is_it = IsFilter(task) ? ReadAs(choice, &variant) : variant.Id() == choice;
        if (is_it && (allow_tf32 || variant.math != Math::kTf32)) {
          return IsFilter(task) ? BuildFilter(device, task, variant)
                                : BuildCorrelate(device, task, variant);
        }
      }
    }
  }
  return InvalidArgument("'" + choice + "' does not fit the problem");
}

}  // namespace gradsmith::conv
