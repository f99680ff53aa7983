#ifndef GRADSMITH_TESTS_KERNELS_ABSENT_FUNCTORS_H_
#define GRADSMITH_TESTS_KERNELS_ABSENT_FUNCTORS_H_

#include "patterns/functor.h"
#include "patterns/rows_functor.h"

/// Functors whose inputs of elements may be absent. Kernels compile them as well.
namespace gradsmith::absent {

/// Y = X + A, or its negative where the mask holds, and the sum of Y along what `sums` lacks.
struct AbsentMap {
  static constexpr int kInputs = 3;   // X, A, mask
  static constexpr int kOutputs = 2;  // Y, sums
  static constexpr unsigned kMasks = 0b100;
  static constexpr unsigned kOptional = 0b110;
  static constexpr bool kSums = true;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    const A both = in[0] + in[1];
    out[0] = in[2] != A(0) ? -both : both;
    out[1] = out[0];
  }
};

/// Y = (X + A) * scale + the sum of X + 2 * A along the row, and the sums of X + A down the
/// columns.
struct AbsentRows : RowsFunctor {
  static constexpr int kInputs = 2;        // X, A
  static constexpr int kColumnInputs = 1;  // scale
  static constexpr int kOutputs = 1;       // Y
  static constexpr int kColumnSums = 1;    // sums
  static constexpr unsigned kOptionalInputs = 0b10;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& /*row*/, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] + 2 * in[1];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    out[0] = (in[0] + in[1]) * columns[0] + row.results[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  ColumnTerms(const RowValues<A>& /*row*/, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] + in[1];
  }
};

/// The same without columns: Y = X + A + the sum. The input between others may be absent.
struct AbsentTotals : RowsFunctor {
  static constexpr int kInputs = 3;   // X, A, B
  static constexpr int kOutputs = 1;  // Y
  static constexpr unsigned kOptionalInputs = 0b10;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& /*row*/, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] + 2 * in[1] + 3 * in[2];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = in[0] + in[1] - in[2] + row.results[0];
  }
};

}  // namespace gradsmith::absent

#endif  // GRADSMITH_TESTS_KERNELS_ABSENT_FUNCTORS_H_
