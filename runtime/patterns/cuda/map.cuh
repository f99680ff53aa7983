#ifndef GRADSMITH_PATTERNS_CUDA_MAP_CUH_
#define GRADSMITH_PATTERNS_CUDA_MAP_CUH_

#include <cstdint>

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/short_float.cuh"
#include "patterns/cuda/map_launch.h"
#include "patterns/functor.h"
#include "patterns/map_task.h"

/// The kernels of the pattern `map` (patterns/map.h), in C++17. GRADSMITH_MAP_KERNELS(SigmoidGrad,
/// SigmoidGradFormula) makes those of an operator from its functor.
namespace gradsmith::cuda {

using internal::DenseMapTask;
using internal::MapTask;

template <typename Functor>
inline constexpr int kMapTensors = Functor::kInputs + Functor::kOutputs;

/// Adds how far the element of the dims from `begin` to `end`, last dim fastest, is into each
/// tensor.
template <int kTensors>
__device__ __forceinline__ void AddMapOffsets(
    const MapTask& task,
    int begin,
    int end,
    std::int64_t element,
    std::int64_t (&offsets)[kTensors]) {
  // Unrolled, the divisions would be most of each kernel.
#pragma unroll 1
  for (int axis = end - 1; axis >= begin; --axis) {
    std::int64_t position = element;
    if (axis > begin) {
      const Division division = Divide(element, task.dims[axis]);
      position = division.remainder;
      element = division.quotient;
    }
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      offsets[t] += position * task.strides[t][axis];
    }
  }
}

/// How far an element is into each tensor.
template <int kTensors>
__device__ __forceinline__ void
MapOffsets(const MapTask& task, std::int64_t element, std::int64_t (&offsets)[kTensors]) {
#pragma unroll
  for (int t = 0; t < kTensors; ++t) {
    offsets[t] = 0;
  }
  AddMapOffsets(task, 0, task.rank, element, offsets);
}

/// How far the element of the dims before `end`, last dim fastest, is into a tensor.
__device__ __forceinline__ std::int64_t
OffsetOf(const MapTask& task, int tensor, int end, std::int64_t element) {
  std::int64_t offset = 0;
#pragma unroll 1
  for (int axis = end - 1; axis >= 0; --axis) {
    std::int64_t position = element;
    if (axis > 0) {
      const Division division = Divide(element, task.dims[axis]);
      position = division.remainder;
      element = division.quotient;
    }
    offset += position * task.strides[tensor][axis];
  }
  return offset;
}

template <int kTensors>
__device__ __forceinline__ void
MapOffsets(const DenseMapTask& /*task*/, std::int64_t element, std::int64_t (&offsets)[kTensors]) {
#pragma unroll
  for (int t = 0; t < kTensors; ++t) {
    offsets[t] = element;
  }
}

/// The stride of a tensor along the last dim.
__device__ __forceinline__ std::int64_t MapStep(const MapTask& task, int tensor) {
  return task.rank == 0 ? 0 : task.strides[tensor][task.rank - 1];
}

__device__ __forceinline__ std::int64_t MapStep(const DenseMapTask& /*task*/, int /*tensor*/) {
  return 1;
}

/// Loads kVector elements of the last dim, which are one where `step` is zero.
template <typename T, int kVector>
__device__ __forceinline__ void LoadMapped(const T* from, std::int64_t step, T (&to)[kVector]) {
  if (kVector == 1 || step != 0) {
    LoadAtOnce<kVector>(from, to);
  } else {
    const T value = *from;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      to[v] = value;
    }
  }
}

/// How far the words of an input of bits lie apart.
__device__ __forceinline__ std::int64_t WordStep(const MapTask& task) {
  return task.word_step;
}
__device__ __forceinline__ std::int64_t WordStep(const DenseMapTask& /*task*/) {
  return 1;
}

