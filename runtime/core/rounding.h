#ifndef GRADSMITH_CORE_ROUNDING_H_
#define GRADSMITH_CORE_ROUNDING_H_

#include <cmath>

namespace gradsmith::internal {

/// AllowedOfStrictFloat returns how far, relative to its norm, a result may be from the exact one
/// if each element sums so many products of floats. Added up one after the other they are off by
/// 1.7e-8 times the root of their number.
inline double AllowedOfStrictFloat(double terms) {
  return 1e-6 + (3e-8 * std::sqrt(terms));
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ROUNDING_H_
