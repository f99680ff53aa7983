#ifndef GRADSMITH_CORE_LIST_ARGUMENTS_H_
#define GRADSMITH_CORE_LIST_ARGUMENTS_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/exceptions.h"
#include "gradsmith/schema.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// What the generated registration stubs of ops with lists call.
namespace gradsmith::internal {

/// ListArguments gathers what a typed call has for each argument, one tensor or a list of them.
template <typename Ref>
class ListArguments {
 public:
  template <typename T>
  void Add(const TensorView<T>& tensor) {
    sizes_.push_back(1);
    tensors_.push_back(tensor.ref());
  }
  template <typename T>
  void Add(const std::vector<TensorView<T>>& list) {
    sizes_.push_back(list.size());
    for (const TensorView<T>& tensor : list) {
      tensors_.push_back(tensor.ref());
    }
  }
  void Add(const Ref& tensor) {
    sizes_.push_back(1);
    tensors_.push_back(tensor);
  }
  /// Tensors of which only the dims matter.
  void Add(const Dims& dims) {
    sizes_.push_back(1);
    tensors_.emplace_back(DataType::kFloat, nullptr, dims);
  }
  void Add(const std::vector<Dims>& list) {
    sizes_.push_back(list.size());
    for (const Dims& dims : list) {
      tensors_.emplace_back(DataType::kFloat, nullptr, dims);
    }
  }
  /// An input that is not given, or a list of them.
  void AddAbsent(bool is_list) {
    sizes_.push_back(is_list ? 0 : 1);
    tensors_.resize(tensors_.size() + sizes_.back());
  }

  /// How many tensors there are for each argument.
  [[nodiscard]] const std::vector<std::size_t>& sizes() const { return sizes_; }
  /// The tensors of all arguments, one after another.
  [[nodiscard]] const std::vector<Ref>& tensors() const { return tensors_; }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<Ref> tensors_;
};

using ListInputs = ListArguments<ConstTensorRef>;
using ListOutputs = ListArguments<TensorRef>;

/// CallListsOnBackend is CallOnBackend for an op with lists.
Status CallListsOnBackend(
    std::span<const Row> combination,
    const Context& context,
    const void* attributes,
    const ListInputs& inputs,
    const ListOutputs& outputs);

/// CallLists lets `gather` add a call's arguments, then calls.
template <typename Gather>
Status CallLists(
    std::span<const Row> combination,
    const Context& context,
    const void* attributes,
    const Gather& gather) {
  return CatchExceptions([&] {
    ListInputs inputs;
    ListOutputs outputs;
    gather(inputs, outputs);
    return CallListsOnBackend(combination, context, attributes, inputs, outputs);
  });
}

/// ListShapes are the dims of an output, or of the tensors of a list; of one that is no list there
/// is one.
using ListShapes = std::vector<Dims>;

/// InferListShapesOf returns the dims of every output.
Result<std::vector<ListShapes>>
InferListShapesOf(const OpSchema& op, const void* attributes, const ListInputs& inputs);

/// InferListShapes lets `gather` add what is known of the inputs, then infers the outputs' dims.
template <typename Gather>
Result<std::vector<ListShapes>>
InferListShapes(const OpSchema& op, const void* attributes, const Gather& gather) {
  return CatchExceptions([&] {
    ListInputs inputs;
    gather(inputs);
    return InferListShapesOf(op, attributes, inputs);
  });
}

/// LengthOfLists returns how long an op's lists are, by the number of its inputs or outputs, of
/// which `single` are no lists.
constexpr std::size_t LengthOfLists(std::size_t count, std::size_t single, std::size_t lists) {
  return (count - single) / lists;
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_LIST_ARGUMENTS_H_
