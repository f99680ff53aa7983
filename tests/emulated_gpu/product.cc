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

template <typename Sum, int kTerms>
[[gnu::always_inline]] inline void AddTo(Product<Sum, kTerms>* product) {
  using Row [[gnu::vector_size(8 * sizeof(Sum))]] = Sum;
  for (int row = 0; row < 16; ++row) {
    Row sums;
    std::memcpy(&sums, product->sums[row], sizeof(sums));
    for (int term = 0; term < kTerms; ++term) {
      Row columns;
      std::memcpy(&columns, product->b[term], sizeof(columns));
      sums += product->a[row][term] * columns;
    }
    std::memcpy(product->sums[row], &sums, sizeof(sums));
  }
}

}  // namespace

EMULATED_GPU_VECTORS void Multiply(Product<float, 8>* product) {
  AddTo(product);
}

EMULATED_GPU_VECTORS void Multiply(Product<float, 16>* product) {
  AddTo(product);
}

EMULATED_GPU_VECTORS void Multiply(Product<double, 8>* product) {
  AddTo(product);
}

}  // namespace emulated_gpu
