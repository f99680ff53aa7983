#include "cuda/kernels/element_vector.cuh"

// Sums over all but the channels, in two stages: slices of the tensor give partial sums
// (slice, channel), which the finishing kernel adds up. Of a small tensor there is one slice, whose
// sums are the result: one launch. What is added to what depends on the task
// alone, never on an address: where data is not aligned, vectors are loaded element by element.
namespace gradsmith::cuda {
namespace {

/// Adds a channel's sum to what is there where `accumulate`, or else stores it.
template <typename T>
__device__ __forceinline__ void StoreSum(Accumulator<T> sum, int accumulate, T* to) {
  *to = Convert<T>(accumulate != 0 ? Convert<Accumulator<T>>(*to) + sum : sum);
}

/// Stores the sum of a slice of a channel; `index` is its place among the partial sums.
template <typename T>
__device__ __forceinline__ void
PutSum(const SumsTarget& target, std::int64_t index, Accumulator<T> sum) {
  if (target.sums != nullptr) {
    StoreSum(sum, target.accumulate, static_cast<T*>(target.sums) + index * target.sums_stride);
  } else {
    static_cast<Accumulator<T>*>(target.partial)[index] = sum;
  }
}

/// Loads a vector in one or, where data is not aligned, in many.
template <bool kAligned, typename T>
__device__ __forceinline__ Vector<T> LoadWhole(const T* from) {
  if constexpr (kAligned) {
    return LoadVector(from);
  } else {
    Vector<T> vector;
#pragma unroll
    for (int i = 0; i < kVectorLength<T>; ++i) {
      vector.values[i] = from[i];
    }
    return vector;
  }
}

// ------------------------------------------------------------------------------------------------
// Channels last
// ------------------------------------------------------------------------------------------------

/// Adds up what the block's threads have summed: `count` values in shared memory, the e-th of
/// channel e % channels. Every thread of the block takes part.
template <typename T>
__device__ __forceinline__ void SumOverBlock(
    const Accumulator<T>* values,
    int count,
    int channels,
    const SumsTarget& target,
    std::int64_t first_index) {
  using A = Accumulator<T>;
  const int threads = static_cast<int>(blockDim.x);
  // So many lanes share a channel that few channels still use the whole block.
  int share = 1;
  while (share < 32 && 2 * share * channels <= threads) {
    share *= 2;
  }
  for (int begin = 0; begin < channels * share; begin += threads) {
    const int channel = (begin + static_cast<int>(threadIdx.x)) / share;
    const int lane = (begin + static_cast<int>(threadIdx.x)) % share;
    A sum = 0;
    if (channel < channels) {
      for (int e = channel + lane * channels; e < count; e += share * channels) {
        sum += values[e];
      }
    }
    for (int distance = share / 2; distance > 0; distance /= 2) {
      sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance, share);
    }
    if (channel < channels && lane == 0) {
      PutSum<T>(target, first_index + channel, sum);
    }
  }
}

/// Adds rows begin, begin + step, ... of one column of vectors to `sums`.
template <bool kAligned, typename T>
__device__ __forceinline__ void SumColumn(
    const T* column,
    std::int64_t pitch,
    std::int64_t begin,
    std::int64_t end,
    int step,
    Accumulator<T>* sums) {
  using A = Accumulator<T>;
  for (std::int64_t row = begin; row < end; row += kSumBatch * step) {
    Vector<T> batch[kSumBatch];
#pragma unroll
    for (int i = 0; i < kSumBatch; ++i) {
      const std::int64_t at = row + i * step;
      batch[i] = ZeroVector<T>();
      if (at < end) {
        batch[i] = LoadWhole<kAligned>(column + at * pitch);
      }
    }
#pragma unroll
    for (int j = 0; j < kVectorLength<T>; ++j) {
      sums[j] += (Convert<A>(batch[0].values[j]) + Convert<A>(batch[1].values[j])) +
                 (Convert<A>(batch[2].values[j]) + Convert<A>(batch[3].values[j]));
    }
  }
}

template <typename T>
__device__ __forceinline__ void
SumColumns(const T* from, const SumsTarget& target, const ColumnSumsTask& task) {
  using A = Accumulator<T>;
  constexpr int kLength = kVectorLength<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t slice = blockIdx.x / task.tiles;
  const std::int64_t column =
      static_cast<std::int64_t>(blockIdx.x % task.tiles) * task.tile_columns +
      thread % task.tile_columns;
  const int first_row = thread / task.tile_columns;
  const bool active = first_row < task.rows_at_once && column < task.columns;
  const std::int64_t begin = slice * task.rows_per_slice;
  const std::int64_t end = min(begin + task.rows_per_slice, task.rows);

  A sums[kLength] = {};
  if (active && task.aligned != 0) {
    SumColumn<true>(
        from + column * kLength, task.pitch, begin + first_row, end, task.rows_at_once, sums);
  } else if (active) {
    SumColumn<false>(
        from + column * kLength, task.pitch, begin + first_row, end, task.rows_at_once, sums);
  }
  if (task.tiles > 1) {
    if (active) {
#pragma unroll
      for (int j = 0; j < kLength; ++j) {
        PutSum<T>(target, (slice * task.columns + column) * kLength + j, sums[j]);
      }
    }
    return;
  }
  // One tile: column == thread % columns, so that active threads hold consecutive elements of rows.
  __shared__ A values[kSumThreads * kLength];
  if (active) {
#pragma unroll
    for (int j = 0; j < kLength; ++j) {
      values[thread * kLength + j] = sums[j];
    }
  }
  __syncthreads();
  SumOverBlock<T>(
      values, task.rows_at_once * task.tile_columns * kLength, static_cast<int>(task.channels),
      target, slice * task.channels);
}

// ------------------------------------------------------------------------------------------------
// Channels first
// ------------------------------------------------------------------------------------------------

/// Some consecutive elements of one row.
struct Piece {
  std::int64_t begin;
  std::int64_t end;
};

__device__ __forceinline__ Piece
PieceAt(const RowSumsTask& task, std::int64_t channel_offset, std::int64_t index) {
  const Division position =
      task.pieces_of_row == 1 ? Division{index, 0} : Divide(index, task.pieces_of_row);
  const std::int64_t in_row = position.remainder * task.piece_length;
  const std::int64_t row = channel_offset + OffsetsAt(task.rows, position.quotient).from;
  return {row + in_row, row + min(in_row + task.piece_length, task.row_length)};
}

/// A vector of which elements first, ..., last - 1 are in a piece; the others count as zero.
template <typename T>
struct PieceVector {
  Vector<T> vector;
  int first;
  int last;
};

/// `begin` is a multiple of the vector's length. Nothing is loaded where last <= first.
template <bool kAligned, typename T>
__device__ __forceinline__ PieceVector<T>
LoadPiece(const T* from, std::int64_t extent, std::int64_t begin, int first, int last) {
  constexpr int kLength = kVectorLength<T>;
  PieceVector<T> loaded = {ZeroVector<T>(), first, last};
  // A whole vector may reach into the row before or after; that is memory of the tensor still.
  const bool whole = kAligned && begin + kLength <= extent;
  if (whole && first < last) {
    loaded.vector = LoadVector(from + begin);
  } else if (!whole) {
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      if (i >= first && i < last) {
        loaded.vector.values[i] = from[begin + i];
      }
    }
  }
  return loaded;
}

