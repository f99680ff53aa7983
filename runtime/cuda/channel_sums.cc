#include <cuda.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/kernel_images.h"
#include "cuda/pair_dims.h"
#include "cuda/tensor_kernels.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;

/// How many blocks keep a large GPU busy, one on each multiprocessor. With two, which read from
/// more places at a time, an H200's memory is up to a seventh slower.
constexpr std::int64_t kEnoughSumBlocks = 132;
/// It takes so many where threads read elements, not vectors.
constexpr std::int64_t kEnoughElementBlocks = 4 * kEnoughSumBlocks;
/// Less than so many vectors of each thread are not worth a partial sum.
constexpr std::int64_t kFewestVectors = 8;
/// With this many vectors or fewer for each thread, one stage takes less time than two.
constexpr std::int64_t kVectorsOfOneSlice = 16;

/// ChannelView is a tensor as the plans work on it: its channels, and all other dims.
struct ChannelView {
  std::int64_t channels = 0;
  std::int64_t channel_stride = 0;
  /// `from` strides count; coalesced, innermost last.
  PairDims others;
};

ChannelView ViewChannels(const ConstTensorRef& from) {
  ChannelView view;
  view.channels = from.dims[1];
  view.channel_stride = from.strides[1];
  for (int i = 0; i < from.rank(); ++i) {
    if (i != 1) {
      view.others.Add({from.dims[i], from.strides[i], from.strides[i]});
    }
  }
  view.others.Coalesce();
  return view;
}

/// Slices are of equal size, but for the last.
struct Slices {
  std::int64_t count;
  std::int64_t size;
};

/// Slice returns at most `wanted` slices of a multiple of `at_once` items, which are what all
/// threads take at a time; one where that takes less time than a second stage.
Slices Slice(std::int64_t items, std::int64_t wanted, std::int64_t at_once) {
  const std::int64_t all = CeilDivide(items, at_once);
  if (all <= kVectorsOfOneSlice || wanted <= 1) {
    return {1, all * at_once};
  }
  const std::int64_t steps = std::max(CeilDivide(all, wanted), kFewestVectors);
  return {CeilDivide(all, steps), steps * at_once};
}

/// PlanColumns plans for channels last: rows of vectors. False where elements cannot be taken so.
bool PlanColumns(const ChannelView& view, std::int64_t length, SumPlan* plan) {
  if (view.channel_stride != 1 || view.channels == 1 || view.others.size() > 1) {
    return false;
  }
  const std::int64_t channels = view.channels;
  const std::int64_t rows = view.others.Count();
  const std::int64_t pitch = view.others.size() == 0 ? channels : view.others.last().from;
  // Rows of a dense tensor make whole vectors when this many are taken together.
  const std::int64_t together = length / std::gcd(channels, length);
  if (pitch < channels || (pitch != channels && (together != 1 || pitch % length != 0)) ||
      rows < together) {
    return false;
  }
  ColumnSumsTask& task = plan->columns;
  task.channels = channels;
  task.rows = rows / together;
  task.pitch = pitch * together;
  task.columns = channels * together / length;
  plan->tail_rows = rows % together;
  plan->tail_offset = task.rows * task.pitch;
  const std::int64_t tiles = CeilDivide(task.columns, kSumThreads);
  const std::int64_t tile_columns = CeilDivide(task.columns, tiles);
  const std::int64_t rows_at_once = tiles == 1 ? kSumThreads / tile_columns : 1;
  const Slices slices = Slice(task.rows, CeilDivide(kEnoughSumBlocks, tiles), rows_at_once);
  if (tiles > kMostBlocksX / slices.count) {
    return false;
  }
  task.tiles = static_cast<int>(tiles);
  task.tile_columns = static_cast<int>(tile_columns);
  task.rows_at_once = static_cast<int>(rows_at_once);
  task.rows_per_slice = slices.size;
  plan->stage = SumStage::kColumns;
  plan->blocks = tiles * slices.count;
  plan->threads = static_cast<int>(CeilDivide(tile_columns * rows_at_once, 32) * 32);
  plan->partial_rows = slices.count * (tiles == 1 ? 1 : together);
  return true;
}

/// So long a slice is worth the time until its first vector is there.
constexpr std::int64_t kLongSlice = 32;  // vectors of each thread

