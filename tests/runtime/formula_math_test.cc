#include "patterns/formula_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/normal_distribution.h"

/// What kernels of the CPU compute formulas with, beside the same in long double.
namespace gradsmith::formula {
namespace {

using Real = long double;

/// The largest error from 0 to `far` either way, in epsilons of the result; of subnormal results,
/// in epsilons of the smallest normal one.
template <typename T>
Real WorstError(T (*function)(T), Real (*exact)(Real), Real far) {
  using Limits = std::numeric_limits<T>;
  constexpr int kSteps = 200'000;
  Real worst = 0;
  for (int i = -kSteps; i <= kSteps; ++i) {
    const T x = static_cast<T>(far * i / kSteps);
    const Real expected = exact(x);
    const Real unit = std::max<Real>(std::abs(expected), Limits::min()) * Limits::epsilon();
    worst = std::max(worst, std::abs(function(x) - expected) / unit);
  }
  return worst;
}

TEST(FormulaMath, NormalDistributionIsPreciseInItsTails) {
  constexpr Real kFarInFloat = 15;
  constexpr Real kFarInDouble = 39;
  EXPECT_LE(WorstError<float>(&Precise::Cdf, &ExactCdf, kFarInFloat), 3);
  EXPECT_LE(WorstError<float>(&Precise::Pdf, &ExactPdf, kFarInFloat), 2);
  EXPECT_LE(WorstError<double>(&Precise::Cdf, &ExactCdf, kFarInDouble), 3);
  EXPECT_LE(WorstError<double>(&Precise::Pdf, &ExactPdf, kFarInDouble), 2);
}

template <typename T>
void ExpectLimits() {
  constexpr T kInfinite = std::numeric_limits<T>::infinity();
  for (const T far : {T{50}, std::numeric_limits<T>::max(), kInfinite}) {
    EXPECT_EQ(Precise::Cdf(far), 1);
    EXPECT_EQ(Precise::Cdf(-far), 0);
    EXPECT_EQ(Precise::Pdf(far), 0);
    EXPECT_EQ(Precise::Pdf(-far), 0);
  }
  EXPECT_TRUE(std::isnan(Precise::Cdf(std::numeric_limits<T>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(Precise::Pdf(std::numeric_limits<T>::quiet_NaN())));
}

TEST(FormulaMath, NormalDistributionFarAway) {
  ExpectLimits<float>();
  ExpectLimits<double>();
}

}  // namespace
}  // namespace gradsmith::formula
