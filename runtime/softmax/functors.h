#ifndef GRADSMITH_SOFTMAX_FUNCTORS_H_
#define GRADSMITH_SOFTMAX_FUNCTORS_H_

#include <cmath>

#include "patterns/rows_functor.h"

/// What softmax operators compute of a row, by the pattern `rows` (patterns/rows.h). Kernels
/// compile it as well.
namespace gradsmith::softmax {

/// The largest element of X and the sum of exp(X - largest): no power overflows. A row that is
/// -infinity throughout, or has NaN or +infinity, gives NaN, as in PyTorch.
struct ExponentialRows : RowsFunctor {
  static constexpr int kInputs = 1;   // X
  static constexpr int kOutputs = 1;  // Y
  static constexpr int kPhases = 2;
  static constexpr int kResults = 2;
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int result) { return result; }
  GRADSMITH_FUNCTOR static constexpr bool IsMax(int result) { return result == 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int phase, const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    if (phase == 0) {
      terms[0] = in[0];
    } else {
      terms[1] = std::exp(in[0] - row.results[0]);
    }
  }
};

struct SoftmaxRows : ExponentialRows {
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = std::exp(in[0] - row.results[0]) / row.results[1];
  }
};

struct LogSoftmaxRows : ExponentialRows {
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int phase, const RowValues<A>& /*row*/, A* results) {
    if (phase == 1) {
      results[1] = std::log(results[1]);
    }
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = in[0] - row.results[0] - row.results[1];
  }
};

/// One sum over the elements of dY and Y.
struct SumRows : RowsFunctor {
  static constexpr int kInputs = 2;   // dY, Y
  static constexpr int kOutputs = 1;  // dX
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
};

struct SoftmaxGradRows : SumRows {
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& /*row*/, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * in[1];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = in[1] * (in[0] - row.results[0]);
  }
};

struct LogSoftmaxGradRows : SumRows {
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& /*row*/, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = in[0] - std::exp(in[1]) * row.results[0];
  }
};

}  // namespace gradsmith::softmax

#endif  // GRADSMITH_SOFTMAX_FUNCTORS_H_