template <typename T>
__device__ __forceinline__ Accumulator<T> SumOf(const PieceVector<T>& loaded) {
  using A = Accumulator<T>;
  constexpr int kLength = kVectorLength<T>;
  A values[kLength];
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    values[i] = Convert<A>(loaded.vector.values[i]);
  }
  if (loaded.first > 0 || loaded.last < kLength) {
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      values[i] = i >= loaded.first && i < loaded.last ? values[i] : A(0);
    }
  }
#pragma unroll
  for (int half = kLength / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) {
      values[i] += values[i + half];
    }
  }
  return values[0];
}

template <typename T>
__device__ __forceinline__ Accumulator<T> SumOf(const PieceVector<T> (&batch)[kSumBatch]) {
  return (SumOf(batch[0]) + SumOf(batch[1])) + (SumOf(batch[2]) + SumOf(batch[3]));
}

/// What a lane of a group adds to the sum of whole rows begin, ..., end - 1 of a channel, where
/// each lane has one vector of each row. kEven: the rows are one stride apart.
template <bool kAligned, bool kEven, typename T>
__device__ __forceinline__ Accumulator<T> SumShortRows(
    const RowSumsTask& task,
    const T* from,
    std::int64_t channel_offset,
    std::int64_t begin,
    std::int64_t end,
    int lane) {
  constexpr int kLength = kVectorLength<T>;
  const int lane_begin = lane * kLength;
  const int length = static_cast<int>(task.row_length);
  Accumulator<T> sum = 0;
  for (std::int64_t index = begin; index < end; index += kSumBatch) {
    PieceVector<T> batch[kSumBatch];
#pragma unroll
    for (int i = 0; i < kSumBatch; ++i) {
      const std::int64_t row = channel_offset + (kEven ? (index + i) * task.rows.from_strides[0]
                                                       : OffsetsAt(task.rows, index + i).from);
      // The row begins so far into its first vector.
      const int head = static_cast<int>(row % kLength);
      const int first = max(0, head - lane_begin);
      const int last = index + i < end ? min(kLength, head + length - lane_begin) : 0;
      batch[i] = LoadPiece<kAligned>(from, task.extent, row - head + lane_begin, first, last);
    }
    sum += SumOf(batch);
  }
  return sum;
}

