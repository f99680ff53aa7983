#include "cuda/kernels/channel_copies.h"
#include "cuda/kernels/element_vector.cuh"

// Copies between tensors that differ in their number of channels. Elements are moved as words of
// their size; zero is zero bits in every type.
namespace gradsmith::cuda {
namespace {

__device__ __forceinline__ std::int64_t ThreadIndex() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ std::int64_t ThreadCount() {
  return std::int64_t{gridDim.x} * blockDim.x;
}

/// Channels last on both sides: a thread writes 16 bytes at a time, which lie in one row or more.
template <typename T>
__device__ void CopyRows(const T* from, T* to, const ChannelCopy& copy) {
  constexpr int kLength = kVectorLength<T>;
  const std::int64_t count = copy.images * copy.positions * copy.to_channels;
  for (std::int64_t first = ThreadIndex() * kLength; first < count;
       first += ThreadCount() * kLength) {
    const Division at = Divide(first, copy.to_channels);
    const T* row = from + at.quotient * copy.from_channels;
    auto channel = static_cast<int>(at.remainder);
    Vector<T> vector = ZeroVector<T>();
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      if (first + i < count && channel < copy.from_channels) {
        vector.values[i] = row[channel];
      }
      if (++channel == copy.to_channels) {
        channel = 0;
        row += copy.from_channels;
      }
    }
    if (first + kLength <= count) {
      StoreVector(to + first, vector);
      continue;
    }
#pragma unroll
    for (int i = 0; i < kLength; ++i) {
      if (first + i < count) {
        to[first + i] = vector.values[i];
      }
    }
  }
}

/// Channels first to channels last, whose number is a multiple of kChannelsAtOnce: a thread moves
/// kPositions neighbouring positions of an image, of which there are a multiple.
template <typename T, int kPositions>
__device__ void GatherChannels(const T* from, T* to, const ChannelCopy& copy) {
  const std::int64_t count = copy.images * copy.positions;
  for (std::int64_t first = ThreadIndex() * kPositions; first < count;
       first += ThreadCount() * kPositions) {
    const Division at = Divide(first, copy.positions);
    const T* source = from + at.quotient * copy.from_channels * copy.positions + at.remainder;
    T* target = to + first * copy.to_channels;
    for (int begin = 0; begin < copy.to_channels; begin += kChannelsAtOnce) {
      T loaded[kChannelsAtOnce][kPositions] = {};
#pragma unroll
      for (int i = 0; i < kChannelsAtOnce; ++i) {
        if (begin + i < copy.from_channels) {
          LoadAtOnce<kPositions>(source + (begin + i) * copy.positions, loaded[i]);
        }
      }
#pragma unroll
      for (int j = 0; j < kPositions; ++j) {
        T channels[kChannelsAtOnce];
#pragma unroll
        for (int i = 0; i < kChannelsAtOnce; ++i) {
          channels[i] = loaded[i][j];
        }
        StoreAtOnce<kChannelsAtOnce>(channels, target + j * copy.to_channels + begin);
      }
    }
  }
}

/// The other way round: there are a multiple of kChannelsAtOnce to read.
template <typename T, int kPositions>
__device__ void ScatterChannels(const T* from, T* to, const ChannelCopy& copy) {
  const std::int64_t count = copy.images * copy.positions;
  for (std::int64_t first = ThreadIndex() * kPositions; first < count;
       first += ThreadCount() * kPositions) {
    const Division at = Divide(first, copy.positions);
    const T* source = from + first * copy.from_channels;
    T* target = to + at.quotient * copy.to_channels * copy.positions + at.remainder;
    for (int begin = 0; begin < copy.to_channels; begin += kChannelsAtOnce) {
      T loaded[kPositions][kChannelsAtOnce];
#pragma unroll
      for (int j = 0; j < kPositions; ++j) {
        LoadAtOnce<kChannelsAtOnce>(source + j * copy.from_channels + begin, loaded[j]);
      }
#pragma unroll
      for (int i = 0; i < kChannelsAtOnce; ++i) {
        T positions[kPositions];
#pragma unroll
        for (int j = 0; j < kPositions; ++j) {
          positions[j] = loaded[j][i];
        }
        if (begin + i < copy.to_channels) {
          StoreAtOnce<kPositions>(positions, target + (begin + i) * copy.positions);
        }
      }
    }
  }
}

template <typename T>
__device__ __forceinline__ void Repeat(const T* from, T* to, const ChannelRepeats& repeats) {
  ForEachBatch(repeats.grid.count, [&](const auto& indices, const auto& valid) {
    T values[kElementBatch];
    std::int64_t to_offsets[kElementBatch];
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const Offsets offsets = OffsetsAt(repeats.grid, indices[i]);
        to_offsets[i] = offsets.to;
        values[i] = from[offsets.from];
      }
    }
    for (std::int64_t j = 0; j < repeats.times; ++j) {
#pragma unroll
      for (int i = 0; i < kElementBatch; ++i) {
        if (valid[i]) {
          to[to_offsets[i] + j * repeats.step] = values[i];
        }
      }
    }
  });
}

