#ifndef GRADSMITH_CUDA_EXACTNESS_H_
#define GRADSMITH_CUDA_EXACTNESS_H_

#include "cuda/tensor_ops.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

namespace gradsmith::cuda {

/// Exactness is what is asked of a result.
enum class Exactness : unsigned char {
  /// As exact as is promised of the type: in float however many products are added up.
  kPromised,
  /// As if every product were added up in the accumulator's type and rounded once.
  kStrict,
  /// As exact as what is in general use: Winograd's transforms in float, and partial sums that are
  /// stored in half.
  kUsual,
  /// As exact as TF32 is.
  kTf32
};

/// CheckDifference is an error where a result is further from what was expected than a type and the
/// number of summed terms allow. `cut_off_terms` of them may be products of tensor cores, added to
/// one float sum.
Status CheckDifference(
    const Difference& difference,
    DataType type,
    double terms,
    Exactness exactness,
    double cut_off_terms = 0);

/// RelativeError returns how far a result is from what was expected, relative to its norm.
double RelativeError(const Difference& difference);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_EXACTNESS_H_
