#ifndef GRADSMITH_PYTHON_OPERANDS_H_
#define GRADSMITH_PYTHON_OPERANDS_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <vector>

#include "array.h"
#include "gradsmith/schema.h"
#include "gradsmith/tensor.h"
#include "library.h"

/// The inputs and outputs of one call, as the library is given them.
namespace gradsmith::python {

/// Argument is an input of a call; one that is not given, or holds a shape, has no object.
struct Argument {
  nanobind::handle object;
  std::shared_ptr<const Library> library;
  Array array;
  /// What is given for an input that holds a shape, in the place of an array.
  std::optional<Dims> held;
  /// It may lie on the host while the others are on a device, and so tells nothing of these.
  bool may_be_on_host = false;
};

/// TellsPlace returns whether an input is given that tells where the others are.
bool TellsPlace(const Argument& input);

/// FirstGiven returns the first input that tells where the others are; the first of all where none
/// does. One must be given.
const Argument& FirstGiven(const std::vector<Argument>& inputs);

/// MostLike returns the first input of a type; the first of all where none is of it.
const Argument& MostLike(const std::vector<Argument>& inputs, DataType type);

/// ExpectedType returns the type that a row has for a tensor.
DataType ExpectedType(const Row& row, const TensorSpec& spec);

/// HasTypes returns whether all that is given has the types of a row.
bool HasTypes(const Row& row, const std::vector<Argument>& inputs);
bool HasTypes(const Row& row, const std::vector<Output>& outputs);

/// BoundTypes returns the types that the first input of each type parameter has; float for those
/// without an input.
std::vector<DataType> BoundTypes(const OpSchema& op, const std::vector<Argument>& inputs);

/// IsChannelsLast returns whether an input of images has its channels innermost, so that outputs
/// are to have it too.
bool IsChannelsLast(const std::vector<Argument>& inputs);

/// Refs returns the tensors as a kernel is given them.
std::vector<ConstTensorRef> Refs(const std::vector<Argument>& inputs);
std::vector<TensorRef> Refs(const std::vector<Output>& outputs);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_OPERANDS_H_
