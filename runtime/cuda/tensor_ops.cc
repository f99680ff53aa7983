#include "cuda/tensor_ops.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "core/tiles.h"
#include "cuda/driver.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"
#include "cuda/kernels/tensor_ops.h"
#include "cuda/module.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;

// LoadElement of cuda/kernels/element.cuh knows the types by these numbers.
static_assert(
    static_cast<int>(DataType::kFloat) == 0 && static_cast<int>(DataType::kDouble) == 1 &&
    static_cast<int>(DataType::kMLFloat16) == 2 && static_cast<int>(DataType::kBFloat16) == 3);

// ------------------------------------------------------------------------------------------------
// Kernels by name
// ------------------------------------------------------------------------------------------------

/// KernelSlot remembers a kernel that was looked up; zero-initialised, so that a table of them is
/// no static initialiser.
using KernelSlot = std::atomic<CUkernel>;
using KernelsOfTypes = std::array<KernelSlot, kFloatingTypeCount>;

/// Finds the kernel gradsmith_<family><suffix>, at the first call by its name.
template <typename Suffix>
Result<CUkernel> FindOnce(KernelSlot* slot, std::string_view family, const Suffix& suffix) {
  if (CUkernel kernel = slot->load(std::memory_order_relaxed); kernel != nullptr) {
    return kernel;
  }
  const std::string name = "gradsmith_" + std::string(family) + suffix();
  Result<CUkernel> kernel = FindKernel(
      {&kImage_copy, &kImage_elementwise, &kImage_sum_channels, &kImage_compare}, name.c_str());
  if (kernel.ok()) {
    slot->store(*kernel, std::memory_order_relaxed);
  }
  return kernel;
}

std::string Suffix(DataType type) {
  return std::string(KernelSuffix(type));
}

Result<CUkernel> FindOfType(KernelsOfTypes* slots, std::string_view family, DataType type) {
  return FindOnce(
      &(*slots)[static_cast<std::size_t>(type)], family, [type] { return Suffix(type); });
}

/// Kernels for elements of 2, 4, 8 and 16 bytes.
using KernelsOfSizes = std::array<KernelSlot, 4>;

Result<CUkernel> FindOfSize(KernelsOfSizes* slots, std::string_view family, std::size_t size) {
  return FindOnce(
      &(*slots)[std::countr_zero(size) - 1], family, [size] { return std::to_string(size); });
}

template <typename... Arguments>
Status LaunchFound(
    const Result<CUkernel>& kernel,
    const LaunchShape& shape,
    CUstream stream,
    const Arguments&... arguments) {
  return kernel.ok() ? Launch(*kernel, shape, stream, arguments...) : kernel.status();
}

// ------------------------------------------------------------------------------------------------
// Layouts
// ------------------------------------------------------------------------------------------------

constexpr std::int64_t kVectorBytes = 16;
constexpr std::int64_t kMaxBlocks = 0x7FFFFFFF;

