#include "core/call.h"

#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "core/accumulate.h"
#include "core/call_recorder.h"
#include "core/exceptions.h"
#include "core/list_schema.h"
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
    std::span<const TensorRef> outputs);

/// The row for lists of the length that the call has chosen.
Status RunForLength(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const Result<int> length = internal::ListLength(*row.op, inputs.size(), outputs.size());
  if (!length.ok()) {
    return length.status();
  }
  const std::shared_ptr<const OpSchema> op = internal::SpellOut(*row.op, *length);
  Row spelled = row;
  spelled.op = op.get();
  return ValidateAndRun(spelled, context, attributes, inputs, outputs);
}

/// The arguments of an op that is spelled out, absent ones in the place of those left out: by their
/// number its kernel tells how long its lists are.
template <typename Ref>
std::vector<Ref> Completed(std::span<const TensorSpec> specs, std::span<const Ref> arguments) {
  std::vector<Ref> all(arguments.begin(), arguments.end());
  all.resize(specs.size());
  return all;
}

Status RunRow(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  return row.backend == Backend::kCpu
             ? internal::RunOnCpu(row, context, attributes, inputs, outputs)
             : row.run(context, attributes, inputs, outputs);
}

Status ValidateAndRun(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (!context.status().ok()) {
    return context.status();
  }
  if (row.op->has_lists) {
    return RunForLength(row, context, attributes, inputs, outputs);
  }
  if (Status status = internal::ValidateCall(row, context, attributes, inputs, outputs);
      !status.ok()) {
    return status;
  }
  if (row.op->list_length > 0) {
    return RunRow(
        row, context, attributes, Completed(row.op->inputs, inputs),
        Completed(row.op->outputs, outputs));
  }
  return RunRow(row, context, attributes, inputs, outputs);
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
  if (status.ok()) {
    internal::CallRecorder::Note(row, attributes, inputs, outputs);
  }
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
