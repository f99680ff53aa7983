#include <exception>
#include <new>
#include <string>

#include "core/accumulate.h"
#include "core/stub.h"
#include "core/validate.h"
#include "gradsmith/schema.h"

namespace gradsmith {

std::string ToString(const Row& row) {
  std::string text(row.op->name);
  text += "[" + std::string(row.name) + "] on " + std::string(ToString(row.backend)) + " (";
  text += row.op->source_file;
  return text + ":" + std::to_string(row.source_line()) + ")";
}

namespace {

Status ValidateAndRun(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  Status status = internal::ValidateCall(row, context, attributes, inputs, outputs);
  if (!status.ok()) {
    return status;
  }
  // Kernels allocate scratch; running out of memory is an error like any other.
  try {
    return row.backend == Backend::kCpu
               ? internal::RunOnCpu(row, context, attributes, inputs, outputs)
               : row.run(context, attributes, inputs, outputs);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("no memory for the kernel's scratch");
  } catch (const std::exception& error) {
    return Internal(error.what());
  }
}

}  // namespace

Status Call(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  Status status = ValidateAndRun(row, context, attributes, inputs, outputs);
  return status.ok() ? status : status.WithPrefix(ToString(row) + ": ");
}

namespace internal {

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
  return Unsupported(
      ToString(declared) + ": the context is on " + std::string(ToString(context.backend())) +
      "; the combination is declared for " + std::string(ToString(declared.backend)) + " only");
}

}  // namespace internal

}  // namespace gradsmith
