#include "cuda/op_task.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/arguments.h"
#include "cuda/alignment.h"
#include "gradsmith/types.h"

namespace gradsmith::cuda {

namespace {

enum class MemoryOrder : unsigned char { kContiguous, kChannelsLast, kStrided };

MemoryOrder OrderOf(const TensorRef& tensor) {
  const int rank = tensor.rank();
  // The stride of the innermost axis tells most orders, before all strides are computed.
  if ((rank == 0 || tensor.strides[rank - 1] == 1) &&
      tensor.strides == ContiguousStrides(tensor.dims)) {
    return MemoryOrder::kContiguous;
  }
  return rank > 2 && tensor.strides[1] == 1 && tensor.strides == ChannelsLastStrides(tensor.dims)
             ? MemoryOrder::kChannelsLast
             : MemoryOrder::kStrided;
}

bool IsAligned(const TensorRef& tensor) {
  return AlignmentClass(tensor.data, tensor.type) == kVectorBytes;
}

bool IsInPlace(const OpTask& task, int output) {
  return std::ranges::any_of(task.op->in_place, [&](const InPlacePair& pair) {
    const TensorRef& input = task.tensors[pair.input];
    return pair.output == output && input.present && input.data == task.tensors[output].data;
  });
}

/// The first operand with these dims.
int FirstWithDims(const OpTask& task, int operand) {
  const Dims& dims = task.tensors[operand].dims;
  for (int i = 0; i < operand; ++i) {
    if (task.tensors[i].present && task.tensors[i].dims == dims) {
      return i;
    }
  }
  return operand;
}

/// An operand in one word, followed by its dims where no operand before has the same, and by its
/// strides where the word does not tell them.
void AddTo(const OpTask& task, int operand, internal::ProblemKey* key) {
  const TensorRef& tensor = task.tensors[operand];
  if (!tensor.present) {
    key->Add(0);
    return;
  }
  const MemoryOrder order = OrderOf(tensor);
  const int first = FirstWithDims(task, operand);
  key->Add(
      1 + (tensor.accumulate ? 2 : 0) + (IsAligned(tensor) ? 4 : 0) +
      (IsInPlace(task, operand) ? 8 : 0) + (static_cast<std::int64_t>(order) << 4U) +
      (static_cast<std::int64_t>(first) << 8U) + (static_cast<std::int64_t>(tensor.type) << 16U));
  if (first == operand) {
    key->Add(tensor.dims);
  }
  if (order == MemoryOrder::kStrided) {
    key->Add(tensor.strides);
  }
}

std::string OrderText(const TensorRef& tensor) {
  switch (OrderOf(tensor)) {
    case MemoryOrder::kContiguous:
      return "";
    case MemoryOrder::kChannelsLast:
      return " channels last";
    case MemoryOrder::kStrided:
      break;
  }
  return " strides " + ToString(tensor.strides);
}

std::string ChoicesText(const OpTask& task) {
  if (task.op->text_of_choices != nullptr) {
    return task.op->text_of_choices(task);
  }
  std::string text;
  for (const std::int64_t choice : task.choices) {
    text += (text.empty() ? ", choices [" : ", ") + std::to_string(choice);
  }
  return text + (text.empty() ? "" : "]");
}

}  // namespace

void AddOperand(const ConstTensorRef* tensor, OpTask* task) {
  if (tensor == nullptr || !tensor->present) {
    task->tensors.emplace_back();
  } else {
    task->tensors.push_back(internal::Unconst(*tensor));
  }
}

void AddOperand(const TensorRef* tensor, OpTask* task) {
  if (tensor == nullptr || !tensor->present) {
    task->tensors.emplace_back();
  } else {
    task->tensors.push_back(*tensor);
  }
}

OperandAddresses AddressesOf(const OpTask& task) {
  OperandAddresses addresses;
  for (const TensorRef& tensor : task.tensors) {
    addresses.push_back(tensor.data);
  }
  return addresses;
}

bool HasNothingToWrite(const OpTask& task) {
  for (int i = task.inputs(); i < task.operands(); ++i) {
    if (task.tensors[i].present && NumElements(task.tensors[i].dims) != 0) {
      return false;
    }
  }
  return true;
}

bool HasEmptyOperand(const OpTask& task) {
  return std::any_of(task.tensors.begin(), task.tensors.end(), [](const TensorRef& tensor) {
    return tensor.present && NumElements(tensor.dims) == 0;
  });
}

bool IsAddedTo(const OpTask& task) {
  return std::any_of(
      task.tensors.begin() + task.inputs(), task.tensors.end(),
      [](const TensorRef& tensor) { return tensor.present && tensor.accumulate; });
}

void AddTo(const OpTask& task, internal::ProblemKey* key) {
  key->Add(task.op->id);
  key->Add(task.choices.size());
  for (const std::int64_t choice : task.choices) {
    key->Add(choice);
  }
  for (int i = 0; i < task.operands(); ++i) {
    AddTo(task, i, key);
  }
}

std::string Describe(const OpTask& task) {
  std::string text(task.op->name);
  for (int i = 0; i < task.operands(); ++i) {
    const TensorRef& tensor = task.tensors[i];
    if (!tensor.present) {
      continue;
    }
    text += ", " + std::string(task.op->operands[static_cast<std::size_t>(i)]) + " " +
            std::string(ToString(tensor.type)) + " " + ToString(tensor.dims) + OrderText(tensor);
    if (const int alignment = AlignmentClass(tensor.data, tensor.type); alignment < kVectorBytes) {
      text += " aligned to " + std::to_string(alignment) + " bytes";
    }
    text += tensor.accumulate ? " accumulating" : "";
    text += IsInPlace(task, i) ? " in place" : "";
  }
  return text + ChoicesText(task);
}

}  // namespace gradsmith::cuda