/// What a lane of a warp adds to the sum of pieces begin, ..., end - 1 of a channel.
template <bool kAligned, typename T>
__device__ __forceinline__ Accumulator<T> SumLongPieces(
    const RowSumsTask& task,
    const T* from,
    std::int64_t channel_offset,
    std::int64_t begin,
    std::int64_t end,
    int lane) {
  constexpr int kLength = kVectorLength<T>;
  Accumulator<T> sum = 0;
  for (std::int64_t index = begin; index < end; ++index) {
    const Piece piece = PieceAt(task, channel_offset, index);
    const std::int64_t step = task.group * kLength;
    for (std::int64_t at = piece.begin / kLength * kLength + lane * kLength; at < piece.end;
         at += kSumBatch * step) {
      PieceVector<T> batch[kSumBatch];
#pragma unroll
      for (int i = 0; i < kSumBatch; ++i) {
        const std::int64_t vector = at + i * step;
        const auto first = static_cast<int>(max(piece.begin - vector, std::int64_t{0}));
        const auto last =
            static_cast<int>(min(max(piece.end - vector, std::int64_t{0}), std::int64_t{kLength}));
        batch[i] = LoadPiece<kAligned>(from, task.extent, vector, first, last);
      }
      sum += SumOf(batch);
    }
  }
  return sum;
}

template <bool kAligned, typename T>
__device__ __forceinline__ Accumulator<T> SumPieces(
    const RowSumsTask& task,
    const T* from,
    std::int64_t channel_offset,
    std::int64_t begin,
    std::int64_t end,
    int lane) {
  if (task.one_step == 0) {
    return SumLongPieces<kAligned>(task, from, channel_offset, begin, end, lane);
  }
  if (kAligned && task.rows.rank <= 1) {
    return SumShortRows<kAligned, true>(task, from, channel_offset, begin, end, lane);
  }
  return SumShortRows<kAligned, false>(task, from, channel_offset, begin, end, lane);
}

template <typename T>
__device__ __forceinline__ void
SumRows(const T* from, const SumsTarget& target, const RowSumsTask& task) {
  const int groups = kSumThreads / task.group;
  const int lane = static_cast<int>(threadIdx.x) % task.group;
  const std::int64_t group =
      static_cast<std::int64_t>(blockIdx.x) * groups + static_cast<int>(threadIdx.x) / task.group;
  // Neighbouring groups have neighbouring channels, and so read neighbouring memory.
  const Division place = Divide(group, task.channels);
  const bool active = place.quotient < task.slices;
  const std::int64_t begin = place.quotient * task.count_per_slice;
  const std::int64_t end = min(begin + task.count_per_slice, task.count);
  const std::int64_t offset = place.remainder * task.channel_stride;
  Accumulator<T> sum = 0;
  if (active && task.aligned != 0) {
    sum = SumPieces<true>(task, from, offset, begin, end, lane);
  } else if (active) {
    sum = SumPieces<false>(task, from, offset, begin, end, lane);
  }
  // Threads of groups past the last take part.
  for (int distance = task.group / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance, task.group);
  }
  if (lane == 0 && active) {
    PutSum<T>(target, group, sum);
  }
}

// ------------------------------------------------------------------------------------------------
// Any strides, and the end
// ------------------------------------------------------------------------------------------------

/// The first of each `side` neighbours' sums: thread t's is the sum over t + side, t + 2 side, ...
/// `threads` is a multiple of `side` by a power of two.
template <typename A>
__device__ __forceinline__ A SumOverThreads(A sum, A* values, int threads, int side) {
  const int thread = static_cast<int>(threadIdx.x);
  values[thread] = sum;
  __syncthreads();
  for (int half = threads / 2; half >= side; half /= 2) {
    if (thread < half) {
      values[thread] += values[thread + half];
    }
    __syncthreads();
  }
  return values[thread];
}

