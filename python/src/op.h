#ifndef GRADSMITH_PYTHON_OP_H_
#define GRADSMITH_PYTHON_OP_H_

#include <nanobind/nanobind.h>

#include <mutex>
#include <string>
#include <vector>

#include "arguments.h"
#include "array.h"
#include "gradsmith/kernel.h"
#include "library.h"
#include "policies.h"

namespace gradsmith::python {

/// Argument is an input of a call; one that is not given has no object.
struct Argument {
  nanobind::handle object;
  Array array;
};

/// Op calls the rows of one operator with a caller's arrays.
class Op {
 public:
  /// `result` is the named tuple that a call returns. Raises NotImplementedError where this build
  /// has no such operator.
  Op(const std::string& name, nanobind::object result);

  /// Call computes the outputs that are asked for and returns them in the named tuple. `inputs` and
  /// `attributes` are tuples with an entry for each of the schema's, None where it is not given.
  nanobind::object Call(
      nanobind::handle inputs,
      nanobind::handle attributes,
      nanobind::handle outputs,
      nanobind::handle out,
      Policies& policies);

  /// InferShapes returns the dims of every output, from a tuple with the dims of each input or
  /// None.
  nanobind::object InferShapes(nanobind::handle inputs, nanobind::handle attributes);

 private:
  struct CachedKernel {
    const Row* row = nullptr;
    std::vector<GivenAttribute> attributes;
    Kernel kernel;
  };

  /// ReadInputs borrows the inputs; all must be of one library, which is `*library`.
  std::vector<Argument> ReadInputs(nanobind::handle inputs, const Library** library) const;
  std::vector<Output> MakeOutputs(
      const Kernel& kernel,
      const Library& library,
      const std::vector<Argument>& inputs,
      const std::vector<Wish>& wishes) const;
  const Row& FindRow(const std::vector<Argument>& inputs, Device device) const;
  /// A kernel is made once for each row and attributes.
  Kernel FindKernel(const Row& row, std::vector<GivenAttribute> attributes);

  std::string name_;
  nanobind::object result_;
  /// What the named tuple's own __new__ would call, without its detour through Python.
  nanobind::object new_tuple_;
  std::vector<const Row*> rows_;
  const OpSchema* schema_ = nullptr;
  std::mutex mutex_;
  std::vector<CachedKernel> kernels_;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_OP_H_
