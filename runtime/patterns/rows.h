#ifndef GRADSMITH_PATTERNS_ROWS_H_
#define GRADSMITH_PATTERNS_ROWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>

#include "core/arguments.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/rows_cpu.h"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// The pattern `rows`: a tensor is cut into rows along one axis or several; the elements of a row
/// are reduced in phases, each of which may use what those before it found, and the outputs are
/// functions of the inputs' elements and of what was found. A functor says which:
///
///     struct SoftmaxRows : RowsFunctor {
///       static constexpr int kInputs = 1;   // X
///       static constexpr int kOutputs = 1;  // Y
///       static constexpr int kPhases = 2;
///       static constexpr int kResults = 2;  // the largest element, the sum
///       GRADSMITH_FUNCTOR static constexpr int PhaseOf(int result) { return result; }
///       GRADSMITH_FUNCTOR static constexpr bool IsMax(int result) { return result == 0; }
///       template <typename A>
///       GRADSMITH_FUNCTOR static void
///       Terms(int phase, const RowValues<A>& row, const A* in, const A* columns, A* terms) {
///         terms[phase] = phase == 0 ? in[0] : std::exp(in[0] - row.results[0]);
///       }
///       template <typename A>
///       GRADSMITH_FUNCTOR static void
///       Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
///         out[0] = std::exp(in[0] - row.results[0]) / row.results[1];
///       }
///     };
///
/// Terms gives an element's part of each result of the phase. What else a functor may have is in
/// RowsFunctor: results that are finished once they are summed; inputs and outputs with one element
/// for each row (RowOutputs), such as mean and inv_std, or a truth value; inputs with one element
/// for each column, such as scale; and sums over the rows, one for each column (ColumnTerms), such
/// as dScale. A row may have integers, such as a label, which are compared with an element's place
/// in it (RowValues::index) or by which tables, such as the weights of classes, are looked up.
///
/// Operands come in this order, inputs before outputs: elements, columns, rows, integers of rows,
/// tables. Element inputs and outputs have the same dims. Those with one element for each row have
/// the dims that are not the row's, those with one for each column, and tables, the row's own. Any
/// strides will do; optional operands may be absent, where absent inputs count as 0. Of element
/// inputs those of kOptionalInputs may be. An element output may lie in the memory of an element
/// input that has the same type and strides, where there are no column sums.
/// patterns/cuda/rows.cuh has the same on CUDA.
///
/// The pattern `channels` is this one with a channel for a row: a functor of statistics and maps of
/// channels derives from ChannelsFunctor, and its calls have the axes ChannelsOf(rank, 1), for
/// tensors (N, C, D...) in any layout. Row inputs and outputs, such as scale and dScale, then have
/// an element for each channel.
namespace gradsmith::internal {

/// RowsAxes are the dims of which a row is made, any of the tensor's. The others are the rows'.
struct RowsAxes {
  /// Bit i is set where dim i is the row's.
  std::uint32_t dims = 0;

  [[nodiscard]] constexpr bool Has(int dim) const { return (dims >> dim & 1U) != 0; }
};

/// AxesFrom returns the neighbouring dims from `begin` to `end`, without end.
constexpr RowsAxes AxesFrom(int begin, int end) {
  return {(1U << end) - (1U << begin)};
}

/// AlongAxis returns the one dim along which rows lie, counted from 0.
constexpr RowsAxes AlongAxis(std::int64_t axis) {
  return {1U << axis};
}

/// ChannelsOf returns the dims of which a channel is made, so that rows are channels: all `rank` of
/// a tensor but the axis of the channels.
constexpr RowsAxes ChannelsOf(int rank, int channel_axis) {
  return {((1U << rank) - 1) & ~(1U << channel_axis)};
}

/// RowsCounts are how many operands of each kind a functor has, in their order.
struct RowsCounts {
  int inputs = 0;
  int column_inputs = 0;
  int row_inputs = 0;
  int integer_inputs = 0;
  int tables = 0;
  int outputs = 0;
  int column_sums = 0;
  int row_outputs = 0;
  unsigned second_types = 0;
  unsigned optional_inputs = 0;

  [[nodiscard]] int all_inputs() const {
    return inputs + column_inputs + row_inputs + integer_inputs + tables;
  }
};

template <typename Functor>
constexpr RowsCounts CountsOf() {
  return {
      .inputs = Functor::kInputs,
      .column_inputs = Functor::kColumnInputs,
      .row_inputs = Functor::kRowInputs,
      .integer_inputs = Functor::kIntegerInputs,
      .tables = Functor::kTables,
      .outputs = Functor::kOutputs,
      .column_sums = Functor::kColumnSums,
      .row_outputs = Functor::kRowOutputs,
      .second_types = Functor::kSecondTypes,
      .optional_inputs = Functor::kOptionalInputs};
}

/// RowsKind is what an operand has an element for, and how it is read.
enum class RowsKind : std::uint8_t { kElement, kColumn, kRow, kInteger, kTable };

/// KindOf returns the kind of an operand by its place among all.
RowsKind KindOf(int operand, const RowsCounts& counts);

/// HasRowDims is true of operands whose dims are those of a row.
constexpr bool HasRowDims(RowsKind kind) {
  return kind == RowsKind::kColumn || kind == RowsKind::kTable;
}

/// RowsTypes are the element types of a call: the first and the second.
struct RowsTypes {
  DataType first = DataType::kFloat;
  DataType second = DataType::kFloat;
};

/// TypesOf returns the types of operands; where none has the second, it is the first.
RowsTypes TypesOf(std::span<const TensorRef> tensors, const RowsCounts& counts);

/// CheckRows returns the error of the first operand that has other dims, or another type, than the
/// first input's tell.
Status
CheckRows(std::span<const TensorRef> tensors, const RowsCounts& counts, const RowsAxes& axes);

/// RowsTaskOf describes a computation on operands, which CheckRows has passed.
RowsTask RowsTaskOf(
    std::span<const TensorRef> tensors,
    const RowsCounts& counts,
    const RowsAxes& axes,
    std::span<const double> scalars);

/// RunRowsOf computes rows of a functor's operands, absent ones among them, on the context's
/// threads. What is to be added to is staged by the caller (core/accumulate.h).
template <typename Functor>
Status RunRowsOf(
    const Context& context,
    std::span<const TensorRef, RowsPlaces<Functor>::kEnd> tensors,
    const RowsAxes& axes,
    std::span<const double> scalars) {
  constexpr RowsCounts kCounts = CountsOf<Functor>();
  if (Status status = CheckRows(tensors, kCounts, axes); !status.ok()) {
    return status;
  }
  const RowsTask task = RowsTaskOf(tensors, kCounts, axes, scalars);
  const RowsTypes types = TypesOf(tensors, kCounts);
  return VisitRowsTypes<Functor>(types.first, types.second, [&]<typename T, typename U>() {
    RunRows<Functor, T, U>(context, task);
  });
}

/// RowsOnCpu does so with the operands as a kernel is given them.
template <typename Functor, typename... Refs>
Status RowsOnCpu(
    const Context& context,
    const RowsAxes& axes,
    std::initializer_list<double> scalars,
    const Refs*... operands) {
  static_assert(sizeof...(operands) == RowsPlaces<Functor>::kEnd);
  const std::array<TensorRef, sizeof...(operands)> tensors = {OperandOrAbsent(operands)...};
  return RunRowsOf<Functor>(context, tensors, axes, {scalars.begin(), scalars.size()});
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_ROWS_H_
