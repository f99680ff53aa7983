#include "batch_norm/cuda/own_plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "batch_norm/cuda/own_slices.h"
#include "core/grid.h"
#include "core/tiles.h"

namespace gradsmith::batch_norm::own {
namespace {

using internal::CeilDivide;
using internal::Grid;

static_assert(kSampleDims == Grid::kRank && kInner == Grid::kLast);

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

/// SampleOffset returns where a sample of channel 0 lies.
std::int64_t SampleOffset(const Grid& grid, std::int64_t sample) {
  return internal::GridCursor(grid, sample).offset();
}

/// Fills in the sample dims, made as few as serve all tensors.
void SetDims(const Tensors& tensors, const ConstTensorRef& leader, Plan* plan) {
  std::array<Operand*, 3> operands = {
      &plan->operands.dY, &plan->operands.X, &plan->operands.output};
  std::array<Grid, 3> grids;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    grids[k] = SampleGrid(tensors[k] != nullptr ? *tensors[k] : leader);
  }
  internal::Collapse(grids);
  Walk& walk = plan->walk;
  walk.channels = leader.dims[1];
  walk.samples = SamplesPerChannel(leader.dims);
  std::ranges::copy(grids[0].counts, std::begin(walk.counts));
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (tensors[k] != nullptr) {
      operands[k]->data = const_cast<void*>(tensors[k]->data);
      operands[k]->channel_stride = tensors[k]->strides[1];
      std::ranges::copy(grids[k].strides, std::begin(operands[k]->strides));
    }
  }
  std::ranges::copy(walk.counts, std::begin(plan->grid.counts));
  plan->grid.dY = plan->operands.dY;
  plan->grid.X = plan->operands.X;
  constexpr std::array<std::int64_t, 3> kPermille = {307, 551, 809};
  for (std::size_t i = 0; i < kPermille.size(); ++i) {
    walk.pivots[i] = SampleOffset(grids[1], walk.samples * kPermille[i] / 1000);
  }
}

/// Whether something holds of all operands that are present.
template <typename Holds>
bool AllOf(const Tensors& tensors, const Operands& operands, const Holds& holds) {
  return (tensors[0] == nullptr || holds(operands.dY)) &&
         (tensors[1] == nullptr || holds(operands.X)) &&
         (tensors[2] == nullptr || holds(operands.output));
}

template <typename Change>
void ForEach(Operands* operands, const Change& change) {
  for (Operand* operand : {&operands->dY, &operands->X, &operands->output}) {
    change(operand);
  }
}

bool AreMultiples(std::span<const std::int64_t> strides, std::int64_t per_vector) {
  return std::ranges::all_of(
      strides, [&](std::int64_t stride) { return stride % per_vector == 0; });
}

/// Channels last, in vectors, if they can be had: by strides, as the order of sums must not depend
/// on addresses.
bool TakeChannelVectors(const Tensors& tensors, std::int64_t per_vector, Plan* plan) {
  Walk& walk = plan->walk;
  const bool neighbours = AllOf(
      tensors, plan->operands, [](const Operand& operand) { return operand.channel_stride == 1; });
  if (neighbours && walk.channels % per_vector == 0) {
    return AllOf(tensors, plan->operands, [&](const Operand& operand) {
      return AreMultiples(operand.strides, per_vector);
    });
  }
  const bool dense = AllOf(tensors, plan->operands, [&](const Operand& operand) {
    return operand.strides[kInner] == walk.channels;
  });
  if (!neighbours || !dense || walk.counts[kInner] != walk.samples || walk.samples < per_vector) {
    return false;
  }
  // So many samples together are whole vectors.
  walk.columns = per_vector * walk.channels;
  walk.counts[kInner] = walk.samples / per_vector;
  walk.tail = walk.samples % per_vector * walk.channels;
  ForEach(&plan->operands, [&](Operand* operand) { operand->strides[kInner] *= per_vector; });
  return true;
}

/// The divisor of a row's vectors that leaves the fewest threads of a block idle; 0: none is wide.
std::int64_t PickPart(const ColumnOrder& order, std::int64_t vectors) {
  std::int64_t best = 0;
  std::int64_t most = 0;
  for (std::int64_t part = std::clamp<std::int64_t>(vectors, 1, order.least_width);
       part <= std::min<std::int64_t>(vectors, kMaxWidth); ++part) {
    if (vectors % part != 0) {
      continue;
    }
    if (const std::int64_t busy = kThreads / part * part; busy >= most) {
      best = part;
      most = busy;
    }
  }
  return best;
}

/// The channels whose rows, one behind the other, are taken as one; the fewest that are whole
/// vectors, or more where they are short.
std::int64_t RowsTogether(
    const ColumnOrder& order,
    std::int64_t channels,
    std::int64_t row,
    std::int64_t per_vector) {
  std::int64_t count = 1;
  while (channels % (2 * count) == 0 &&
         (count * row % per_vector != 0 || 2 * count * row <= order.width * per_vector)) {
    count *= 2;
  }
  return count;
}

