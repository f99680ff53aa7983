#ifndef GRADSMITH_PYTHON_OP_H_
#define GRADSMITH_PYTHON_OP_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "gradsmith/kernel.h"
#include "library.h"
#include "op_kernels.h"
#include "operands.h"
#include "policies.h"
#include "result_tuple.h"

namespace gradsmith::python {

/// Op calls the rows of one operator with a caller's arrays.
class Op {
 public:
  /// `result` is the named tuple that a call returns. Raises NotImplementedError where this build
  /// has no such operator.
  Op(const std::string& name, nanobind::object result);
  /// The rows are those of an op without lists, and outlive this.
  Op(std::string name, std::vector<const Row*> rows, nanobind::object result);

  /// RowsOf returns an operator's rows. Raises NotImplementedError where there is none.
  static std::vector<const Row*> RowsOf(const std::string& name);

  /// Call computes the outputs that are asked for and returns them in the named tuple. `inputs` and
  /// `attributes` are tuples with an entry for each of the schema's, None where it is not given.
  nanobind::object Call(
      nanobind::handle inputs,
      nanobind::handle attributes,
      nanobind::handle outputs,
      nanobind::handle out,
      Policies& policies);

  /// Time makes `calls` of the library's calls that Call would make one of, without Python between
  /// them, and returns the seconds of one: what a call costs beyond them is what Python adds.
  double Time(
      nanobind::handle inputs,
      nanobind::handle attributes,
      nanobind::handle outputs,
      nanobind::handle out,
      Policies& policies,
      int calls);

  /// Wanted returns the names that a caller's `outputs` asks for, in the schema's order.
  [[nodiscard]] nanobind::list Wanted(nanobind::handle outputs) const;

  /// InferShapes returns the dims of every output, from a tuple with the dims of each input, those
  /// that it holds if it holds a shape, or None.
  nanobind::object InferShapes(nanobind::handle inputs, nanobind::handle attributes);

 private:
  /// Bound is a call whose arguments have been read, ready to run.
  struct Bound {
    std::shared_ptr<const Library> library;
    /// Where the inputs are, for the library.
    nanobind::object place;
    std::vector<Argument> inputs;
    std::vector<Wish> wishes;
    std::shared_ptr<CachedKernel> kernel;
    std::vector<Output> outputs;
    Context context;
  };
  Bound Bind(
      nanobind::handle inputs,
      nanobind::handle attributes,
      nanobind::handle outputs,
      nanobind::handle out,
      Policies& policies);
  /// FindInputs returns the inputs with their libraries, which must be one; no array has been read.
  [[nodiscard]] std::vector<Argument> FindInputs(nanobind::handle inputs) const;
  /// ReadInputs borrows the arrays.
  void ReadInputs(std::vector<Argument>* inputs) const;
  /// ReadMoved reads the arrays anew that the caller's own code may have moved since they were
  /// read.
  void ReadMoved(std::vector<Argument>* inputs, std::vector<Output>* outputs) const;
  /// PlaceOf returns the place of the inputs, which must be one.
  [[nodiscard]] nanobind::object PlaceOf(
      const Library& library,
      const std::vector<Argument>& inputs) const;
  /// ReadWishes is quick where `outputs` is the object that it was before.
  std::vector<Wish> ReadWishes(nanobind::handle outputs, nanobind::handle out);
  /// ResultOf returns the named tuple of what a call has made.
  [[nodiscard]] nanobind::object ResultOf(Bound& call) const;
  /// FindOutputs returns the outputs that are a caller's arrays, with their libraries; no array has
  /// been read, and the others are empty.
  [[nodiscard]] std::vector<Output> FindOutputs(
      const Library& library,
      nanobind::handle place,
      const std::vector<Wish>& wishes) const;
  /// MakeOutputs borrows the arrays that FindOutputs found, and makes the others that are wanted.
  void MakeOutputs(
      CachedKernel& kernel,
      const Library& library,
      const std::vector<Argument>& inputs,
      const std::vector<Wish>& wishes,
      std::vector<Output>* outputs) const;
  const Row& FindRow(const std::vector<Argument>& inputs, Device device) const;
  std::string name_;
  ResultTuple result_;
  std::vector<const Row*> rows_;
  const OpSchema* schema_ = nullptr;
  OpKernels kernels_;
  /// What sentences call the arrays that are given as outputs.
  std::vector<std::string> output_subjects_;
  /// A tuple of names that was given as `outputs`, and what it asks for.
  nanobind::object last_outputs_;
  std::vector<Wish> last_wishes_;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_OP_H_
