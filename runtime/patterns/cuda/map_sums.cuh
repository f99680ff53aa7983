#ifndef GRADSMITH_PATTERNS_CUDA_MAP_SUMS_CUH_
#define GRADSMITH_PATTERNS_CUDA_MAP_SUMS_CUH_

#include <cstdint>

#include "patterns/cuda/map.cuh"

/// The kernels of maps that may have sums (kSums, patterns/map.h). GRADSMITH_MAP_SUM_KERNELS(
/// PReluGrad, PReluGradMap) makes those of an operator from its functor, instead of
/// GRADSMITH_MAP_KERNELS. Calls without sums are computed by the same kernels where tensors are not
/// dense: compiling is what costs most. All sums are made in an order that the task and its launch
/// alone decide.
namespace gradsmith::cuda {

/// The sums of a thread: of the vector's places, or of its terms.
template <typename Functor, typename A, int kVector>
struct ThreadSums {
  int output;
  A values[kVector];

  __device__ __forceinline__ void Add(int element, const A* results) {
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      if (o == output) {
        values[element] += results[o];
      }
    }
  }
};

/// A thread's part in a block: which of its places, and which of the threads that share one.
/// Neighbouring threads are neighbours in memory.
struct MapSumPart {
  int lane;
  int lanes;
  int sharer;
  int sharers;
};

__device__ __forceinline__ MapSumPart PartOf(const MapSumLaunch& launch) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lanes = kMapThreads / launch.sharers;
  return launch.sum.has_places_last
             ? MapSumPart{thread % lanes, lanes, thread / lanes, launch.sharers}
             : MapSumPart{thread / launch.sharers, lanes, thread % launch.sharers, launch.sharers};
}

/// Adds the terms of a thread's part, from `begin` to `end`, to its sums.
template <typename Functor, typename T, int kVector, typename Sums>
__device__ __forceinline__ void SumTerms(
    const internal::MapSumTask& task,
    std::int64_t place,
    std::int64_t begin,
    std::int64_t end,
    std::int64_t step,
    Sums& sums) {
  constexpr int kTensors = kMapTensors<Functor>;
  Accumulator<T> scalars[internal::kMaxMapScalars];
  LoadScalars(task.map, scalars);
  std::int64_t first[kTensors] = {};
  AddMapOffsets(task.map, 0, task.place_rank, place, first);
  const int last = task.last;
  for (std::int64_t term = begin; term < end; term += step) {
    std::int64_t offsets[kTensors];
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      offsets[t] = first[t];
    }
    AddMapOffsets(task.map, task.place_rank, task.map.rank, term, offsets);
    T in[Functor::kInputs][kVector];
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      LoadInput<Functor, T, kVector>(
          t, task.map.tensors[t], offsets[t], task.map.strides[t][last], in[t]);
    }
    MapVector<Functor, T, kVector>(task.map, offsets, in, scalars, sums);
  }
}

template <typename T, typename A>
__device__ __forceinline__ void
StoreSum(const internal::MapSumTask& task, std::int64_t place, A sum) {
  std::int64_t offset = 0;
  for (int axis = task.place_rank - 1; axis >= 0; --axis) {
    const Division division = Divide(place, task.map.dims[axis]);
    offset += division.remainder * task.map.strides[task.tensor][axis];
    place = division.quotient;
  }
  T* to = static_cast<T*>(task.map.tensors[task.tensor]) + offset;
  *to = Convert<T>((task.map.accumulate >> task.output & 1U) ? sum + Convert<A>(*to) : sum);
}

/// Adds up the sums of the threads that share a place; the first of them has the result.
template <typename A, int kVector>
__device__ __forceinline__ void
AddUpSharers(const MapSumPart& part, int values, A (&sums)[kVector]) {
  __shared__ A shared[kMapThreads * kVector];
  for (int v = 0; v < values; ++v) {
    shared[(v * part.sharers + part.sharer) * part.lanes + part.lane] = sums[v];
  }
  for (int half = part.sharers / 2; half > 0; half /= 2) {
    __syncthreads();
    if (part.sharer < half) {
      for (int v = 0; v < values; ++v) {
        const int at = (v * part.sharers + part.sharer) * part.lanes + part.lane;
        shared[at] += shared[at + half * part.lanes];
      }
    }
  }
  if (part.sharer == 0) {
    for (int v = 0; v < values; ++v) {
      sums[v] = shared[v * part.sharers * part.lanes + part.lane];
    }
  }
}

