#ifndef GRADSMITH_CUDA_KERNELS_TENSOR_OPS_H_
#define GRADSMITH_CUDA_KERNELS_TENSOR_OPS_H_

#include <cstdint>

/// What tensor_ops.cc passes to its kernels, by value. Offsets and strides are counted in elements.
namespace gradsmith::cuda {

inline constexpr int kMaxGridRank = 5;

/// Threads of a block of the kernels that go through elements in any order, and how many elements
/// (or vectors) each thread has in flight.
inline constexpr int kElementThreads = 256;
inline constexpr int kElementBatch = 4;

/// PairGrid is an index space, outermost dim first, with the strides of two tensors in it.
struct PairGrid {
  std::int64_t count = 0;
  int rank = 0;
  std::int64_t dims[kMaxGridRank] = {};
  std::int64_t to_strides[kMaxGridRank] = {};
  std::int64_t from_strides[kMaxGridRank] = {};
};

/// TransposeTask is a batch of matrices (rows, columns): `to` is dense along columns and `from` is
/// dense along rows.
struct TransposeTask {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t to_row_stride = 0;
  std::int64_t from_column_stride = 0;
  std::int64_t row_tiles = 0;
  std::int64_t column_tiles = 0;
  PairGrid batch;
};

inline constexpr int kTransposeThreads = 256;
/// Runs of 16 bytes along a tile's side, of elements of 2 and 4 bytes.
inline constexpr int kTransposeRuns = 8;

inline constexpr int kSumThreads = 256;
/// Loads in flight of each thread that sums.
inline constexpr int kSumBatch = 4;
inline constexpr int kMaxFinishThreads = 1024;

/// SumsTarget is where the first stage's sums go: a row of partial sums for each slice, or, where
/// there is one slice and nothing else to add, straight to the result.
struct SumsTarget {
  /// Of the accumulator's type.
  void* partial = nullptr;
  /// Null, or where the only slice's sums are the result.
  void* sums = nullptr;
  std::int64_t sums_stride = 0;
  int accumulate = 0;
};

/// ColumnSumsTask: vectors of 16 bytes in rows of `columns` vectors, `pitch` elements apart.
/// Element e of a row belongs to channel e % channels. A block sums one slice of rows over one tile
/// of columns.
struct ColumnSumsTask {
  std::int64_t rows = 0;
  std::int64_t rows_per_slice = 0;
  std::int64_t pitch = 0;
  std::int64_t columns = 0;
  std::int64_t channels = 0;
  int tiles = 0;
  int tile_columns = 0;
  /// Rows that a block reads at the same time; one where there are several tiles.
  int rows_at_once = 0;
  /// The first element is aligned to 16 bytes, and so is every vector.
  int aligned = 0;
};

/// RowSumsTask: each channel has `count` pieces of dense rows. A group of 1 to 32 threads sums one
/// slice of the pieces of one channel.
struct RowSumsTask {
  std::int64_t channels = 0;
  std::int64_t channel_stride = 0;
  std::int64_t row_length = 0;
  std::int64_t piece_length = 0;
  std::int64_t pieces_of_row = 0;
  std::int64_t count = 0;
  std::int64_t count_per_slice = 0;
  std::int64_t slices = 0;
  /// Dims and strides of the rows: `to_strides` is not used.
  PairGrid rows;
  /// One past the last element's offset.
  std::int64_t extent = 0;
  int group = 0;
  /// Pieces are whole rows, and none needs more vectors than the group has threads.
  int one_step = 0;
  int aligned = 0;
};

/// AnySumsTask: sums over a grid of any strides (`from_strides`). A block has `channels_at_once`
/// channels side by side, a power of two.
struct AnySumsTask {
  std::int64_t channels = 0;
  std::int64_t channel_stride = 0;
  std::int64_t channel_tiles = 0;
  std::int64_t count_per_slice = 0;
  PairGrid grid;
  int channels_at_once = 0;
};

/// FinishSumsTask: the sums over the rows of a matrix (rows, channels) of partial sums, and over
/// `tail_rows` more rows of the tensor itself, which are dense.
struct FinishSumsTask {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  std::int64_t tail_rows = 0;
  std::int64_t tail_offset = 0;
  std::int64_t sums_stride = 0;
  /// A power of two.
  int channels_at_once = 0;
  int accumulate = 0;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_TENSOR_OPS_H_
