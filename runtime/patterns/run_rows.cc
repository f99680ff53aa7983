#include "patterns/run_rows.h"

#include <cstddef>
#include <memory>

namespace gradsmith::internal {

Status RunRowsOnCpu(
    const Context& context,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  PassOperands operands(call.passes, call.dims, inputs, outputs);
  std::unique_ptr<std::byte[]> memory;
  if (operands.bytes() > 0) {
    memory = std::make_unique_for_overwrite<std::byte[]>(operands.bytes());
    operands.Place(memory.get());
  }
  for (std::size_t pass = 0; pass < call.passes.passes.size(); ++pass) {
    if (!operands.IsWanted(pass)) {
      continue;
    }
    const PassOperands::Tensors spread = operands.Spread(pass);
    const Status status = call.passes.passes[pass].run(
        context, {spread.begin(), spread.end()}, operands.Axes(pass), call.scalars);
    if (!status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace gradsmith::internal
