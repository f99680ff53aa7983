#ifndef GRADSMITH_PATTERNS_CUDA_KERNEL_MATH_CUH_
#define GRADSMITH_PATTERNS_CUDA_KERNEL_MATH_CUH_

#include <cmath>
#include <type_traits>

#include "cuda/kernels/ptx.cuh"
#include "patterns/formula_math.h"
#include "patterns/functor.h"

namespace gradsmith::formula {

namespace internal {

/// NormalTail is the polynomial P, highest power first, with which the standard normal
/// distribution beyond a, from 0 to kFarthest, is exp(-a * a / 2) * t * P(t - 0.5), where t is
/// 1 / (1 + kScale * a): within 2^-25 for float, 2^-53 for double. Farther away it is 0.
template <typename A>
struct NormalTail;

template <>
struct NormalTail<float> {
  static constexpr float kFarthest = 15;
  static constexpr float kScale = 0.3F;
  float coefficients[10] = {-0.0206199415F, 0.0196260517F, 0.0359184454F, -0.0364597512F,
                            -0.0775519689F, 0.0290564972F, 0.2220827F,    0.34619884F,
                            0.329158971F,   0.221970613F};
};

template <>
struct NormalTail<double> {
  static constexpr double kFarthest = 39;
  static constexpr double kScale = 0.18;
  double coefficients[22] = {
      0.00095697216346678105, -0.0014327450907897743, -0.0017589792599840166, 0.0031765241721199593,
      0.0034657166836357666,  -0.0047218142654336623, -0.0082279723793936587, 0.0042674026201182119,
      0.019177127857189089,   0.0078699396445153903,  -0.033480293444942537,  -0.061166902713446488,
      -0.011975183471287386,  0.14089419827961245,    0.35775613598847227,    0.55517866583674815,
      0.65897939557693045,    0.64396761715173424,    0.53650843016163679,    0.38852568399757114,
      0.24736237700156527,    0.13935798631253994};
};

/// Q, highest power first, with which exp(r) is 1 + r + r * r * Q(r), within 2^-56 for half a
/// logarithm of 2 to either side of 0 (tools/fit_polynomials.py).
struct ExpRest {
  double coefficients[10] = {2.5000057243771057e-8, 2.7630248163885065e-7,  2.755758638160366e-6,
                             2.4801493099491248e-5, 0.00019841269506578602, 0.0013888888943629575,
                             0.0083333333334944566, 0.041666666666530161,   0.16666666666666413,
                             0.50000000000000106};
};

// In constant memory, where an instruction finds them: as numbers of the code each takes two more.
[[maybe_unused]] static __constant__ ExpRest exp_rest;
[[maybe_unused]] static __constant__ NormalTail<double> normal_tail;

/// Polynomial is that of the coefficients, highest power first, at x.
template <typename A, int kCount>
GRADSMITH_FUNCTOR A Polynomial(const A (&coefficients)[kCount], A x) {
  A sum = coefficients[0];
  for (int i = 1; i < kCount; ++i) {
    sum = sum * x + coefficients[i];
  }
  return sum;
}

/// How far x is from 0, and no farther than where the tail is 0.
template <typename A>
GRADSMITH_FUNCTOR A DistanceFrom0(A x) {
  const A distance = std::abs(x);
  return distance > NormalTail<A>::kFarthest ? NormalTail<A>::kFarthest : distance;
}

}  // namespace internal

/// Device has the functions of Precise (patterns/formula_math.h), as precise, for kernels: where
/// these have no branches, a thread computes its elements side by side.
struct Device : Precise {
  template <typename A>
  static GRADSMITH_FUNCTOR A Exp(A x) {
    if constexpr (std::is_same_v<A, double>) {
      return DoubleExp(x);
    } else {
      return std::exp(x);
    }
  }

  /// It takes one reciprocal, of a number from 1 to 2.
  template <typename A>
  static GRADSMITH_FUNCTOR A Sigmoid(A x) {
    const A power = ExpOfNegative(-std::abs(x));
    return (x < A{0} ? power : A{1}) * ReciprocalFrom1(A{1} + power);
  }

  /// Its reciprocal is found once for all elements of a thread. What the product with that leaves
  /// over makes the result the rounded quotient, but of subnormal numbers at ties, and but for
  /// counts whose digits all are ones, as those of 2^24 - 1, where the instruction's reciprocal is
  /// a unit off.
  template <typename A>
  static GRADSMITH_FUNCTOR A QuotientByCount(A a, A count) {
    const A infinite = cuda::ReciprocalApproximately(count);
    const A reciprocal = count < A{1} ? infinite : ReciprocalFrom1(count);
    const A quotient = a * reciprocal;
    const A rest = std::fma(-quotient, count, a);
    const A corrected = std::fma(rest, reciprocal, quotient);
    return std::abs(rest) > A{0} ? corrected : quotient;  // also where that is infinite, or -0
  }

  template <typename A>
  static GRADSMITH_FUNCTOR A Pdf(A x) {
    return kDensityAt0<A> * Bell(internal::DistanceFrom0(x));
  }

