#ifndef GRADSMITH_TESTS_EMULATED_GPU_PRODUCT_H_
#define GRADSMITH_TESTS_EMULATED_GPU_PRODUCT_H_

#include "emulated_gpu/block.h"

namespace emulated_gpu {

/// The matrices of a warp's product on tensor cores: sums += a * b.
template <typename Sum, int kTerms>
struct Product {
  Sum a[16][kTerms];
  Sum b[kTerms][8];
  Sum sums[16][8];
};

/// Adds the product to its sums, term after term.
void Multiply(Product<float, 8>* product);
void Multiply(Product<float, 16>* product);
void Multiply(Product<double, 8>* product);

/// The same of a product that is given to an exchange.
template <typename Product>
void MultiplyGiven(Exchanged* exchanged) {
  static_assert(sizeof(Product) <= sizeof(exchanged->bytes));
  Multiply(reinterpret_cast<Product*>(exchanged->bytes));
}

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_PRODUCT_H_
