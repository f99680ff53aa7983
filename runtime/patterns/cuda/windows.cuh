#ifndef GRADSMITH_PATTERNS_CUDA_WINDOWS_CUH_
#define GRADSMITH_PATTERNS_CUDA_WINDOWS_CUH_

#include <cstdint>

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "patterns/cuda/window_givers.cuh"
#include "patterns/cuda/window_reducer.cuh"
#include "patterns/cuda/window_shares.cuh"
#include "patterns/cuda/windows_launch.h"
#include "patterns/windows_walk.h"

/// The kernels of the pattern `windows` (patterns/windows.h), in C++17.
/// GRADSMITH_REDUCE_WINDOWS_KERNELS(MaxPool, MaxPoolWindow) makes those of an operator from its
/// functor, and GRADSMITH_GATHER_WINDOWS_KERNELS those of a gather.
namespace gradsmith::cuda {

/// How kernels meet memory: neighbours come and go in 16 bytes.
struct WindowsOnDevice {
  using Position = int;
  template <typename T>
  using Accumulates = Accumulator<T>;

  const WindowsLaunch& launch;

  template <typename A, typename T>
  [[nodiscard]] __device__ __forceinline__ A Load(const T* from) const {
    return Convert<A>(*from);
  }
  template <typename T, typename A>
  [[nodiscard]] __device__ __forceinline__ T Round(A value) const {
    return Convert<T>(value);
  }
  template <int kLanes, typename T>
  __device__ __forceinline__ void LoadLanes(const T* from, T (&to)[kLanes]) const {
    constexpr int kAtOnce = kLanes < kVectorLength<T> ? kLanes : kVectorLength<T>;
#pragma unroll
    for (int lane = 0; lane < kLanes; lane += kAtOnce) {
      LoadAtOnce<kAtOnce>(from + lane, to + lane);
    }
  }
  template <int kLanes, typename T>
  __device__ __forceinline__ void StoreLanes(const T (&from)[kLanes], T* to) const {
    constexpr int kAtOnce = kLanes < kVectorLength<T> ? kLanes : kVectorLength<T>;
#pragma unroll
    for (int lane = 0; lane < kLanes; lane += kAtOnce) {
      StoreAtOnce<kAtOnce>(from + lane, to + lane);
    }
  }
  [[nodiscard]] __device__ __forceinline__ int Quotient(int axis, int number) const {
    return static_cast<int>(Divide(static_cast<std::uint32_t>(number), launch.by_stride[axis]));
  }
};

/// The site of a thread: the first of kLanes channels. There may be more of these, and of samples,
/// than an axis has positions.
template <int kLanes>
__device__ __forceinline__ internal::Site<int> SiteOf(
    const WindowsLaunch& launch,
    std::int64_t thread) {
  std::int64_t at[WindowsLaunch::kSizes];
  std::int64_t batch;
  if (launch.is_wide) {
#pragma unroll
    for (int dim = 0; dim < WindowsLaunch::kSizes; ++dim) {
      const Division division = Divide(thread, launch.sizes[dim]);
      at[dim] = division.remainder;
      thread = division.quotient;
    }
    batch = thread;
  } else {
    auto rest = static_cast<std::uint32_t>(thread);
#pragma unroll
    for (int dim = 0; dim < WindowsLaunch::kSizes; ++dim) {
      const std::uint32_t quotient = Divide(rest, launch.by_size[dim]);
      at[dim] = rest - quotient * launch.by_size[dim].divisor;
      rest = quotient;
    }
    batch = rest;
  }
  const auto position = [&](int dim) { return static_cast<int>(at[dim]); };
  if (launch.channels_first) {
    return {batch, at[0] * kLanes, {position(3), position(2), position(1)}};
  }
  return {batch, at[3], {position(2), position(1), position(0)}};
}

__device__ __forceinline__ std::int64_t WindowsThread() {
  return std::int64_t{blockIdx.x} * kWindowsThreads + threadIdx.x;
}

template <typename Functor, typename T, int kLanes>
__device__ __forceinline__ void ReduceWindows(const WindowsLaunch& launch) {
  if (WindowsThread() < launch.count) {
    internal::ReduceWindow<Functor, T, kLanes>(
        launch.task, WindowsOnDevice{launch}, SiteOf<kLanes>(launch, WindowsThread()));
  }
}

template <typename Functor, typename T>
__device__ __forceinline__ void GatherWindows(const WindowsLaunch& launch) {
  if (WindowsThread() < launch.count) {
    internal::GatherWindows<Functor, T>(
        launch.task, WindowsOnDevice{launch}, SiteOf<1>(launch, WindowsThread()));
  }
}

/// So many blocks of a kernel by tiles fit a multiprocessor, by their registers: all the threads
/// that one has before compute capability 8.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kTileBlocks = 4;
#else
inline constexpr int kTileBlocks = 6;
#endif
inline constexpr int kVolumeBlocks = 4;
inline constexpr int kReducingBlocks = 4;

template <typename Functor, typename T, bool kChannels, bool kVolume>
__device__ __forceinline__ void GatherByTiles(const TilesLaunch& launch) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  if constexpr (Functor::kKey >= 0) {
    WindowGivers<Functor, T, kChannels, kVolume>(launch, shared).Run();
  } else {
    WindowShares<Functor, T, kChannels>(launch, shared).Run();
  }
}

template <typename Functor, typename T>
__device__ __forceinline__ void ReduceByTiles(const TilesLaunch& launch) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  WindowReducer<Functor, T>(launch, shared).Run();
}

}  // namespace gradsmith::cuda

