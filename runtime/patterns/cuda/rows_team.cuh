#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_TEAM_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_TEAM_CUH_

#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_results.cuh"
#include "patterns/rows_functor.h"

/// How the threads that share a row reduce it, in a fixed order.
namespace gradsmith::cuda {

/// A thread's place: which team of its block it is in, and which of that team's threads it is.
struct RowsPlaceInBlock {
  int index;
  int member;
};

/// Teams that have rows along memory are neighbouring threads. Teams across it have neighbours of
/// theirs beside each of their threads.
template <bool kIsAcross>
__device__ __forceinline__ RowsPlaceInBlock TeamOf(const RowsLaunch& launch) {
  const int thread = static_cast<int>(threadIdx.x);
  if (kIsAcross) {
    return {thread % launch.teams, thread / launch.teams};
  }
  return {thread / launch.members, thread % launch.members};
}

/// The number of a result among those of its phase.
template <typename Functor>
__host__ __device__ constexpr int PlaceInPhase(int result) {
  int place = 0;
  for (int other = 0; other < result; ++other) {
    place += Functor::PhaseOf(other) == Functor::PhaseOf(result) ? 1 : 0;
  }
  return place;
}

/// How many results a phase has at most.
template <typename Functor>
__host__ __device__ constexpr int MostOfPhase() {
  int most = 1;
  for (int result = 0; result < Functor::kResults; ++result) {
    const int count = PlaceInPhase<Functor>(result) + 1;
    most = Functor::PhaseOf(result) >= 0 && count > most ? count : most;
  }
  return most;
}

/// What a team reduces: kResults results for each of kRows rows. kAcross is how many teams'
/// threads stand between two of a team.
template <typename A, int kRows, int kResults, int kAcross>
class RowsTeam {
 public:
  template <typename Functor>
  __device__ static __forceinline__ void Clear(A (*found)[kRows][kResults]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      ClearResults<Functor>((*found)[r]);
    }
  }

  /// Gives all of a team what its threads found. All threads of a block come here together, and
  /// the buffers take turns, so that one wait will do.
  template <typename Functor>
  __device__ static __forceinline__ void Combine(
      int phase,
      const RowsLaunch& launch,
      const RowsPlaceInBlock& team,
      int* turn,
      A (*found)[kRows][kResults]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int span = min(launch.members * kAcross, 32);
#pragma unroll
    for (int distance = kAcross; distance < 32; distance *= 2) {
      if (distance < span) {
        AddLanes<Functor>(phase, distance, found);
      }
    }
    const int warps = launch.members * kAcross / 32;
    if (warps <= 1) {
      return;
    }
    constexpr int kWarps = (kAcross > 1 ? kFewerRowsThreads : kMostRowsThreads) / 32;
    __shared__ A shared[2][kWarps][kAcross][kRows][MostOfPhase<Functor>()];
    static_assert(sizeof(shared) <= kRowsStaticBytes);
    if (lane < kAcross) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < kResults; ++i) {
          if (Functor::PhaseOf(i) == phase) {
            shared[*turn][threadIdx.x / 32][lane][r][PlaceInPhase<Functor>(i)] = (*found)[r][i];
          }
        }
      }
    }
    __syncthreads();
    const int first = kAcross > 1 ? 0 : team.index * warps;
    const int column = kAcross > 1 ? team.index : 0;
    Clear<Functor>(found);
#pragma unroll 1
    for (int warp = lane / kAcross; warp < warps; warp += 32 / kAcross) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        A terms[kResults];
#pragma unroll
        for (int i = 0; i < kResults; ++i) {
          if (Functor::PhaseOf(i) == phase) {
            terms[i] = shared[*turn][first + warp][column][r][PlaceInPhase<Functor>(i)];
          }
        }
        AddPhase<Functor>(phase, terms, (*found)[r]);
      }
    }
#pragma unroll
    for (int distance = kAcross; distance < 32; distance *= 2) {
      AddLanes<Functor>(phase, distance, found);
    }
    *turn = 1 - *turn;
  }

 private:
  template <typename Functor>
  __device__ static __forceinline__ void
  AddLanes(int phase, int distance, A (*found)[kRows][kResults]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      A others[kResults];
#pragma unroll
      for (int i = 0; i < kResults; ++i) {
        if (Functor::PhaseOf(i) == phase) {
          others[i] = __shfl_xor_sync(0xFFFFFFFFU, (*found)[r][i], distance);
        }
      }
      AddPhase<Functor>(phase, others, (*found)[r]);
    }
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_TEAM_CUH_
