#include "core/call.h"

#include <new>
#include <string>

#include "core/accumulate.h"
#include "core/exceptions.h"
#include "core/stub.h"
#include "core/text.h"
#include "core/validate.h"
#include "gradsmith/schema.h"

namespace gradsmith {

std::string ToString(const Row& row) {
  using internal::Shortened;
  return Shortened(row.op->name) + "[" + Shortened(row.name) + "] on " +
         std::string(ToString(row.backend)) + " (" + Shortened(row.op->source_file) + ":" +
         std::to_string(row.source_line()) + ")";
}

namespace {

Status ValidateAndRun(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (!context.status().ok()) {
    return context.status();
  }
  if (Status status = internal::ValidateCall(row, context, attributes, inputs, outputs);
      !status.ok()) {
    return status;
  }
  return row.backend == Backend::kCpu
             ? internal::RunOnCpu(row, context, attributes, inputs, outputs)
             : row.run(context, attributes, inputs, outputs);
}

}  // namespace

Status Call(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const Status status = internal::CatchExceptions(
      [&] { return ValidateAndRun(row, context, attributes, inputs, outputs); });
  return internal::WithRow(row, status);
}

namespace internal {

Status WithRow(const Row& row, const Status& status) {
  if (status.ok()) {
    return status;
  }
  try {
    return status.WithPrefix(ToString(row) + ": ");
  } catch (const std::bad_alloc&) {
    return status;
  }
}

Status CallOnBackend(
    std::span<const Row> combination,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  for (const Row& row : combination) {
    if (row.backend == context.backend()) {
      return Call(row, context, attributes, inputs, outputs);
    }
  }
  const Row& declared = combination.front();
  const Status status = CatchExceptions([&]() -> Status {
    if (!context.status().ok()) {
      return context.status();
    }
    return Unsupported(
        "the context is on " + std::string(ToString(context.backend())) +
        "; the combination is declared for " + std::string(ToString(declared.backend)) + " only");
  });
  return WithRow(declared, status);
}

}  // namespace internal

}  // namespace gradsmith
