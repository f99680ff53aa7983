#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_PICKS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_PICKS_CUH_

#include <cstdint>
#include <cstring>

#include "patterns/cuda/whole_channels.cuh"
#include "patterns/cuda/whole_windows.cuh"

/// Gathers of windows that hold a whole channel and give to one element of it, which the functor
/// finds (Matches, GivesToLast) in the input and what the forward gave of it. Threads write zeros
/// as they search, and whoever has found the element writes it once more; where the result is added
/// to, nothing else is touched.
namespace gradsmith::cuda {

/// How elements that match are ranked: the one that a window gives to has the highest rank, and
/// none has 0. Elements are numbered below 2^62, or in 32 bits below 2^30.
template <typename Rank>
__device__ __forceinline__ Rank RankOf(Rank element, bool gives_to_last) {
  constexpr Rank kTop = Rank{1} << (8 * sizeof(Rank) - 2);
  return gives_to_last ? kTop + element : kTop - element;
}
template <typename Rank>
__device__ __forceinline__ Rank ElementOf(Rank rank) {
  constexpr Rank kTop = Rank{1} << (8 * sizeof(Rank) - 2);
  return rank > kTop ? rank - kTop : kTop - rank;
}

/// The lanes of a thread's warp that are known to share its channel.
__device__ __forceinline__ unsigned PeersOf(const WholeLaunch& launch) {
  const unsigned lane = threadIdx.x % 32;
  if (launch.channels_first) {
    return 1U << lane;
  }
  return launch.sharing >= 32 ? 0xFFFFFFFFU
                              : ((1U << launch.sharing) - 1)
                                    << (lane & ~(static_cast<unsigned>(launch.sharing) - 1));
}

/// Searches a thread's vectors, or single elements where kLanes is 1, of a channel of which there
/// are so many, and writes zeros. Returns the highest rank. All threads of a warp do so at once:
/// they end where one has found the first element that matches, and the first is asked for.
template <typename Functor, int kLanes, typename T>
__device__ __forceinline__ unsigned long long SearchWhole(
    const WholeLaunch& launch,
    const WholePart& part,
    std::int64_t count,
    Accumulator<T> key) {
  using A = Accumulator<T>;
  using Word = typename WordOf<kLanes* static_cast<int>(sizeof(T))>::Type;
  const T* const from = ChannelOf<const T>(launch, part, 1);
  T* const to = ChannelOf<T>(launch, part, Functor::kOutput);
  const std::int64_t step = kLanes == 1 ? launch.step : kLanes;
  const std::int64_t output_step = kLanes == 1 ? launch.output_step : kLanes;
  const bool gives_to_last = Functor::GivesToLast(key);
  const bool clears = part.exists && !launch.task.accumulate;
  const unsigned peers = PeersOf(launch);
  unsigned long long best = 0;
  bool searches = part.exists;
#pragma unroll 1
  for (std::int64_t turn = 0; turn < count; turn += kWholeBatch * launch.sharing) {
    const std::int64_t first = turn + part.member;
    const int left = static_cast<int>(
        min(count - first, static_cast<std::int64_t>(kWholeBatch * launch.sharing)));
    Word items[kWholeBatch];
#pragma unroll
    for (int i = 0; i < kWholeBatch; ++i) {
      if (searches && i * launch.sharing < left) {
        items[i] = *reinterpret_cast<const Word*>(from + (first + i * launch.sharing) * step);
      }
    }
#pragma unroll
    for (int i = 0; i < kWholeBatch; ++i) {
      if (clears && i * launch.sharing < left) {
        *reinterpret_cast<Word*>(to + (first + i * launch.sharing) * output_step) = Word{};
      }
    }
#pragma unroll
    for (int i = 0; i < kWholeBatch; ++i) {
      if (searches && i * launch.sharing < left) {
        T values[kLanes];
        memcpy(values, &items[i], sizeof(Word));
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          if (Functor::Matches(Convert<A>(values[lane]), key)) {
            const auto element =
                static_cast<unsigned long long>((first + i * launch.sharing) * kLanes + lane);
            best = max(best, RankOf(element, gives_to_last));
          }
        }
      }
    }
    const bool has_found = best != 0 && !gives_to_last;
    // Threads that search no more vote as well.
    const unsigned found = __ballot_sync(0xFFFFFFFFU, has_found) & peers;
    searches = searches && found == 0;
  }
  return best;
}

