#include "cuda/kernels/element_vector.cuh"

// Sums, fills and random values, element by element.
namespace gradsmith::cuda {
namespace {

template <typename T>
__device__ __forceinline__ void Add(const void* from, int from_type, T* to, const PairGrid& grid) {
  using A = Accumulator<T>;
  ForEachBatch(grid.count, [&](const auto& indices, const auto& valid) {
    A sums[kElementBatch];
    std::int64_t to_offsets[kElementBatch];
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const Offsets offsets = OffsetsAt(grid, indices[i]);
        to_offsets[i] = offsets.to;
        sums[i] = Convert<A>(to[offsets.to]) + LoadElement<A>(from, from_type, offsets.from);
      }
    }
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        to[to_offsets[i]] = Convert<T>(sums[i]);
      }
    }
  });
}

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

/// A number in [-1, 1) with all the bits that double, or float, has.
template <typename T>
__device__ __forceinline__ Accumulator<T> Uniform(std::uint64_t hash) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<double>(hash >> 11U) * 0x1.0p-52 - 1;
  } else {
    return static_cast<float>(hash >> 40U) * 0x1.0p-23F - 1;
  }
}

template <typename T>
__device__ __forceinline__ void
FillRandom(
    T* to,
    std::int64_t count,
    std::uint64_t seed,
    double center,
    double radius,
    double levels) {
  const auto middle = static_cast<Accumulator<T>>(center);
  const auto factor = static_cast<Accumulator<T>>(radius);
  const auto steps = static_cast<Accumulator<T>>(levels);
  ForEachBatch(count, [&](const auto& indices, const auto& valid) {
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const std::uint64_t hash = Hash(seed, static_cast<std::uint64_t>(indices[i]));
        const Accumulator<T> part = Uniform<T>(hash);
        to[indices[i]] =
            Convert<T>(middle + factor * (steps == 0 ? part : floor(part * steps) / steps));
      }
    }
  });
}

}  // namespace
}  // namespace gradsmith::cuda

#define GRADSMITH_KERNEL(name) \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kElementThreads) gradsmith_##name

#define GRADSMITH_FILL(size, T)                                                               \
  GRADSMITH_KERNEL(fill_##size)(const T value, T* to, const gradsmith::cuda::PairGrid grid) { \
    gradsmith::cuda::Fill(value, to, grid);                                                   \
  }

GRADSMITH_FILL(2, std::uint16_t)
GRADSMITH_FILL(4, std::uint32_t)
GRADSMITH_FILL(8, std::uint64_t)
GRADSMITH_FILL(16, uint4)

#define GRADSMITH_ELEMENTWISE(name, T)                                                   \
  GRADSMITH_KERNEL(add_##name)                                                           \
  (const void* from, const int from_type, T* to, const gradsmith::cuda::PairGrid grid) { \
    gradsmith::cuda::Add(from, from_type, to, grid);                                     \
  }                                                                                      \
  GRADSMITH_KERNEL(fill_random_##name)                                                   \
  (T * to, const std::int64_t count, const std::uint64_t seed, const double center,      \
   const double radius, const double levels) {                                           \
    gradsmith::cuda::FillRandom(to, count, seed, center, radius, levels);                \
  }

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_ELEMENTWISE)