/// A dim of one is none: rows have fewer dims then.
void DropInner(Plan* plan) {
  const auto drop = [](std::int64_t* values, std::int64_t first) {
    std::copy_backward(values, values + kInner, values + kSampleDims);
    values[0] = first;
  };
  drop(plan->walk.counts, 1);
  ForEach(&plan->operands, [&](Operand* operand) { drop(operand->strides, 0); });
}

/// Channels first, in vectors, if they can be had: parts of rows, or rows of some channels
/// together.
bool TakeRowVectors(
    const ColumnOrder& order,
    const Tensors& tensors,
    std::int64_t per_vector,
    Plan* plan) {
  Walk& walk = plan->walk;
  const std::int64_t row = walk.counts[kInner];
  const bool dense = AllOf(tensors, plan->operands, [&](const Operand& operand) {
    return operand.channel_stride == row || walk.channels == 1;
  });
  const std::int64_t together = dense ? RowsTogether(order, walk.channels, row, per_vector) : 1;
  const std::int64_t part =
      together == 1 ? PickPart(order, row / per_vector) : together * row / per_vector;
  const bool vectors = AllOf(tensors, plan->operands, [&](const Operand& operand) {
    return operand.strides[kInner] == 1 &&
           AreMultiples(std::span(operand.strides).first<kInner>(), per_vector) &&
           (dense || operand.channel_stride % per_vector == 0);
  });
  if (!vectors || together * row % per_vector != 0 || part == 0 || part > kMaxWidth) {
    return false;
  }
  walk.width = static_cast<int>(part);
  walk.run = together == 1 ? part * per_vector : row;
  walk.columns = walk.channels * walk.run;
  walk.counts[kInner] = row / walk.run;
  ForEach(&plan->operands, [&](Operand* operand) { operand->strides[kInner] = walk.run; });
  if (row == walk.run) {
    DropInner(plan);
  }
  return true;
}

/// Chooses the path, and what the columns are if it goes along them.
Path ChoosePath(
    const ColumnOrder& order,
    const Tensors& tensors,
    const Operand& leader,
    std::int64_t per_vector,
    Plan* plan) {
  Walk& walk = plan->walk;
  walk.columns = walk.channels;
  walk.run = 1;
  if (std::ranges::any_of(std::span(walk.counts).first<kInner>(), [](std::int64_t count) {
        return count > std::numeric_limits<int>::max();
      })) {
    return Path::kRows;
  }
  if (walk.channels > 1 &&
      (walk.counts[kInner] == 1 || leader.channel_stride < leader.strides[kInner])) {
    return TakeChannelVectors(tensors, per_vector, plan) ? Path::kVectors : Path::kColumns;
  }
  return TakeRowVectors(order, tensors, per_vector, plan) ? Path::kVectors : Path::kRows;
}

/// The threads beside each other with which a block is through so many rows soonest: a power of
/// two, and one whose vectors fill a line of the cache where there are as many.
int RowWidth(std::int64_t rows, std::int64_t length, std::int64_t per_vector) {
  constexpr int kLine = 128 / kVectorBytes;
  const std::int64_t vectors = length / per_vector;
  const std::int64_t edges = std::min(length, 2 * (per_vector - 1));  // at most
  int best = 1;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int width = 1; width <= kThreads; width *= 2) {
    const std::int64_t steps = CeilDivide(rows, kThreads / width) *
                               (CeilDivide(vectors, width) + CeilDivide(edges, width));
    if (steps <= least || width <= std::min<std::int64_t>(kLine, vectors)) {
      best = width;
      least = steps;
    }
  }
  return best;
}

/// Whether elements of rows that are a vector in one tensor are one in all.
bool AreVectorsAlike(
    const Tensors& tensors,
    const Operand& leader,
    std::int64_t per_vector,
    const Plan& plan) {
  const auto alike = [&](std::int64_t a, std::int64_t b) { return (a - b) % per_vector == 0; };
  return AllOf(tensors, plan.operands, [&](const Operand& operand) {
    bool result = operand.strides[kInner] == 1 && IsAligned(operand) &&
                  (plan.walk.channels == 1 || alike(operand.channel_stride, leader.channel_stride));
    for (int k = 0; k < kInner; ++k) {
      result = result && (plan.walk.counts[k] == 1 || alike(operand.strides[k], leader.strides[k]));
    }
    return result;
  });
}

void CutRows(
    const Order& order,
    const Tensors& tensors,
    const Operand& leader,
    std::int64_t per_vector,
    Plan* plan) {
  Walk& walk = plan->walk;
  const std::int64_t inner = walk.counts[kInner];
  const std::int64_t rows = walk.samples / inner;
  walk.pieces = CeilDivide(inner, kPieceElements);
  walk.slices = RowSlices(order, walk.channels, walk.samples);
  walk.width = RowWidth(
      CeilDivide(rows * walk.pieces, walk.slices), std::min(inner, kPieceElements), per_vector);
  walk.vectors_alike = AreVectorsAlike(tensors, leader, per_vector, *plan);
  walk.places = walk.channels;
  plan->blocks_x = walk.channels;
}

