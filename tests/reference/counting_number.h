#ifndef GRADSMITH_TESTS_REFERENCE_COUNTING_NUMBER_H_
#define GRADSMITH_TESTS_REFERENCE_COUNTING_NUMBER_H_

#include <algorithm>
#include <cmath>
#include <limits>

/// The number in which oracles compute: with it, a plain formula says how exact its value is.
namespace gradsmith::reference {

/// kUnderflow is what an accumulator of floats loses of numbers near 0, in units of its roundoff.
inline constexpr long double kUnderflow = 0x1p-126L;

/// CountingNumber is a value that knows how exact it is. What operators and functions make of such
/// numbers has the rounding errors of its arguments, carried on to first order, and its own.
struct CountingNumber {
  long double value = 0;
  /// First-order bound of the rounding error of an accumulator that computes it, in units of its
  /// unit roundoff.
  long double error = 0;
  /// The power of two that it and all it was made of are multiples of, while it is exact.
  long double unit = 1;
  /// No partial result is larger, counted in the unit of each.
  long double bound = 0;
  /// How far the nearest place is at which the function bends, jumps or ends.
  long double margin = 4;
  /// What its accumulator loses of numbers near 0, in units of its roundoff.
  long double underflow = kUnderflow;
};

// Oracles compute with many millions of these numbers: what they do most is compiled into them.
namespace counting {

using Real = long double;

inline constexpr Real kFar = std::numeric_limits<Real>::infinity();

/// Infinity is not rounded.
inline Real Rounding(Real value, Real count, Real underflow) {
  return std::isinf(value) ? 0 : count * std::max(std::abs(value), underflow);
}

/// The first-order error of a product of an error and a slope, of which either may be zero.
inline Real Carried(Real slope, Real error) {
  return error == 0 || slope == 0 ? 0 : std::abs(slope) * error;
}

inline CountingNumber
Known(Real value, Real unit, Real bound, Real margin, Real error, Real underflow) {
  return {
      .value = value,
      .error = error,
      .unit = unit,
      .bound = std::isfinite(value) ? std::max(bound, std::abs(value) / unit) : bound,
      .margin = margin,
      .underflow = underflow};
}

inline Real LargerBound(const CountingNumber& a, const CountingNumber& b) {
  return std::max(a.bound, b.bound);
}

inline Real SmallerUnderflow(const CountingNumber& a, const CountingNumber& b) {
  return std::min(a.underflow, b.underflow);
}

inline Real SmallerMargin(const CountingNumber& a, const CountingNumber& b) {
  return std::min(a.margin, b.margin);
}

inline CountingNumber Sum(const CountingNumber& a, const CountingNumber& b, Real sign) {
  const Real value = a.value + sign * b.value;
  const Real underflow = SmallerUnderflow(a, b);
  return Known(
      value, std::min(a.unit, b.unit), LargerBound(a, b), SmallerMargin(a, b),
      a.error + b.error + Rounding(value, 1, underflow), underflow);
}

}  // namespace counting

/// Given returns a number of the data, which accumulators have as it is.
inline CountingNumber Given(long double value) {
  return counting::Known(value, 1, 0, counting::kFar, 0, kUnderflow);
}

inline CountingNumber operator+(const CountingNumber& a, const CountingNumber& b) {
  return counting::Sum(a, b, 1);
}

inline CountingNumber operator-(const CountingNumber& a, const CountingNumber& b) {
  return counting::Sum(a, b, -1);
}

inline CountingNumber operator*(const CountingNumber& a, const CountingNumber& b) {
  const counting::Real value = a.value * b.value;
  const counting::Real underflow = counting::SmallerUnderflow(a, b);
  return counting::Known(
      value, a.unit * b.unit, counting::LargerBound(a, b), counting::SmallerMargin(a, b),
      counting::Carried(b.value, a.error) + counting::Carried(a.value, b.error) +
          counting::Rounding(value, 1, underflow),
      underflow);
}

inline CountingNumber operator-(const CountingNumber& x) {
  CountingNumber result = x;
  result.value = -result.value;
  return result;
}

/// Exactly returns a number of the data that may be no integer, for kernels that lose nothing near
/// 0: what is made of it has no more errors than roundings.
CountingNumber Exactly(long double value);
/// Constant returns a number of a formula or an attribute, which accumulators may have to round.
CountingNumber Constant(long double value);

CountingNumber operator/(const CountingNumber& a, const CountingNumber& b);
/// Products and quotients that are 0 where the first number is.
CountingNumber Mul0(const CountingNumber& a, const CountingNumber& b);
CountingNumber Div0(const CountingNumber& a, const CountingNumber& b);

/// Comparisons are 1 or 0, with an error where rounding may have decided.
CountingNumber Less(const CountingNumber& a, const CountingNumber& b);
CountingNumber LessEqual(const CountingNumber& a, const CountingNumber& b);
CountingNumber Greater(const CountingNumber& a, const CountingNumber& b);
CountingNumber GreaterEqual(const CountingNumber& a, const CountingNumber& b);
CountingNumber Equal(const CountingNumber& a, const CountingNumber& b);
CountingNumber NotEqual(const CountingNumber& a, const CountingNumber& b);
CountingNumber And(const CountingNumber& a, const CountingNumber& b);
CountingNumber Or(const CountingNumber& a, const CountingNumber& b);
CountingNumber Not(const CountingNumber& x);
/// What is not selected counts for nothing, unless rounding may have selected it.
CountingNumber
Where(const CountingNumber& condition, const CountingNumber& a, const CountingNumber& b);

CountingNumber Abs(const CountingNumber& x);
CountingNumber Sign(const CountingNumber& x);
CountingNumber Min(const CountingNumber& a, const CountingNumber& b);
CountingNumber Max(const CountingNumber& a, const CountingNumber& b);

CountingNumber Pow(const CountingNumber& base, const CountingNumber& exponent);
CountingNumber Exp(const CountingNumber& x);
CountingNumber Expm1(const CountingNumber& x);
CountingNumber Log(const CountingNumber& x);
CountingNumber Log1p(const CountingNumber& x);
CountingNumber Erf(const CountingNumber& x);
CountingNumber Erfc(const CountingNumber& x);
CountingNumber Tanh(const CountingNumber& x);
CountingNumber Cdf(const CountingNumber& x);
CountingNumber Pdf(const CountingNumber& x);
CountingNumber Sigmoid(const CountingNumber& x);
CountingNumber Softplus(const CountingNumber& x);
CountingNumber Sqrt(const CountingNumber& x);
/// 1 / sqrt(x).
CountingNumber Rsqrt(const CountingNumber& x);
CountingNumber Sin(const CountingNumber& x);
CountingNumber Cos(const CountingNumber& x);
CountingNumber Tan(const CountingNumber& x);
CountingNumber Asin(const CountingNumber& x);
CountingNumber Acos(const CountingNumber& x);
CountingNumber Atan(const CountingNumber& x);
CountingNumber Sinh(const CountingNumber& x);
CountingNumber Cosh(const CountingNumber& x);
CountingNumber Asinh(const CountingNumber& x);
CountingNumber Acosh(const CountingNumber& x);
CountingNumber Atanh(const CountingNumber& x);
/// The angle of the point (x, y), from -pi to pi.
CountingNumber Atan2(const CountingNumber& y, const CountingNumber& x);

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_COUNTING_NUMBER_H_
