#ifndef GRADSMITH_CUDA_KERNELS_TENSOR_OPS_H_
#define GRADSMITH_CUDA_KERNELS_TENSOR_OPS_H_

#include <cstdint>

/// What tensor_ops.cc, tensor_copies.cc and channel_sums.cc pass to their kernels, by value.
/// Offsets and strides are counted in elements.
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

/// A block of so many threads, each with kSumRing vectors of 16 bytes under way, keeps a
/// multiprocessor's share of the memory busy.
inline constexpr int kSumThreads = 512;
inline constexpr int kSumRing = 4;
inline constexpr int kSumRingBytes = 16 * kSumRing;  // of shared memory, for each thread
inline constexpr int kMaxFinishThreads = 1024;
/// Where partial sums have few rows, blocks have so many threads, and each of them adds up so many
/// channels.
inline constexpr int kFinishFewThreads = 256;
inline constexpr int kFinishFewChannels = 4;

/// SumsTarget is where the first stage's sums go: a row of partial sums for each slice, or, where
/// there is one slice and nothing else to add, straight to the result.
struct SumsTarget {
  /// The sums of slices, of the accumulator's type.
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

/// RowSumsTask: each channel has rows of dense elements, which are read as vectors of 16 bytes,
/// counted row by row. A group of threads sums one slice of the vectors of one channel.
struct RowSumsTask {
  std::int64_t channels = 0;
  std::int64_t channel_stride = 0;
  /// Dims and strides of the rows: `to_strides` is not used.
  PairGrid rows;
  /// Vectors of a channel, and of a slice but for the last.
  std::int64_t count = 0;
  std::int64_t count_per_slice = 0;
  std::int64_t slices = 0;
  /// One past the last element's offset.
  std::int64_t extent = 0;
  int row_length = 0;
  /// That a row may touch. Where rows do not begin and end with vectors, the first and the last
  /// ones hold elements of other rows too, which do not count.
  int vectors_of_row = 0;
  int whole = 0;
  /// Threads of a group, a power of two; and how far one group of vectors takes a thread.
  int group = 0;
  int step_rows = 0;
  int step_vectors = 0;
  /// The tensor's first element is aligned to 16 bytes.
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
