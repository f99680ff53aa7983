#include "patterns/rows_passes.h"

#include <algorithm>
#include <cstdint>

#include "core/arguments.h"
#include "core/stub.h"
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
    : passes_(passes), dims_(dims), is_wanted_(passes.passes.size()) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(passes.inputs); ++i) {
    inputs_.push_back(OperandOrAbsent(ArgumentAt(inputs, i)));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(passes.outputs); ++i) {
    outputs_.push_back(OperandOrAbsent(ArgumentAt(outputs, i)));
  }
  const bool has_doubles = HasDoubles(inputs_) || HasDoubles(outputs_);
  for (const IntList& names : passes.temporaries) {
    TensorRef temporary;
    temporary.present = true;
    temporary.type = has_doubles ? DataType::kDouble : DataType::kFloat;
    temporary.dims = dims.DimsOf(names);
    temporary.strides = ContiguousStrides(temporary.dims);
    offsets_.push_back(bytes_);
    const auto size =
        static_cast<std::size_t>(NumElements(temporary.dims)) * SizeOf(temporary.type);
    bytes_ += (size + kAlignment - 1) / kAlignment * kAlignment;
    inputs_.push_back(temporary);
    outputs_.push_back(temporary);
  }
  FindWanted();
}

void PassOperands::Place(void* memory) {
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    void* place = static_cast<std::byte*>(memory) + offsets_[i];
    inputs_[static_cast<std::size_t>(passes_.inputs) + i].data = place;
    outputs_[static_cast<std::size_t>(passes_.outputs) + i].data = place;
  }
}

/// Temporaries that nothing needs become absent outputs.
void PassOperands::FindWanted() {
  const auto own_inputs = static_cast<std::size_t>(passes_.inputs);
  const auto own_outputs = static_cast<std::size_t>(passes_.outputs);
  std::vector<bool> is_needed(offsets_.size());
  for (std::size_t pass = passes_.passes.size(); pass-- > 0;) {
    const RowsPass& one = passes_.passes[pass];
    const auto first_output = static_cast<std::size_t>(one.counts.all_inputs());
    for (const NamedOperand& operand : one.operands.subspan(first_output)) {
      const auto argument = static_cast<std::size_t>(operand.argument);
      const bool is_wanted =
          argument < own_outputs ? outputs_[argument].present : is_needed[argument - own_outputs];
      is_wanted_[pass] = is_wanted_[pass] || is_wanted;
    }
    for (const NamedOperand& operand : one.operands.first(first_output)) {
      const auto argument = static_cast<std::size_t>(operand.argument);
      if (is_wanted_[pass] && argument >= own_inputs) {
        is_needed[argument - own_inputs] = true;
      }
    }
  }
  for (std::size_t i = 0; i < is_needed.size(); ++i) {
    outputs_[own_outputs + i].present = is_needed[i];
  }
}

TensorRef PassOperands::Argument(std::size_t pass, int operand) const {
  const RowsPass& one = passes_.passes[pass];
  const std::vector<TensorRef>& from = operand < one.counts.all_inputs() ? inputs_ : outputs_;
  return from[static_cast<std::size_t>(one.operands[static_cast<std::size_t>(operand)].argument)];
}

std::vector<TensorRef> PassOperands::Spread(std::size_t pass) const {
  const RowsPass& one = passes_.passes[pass];
  std::vector<TensorRef> spread;
  for (int i = 0; i < static_cast<int>(one.operands.size()); ++i) {
    const RowsKind kind = KindOf(i, one.counts);
    const unsigned of_kind = HasRowDims(kind) ? one.of_row : one.whole & ~one.of_row;
    const unsigned names = kind == RowsKind::kElement ? one.whole : of_kind;
    const NamedOperand& operand = one.operands[static_cast<std::size_t>(i)];
    spread.push_back(dims_.Spread(Argument(pass, i), operand.names, names));
  }
  return spread;
}

}  // namespace gradsmith::internal
