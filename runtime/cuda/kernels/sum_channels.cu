#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"

// Sums over all but the channels, in two stages: slices of the tensor give partial sums
// (slice, channel), which the finishing kernel adds up. Of a small tensor there is one slice, whose
// sums are the result: one launch. What is added to what depends on the task
// alone, never on an address: where data is not aligned, vectors are loaded element by element.
namespace gradsmith::cuda {
namespace {

constexpr int kWarp = 32;

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

/// LoadVector where data is not aligned.
template <typename T>
__device__ __forceinline__ Vector<T> LoadElements(const T* from) {
  Vector<T> vector;
#pragma unroll
  for (int i = 0; i < kVectorLength<T>; ++i) {
    vector.values[i] = from[i];
  }
  return vector;
}

/// Adds neighbours, then neighbours' sums; a power of two of them.
template <typename A, int kCount>
__device__ __forceinline__ A SumOfAll(A (&values)[kCount]) {
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) {
      values[i] += values[i + half];
    }
  }
  return values[0];
}

/// Adds a vector to `sums`, element by element.
template <typename T>
__device__ __forceinline__ void
AddVector(const Vector<T>& vector, Accumulator<T> (&sums)[kVectorLength<T>]) {
#pragma unroll
  for (int i = 0; i < kVectorLength<T>; ++i) {
    sums[i] += Convert<Accumulator<T>>(vector.values[i]);
  }
}

/// Room for kSumRing vectors of each thread, then for what its block adds up.
__device__ __forceinline__ uint4* Ring() {
  GRADSMITH_DYNAMIC_SHARED(ring);
  return ring;
}

