#ifndef GRADSMITH_TESTS_SUPPORT_COMPARE_H_
#define GRADSMITH_TESTS_SUPPORT_COMPARE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradsmith/types.h"
#include "reference/oracle.h"
#include "support/subject.h"

namespace gradsmith::support {

/// AllowedError returns how far an element may be from what the oracle says, if the kernel sums in
/// `accumulator` and stores in `stored`:
///
///     (u_accumulator + u_double) * error  +  u_stored * |value|  +  half the smallest number of
///     `stored`
///
/// u is the unit roundoff: 2^-24 for float, 2^-53 for double, 2^-11 for MLFloat16, 2^-8 for
/// BFloat16. `error` is the oracle's bound, (terms + a few) * sum |a| |b|: the standard first-order
/// bound of a sum of rounded products in any order. u_double stands for the oracle's own rounding.
/// The second term is taken a little larger, because what is rounded on storing is itself off by
/// the first.
double AllowedError(DataType accumulator, DataType stored, double value, double error);

/// IndexText returns the index of the element at `position`, last dimension fastest: "[0, 2, 1]".
std::string IndexText(const reference::Shape& dims, std::size_t position);

/// CompareElements fails with the first element that is further from `expected` than `allowed`
/// says, and how many there are. NaN is expected where `expected` has it.
void CompareElements(
    const std::string& doing,
    const std::string& tensor,
    const std::vector<double>& actual,
    const reference::Tensor& expected,
    const std::function<double(std::size_t)>& allowed,
    Report& report);

/// CompareWithin compares by AllowedError. An infinity stands for the number at which its type
/// overflows.
void CompareWithin(
    const Subject& subject,
    const std::string& doing,
    const TensorSpec& spec,
    const TestTensor& actual,
    const reference::Expected& expected,
    Report& report);

/// CompareExactly compares with zero tolerance.
void CompareExactly(
    const std::string& doing,
    const TensorSpec& spec,
    const TestTensor& actual,
    const reference::Expected& expected,
    Report& report);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_COMPARE_H_