template <typename T>
__device__ __forceinline__ void
SumRepeats(const T* from, T* to, const ChannelRepeats& repeats, bool accumulate) {
  using A = Accumulator<T>;
  ForEachBatch(repeats.grid.count, [&](const auto& indices, const auto& valid) {
    A sums[kElementBatch];
    Offsets offsets[kElementBatch];
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        offsets[i] = OffsetsAt(repeats.grid, indices[i]);
        sums[i] = accumulate ? Convert<A>(to[offsets[i].to]) : A(0);
      }
    }
    for (std::int64_t j = 0; j < repeats.times; ++j) {
#pragma unroll
      for (int i = 0; i < kElementBatch; ++i) {
        if (valid[i]) {
          sums[i] += Convert<A>(from[offsets[i].from + j * repeats.step]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        to[offsets[i].to] = Convert<T>(sums[i]);
      }
    }
  });
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_CHANNEL_COPY(name, T, ...)                                            \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kChannelThreads)        \
      gradsmith_##name(const T* from, T* to, const gradsmith::cuda::ChannelCopy copy) { \
    gradsmith::cuda::__VA_ARGS__(from, to, copy);                                       \
  }

// By the element's size, and the positions that a thread moves.
#define GRADSMITH_CHANNEL_COPIES(size, T)                                             \
  GRADSMITH_CHANNEL_COPY(copy_rows_##size, T, CopyRows<T>)                            \
  GRADSMITH_CHANNEL_COPY(gather_channels_##size, T, GatherChannels<T, 1>)             \
  GRADSMITH_CHANNEL_COPY(                                                             \
      gather_vectors_##size, T, GatherChannels<T, gradsmith::cuda::kPositionsAtOnce>) \
  GRADSMITH_CHANNEL_COPY(scatter_channels_##size, T, ScatterChannels<T, 1>)           \
  GRADSMITH_CHANNEL_COPY(                                                             \
      scatter_vectors_##size, T, ScatterChannels<T, gradsmith::cuda::kPositionsAtOnce>)

GRADSMITH_CHANNEL_COPIES(2, std::uint16_t)
GRADSMITH_CHANNEL_COPIES(4, std::uint32_t)

#define GRADSMITH_REPEAT_CHANNELS(size, T)                                                \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads)          \
      gradsmith_repeat_channels_##size(                                                   \
          const T* from, T* to, const gradsmith::cuda::ChannelRepeats repeats) {          \
    gradsmith::cuda::Repeat(from, to, repeats);                                           \
  }

GRADSMITH_REPEAT_CHANNELS(2, std::uint16_t)
GRADSMITH_REPEAT_CHANNELS(4, std::uint32_t)
GRADSMITH_REPEAT_CHANNELS(8, std::uint64_t)

#define GRADSMITH_SUM_REPEATS(suffix, T)                                                  \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads)          \
      gradsmith_sum_repeats_##suffix(                                                     \
          const T* from, T* to, const gradsmith::cuda::ChannelRepeats repeats,            \
          bool accumulate) {                                                              \
    gradsmith::cuda::SumRepeats(from, to, repeats, accumulate);                           \
  }

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_SUM_REPEATS)
