#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_WINDOWS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_WINDOWS_CUH_

#include <cstdint>
#include <cstring>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/windows.cuh"

/// The kernel `whole` of the pattern `windows`: one window holds all of a channel, as
/// in global pooling. Threads of a block share a channel, and meet in shared memory in an order
/// that the launch alone sets.
namespace gradsmith::cuda {

/// The part of a channel that a thread has.
struct WholePart {
  std::int64_t batch;
  std::int64_t channel;
  /// Whether there is such a channel.
  bool exists;
  /// Which of the block's channels it is.
  int of_block;
  /// The thread's number among those that share it, and how far the next is in the block.
  int member;
  int next;
};

/// The channel is the first of `lanes` neighbours.
__device__ __forceinline__ WholePart WholePartOf(const WholeLaunch& launch, int lanes) {
  const int thread = static_cast<int>(threadIdx.x);
  const int channels = kWindowsThreads / launch.sharing;
  const int of_block = launch.channels_first ? thread & (channels - 1) : thread / launch.sharing;
  const std::int64_t number = std::int64_t{blockIdx.x} * channels + of_block;
  const Division division = Divide(number, launch.task.channels / lanes);
  return {
      division.quotient,
      division.remainder * lanes,
      number < launch.channels,
      of_block,
      launch.channels_first ? thread / channels : thread & (launch.sharing - 1),
      launch.channels_first ? channels : 1};
}

/// ChannelOf returns where the part's channel begins in a tensor.
template <typename T>
__device__ __forceinline__ T* ChannelOf(const WholeLaunch& launch, const WholePart& part, int t) {
  const internal::PerDim<std::int64_t>& strides = launch.task.strides[t];
  return static_cast<T*>(launch.task.tensors[t]) + part.batch * strides.batch +
         part.channel * strides.channel;
}

/// Waits for as many threads as share a channel, in whose order they are `next` apart: of a warp,
/// or of the block.
__device__ __forceinline__ void SynchronizeSharing(int threads, int next) {
  if (threads * next > 32) {
    __syncthreads();
  } else {
    SynchronizeWarp();
  }
}

/// A vector on its way: as a whole, it takes no more registers than it has bytes.
template <typename T>
struct LoadedVector {
  uint4 bits;