void CutColumns(const Policy& policy, std::int64_t per_thread, bool is_map, Plan* plan) {
  const ColumnOrder& order = policy.order.columns;
  Walk& walk = plan->walk;
  walk.steps = 1;
  for (const std::int64_t count : walk.counts) {
    walk.steps *= count;
  }
  int narrow = 0;
  if (walk.run == 1) {
    const std::int64_t vectors = walk.columns / per_thread;
    narrow = per_thread > 1 && walk.columns == walk.channels
                 ? NarrowWidth(order, vectors, walk.steps)
                 : 0;
    walk.width = narrow > 0 ? narrow : ColumnWidth(order, vectors);
  }
  plan->blocks_x = CeilDivide(walk.columns, walk.width * per_thread);
  walk.places = plan->blocks_x == 1 && walk.run == 1 ? walk.channels : walk.columns / walk.run;
  walk.slices = ColumnSlices(policy.order, plan->blocks_x, walk.steps, walk.width);
  if (per_thread > 1 && walk.columns == walk.channels * walk.run) {
    const bool short_tiles =
        plan->blocks_x >= order.least_tiles && walk.steps * walk.width <= order.short_tile;
    walk.slices = short_tiles || narrow > 0 ? 1 : walk.slices;
    plan->whole = walk.slices == 1;
  }
  const std::int64_t lanes = kThreads / walk.width;
  // Slices side by side in memory go through it together. Where steps are in several rows, to go so
  // far would take a division each time.
  const bool interleaved = walk.counts[kInner] == walk.steps;
  if (is_map && !interleaved && !plan->whole &&
      walk.steps * plan->blocks_x >= policy.map_blocks * lanes * policy.long_map) {
    walk.slices = std::max(walk.slices, policy.map_blocks / plan->blocks_x);
  }
  walk.ahead = interleaved ? lanes * walk.slices : lanes;
  ForEach(&plan->operands, [&](Operand* operand) {
    operand->ahead = operand->strides[kInner] * walk.ahead;
    std::int64_t change = 0;
    for (int k = 0; k < kInner; ++k) {
      const int dim = kInner - k;
      change += operand->strides[dim - 1] - (walk.counts[dim] * operand->strides[dim]);
      operand->to_next_row[k] = change;
    }
  });
}

/// Whether the samples of a channel all lie at one distance.
bool IsEvenlySpaced(const ConstTensorRef& tensor) {
  std::array<Grid, 1> grids = {SampleGrid(tensor)};
  internal::Collapse(grids);
  return grids[0].counts[Grid::kLast] == SamplesPerChannel(tensor.dims);
}

}  // namespace

std::int64_t SamplesPerChannel(const Dims& dims) {
  std::int64_t samples = 1;
  for (int i = 0; i < dims.size(); ++i) {
    samples *= i == 1 ? 1 : dims[i];
  }
  return samples;
}

Plan MakePlan(const Policy& policy, const Tensors& tensors) {
  const bool has_x = tensors[1] != nullptr;
  const ConstTensorRef& leader = has_x ? *tensors[1] : *tensors[0];
  Plan plan;
  SetDims(tensors, leader, &plan);
  const std::int64_t per_vector = PerVector(leader.type);
  const Operand leading = has_x ? plan.operands.X : plan.operands.dY;
  plan.path = ChoosePath(policy.order.columns, tensors, leading, per_vector, &plan);
  if (plan.path == Path::kRows) {
    CutRows(policy.order, tensors, leading, per_vector, &plan);
  } else {
    CutColumns(policy, plan.path == Path::kVectors ? per_vector : 1, tensors[2] != nullptr, &plan);
  }
  plan.blocks_x = std::min(plan.blocks_x, kMaxBlocksX);
  return plan;
}

bool IsAligned(const Operand& operand) {
  return reinterpret_cast<std::uintptr_t>(operand.data) % kVectorBytes == 0;
}

bool SumAlike(const Plan& a, const Plan& b) {
  return a.path == b.path && a.walk.columns == b.walk.columns && a.walk.run == b.walk.run &&
         a.walk.steps == b.walk.steps && a.walk.width == b.walk.width &&
         a.walk.ahead == b.walk.ahead;
}

bool IsShort(const Policy& policy, const ConstTensorRef& tensor) {
  const ShortOrder& order = policy.order.of_short;
  const std::int64_t samples = SamplesPerChannel(tensor.dims);
  return samples > 0 && samples <= order.most_samples &&
         samples * tensor.dims[1] <= order.most_elements && IsEvenlySpaced(tensor);
}

Plan DimsPlan(const Tensors& tensors) {
  Plan plan;
  SetDims(tensors, tensors[1] != nullptr ? *tensors[1] : *tensors[0], &plan);
  return plan;
}

Plan ShortPlan(const Tensors& tensors) {
  Plan plan = DimsPlan(tensors);
  plan.blocks_x = CeilDivide(plan.walk.channels, kShortThreads);
  return plan;
}

Walk EmptyWalk(const Dims& dims) {
  Walk walk{};
  walk.channels = dims[1];
  return walk;
}

}  // namespace gradsmith::batch_norm::own
