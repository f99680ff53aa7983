#ifndef GRADSMITH_TESTS_KERNELS_FLAT_FUNCTORS_H_
#define GRADSMITH_TESTS_KERNELS_FLAT_FUNCTORS_H_

#include "patterns/functor.h"
#include "patterns/rows_functor.h"

/// A functor of flat rows with operands of every kind. Kernels compile it as well.
namespace gradsmith::flat {

/// Y = X * S + strength * V where the gate is open, else X and where it lies; twice the strength,
/// and whether the gate is open.
struct GateRows : RowsFunctor {
  static constexpr int kInputs = 3;         // X, V, S
  static constexpr int kRowInputs = 1;      // strength
  static constexpr int kIntegerInputs = 1;  // gate
  static constexpr int kOutputs = 1;        // Y
  static constexpr int kRowOutputs = 2;     // twice, is_open
  static constexpr unsigned kSecondTypes = 0b10;
  static constexpr unsigned kOptionalInputs = 0b10;
  static constexpr bool kIsFlat = true;
  static constexpr int kPhases = 0;
  static constexpr int kResults = 0;
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>&, const A* /*in*/, const A* /*columns*/, A* /*terms*/) {}
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = row.integers[0] != 0 ? in[0] * in[2] + row.inputs[0] * in[1]
                                  : in[0] + static_cast<A>(row.index % 8);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.inputs[0] + row.inputs[0];
    outputs[1] = row.integers[0] != 0 ? A{1} : A{0};
  }
};

}  // namespace gradsmith::flat

#endif  // GRADSMITH_TESTS_KERNELS_FLAT_FUNCTORS_H_
