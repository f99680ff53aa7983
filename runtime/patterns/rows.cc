#include "patterns/rows.h"

#include <bit>
#include <string>

#include "patterns/strided_space.h"

namespace gradsmith::internal {

namespace {

/// What an operand has an element for.
enum class Kind : std::uint8_t { kElement, kColumn, kRow };

Kind KindOf(int operand, const RowsCounts& counts) {
  const bool is_output = operand >= counts.all_inputs();
  const int place = is_output ? operand - counts.all_inputs() : operand;
  const int elements = is_output ? counts.outputs : counts.inputs;
  const int columns = is_output ? counts.column_sums : counts.column_inputs;
  if (place < elements) {
    return Kind::kElement;
  }
  return place < elements + columns ? Kind::kColumn : Kind::kRow;
}

std::string NameOf(int operand, const RowsCounts& counts) {
  return operand < counts.all_inputs() ? "input " + std::to_string(operand)
                                       : "output " + std::to_string(operand - counts.all_inputs());
}

Dims ExpectedDims(const Dims& dims, Kind kind, const RowsAxes& axes) {
  Dims expected;
  for (int dim = 0; dim < dims.size(); ++dim) {
    if (kind == Kind::kElement || (kind == Kind::kColumn) == axes.Has(dim)) {
      expected.push_back(dims[dim]);
    }
  }
  return expected;
}

bool HasSecondType(int operand, const RowsCounts& counts) {
  return (counts.second_types >> static_cast<unsigned>(operand) & 1U) != 0;
}

using Space = StridedSpace<kMaxRowsTensors, kMaxRowsRank>;

}  // namespace

RowsTypes TypesOf(std::span<const TensorRef> tensors, const RowsCounts& counts) {
  RowsTypes types;
  bool has_first = false;
  bool has_second = false;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (!tensors[t].present || KindOf(t, counts) == Kind::kRow) {
      continue;
    }
    const bool is_second = HasSecondType(t, counts);
    bool& is_known = is_second ? has_second : has_first;
    DataType& type = is_second ? types.second : types.first;
    type = is_known ? type : tensors[t].type;
    is_known = true;
  }
  types.second = has_second ? types.second : types.first;
  return types;
}

Status
CheckRows(std::span<const TensorRef> tensors, const RowsCounts& counts, const RowsAxes& axes) {
  const Dims& dims = tensors[0].dims;
  const RowsTypes types = TypesOf(tensors, counts);
  if (const int last = static_cast<int>(std::bit_width(axes.dims)) - 1; last >= dims.size()) {
    return Internal(
        "rows are made of dim " + std::to_string(last) + " and others; input 0 has " +
        std::to_string(dims.size()) + " dims");
  }
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (!tensors[t].present) {
      continue;
    }
    const Kind kind = KindOf(t, counts);
    const Dims expected = ExpectedDims(dims, kind, axes);
    if (tensors[t].dims != expected) {
      return WrongDims(NameOf(t, counts), tensors[t].dims, expected, "");
    }
    const DataType type = HasSecondType(t, counts) ? types.second : types.first;
    if (kind == Kind::kRow ? !IsFloating(tensors[t].type) : tensors[t].type != type) {
      return Internal(
          NameOf(t, counts) + " has type " + std::string(ToString(tensors[t].type)) +
          "; expected " +
          (kind == Kind::kRow ? std::string("a floating type") : std::string(ToString(type))));
    }
  }
  return {};
}

RowsTask RowsTaskOf(
    std::span<const TensorRef> tensors,
    const RowsCounts& counts,
    const RowsAxes& axes,
    std::span<const double> scalars) {
  RowsTask task;
  std::ranges::copy(scalars, task.scalars);
  const int count = static_cast<int>(tensors.size());
  for (int t = 0; t < count; ++t) {
    task.tensors[t] = tensors[t].data;
    task.types[t] = static_cast<int>(tensors[t].type);
    task.accumulate |= tensors[t].accumulate ? 1U << static_cast<unsigned>(t) : 0U;
  }
  task.rows = 1;
  task.length = 1;
  Space rows;
  Space length;
  const Dims& dims = tensors[0].dims;
  int of_row = 0;
  int of_rows = 0;
  for (int dim = 0; dim < dims.size(); ++dim) {
    const bool is_of_row = axes.Has(dim);
    // Columns have the row's dims alone, rows all others.
    const int own = is_of_row ? of_row++ : of_rows++;
    Space::Dim made;
    made.size = dims[dim];
    for (int t = 0; t < count; ++t) {
      const Kind kind = KindOf(t, counts);
      if (!tensors[t].present || kind == (is_of_row ? Kind::kRow : Kind::kColumn)) {
        continue;
      }
      made.strides[t] = tensors[t].strides[kind == Kind::kElement ? dim : own];
    }
    (is_of_row ? task.length : task.rows) *= dims[dim];
    (is_of_row ? length : rows).Add(made);
  }
  task.row_rank = rows.WriteTo(/*lead=*/0, task.row_dims, task.row_strides);
  task.length_rank = length.WriteTo(/*lead=*/0, task.length_dims, task.length_strides);
  return task;
}

}  // namespace gradsmith::internal