bool IsAligned(const void* address, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

std::int64_t VectorLength(DataType type) {
  return kVectorBytes / static_cast<std::int64_t>(SizeOf(type));
}

CUdeviceptr AddressOf(const void* data) {
  return reinterpret_cast<CUdeviceptr>(data);
}

Status CheckRank(int rank) {
  if (rank > kMaxGridRank) {
    return Unsupported(
        "a kernel over whole tensors got " + std::to_string(rank) +
        " dims; expected no more than " + std::to_string(kMaxGridRank));
  }
  return {};
}

/// One dim of an index space with the strides of two tensors.
struct PairDim {
  std::int64_t size;
  std::int64_t to;
  std::int64_t from;
};

/// PairDims is the index space of two tensors, outermost dim first, as few dims as say the same.
class PairDims {
 public:
  /// Puts a dim where it belongs in the order of `to` in memory.
  void Add(const PairDim& dim) {
    if (dim.size == 1) {
      return;
    }
    int at = size_++;
    for (; at > 0 && std::pair(dims_[at - 1].to, dims_[at - 1].from) < std::pair(dim.to, dim.from);
         --at) {
      dims_[at] = dims_[at - 1];
    }
    dims_[at] = dim;
  }

  /// Merges the dims that both tensors step through evenly.
  void Coalesce() {
    int merged = 0;
    for (int i = 0; i < size_; ++i) {
      const PairDim& dim = dims_[i];
      PairDim* outer = merged == 0 ? nullptr : &dims_[merged - 1];
      if (outer != nullptr && outer->to == dim.to * dim.size &&
          outer->from == dim.from * dim.size) {
        *outer = {outer->size * dim.size, dim.to, dim.from};
      } else {
        dims_[merged++] = dim;
      }
    }
    size_ = merged;
  }

  [[nodiscard]] int size() const { return size_; }
  PairDim& operator[](int i) { return dims_[i]; }
  const PairDim& operator[](int i) const { return dims_[i]; }
  [[nodiscard]] const PairDim& last() const { return dims_[size_ - 1]; }
  PairDim& last() { return dims_[size_ - 1]; }

  void Remove(int i) {
    std::copy(dims_.begin() + i + 1, dims_.begin() + size_, dims_.begin() + i);
    --size_;
  }

  [[nodiscard]] std::int64_t Count() const {
    std::int64_t count = 1;
    for (int i = 0; i < size_; ++i) {
      count *= dims_[i].size;
    }
    return count;
  }

  [[nodiscard]] PairGrid Grid() const {
    PairGrid grid;
    grid.count = Count();
    grid.rank = size_;
    for (int i = 0; i < size_; ++i) {
      grid.dims[i] = dims_[i].size;
      grid.to_strides[i] = dims_[i].to;
      grid.from_strides[i] = dims_[i].from;
    }
    return grid;
  }

 private:
  std::array<PairDim, kMaxGridRank> dims_{};
  int size_ = 0;
};

/// The coalesced index space of `to`, with the strides of another tensor beside it.
PairDims PairUp(const Dims& dims, const Strides& to, const Strides& from) {
  PairDims pair;
  for (int i = 0; i < dims.size(); ++i) {
    pair.Add({dims[i], to[i], from[i]});
  }
  pair.Coalesce();
  return pair;
}

bool IsEmpty(const Dims& dims) {
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

/// Both tensors are one dense run of elements, in the same order.
bool IsDense(const PairDims& dims) {
  return dims.size() == 0 || (dims.size() == 1 && dims[0].to == 1 && dims[0].from == 1);
}

/// A launch over `count` items, kElementBatch of them for each thread.
LaunchShape ElementShape(const DeviceInfo& device, std::int64_t count) {
  constexpr std::int64_t kBlocksOfMultiprocessor = 64;
  const std::int64_t blocks = CeilDivide(count, std::int64_t{kElementThreads} * kElementBatch);
  const std::int64_t most = kBlocksOfMultiprocessor * device.multiprocessors();
  return {
      .blocks_x = static_cast<unsigned>(std::min(blocks, most)),
      .blocks_y = 1,
      .blocks_z = 1,
      .threads = kElementThreads,
      .shared_bytes = 0};
}

/// Makes units of several elements out of elements, up to 16 bytes, where both tensors are dense
/// along the innermost dim and every run begins at a multiple of the unit. Returns a unit's size.
std::size_t Widen(std::size_t size, std::uintptr_t addresses, PairDims* dims) {
  if (dims->size() == 0 || dims->last().to != 1 || dims->last().from != 1) {
    return size;
  }
  // All that must be multiples of the unit, in elements; only their trailing zeros matter.
  std::uint64_t bits = static_cast<std::uint64_t>(dims->last().size) | (addresses / size);
  for (int i = 0; i + 1 < dims->size(); ++i) {
    bits |= static_cast<std::uint64_t>((*dims)[i].to) | static_cast<std::uint64_t>((*dims)[i].from);
  }
  std::int64_t factor = 1;
  while (bits % (2 * static_cast<std::uint64_t>(factor)) == 0 &&
         2 * factor * static_cast<std::int64_t>(size) <= kVectorBytes) {
    factor *= 2;
  }
  dims->last().size /= factor;
  for (int i = 0; i + 1 < dims->size(); ++i) {
    (*dims)[i].to /= factor;
    (*dims)[i].from /= factor;
  }
  return size * static_cast<std::size_t>(factor);
}

// ------------------------------------------------------------------------------------------------
// Copies
// ------------------------------------------------------------------------------------------------

/// The dim along which `from` is dense, where copying is a transposition that fills tiles well;
/// otherwise -1.
int TransposedDim(const PairDims& dims) {
  // Narrower matrices leave most of a tile empty; so small, there may be too many tiles.
  constexpr std::int64_t kNarrowest = 8;
  if (dims.size() < 2 || dims.last().to != 1 || dims.last().from < 2 ||
      dims.last().size < kNarrowest || dims.Count() / (kNarrowest * kNarrowest) > kMaxBlocks) {
    return -1;
  }
  for (int i = 0; i + 1 < dims.size(); ++i) {
    if (dims[i].from == 1 && dims[i].size >= kNarrowest) {
      return i;
    }
  }
  return -1;
}

/// How many elements, up to 16 bytes of them, begin at a multiple of their size wherever a run of
/// the task's begins.
int TransposeWidth(const TransposeTask& task, std::size_t size, const void* from, const void* to) {
  std::uint64_t bits = static_cast<std::uint64_t>(task.to_row_stride | task.from_column_stride) |
                       ((AddressOf(from) | AddressOf(to)) / size);
  for (int i = 0; i < task.batch.rank; ++i) {
    bits |= static_cast<std::uint64_t>(task.batch.to_strides[i] | task.batch.from_strides[i]);
  }
  int width = 1;
  while (size < 8 && std::int64_t{2} * width * static_cast<std::int64_t>(size) <= kVectorBytes &&
         bits % (2 * static_cast<std::uint64_t>(width)) == 0) {
    width *= 2;
  }
  return width;
}

TransposeTask MakeTranspose(PairDims dims, int row_dim, std::size_t size) {
  TransposeTask task;
  task.rows = dims[row_dim].size;
  task.to_row_stride = dims[row_dim].to;
  task.columns = dims.last().size;
  task.from_column_stride = dims.last().from;
  dims.Remove(dims.size() - 1);
  dims.Remove(row_dim);
  task.batch = dims.Grid();
  const std::int64_t side =
      size == 8 ? 32 : kTransposeRuns * kVectorBytes / static_cast<std::int64_t>(size);
  task.row_tiles = CeilDivide(task.rows, side);
  task.column_tiles = CeilDivide(task.columns, side);
  return task;
}

LaunchShape ShapeOf(const TransposeTask& task) {
  const std::int64_t tiles = task.row_tiles * task.column_tiles * task.batch.count;
  return {
      .blocks_x = static_cast<unsigned>(tiles),
      .blocks_y = 1,
      .blocks_z = 1,
      .threads = kTransposeThreads,
      .shared_bytes = 0};
}

Status LaunchTranspose(
    CUstream stream,
    const PairDims& dims,
    int row_dim,
    std::size_t size,
    const void* from,
    void* to) {
  static std::array<KernelsOfSizes, 4> kernels;
  const TransposeTask task = MakeTranspose(dims, row_dim, size);
  const int width = TransposeWidth(task, size, from, to);
  KernelsOfSizes& of_width = kernels.at(std::countr_zero(static_cast<unsigned>(width)));
  const Result<CUkernel> kernel = FindOnce(
      &of_width[std::countr_zero(size) - 1], "transpose_",
      [&] { return std::to_string(size) + "_" + std::to_string(width); });
  return LaunchFound(kernel, ShapeOf(task), stream, from, to, task);
}

/// The transposition that makes channels last of channels first; none where copying is another.
std::optional<TransposeTask> ChannelsToLast(const ConstTensorRef& from, const TensorRef& to) {
  if (from.type != to.type || from.type == DataType::kDouble || from.dims != to.dims ||
      from.rank() < 3 || from.rank() > kMaxGridRank || IsEmpty(from.dims)) {
    return std::nullopt;
  }
  const PairDims dims = PairUp(to.dims, to.strides, from.strides);
  const int row_dim = IsDense(dims) ? -1 : TransposedDim(dims);
  if (row_dim < 0) {
    return std::nullopt;
  }
  const TransposeTask task = MakeTranspose(dims, row_dim, SizeOf(from.type));
  const bool columns_are_channels = task.columns == from.dims[1] && to.strides[1] == 1 &&
                                    task.from_column_stride == from.strides[1];
  return columns_are_channels ? std::optional(task) : std::nullopt;
}

Status CopySameType(
    const DeviceInfo& device,
    CUstream stream,
    PairDims dims,
    const ConstTensorRef& from,
    const TensorRef& to) {
  static KernelsOfSizes kernels;
  const std::size_t size = SizeOf(to.type);
  if (IsDense(dims)) {
    return ToStatus(
        Driver().cuMemcpyAsync(
            AddressOf(to.data), AddressOf(from.data), static_cast<std::size_t>(dims.Count()) * size,
            stream),
        "copying device memory");
  }
  if (const int row_dim = TransposedDim(dims); row_dim >= 0) {
    return LaunchTranspose(stream, dims, row_dim, size, from.data, to.data);
  }
  const std::uintptr_t addresses = AddressOf(from.data) | AddressOf(to.data);
  const std::size_t unit = Widen(size, addresses, &dims);
  const PairGrid grid = dims.Grid();
  return LaunchFound(
      FindOfSize(&kernels, "copy_", unit), ElementShape(device, grid.count), stream, from.data,
      to.data, grid);
}

// ------------------------------------------------------------------------------------------------
// Fills
// ------------------------------------------------------------------------------------------------

/// A value of a type, repeated to fill a vector.
struct alignas(kVectorBytes) Pattern {
  std::array<std::uint64_t, 2> words{};
};

Pattern Repeat(std::uint64_t bits, std::size_t size) {
  if (size == 2) {
    bits *= 0x0001000100010001U;
  } else if (size == 4) {
    bits *= 0x0000000100000001U;
  }
  return {{bits, bits}};
}

Pattern PatternOf(double value, DataType type) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case DataType::kFloat:
      return Repeat(std::bit_cast<std::uint32_t>(single), 4);
    case DataType::kDouble:
      return Repeat(std::bit_cast<std::uint64_t>(value), 8);
    case DataType::kMLFloat16:
      return Repeat(MLFloat16(value).bits, 2);
    case DataType::kBFloat16:
      return Repeat(BFloat16(value).bits, 2);
    default:
      break;
  }
  return {};
}

