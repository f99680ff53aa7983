#include "conv/cuda/tensor_cores.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/correlate_plan.h"
#include "conv/cuda/filter_slices.h"
#include "conv/cuda/tensor_cores_arguments.h"
#include "conv/cuda/tensor_cores_variants.h"
#include "conv/cuda/tensor_cores_work.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using tensor_cores::AxesOf;
using tensor_cores::CorrelateArguments;
using tensor_cores::Correlation;
using tensor_cores::DepthOf;
using tensor_cores::FilterArguments;
using tensor_cores::FilterWorkspace;
using tensor_cores::FitsByLines;
using tensor_cores::Grid;
using tensor_cores::GridOf;
using tensor_cores::kMathNames;
using tensor_cores::kTiles;
using tensor_cores::MakeCorrelation;
using tensor_cores::MakeFilterArguments;
using tensor_cores::Math;
using tensor_cores::ProductOf;
using tensor_cores::Tile;
using tensor_cores::Variant;
using tensor_cores::VariantsOf;

// --- what is worth a search ----------------------------------------------------------------------

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

/// Whether tiles are so empty that other engines are quicker as a rule. In double cuDNN's do
/// without tensor cores.
bool IsWasteful(const Task& task, Tile tile) {
  const Problem& problem = task.problem;
  const double too_much = problem.type == DataType::kDouble ? 8 : 2;
  const std::int64_t x_channels = problem.x_channels / problem.group;
  const std::int64_t y_channels = problem.y_channels / problem.group;
  switch (task.primitive) {
    case Primitive::kForward:
      return WasteOf(x_channels, MultipleOfTerms(task)) * WasteOf(y_channels, tile.columns) >
             too_much;
    case Primitive::kBackwardData:
      return WasteOf(y_channels, MultipleOfTerms(task)) * WasteOf(x_channels, tile.columns) >
             too_much;
    case Primitive::kBackwardFilter:
      break;
  }
  const std::int64_t columns = x_channels * ProductOf(AxesOf(problem), &Axis::w);
  return WasteOf(y_channels, tile.rows) * WasteOf(columns, tile.columns) > too_much;
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
    arguments.column_tiles = tensor_cores::ColumnTilesOf(arguments, variant);
    Grid grid = GridOf(device, task, arguments, variant);
    if (FilterWorkspace(task, grid, variant) > workspace_limit) {
      listing.is_short_of_workspace = true;
      if (variant.by_lines) {
        continue;
      }
      variant.most_slices = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(workspace_limit / tensor_cores::SliceBytes(task)));
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
  arguments.column_tiles = tensor_cores::ColumnTilesOf(arguments, variant);
  const Grid grid = GridOf(device, task, arguments, variant);
  arguments.positions_of_slice = tensor_cores::PositionsOfSlice(task, arguments, grid.slices);
  arguments.is_whole = tensor_cores::IsWhole(grid, variant);
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
  if ((most == 0 && !IsFilter(task)) || !tensor_cores::Fits(device, task)) {
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
  if (tensor_cores::Fits(device, task)) {
    for (const bool in_tf32 : {false, true}) {
      for (Variant variant : VariantsOf(task, in_tf32)) {
        const bool is_it =
            IsFilter(task) ? tensor_cores::ReadAs(choice, &variant) : variant.Id() == choice;
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
