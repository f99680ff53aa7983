#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_WINDOWS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_WINDOWS_CUH_

#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/windows.cuh"

/// The form `whole` of the kernels of the pattern `windows`: one window holds all of a channel, as
/// in global pooling. Threads of a block share a channel, and meet in shared memory in an order
/// that the launch alone sets.
namespace gradsmith::cuda {

/// The part of a channel that a thread has.
struct WholePart {
  std::int64_t batch;
  std::int64_t channel;
  /// Whether there is such a channel.
  bool exists;
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
      division.quotient, division.remainder * lanes, number < launch.channels,
      launch.channels_first ? thread / channels : thread & (launch.sharing - 1),
      launch.channels_first ? channels : 1};
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
    if (2 * half * part.next > 32) {
      __syncthreads();
    } else {
      SynchronizeWarp();
    }
    if (part.member < half) {
      State merged = states[thread];
      Functor::Merge(states[thread + half * part.next], &merged);
      states[thread] = merged;
    }
  }
  __syncthreads();
  return states[thread - part.member * part.next];
}

/// Calls visit(value, index) with a thread's elements of a channel of the input, or vectors of
/// these, from `begin` on and before `end`.
template <typename A, typename T, typename Visit>
__device__ __forceinline__ void ForEachOfWhole(
    const WholeLaunch& launch,
    const WholePart& part,
    const T* input,
    const internal::PerDim<std::int64_t>& strides,
    std::int64_t begin,
    std::int64_t end,
    const Visit& visit) {
  if (!part.exists) {
    return;
  }
  const T* from = input + part.batch * strides.batch + part.channel * strides.channel;
  if (launch.has_vectors) {
    constexpr int kLanes = kVectorLength<T>;
#pragma unroll 4
    for (std::int64_t i = begin; i < end; i += launch.sharing) {
      const Vector<T> vector = LoadVector(from + i * kLanes);
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        visit(Convert<A>(vector.values[lane]), i * kLanes + lane);
      }
    }
    return;
  }
#pragma unroll 4
  for (std::int64_t i = begin; i < end; i += launch.sharing) {
    visit(Convert<A>(from[i * launch.step]), i);
  }
}

/// How many elements, or vectors of these, threads go through.
template <typename T>
__device__ __forceinline__ std::int64_t CountOfWhole(const WholeLaunch& launch) {
  return launch.has_vectors ? launch.size / kVectorLength<T> : launch.size;
}

template <typename Functor, typename T>
__device__ __forceinline__ void ReduceWhole(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  const internal::WindowsTask& task = launch.task;
  const WholePart part = WholePartOf(launch, 1);
  const std::int64_t count = CountOfWhole<T>(launch);
  typename Functor::template State<A> state;
  const std::int64_t place = part.batch * task.places.batch + part.channel * task.places.channel;
  const std::int64_t run = launch.run * launch.sharing;
#pragma unroll 1
  for (std::int64_t first = part.member; first < count; first += run) {
    typename Functor::template State<A> of_run;
    ForEachOfWhole<A>(
        launch, part, static_cast<const T*>(task.tensors[0]), task.strides[0], first,
        min(first + run, count),
        [&](A x, std::int64_t i) { Functor::Take(x, place + i, &of_run); });
    Functor::Merge(of_run, &state);
  }
  state = MergeWhole<Functor>(launch, part, state);
  if (part.member != 0 || !part.exists) {
    return;
  }
  const internal::Site<int> site = {part.batch, part.channel, {0, 0, 0}};
  T* to = static_cast<T*>(task.tensors[1]) + internal::OffsetOf(task.strides[1], site);
  *to = Convert<T>(Functor::Value(state, static_cast<A>(launch.size)));
  if constexpr (Functor::kPlaces) {
    if (task.tensors[2] != nullptr) {
      static_cast<std::int64_t*>(task.tensors[2])[internal::OffsetOf(task.strides[2], site)] =
          Functor::Place(state);
    }
  }
}

/// A gather whose windows each give their gradient to one element, which the functor finds
/// (WholeState, Find) in the input and what the forward gave of it.
template <typename Functor, typename T>
__device__ __forceinline__ void PickWhole(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  const internal::WindowsTask& task = launch.task;
  const WholePart part = WholePartOf(launch, 1);
  const std::int64_t count = CountOfWhole<T>(launch);
  const internal::Site<int> site = {part.batch, part.channel, {0, 0, 0}};
  A dy = 0;
  A key = 0;
  if (part.exists) {
    dy = Convert<A>(
        static_cast<const T*>(task.tensors[0])[internal::OffsetOf(task.strides[0], site)]);
    key = Convert<A>(static_cast<const T*>(
        task.tensors[Functor::kKey])[internal::OffsetOf(task.strides[Functor::kKey], site)]);
  }
  typename Functor::WholeState state;
  ForEachOfWhole<A>(
      launch, part, static_cast<const T*>(task.tensors[1]), task.strides[1], part.member, count,
      [&](A x, std::int64_t i) { Functor::Find(x, key, i, &state); });
  state = MergeWhole<Functor>(launch, part, state);
  if (!part.exists) {
    return;
  }
  T* to = static_cast<T*>(task.tensors[Functor::kOutput]) +
          internal::OffsetOf(task.strides[Functor::kOutput], site);
  if (launch.has_vectors) {
    constexpr int kLanes = kVectorLength<T>;
#pragma unroll 2
    for (std::int64_t i = part.member; i < count; i += launch.sharing) {
      T* const elements = to + i * kLanes;
      Vector<T> result = task.accumulate ? LoadVector(elements) : ZeroVector<T>();
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        const A gradient = i * kLanes + lane == state.element ? dy : A{0};
        result.values[lane] =
            Convert<T>(task.accumulate ? gradient + Convert<A>(result.values[lane]) : gradient);
      }
      StoreVector(elements, result);
    }
    return;
  }
  for (std::int64_t i = part.member; i < launch.size; i += launch.sharing) {
    T* element = to + i * launch.output_step;
    const A gradient = i == state.element ? dy : A{0};
    *element = Convert<T>(task.accumulate ? gradient + Convert<A>(*element) : gradient);
  }
}

}  // namespace gradsmith::cuda

#define GRADSMITH_WHOLE_WINDOWS_KERNEL(form, name, suffix, ...)                  \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kWindowsThreads) \
      gradsmith_windows_##form##_##name##_##suffix(                              \
          const __grid_constant__ gradsmith::cuda::WholeLaunch launch) {         \
    gradsmith::cuda::__VA_ARGS__(launch);                                        \
  }

/// Defines the kernels of a reduction (ReduceWhole) or of a gather (PickWhole), by the operator's
/// name, for all floating types.
#define GRADSMITH_WHOLE_WINDOWS_KERNELS(name, function, Functor)              \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, f32, function<Functor, float>)  \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, f64, function<Functor, double>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, f16, function<Functor, __half>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole, name, bf16, function<Functor, __nv_bfloat16>)

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_WINDOWS_CUH_
