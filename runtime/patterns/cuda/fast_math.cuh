#ifndef GRADSMITH_PATTERNS_CUDA_FAST_MATH_CUH_
#define GRADSMITH_PATTERNS_CUDA_FAST_MATH_CUH_

#include <cmath>

#include "cuda/kernels/ptx.cuh"
#include "patterns/functor.h"

namespace gradsmith::formula {

/// Fast has the functions of Precise (patterns/formula_math.h) for kernels whose results are
/// rounded to half or bf16: their relative errors are at most 2^-20, of exp and erfc 2^-24 more for
/// each unit of the exponent. They are finite, infinite and NaN where Precise's are.
struct Fast {
  static GRADSMITH_FUNCTOR float Exp(float x) {
    constexpr float kLog2OfE = 1.44269504F;
    return cuda::Exp2Approximately(x * kLog2OfE);
  }

  /// exp(-x * x) * t * P(t), t = 1 / (1 + 0.4 * |x|), where the polynomial P is within 2^-22.9 of
  /// erfc(|x|) * exp(x * x) / t: a minimax fit by weighted least squares.
  static GRADSMITH_FUNCTOR float Erfc(float x) {
    constexpr float kPolynomial[] = {0.05027012F,  -0.18293318F, 0.16913648F,
                                     -0.00565024F, 0.14145114F,  0.16853711F,
                                     0.20784326F,  0.22566958F,  0.22567587F};
    const float t = cuda::ReciprocalApproximately(1 + 0.4F * std::abs(x));
    float sum = 0;
    for (const float coefficient : kPolynomial) {
      sum = sum * t + coefficient;
    }
    const float tail = Exp(-x * x) * t * sum;
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

  static GRADSMITH_FUNCTOR float Div0(float a, float b) { return a == 0 ? 0.0F : Quotient(a, b); }
};

}  // namespace gradsmith::formula

#endif  // GRADSMITH_PATTERNS_CUDA_FAST_MATH_CUH_