  /// The exponential is that of the density, which has another half of the work.
  template <typename A>
  static GRADSMITH_FUNCTOR A Cdf(A x) {
    const A distance = internal::DistanceFrom0(x);
    const A scaled = internal::NormalTail<A>::kScale * distance;
    const A near = cuda::ReciprocalApproximately(A{1} + scaled);
    // The polynomial is steep where the sum is near 1, and is spared the rounding of that.
    const A error = (A{1} - near) - scaled * near;
    const A rest = near * (error + error * error);
    const A tail = Bell(distance) * ((near + rest) * TailAt((near - A{0.5}) + rest));
    return x < A{0} ? tail : A{1} - tail;
  }

 private:
  /// A number that is 2^52 and half as much: what is added to it loses its fraction, and is then in
  /// the low bits.
  static constexpr double kWhole = 6755399441055744.0;
  static constexpr double kLog2OfE = 1.4426950408889634;
  static constexpr double kLogOf2 = 0.6931471805599453;
  static constexpr double kLogOf2Rest = 2.3190468138462996e-17;

  static GRADSMITH_FUNCTOR float TailAt(float x) {
    return internal::Polynomial(internal::NormalTail<float>{}.coefficients, x);
  }
  static GRADSMITH_FUNCTOR double TailAt(double x) {
    return internal::Polynomial(internal::normal_tail.coefficients, x);
  }

  /// 1 / x, for an x that is 1 or more and not infinite: rounded, or next to it.
  static GRADSMITH_FUNCTOR float ReciprocalFrom1(float x) {
    const float near = cuda::ReciprocalApproximately(x);
    return std::fma(near, std::fma(-x, near, 1.0F), near);
  }
  static GRADSMITH_FUNCTOR double ReciprocalFrom1(double x) {
    const double near = cuda::ReciprocalApproximately(x);
    const double error = std::fma(-x, near, 1.0);
    return std::fma(near, std::fma(error, error, error), near);
  }

  static GRADSMITH_FUNCTOR float ExpOfNegative(float x) { return std::exp(x); }
  static GRADSMITH_FUNCTOR double ExpOfNegative(double x) {
    const double bounded = x < -kLargestExponent ? -kLargestExponent : x;
    return ExpOfSum(bounded, 0.0);
  }

  /// The most that e is raised to, either way: farther away the result is 0 or infinite.
  static constexpr double kLargestExponent = 746;

  /// 2^exponent, which is a normal number; anything where the exponent was found of NaN.
  static GRADSMITH_FUNCTOR double PowerOf2(unsigned exponent) {
    return __hiloint2double(static_cast<int>((exponent + 1023) << 20U), 0);
  }

  /// exp(r) for an r of half a logarithm of 2 to either side of 0.
  static GRADSMITH_FUNCTOR double ExpNear0(double r) {
    const double rest = internal::Polynomial(internal::exp_rest.coefficients, r);
    return std::fma(r, std::fma(r, rest, 1.0), 1.0);
  }

  static GRADSMITH_FUNCTOR double DoubleExp(double x) {
    const double most = x > kLargestExponent ? kLargestExponent : x;
    const double bounded = most < -kLargestExponent ? -kLargestExponent : most;
    const double whole = std::fma(bounded, kLog2OfE, kWhole);
    const double exponent = whole - kWhole;
    const double near = std::fma(exponent, -kLogOf2, bounded);
    const double power = ExpNear0(std::fma(exponent, -kLogOf2Rest, near));
    const int bits = __double2loint(whole);
    const int half = bits >> 1;  // no power of 2 is as large, or as small, as the result may be
    return power * PowerOf2(static_cast<unsigned>(half)) *
           PowerOf2(static_cast<unsigned>(bits - half));
  }

  /// exp(x + rest), for an x from -761 to 0 and a rest that is far smaller.
  static GRADSMITH_FUNCTOR double ExpOfSum(double x, double rest) {
    constexpr unsigned kShift = 128;  // with which the power of 2 is a normal number
    const double whole = std::fma(x, kLog2OfE, kWhole);
    const double exponent = whole - kWhole;
    const double near = std::fma(exponent, -kLogOf2, x);
    const double power = ExpNear0(std::fma(exponent, -kLogOf2Rest, near) + rest);
    return power * PowerOf2(static_cast<unsigned>(__double2loint(whole)) + kShift) * 0x1p-128;
  }

  /// exp(-x * x / 2), x no farther than where the tail is 0, with the digits that the square loses.
  static GRADSMITH_FUNCTOR double Bell(double x) {
    const double half = -0.5 * x;
    const double square = half * x;
    return ExpOfSum(square, std::fma(half, x, -square));
  }
  static GRADSMITH_FUNCTOR float Bell(float x) {
    constexpr float kHalfLog2OfE = 0.72134752F;
    constexpr float kHalfLog2OfERest = 9.6298150e-9F;
    const float square = x * x;
    const float exponent = square * -kHalfLog2OfE;
    float rest = std::fma(square, -kHalfLog2OfE, -exponent);
    rest = std::fma(square, -kHalfLog2OfERest, rest);
    rest = std::fma(std::fma(x, x, -square), -kHalfLog2OfE, rest);
    const float power = cuda::Exp2Approximately(exponent);
    return std::fma(power, rest * static_cast<float>(kLogOf2), power);
  }
};

}  // namespace gradsmith::formula

#endif  // GRADSMITH_PATTERNS_CUDA_KERNEL_MATH_CUH_
