#ifndef GRADSMITH_PATTERNS_CUDA_MAP_SUMS_CUH_
#define GRADSMITH_PATTERNS_CUDA_MAP_SUMS_CUH_

#include <cstdint>
#include <cstring>

#include "cuda/kernels/ptx.cuh"
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
  unsigned summed;
  A values[kVector];

  /// Chosen by their index, results would have to lie in memory.
  __device__ __forceinline__ void Add(const A (&results)[kVector][Functor::kOutputs]) {
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      if (summed >> o & 1U) {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          values[v] += results[v][o];
        }
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
  const int lanes = static_cast<int>(blockDim.x) / launch.sharers;
  return launch.sum.has_places_last
             ? MapSumPart{thread % lanes, lanes, thread / lanes, launch.sharers}
             : MapSumPart{thread / launch.sharers, lanes, thread % launch.sharers, launch.sharers};
}

/// The terms of a thread's part, kVector elements of each input at once. What the launch has in
/// its `queued` waits in shared memory, in places of the thread's own, for kMapSumStages terms;
/// what it has in `fixed` lies behind, for all terms.
template <typename Functor, typename T, int kVector>
class ThreadTerms {
 public:
  static constexpr int kTensors = kMapTensors<Functor>;

  __device__ __forceinline__
  ThreadTerms(const MapSumLaunch& launch, void* shared, std::int64_t place)
      : launch_(launch), task_(launch.sum), shared_(static_cast<uint4*>(shared) + threadIdx.x) {
    AddMapOffsets(task_.map, 0, task_.place_rank, place, of_place_);
    LoadScalars(task_.map, scalars_);
    KeepFixed(place);
  }

  /// Adds the terms from `begin` to `end` to the sums, and stores what the launch stores.
  template <typename Sums>
  __device__ __forceinline__ void
  Sum(std::int64_t begin, std::int64_t end, std::int64_t step, Sums& sums) {
    int stage = 0;
    if constexpr (kVector > 1) {
#pragma unroll 1
      for (; stage < kMapSumStages; ++stage) {
        Queue(begin + stage * step, end, stage);
      }
    }
#pragma unroll 1
    for (std::int64_t term = begin; term < end; term += step) {
      std::int64_t offsets[kTensors];
      Offsets(term, offsets);
      T in[Functor::kInputs][kVector];
      stage = stage == kMapSumStages ? 0 : stage;
      Take(stage, offsets, in);
      if constexpr (kVector > 1) {
        Queue(term + kMapSumStages * step, end, stage);
      }
      ++stage;
      MapVector<Functor, T, kVector>(task_.map, offsets, in, scalars_, sums);
    }
  }

 private:
  /// Offsets finds where a term lies in each tensor.
  __device__ __forceinline__ void Offsets(std::int64_t term, std::int64_t (&offsets)[kTensors])
      const {
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      offsets[t] = of_place_[t];
    }
    AddMapOffsets(task_.map, task_.place_rank, task_.map.rank, term, offsets);
  }

  /// Keeps the inputs that have one element for all terms of a place. Places may begin in a row and
  /// end in the next.
  __device__ __forceinline__ void KeepFixed(std::int64_t place) {
    int slot = kMapSumStages * launch_.queue_length;
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      if (!(launch_.fixed >> t & 1U)) {
        continue;
      }
      const std::int64_t step = task_.map.strides[t][task_.last];
      T elements[kVector];
      if (launch_.places_of_row == 0) {
        LoadInput<Functor, T, kVector>(t, task_.map.tensors[t], of_place_[t], step, elements);
      } else {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          T one[1];
          const std::int64_t at = Divide(place + v, launch_.places_of_row).remainder;
          LoadInput<Functor, T, 1>(t, task_.map.tensors[t], at * step, 1, one);
          elements[v] = one[0];
        }
      }
      memcpy(At(slot++), elements, sizeof(elements));
    }
  }

  /// Begins to copy the inputs of a term to the places of a stage, where it is one.
  __device__ __forceinline__ void Queue(std::int64_t term, std::int64_t end, int stage) {
    if (launch_.queued != 0 && term < end) {
      std::int64_t offsets[kTensors];
      Offsets(term, offsets);
      int slot = stage * launch_.queue_length;
#pragma unroll
      for (int t = 0; t < Functor::kInputs; ++t) {
        if (launch_.queued >> t & 1U) {
          const T* const from = static_cast<const T*>(task_.map.tensors[t]) + offsets[t];
          BeginCopy(SharedAddress(At(slot++)), from, true);
        }
      }
    }
    EndOfCopies();
  }

  /// Takes the inputs of the term that was queued first.
  __device__ __forceinline__ void
  Take(int stage, const std::int64_t (&offsets)[kTensors], T (&in)[Functor::kInputs][kVector]) {
    if constexpr (kVector > 1) {
      WaitForCopies<kMapSumStages - 1>();
    }
    int queued = stage * launch_.queue_length;
    int kept = kMapSumStages * launch_.queue_length;
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      if (kVector > 1 && (launch_.queued >> t & 1U)) {
        memcpy(&in[t], At(queued++), sizeof(in[t]));
      } else if (launch_.fixed >> t & 1U) {
        memcpy(&in[t], At(kept++), sizeof(in[t]));
      } else {
        LoadInput<Functor, T, kVector>(
            t, task_.map.tensors[t], offsets[t], task_.map.strides[t][task_.last], in[t]);
      }
    }
  }

  [[nodiscard]] __device__ __forceinline__ uint4* At(int slot) const {
    return shared_ + slot * static_cast<int>(blockDim.x);
  }

  const MapSumLaunch& launch_;
  const internal::MapSumTask& task_;
  uint4* shared_;
  std::int64_t of_place_[kTensors] = {};
  Accumulator<T> scalars_[internal::kMaxMapScalars];
};

