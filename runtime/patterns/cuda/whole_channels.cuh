#ifndef GRADSMITH_PATTERNS_CUDA_WHOLE_CHANNELS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WHOLE_CHANNELS_CUH_

#include <cstdint>

#include "patterns/cuda/whole_windows.cuh"

/// The form `whole_channels` of the kernels of the pattern `windows`: one window holds all of a
/// channel, and channels are neighbours in memory. Threads have vectors of these.
namespace gradsmith::cuda {

/// Merges the states of all threads that share channels: those of the first one become the result.
template <typename Functor, int kLanes, typename State>
__device__ __forceinline__ void
MergeLanes(const WholeLaunch& launch, const WholePart& part, State (&states)[kLanes]) {
  __shared__ double memory[kWindowsThreads * kLanes * sizeof(State) / sizeof(double)];
  State* const kept = reinterpret_cast<State*>(memory) + threadIdx.x;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    kept[lane * kWindowsThreads] = states[lane];
  }
#pragma unroll 1
  for (int half = launch.sharing / 2; half > 0; half /= 2) {
    __syncthreads();
    if (part.member < half) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        State* const own = kept + lane * kWindowsThreads;
        Functor::Merge(own[half * part.next], &states[lane]);
        *own = states[lane];
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    states[lane] = kept[lane * kWindowsThreads - part.member * part.next];
  }
}

/// Calls visit(vector, index) with a thread's elements of its channels, as ForEachOfWhole does.
template <typename T, typename Visit>
__device__ __forceinline__ void ForEachOfChannels(
    const WholeLaunch& launch,
    const WholePart& part,
    const T* input,
    const internal::PerDim<std::int64_t>& strides,
    int begin,
    int end,
    const Visit& visit) {
  if (!part.exists) {
    return;
  }
  const T* from = input + part.batch * strides.batch + part.channel;
#pragma unroll 4
  for (int i = begin; i < end; i += launch.sharing) {
    visit(LoadVector(from + i * launch.step), i);
  }
}

template <typename Functor, typename T>
__device__ __forceinline__ void ReduceChannels(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  using State = typename Functor::template State<A, int>;
  constexpr int kLanes = kVectorLength<T>;
  const internal::WindowsTask& task = launch.task;
  const WholePart part = WholePartOf(launch, kLanes);
  const int size = static_cast<int>(launch.size);
  State states[kLanes];
  const std::int64_t run = launch.run * launch.sharing;
#pragma unroll 1
  for (std::int64_t first = part.member; first < size; first += run) {
    const int begin = static_cast<int>(first);
    State of_run[kLanes];
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      Functor::Begin(begin, &of_run[lane]);
    }
    ForEachOfChannels(
        launch, part, static_cast<const T*>(task.tensors[0]), task.strides[0], begin,
        static_cast<int>(min(first + run, launch.size)), [&](const Vector<T>& vector, int i) {
#pragma unroll
          for (int lane = 0; lane < kLanes; ++lane) {
            Functor::TakeNext(Convert<A>(vector.values[lane]), i, &of_run[lane]);
          }
        });
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      Functor::Merge(of_run[lane], &states[lane]);
    }
  }
  MergeLanes<Functor>(launch, part, states);
  if (part.member != 0 || !part.exists) {
    return;
  }
  const internal::Site<int> site = {part.batch, part.channel, {0, 0, 0}};
  Vector<T> result;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    result.values[lane] = Convert<T>(Functor::Value(states[lane], static_cast<A>(size)));
  }
  StoreVector(static_cast<T*>(task.tensors[1]) + internal::OffsetOf(task.strides[1], site), result);
  if constexpr (Functor::kPlaces) {
    if (task.tensors[2] != nullptr) {
      auto* const to =
          static_cast<std::int64_t*>(task.tensors[2]) + internal::OffsetOf(task.strides[2], site);
      const std::int64_t place =
          part.batch * task.places.batch + part.channel * task.places.channel;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        to[lane] = place + lane * task.places.channel + states[lane].place;
      }
    }
  }
}

/// As PickWhole does.
template <typename Functor, typename T>
__device__ __forceinline__ void PickChannels(const WholeLaunch& launch) {
  using A = Accumulator<T>;
  constexpr int kLanes = kVectorLength<T>;
  const internal::WindowsTask& task = launch.task;
  const WholePart part = WholePartOf(launch, kLanes);
  const internal::Site<int> site = {part.batch, part.channel, {0, 0, 0}};
  const int size = static_cast<int>(launch.size);
  Vector<T> given = ZeroVector<T>();
  Vector<T> keys = given;
  if (part.exists) {
    given = LoadVector(
        static_cast<const T*>(task.tensors[0]) + internal::OffsetOf(task.strides[0], site));
    keys = LoadVector(
        static_cast<const T*>(task.tensors[Functor::kKey]) +
        internal::OffsetOf(task.strides[Functor::kKey], site));
  }
  typename Functor::WholeState states[kLanes];
  ForEachOfChannels(
      launch, part, static_cast<const T*>(task.tensors[1]), task.strides[1], part.member, size,
      [&](const Vector<T>& vector, int i) {
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          Functor::Find(
              Convert<A>(vector.values[lane]), Convert<A>(keys.values[lane]), i, &states[lane]);
        }
      });
  MergeLanes<Functor>(launch, part, states);
  if (!part.exists) {
    return;
  }
  T* const to = static_cast<T*>(task.tensors[Functor::kOutput]) +
                internal::OffsetOf(task.strides[Functor::kOutput], site);
#pragma unroll 1
  for (int i = part.member; i < size; i += launch.sharing) {
    T* const elements = to + i * launch.output_step;
    Vector<T> result = task.accumulate ? LoadVector(elements) : ZeroVector<T>();
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      const A gradient = i == states[lane].element ? A{0} + Convert<A>(given.values[lane]) : A{0};
      result.values[lane] =
          Convert<T>(task.accumulate ? gradient + Convert<A>(result.values[lane]) : gradient);
    }
    StoreVector(elements, result);
  }
}

}  // namespace gradsmith::cuda

/// Defines the kernels of a reduction (ReduceChannels) or of a gather (PickChannels), by the
/// operator's name, for all floating types.
#define GRADSMITH_WHOLE_CHANNELS_KERNELS(name, function, Functor)                      \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, f32, function<Functor, float>)  \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, f64, function<Functor, double>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, f16, function<Functor, __half>) \
  GRADSMITH_WHOLE_WINDOWS_KERNEL(whole_channels, name, bf16, function<Functor, __nv_bfloat16>)

#endif  // GRADSMITH_PATTERNS_CUDA_WHOLE_CHANNELS_CUH_
