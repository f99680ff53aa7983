#ifndef GRADSMITH_CORE_ROUNDING_H_
#define GRADSMITH_CORE_ROUNDING_H_

#include <algorithm>
#include <cmath>

namespace gradsmith::internal {

/// kPromisedOfFloat is how far, relative to its norm, a result in float may be from the exact one
/// where no policy allows more.
inline constexpr double kPromisedOfFloat = 1e-6;

/// AllowedOfStrictFloat returns how far, relative to its norm, a result may be from the exact one
/// if each element sums so many products of floats. Added up one after the other they are off by
/// 1.7e-8 times the root of their number: where nobody adds them up in a better way, the promise
/// cannot be kept.
inline double AllowedOfStrictFloat(double terms) {
  return kPromisedOfFloat + (3e-8 * std::sqrt(terms));
}

/// RelativeError returns how far a result is from the exact one, as a share of the exact one's
/// norm: from the sums of the squares of both. Where all that is expected is zero, anything else is
/// far off.
inline double RelativeError(double squared_error, double squared_expected) {
  constexpr double kLeast = 1e-300;
  return std::sqrt(squared_error) / std::sqrt(std::max(squared_expected, kLeast));
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ROUNDING_H_
