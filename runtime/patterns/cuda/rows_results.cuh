#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_RESULTS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_RESULTS_CUH_

#include <cmath>

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

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_RESULTS_CUH_
