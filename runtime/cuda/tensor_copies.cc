#include <cuda.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/tiles.h"
#include "cuda/alignment.h"
#include "cuda/driver.h"
#include "cuda/kernel_images.h"
#include "cuda/pair_dims.h"
#include "cuda/tensor_kernels.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::cuda {

namespace {

using internal::CeilDivide;

/// TransposedDim returns the dim along which `from` is dense, where copying is a transposition that
/// fills tiles well; otherwise -1.
int TransposedDim(const PairDims& dims) {
  // Narrower matrices leave most of a tile empty; so small, there may be too many tiles.
  constexpr std::int64_t kNarrowest = 8;
  if (dims.size() < 2 || dims.last().to != 1 || dims.last().from < 2 ||
      dims.last().size < kNarrowest || dims.Count() / (kNarrowest * kNarrowest) > kMostBlocksX) {
    return -1;
  }
  for (int i = 0; i + 1 < dims.size(); ++i) {
    if (dims[i].from == 1 && dims[i].size >= kNarrowest) {
      return i;
    }
  }
  return -1;
}

/// TransposeWidth returns how many elements, up to 16 bytes of them, begin at a multiple of their
/// size wherever a run of the task's begins.
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
      size == 8 ? 32
                : std::int64_t{kTransposeRuns} * kVectorBytes / static_cast<std::int64_t>(size);
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
      kImage_copy, &of_width[std::countr_zero(size) - 1], "transpose_",
      [&] { return std::to_string(size) + "_" + std::to_string(width); });
  return LaunchFound(kernel, ShapeOf(task), stream, from, to, task);
}

/// ChannelsToLast returns the transposition that makes channels last of channels first; none where
/// copying is another.
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
      FindOfSize(kImage_copy, &kernels, "copy_", unit), ElementShape(device, grid.count), stream,
      from.data, to.data, grid);
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
  const Result<CUkernel> kernel = FindOnce(kImage_copy, &kernels[from_type][to_type], "copy_", [&] {
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
      FindOfType(kImage_elementwise, &kernels, "add_", to.type), ElementShape(device, grid.count),
      stream, from.data, static_cast<int>(from.type), to.data, grid);
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
      kImage_copy, &of_width[static_cast<std::size_t>(from.type)], "transpose_and_sum_",
      [&] { return Suffix(from.type) + "_" + std::to_string(width); });
  return LaunchFound(kernel, ShapeOf(*task), stream, from.data, to.data, *task, partial);
}

}  // namespace gradsmith::cuda