// ------------------------------------------------------------------------------------------------
// Channel sums
// ------------------------------------------------------------------------------------------------

/// Blocks that keep a large GPU busy, one on each multiprocessor: with two, which read from more
/// places at a time, an H200's memory is up to a seventh slower.
constexpr std::int64_t kEnoughSumBlocks = 132;
/// Where threads read elements, not vectors.
constexpr std::int64_t kEnoughElementBlocks = 4 * kEnoughSumBlocks;
/// Less than so many vectors of each thread are not worth a partial sum.
constexpr std::int64_t kFewestVectors = 8;
/// So many take less time than a second stage.
constexpr std::int64_t kVectorsOfOneSlice = 16;

/// The view of a tensor that the plans work on: its channels, and all other dims.
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

/// Slices of equal size, but for the last.
struct Slices {
  std::int64_t count;
  std::int64_t size;
};

/// At most `wanted` slices of a multiple of `at_once` items, which are what all threads take at a
/// time; one where that takes less time than a second stage.
Slices Slice(std::int64_t items, std::int64_t wanted, std::int64_t at_once) {
  const std::int64_t all = CeilDivide(items, at_once);
  if (all <= kVectorsOfOneSlice || wanted <= 1) {
    return {1, all * at_once};
  }
  const std::int64_t steps = std::max(CeilDivide(all, wanted), kFewestVectors);
  return {CeilDivide(all, steps), steps * at_once};
}

