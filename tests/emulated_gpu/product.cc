#include "emulated_gpu/product.h"

#include <cstring>

// Most of the time that emulated kernels take is spent here: a processor's wider vectors are used
// where it has them. They multiply and add as the narrow ones do, without fusing the two.
#if defined(__x86_64__) && defined(__GLIBC__)
#define EMULATED_GPU_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define EMULATED_GPU_VECTORS
#endif

namespace emulated_gpu {

namespace {

/// Numbers are unpacked once for the warp, a row of registers at a time.
template <typename Number>
[[gnu::always_inline]] inline void AddTo(Product<Number>* product) {
  using Sum = typename Number::Sum;
  using Row [[gnu::vector_size(8 * sizeof(Sum))]] = Sum;
  Sum a[16][Number::kEach][8];
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < Number::kEach; ++k) {
      for (int place = 0; place < 8; ++place) {
        a[row][k][place] = Number::Get(product->a[row][place], k);
      }
    }
  }
  Sum b[8][Number::kEach][8];
  for (int place = 0; place < 8; ++place) {
    for (int k = 0; k < Number::kEach; ++k) {
      for (int column = 0; column < 8; ++column) {
        b[place][k][column] = Number::Get(product->b[place][column], k);
      }
    }
  }
  for (int row = 0; row < 16; ++row) {
    Row sums;
    std::memcpy(&sums, product->sums[row], sizeof(sums));
    for (int place = 0; place < 8; ++place) {
      for (int k = 0; k < Number::kEach; ++k) {
        Row columns;
        std::memcpy(&columns, b[place][k], sizeof(columns));
        sums += a[row][k][place] * columns;
      }
    }
    std::memcpy(product->sums[row], &sums, sizeof(sums));
  }
}

}  // namespace

EMULATED_GPU_VECTORS void Multiply(Product<Half>* product) {
  AddTo(product);
}

EMULATED_GPU_VECTORS void Multiply(Product<Bfloat16>* product) {
  AddTo(product);
}

EMULATED_GPU_VECTORS void Multiply(Product<Tf32>* product) {
  AddTo(product);
}

EMULATED_GPU_VECTORS void Multiply(Product<Double>* product) {
  AddTo(product);
}

}  // namespace emulated_gpu
