#include "cuda/kernels/element_vector.cuh"

// Sums, fills and random values, element by element.
namespace gradsmith::cuda {
namespace {

template <typename T>
__device__ __forceinline__ T Sum(T a, T b) {
  using A = Accumulator<T>;
  return Convert<T>(Convert<A>(a) + Convert<A>(b));
}

template <typename T>
__device__ __forceinline__ void Add(const T* from, T* to, const PairGrid& grid) {
  ForEachBatch(grid.count, [&](const auto& indices, const auto& valid) {
    T sums[kElementBatch];
    std::int64_t to_offsets[kElementBatch];
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const Offsets offsets = OffsetsAt(grid, indices[i]);
        to_offsets[i] = offsets.to;
        sums[i] = Sum(to[offsets.to], from[offsets.from]);
      }
    }
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        to[to_offsets[i]] = sums[i];
      }
    }
  });
}

/// Calls visit(begin) for the vectors of a dense tensor, then tail(index) for the elements after
/// the last whole one.
template <typename T, typename Visitor, typename Tail>
__device__ __forceinline__ void
ForEachVector(std::int64_t count, const Visitor& visit, const Tail& tail) {
  const std::int64_t vectors = count / kVectorLength<T>;
  const std::int64_t step = static_cast<std::int64_t>(kElementThreads) * gridDim.x;
  const std::int64_t thread =
      static_cast<std::int64_t>(kElementThreads) * blockIdx.x + threadIdx.x;
#pragma unroll 2
  for (std::int64_t i = thread; i < vectors; i += step) {
    visit(i * kVectorLength<T>);
  }
  if (thread < count % kVectorLength<T>) {
    tail(vectors * kVectorLength<T> + thread);
  }
}

/// Both are dense and aligned to 16 bytes.
template <typename T>
__device__ __forceinline__ void AddDense(const T* from, T* to, std::int64_t count) {
  ForEachVector<T>(
      count,
      [&](std::int64_t begin) {
        const Vector<T> terms = LoadVector(from + begin);
        Vector<T> sums = LoadVector(to + begin);
#pragma unroll
        for (int i = 0; i < kVectorLength<T>; ++i) {
          sums.values[i] = Sum(sums.values[i], terms.values[i]);
        }
        StoreVector(to + begin, sums);
      },
      [&](std::int64_t i) { to[i] = Sum(to[i], from[i]); });
}

/// `y` is dense and aligned to 16 bytes.
template <typename T>
__device__ __forceinline__ void AddBias(const T* bias, T* y, const ChannelBiasTask& task) {
  ForEachVector<T>(
      task.count,
      [&](std::int64_t begin) {
        Vector<T> sums = LoadVector(y + begin);
        const Division position = Divide(begin, task.inner);
        std::int64_t inner = position.remainder;
        std::int64_t channel = Divide(position.quotient, task.channels).remainder;
        T term = bias[channel * task.bias_stride];
#pragma unroll
        for (int i = 0; i < kVectorLength<T>; ++i) {
          if (inner == task.inner) {
            inner = 0;
            channel = channel + 1 == task.channels ? 0 : channel + 1;
            term = bias[channel * task.bias_stride];
          }
          sums.values[i] = Sum(sums.values[i], term);
          ++inner;
        }
        StoreVector(y + begin, sums);
      },
      [&](std::int64_t i) {
        const std::int64_t channel = Divide(Divide(i, task.inner).quotient, task.channels).remainder;
        y[i] = Sum(y[i], bias[channel * task.bias_stride]);
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

template <typename T>
__device__ __forceinline__ void FillRandom(T* to, std::int64_t count, std::uint64_t seed) {
  ForEachBatch(count, [&](const auto& indices, const auto& valid) {
#pragma unroll
    for (int i = 0; i < kElementBatch; ++i) {
      if (valid[i]) {
        const std::uint64_t hash = Hash(seed, static_cast<std::uint64_t>(indices[i]));
        const int steps = static_cast<int>(hash >> 57U) - 64;
        to[indices[i]] = Convert<T>(static_cast<float>(steps) / 64);
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
  GRADSMITH_KERNEL(add_##name)(const T* from, T* to, const gradsmith::cuda::PairGrid grid) {   \
    gradsmith::cuda::Add(from, to, grid);                                                      \
  }                                                                                            \
  GRADSMITH_KERNEL(add_dense_##name)(const T* from, T* to, const std::int64_t count) {         \
    gradsmith::cuda::AddDense(from, to, count);                                                \
  }                                                                                            \
  GRADSMITH_KERNEL(add_bias_##name)(                                                           \
      const T* bias, T* y, const gradsmith::cuda::ChannelBiasTask task) {                      \
    gradsmith::cuda::AddBias(bias, y, task);                                                   \
  }                                                                                            \
  GRADSMITH_KERNEL(fill_random_##name)(                                                        \
      T* to, const std::int64_t count, const std::uint64_t seed) {                             \
    gradsmith::cuda::FillRandom(to, count, seed);                                              \
  }

GRADSMITH_FOR_ELEMENT_TYPES(GRADSMITH_ELEMENTWISE)
