#include "reference/counting_number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace gradsmith::reference {

namespace {

using counting::Carried;
using counting::kFar;
using counting::Known;
using counting::LargerBound;
using counting::Real;
using counting::Rounding;
using counting::SmallerMargin;
using counting::SmallerUnderflow;

/// IEEE 754 has square roots rounded once, and so have CPUs and CUDA.
constexpr Real kOfRoot = 1;
/// Roundings of a library's function that is off by a few units in the last place.
constexpr Real kOfFunction = 16;
/// More than any accumulator's roundoff: two numbers that are as near may compare either way.
constexpr Real kRoundoff = 0x1p-23L;

/// 2 to the power of -digits.
Real Unit(int digits) {
  return 1 / static_cast<Real>(std::uint64_t{1} << static_cast<unsigned>(digits));
}

/// The largest power of two, of 1 and less, that a number is a multiple of; no smaller than 2 to
/// the power of -60.
Real UnitOf(Real value) {
  constexpr int kDigits = 60;
  constexpr Real kOne = 0x1p60L;
  const Real magnitude = std::abs(value);
  if (!(magnitude < 0x1p63L)) {
    return 1;
  }
  const auto whole = static_cast<std::uint64_t>(magnitude);
  const Real fraction = (magnitude - static_cast<Real>(whole)) * kOne;
  const auto digits = static_cast<std::uint64_t>(fraction);
  if (digits == 0 && fraction == 0) {
    return 1;
  }
  return Unit(static_cast<Real>(digits) == fraction ? kDigits - std::countr_zero(digits) : kDigits);
}

bool IsPowerOfTwo(Real value) {
  int exponent = 0;
  return std::abs(std::frexp(value, &exponent)) == 0.5L;
}

CountingNumber Compared(const CountingNumber& a, const CountingNumber& b, bool value) {
  const Real distance = std::abs(a.value - b.value);
  const Real error = a.error + b.error;
  const bool is_sure = error == 0 || !(distance <= error * kRoundoff);
  const Real margin = std::isnan(distance) ? kFar : distance;
  return Known(
      value ? 1 : 0, 1, LargerBound(a, b), std::min(SmallerMargin(a, b), margin), is_sure ? 0 : 1,
      SmallerUnderflow(a, b));
}

CountingNumber Joined(const CountingNumber& a, const CountingNumber& b, bool value) {
  return Known(
      value ? 1 : 0, 1, LargerBound(a, b), SmallerMargin(a, b), std::max(a.error, b.error),
      SmallerUnderflow(a, b));
}

CountingNumber Extremum(const CountingNumber& a, const CountingNumber& b, bool takes_first) {
  const bool is_first = std::isnan(a.value) || (takes_first && !std::isnan(b.value));
  CountingNumber result = is_first ? a : b;
  const Real distance = std::abs(a.value - b.value);
  result.margin = std::min(SmallerMargin(a, b), std::isnan(distance) ? kFar : distance);
  result.bound = LargerBound(a, b);
  result.unit = std::min(a.unit, b.unit);
  result.error = std::max(a.error, b.error);
  result.underflow = SmallerUnderflow(a, b);
  return result;
}

/// A function, its derivative, and how far from an argument it ends or grows beyond all bounds.
struct Smooth {
  Real (*value)(Real) = nullptr;
  Real (*slope)(Real) = nullptr;
  Real (*margin)(Real) = [](Real) { return kFar; };
  Real roundings = kOfFunction;
};

CountingNumber Applied(const Smooth& smooth, const CountingNumber& x) {
  const Real value = smooth.value(x.value);
  return Known(
      value, x.unit, x.bound, std::min(x.margin, smooth.margin(x.value)),
      Carried(smooth.slope(x.value), x.error) + Rounding(value, smooth.roundings, x.underflow),
      x.underflow);
}

/// RoundedFirst returns the argument of a function that scales or squares it before another
/// function is given it: those steps round as well.
CountingNumber RoundedFirst(CountingNumber x) {
  x.error += Rounding(x.value, 2, x.underflow);
  return x;
}

Real LogisticOf(Real x) {
  return 1 / (1 + std::exp(-x));
}

Real DensityOf(Real x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>);
}

