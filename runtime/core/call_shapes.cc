#include "core/call_shapes.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/held_shape.h"
#include "core/shape_symbols.h"

namespace gradsmith::internal {

namespace {

/// BindHeld binds the dims that an input holds.
Status BindHeld(
    ShapeSymbols& symbols,
    const TensorSpec& spec,
    const ConstTensorRef& tensor,
    const ShapeSymbols::Ranks& ranks) {
  const Result<Dims> held = HeldShape(spec, tensor);
  return held.ok() ? symbols.Bind(spec, *held, ranks) : held.status();
}

/// BindShapes binds the shapes of what is present, again and again while a shape of several lists
/// of dims waits for the tensor that tells where these end. What has been bound agrees with itself.
template <typename Ref>
Status BindShapes(
    ShapeSymbols& symbols,
    std::span<const TensorSpec> specs,
    std::span<const Ref> arguments) {
  std::size_t waiting = arguments.size();
  for (std::size_t before = waiting + 1; waiting > 0 && waiting < before;) {
    before = waiting;
    waiting = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].present) {
        continue;
      }
      const ShapeSymbols::Ranks ranks = symbols.RanksOf(specs[i]);
      if (!ranks.can_bind) {
        ++waiting;
        continue;
      }
      Status status = specs[i].shape_of.empty() ? symbols.Bind(specs[i], arguments[i].dims, ranks)
                                                : BindHeld(symbols, specs[i], arguments[i], ranks);
      if (!status.ok()) {
        return status;
      }
    }
  }
  for (std::size_t i = 0; waiting > 0 && i < arguments.size(); ++i) {
    if (arguments[i].present && !symbols.RanksOf(specs[i]).can_bind) {
      return InvalidArgument(
          std::string(specs[i].name) + " has shape " + ToString(arguments[i].dims) +
          ", and nothing that is given tells how many dims each list of it has; expected " +
          std::string(specs[i].shape_text));
    }
  }
  return {};
}

/// BindInputs binds all that the inputs and the attributes say of the symbols. Promises are checked
/// before what goes by them: attributes and rules.
Status
BindInputs(ShapeSymbols& symbols, const OpSchema& op, std::span<const ConstTensorRef> inputs) {
  if (Status status = symbols.SetAxes(inputs); !status.ok()) {
    return status;
  }
  if (Status status = BindShapes(symbols, op.inputs, inputs); !status.ok()) {
    return status;
  }
  if (Status status = symbols.CheckPromises(); !status.ok()) {
    return status;
  }
  if (Status status = symbols.ApplyAttributes(); !status.ok()) {
    return status;
  }
  if (Status status = symbols.CheckPromises(); !status.ok()) {
    return status;
  }
  return symbols.ApplyRules();
}

/// BindAll binds the outputs that are there too, and checks what only they bind.
template <typename Ref>
Status BindAll(
    ShapeSymbols& symbols,
    const OpSchema& op,
    std::span<const ConstTensorRef> inputs,
    std::span<const Ref> outputs) {
  if (Status status = BindInputs(symbols, op, inputs); !status.ok()) {
    return status;
  }
  if (Status status = BindShapes(symbols, op.outputs, outputs); !status.ok()) {
    return status;
  }
  return symbols.CheckPromises();
}

}  // namespace

Status CheckShapes(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  ShapeSymbols symbols(op, attributes);
  return BindAll(symbols, op, inputs, outputs);
}

Result<std::vector<Dims>> ShapesOfOutputs(
    const OpSchema& op,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) {
  ShapeSymbols symbols(op, attributes);
  if (Status status = BindAll(symbols, op, inputs, outputs); !status.ok()) {
    return status;
  }
  std::vector<Dims> shapes;
  for (const TensorSpec& output : op.outputs) {
    Result<Dims> dims = symbols.Expand(output);
    if (!dims.ok()) {
      return dims.status();
    }
    shapes.push_back(*dims);
  }
  return shapes;
}

}  // namespace gradsmith::internal
