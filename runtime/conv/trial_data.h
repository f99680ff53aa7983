#ifndef GRADSMITH_CONV_TRIAL_DATA_H_
#define GRADSMITH_CONV_TRIAL_DATA_H_

#include <span>
#include <string>

#include "conv/task.h"
#include "core/uniform_range.h"
#include "gradsmith/types.h"

/// What candidates are tried on. A candidate that is right on friendly data may yet store partial
/// sums in a type that they do not fit, or transform its inputs to numbers beyond its range.
namespace gradsmith::conv {

enum class TrialData : unsigned char {
  /// Numbers in [-1, 1), with which candidates are timed as well.
  kUsual,
  /// Numbers near the type's largest with a mean that is large beside their deviation; the sums of
  /// their products have one sign and come near the largest as well.
  kLargest,
  /// Numbers near the smallest of which all digits count.
  kSmallest
};

/// DataOf lists what a candidate is checked on, the usual first: it alone where less is promised.
std::span<const TrialData> DataOf(bool allow_reduced_accuracy);

/// PrefixOf says in an error which data they were; empty for the usual.
std::string PrefixOf(TrialData data);

/// RangeOfData returns the values of the first factor of the products, and RangeOfFactor of the
/// second, of which each result sums so many terms: numbers of a size that keeps the sums within
/// the type's range.
internal::UniformRange RangeOfData(TrialData data, DataType type);
internal::UniformRange RangeOfFactor(TrialData data, double terms);

/// FactorOf names the operand that is the second factor.
Operand FactorOf(Primitive primitive);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_TRIAL_DATA_H_