/// Channels last: rows of vectors, if elements can be taken so.
bool PlanColumns(const ChannelView& view, std::int64_t length, SumPlan* plan) {
  if (view.channel_stride != 1 || view.channels == 1 || view.others.size() > 1) {
    return false;
  }
  const std::int64_t channels = view.channels;
  const std::int64_t rows = view.others.Count();
  const std::int64_t pitch = view.others.size() == 0 ? channels : view.others.last().from;
  // Of a dense tensor, so many rows together are whole vectors.
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
  if (tiles > kMaxBlocks / slices.count) {
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

/// The threads that sum a slice of so many vectors, a power of two: fewer where many short slices
/// would take a block each.
std::int64_t GroupOf(std::int64_t vectors, std::int64_t slices) {
  const auto most = std::bit_ceil(static_cast<std::uint64_t>(CeilDivide(vectors, kFewestVectors)));
  std::int64_t group = std::min<std::int64_t>(static_cast<std::int64_t>(most), kSumThreads);
  while (group > 1 && vectors < kLongSlice * group &&
         slices * group > 2 * kEnoughSumBlocks * kSumThreads) {
    group /= 2;
  }
  return group;
}

/// Fewer blocks, which each sum several slices one after the other, so that one is enough for each
/// multiprocessor; or two, where that would leave too many idle. Of short slices all.
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

/// Channels first: dense rows of each channel.
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
  return plan->blocks <= kMaxBlocks && task.count / group <= kMost;
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

/// A block for each channel, or each few: slow, but there is nothing to keep in between.
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
  const std::int64_t length = VectorLength(from.type);
  if (!PlanColumns(view, length, plan) && !PlanRows(view, length, plan)) {
    PlanAny(view, plan);
  }
}

/// The first stage's sums are the result.
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
  const int aligned = IsAligned(from.data, kVectorBytes) ? 1 : 0;
  switch (plan->stage) {
    case SumStage::kNone:
      break;
    case SumStage::kColumns:
      plan->columns.aligned = aligned;
      return LaunchFound(
          FindOfType(&columns_kernels, "sum_columns_", from.type), shape, stream, from.data, target,
          plan->columns);
    case SumStage::kRows:
      plan->rows.aligned = aligned;
      return LaunchFound(
          FindOfType(&rows_kernels, "sum_rows_", from.type), shape, stream, from.data, target,
          plan->rows);
    case SumStage::kAny:
      shape.shared_bytes = 0;
      return LaunchFound(
          FindOfType(&any_kernels, "sum_any_", from.type), shape, stream, from.data, target,
          plan->any);
  }
  return {};
}