Real FromZero(Real x) {
  return x;
}

Real FromOne(Real x) {
  return 1 - std::abs(x);
}

constexpr Smooth kExp = {
    .value = [](Real x) { return std::exp(x); },
    .slope = [](Real x) { return std::exp(x); }};
constexpr Smooth kExpm1 = {
    .value = [](Real x) { return std::expm1(x); },
    .slope = [](Real x) { return std::exp(x); }};
constexpr Smooth kLog = {
    .value = [](Real x) { return std::log(x); },
    .slope = [](Real x) { return 1 / x; },
    .margin = &FromZero};
constexpr Smooth kLog1p = {
    .value = [](Real x) { return std::log1p(x); },
    .slope = [](Real x) { return 1 / (1 + x); },
    .margin = [](Real x) { return 1 + x; }};
constexpr Smooth kErf = {
    .value = [](Real x) { return std::erf(x); },
    .slope = [](Real x) { return 2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-x * x); }};
constexpr Smooth kErfc = {
    .value = [](Real x) { return std::erfc(x); },
    .slope = [](Real x) { return -2 * std::numbers::inv_sqrtpi_v<Real> * std::exp(-x * x); }};
constexpr Smooth kCdf = {
    .value = [](Real x) { return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2; },
    .slope = &DensityOf};
constexpr Smooth kPdf = {.value = &DensityOf, .slope = [](Real x) { return -x * DensityOf(x); }};
constexpr Smooth kTanh = {
    .value = [](Real x) { return std::tanh(x); },
    .slope = [](Real x) { return 1 / (std::cosh(x) * std::cosh(x)); }};
constexpr Smooth kSigmoid = {.value = &LogisticOf, .slope = [](Real x) {
                               return LogisticOf(x) * LogisticOf(-x);
                             }};
constexpr Smooth kSoftplus = {
    .value = [](Real x) { return x > 100 ? x : std::log1p(std::exp(x)); },
    .slope = &LogisticOf};
constexpr Smooth kSqrt = {
    .value = [](Real x) { return std::sqrt(x); },
    .slope = [](Real x) { return 0.5L / std::sqrt(x); },
    .margin = &FromZero,
    .roundings = kOfRoot};
constexpr Smooth kRsqrt = {
    .value = [](Real x) { return 1 / std::sqrt(x); },
    .slope = [](Real x) { return -0.5L / (x * std::sqrt(x)); },
    .margin = &FromZero};
constexpr Smooth kSin = {
    .value = [](Real x) { return std::sin(x); },
    .slope = [](Real x) { return std::cos(x); }};
constexpr Smooth kCos = {
    .value = [](Real x) { return std::cos(x); },
    .slope = [](Real x) { return -std::sin(x); }};
constexpr Smooth kTan = {
    .value = [](Real x) { return std::tan(x); },
    .slope = [](Real x) { return 1 / (std::cos(x) * std::cos(x)); },
    .margin = [](Real x) { return std::abs(std::cos(x)) / 2; }};
constexpr Smooth kAsin = {
    .value = [](Real x) { return std::asin(x); },
    .slope = [](Real x) { return 1 / std::sqrt(1 - x * x); },
    .margin = &FromOne};
constexpr Smooth kAcos = {
    .value = [](Real x) { return std::acos(x); },
    .slope = [](Real x) { return -1 / std::sqrt(1 - x * x); },
    .margin = &FromOne};
constexpr Smooth kAtan = {
    .value = [](Real x) { return std::atan(x); },
    .slope = [](Real x) { return 1 / (1 + x * x); }};
constexpr Smooth kSinh = {
    .value = [](Real x) { return std::sinh(x); },
    .slope = [](Real x) { return std::cosh(x); }};
constexpr Smooth kCosh = {
    .value = [](Real x) { return std::cosh(x); },
    .slope = [](Real x) { return std::sinh(x); }};
constexpr Smooth kAsinh = {
    .value = [](Real x) { return std::asinh(x); },
    .slope = [](Real x) { return 1 / std::hypot(x, Real{1}); }};
