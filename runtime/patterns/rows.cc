#include "patterns/rows.h"

#include <bit>
#include <string>
#include <string_view>

#include "patterns/strided_space.h"

namespace gradsmith::internal {

namespace {

std::string NameOf(int operand, const RowsCounts& counts) {
  return operand < counts.all_inputs() ? "input " + std::to_string(operand)
                                       : "output " + std::to_string(operand - counts.all_inputs());
}

Dims ExpectedDims(const Dims& dims, RowsKind kind, const RowsAxes& axes) {
  Dims expected;
  for (int dim = 0; dim < dims.size(); ++dim) {
    if (kind == RowsKind::kElement || HasRowDims(kind) == axes.Has(dim)) {
      expected.push_back(dims[dim]);
    }
  }
  return expected;
}

bool HasSecondType(int operand, const RowsCounts& counts) {
  return (counts.second_types >> static_cast<unsigned>(operand) & 1U) != 0;
}

/// Whether all operands of the kind have one of the kernel's types.
bool HasKernelType(RowsKind kind) {
  return kind == RowsKind::kElement || kind == RowsKind::kColumn;
}

Status
CheckType(int operand, const TensorRef& tensor, const RowsCounts& counts, const RowsTypes& types) {
  const RowsKind kind = KindOf(operand, counts);
  const DataType type = HasSecondType(operand, counts) ? types.second : types.first;
  const auto error = [&](std::string_view expected) {
    return Internal(
        NameOf(operand, counts) + " has type " + std::string(ToString(tensor.type)) +
        "; expected " + std::string(expected));
  };
  if (kind == RowsKind::kInteger && IsFloating(tensor.type)) {
    return error("an integer type");
  }
  const bool is_truth = operand >= counts.all_inputs() && tensor.type == DataType::kBool;
  if (!HasKernelType(kind) && kind != RowsKind::kInteger && !IsFloating(tensor.type) && !is_truth) {
    return error("a floating type");
  }
  return HasKernelType(kind) && tensor.type != type ? error(ToString(type)) : Status();
}

using Space = StridedSpace<kMaxRowsTensors, kMaxRowsRank>;

}  // namespace

RowsKind KindOf(int operand, const RowsCounts& counts) {
  const bool is_output = operand >= counts.all_inputs();
  const int place = is_output ? operand - counts.all_inputs() : operand;
  const int columns = is_output ? counts.outputs : counts.inputs;
  const int rows = columns + (is_output ? counts.column_sums : counts.column_inputs);
  if (place < rows) {
    return place < columns ? RowsKind::kElement : RowsKind::kColumn;
  }
  const int integers = rows + counts.row_inputs;
  if (is_output || place < integers) {
    return RowsKind::kRow;
  }
  return place < integers + counts.integer_inputs ? RowsKind::kInteger : RowsKind::kTable;
}

RowsTypes TypesOf(std::span<const TensorRef> tensors, const RowsCounts& counts) {
  RowsTypes types;
  bool has_first = false;
  bool has_second = false;
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    if (!tensors[t].present || !HasKernelType(KindOf(t, counts))) {
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
    const Dims expected = ExpectedDims(dims, KindOf(t, counts), axes);
    if (tensors[t].dims != expected) {
      return WrongDims(NameOf(t, counts), tensors[t].dims, expected, "");
    }
    if (Status status = CheckType(t, tensors[t], counts, types); !status.ok()) {
      return status;
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
      const RowsKind kind = KindOf(t, counts);
      const bool has_all = kind == RowsKind::kElement;
      if (tensors[t].present && (has_all || HasRowDims(kind) == is_of_row)) {
        made.strides[t] = tensors[t].strides[has_all ? dim : own];
      }
    }
    (is_of_row ? task.length : task.rows) *= dims[dim];
    (is_of_row ? length : rows).Add(made);
  }
  task.row_rank = rows.WriteTo(/*lead=*/0, task.row_dims, task.row_strides);
  task.length_rank = length.WriteTo(/*lead=*/0, task.length_dims, task.length_strides);
  return task;
}

}  // namespace gradsmith::internal