  [[nodiscard]] __device__ __forceinline__ Vector<T> Elements() const {
    Vector<T> vector;
    memcpy(&vector, &bits, sizeof(bits));
    return vector;
  }
};

template <typename T>
__device__ __forceinline__ LoadedVector<T> BeginToLoad(const T* from) {
  return {*reinterpret_cast<const uint4*>(from)};
}

/// Calls visit(item, i) with what load(i) gives for every step-th i from `begin` on and before
/// `end`, in order. Loads are under way kBatch at a time, whether or not so many are left.
template <int kBatch, typename Item, typename Load, typename Visit>
__device__ __forceinline__ void
ForEachInBatches(int begin, int end, int step, const Load& load, const Visit& visit) {
#pragma unroll 1
  for (int first = begin; first < end; first += kBatch * step) {
    Item items[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * step < end) {
        items[i] = load(first + i * step);
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (first + i * step < end) {
        visit(items[i], first + i * step);
      }
    }
  }
}

/// MergeWhole merges the states of all threads that share a channel: every one of them gets it.
template <typename Functor, typename State>
__device__ __forceinline__ State
MergeWhole(const WholeLaunch& launch, const WholePart& part, const State& own) {
  // An array of states could not be shared memory, which begins without values.
  __shared__ double memory[kWindowsThreads * sizeof(State) / sizeof(double)];
  State* states = reinterpret_cast<State*>(memory);
  const int thread = static_cast<int>(threadIdx.x);
  states[thread] = own;
  for (int half = launch.sharing / 2; half > 0; half /= 2) {
    SynchronizeSharing(2 * half, part.next);
    if (part.member < half) {
      State merged = states[thread];
      Functor::Merge(states[thread + half * part.next], &merged);
      states[thread] = merged;
    }
  }
  SynchronizeSharing(launch.sharing, part.next);
  return states[thread - part.member * part.next];
}

/// How many elements, or vectors of these, threads go through.
template <typename T>
__device__ __forceinline__ std::int64_t CountOfWhole(const WholeLaunch& launch) {
  return launch.has_vectors ? launch.size / kVectorLength<T> : launch.size;
}

/// Takes a thread's elements of a run, which has so many, or vectors of these.
template <typename Functor, typename A, typename T>
__device__ __forceinline__ typename Functor::template State<A, int>
ReduceRun(const WholeLaunch& launch, const WholePart& part, const T* from, int count) {
  typename Functor::template State<A, int> state;
  if (launch.has_vectors) {
    constexpr int kLanes = kVectorLength<T>;
    Functor::Begin(part.member * kLanes, &state);
    ForEachInBatches<kWholeBatch, LoadedVector<T>>(
        part.member, count, launch.sharing, [&](int i) { return BeginToLoad(from + i * kLanes); },
        [&](const LoadedVector<T>& loaded, int i) {
          const Vector<T> vector = loaded.Elements();
#pragma unroll
          for (int lane = 0; lane < kLanes; ++lane) {
            Functor::TakeNext(Convert<A>(vector.values[lane]), i * kLanes + lane, &state);
          }
        });
    return state;
  }
  Functor::Begin(part.member, &state);
  ForEachInBatches<kWholeBatch, T>(
      part.member, count, launch.sharing, [&](int i) { return from[i * launch.step]; },
      [&](const T& element, int i) { Functor::TakeNext(Convert<A>(element), i, &state); });
  return state;
}

/// Elements of a run are numbered in 32 bits.
template <typename Functor, typename T>
__device__ __forceinline__ void ReduceWhole(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  const internal::WindowsTask& task = launch.task;
  const WholePart part = WholePartOf(launch, 1);
  const std::int64_t count = part.exists ? CountOfWhole<T>(launch) : 0;
  const int lanes = launch.has_vectors ? kVectorLength<T> : 1;
  const T* const from = ChannelOf<const T>(launch, part, 0);
  const std::int64_t run = launch.run * launch.sharing;
  typename Functor::template State<A> state;
#pragma unroll 1
  for (std::int64_t first = 0; first + part.member < count; first += run) {
    const auto of_run = ReduceRun<Functor, A>(
        launch, part, from + first * (launch.has_vectors ? lanes : launch.step),
        static_cast<int>(min(run, count - first)));
    Functor::Merge(Functor::Moved(of_run, first * lanes), &state);
  }
  state = MergeWhole<Functor>(launch, part, state);
  if (part.member != 0 || !part.exists) {
    return;
  }
  *ChannelOf<T>(launch, part, 1) = Convert<T>(Functor::Value(state, static_cast<A>(launch.size)));
  if constexpr (Functor::kPlaces) {
    if (task.tensors[2] != nullptr) {
      const std::int64_t place =
          part.batch * task.places.batch + part.channel * task.places.channel;
      *ChannelOf<std::int64_t>(launch, part, 2) = place + Functor::Place(state);
    }
  }
}

}  // namespace gradsmith::cuda

#define GRADSMITH_WHOLE_WINDOWS_KERNEL(form, name, suffix, ...)                  \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kWindowsThreads) \
      gradsmith_windows_##form##_##name##_##suffix(                              \
          const __grid_constant__ gradsmith::cuda::WholeLaunch launch) {         \
    gradsmith::cuda::__VA_ARGS__(launch);                                        \
  }

/// Defines the kernels of a reduction (ReduceWhole) or of a gather (PickWhole, SpreadWhole), by the
/// operator's name, for all floating types.
#define GRADSMITH_WHOLE_WINDOWS_KERNELS(name, function, Functor)              \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, f32, function<Functor, float>)  \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, f64, function<Functor, double>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, f16, function<Functor, __half>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, bf16, function<Functor, __nv_bfloat16>)

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_WINDOWS_CUH_
