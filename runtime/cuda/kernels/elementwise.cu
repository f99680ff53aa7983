#include "cuda/kernels/element_vector.cuh"

// Fills and random values, element by element.
namespace gradsmith::cuda {
namespace {

template <typename T>
__device__ __forceinline__ void Fill(T value, T* to, const PairGrid& grid) {
  ForEachBatch(grid.count, [&](const auto& indices, const auto& valid) {
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        to[OffsetsAt(grid, indices[i]).to] = value;
      }
    }
  });
}

/// SplitMix64 of Steele, Lea and Flood, at any place of its sequence.
__device__ __forceinline__ std::uint64_t Hash(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t mixed = seed * 0xD1342543DE82EF95U + (index + 1) * 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31U);
}

/// A number in [-1, 1) with all the bits that float and double have; half and bf16 get multiples of
/// 1/64, so that products and sums of some of them are exact.
template <typename T>
__device__ __forceinline__ T Uniform(std::uint64_t hash) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<double>(hash >> 11U) * 0x1.0p-52 - 1;
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<float>(hash >> 40U) * 0x1.0p-23F - 1;
  } else {
    return Convert<T>(static_cast<float>(static_cast<int>(hash >> 57U) - 64) / 64);
  }
}

template <typename T>
__device__ __forceinline__ void FillRandom(T* to, std::int64_t count, std::uint64_t seed) {
  ForEachBatch(count, [&](const auto& indices, const auto& valid) {
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        to[indices[i]] = Uniform<T>(Hash(seed, static_cast<std::uint64_t>(indices[i])));
      }
    }
  });
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_KERNEL(name) \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads) gradsmith_##name

#define GRADSMITH_FILL(size, T)                                                            \
  GRADSMITH_KERNEL(fill_##size)(const T value, T* to, const gradsmith::cuda::PairGrid grid) { \
    gradsmith::cuda::Fill(value, to, grid);                                                \
  }

GRADSMITH_FILL(2, std::uint16_t)
GRADSMITH_FILL(4, std::uint32_t)
GRADSMITH_FILL(8, std::uint64_t)
GRADSMITH_FILL(16, uint4)

#define GRADSMITH_ELEMENTWISE(name, T)                                                         \
  GRADSMITH_KERNEL(fill_random_##name)(                                                        \
      T* to, const std::int64_t count, const std::uint64_t seed) {                             \
    gradsmith::cuda::FillRandom(to, count, seed);                                              \
  }

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_ELEMENTWISE)
