#ifndef GRADSMITH_CUDA_KERNELS_DIFFERENCE_CUH_
#define GRADSMITH_CUDA_KERNELS_DIFFERENCE_CUH_

#include "cuda/kernels/difference.h"

namespace gradsmith::cuda {

/// Adds the difference of a pair of numbers. `squared_expected` may be more than b's square where b
/// is a sum whose terms cancel.
__device__ __forceinline__ void
AddPair(double a, double b, double squared_expected, Difference* found) {
  if (!isfinite(a) || !isfinite(b)) {
    ++found->not_finite;
    return;
  }
  const double error = fabs(a - b);
  found->squared_error += error * error;
  found->squared_expected += squared_expected;
  found->largest_error = fmax(found->largest_error, error);
}

__device__ __forceinline__ void Merge(const Difference& other, Difference* found) {
  found->squared_error += other.squared_error;
  found->squared_expected += other.squared_expected;
  found->largest_error = fmax(found->largest_error, other.largest_error);
  found->not_finite += other.not_finite;
  found->rounded_twice += other.rounded_twice;
  found->compared += other.compared;
}

/// MergeAtomically does as Merge does, into what other blocks add to as well.
__device__ __forceinline__ void MergeAtomically(const Difference& other, Difference* found) {
  atomicAdd(&found->squared_error, other.squared_error);
  atomicAdd(&found->squared_expected, other.squared_expected);
  // Numbers that are not negative are ordered as their bits are.
  atomicMax(
      reinterpret_cast<unsigned long long*>(&found->largest_error),
      static_cast<unsigned long long>(__double_as_longlong(other.largest_error)));
  atomicAdd(&found->not_finite, other.not_finite);
  atomicAdd(&found->rounded_twice, other.rounded_twice);
  atomicAdd(&found->compared, other.compared);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_DIFFERENCE_CUH_