/// A truth value in the place of an element, and the number that it is.
template <typename T>
__device__ __forceinline__ T ElementOfTruth(bool is_true) {
  if constexpr (kIsShortFloat<T>) {
    return {static_cast<std::uint16_t>(is_true)};
  } else {
    return Convert<T>(Accumulator<T>(is_true));
  }
}
template <typename T>
__device__ __forceinline__ Accumulator<T> NumberOfTruth(const T& element) {
  if constexpr (kIsShortFloat<T>) {
    return element.bits;
  } else {
    return Convert<Accumulator<T>>(element);
  }
}

/// Loads the bits of kVector elements, which are in one word: a vector begins at a multiple of its
/// length.
template <typename T, int kVector>
__device__ __forceinline__ void LoadBits(
    const unsigned* words,
    std::int64_t word_step,
    std::int64_t bit,
    std::int64_t step,
    T (&to)[kVector]) {
  static_assert(kBitsOfWord % kVector == 0);
  const auto place = static_cast<std::uint64_t>(bit);  // whose division by 32 is a shift
  const unsigned word = words[place / kBitsOfWord * word_step] >> (place % kBitsOfWord);
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    to[v] = ElementOfTruth<T>((word >> (step == 0 ? 0 : v) & 1U) != 0);
  }
}

/// Loads what input t has for kVector elements of the last dim, of a tensor, a mask or bits; 0
/// where it is absent.
template <typename Functor, typename T, int kVector>
__device__ __forceinline__ void LoadInput(
    int t,
    const void* tensor,
    std::int64_t offset,
    std::int64_t step,
    T (&to)[kVector],
    std::int64_t word_step = 1) {
  if (IsOptional<Functor>(t) && tensor == nullptr) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      to[v] = T{};
    }
  } else if (IsOfBits<Functor>(t)) {
    LoadBits<T, kVector>(static_cast<const unsigned*>(tensor), word_step, offset, step, to);
  } else if (IsMask<Functor>(t)) {
    unsigned char mask[kVector];
    LoadMapped<unsigned char, kVector>(
        static_cast<const unsigned char*>(tensor) + offset, step, mask);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      to[v] = ElementOfTruth<T>(mask[v] != 0);
    }
  } else {
    LoadMapped<T, kVector>(static_cast<const T*>(tensor) + offset, step, to);
  }
}

template <typename A, typename Task>
__device__ __forceinline__ void LoadScalars(
    const Task& task,
    A (&scalars)[internal::kMaxMapScalars]) {
#pragma unroll
  for (int i = 0; i < internal::kMaxMapScalars; ++i) {
    scalars[i] = static_cast<A>(task.scalars[i]);
  }
}

/// The sums of a pass that has none.
struct NoSums {
  template <typename Results>
  __device__ __forceinline__ void Add(const Results& /*results*/) {}
};

/// Stores the outputs of a vector that the task stores; `sums` is given all of them.
template <typename Functor, typename T, int kVector, typename Task, typename Sums>
__device__ __forceinline__ void MapVector(
    const Task& task,
    const std::int64_t (&offsets)[kMapTensors<Functor>],
    const T (&in)[Functor::kInputs][kVector],
    const Accumulator<T> (&scalars)[internal::kMaxMapScalars],
    Sums& sums) {
  using A = Accumulator<T>;
  T out[Functor::kOutputs][kVector];
#pragma unroll
  for (int o = 0; o < Functor::kOutputs; ++o) {
    if ((task.accumulate & task.stores) >> o & 1U) {
      const int t = Functor::kInputs + o;
      LoadAtOnce<kVector>(static_cast<const T*>(task.tensors[t]) + offsets[t], out[o]);
    }
  }
  A values[kVector][Functor::kInputs];
  A results[kVector][Functor::kOutputs];
  WithFormat<T>(task.is_bf16, [&](auto element) {
    using E = decltype(element);
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
#pragma unroll
      for (int t = 0; t < Functor::kInputs; ++t) {
        const bool is_truth = IsMask<Functor>(t) || IsOfBits<Functor>(t);
        values[v][t] = is_truth ? NumberOfTruth(in[t][v]) : Convert<A>(BitsAs<E>(in[t][v]));
      }
    }
  });
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    Functor::Map(values[v], results[v], scalars);
  }
  sums.Add(results);
  WithFormat<T>(task.is_bf16, [&](auto element) {
    using E = decltype(element);
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      if ((task.accumulate & task.stores) >> o & 1U) {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          results[v][o] += Convert<A>(BitsAs<E>(out[o][v]));
        }
      }
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        out[o][v] = BitsAs<T>(Convert<E>(results[v][o]));
      }
    }
  });
