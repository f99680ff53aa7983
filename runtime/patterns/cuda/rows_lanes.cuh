#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_LANES_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_LANES_CUH_

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_results.cuh"
#include "patterns/rows_functor.h"

/// How the threads of a kernel by columns reduce several rows at once, in a fixed order.
namespace gradsmith::cuda {

/// What a team that has a few neighbouring rows knows of them is spread over its lanes: each lane
/// has one of the rows, whose results it finds with the others that have the same, and lanes ask
/// each other for what they need of the rest.
template <typename Functor, typename A, int kRows>
class RowsOfLanes {
 public:
  static constexpr int kResults = AtLeastOne(Functor::kResults);

  /// A team has all lanes of its warps, or as many neighbouring lanes as it has threads.
  __device__ __forceinline__ explicit RowsOfLanes(const RowsLaunch& launch)
      : span_(min(launch.members, 32)), warps_(launch.members / 32) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    first_lane_ = lane - lane % span_;
    row_ = lane % span_ / (span_ / kRows);
  }

  /// The row whose results this lane has.
  [[nodiscard]] __device__ __forceinline__ int row() const { return row_; }
  /// The lane that has a row's.
  [[nodiscard]] __device__ __forceinline__ int LaneOf(int row) const {
    return first_lane_ + row * (span_ / kRows);
  }
  [[nodiscard]] __device__ __forceinline__ int first_lane() const { return first_lane_; }
  [[nodiscard]] __device__ __forceinline__ int span() const { return span_; }

  /// Makes of what the threads found of all rows the results of this lane's. All threads of a team
  /// come here together, and the buffers take turns, so that one wait will do.
  __device__ __forceinline__ void
  Combine(int phase, int* turn, A (&found)[kRows][kResults], A (&own)[kResults]) const {
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      if (Functor::PhaseOf(i) == phase) {
        A of_all[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          of_all[r] = found[r][i];
        }
        own[i] = OfLanes(i, of_all);
      }
    }
    if (warps_ > 1) {
      CombineWarps(phase, *turn, own);
      *turn = 1 - *turn;
    }
  }

 private:
  static constexpr int kWarps = kFewerRowsThreads / 32;

  static __device__ __forceinline__ A OfOther(A value, int distance) {
    return __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  }

  /// The lanes of each half keep the rows of one half, until each has one row.
  __device__ __forceinline__ A OfLanes(int result, A (&of_all)[kRows]) const {
    int distance = span_ / 2;
#pragma unroll
    for (int rows = kRows; rows > 1; rows /= 2) {
      const bool is_upper = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
#pragma unroll
      for (int r = 0; r < rows / 2; ++r) {
        const A kept = is_upper ? of_all[r + rows / 2] : of_all[r];
        const A given = is_upper ? of_all[r] : of_all[r + rows / 2];
        of_all[r] = ResultOfBoth<Functor>(result, kept, OfOther(given, distance));
      }
      distance /= 2;
    }
    A own = of_all[0];
#pragma unroll
    for (int d = 16 / kRows; d > 0; d /= 2) {
      if (d <= distance) {
        own = ResultOfBoth<Functor>(result, own, OfOther(own, d));
      }
    }
    return own;
  }

  /// Adds up what the team's warps found, in their order.
  __device__ __forceinline__ void CombineWarps(int phase, int turn, A (&own)[kResults]) const {
    __shared__ A shared[2][kWarps][kRows][kResults];
    static_assert(sizeof(shared) <= kRowsStaticBytes);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (static_cast<int>(threadIdx.x) % (32 / kRows) == 0) {
#pragma unroll
      for (int i = 0; i < kResults; ++i) {
        if (Functor::PhaseOf(i) == phase) {
          shared[turn][warp][row_][i] = own[i];
        }
      }
    }
    static_assert(
        kWarps / 2 < 16, "a barrier for each team of several warps, and that of the block");
    const int team = warp / warps_;
    SynchronizeWarps(1 + team, warps_ * 32);
    const int first = team * warps_;
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      own[i] = Functor::PhaseOf(i) == phase ? shared[turn][first][row_][i] : own[i];
    }
#pragma unroll 1
    for (int w = first + 1; w < first + warps_; ++w) {
#pragma unroll
      for (int i = 0; i < kResults; ++i) {
        if (Functor::PhaseOf(i) == phase) {
          own[i] = ResultOfBoth<Functor>(i, own[i], shared[turn][w][row_][i]);
        }
      }
    }
  }

  int span_;
  int warps_;
  int first_lane_;
  int row_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_LANES_CUH_
