#ifndef GRADSMITH_TESTS_RUNTIME_NORMAL_DISTRIBUTION_H_
#define GRADSMITH_TESTS_RUNTIME_NORMAL_DISTRIBUTION_H_

#include <cmath>
#include <numbers>

/// The standard normal distribution in long double, for tests of what the runtime has for it.
namespace gradsmith {

inline long double ExactCdf(long double x) {
  return std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2;
}

inline long double ExactPdf(long double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<long double>);
}

}  // namespace gradsmith

#endif  // GRADSMITH_TESTS_RUNTIME_NORMAL_DISTRIBUTION_H_
