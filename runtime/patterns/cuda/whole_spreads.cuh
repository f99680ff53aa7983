#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_SPREADS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_SPREADS_CUH_

#include <cstdint>

#include "patterns/cuda/whole_channels.cuh"
#include "patterns/cuda/whole_windows.cuh"

/// Gathers of windows that hold a whole channel and give each element the same share.
namespace gradsmith::cuda {

/// SpreadPiece is a vector of the result: its first elements, as many as are left of a channel, get
/// one share, and those of the next channel another.
template <typename T>
struct SpreadPiece {
  T given;
  T given_next;
  int left;
};

/// Loads a vector of which only the first `count` elements exist.
template <typename T>
__device__ __forceinline__ Vector<T> LoadSome(const T* from, int count) {
  if (count >= kVectorLength<T>) {
    return LoadVector(from);
  }
  Vector<T> vector = ZeroVector<T>();
#pragma unroll
  for (int lane = 0; lane < kVectorLength<T>; ++lane) {
    if (lane < count) {
      vector.values[lane] = from[lane];
    }
  }
  return vector;
}

/// Writes a vector of a contiguous result, or adds to it. Only the first `count` elements exist.
template <typename T>
__device__ __forceinline__ void StorePiece(
    const SpreadPiece<T>& piece,
    Accumulator<T> size,
    bool accumulate,
    const Vector<T>& before,
    int count,
    T* to) {
  using A = Accumulator<T>;
  constexpr int kLanes = kVectorLength<T>;
  const A share = Convert<A>(piece.given) / size;
  const A next = piece.left < kLanes ? Convert<A>(piece.given_next) / size : share;
  Vector<T> result;
  if (accumulate) {
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      const A own = lane < piece.left ? share : next;
      result.values[lane] = Convert<T>(own + Convert<A>(before.values[lane]));
    }
  } else {
    const T rounded = Convert<T>(share);
    const T rounded_next = Convert<T>(next);
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      result.values[lane] = lane < piece.left ? rounded : rounded_next;
    }
  }
  if (count >= kLanes) {
    StoreVector(to, result);
    return;
  }
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (lane < count) {
      to[lane] = result.values[lane];
    }
  }
}

/// Spreads shares over channels that follow each other in memory, each of which has at least as
/// many elements as a vector. A block writes a run of vectors, which may begin and end within a
/// channel.
template <typename Functor, typename T>
__device__ __forceinline__ void SpreadWhole(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  constexpr int kLanes = kVectorLength<T>;
  constexpr int kOfBlock = kWindowsThreads * kSpreadBatch * kLanes;
  const bool accumulate = launch.task.accumulate;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kOfBlock;
  const Division division = Divide(begin, launch.size);
  const int in_channel = static_cast<int>(division.remainder);
  const T* const given =
      static_cast<const T*>(launch.task.tensors[0]) + division.quotient * launch.given_step;
  T* const to = static_cast<T*>(launch.task.tensors[Functor::kOutput]) + begin;
  const int count = static_cast<int>(
      min(launch.channels * launch.size - begin, static_cast<std::int64_t>(kOfBlock)));
  const int thread = static_cast<int>(threadIdx.x) * kLanes;
  SpreadPiece<T> pieces[kSpreadBatch];
  Vector<T> before[kSpreadBatch];
#pragma unroll
  for (int i = 0; i < kSpreadBatch; ++i) {
    const int at = i * kWindowsThreads * kLanes + thread;
    if (at < count) {
      const auto position = static_cast<std::uint32_t>(in_channel + at);
      const std::uint32_t channel = Divide(position, launch.by_size);
      const T* const own = given + channel * launch.given_step;
      SpreadPiece<T>& piece = pieces[i];
      piece.left = static_cast<int>((channel + 1) * launch.by_size.divisor - position);
      piece.given = *own;
      piece.given_next =
          *(at + piece.left < count && piece.left < kLanes ? own + launch.given_step : own);
      if (accumulate) {
        before[i] = LoadSome(to + at, count - at);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kSpreadBatch; ++i) {
    const int at = i * kWindowsThreads * kLanes + thread;
    if (at < count) {
      StorePiece(
          pieces[i], static_cast<A>(launch.size), accumulate, before[i], count - at, to + at);
    }
  }
}

/// The same where channels are neighbours in memory.
template <typename Functor, typename T>
__device__ __forceinline__ void SpreadChannels(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  constexpr int kLanes = kVectorLength<T>;
  const WholePart part = WholePartOf(launch, kLanes);
  if (!part.exists) {
    return;
  }
  const int size = static_cast<int>(launch.size);
  const Vector<T> given = LoadVector(ChannelOf<const T>(launch, part, 0));
  T* const to = ChannelOf<T>(launch, part, Functor::kOutput);
  A shares[kLanes];
  Vector<T> rounded;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    shares[lane] = Convert<A>(given.values[lane]) / static_cast<A>(size);
    rounded.values[lane] = Convert<T>(shares[lane]);
  }
  if (!launch.task.accumulate) {
#pragma unroll 4
    for (int i = part.member; i < size; i += launch.sharing) {
      StoreVector(to + i * launch.output_step, rounded);
    }
    return;
  }
  ForEachInBatches<kSpreadBatch, LoadedVector<T>>(
      part.member, size, launch.sharing,
      [&](int i) { return BeginToLoad<T>(to + i * launch.output_step); },
      [&](const LoadedVector<T>& loaded, int i) {
        Vector<T> vector = loaded.Elements();
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          vector.values[lane] = Convert<T>(shares[lane] + Convert<A>(vector.values[lane]));
        }
        StoreVector(to + i * launch.output_step, vector);
      });
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_SPREADS_CUH_