/// How rows of partial sums are added up: the task's rows, channels and tail are set, and what
/// else depends on `sums` becomes so.
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
      FindOfType(&kernels, "sum_finish_", type), shape, stream, partial, tail, sums.data, task);
}

}  // namespace

Status CopyTensor(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to) {
  static std::array<KernelsOfTypes, kFloatingTypeCount> kernels;
  if (Status status = CheckRank(to.rank()); !status.ok() || IsEmpty(to.dims)) {
    return status;
  }
  const PairDims dims = PairUp(to.dims, to.strides, from.strides);
  if (from.type == to.type) {
    return CopySameType(device, stream, dims, from, to);
  }
  const auto from_type = static_cast<std::size_t>(from.type);
  const auto to_type = static_cast<std::size_t>(to.type);
  const Result<CUkernel> kernel = FindOnce(&kernels[from_type][to_type], "copy_", [&] {
    return Suffix(from.type) + "_" + Suffix(to.type);
  });
  const PairGrid grid = dims.Grid();
  return LaunchFound(kernel, ElementShape(device, grid.count), stream, from.data, to.data, grid);
}

Status AddTensor(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& from,
    const TensorRef& to) {
  static KernelsOfTypes kernels;
  if (Status status = CheckRank(to.rank()); !status.ok() || IsEmpty(to.dims)) {
    return status;
  }
  const PairGrid grid = PairUp(to.dims, to.strides, from.strides).Grid();
  return LaunchFound(
      FindOfType(&kernels, "add_", to.type), ElementShape(device, grid.count), stream, from.data,
      static_cast<int>(from.type), to.data, grid);
}

