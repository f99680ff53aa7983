#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_ONCE_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_ONCE_CUH_

#include <cmath>
#include <cstdint>

#include "patterns/cuda/rows_lanes.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

namespace gradsmith::cuda {

/// Values that there are so many of for each of a team's rows, spread over the first lanes.
template <typename V, int kRows, int kCount>
class ValuesOfRows {
  static constexpr int kSize = AtLeastOne(kCount);
  static constexpr int kOfLane =
      AtLeastOne((kRows * kCount + kLeastMembersByColumns - 1) / kLeastMembersByColumns);

 public:
  /// Loads the values of the rows from `first` on with load(row, which).
  template <typename Lanes, typename Load>
  __device__ __forceinline__
  ValuesOfRows(const Lanes& lanes, std::int64_t first, const Load& load) {
    const int lane = static_cast<int>(threadIdx.x) % 32 - lanes.first_lane();
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      const int place = i * kLeastMembersByColumns + lane;
      values_[i] = 0;
      if (kCount > 0 && lane < kLeastMembersByColumns && place < kRows * kCount) {
        values_[i] = load(first + place / kSize, place % kSize);
      }
    }
  }

  /// Gives all lanes the values of the team's r-th row. All ask together.
  template <typename Lanes>
  __device__ __forceinline__ void Give(const Lanes& lanes, int r, V (&of_row)[kSize]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      // Where r is not known to the compiler, all that a lane may have is looked through.
      const int place = r * kCount + i;
      const int lane = lanes.first_lane() + place % kLeastMembersByColumns;
#pragma unroll
      for (int word = 0; word < kOfLane; ++word) {
        const V value = __shfl_sync(0xFFFFFFFFU, values_[word], lane);
        of_row[i] = place / kLeastMembersByColumns == word ? value : of_row[i];
      }
    }
  }

 private:
  V values_[kOfLane];
};

/// What there is once of each of a team's rows in kernels by columns: its inputs and the pivot
/// behind them, its integers, and what tables have there.
template <typename Functor, typename A, int kRows>
class OnceOfRows {
  static constexpr int kHasPivot = Functor::kPivot >= 0 ? 1 : 0;
  static constexpr int kCount = Functor::kRowInputs + kHasPivot;
  static constexpr int kIntegers = AtLeastOne(Functor::kIntegerInputs);

 public:
  using Lanes = RowsOfLanes<Functor, A, kRows>;

  /// What there is once of one row.
  struct OfRow {
    A values[AtLeastOne(kCount)];
    std::int64_t integers[kIntegers];
    A lookups[AtLeastOne(Functor::kLookups)];

    [[nodiscard]] __device__ __forceinline__ A pivot() const {
      return kHasPivot != 0 ? values[kCount - kHasPivot] : A(0);
    }
  };

  /// Loads what there is of the rows from `first` on that the task has.
  __device__ __forceinline__
  OnceOfRows(const RowsTask& task, const Lanes& lanes, std::int64_t first)
      : values_(
            lanes,
            first,
            [&](std::int64_t row, int which) { return LoadValue(task, row, which); }),
        integers_(
            lanes,
            first,
            [&](std::int64_t row, int which) { return IntegerOf(task, row, which); }),
        lookups_(lanes, first, [&](std::int64_t row, int which) {
          std::int64_t integers[kIntegers];
          const int integer = Functor::LookupAt(which).integer;
          integers[integer] = IntegerOf(task, row, integer);
          return row < task.rows ? LookUp<Functor, A>(task, which, integers) : A(0);
        }) {}

  /// What there is of the team's r-th row. All lanes ask together.
  [[nodiscard]] __device__ __forceinline__ OfRow Of(const Lanes& lanes, int r) const {
    OfRow of_row = {};
    values_.Give(lanes, r, of_row.values);
    integers_.Give(lanes, r, of_row.integers);
    lookups_.Give(lanes, r, of_row.lookups);
    return of_row;
  }

 private:
  static __device__ __forceinline__ A LoadValue(const RowsTask& task, std::int64_t row, int which) {
    const bool is_pivot = which == Functor::kRowInputs;
    const int t = is_pivot ? Functor::kPivot : RowsPlaces<Functor>::kRowInput + which;
    if (row >= task.rows || task.tensors[t] == nullptr) {
      return 0;
    }
    const A value = LoadElement<A>(task.tensors[t], task.types[t], row * task.row_strides[t][0]);
    return is_pivot && !isfinite(value) ? A(0) : value;
  }
  static __device__ __forceinline__ std::int64_t
  IntegerOf(const RowsTask& task, std::int64_t row, int which) {
    const int t = RowsPlaces<Functor>::kIntegerInput + which;
    if (row >= task.rows || task.tensors[t] == nullptr) {
      return 0;
    }
    return LoadInteger(task.tensors[t], task.types[t], row * task.row_strides[t][0]);
  }

  ValuesOfRows<A, kRows, kCount> values_;
  ValuesOfRows<std::int64_t, kRows, Functor::kIntegerInputs> integers_;
  ValuesOfRows<A, kRows, Functor::kLookups> lookups_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_ONCE_CUH_
