#ifndef GRADSMITH_TESTS_SUPPORT_ELEMENTS_H_
#define GRADSMITH_TESTS_SUPPORT_ELEMENTS_H_

#include <cstddef>
#include <vector>

#include "gradsmith/types.h"

/// The element types, told by their formats and not by the library's conversions, which are under
/// test too.
namespace gradsmith::support {

/// Digits returns how many bits a significand has, the leading one among them.
int Digits(DataType type);

/// UnitRoundoff returns the largest relative error of rounding to nearest.
double UnitRoundoff(DataType type);

/// SmallestPositive returns the smallest subnormal number.
double SmallestPositive(DataType type);

/// OverflowLimit returns the power of two that the largest number lies just below.
double OverflowLimit(DataType type);

/// Round returns the number of the type that is nearest to `value`, ties to even; overflow gives
/// infinity. Of integers it returns the integral part, of bool 0 or 1.
double Round(DataType type, double value);

/// Encode writes `value`, rounded, as one element.
void Encode(DataType type, double value, std::byte* element);

/// Decode reads one element.
double Decode(DataType type, const std::byte* element);

/// RoundAll rounds every value.
std::vector<double> RoundAll(DataType type, std::vector<double> values);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_ELEMENTS_H_