Status FillTensor(const DeviceInfo& device, CUstream stream, double value, const TensorRef& to) {
  static KernelsOfSizes kernels;
  if (Status status = CheckRank(to.rank()); !status.ok() || IsEmpty(to.dims)) {
    return status;
  }
  const Pattern pattern = PatternOf(value, to.type);
  PairDims dims = PairUp(to.dims, to.strides, to.strides);
  if (IsDense(dims) && pattern.words[0] == 0) {
    return ToStatus(
        Driver().cuMemsetD8Async(
            AddressOf(to.data), 0, static_cast<std::size_t>(dims.Count()) * SizeOf(to.type),
            stream),
        "filling device memory");
  }
  const std::size_t unit = Widen(SizeOf(to.type), AddressOf(to.data), &dims);
  const PairGrid grid = dims.Grid();
  // A kernel for smaller units takes as much of the pattern as it needs.
  const Result<CUkernel> kernel = FindOfSize(&kernels, "fill_", unit);
  return LaunchFound(kernel, ElementShape(device, grid.count), stream, pattern, to.data, grid);
}

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

std::int64_t CopySumRows(const ConstTensorRef& from, const TensorRef& to) {
  const std::optional<TransposeTask> task = ChannelsToLast(from, to);
  return task ? task->row_tiles * task->batch.count : 0;
}

Status CopyAndSum(CUstream stream, const ConstTensorRef& from, const TensorRef& to, void* partial) {
  static std::array<KernelsOfTypes, 4> kernels;
  const std::optional<TransposeTask> task = ChannelsToLast(from, to);
  if (!task) {
    return Internal("copying and summing is for channels that become the last");
  }
  const int width = TransposeWidth(*task, SizeOf(from.type), from.data, to.data);
  KernelsOfTypes& of_width = kernels.at(std::countr_zero(static_cast<unsigned>(width)));
  const Result<CUkernel> kernel = FindOnce(
      &of_width[static_cast<std::size_t>(from.type)], "transpose_and_sum_",
      [&] { return Suffix(from.type) + "_" + std::to_string(width); });
  return LaunchFound(kernel, ShapeOf(*task), stream, from.data, to.data, *task, partial);
}

Status SumPartials(CUstream stream, std::int64_t rows, const void* partial, const TensorRef& sums) {
  FinishSumsTask finish;
  finish.rows = rows;
  finish.channels = sums.dims[0];
  return LaunchFinish(stream, finish, sums.type, partial, nullptr, sums);
}

Status SumPartials(CUstream stream, const PartialSums& first, const PartialSums& second) {
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
      FindOfType(&kernels, "sum_finish_two_", first.sums.type), both, stream, first.partial,
      first.sums.data, tasks[0], first_blocks, second.partial, second.sums.data, tasks[1]);
}

Status FillRandom(
    const DeviceInfo& device,
    CUstream stream,
    DataType type,
    void* data,
    std::int64_t count,
    std::uint64_t seed,
    const UniformRange& range) {
  static KernelsOfTypes kernels;
  if (count == 0) {
    return {};
  }
  return LaunchFound(
      FindOfType(&kernels, "fill_random_", type), ElementShape(device, count), stream, data, count,
      seed, range.center, range.radius, range.levels);
}

Status CompareTensors(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& a,
    const ConstTensorRef& b,
    Difference* difference) {
  static KernelSlot kernel;
  if (Status status = CheckRank(a.rank()); !status.ok()) {
    return status;
  }
  if (Status status = ToStatus(
          Driver().cuMemsetD8Async(AddressOf(difference), 0, sizeof(Difference), stream),
          "clearing device memory");
      !status.ok() || IsEmpty(a.dims)) {
    return status;
  }
  const PairGrid grid = PairUp(a.dims, a.strides, b.strides).Grid();
  return LaunchFound(
      FindOnce(&kernel, "compare", [] { return std::string(); }), ElementShape(device, grid.count),
      stream, a.data, b.data, static_cast<int>(a.type), static_cast<int>(b.type), grid, difference);
}

}  // namespace gradsmith::cuda