template <typename Functor, typename T>
__device__ __forceinline__ void PickWhole(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  __shared__ unsigned long long best[kWindowsThreads];
  const WholePart part = WholePartOf(launch, 1);
  if (part.member == 0) {
    best[part.of_block] = 0;
  }
  SynchronizeSharing(launch.sharing, part.next);
  A dy = 0;
  A key = 0;
  if (part.exists) {
    dy = Convert<A>(*ChannelOf<const T>(launch, part, 0));
    key = Convert<A>(*ChannelOf<const T>(launch, part, Functor::kKey));
  }
  const unsigned long long own = launch.has_vectors
                                     ? SearchWhole<Functor, kVectorLength<T>, T>(
                                           launch, part, launch.size / kVectorLength<T>, key)
                                     : SearchWhole<Functor, 1, T>(launch, part, launch.size, key);
  if (own != 0) {
    atomicMax(&best[part.of_block], own);
  }
  SynchronizeSharing(launch.sharing, part.next);
  if (own != 0 && own == best[part.of_block]) {
    const auto element = static_cast<std::int64_t>(ElementOf(own));
    T* const to = ChannelOf<T>(launch, part, Functor::kOutput) + element * launch.output_step;
    *to = Convert<T>(launch.task.accumulate ? dy + Convert<A>(*to) : dy);
  }
}

/// Searches a thread's elements of its channels, as SearchWhole does, for the highest rank of each.
template <typename Functor, typename T, int kLanes>
__device__ __forceinline__ void SearchChannels(
    const WholeLaunch& launch,
    const WholePart& part,
    const Vector<T>& keys,
    unsigned (&ranks)[kLanes]) {
  using A = Accumulator<T>;
  const T* const from = ChannelOf<const T>(launch, part, 1);
  T* const to = ChannelOf<T>(launch, part, Functor::kOutput);
  const bool clears = !launch.task.accumulate;
  ForEachInBatches<kWholeBatch, LoadedVector<T>>(
      part.member, static_cast<int>(launch.size), launch.sharing,
      [&](int i) {
        const LoadedVector<T> loaded = BeginToLoad(from + i * launch.step);
        if (clears) {
          StoreVector(to + i * launch.output_step, ZeroVector<T>());
        }
        return loaded;
      },
      [&](const LoadedVector<T>& loaded, int i) {
        const Vector<T> vector = loaded.Elements();
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          const A key = Convert<A>(keys.values[lane]);
          if (Functor::Matches(Convert<A>(vector.values[lane]), key)) {
            ranks[lane] =
                max(ranks[lane], RankOf(static_cast<unsigned>(i), Functor::GivesToLast(key)));
          }
        }
      });
}

/// PickChannels does as PickWhole does, with a vector of neighbouring channels for each thread.
template <typename Functor, typename T>
__device__ __forceinline__ void PickChannels(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  constexpr int kLanes = kVectorLength<T>;
  __shared__ unsigned best[kWindowsThreads * kLanes];
  const WholePart part = WholePartOf(launch, kLanes);
  unsigned* const best_of_part = best + part.of_block;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    best[lane * kWindowsThreads + threadIdx.x] = 0;
  }
  __syncthreads();
  unsigned ranks[kLanes] = {};
  if (part.exists) {
    const Vector<T> keys = LoadVector(ChannelOf<const T>(launch, part, Functor::kKey));
    SearchChannels<Functor, T>(launch, part, keys, ranks);
  }
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (ranks[lane] != 0) {
      atomicMax(best_of_part + lane * kWindowsThreads, ranks[lane]);
    }
  }
  __syncthreads();
  const T* const given = ChannelOf<const T>(launch, part, 0);
  T* const to = ChannelOf<T>(launch, part, Functor::kOutput);
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    if (ranks[lane] != 0 && ranks[lane] == best_of_part[lane * kWindowsThreads]) {
      T* const element = to + ElementOf(ranks[lane]) * launch.output_step + lane;
      const A dy = Convert<A>(given[lane]);
      *element = Convert<T>(launch.task.accumulate ? dy + Convert<A>(*element) : dy);
    }
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_PICKS_CUH_
