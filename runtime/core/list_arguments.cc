#include "core/list_arguments.h"

#include <string>
#include <string_view>

#include "core/call.h"
#include "core/stub.h"
#include "core/text.h"
#include "core/validate.h"

namespace gradsmith::internal {

namespace {

/// The list that the others are compared with: the first that is not empty.
struct Leader {
  std::string_view name;
  std::size_t size = 0;
};

void FindLeader(
    std::span<const TensorSpec> specs,
    const std::vector<std::size_t>& sizes,
    Leader& leader) {
  for (std::size_t i = 0; i < sizes.size() && leader.size == 0; ++i) {
    if (!specs[i].list.empty()) {
      leader = {specs[i].name, sizes[i]};
    }
  }
}

/// The tensors with as many absent ones in the place of each list that is optional and empty.
template <typename Ref>
Result<std::vector<Ref>> Aligned(
    std::span<const TensorSpec> specs,
    const ListArguments<Ref>& arguments,
    const Leader& leader) {
  std::vector<Ref> aligned;
  auto next = arguments.tensors().begin();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::size_t size = arguments.sizes()[i];
    if (specs[i].list.empty() || size == leader.size) {
      aligned.insert(aligned.end(), next, next + static_cast<std::ptrdiff_t>(size));
    } else if (size == 0 && specs[i].optional) {
      aligned.resize(aligned.size() + leader.size);
    } else {
      return InvalidArgument(
          std::string(specs[i].name) + " has " +
          Counted(static_cast<std::int64_t>(size), "tensor") + "; expected " +
          std::to_string(leader.size) + ", as " + std::string(leader.name) + " has");
    }
    next += static_cast<std::ptrdiff_t>(size);
  }
  return aligned;
}

Status NoTensors(const OpSchema& op) {
  std::vector<std::string_view> lists;
  for (const std::span<const TensorSpec> specs : {op.inputs, op.outputs}) {
    for (const TensorSpec& spec : specs) {
      if (!spec.list.empty()) {
        lists.push_back(spec.name);
      }
    }
  }
  return InvalidArgument(Join(lists) + " has no tensors; expected one at least");
}

}  // namespace

Status CallListsOnBackend(
    std::span<const Row> combination,
    const Context& context,
    const void* attributes,
    const ListInputs& inputs,
    const ListOutputs& outputs) {
  const OpSchema& op = *combination.front().op;
  Leader leader;
  FindLeader(op.inputs, inputs.sizes(), leader);
  FindLeader(op.outputs, outputs.sizes(), leader);
  if (leader.size == 0) {
    return WithRow(combination.front(), NoTensors(op));
  }
  const Result<std::vector<ConstTensorRef>> in = Aligned(op.inputs, inputs, leader);
  if (!in.ok()) {
    return WithRow(combination.front(), in.status());
  }
  const Result<std::vector<TensorRef>> out = Aligned(op.outputs, outputs, leader);
  if (!out.ok()) {
    return WithRow(combination.front(), out.status());
  }
  return CallOnBackend(combination, context, attributes, *in, *out);
}

Result<std::vector<ListShapes>>
InferListShapesOf(const OpSchema& op, const void* attributes, const ListInputs& inputs) {
  Leader leader;
  FindLeader(op.inputs, inputs.sizes(), leader);
  if (leader.size == 0) {
    return NoTensors(op);
  }
  const Result<std::vector<ConstTensorRef>> in = Aligned(op.inputs, inputs, leader);
  if (!in.ok()) {
    return in.status();
  }
  const Result<std::vector<Dims>> dims = InferShapes(op, attributes, *in);
  if (!dims.ok()) {
    return dims.status();
  }
  std::vector<ListShapes> shapes;
  auto next = dims->begin();
  for (const TensorSpec& spec : op.outputs) {
    const auto end = next + static_cast<std::ptrdiff_t>(spec.list.empty() ? 1 : leader.size);
    shapes.emplace_back(next, end);
    next = end;
  }
  return shapes;
}

}  // namespace gradsmith::internal