/// GroupOf returns how many threads sum a slice of so many vectors, a power of two: fewer where
/// many short slices would take a block each.
std::int64_t GroupOf(std::int64_t vectors, std::int64_t slices) {
  const auto most = std::bit_ceil(static_cast<std::uint64_t>(CeilDivide(vectors, kFewestVectors)));
  std::int64_t group = std::min<std::int64_t>(static_cast<std::int64_t>(most), kSumThreads);
  while (group > 1 && vectors < kLongSlice * group &&
         slices * group > 2 * kEnoughSumBlocks * kSumThreads) {
    group /= 2;
  }
  return group;
}

/// BlocksInRounds returns fewer blocks, which each sum several slices one after the other, so that
/// one is enough for each multiprocessor; or two, where that would leave too many idle. Where
/// slices are short, none is taken away.
std::int64_t BlocksInRounds(std::int64_t blocks, std::int64_t vectors_of_thread) {
  if (vectors_of_thread < kLongSlice) {
    return blocks;
  }
  const auto of_rounds = [blocks](std::int64_t at_once) {
    return CeilDivide(blocks, CeilDivide(blocks, at_once));
  };
  constexpr std::int64_t kBusy = kEnoughSumBlocks * 3 / 4;
  const std::int64_t fewer = of_rounds(kEnoughSumBlocks);
  return fewer >= std::min(blocks, kBusy) ? fewer : of_rounds(2 * kEnoughSumBlocks);
}

/// PlanRows plans for channels first: dense rows of each channel. False where there are none.
bool PlanRows(const ChannelView& view, std::int64_t length, SumPlan* plan) {
  if (view.others.size() == 0 || view.others.last().from != 1) {
    return false;
  }
  PairDims outer = view.others;
  outer.Remove(outer.size() - 1);
  const std::int64_t row_length = view.others.last().size;
  std::int64_t strides = view.channel_stride;
  for (int i = 0; i < outer.size(); ++i) {
    if (outer[i].from < row_length) {
      return false;  // rows that overlap may share the tensor's last vector
    }
    strides |= outer[i].from;
  }
  // Vectors are counted from the tensor's first element: a row can begin and end within one.
  const bool whole = (strides | row_length) % length == 0;
  const std::int64_t slack = strides % length == 0 ? length - 1 : 2 * (length - 1);
  const std::int64_t vectors = (row_length + (whole ? 0 : slack)) / length;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max() / 2;  // counted in int
  if (row_length > kMost || outer.Count() > kMost) {
    return false;
  }
  RowSumsTask& task = plan->rows;
  task.channels = view.channels;
  task.channel_stride = view.channel_stride;
  task.rows = outer.Grid();
  task.row_length = static_cast<int>(row_length);
  task.vectors_of_row = static_cast<int>(vectors);
  task.whole = whole ? 1 : 0;
  task.count = task.rows.count * vectors;
  task.extent = 1 + ((view.channels - 1) * view.channel_stride);
  for (int i = 0; i < view.others.size(); ++i) {
    task.extent += (view.others[i].size - 1) * view.others[i].from;
  }
  const std::int64_t group = GroupOf(task.count, task.channels);
  const std::int64_t groups_of_block = kSumThreads / group;
  const Slices slices = Slice(task.count, kEnoughSumBlocks / task.channels, group);
  task.group = static_cast<int>(group);
  task.step_rows = static_cast<int>(group / vectors);
  task.step_vectors = static_cast<int>(group % vectors);
  task.count_per_slice = slices.size;
  task.slices = slices.count;
  plan->blocks = BlocksInRounds(
      CeilDivide(task.channels * slices.count, groups_of_block), slices.size / group);
  plan->partial_rows = slices.count;
  plan->stage = SumStage::kRows;
  return plan->blocks <= kMostBlocksX && task.count / group <= kMost;
}

void PlanAny(const ChannelView& view, SumPlan* plan) {
  AnySumsTask& task = plan->any;
  task.channels = view.channels;
  task.channel_stride = view.channel_stride;
  task.grid = view.others.Grid();
  // Neighbouring threads go along what is nearest in memory.
  const bool along_channels =
      view.others.size() == 0 || view.channel_stride < view.others.last().from;
  const auto channels = static_cast<std::uint64_t>(view.channels);
  task.channels_at_once =
      along_channels ? static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(channels), 32)) : 1;
  task.channel_tiles = CeilDivide(view.channels, task.channels_at_once);
  const Slices slices = Slice(
      task.grid.count, CeilDivide(kEnoughElementBlocks, task.channel_tiles),
      std::int64_t{kSumThreads} / task.channels_at_once);
  task.count_per_slice = slices.size;
  plan->stage = SumStage::kAny;
  plan->blocks = slices.count * task.channel_tiles;
  plan->partial_rows = slices.count;
}

