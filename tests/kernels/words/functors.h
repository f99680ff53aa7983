#ifndef GRADSMITH_TESTS_KERNELS_WORDS_FUNCTORS_H_
#define GRADSMITH_TESTS_KERNELS_WORDS_FUNCTORS_H_

#include <cmath>

#include "patterns/formula_math.h"
#include "patterns/functor.h"
#include "patterns/rows_functor.h"

/// Functors with words of formulas that no operator of the library has. Kernels compile them as
/// well.
namespace gradsmith::words {

/// The inverse hyperbolic functions, each where it has values, and the angle of the point (Z, X).
struct AnglesMap {
  static constexpr int kInputs = 2;   // X, Z
  static constexpr int kOutputs = 4;  // asinh, acosh, atanh, atan2
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = formula::Asinh(in[0]);
    out[1] = formula::Acosh(A{1} + in[0] * in[0]);
    out[2] = formula::Atanh(in[0] / (A{1} + std::abs(in[0])));
    out[3] = formula::Atan2(in[0], in[1]);
  }
};

/// Y = X * weight[label], where a label outside of the table is ignored or refused.
template <bool kRefuses>
struct LabelledRows : RowsFunctor {
  static constexpr int kInputs = 1;         // X
  static constexpr int kIntegerInputs = 1;  // label
  static constexpr int kTables = 1;         // weight
  static constexpr int kLookups = 1;
  static constexpr int kOutputs = 1;  // Y
  static constexpr int kPhases = 0;
  static constexpr int kResults = 0;
  GRADSMITH_FUNCTOR static constexpr RowsLookup LookupAt(int /*lookup*/) {
    return {0, 0, kRefuses};
  }
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void Terms(
      int /*phase*/,
      const RowValues<A>& /*row*/,
      const A* /*in*/,
      const A* /*columns*/,
      A* /*terms*/) {}
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = in[0] * row.lookups[0];
  }
};

using IgnoringRows = LabelledRows<false>;
using RefusingRows = LabelledRows<true>;

}  // namespace gradsmith::words

#endif  // GRADSMITH_TESTS_KERNELS_WORDS_FUNCTORS_H_