#define GRADSMITH_WINDOW_TILES_KERNEL(form, name, suffix, blocks, ...)   \
  extern "C" __global__ void __launch_bounds__(                          \
      gradsmith::cuda::kTileThreads, gradsmith::cuda::blocks)            \
      gradsmith_windows_##form##_##name##_##suffix(                      \
          const __grid_constant__ gradsmith::cuda::TilesLaunch launch) { \
    gradsmith::cuda::__VA_ARGS__(launch);                                \
  }

#define GRADSMITH_WINDOWS_KERNEL(form, name, suffix, ...)                        \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kWindowsThreads) \
      gradsmith_windows_##form##_##name##_##suffix(                              \
          const __grid_constant__ gradsmith::cuda::WindowsLaunch launch) {       \
    gradsmith::cuda::__VA_ARGS__(launch);                                        \
  }

#define GRADSMITH_REDUCE_WINDOWS_KERNELS_OF(name, Functor, suffix, T)                       \
  GRADSMITH_WINDOWS_KERNEL(                                                                 \
      channels, name, suffix, ReduceWindows<Functor, T, gradsmith::cuda::kVectorLength<T>>) \
  GRADSMITH_WINDOWS_KERNEL(elements, name, suffix, ReduceWindows<Functor, T, 1>)

#define GRADSMITH_GATHER_WINDOWS_KERNEL_BY_ELEMENTS(name, Functor, suffix, T) \
  GRADSMITH_WINDOWS_KERNEL(elements, name, suffix, GatherWindows<Functor, T>)

#define GRADSMITH_GATHER_WINDOWS_KERNELS_OF(name, Functor, suffix, T)                       \
  GRADSMITH_WINDOW_TILES_KERNEL(                                                            \
      tiles, name, suffix, kTileBlocks, GatherByTiles<Functor, T, false, false>)            \
  GRADSMITH_WINDOW_TILES_KERNEL(                                                            \
      tiles_of_channels, name, suffix, kTileBlocks, GatherByTiles<Functor, T, true, false>) \
  GRADSMITH_GATHER_WINDOWS_KERNEL_BY_ELEMENTS(name, Functor, suffix, T)

#define GRADSMITH_VOLUME_KERNELS_OF(name, Functor, suffix, T)                       \
  GRADSMITH_WINDOW_TILES_KERNEL(                                                    \
      volumes, name, suffix, kVolumeBlocks, GatherByTiles<Functor, T, false, true>) \
  GRADSMITH_WINDOW_TILES_KERNEL(                                                    \
      volumes_of_channels, name, suffix, kVolumeBlocks, GatherByTiles<Functor, T, true, true>)

/// Define the kernels of an operator, by its name in ops.yaml, for all floating types.
#define GRADSMITH_REDUCE_WINDOWS_KERNELS(name, Functor)           \
  GRADSMITH_REDUCE_WINDOWS_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_REDUCE_WINDOWS_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_REDUCE_WINDOWS_KERNELS_OF(name, Functor, f16, __half) \
  GRADSMITH_REDUCE_WINDOWS_KERNELS_OF(name, Functor, bf16, __nv_bfloat16)
#define GRADSMITH_GATHER_WINDOWS_KERNELS(name, Functor)           \
  GRADSMITH_GATHER_WINDOWS_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_GATHER_WINDOWS_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_GATHER_WINDOWS_KERNELS_OF(name, Functor, f16, __half) \
  GRADSMITH_GATHER_WINDOWS_KERNELS_OF(name, Functor, bf16, __nv_bfloat16)

/// Defines those by tiles of a reduction, whose functor also takes the elements of windows in order
/// (Begin, TakeNext).
#define GRADSMITH_REDUCED_TILES_KERNEL(name, Functor, suffix, T) \
  GRADSMITH_WINDOW_TILES_KERNEL(tiles, name, suffix, kReducingBlocks, ReduceByTiles<Functor, T>)
#define GRADSMITH_REDUCED_TILES_KERNELS(name, Functor)       \
  GRADSMITH_REDUCED_TILES_KERNEL(name, Functor, f32, float)  \
  GRADSMITH_REDUCED_TILES_KERNEL(name, Functor, f64, double) \
  GRADSMITH_REDUCED_TILES_KERNEL(name, Functor, f16, __half) \
  GRADSMITH_REDUCED_TILES_KERNEL(name, Functor, bf16, __nv_bfloat16)

/// Defines those by tiles of volumes, of a gather whose windows each give to one element.
#define GRADSMITH_VOLUME_KERNELS(name, Functor)           \
  GRADSMITH_VOLUME_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_VOLUME_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_VOLUME_KERNELS_OF(name, Functor, f16, __half) \
  GRADSMITH_VOLUME_KERNELS_OF(name, Functor, bf16, __nv_bfloat16)

/// Defines those of a gather whose windows give something else than kernels by tiles know of.
#define GRADSMITH_GATHER_WINDOWS_KERNELS_BY_ELEMENTS(name, Functor)       \
  GRADSMITH_GATHER_WINDOWS_KERNEL_BY_ELEMENTS(name, Functor, f32, float)  \
  GRADSMITH_GATHER_WINDOWS_KERNEL_BY_ELEMENTS(name, Functor, f64, double) \
  GRADSMITH_GATHER_WINDOWS_KERNEL_BY_ELEMENTS(name, Functor, f16, __half) \
  GRADSMITH_GATHER_WINDOWS_KERNEL_BY_ELEMENTS(name, Functor, bf16, __nv_bfloat16)

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOWS_CUH_
