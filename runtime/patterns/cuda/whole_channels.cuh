#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_CHANNELS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_CHANNELS_CUH_

#include <cstdint>

#include "patterns/cuda/whole_windows.cuh"

/// The form `whole_channels` of the kernels of the pattern `windows`: one window holds all of a
/// channel, and channels are neighbours in memory. Threads have vectors of these.
namespace gradsmith::cuda {

/// Merges what all threads that share channels keep of them, lane by lane of their vectors: `kept`
/// is a thread's own, that of its next lane kWindowsThreads on. What the first one keeps becomes
/// the result.
template <typename Functor, int kLanes, typename State>
__device__ __forceinline__ void
MergeLanes(const WholeLaunch& launch, const WholePart& part, State* kept) {
#pragma unroll 1
  for (int half = launch.sharing / 2; half > 0; half /= 2) {
    __syncthreads();
    if (part.member < half) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        State* const own = kept + lane * kWindowsThreads;
        State merged = *own;
        Functor::Merge(own[half * part.next], &merged);
        *own = merged;
      }
    }
  }
}

/// Takes a thread's elements of a run, which ends before `end`, and merges them with what it keeps.
template <typename Functor, typename T, int kLanes, typename State>
__device__ __forceinline__ void
ReduceRunOfChannels(const WholeLaunch& launch, const T* from, int begin, int end, State* kept) {
  using A = Accumulator<T>;
  State states[kLanes];
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    Functor::Begin(begin, &states[lane]);
  }
  ForEachInBatches<kWholeBatch, LoadedVector<T>>(
      begin, end, launch.sharing, [&](int i) { return BeginToLoad(from + i * launch.step); },
      [&](const LoadedVector<T>& loaded, int i) {
        const Vector<T> vector = loaded.Elements();
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          Functor::TakeNext(Convert<A>(vector.values[lane]), i, &states[lane]);
        }
      });
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    State merged = kept[lane * kWindowsThreads];
    Functor::Merge(states[lane], &merged);
    kept[lane * kWindowsThreads] = merged;
  }
}

template <typename Functor, typename T>
__device__ __forceinline__ void ReduceChannels(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  using State = typename Functor::template State<A, int>;
  constexpr int kLanes = kVectorLength<T>;
  __shared__ double memory[kWindowsThreads * kLanes * sizeof(State) / sizeof(double)];
  State* const kept = reinterpret_cast<State*>(memory) + threadIdx.x;
  const internal::WindowsTask& task = launch.task;
  const WholePart part = WholePartOf(launch, kLanes);
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    kept[lane * kWindowsThreads] = State();
  }
  const T* const from = ChannelOf<const T>(launch, part, 0);
  const std::int64_t size = part.exists ? launch.size : 0;
  const std::int64_t run = launch.run * launch.sharing;
#pragma unroll 1
  for (std::int64_t first = part.member; first < size; first += run) {
    ReduceRunOfChannels<Functor, T, kLanes>(
        launch, from, static_cast<int>(first), static_cast<int>(min(first + run, size)), kept);
  }
  MergeLanes<Functor, kLanes>(launch, part, kept);
  if (part.member != 0 || !part.exists) {
    return;
  }
  Vector<T> result;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    const State& state = kept[lane * kWindowsThreads];
    result.values[lane] = Convert<T>(Functor::Value(state, static_cast<A>(launch.size)));
  }
  StoreVector(ChannelOf<T>(launch, part, 1), result);
  if constexpr (Functor::kPlaces) {
    if (task.tensors[2] != nullptr) {
      std::int64_t* const to = ChannelOf<std::int64_t>(launch, part, 2);
      const std::int64_t place =
          part.batch * task.places.batch + part.channel * task.places.channel;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        to[lane] = place + lane * task.places.channel + kept[lane * kWindowsThreads].place;
      }
    }
  }
}

}  // namespace gradsmith::cuda

/// Defines the kernels of a reduction (ReduceChannels) or of a gather (PickChannels,
/// SpreadChannels), by the operator's name, for all floating types.
#define GRADSMITH_WHOLE_CHANNELS_KERNELS(name, function, Functor)                      \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, f32, function<Functor, float>)  \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, f64, function<Functor, double>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, f16, function<Functor, __half>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, bf16, function<Functor, __nv_bfloat16>)

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_CHANNELS_CUH_
