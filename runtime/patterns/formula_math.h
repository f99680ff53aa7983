#ifndef GRADSMITH_PATTERNS_FORMULA_MATH_H_
#define GRADSMITH_PATTERNS_FORMULA_MATH_H_

#include <cmath>
#include <type_traits>

#include "patterns/functor.h"

/// The functions of the language of formulas (docs/schema.md), for CPU and CUDA alike. A is float
/// or double. All are as precise as the standard library's; none overflows where its value does
/// not. Kernels compile it as well: plain C++17.
namespace gradsmith::formula {

template <typename A>
inline constexpr A kPi = A{3.141592653589793};  // NOLINT(modernize-use-std-numbers): not in C++17

/// The density of the standard normal distribution at 0.
template <typename A>
inline constexpr A kDensityAt0 = A{0.3989422804014327};

#define GRADSMITH_FORMULA_FUNCTION(Name, function) \
  template <typename A>                            \
  GRADSMITH_FUNCTOR A Name(A x) {                  \
    return function(x);                            \
  }
GRADSMITH_FORMULA_FUNCTION(Expm1, std::expm1)
GRADSMITH_FORMULA_FUNCTION(Log, std::log)
GRADSMITH_FORMULA_FUNCTION(Log1p, std::log1p)
GRADSMITH_FORMULA_FUNCTION(Erf, std::erf)
GRADSMITH_FORMULA_FUNCTION(Sqrt, std::sqrt)
GRADSMITH_FORMULA_FUNCTION(Abs, std::abs)
GRADSMITH_FORMULA_FUNCTION(Sin, std::sin)
GRADSMITH_FORMULA_FUNCTION(Cos, std::cos)
GRADSMITH_FORMULA_FUNCTION(Tan, std::tan)
GRADSMITH_FORMULA_FUNCTION(Asin, std::asin)
GRADSMITH_FORMULA_FUNCTION(Acos, std::acos)
GRADSMITH_FORMULA_FUNCTION(Atan, std::atan)
GRADSMITH_FORMULA_FUNCTION(Sinh, std::sinh)
GRADSMITH_FORMULA_FUNCTION(Cosh, std::cosh)
GRADSMITH_FORMULA_FUNCTION(Asinh, std::asinh)
GRADSMITH_FORMULA_FUNCTION(Acosh, std::acosh)
GRADSMITH_FORMULA_FUNCTION(Atanh, std::atanh)
#undef GRADSMITH_FORMULA_FUNCTION

/// log(1 + exp(x)). The exponent is never positive.
template <typename A>
GRADSMITH_FUNCTOR A Softplus(A x) {
  const A rest = std::log1p(std::exp(-std::abs(x)));
  return x > A{0} ? x + rest : rest;
}

template <typename A>
GRADSMITH_FUNCTOR A Rsqrt(A x) {
  return A{1} / std::sqrt(x);
}

/// 1, -1, or x itself where that is 0 or NaN.
template <typename A>
GRADSMITH_FUNCTOR A Sign(A x) {
  if (x > A{0}) {
    return A{1};
  }
  return x < A{0} ? A{-1} : x;
}

template <typename A>
GRADSMITH_FUNCTOR A Pow(A base, A exponent) {
  return std::pow(base, exponent);
}

/// The angle of the point (x, y), from -pi to pi.
template <typename A>
GRADSMITH_FUNCTOR A Atan2(A y, A x) {
  return std::atan2(y, x);
}

/// The smaller of two, or NaN where one is.
template <typename A>
GRADSMITH_FUNCTOR A Min(A a, A b) {
  return std::isnan(a) || a < b ? a : b;
}

/// The larger of two, or NaN where one is.
template <typename A>
GRADSMITH_FUNCTOR A Max(A a, A b) {
  return std::isnan(a) || a > b ? a : b;
}

/// a * b, and 0 where a is 0, whatever b is. A product comes last, which a sum is fused with.
template <typename A>
GRADSMITH_FUNCTOR A Mul0(A a, A b) {
  return a * (a == A{0} ? A{0} : b);
}

namespace internal {

/// RestOfProduct is what rounding took from a product, a * b - product, of numbers that a float may
/// be as large as. The halves of a double have 24 and 29 digits, so that no product of two is
/// rounded. A fused operation would be a call where the processor may lack it.
template <typename A>
GRADSMITH_FUNCTOR A RestOfProduct(A a, A b, A product) {
  if constexpr (std::is_same_v<A, double>) {
    const double a_high = static_cast<float>(a);
    const double b_high = static_cast<float>(b);
    const double a_low = a - a_high;
    const double b_low = b - b_high;
    return ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low;
  } else {
    return static_cast<A>(static_cast<double>(a) * b - product);
  }
}

}  // namespace internal

/// Precise has the functions for which kernels whose results are rounded to 16 bits have quicker
/// ones: those of Fast (patterns/cuda/fast_math.cuh).
struct Precise {
  template <typename A>
  GRADSMITH_FUNCTOR static A Exp(A x) {
    return std::exp(x);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static A Erfc(A x) {
    return std::erfc(x);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static A Tanh(A x) {
    return std::tanh(x);
  }
  /// 1 / (1 + exp(-x)). The exponent is never positive.
  template <typename A>
  GRADSMITH_FUNCTOR static A Sigmoid(A x) {
    const A power = std::exp(-std::abs(x));
    return (x < A{0} ? power : A{1}) / (A{1} + power);
  }
  /// The distribution function of the standard normal distribution. Far below 0 its logarithm is
  /// steep, and what rounding takes from the argument of erfc comes back as a factor: the quotient
  /// of the slope of erfc and erfc at s is close to -2 * s - 1 / (s + sqrt(pi) / 2).
  template <typename A>
  GRADSMITH_FUNCTOR static A Cdf(A x) {
    constexpr A kFactor = A{-0.7071067811865476};
    constexpr double kRest = 4.8336466567264567e-17;  // of 1 / sqrt(2), beyond double
    constexpr A kRestOfFactor = static_cast<A>((-0.7071067811865476 - kFactor) + kRest);
    const A scaled = x * kFactor;
    const A half = A{0.5} * std::erfc(scaled);
    if (!(x < A{0} && x > -kFarthest)) {
      return half;
    }
    const A rest = internal::RestOfProduct(x, kFactor, scaled) + x * kRestOfFactor;
    const A slope = A{2} * scaled + A{1} / (scaled + A{0.8862269254527580});
    return half - half * (slope * rest);
  }
  /// The density of the standard normal distribution.
  template <typename A>
  GRADSMITH_FUNCTOR static A Pdf(A x) {
    const A square = x * x;
    const A power = kDensityAt0<A> * std::exp(A{-0.5} * square);
    if (!(std::abs(x) < kFarthest)) {
      return power;  // 0 or NaN
    }
    return power - power * (A{0.5} * internal::RestOfProduct(x, x, square));
  }
  template <typename A>
  GRADSMITH_FUNCTOR static A Quotient(A a, A b) {
    return a / b;
  }
  /// a / count, of a number of places, which is the same for all elements.
  template <typename A>
  GRADSMITH_FUNCTOR static A QuotientByCount(A a, A count) {
    return a / count;
  }
  /// a / b, and 0 where a is 0, whatever b is.
  template <typename A>
  GRADSMITH_FUNCTOR static A Div0(A a, A b) {
    return a == A{0} ? A{0} : Quotient(a, b);
  }

 private:
  /// Beyond this the normal distribution has nothing left in double, and in float from 15 on.
  static constexpr int kFarthest = 39;
};

}  // namespace gradsmith::formula

#endif  // GRADSMITH_PATTERNS_FORMULA_MATH_H_