/// PlanOneStage plans a block for each channel, or each few: slow, but there is nothing to keep in
/// between.
SumPlan PlanOneStage(const ConstTensorRef& from) {
  SumPlan plan;
  PlanAny(ViewChannels(from), &plan);
  plan.any.count_per_slice = plan.any.grid.count;
  plan.blocks = plan.any.channel_tiles;
  plan.partial_rows = 1;
  return plan;
}

void PlanStage(const ConstTensorRef& from, SumPlan* plan) {
  const ChannelView view = ViewChannels(from);
  const std::int64_t length = ElementsOfVector(from.type);
  if (!PlanColumns(view, length, plan) && !PlanRows(view, length, plan)) {
    PlanAny(view, plan);
  }
}

/// IsOneStage is true where the first stage's sums are the result.
bool IsOneStage(const SumPlan& plan) {
  return plan.partial_rows == 1 && plan.tail_rows == 0;
}

Status CheckChannels(const ConstTensorRef& tensor) {
  if (tensor.rank() < 2) {
    return InvalidArgument(
        "a tensor with channels has dims " + ToString(tensor.dims) + "; expected (N, C, D...)");
  }
  return CheckRank(tensor.rank());
}

Status LaunchFirstStage(
    CUstream stream,
    SumPlan* plan,
    const ConstTensorRef& from,
    const SumsTarget& target) {
  static KernelsOfTypes columns_kernels;
  static KernelsOfTypes rows_kernels;
  static KernelsOfTypes any_kernels;
  LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(plan->blocks),
      .blocks_y = 1,
      .blocks_z = 1,
      .threads = static_cast<unsigned>(plan->threads),
      .shared_bytes = static_cast<unsigned>(plan->threads * kSumRingBytes)};
  const int aligned = AlignmentClass(from.data, from.type) == kVectorBytes ? 1 : 0;
  switch (plan->stage) {
    case SumStage::kNone:
      break;
    case SumStage::kColumns:
      plan->columns.aligned = aligned;
      return LaunchFound(
          FindOfType(kImage_sum_channels, &columns_kernels, "sum_columns_", from.type), shape,
          stream, from.data, target, plan->columns);
    case SumStage::kRows:
      plan->rows.aligned = aligned;
      return LaunchFound(
          FindOfType(kImage_sum_channels, &rows_kernels, "sum_rows_", from.type), shape, stream,
          from.data, target, plan->rows);
    case SumStage::kAny:
      shape.shared_bytes = 0;
      return LaunchFound(
          FindOfType(kImage_sum_channels, &any_kernels, "sum_any_", from.type), shape, stream,
          from.data, target, plan->any);
  }
  return {};
}

/// ShapeOfFinish returns how rows of partial sums are added up: the task's rows, channels and tail
/// are set, and what else depends on `sums` becomes so.
LaunchShape ShapeOfFinish(const TensorRef& sums, FinishSumsTask* finish) {
  FinishSumsTask& task = *finish;
  // Of many rows a block reads more at once, 32 bytes of each; of not so many only where channels
  // are few, as blocks are then.
  constexpr std::int64_t kManyRows = 1024;
  constexpr std::int64_t kSomeRows = 128;
  constexpr std::int64_t kFewChannels = 512;
  const bool is_tall =
      task.rows >= kManyRows || (task.rows >= kSomeRows && task.channels <= kFewChannels);
  const std::uint64_t most_channels = is_tall ? 8 : 32;
  task.sums_stride = sums.strides[0];
  const std::uint64_t side =
      std::min(std::bit_ceil(static_cast<std::uint64_t>(task.channels)), most_channels);
  task.channels_at_once = static_cast<int>(side);
  task.accumulate = sums.accumulate ? 1 : 0;
  // Few partial sums need few threads.
  const auto rows = static_cast<std::uint64_t>(std::max<std::int64_t>(task.rows, 1));
  const std::uint64_t rows_at_once = std::min(std::bit_ceil(rows), kMaxFinishThreads / side);
  return {
      .blocks_x = static_cast<unsigned>(CeilDivide(task.channels, task.channels_at_once)),
      .blocks_y = 1,
      .blocks_z = 1,
      .threads = static_cast<unsigned>(side * rows_at_once),
      .shared_bytes = 0};
}

Status LaunchFinish(
    CUstream stream,
    FinishSumsTask task,
    DataType type,
    const void* partial,
    const void* tail,
    const TensorRef& sums) {
  static KernelsOfTypes kernels;
  const LaunchShape shape = ShapeOfFinish(sums, &task);
  return LaunchFound(
      FindOfType(kImage_sum_channels, &kernels, "sum_finish_", type), shape, stream, partial, tail,
      sums.data, task);
}

