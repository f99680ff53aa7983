#ifndef GRADSMITH_TESTS_KERNELS_CHANNELS_FUNCTORS_H_
#define GRADSMITH_TESTS_KERNELS_CHANNELS_FUNCTORS_H_

#include <cmath>

#include "patterns/rows_functor.h"

/// What the operators of channels compute of each, by the pattern `channels` (patterns/rows.h).
/// Kernels compile it as well.
namespace gradsmith::channels {

/// Deviations are from a mean that is found near the channel's first element.
struct ChannelNormRows : ChannelsFunctor {
  static constexpr int kInputs = 1;      // X
  static constexpr int kRowInputs = 2;   // scale, B
  static constexpr int kOutputs = 1;     // Y
  static constexpr int kRowOutputs = 2;  // mean, inv_std
  static constexpr int kPivot = 0;
  static constexpr int kPhases = 2;
  static constexpr int kResults = 2;  // mean - pivot; inv_std
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int result) { return result; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int phase, const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    const A distance = in[0] - row.pivot;
    if (phase == 0) {
      terms[0] = distance;
    } else {
      terms[1] = (distance - row.results[0]) * (distance - row.results[0]);
    }
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int phase, const RowValues<A>& row, A* results) {
    const A count = row.length > 0 ? row.length : A(1);
    if (phase == 0) {
      results[0] /= count;
    } else {
      results[1] = 1 / std::sqrt(results[1] / count + row.scalars[0]);
    }
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    const A normalized = (in[0] - row.pivot - row.results[0]) * row.results[1];
    out[0] = normalized * row.inputs[0] + row.inputs[1];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.pivot + row.results[0];
    outputs[1] = row.results[1];
  }
};

struct ChannelNormGradRows : ChannelsFunctor {
  static constexpr int kInputs = 2;      // dY, X
  static constexpr int kRowInputs = 3;   // scale, mean, inv_std
  static constexpr int kOutputs = 1;     // dX
  static constexpr int kRowOutputs = 2;  // dScale, dBias
  static constexpr int kPhases = 1;
  static constexpr int kResults = 2;  // the same
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static A Normalized(const RowValues<A>& row, const A* in) {
    return (in[1] - row.inputs[1]) * row.inputs[2];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * Normalized(row, in);
    terms[1] = in[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    const A means = (row.results[1] + Normalized(row, in) * row.results[0]) / row.length;
    out[0] = row.inputs[0] * row.inputs[2] * (in[0] - means);
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.results[0];
    outputs[1] = row.results[1];
  }
};

/// With columns, of which each is a place of the batch and of the spatial dims.
struct ChannelTotalsRows : ChannelsFunctor {
  static constexpr int kInputs = 1;        // X
  static constexpr int kColumnInputs = 1;  // weight
  static constexpr int kRowInputs = 1;     // factor
  static constexpr int kOutputs = 1;       // Y
  static constexpr int kColumnSums = 2;    // sums, of_totals
  static constexpr int kRowOutputs = 1;    // totals
  static constexpr unsigned kSumsOfResults = 0b10;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;
  GRADSMITH_FUNCTOR static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Terms(int /*phase*/, const RowValues<A>& /*row*/, const A* in, const A* columns, A* terms) {
    terms[0] = in[0] * columns[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    out[0] = in[0] * columns[0] + row.inputs[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.results[0];
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void
  ColumnTerms(const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * row.inputs[0];
    terms[1] = in[0] + row.results[0];
  }
};

}  // namespace gradsmith::channels

#endif  // GRADSMITH_TESTS_KERNELS_CHANNELS_FUNCTORS_H_
