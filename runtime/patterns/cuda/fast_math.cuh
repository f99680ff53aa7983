#ifndef GRADSMITH_PATTERNS_CUDA_FAST_MATH_CUH_
#define GRADSMITH_PATTERNS_CUDA_FAST_MATH_CUH_

#include <cmath>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/kernel_math.cuh"
#include "patterns/formula_math.h"
#include "patterns/functor.h"

namespace gradsmith::formula {

namespace internal {

/// 2^(2 * x), also where it is no normal number, which the instruction knows nothing of.
GRADSMITH_FUNCTOR float SquareOfExp2(float x) {
  const float power = cuda::NormalExp2Approximately(x);
  return power * power;
}

/// exp(-x * x / 2)
GRADSMITH_FUNCTOR float FastBell(float x) {
  constexpr float kQuarterLog2OfE = 0.36067376F;
  return SquareOfExp2(x * x * -kQuarterLog2OfE);
}

}  // namespace internal

/// Fast has the functions of Precise (patterns/formula_math.h) for kernels whose results are
/// rounded to half or bf16: their relative errors are at most 2^-20, of all that is made of an
/// exponential 2^-24 more for each unit of the exponent. They are finite, infinite and NaN where
/// Precise's are.
struct Fast {
  static GRADSMITH_FUNCTOR float Exp(float x) {
    constexpr float kHalfLog2OfE = 0.72134752F;
    return internal::SquareOfExp2(x * kHalfLog2OfE);
  }

  static GRADSMITH_FUNCTOR float Pdf(float x) { return kDensityAt0<float> * internal::FastBell(x); }

  /// As Device has it (kernel_math.cuh), by a polynomial within 2^-22.3 of what it stands for.
  static GRADSMITH_FUNCTOR float Cdf(float x) {
    constexpr float kPolynomial[] = {0.0355234607F, -0.156573005F, 0.205268907F, -0.052686828F,
                                     0.128035345F,  0.100072527F,  0.120728568F, 0.119630947F};
    const float t = cuda::ReciprocalApproximately(1 + 0.3F * std::abs(x));
    const float tail = internal::FastBell(x) * (t * internal::Polynomial(kPolynomial, t));
    return x < 0 ? tail : 1 - tail;
  }

  /// exp(-x * x) * t * P(t), t = 1 / (1 + 0.4 * |x|), where the polynomial P is within 2^-22.9 of
  /// erfc(|x|) * exp(x * x) / t: a minimax fit by weighted least squares.
  static GRADSMITH_FUNCTOR float Erfc(float x) {
    constexpr float kPolynomial[] = {0.05027012F,  -0.18293318F, 0.16913648F,
                                     -0.00565024F, 0.14145114F,  0.16853711F,
                                     0.20784326F,  0.22566958F,  0.22567587F};
    const float t = cuda::ReciprocalApproximately(1 + 0.4F * std::abs(x));
    const float tail = Exp(-x * x) * t * internal::Polynomial(kPolynomial, t);
    return x < 0 ? 2 - tail : tail;
  }

  /// Near 0 by its power series, else 1 - 2 / (exp(2 * |x|) + 1), with the sign of x.
  static GRADSMITH_FUNCTOR float Tanh(float x) {
    constexpr float kNear = 0.25F;
    const float square = x * x;
    const float series =
        x + x * square * (-1 / 3.0F + square * (2 / 15.0F - square * (17 / 315.0F)));
    const float magnitude = 1 - 2 * cuda::ReciprocalApproximately(Exp(2 * std::abs(x)) + 1);
    return std::abs(x) < kNear ? series : std::copysign(magnitude, x);
  }

  static GRADSMITH_FUNCTOR float Sigmoid(float x) {
    const float power = Exp(-std::abs(x));
    return (x < 0 ? power : 1.0F) * cuda::ReciprocalApproximately(1 + power);
  }

  static GRADSMITH_FUNCTOR float Quotient(float a, float b) {
    return cuda::DivideApproximately(a, b);
  }

  static GRADSMITH_FUNCTOR float QuotientByCount(float a, float count) {
    return Quotient(a, count);
  }

  static GRADSMITH_FUNCTOR float Div0(float a, float b) { return a == 0 ? 0.0F : Quotient(a, b); }
};

}  // namespace gradsmith::formula

#endif  // GRADSMITH_PATTERNS_CUDA_FAST_MATH_CUH_