#pragma unroll
  for (int o = 0; o < Functor::kOutputs; ++o) {
    if (task.stores >> o & 1U) {
      const int t = Functor::kInputs + o;
      StoreAtOnce<kVector>(out[o], static_cast<T*>(task.tensors[t]) + offsets[t]);
    }
  }
}

/// Maps the elements behind the last whole vector, one to a thread.
template <typename Functor, typename T, int kVector, bool kHasRows = false, typename Task>
__device__ __forceinline__ void MapBehind(
    const Task& task,
    const Accumulator<T> (&scalars)[internal::kMaxMapScalars]) {
  static_assert(kVector <= 32);  // the threads of a block, at least
  const std::int64_t element = task.count / kVector * kVector + threadIdx.x;
  if (kVector == 1 || blockIdx.x != gridDim.x - 1 || element >= task.count) {
    return;
  }
  std::int64_t offsets[kMapTensors<Functor>];
  T in[Functor::kInputs][1];
  if constexpr (kHasRows) {
    MapOffsets(task, element, offsets);
  } else {
#pragma unroll
    for (int t = 0; t < kMapTensors<Functor>; ++t) {
      offsets[t] = element * MapStep(task, t);
    }
  }
#pragma unroll
  for (int t = 0; t < Functor::kInputs; ++t) {
    LoadInput<Functor, T, 1>(t, task.tensors[t], offsets[t], 1, in[t], WordStep(task));
  }
  NoSums no_sums;
  MapVector<Functor, T, 1>(task, offsets, in, scalars, no_sums);
}

/// Maps dense tensors: a thread has one vector.
template <typename Functor, typename T, int kVector>
__device__ __forceinline__ void Map(const DenseMapTask& task) {
  Accumulator<T> scalars[internal::kMaxMapScalars];
  LoadScalars(task, scalars);
  const std::int64_t vector = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (vector < task.count / kVector) {
    std::int64_t offsets[kMapTensors<Functor>];
    T in[Functor::kInputs][kVector];
    MapOffsets(task, vector * kVector, offsets);
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      LoadInput<Functor, T, kVector>(t, task.tensors[t], offsets[t], 1, in[t], WordStep(task));
    }
    NoSums no_sums;
    MapVector<Functor, T, kVector>(task, offsets, in, scalars, no_sums);
  }
  MapBehind<Functor, T, kVector>(task, scalars);
}

/// Maps tensors of any strides: a thread has one vector, or element.
template <typename Functor, typename T, int kVector>
__device__ __forceinline__ void Map(const MapTask& task) {
  Accumulator<T> scalars[internal::kMaxMapScalars];
  LoadScalars(task, scalars);
  const std::int64_t vector = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (vector < task.count / kVector) {
    std::int64_t offsets[kMapTensors<Functor>];
    T in[Functor::kInputs][kVector];
    MapOffsets(task, vector * kVector, offsets);
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      LoadInput<Functor, T, kVector>(
          t, task.tensors[t], offsets[t], MapStep(task, t), in[t], WordStep(task));
    }
    NoSums no_sums;
    MapVector<Functor, T, kVector>(task, offsets, in, scalars, no_sums);
  }
  MapBehind<Functor, T, kVector>(task, scalars);
}

/// A vector of the index space that may begin in a row along the last dim and end in the next.
/// Rows are no shorter than a vector.
template <typename Functor, typename T, int kVector>
struct VectorOfRows {
  std::int64_t offsets[kMapTensors<Functor>];
  T in[Functor::kInputs][kVector];

