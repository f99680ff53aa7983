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
  template <typename A>
  __device__ __forceinline__ void Add(int /*element*/, const A* /*results*/) {}
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
    sums.Add(v, results[v]);
  }
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

/// A block maps kMapThreads * kMapBatch vectors, each thread kMapBatch of them, all of whose
/// elements are loaded before the first is stored. Elements behind the last whole vector, which
/// there are in one dim alone, are mapped one by one.
template <typename Functor, typename T, int kVector, typename Task>
__device__ __forceinline__ void Map(const Task& task) {
  using A = Accumulator<T>;
  constexpr int kTensors = kMapTensors<Functor>;
  A scalars[internal::kMaxMapScalars];
  LoadScalars(task, scalars);
  NoSums no_sums;
  const std::int64_t vectors = task.count / kVector;
  const std::int64_t first = std::int64_t{blockIdx.x} * kMapThreads * kMapBatch + threadIdx.x;
  std::int64_t offsets[kMapBatch][kTensors];
  T in[kMapBatch][Functor::kInputs][kVector];
#pragma unroll
  for (int b = 0; b < kMapBatch; ++b) {
    const std::int64_t vector = first + b * kMapThreads;
    if (vector < vectors) {
      MapOffsets(task, vector * kVector, offsets[b]);
#pragma unroll
      for (int t = 0; t < Functor::kInputs; ++t) {
        LoadInput<Functor, T, kVector>(
            t, task.tensors[t], offsets[b][t], MapStep(task, t), in[b][t], WordStep(task));
      }
    }
  }
#pragma unroll
  for (int b = 0; b < kMapBatch; ++b) {
    if (first + b * kMapThreads < vectors) {
      MapVector<Functor, T, kVector>(task, offsets[b], in[b], scalars, no_sums);
    }
  }
  static_assert(kVector < kMapThreads);
  const std::int64_t behind = vectors * kVector + threadIdx.x;
  if (kVector > 1 && blockIdx.x == gridDim.x - 1 && behind < task.count) {
    std::int64_t at[kTensors];
    T one[Functor::kInputs][1];
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      at[t] = behind * MapStep(task, t);
    }
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      LoadInput<Functor, T, 1>(t, task.tensors[t], at[t], 1, one[t], WordStep(task));
    }
    MapVector<Functor, T, 1>(task, at, one, scalars, no_sums);
  }
}

}  // namespace gradsmith::cuda

#define GRADSMITH_MAP_KERNEL(form, Task, kVector, name, Functor, suffix, T)  \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMapThreads) \
      gradsmith_map_##form##_##name##_##suffix(                              \
          const __grid_constant__ gradsmith::cuda::Task task) {              \
    gradsmith::cuda::Map<Functor, T, kVector>(task);                         \
  }

#define GRADSMITH_MAP_DENSE_KERNEL(name, Functor, suffix, T) \
  GRADSMITH_MAP_KERNEL(                                      \
      dense, DenseMapTask, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T)

#define GRADSMITH_MAP_KERNELS_OF(name, Functor, suffix, T)                           \
  GRADSMITH_MAP_DENSE_KERNEL(name, Functor, suffix, T)                               \
  GRADSMITH_MAP_KERNEL(                                                              \
      vectors, MapTask, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T) \
  GRADSMITH_MAP_KERNEL(elements, MapTask, 1, name, Functor, suffix, T)

/// Defines the kernels of an operator, by its name in ops.yaml, for all floating types.
#define GRADSMITH_MAP_KERNELS(name, Functor)           \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_MAP_KERNELS_OF(name, Functor, short, gradsmith::cuda::ShortFloat)

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_CUH_