template <typename T>
__device__ __forceinline__ void
SumAny(const T* from, const SumsTarget& target, const AnySumsTask& task) {
  using A = Accumulator<T>;
  const int side = task.channels_at_once;
  const int thread = static_cast<int>(threadIdx.x);
  const Division place = Divide(blockIdx.x, task.channel_tiles);
  const std::int64_t channel = place.remainder * side + thread % side;
  const std::int64_t begin = place.quotient * task.count_per_slice;
  const std::int64_t end = min(begin + task.count_per_slice, task.grid.count);
  const int step = kSumThreads / side;
  A sum = 0;
  if (channel < task.channels) {
    const T* base = from + channel * task.channel_stride;
    for (std::int64_t index = begin + thread / side; index < end; index += kSumBatch * step) {
      A batch[kSumBatch];
#pragma unroll
      for (int i = 0; i < kSumBatch; ++i) {
        const std::int64_t at = index + i * step;
        batch[i] = at < end ? Convert<A>(base[OffsetsAt(task.grid, at).from]) : A(0);
      }
      sum += (batch[0] + batch[1]) + (batch[2] + batch[3]);
    }
  }
  __shared__ A values[kSumThreads];
  sum = SumOverThreads(sum, values, kSumThreads, side);
  if (thread < side && channel < task.channels) {
    PutSum<T>(target, place.quotient * task.channels + channel, sum);
  }
}

template <typename T>
__device__ __forceinline__ void
FinishSums(
    std::int64_t block,
    const Accumulator<T>* partial,
    const T* from,
    T* sums,
    const FinishSumsTask& task) {
  using A = Accumulator<T>;
  const int side = task.channels_at_once;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t channel = block * side + thread % side;
  const int step = static_cast<int>(blockDim.x) / side;
  A sum = 0;
  if (channel < task.channels) {
#pragma unroll 8
    for (std::int64_t row = thread / side; row < task.rows; row += step) {
      sum += partial[row * task.channels + channel];
    }
  }
  __shared__ A values[kMaxFinishThreads];
  sum = SumOverThreads(sum, values, static_cast<int>(blockDim.x), side);
  if (thread < side && channel < task.channels) {
    for (std::int64_t row = 0; row < task.tail_rows; ++row) {
      sum += Convert<A>(from[task.tail_offset + row * task.channels + channel]);
    }
    StoreSum(sum, task.accumulate, sums + channel * task.sums_stride);
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_SUM(stage, Function, name, T, Task)                           \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kSumThreads, 3) \
      gradsmith_sum_##stage##_##name(                                           \
          const T* from, const gradsmith::cuda::SumsTarget target,              \
          const gradsmith::cuda::Task task) {                                   \
    gradsmith::cuda::Function(from, target, task);                              \
  }

#define GRADSMITH_SUM_CHANNELS(name, T)                                            \
  GRADSMITH_SUM(columns, SumColumns, name, T, ColumnSumsTask)                      \
  GRADSMITH_SUM(rows, SumRows, name, T, RowSumsTask)                               \
  GRADSMITH_SUM(any, SumAny, name, T, AnySumsTask)                                 \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMaxFinishThreads) \
      gradsmith_sum_finish_##name(                                                 \
          const gradsmith::cuda::Accumulator<T>* partial, const T* from, T* sums,  \
          const gradsmith::cuda::FinishSumsTask task) {                            \
    gradsmith::cuda::FinishSums<T>(blockIdx.x, partial, from, sums, task);         \
  }                                                                                \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMaxFinishThreads) \
      gradsmith_sum_finish_two_##name(                                             \
          const gradsmith::cuda::Accumulator<T>* first_partial, T* first_sums,     \
          const gradsmith::cuda::FinishSumsTask first, std::int64_t first_blocks,  \
          const gradsmith::cuda::Accumulator<T>* second_partial, T* second_sums,   \
          const gradsmith::cuda::FinishSumsTask second) {                          \
    if (blockIdx.x < first_blocks) {                                               \
      gradsmith::cuda::FinishSums<T>(                                              \
          blockIdx.x, first_partial, nullptr, first_sums, first);                  \
    } else {                                                                       \
      gradsmith::cuda::FinishSums<T>(                                              \
          blockIdx.x - first_blocks, second_partial, nullptr, second_sums,         \
          second);                                                                 \
    }                                                                              \
  }

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_SUM_CHANNELS)