/// Sums a block's places and terms, where the pass sums, and stores the outputs that it stores.
template <typename Functor, typename T, int kVector>
__device__ __forceinline__ void MapSum(const MapSumLaunch& launch) {
  using A = Accumulator<T>;
  const internal::MapSumTask& task = launch.sum;
  const MapSumPart part = PartOf(launch);
  // What a vector has of places and of terms.
  const int places = task.has_places_last ? kVector : 1;
  const int terms = kVector / places;
  const std::int64_t place = (std::int64_t{blockIdx.x} * part.lanes + part.lane) * places;
  const std::int64_t begin = blockIdx.y * launch.piece;
  const std::int64_t end = begin + launch.piece < task.terms ? begin + launch.piece : task.terms;
  ThreadSums<Functor, A, kVector> sums = {task.output, {}};
  if (place < task.places) {
    SumTerms<Functor, T, kVector>(
        task, place, begin + part.sharer * terms, end, part.sharers * terms, sums);
  }
  if (task.output == internal::kNoMapSum) {
    return;
  }
  if (places == 1) {
#pragma unroll
    for (int v = 1; v < kVector; ++v) {
      sums.values[0] += sums.values[v];
    }
  }
  AddUpSharers(part, places, sums.values);
  if (part.sharer == 0) {
    for (int v = 0; v < places; ++v) {
      if (place + v < task.places && launch.pieces == 1) {
        StoreSum<T>(task, place + v, sums.values[v]);
      } else if (place + v < task.places) {
        static_cast<A*>(launch.partial)[blockIdx.y * task.places + place + v] = sums.values[v];
      }
    }
  }
}

/// Adds up the pieces of each place, a warp to a place.
template <typename T>
__device__ __forceinline__ void FinishMapSum(const MapSumLaunch& launch) {
  using A = Accumulator<T>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t place =
      std::int64_t{blockIdx.x} * (kMapThreads / 32) + static_cast<int>(threadIdx.x) / 32;
  if (place >= launch.sum.places) {
    return;
  }
  double sum = 0;
  for (int piece = lane; piece < launch.pieces; piece += 32) {
    sum += static_cast<const A*>(launch.partial)[piece * launch.sum.places + place];
  }
  for (int half = 16; half > 0; half /= 2) {
    sum += __shfl_down_sync(0xffffffffU, sum, half);
  }
  if (lane == 0) {
    StoreSum<T>(launch.sum, place, sum);
  }
}

}  // namespace gradsmith::cuda

#define GRADSMITH_MAP_SUM_KERNEL(form, kVector, name, Functor, suffix, T)    \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMapThreads) \
      gradsmith_map_sum_##form##_##name##_##suffix(                          \
          const __grid_constant__ gradsmith::cuda::MapSumLaunch launch) {    \
    gradsmith::cuda::MapSum<Functor, T, kVector>(launch);                    \
  }

#define GRADSMITH_MAP_SUM_KERNELS_OF(name, Functor, suffix, T)                                   \
  GRADSMITH_MAP_DENSE_KERNEL(name, Functor, suffix, T)                                           \
  GRADSMITH_MAP_SUM_KERNEL(vectors, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T) \
  GRADSMITH_MAP_SUM_KERNEL(elements, 1, name, Functor, suffix, T)

/// Defines the kernels of an operator with sums, by its name in ops.yaml, for all floating types.
#define GRADSMITH_MAP_SUM_KERNELS(name, Functor)           \
  GRADSMITH_MAP_SUM_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_MAP_SUM_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_MAP_SUM_KERNELS_OF(name, Functor, f16, __half) \
  GRADSMITH_MAP_SUM_KERNELS_OF(name, Functor, bf16, __nv_bfloat16)

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_SUMS_CUH_
