#ifndef GRADSMITH_LAYER_NORM_FUNCTORS_H_
#define GRADSMITH_LAYER_NORM_FUNCTORS_H_

#include <cmath>

#include "patterns/rows_functor.h"

/// What layer norm operators compute of a row, by the pattern `rows` (patterns/rows.h). Kernels
/// compile it as well. The first element type is X's, the second that of scale and Y.
namespace gradsmith::layer_norm {

/// Deviations are from a mean that is found near the row's first element and then corrected: a
/// large mean costs a small deviation no digits, and a constant row deviates by exactly 0.
struct LayerNormalizationRows : RowsFunctor {
  static constexpr int kInputs = 1;        // X
  static constexpr int kColumnInputs = 2;  // scale, B
  static constexpr int kOutputs = 1;       // Y
  static constexpr int kRowOutputs = 2;    // mean, inv_std
  static constexpr unsigned kSecondTypes = 0b1110;
  static constexpr int kPivot = 0;
  static constexpr int kPhases = 2;
  static constexpr int kResults = 3;  // mean - pivot; what corrects it; inv_std
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int result) { return result == 0 ? 0 : 1; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int phase, const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    if (phase == 0) {
      terms[0] = in[0] - row.pivot;
    } else {
      const A deviation = in[0] - row.pivot - row.results[0];
      terms[1] = deviation;
      terms[2] = deviation * deviation;
    }
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int phase, const RowValues<A>& row, A* results) {
    const A count = row.length > 0 ? row.length : A(1);
    if (phase == 0) {
      results[0] /= count;
    } else {
      const A correction = results[1] / count;
      const A variance = results[2] / count - correction * correction;
      results[0] += correction;
      // NaN stays.
      results[2] = 1 / std::sqrt((variance < 0 ? A(0) : variance) + row.scalars[0]);
    }
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    const A normalized = (in[0] - row.pivot - row.results[0]) * row.results[2];
    out[0] = normalized * columns[0] + columns[1];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.pivot + row.results[0];
    outputs[1] = row.results[2];
  }
};

struct LayerNormalizationGradRows : RowsFunctor {
  static constexpr int kInputs = 2;        // dY, X
  static constexpr int kColumnInputs = 1;  // scale
  static constexpr int kRowInputs = 2;     // mean, inv_std
  static constexpr int kOutputs = 1;       // dX
  static constexpr int kColumnSums = 2;    // dScale, dBias
  static constexpr unsigned kSecondTypes = 0b11000101;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 2;  // the means of dY * scale and of that times normalized X
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static A Normalized(const RowValues<A>& row, const A* in) {
    return (in[1] - row.inputs[0]) * row.inputs[1];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& row, const A* in, const A* columns, A* terms) {
    terms[0] = in[0] * columns[0];
    terms[1] = terms[0] * Normalized(row, in);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int /*phase*/, const RowValues<A>& row, A* results) {
    results[0] /= row.length;
    results[1] /= row.length;
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    const A gradient = in[0] * columns[0] - row.results[0] - Normalized(row, in) * row.results[1];
    out[0] = row.inputs[1] * gradient;
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  ColumnTerms(const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * Normalized(row, in);
    terms[1] = in[0];
  }
};

struct SimplifiedLayerNormalizationRows : RowsFunctor {
  static constexpr int kInputs = 1;        // X
  static constexpr int kColumnInputs = 1;  // scale
  static constexpr int kOutputs = 1;       // Y
  static constexpr int kRowOutputs = 1;    // inv_std
  static constexpr unsigned kSecondTypes = 0b110;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;  // inv_std
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& /*row*/, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * in[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int /*phase*/, const RowValues<A>& row, A* results) {
    const A count = row.length > 0 ? row.length : A(1);
    results[0] = 1 / std::sqrt(results[0] / count + row.scalars[0]);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    out[0] = in[0] * row.results[0] * columns[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.results[0];
  }
};

struct SimplifiedLayerNormalizationGradRows : RowsFunctor {
  static constexpr int kInputs = 2;        // dY, X
  static constexpr int kColumnInputs = 1;  // scale
  static constexpr int kRowInputs = 1;     // inv_std
  static constexpr int kOutputs = 1;       // dX
  static constexpr int kColumnSums = 1;    // dScale
  static constexpr unsigned kSecondTypes = 0b100101;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;  // the mean of dY * scale times normalized X
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& row, const A* in, const A* columns, A* terms) {
    terms[0] = in[0] * columns[0] * (in[1] * row.inputs[0]);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int /*phase*/, const RowValues<A>& row, A* results) {
    results[0] /= row.length;
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    const A normalized = in[1] * row.inputs[0];
    out[0] = row.inputs[0] * (in[0] * columns[0] - normalized * row.results[0]);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  ColumnTerms(const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * (in[1] * row.inputs[0]);
  }
};

}  // namespace gradsmith::layer_norm

#endif  // GRADSMITH_LAYER_NORM_FUNCTORS_H_