  __device__ __forceinline__ void Load(const MapTask& task, std::int64_t element) {
    const int last = task.rank - 1;
    const Division division = Divide(element, task.dims[last]);
    const std::int64_t left = task.dims[last] - division.remainder;
#pragma unroll
    for (int t = 0; t < kMapTensors<Functor>; ++t) {
      offsets[t] = division.remainder * task.strides[t][last];
    }
    AddMapOffsets(task, 0, last, division.quotient, offsets);
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      if (task.in_vectors >> t & 1U) {
        LoadInput<Functor, T, kVector>(t, task.tensors[t], offsets[t], 1, in[t], task.word_step);
      } else {
        LoadSpread(task, t, left, division.quotient + 1);
      }
    }
  }

 private:
  /// Loads an input that is broadcast along some dim, whose elements lie as those of the row do:
  /// `left` of this row, and then those of the next.
  __device__ __forceinline__ void
  LoadSpread(const MapTask& task, int t, std::int64_t left, std::int64_t next_row) {
    const std::int64_t step = MapStep(task, t);
    if (left >= kVector && step == 0) {
      LoadInput<Functor, T, kVector>(t, task.tensors[t], offsets[t], 0, in[t]);
      return;
    }
    const std::int64_t next = left < kVector ? OffsetOf(task, t, task.rank - 1, next_row) : 0;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      T one[1];
      const std::int64_t offset = v < left ? offsets[t] + v * step : next + (v - left) * step;
      LoadInput<Functor, T, 1>(t, task.tensors[t], offset, 1, one);
      in[t][v] = one[0];
    }
  }
};

/// Maps dense outputs, and inputs that are dense or broadcast along some dim, whose rows are no
/// whole vectors.
template <typename Functor, typename T, int kVector>
__device__ __forceinline__ void MapOddRows(const MapTask& task) {
  Accumulator<T> scalars[internal::kMaxMapScalars];
  LoadScalars(task, scalars);
  const std::int64_t number = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (number < task.count / kVector) {
    VectorOfRows<Functor, T, kVector> vector;
    vector.Load(task, number * kVector);
    NoSums no_sums;
    MapVector<Functor, T, kVector>(task, vector.offsets, vector.in, scalars, no_sums);
  }
  MapBehind<Functor, T, kVector, /*kHasRows=*/true>(task, scalars);
}

}  // namespace gradsmith::cuda

#define GRADSMITH_MAP_KERNEL(form, Map, Task, kVector, name, Functor, suffix, T) \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMostMapThreads) \
      gradsmith_map_##form##_##name##_##suffix(                                  \
          const __grid_constant__ gradsmith::cuda::Task task) {                  \
    gradsmith::cuda::Map<Functor, T, kVector>(task);                             \
  }

#define GRADSMITH_MAP_DENSE_KERNEL(name, Functor, suffix, T) \
  GRADSMITH_MAP_KERNEL(                                      \
      dense, Map, DenseMapTask, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T)

#define GRADSMITH_MAP_KERNELS_OF(name, Functor, suffix, T)                                \
  GRADSMITH_MAP_DENSE_KERNEL(name, Functor, suffix, T)                                    \
  GRADSMITH_MAP_KERNEL(                                                                   \
      vectors, Map, MapTask, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T) \
  GRADSMITH_MAP_KERNEL(elements, Map, MapTask, 1, name, Functor, suffix, T)

/// The same and one more, of an operator of which inputs may be broadcast by its shapes.
#define GRADSMITH_MAP_BROADCAST_KERNELS_OF(name, Functor, suffix, T) \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, suffix, T)                 \
  GRADSMITH_MAP_KERNEL(                                              \
      odd_rows, MapOddRows, MapTask, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T)

/// Defines the kernels of an operator, by its name in ops.yaml, for all floating types.
#define GRADSMITH_MAP_KERNELS(name, Functor)           \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, short, gradsmith::cuda::ShortFloat)

#define GRADSMITH_MAP_BROADCAST_KERNELS(name, Functor)           \
  GRADSMITH_MAP_BROADCAST_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_MAP_BROADCAST_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_MAP_BROADCAST_KERNELS_OF(name, Functor, short, gradsmith::cuda::ShortFloat)

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_CUH_
