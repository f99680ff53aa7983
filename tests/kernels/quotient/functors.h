#ifndef GRADSMITH_TESTS_KERNELS_QUOTIENT_FUNCTORS_H_
#define GRADSMITH_TESTS_KERNELS_QUOTIENT_FUNCTORS_H_

#include "patterns/functor.h"

/// A functor of a function that formulas call with one number for all elements alone. Kernels
/// compile it as well.
namespace gradsmith::quotient {

/// Y = X / C by Math's QuotientByCount, where each element has a count of its own.
template <typename Math>
struct QuotientMap {
  static constexpr int kInputs = 2;   // X, C
  static constexpr int kOutputs = 1;  // Y
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = Math::QuotientByCount(in[0], in[1]);
  }
};

}  // namespace gradsmith::quotient

#endif  // GRADSMITH_TESTS_KERNELS_QUOTIENT_FUNCTORS_H_
