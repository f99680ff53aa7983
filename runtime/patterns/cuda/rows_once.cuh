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

/// What there is once of each of a team's rows in kernels by columns, its inputs and the pivot
/// behind them, spread over the first lanes.
template <typename Functor, typename A, int kRows>
class OnceOfRows {
  static constexpr int kHasPivot = Functor::kPivot >= 0 ? 1 : 0;
  static constexpr int kCount = Functor::kRowInputs + kHasPivot;
  static constexpr int kSize = AtLeastOne(kCount);
  static constexpr int kOfLane =
      AtLeastOne((kRows * kCount + kLeastMembersByColumns - 1) / kLeastMembersByColumns);

 public:
  using Lanes = RowsOfLanes<Functor, A, kRows>;

  /// What there is once of one row.
  struct OfRow {
    A values[kSize];

    [[nodiscard]] __device__ __forceinline__ A pivot() const {
      return kHasPivot != 0 ? values[kCount - kHasPivot] : A(0);
    }
  };

  /// Loads what there is of the rows from `first` on that the task has.
  __device__ __forceinline__
  OnceOfRows(const RowsTask& task, const Lanes& lanes, std::int64_t first) {
    const int lane = static_cast<int>(threadIdx.x) % 32 - lanes.first_lane();
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) {
      const int place = i * kLeastMembersByColumns + lane;
      values_[i] = 0;
      if (kCount > 0 && lane < kLeastMembersByColumns && place < kRows * kCount) {
        values_[i] = Load(task, first + place / kSize, place % kSize);
      }
    }
  }

  /// What there is of the team's r-th row. All lanes ask together.
  [[nodiscard]] __device__ __forceinline__ OfRow Of(const Lanes& lanes, int r) const {
    OfRow of_row = {};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      // Where r is not known to the compiler, all that a lane may have is looked through.
      const int place = r * kCount + i;
      const int lane = lanes.first_lane() + place % kLeastMembersByColumns;
#pragma unroll
      for (int word = 0; word < kOfLane; ++word) {
        const A value = __shfl_sync(0xFFFFFFFFU, values_[word], lane);
        of_row.values[i] = place / kLeastMembersByColumns == word ? value : of_row.values[i];
      }
    }
    return of_row;
  }

 private:
  static __device__ __forceinline__ A Load(const RowsTask& task, std::int64_t row, int which) {
    const bool is_pivot = which == Functor::kRowInputs;
    const int t = is_pivot ? Functor::kPivot : RowsPlaces<Functor>::kRowInput + which;
    if (row >= task.rows || task.tensors[t] == nullptr) {
      return 0;
    }
    const A value = LoadElement<A>(task.tensors[t], task.types[t], row * task.row_strides[t][0]);
    return is_pivot && !isfinite(value) ? A(0) : value;
  }

  A values_[kOfLane];
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_ONCE_CUH_
