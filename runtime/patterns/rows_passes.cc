#include "patterns/rows_passes.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/arguments.h"
#include "core/stub.h"
#include "core/tiles.h"
#include "gradsmith/types.h"

namespace gradsmith::internal {

namespace {

/// What a temporary begins at a multiple of, in bytes.
constexpr std::size_t kAlignment = 256;

bool HasDoubles(std::span<const TensorRef> tensors) {
  return std::ranges::any_of(tensors, [](const TensorRef& tensor) {
    return tensor.present && tensor.type == DataType::kDouble;
  });
}

}  // namespace

PassOperands::PassOperands(
    const RowsPasses& passes,
    const NamedDims& dims,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs)
    : passes_(passes), dims_(dims) {
  for (int i = 0; i < passes.inputs; ++i) {
    inputs_.push_back(OperandOrAbsent(ArgumentAt(inputs, static_cast<std::size_t>(i))));
  }
  for (int i = 0; i < passes.outputs; ++i) {
    outputs_.push_back(OperandOrAbsent(ArgumentAt(outputs, static_cast<std::size_t>(i))));
  }
  const bool has_doubles = HasDoubles({inputs_.begin(), inputs_.end()}) ||
                           HasDoubles({outputs_.begin(), outputs_.end()});
  for (const IntList& names : passes.temporaries) {
    TensorRef temporary;
    temporary.present = true;
    temporary.type = has_doubles ? DataType::kDouble : DataType::kFloat;
    temporary.dims = dims.DimsOf(names);
    temporary.strides = ContiguousStrides(temporary.dims);
    offsets_.push_back(bytes_);
    const auto size =
        static_cast<std::size_t>(NumElements(temporary.dims)) * SizeOf(temporary.type);
    bytes_ += RoundUp(size, kAlignment);
    inputs_.push_back(temporary);
    outputs_.push_back(temporary);
  }
  FindWanted();
}

void PassOperands::Place(void* memory) {
  for (int i = 0; i < offsets_.size(); ++i) {
    void* place = static_cast<std::byte*>(memory) + offsets_[i];
    inputs_[passes_.inputs + i].data = place;
    outputs_[passes_.outputs + i].data = place;
  }
}

/// Temporaries that nothing needs become absent outputs.
void PassOperands::FindWanted() {
  std::array<bool, kMaxRowsTemporaries> is_needed{};
  is_wanted_.resize(static_cast<int>(passes_.passes.size()));
  for (int pass = is_wanted_.size() - 1; pass >= 0; --pass) {
    const RowsPass& one = passes_.passes[static_cast<std::size_t>(pass)];
    const auto first_output = static_cast<std::size_t>(one.counts.all_inputs());
    for (const NamedOperand& operand : one.operands.subspan(first_output)) {
      const int temporary = operand.argument - passes_.outputs;
      const bool is_wanted = temporary < 0 ? outputs_[operand.argument].present
                                           : is_needed[static_cast<std::size_t>(temporary)];
      is_wanted_[pass] = is_wanted_[pass] || is_wanted;
    }
    for (const NamedOperand& operand : one.operands.first(first_output)) {
      const int temporary = operand.argument - passes_.inputs;
      if (is_wanted_[pass] && temporary >= 0) {
        is_needed[static_cast<std::size_t>(temporary)] = true;
      }
    }
  }
  for (int i = 0; i < offsets_.size(); ++i) {
    outputs_[passes_.outputs + i].present = is_needed[static_cast<std::size_t>(i)];
  }
}

PassOperands::Tensors PassOperands::Spread(std::size_t pass) const {
  const RowsPass& one = passes_.passes[pass];
  Tensors spread;
  for (int i = 0; i < static_cast<int>(one.operands.size()); ++i) {
    const RowsKind kind = KindOf(i, one.counts);
    const unsigned of_kind = HasRowDims(kind) ? one.of_row : one.whole & ~one.of_row;
    const unsigned names = kind == RowsKind::kElement ? one.whole : of_kind;
    const NamedOperand& operand = one.operands[static_cast<std::size_t>(i)];
    const Arguments& from = i < one.counts.all_inputs() ? inputs_ : outputs_;
    spread.push_back(dims_.Spread(from[operand.argument], operand.names, names));
  }
  return spread;
}

}  // namespace gradsmith::internal