/// Stores the sum of a place, or adds it to what the output has there.
template <typename T, typename A>
__device__ __forceinline__ void
StoreSum(const internal::MapSumTask& task, std::int64_t place, A sum) {
  T* const to = static_cast<T*>(task.map.tensors[task.tensor]) +
                OffsetOf(task.map, task.tensor, task.place_rank, place);
  *to = Convert<T>((task.map.accumulate >> task.output & 1U) ? sum + Convert<A>(*to) : sum);
}

/// Adds up the first kCount sums of the threads that share places; the first of them has the
/// result. `shared` has room for those of a block.
template <int kCount, typename A>
__device__ __forceinline__ void AddUpSharers(const MapSumPart& part, A* shared, A* sums) {
#pragma unroll
  for (int v = 0; v < kCount; ++v) {
    shared[(v * part.sharers + part.sharer) * part.lanes + part.lane] = sums[v];
  }
  for (int half = part.sharers / 2; half > 0; half /= 2) {
    __syncthreads();
    if (part.sharer < half) {
#pragma unroll
      for (int v = 0; v < kCount; ++v) {
        const int at = (v * part.sharers + part.sharer) * part.lanes + part.lane;
        shared[at] += shared[at + half * part.lanes];
      }
    }
  }
  if (part.sharer == 0) {
#pragma unroll
    for (int v = 0; v < kCount; ++v) {
      sums[v] = shared[v * part.sharers * part.lanes + part.lane];
    }
  }
}

/// Stores the sums of kCount places, or of as many as there are.
template <int kCount, typename T, typename A>
__device__ __forceinline__ void
StoreSums(const MapSumLaunch& launch, std::int64_t place, const A* sums) {
#pragma unroll
  for (int v = 0; v < kCount; ++v) {
    if (place + v >= launch.sum.places) {
      return;
    }
    if (launch.partial == nullptr) {
      StoreSum<T>(launch.sum, place + v, sums[v]);
    } else {
      static_cast<A*>(
          launch.partial)[launch.first_partial + blockIdx.y * launch.sum.places + place + v] =
          sums[v];
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
  const std::int64_t begin = launch.first_term + blockIdx.y * launch.piece;
  const std::int64_t end = begin + launch.piece < task.terms ? begin + launch.piece : task.terms;
  ThreadSums<Functor, A, kVector> sums = {launch.summed, {}};
  GRADSMITH_DYNAMIC_SHARED(queue);
  if (place < task.places) {
    ThreadTerms<Functor, T, kVector> of_thread(launch, queue, place);
    of_thread.Sum(begin + part.sharer * terms, end, part.sharers * terms, sums);
  }
  if (task.output == internal::kNoMapSum) {
    return;
  }
  __shared__ A shared[kMostMapThreads * kVector];
  if (places == 1) {
#pragma unroll
    for (int v = 1; v < kVector; ++v) {
      sums.values[0] += sums.values[v];
    }
    AddUpSharers<1>(part, shared, sums.values);
    if (part.sharer == 0) {
      StoreSums<1, T>(launch, place, sums.values);
    }
  } else {
    AddUpSharers<kVector>(part, shared, sums.values);
    if (part.sharer == 0) {
      StoreSums<kVector, T>(launch, place, sums.values);
    }
  }
}

/// Adds up the pieces of each place, which threads share.
template <typename T>
__device__ __forceinline__ void FinishMapSum(const MapSumLaunch& launch) {
  using A = Accumulator<T>;
  const MapSumPart part = PartOf(launch);
  const std::int64_t place = std::int64_t{blockIdx.x} * part.lanes + part.lane;
  double sum = 0;
  if (place < launch.sum.places) {
    for (int piece = part.sharer; piece < launch.pieces; piece += part.sharers) {
      sum += static_cast<const A*>(launch.partial)[piece * launch.sum.places + place];
    }
  }
  __shared__ double shared[kMostMapThreads];
  AddUpSharers<1>(part, shared, &sum);
  if (part.sharer == 0 && place < launch.sum.places) {
    StoreSum<T>(launch.sum, place, sum);
  }
}

}  // namespace gradsmith::cuda

#define GRADSMITH_MAP_SUM_KERNEL(form, kVector, name, Functor, suffix, T) \
  extern "C" __global__ void __launch_bounds__(                           \
      gradsmith::cuda::kMostMapThreads, gradsmith::cuda::kSummingBlocks)  \
      gradsmith_map_sum_##form##_##name##_##suffix(                       \
          const __grid_constant__ gradsmith::cuda::MapSumLaunch launch) { \
    gradsmith::cuda::MapSum<Functor, T, kVector>(launch);                 \
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
