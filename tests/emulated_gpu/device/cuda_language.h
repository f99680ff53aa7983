#ifndef GRADSMITH_TESTS_EMULATED_GPU_DEVICE_CUDA_LANGUAGE_H_
#define GRADSMITH_TESTS_EMULATED_GPU_DEVICE_CUDA_LANGUAGE_H_

// Included before a file of kernels: what nvcc knows of itself, as far as our kernels use it.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "emulated_gpu/block.h"

#undef __device__
#undef __forceinline__
#undef __global__
#undef __grid_constant__
#undef __launch_bounds__
#undef __noinline__
#undef __shared__

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): they are CUDA's
#define __constant__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
// Empty, as libstdc++ writes __attribute__((__noinline__)).
#define __noinline__
// There is one block at a time.
#define __shared__ static
// list_kernels.py looks for them in what the preprocessor makes.
#ifdef EMULATED_GPU_LISTS_KERNELS
#define __global__ emulated_gpu_kernel
#define __launch_bounds__(...) emulated_gpu_bounds(__VA_ARGS__)
#else
#define __global__
#define __launch_bounds__(...)
#endif

#define threadIdx (::emulated_gpu::indices.thread)
#define blockIdx (::emulated_gpu::indices.block)
#define blockDim (::emulated_gpu::indices.block_size)
#define gridDim (::emulated_gpu::indices.grid_size)

using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;

inline void __syncthreads() {
  emulated_gpu::SyncThreads();
}

inline int __syncthreads_or(int predicate) {
  __shared__ int any;
  emulated_gpu::SyncThreads();
  any = 0;
  emulated_gpu::SyncThreads();
  any = predicate != 0 ? 1 : any;
  emulated_gpu::SyncThreads();
  return any;
}

template <typename T>
T __shfl_sync(unsigned lanes, T value, int lane) {
  const auto& all = emulated_gpu::Exchange(lanes, value);
  return emulated_gpu::Given<T>(all, static_cast<unsigned>(lane) % emulated_gpu::kWarp);
}

template <typename T>
T __shfl_down_sync(unsigned lanes, T value, unsigned distance, int width = 32) {
  const auto& all = emulated_gpu::Exchange(lanes, value);
  const unsigned lane = threadIdx.x % 32;
  const bool exists = lane % static_cast<unsigned>(width) + distance < static_cast<unsigned>(width);
  return emulated_gpu::Given<T>(all, exists ? lane + distance : lane);
}

template <typename T>
T __shfl_xor_sync(unsigned lanes, T value, int mask) {
  const auto& all = emulated_gpu::Exchange(lanes, value);
  return emulated_gpu::Given<T>(all, (threadIdx.x % 32) ^ static_cast<unsigned>(mask));
}

inline unsigned __ballot_sync(unsigned lanes, bool predicate) {
  const auto& all = emulated_gpu::Exchange(lanes, predicate);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < emulated_gpu::kWarp; ++lane) {
    if ((lanes >> lane & 1U) != 0 && emulated_gpu::Given<bool>(all, lane)) {
      votes |= 1U << lane;
    }
  }
  return votes;
}

// Streams of several threads of the host may meet.
template <typename T>
T atomicAdd(T* to, T value) {
  return std::atomic_ref<T>(*to).fetch_add(value);
}

template <typename T>
T atomicMax(T* to, T value) {
  std::atomic_ref<T> shared(*to);
  T before = shared.load();
  while (before < value && !shared.compare_exchange_weak(before, value)) {
  }
  return before;
}

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32U);
}

inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}

inline unsigned __float_as_uint(float value) {
  return std::bit_cast<unsigned>(value);
}

inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}

inline long long __double_as_longlong(double value) {
  return std::bit_cast<long long>(value);
}

inline int __double2hiint(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 32U);
}

inline int __double2loint(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value));
}

inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(
      (std::uint64_t{static_cast<unsigned>(high)} << 32U) | static_cast<unsigned>(low));
}

template <typename T>
void __stwb(T* to, T value) {
  *to = value;
}

template <typename T>
void __stcs(T* to, T value) {
  *to = value;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#endif  // GRADSMITH_TESTS_EMULATED_GPU_DEVICE_CUDA_LANGUAGE_H_
