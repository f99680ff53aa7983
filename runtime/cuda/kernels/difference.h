#ifndef GRADSMITH_CUDA_KERNELS_DIFFERENCE_H_
#define GRADSMITH_CUDA_KERNELS_DIFFERENCE_H_

/// How far a result is from what it should be, as kernels add it up and the host reads it. Plain
/// C++17, and without initialisers, so that blocks can share it.
namespace gradsmith::cuda {

struct Difference {
  double squared_error;           ///< sum of (a - b)^2
  double squared_expected;        ///< sum of b^2, or of what b was summed from
  double largest_error;           ///< max |a - b|
  unsigned long long not_finite;  ///< elements where a or b is NaN or infinite; left out above
  /// Elements further from b than one rounding of their type; only checks of samples tell.
  unsigned long long rounded_twice;
  unsigned long long compared;  ///< elements; only checks of samples tell
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_DIFFERENCE_H_