/// Whether a thread had better add up the few rows of some of many channels.
bool HasFewRows(std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t kFewRows = 64;
  constexpr std::int64_t kManyChannels = 1 << 17;
  return rows <= kFewRows && channels >= kManyChannels;
}

Status
LaunchFewRows(CUstream stream, std::int64_t rows, const void* partial, const TensorRef& sums) {
  static KernelsOfTypes kernels;
  constexpr std::int64_t kChannels = std::int64_t{kFinishFewThreads} * kFinishFewChannels;
  FinishSumsTask task;
  task.rows = rows;
  task.channels = sums.dims[0];
  task.sums_stride = sums.strides[0];
  task.accumulate = sums.accumulate ? 1 : 0;
  const LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(CeilDivide(task.channels, kChannels)),
      .threads = kFinishFewThreads};
  return LaunchFound(
      FindOfType(kImage_sum_channels, &kernels, "sum_finish_few_", sums.type), shape, stream,
      partial, sums.data, task);
}

}  // namespace

SumPlan PlanSums(const ConstTensorRef& from, std::size_t workspace_limit) {
  SumPlan plan;
  if (!CheckChannels(from).ok() || IsEmpty(from.dims)) {
    return plan;
  }
  PlanStage(from, &plan);
  const std::size_t size = from.type == DataType::kDouble ? sizeof(double) : sizeof(float);
  plan.workspace =
      IsOneStage(plan) ? 0 : static_cast<std::size_t>(plan.partial_rows * from.dims[1]) * size;
  return plan.workspace > workspace_limit ? PlanOneStage(from) : plan;
}

Status SumChannels(
    CUstream stream,
    SumPlan plan,
    const ConstTensorRef& from,
    const TensorRef& sums,
    void* workspace) {
  if (Status status = CheckChannels(from); !status.ok() || from.dims[1] == 0) {
    return status;
  }
  SumsTarget target;
  if (IsOneStage(plan)) {
    target.sums = sums.data;
    target.sums_stride = sums.strides[0];
    target.accumulate = sums.accumulate ? 1 : 0;
    return LaunchFirstStage(stream, &plan, from, target);
  }
  target.partial = workspace;
  if (Status status = LaunchFirstStage(stream, &plan, from, target); !status.ok()) {
    return status;
  }
  FinishSumsTask finish;
  finish.rows = plan.partial_rows;
  finish.channels = from.dims[1];
  finish.tail_rows = plan.tail_rows;
  finish.tail_offset = plan.tail_offset;
  return LaunchFinish(stream, finish, from.type, workspace, from.data, sums);
}

Status SumPartials(CUstream stream, std::int64_t rows, const void* partial, const TensorRef& sums) {
  if (HasFewRows(rows, sums.dims[0])) {
    return LaunchFewRows(stream, rows, partial, sums);
  }
  FinishSumsTask finish;
  finish.rows = rows;
  finish.channels = sums.dims[0];
  return LaunchFinish(stream, finish, sums.type, partial, nullptr, sums);
}

Status SumPartials(CUstream stream, const PartialSums& first, const PartialSums& second) {
  if (HasFewRows(first.rows, first.sums.dims[0])) {
    // Together all blocks would have as many threads as the few rows of the one take, or the many
    // of the other.
    const Status status = SumPartials(stream, first.rows, first.partial, first.sums);
    return status.ok() ? SumPartials(stream, second.rows, second.partial, second.sums) : status;
  }
  static KernelsOfTypes kernels;
  std::array<FinishSumsTask, 2> tasks;
  std::array<LaunchShape, 2> shapes;
  for (int i = 0; i < 2; ++i) {
    const PartialSums& sums = i == 0 ? first : second;
    tasks.at(i).rows = sums.rows;
    tasks.at(i).channels = sums.sums.dims[0];
    shapes.at(i) = ShapeOfFinish(sums.sums, &tasks.at(i));
  }
  const std::int64_t first_blocks = shapes[0].blocks_x;
  LaunchShape both = shapes[0];
  both.blocks_x += shapes[1].blocks_x;
  // Numbers of threads are powers of two: of more than one of them needs, some find no row.
  both.threads = std::max(shapes[0].threads, shapes[1].threads);
  return LaunchFound(
      FindOfType(kImage_sum_channels, &kernels, "sum_finish_two_", first.sums.type), both, stream,
      first.partial, first.sums.data, tasks[0], first_blocks, second.partial, second.sums.data,
      tasks[1]);
}

}  // namespace gradsmith::cuda
