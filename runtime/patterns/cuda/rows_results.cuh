#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_RESULTS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_RESULTS_CUH_

#include <cmath>
#include <cstdint>

#include "patterns/cuda/rows_launch.h"

/// How terms become the results of a functor of the pattern `rows` (IsMax, patterns/rows.h).
namespace gradsmith::cuda {

/// ResultOfNothing returns what a result is before any term.
template <typename Functor, typename A>
__device__ __forceinline__ A ResultOfNothing(int result) {
  return Functor::IsMax(result) ? -static_cast<A>(INFINITY) : A(0);
}

/// ResultOfBoth joins two terms of a result. A maximum passes over what is not a number; sums do
/// not.
template <typename Functor, typename A>
__device__ __forceinline__ A ResultOfBoth(int result, A one, A other) {
  const A most = one < other ? other : one;
  return Functor::IsMax(result) ? most : one + other;
}

template <typename Functor, typename A, int kResults>
__device__ __forceinline__ void ClearResults(A (&found)[kResults]) {
#pragma unroll
  for (int i = 0; i < kResults; ++i) {
    found[i] = ResultOfNothing<Functor, A>(i);
  }
}

/// AddPhase adds terms to a phase's results.
template <typename Functor, typename A, int kResults>
__device__ __forceinline__ void AddPhase(int phase, const A* terms, A (&found)[kResults]) {
#pragma unroll
  for (int i = 0; i < kResults; ++i) {
    if (Functor::PhaseOf(i) == phase) {
      found[i] = ResultOfBoth<Functor>(i, found[i], terms[i]);
    }
  }
}

template <typename Functor, typename A, int kResults>
__device__ __forceinline__ void CopyPhase(int phase, const A (&found)[kResults], A* results) {
#pragma unroll
  for (int i = 0; i < kResults; ++i) {
    if (Functor::PhaseOf(i) == phase) {
      results[i] = found[i];
    }
  }
}

/// PartialsOf returns where a phase leaves what it found of a part of a row.
template <typename A, int kResults>
__device__ __forceinline__ A*
PartialsOf(const RowsLaunch& launch, std::int64_t row, std::int64_t part) {
  return static_cast<A*>(launch.partials) + (row * launch.parts + part) * kResults;
}

/// AddPartials adds what a phase found of every so many parts of a row, from that of this member of
/// a team on: the team's threads together have all of them.
template <typename Functor, typename A, int kResults>
__device__ __forceinline__ void AddPartials(
    int phase,
    const RowsLaunch& launch,
    std::int64_t row,
    int member,
    A (&found)[kResults]) {
#pragma unroll 1
  for (int part = member; part < launch.parts; part += launch.members) {
    AddPhase<Functor>(phase, PartialsOf<A, kResults>(launch, row, part), found);
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_RESULTS_CUH_
