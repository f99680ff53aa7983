#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_RESIDENT_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_RESIDENT_CUH_

#include "batch_norm/cuda/kernels/batch_norm_map.cuh"
#include "cuda/kernels/ptx.cuh"

/// All of a gradient in one launch, of blocks that have their channels to themselves or that run
/// side by side. Its inputs come by way of rings in shared memory, backwards for the map: what is
/// in them at the end of the sums is the map's first, and what was read before that is in the
/// cache.
namespace gradsmith::batch_norm::own {
namespace {

/// The steps of a block one after the other in the same shared memory.
template <Sums kSums, Map kMap, typename T, int V>
union ResidentScratch {
  Tile<kSums, T, V> tile;
  ThreadSums<Accumulator<T>, V> sums;
  FinishSums<kThreads / kFinishLanes> finish;
  TileCoefficients<kMap, T, V> coefficients;
};

/// A thread's inputs that are under way or have arrived: vectors of dY and X of kSlots of its
/// steps. The thread alone reads them. Counted backwards from its last step, a step has slot i %
/// kSlots.
template <typename T, int kSlots>
class InputRing {
 public:
  static constexpr int V = kVector<T>;

  __device__ InputRing(uint4* vectors, const Operands& operands)
      : vectors_(vectors + threadIdx.x), operands_(operands) {}

  /// Begins to copy what is at a place, or nothing, and counts as one in either case.
  __device__ __forceinline__ void Begin(int slot, const Place* place) const {
    if (place != nullptr) {
      cuda::BeginCopy(
          cuda::SharedAddress(At(slot, 0)), own::At<const T>(operands_.dY, place->dY), true);
      cuda::BeginCopy(
          cuda::SharedAddress(At(slot, 1)), own::At<const T>(operands_.X, place->X), true);
    }
    cuda::EndOfCopies();
  }

  /// Once the oldest of kSlots has arrived.
  __device__ __forceinline__ void Get(int slot, Pack<T, V>* dy, Pack<T, V>* x) const {
    cuda::WaitForCopies<kSlots - 1>();
    memcpy(dy, At(slot, 0), sizeof(*dy));
    memcpy(x, At(slot, 1), sizeof(*x));
  }

 private:
  __device__ uint4* At(int slot, int tensor) const {
    return vectors_ + (2 * slot + tensor) * kThreads;
  }

  uint4* vectors_;
  const Operands& operands_;
};

/// Adds up all of a thread's steps; the last of them stay in the ring.
template <Sums kSums, typename T, int kSlots>
__device__ __forceinline__ void SumThrough(
    const InputRing<T, kSlots>& ring,
    ColumnSums<kSums, T, kVector<T>>* sums) {
  constexpr int V = kVector<T>;
  const OwnSteps steps(sums->columns.walk, blockIdx.y);
  StepPlaces<V, false> places(sums->columns, steps.first);
  const int last = steps.count - 1;
  int slot = last < 0 ? 0 : last % kSlots;
  const auto begin = [&](int step) {
    if (step < steps.count) {
      const Place place = places.Next(V);
      ring.Begin(slot, &place);
    } else {
      ring.Begin(slot, nullptr);
    }
    slot = slot == 0 ? kSlots - 1 : slot - 1;
  };
#pragma unroll 1
  for (int step = 0; step < kSlots; ++step) {
    begin(step);
  }
#pragma unroll 1
  for (int step = 0; step < steps.count; ++step) {
    Terms<kSums, T, V> terms[1];
    ring.Get(slot, &terms[0].dy, &terms[0].x);
    sums->Add(terms, V);
    begin(step + kSlots);
  }
}

/// Maps all of a thread's steps from the last on, of which the ring has some.
template <Map kMap, typename T, int kSlots>
__device__ __forceinline__ void MapThrough(
    const InputRing<T, kSlots>& ring,
    ColumnMap<kMap, T, kVector<T>>* map) {
  constexpr int V = kVector<T>;
  const Operands& operands = map->columns.operands;
  const std::int64_t stride = ColumnStride<V>(operands.output);
  const OwnSteps steps(map->columns.walk, blockIdx.y);
  StepPlaces<V, true> places(map->columns, steps.last(map->columns.walk));
  StepPlaces<V, true> ahead = places;
#pragma unroll 1
  for (int step = 0; step < kSlots; ++step) {
    ahead.Next(V);
  }
  int slot = 0;
#pragma unroll 1
  for (int step = 0; step < steps.count; ++step) {
    MapElements<kMap, T, V> elements[1];
    elements[0].place = places.Next(V);
    ring.Get(slot, &elements[0].dy, &elements[0].x);
    elements[0].template LoadResult<Access::kMostlyVectors>(operands, stride);
    if (step + kSlots < steps.count) {
      const Place next = ahead.Next(V);
      ring.Begin(slot, &next);
    } else {
      ring.Begin(slot, nullptr);
    }
    slot = slot == kSlots - 1 ? 0 : slot + 1;
    map->Apply(&elements);
    elements[0].template Store<Access::kMostlyVectors>(operands, stride);
  }
}

/// kWhole: blocks have their channels to themselves, and need not wait for each other.
template <bool kWhole, Sums kSums, Map kMap, typename T>
__device__ __forceinline__ void ResidentBackward(
    const BackwardFinish& finish,
    const Operands& operands,
    double* partials,
    double* coefficients) {
  constexpr int V = kVector<T>;
  constexpr bool kRelu = kMap == Map::kReluInputGradient;
  constexpr int kScratch = kResidentScratch<sizeof(T), kRelu>;
  using Scratch = ResidentScratch<kSums, kMap, T, V>;
  static_assert(sizeof(Scratch) == kScratch);
  GRADSMITH_DYNAMIC_SHARED(shared);
  Scratch& scratch = *reinterpret_cast<Scratch*>(shared);
  const InputRing<T, kResidentSlots<sizeof(T), kRelu>> ring(
      shared + kScratch / sizeof(uint4), operands);
  const Walk& walk = finish.walk;
  const BackwardAgain again{finish};
  const auto finish_channel = [&](std::int64_t channel, const Totals& totals) {
    FinishBackward(finish, channel, totals, coefficients);
  };

  FillTile(walk, operands, finish.normalization, &scratch.tile);
  {
    ColumnSums<kSums, T, V> sums(walk, operands, scratch.tile);
    if (sums.columns.present()) {
      SumThrough(ring, &sums);
      VisitTail<V, false>(sums.columns, sums);
    }
    SumTile<Accumulator<T>, V>(
        walk, sums.first, sums.second, scratch.sums,
        [&](std::int64_t place, double first, double second) {
          if constexpr (kWhole) {
            finish_channel(place, TotalsOf(again, place, first, second));
          } else {
            StorePartial(walk, place, first, second, partials);
          }
        });
  }
  if constexpr (kWhole) {
    __syncthreads();
  } else {
    cuda::SynchronizeGrid();
    ForEachSum<kThreads / kFinishLanes>(
        walk, again, partials, std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x,
        std::int64_t{gridDim.x} * gridDim.y, scratch.finish, finish_channel);
    cuda::SynchronizeGrid();
  }
  const bool has_wide = FillCoefficients<kMap, T, V>(walk, coefficients, &scratch.coefficients);
  ColumnMap<kMap, T, V> map = {Columns<V>(walk, operands), scratch.coefficients};
  if (has_wide) {
    MapWideColumns<kMap, T, V>(map.columns, coefficients);
  } else if (map.columns.present()) {
    MapThrough(ring, &map);
    VisitTail<V, true>(map.columns, map);
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_RESIDENT_CUH_