/// Calls add(slot, vector) for `count` vectors, in order. locate(slot) is called before, in order
/// too, and returns where the next one is, or null for one that is zero; a slot's vector is added
/// before the next is located there. kSumRing of them are on their way to shared memory at a time,
/// where the thread alone reads them. Zeros may follow.
template <typename T, typename Locate, typename Add>
__device__ __forceinline__ void ForEachVector(int count, const Locate& locate, const Add& add) {
  uint4* const ring = Ring() + threadIdx.x;
  const auto threads = static_cast<int>(blockDim.x);
  const auto begin_copy = [&](int slot, bool exists) {
    const T* const from = exists ? locate(slot) : nullptr;
    BeginCopy(SharedAddress(ring + slot * threads), from, from != nullptr);
    EndOfCopies();
  };
#pragma unroll
  for (int slot = 0; slot < kSumRing; ++slot) {
    begin_copy(slot, slot < count);
  }
  for (int begin = 0; begin < count; begin += kSumRing) {
#pragma unroll
    for (int slot = 0; slot < kSumRing; ++slot) {
      WaitForCopies<kSumRing - 1>();
      add(slot, LoadVector(reinterpret_cast<const T*>(ring + slot * threads)));
      begin_copy(slot, begin + slot + kSumRing < count);
    }
  }
  WaitForCopies<0>();
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
template <typename T>
__device__ __forceinline__ void SumColumn(
    const T* column,
    const ColumnSumsTask& task,
    std::int64_t begin,
    std::int64_t end,
    Accumulator<T> (&sums)[kVectorLength<T>]) {
  const int step = task.rows_at_once;
  if (task.aligned == 0) {
    for (std::int64_t row = begin; row < end; row += step) {
      AddVector(LoadElements(column + row * task.pitch), sums);
    }
    return;
  }
  const T* next = column + begin * task.pitch;
  const auto count = static_cast<int>((end - begin + step - 1) / step);
  ForEachVector<T>(
      count,
      [&](int /*slot*/) {
        const T* const from = next;
        next += step * task.pitch;
        return from;
      },
      [&](int /*slot*/, const Vector<T>& vector) { AddVector(vector, sums); });
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
  if (active) {
    SumColumn(from + column * kLength, task, begin + first_row, end, sums);
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
  static_assert(sizeof(A) * kLength <= sizeof(uint4) * kSumRing);
  A* const values = reinterpret_cast<A*>(Ring());
  __syncthreads();
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

/// Which vector of a channel a thread is at.
struct VectorPlace {
  int row;
  int vector;
};

/// The thread's next place.
__device__ __forceinline__ VectorPlace NextPlace(const RowSumsTask& task, VectorPlace place) {
  place.row += task.step_rows;
  place.vector += task.step_vectors;
  if (place.vector >= task.vectors_of_row) {
    place.vector -= task.vectors_of_row;
    ++place.row;
  }
  return place;
}

/// A vector of which elements first, first + 1, ... are those of a row, in part from before its
/// first (below 0) or behind its last: other rows' share the vector.
template <typename T>
struct RowVector {
  Vector<T> vector;
  int first;
};

/// Adds those of the vector's elements that are of the row.
template <typename T>
__device__ __forceinline__ void AddWithinRow(
    const RowVector<T>& loaded, int row_length, Accumulator<T> (&sums)[kVectorLength<T>]) {
  using A = Accumulator<T>;
#pragma unroll
  for (int i = 0; i < kVectorLength<T>; ++i) {
    sums[i] += IsWithin(loaded.first + i, row_length) ? Convert<A>(loaded.vector.values[i]) : A(0);
  }
}

/// Loads the elements of a vector that are of the row, one by one.
template <typename T>
__device__ __forceinline__ RowVector<T>
LoadElements(const T* from, int first, int row_length) {
  RowVector<T> loaded = {ZeroVector<T>(), first};
#pragma unroll
  for (int i = 0; i < kVectorLength<T>; ++i) {
    if (IsWithin(first + i, row_length)) {
      loaded.vector.values[i] = from[i];
    }
  }
  return loaded;
}

/// What a thread of a group adds to the sum of a slice: `count` vectors of a channel from `place` on,
/// each so many further as the group has threads. The tensor is aligned. kWhole: rows begin and end
/// with vectors. kEven: they are one stride apart.
template <bool kWhole, bool kEven, typename T>
__device__ __forceinline__ Accumulator<T> SumVectors(
    const RowSumsTask& task, const T* from, std::int64_t channel, VectorPlace place, int count) {
  constexpr int kLength = kVectorLength<T>;
  Accumulator<T> sums[kLength] = {};
  int firsts[kSumRing] = {};
  // Of the tensor's last vector, a part may be behind its end: one row's, as rows are no shorter.
  const T* cut = nullptr;
  int cut_first = 0;
  ForEachVector<T>(
      count,
      [&](int slot) -> const T* {
        const std::int64_t row = channel + (kEven ? place.row * task.rows.from_strides[0]
                                                  : OffsetsAt(task.rows, place.row).from);
        const int first =
            place.vector * kLength - (kWhole ? 0 : static_cast<int>(row % kLength));
        place = NextPlace(task, place);
        const T* const at = from + row + first;
        if (kWhole) {
          return at;
        }
        firsts[slot] = first;
        if (first < task.row_length && row + first + kLength > task.extent) {
          cut = at;
          cut_first = first;
          return nullptr;
        }
        // A whole vector may reach into the row before or after: the tensor's memory still.
        return first < task.row_length ? at : nullptr;
      },
      [&](int slot, const Vector<T>& vector) {
        if (kWhole) {
          AddVector(vector, sums);
        } else {
          AddWithinRow<T>({vector, firsts[slot]}, task.row_length, sums);
        }
      });
  if (cut != nullptr) {
    AddWithinRow(LoadElements(cut, cut_first, task.row_length), task.row_length, sums);
  }
  return SumOfAll(sums);
}

/// The same of any rows and any tensor.
template <typename T>
__device__ __forceinline__ Accumulator<T> SumElements(
    const RowSumsTask& task, const T* from, std::int64_t channel, VectorPlace place, int count) {
  constexpr int kLength = kVectorLength<T>;
  Accumulator<T> sums[kLength] = {};
  for (; count > 0; --count) {
    const std::int64_t row = channel + OffsetsAt(task.rows, place.row).from;
    const int first = place.vector * kLength - static_cast<int>(row % kLength);
    const RowVector<T> loaded = LoadElements(from + row + first, first, task.row_length);
    AddWithinRow(loaded, task.row_length, sums);
    place = NextPlace(task, place);
  }
  return SumOfAll(sums);
}

template <typename T>
__device__ __forceinline__ Accumulator<T> SumSlice(
    const RowSumsTask& task, const T* from, std::int64_t channel, std::int64_t slice, int lane) {
  const std::int64_t begin = slice * task.count_per_slice + lane;
  const std::int64_t end = min((slice + 1) * task.count_per_slice, task.count);
  const Division at = Divide(begin, task.vectors_of_row);
  const VectorPlace place = {static_cast<int>(at.quotient), static_cast<int>(at.remainder)};
  const auto count = static_cast<int>((end - begin + task.group - 1) / task.group);
  // Several rows that are shorter than a vector can share the tensor's last.
  if (task.aligned == 0 || task.row_length < kVectorLength<T>) {
    return SumElements(task, from, channel, place, count);
  }
  if (task.rows.rank > 1) {
    return SumVectors<false, false>(task, from, channel, place, count);
  }
  return task.whole != 0 ? SumVectors<true, true>(task, from, channel, place, count)
                         : SumVectors<false, true>(task, from, channel, place, count);
}

/// The first thread of each group gets the sum over its threads. Every thread of the block takes
/// part.
template <typename A>
__device__ __forceinline__ A SumOverGroup(A sum, int group) {
  for (int distance = min(group, kWarp) / 2; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xFFFFFFFFU, sum, distance);
  }
  if (group <= kWarp) {
    return sum;
  }
  __shared__ A of_warps[kSumThreads / kWarp];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // the sums before may be read still
  if (thread % kWarp == 0) {
    of_warps[thread / kWarp] = sum;
  }
  __syncthreads();
  if (thread % group == 0) {
    for (int warp = 1; warp < group / kWarp; ++warp) {
      sum += of_warps[thread / kWarp + warp];
    }
  }
  return sum;
}

template <typename T>
__device__ __forceinline__ void
SumRows(const T* from, const SumsTarget& target, const RowSumsTask& task) {
  const int groups = static_cast<int>(blockDim.x) / task.group;
  const int lane = static_cast<int>(threadIdx.x) % task.group;
  const std::int64_t all = task.channels * task.slices;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * groups; first < all;
       first += static_cast<std::int64_t>(gridDim.x) * groups) {
    // Neighbouring groups have neighbouring channels, and so read neighbouring memory.
    const std::int64_t group = first + static_cast<int>(threadIdx.x) / task.group;
    const Division place = Divide(group, task.channels);
    Accumulator<T> sum = 0;
    if (group < all) {
      sum = SumSlice(task, from, place.remainder * task.channel_stride, place.quotient, lane);
    }
    sum = SumOverGroup(sum, task.group);
    if (lane == 0 && group < all) {
      PutSum<T>(target, group, sum);
    }
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
    constexpr int kBatch = 4;
    for (std::int64_t index = begin + thread / side; index < end; index += kBatch * step) {
      A batch[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const std::int64_t at = index + i * step;
        batch[i] = at < end ? Convert<A>(base[OffsetsAt(task.grid, at).from]) : A(0);
      }
      sum += SumOfAll(batch);
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

/// FinishSums of few rows and many channels, of which each thread has some.
template <typename T>
__device__ __forceinline__ void
FinishFewRows(const Accumulator<T>* partial, T* sums, const FinishSumsTask& task) {
  using A = Accumulator<T>;
  constexpr int kChannels = kFinishFewChannels;
  constexpr int kBatch = 4;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (kFinishFewThreads * kChannels) + threadIdx.x;
  A sum[kChannels] = {};
  for (std::int64_t row = 0; row < task.rows; row += kBatch) {
    A batch[kBatch][kChannels];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
#pragma unroll
      for (int j = 0; j < kChannels; ++j) {
        const std::int64_t channel = first + j * kFinishFewThreads;
        const bool exists = row + i < task.rows && channel < task.channels;
        batch[i][j] = exists ? partial[(row + i) * task.channels + channel] : A(0);
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
#pragma unroll
      for (int j = 0; j < kChannels; ++j) {
        sum[j] += batch[i][j];
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kChannels; ++j) {
    const std::int64_t channel = first + j * kFinishFewThreads;
    if (channel < task.channels) {
      StoreSum(sum[j], task.accumulate, sums + channel * task.sums_stride);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_SUM(stage, Function, name, T, Task)                           \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kSumThreads, 2) \
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
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kFinishFewThreads) \
      gradsmith_sum_finish_few_##name(                                             \
          const gradsmith::cuda::Accumulator<T>* partial, T* sums,                 \
          const gradsmith::cuda::FinishSumsTask task) {                            \
    gradsmith::cuda::FinishFewRows<T>(partial, sums, task);                        \
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