constexpr Smooth kAcosh = {
    .value = [](Real x) { return std::acosh(x); },
    .slope = [](Real x) { return 1 / std::sqrt((x - 1) * (x + 1)); },
    .margin = [](Real x) { return x - 1; }};
constexpr Smooth kAtanh = {
    .value = [](Real x) { return std::atanh(x); },
    .slope = [](Real x) { return 1 / ((1 - x) * (1 + x)); },
    .margin = &FromOne};

}  // namespace

CountingNumber Exactly(Real value) {
  return Known(value, UnitOf(value), 0, kFar, 0, 0);
}

CountingNumber Constant(Real value) {
  const bool is_short = static_cast<Real>(static_cast<float>(value)) == value;
  return Known(
      value, UnitOf(value), 0, kFar, is_short ? 0 : Rounding(value, 1, kUnderflow), kUnderflow);
}

/// Exact where it is by a power of two, or its value whole. By a power of two, its unit is as large
/// as its value says.
CountingNumber operator/(const CountingNumber& a, const CountingNumber& b) {
  const Real value = a.value / b.value;
  const Real unit = IsPowerOfTwo(b.value)
                        ? std::max(a.unit / std::abs(b.value), std::min(a.unit, UnitOf(value)))
                        : a.unit;
  const Real underflow = SmallerUnderflow(a, b);
  const Real margin = std::min(SmallerMargin(a, b), std::abs(b.value));
  return Known(
      value, unit, LargerBound(a, b), margin,
      Carried(1 / b.value, a.error) + Carried(value / b.value, b.error) +
          Rounding(value, 1, underflow),
      underflow);
}

CountingNumber Mul0(const CountingNumber& a, const CountingNumber& b) {
  return a.value == 0 ? a : a * b;
}

CountingNumber Div0(const CountingNumber& a, const CountingNumber& b) {
  return a.value == 0 ? a : a / b;
}

CountingNumber Less(const CountingNumber& a, const CountingNumber& b) {
  return Compared(a, b, a.value < b.value);
}

CountingNumber LessEqual(const CountingNumber& a, const CountingNumber& b) {
  return Compared(a, b, a.value <= b.value);
}

CountingNumber Greater(const CountingNumber& a, const CountingNumber& b) {
  return Compared(a, b, a.value > b.value);
}

CountingNumber GreaterEqual(const CountingNumber& a, const CountingNumber& b) {
  return Compared(a, b, a.value >= b.value);
}

CountingNumber Equal(const CountingNumber& a, const CountingNumber& b) {
  return Compared(a, b, a.value == b.value);
}

CountingNumber NotEqual(const CountingNumber& a, const CountingNumber& b) {
  return Compared(a, b, a.value != b.value);
}

CountingNumber And(const CountingNumber& a, const CountingNumber& b) {
  return Joined(a, b, a.value != 0 && b.value != 0);
}

CountingNumber Or(const CountingNumber& a, const CountingNumber& b) {
  return Joined(a, b, a.value != 0 || b.value != 0);
}

CountingNumber Not(const CountingNumber& x) {
  CountingNumber result = x;
  result.value = 1 - result.value;
  return result;
}

CountingNumber
Where(const CountingNumber& condition, const CountingNumber& a, const CountingNumber& b) {
  const CountingNumber& selected = condition.value != 0 ? a : b;
  const Real doubt = condition.error == 0 ? 0 : std::abs(a.value - b.value) * 0x1p53L;
  return Known(
      selected.value, selected.unit, LargerBound(condition, selected),
      SmallerMargin(condition, selected), selected.error + (std::isnan(doubt) ? 0 : doubt),
      SmallerUnderflow(condition, selected));
}

CountingNumber Abs(const CountingNumber& x) {
  CountingNumber result = x;
  result.value = std::abs(result.value);
  result.margin = std::min(result.margin, result.value);
  return result;
}

CountingNumber Sign(const CountingNumber& x) {
  CountingNumber result = x;
  const Real value = result.value;
  result.margin = std::min(result.margin, std::abs(value));
  if (value != 0 && !std::isnan(value)) {
    result.value = value > 0 ? 1 : -1;
  }
  result.error = 0;
  return result;
}

