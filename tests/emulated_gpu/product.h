#ifndef GRADSMITH_TESTS_EMULATED_GPU_PRODUCT_H_
#define GRADSMITH_TESTS_EMULATED_GPU_PRODUCT_H_

#include <bit>
#include <cstdint>

#include "emulated_gpu/block.h"

namespace emulated_gpu {

// Numbers that tensor cores multiply: kEach of them in a register.

struct Half {
  using Bits = std::uint32_t;
  using Sum = float;
  static constexpr int kEach = 2;
  /// Its exponent is 112 less than float's, whatever the exponent; that of what is not finite is
  /// float's largest.
  static float Get(Bits bits, int i) {
    const Bits half = bits >> (16 * i);
    const float size = std::bit_cast<float>((half & 0x7FFFU) << 13U) * 0x1p112F;
    const Bits beyond = (half & 0x7C00U) == 0x7C00U ? 0x7F800000U : 0U;
    return std::bit_cast<float>(std::bit_cast<Bits>(size) | beyond | (half & 0x8000U) << 16U);
  }
};

struct Bfloat16 {
  using Bits = std::uint32_t;
  using Sum = float;
  static constexpr int kEach = 2;
  static float Get(Bits bits, int i) { return std::bit_cast<float>(bits >> (16 * i) << 16U); }
};

struct Tf32 {
  using Bits = std::uint32_t;
  using Sum = float;
  static constexpr int kEach = 1;
  static float Get(Bits bits, int /*i*/) { return std::bit_cast<float>(bits & 0xFFFFE000U); }
};

struct Double {
  using Bits = double;
  using Sum = double;
  static constexpr int kEach = 1;
  static double Get(Bits value, int /*i*/) { return value; }
};

/// The matrices of a warp's product on tensor cores: sums += a * b. A row of a is in 8 registers,
/// and so is a column of b.
template <typename Number>
struct Product {
  typename Number::Bits a[16][8];
  typename Number::Bits b[8][8];  // of each register its columns
  typename Number::Sum sums[16][8];
};

/// Adds the product to its sums, term after term.
void Multiply(Product<Half>* product);
void Multiply(Product<Bfloat16>* product);
void Multiply(Product<Tf32>* product);
void Multiply(Product<Double>* product);

/// The same of a product that is given to an exchange.
template <typename Product>
void MultiplyGiven(Exchanged* exchanged) {
  static_assert(sizeof(Product) <= sizeof(exchanged->bytes));
  Multiply(reinterpret_cast<Product*>(exchanged->bytes));
}

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_PRODUCT_H_