CountingNumber Min(const CountingNumber& a, const CountingNumber& b) {
  return Extremum(a, b, a.value < b.value);
}

CountingNumber Max(const CountingNumber& a, const CountingNumber& b) {
  return Extremum(a, b, a.value > b.value);
}

CountingNumber Pow(const CountingNumber& base, const CountingNumber& exponent) {
  const Real value = std::pow(base.value, exponent.value);
  const Real by_base = exponent.value * std::pow(base.value, exponent.value - 1);
  const Real underflow = SmallerUnderflow(base, exponent);
  const Real by_exponent = value * std::log(std::abs(base.value));
  return Known(
      value, base.unit, LargerBound(base, exponent),
      std::min(SmallerMargin(base, exponent), std::abs(base.value)),
      Carried(by_base, base.error) + Carried(by_exponent, exponent.error) +
          Rounding(value, kOfFunction, underflow),
      underflow);
}

CountingNumber Atan2(const CountingNumber& y, const CountingNumber& x) {
  const Real value = std::atan2(y.value, x.value);
  const Real underflow = SmallerUnderflow(y, x);
  const Real square = y.value * y.value + x.value * x.value;
  // The angle jumps behind the origin, where y is 0 and x is not positive.
  const Real margin = x.value > 0 ? std::sqrt(square) : std::abs(y.value);
  return Known(
      value, y.unit, LargerBound(y, x), std::min(SmallerMargin(y, x), margin),
      Carried(x.value / square, y.error) + Carried(y.value / square, x.error) +
          Rounding(value, kOfFunction, underflow),
      underflow);
}

CountingNumber Exp(const CountingNumber& x) {
  return Applied(kExp, x);
}

CountingNumber Expm1(const CountingNumber& x) {
  return Applied(kExpm1, x);
}

CountingNumber Log(const CountingNumber& x) {
  return Applied(kLog, x);
}

CountingNumber Log1p(const CountingNumber& x) {
  return Applied(kLog1p, x);
}

CountingNumber Erf(const CountingNumber& x) {
  return Applied(kErf, x);
}

CountingNumber Erfc(const CountingNumber& x) {
  return Applied(kErfc, x);
}

CountingNumber Cdf(const CountingNumber& x) {
  return Applied(kCdf, RoundedFirst(x));
}

CountingNumber Pdf(const CountingNumber& x) {
  return Applied(kPdf, RoundedFirst(x));
}

CountingNumber Tanh(const CountingNumber& x) {
  return Applied(kTanh, x);
}

CountingNumber Sigmoid(const CountingNumber& x) {
  return Applied(kSigmoid, x);
}

CountingNumber Softplus(const CountingNumber& x) {
  return Applied(kSoftplus, x);
}

CountingNumber Sqrt(const CountingNumber& x) {
  return Applied(kSqrt, x);
}

CountingNumber Rsqrt(const CountingNumber& x) {
  return Applied(kRsqrt, x);
}

CountingNumber Sin(const CountingNumber& x) {
  return Applied(kSin, x);
}

CountingNumber Cos(const CountingNumber& x) {
  return Applied(kCos, x);
}

CountingNumber Tan(const CountingNumber& x) {
  return Applied(kTan, x);
}

CountingNumber Asin(const CountingNumber& x) {
  return Applied(kAsin, x);
}

CountingNumber Acos(const CountingNumber& x) {
  return Applied(kAcos, x);
}

CountingNumber Atan(const CountingNumber& x) {
  return Applied(kAtan, x);
}

CountingNumber Sinh(const CountingNumber& x) {
  return Applied(kSinh, x);
}

CountingNumber Cosh(const CountingNumber& x) {
  return Applied(kCosh, x);
}

CountingNumber Asinh(const CountingNumber& x) {
  return Applied(kAsinh, x);
}

CountingNumber Acosh(const CountingNumber& x) {
  return Applied(kAcosh, x);
}

CountingNumber Atanh(const CountingNumber& x) {
  return Applied(kAtanh, x);
}

}  // namespace gradsmith::reference
