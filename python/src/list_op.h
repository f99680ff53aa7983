#ifndef GRADSMITH_PYTHON_LIST_OP_H_
#define GRADSMITH_PYTHON_LIST_OP_H_

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "arguments.h"
#include "gradsmith/schema.h"
#include "op.h"
#include "policies.h"
#include "result_tuple.h"

namespace gradsmith::python {

/// ListOp calls the rows of an operator that has lists of tensors, for which a caller has lists or
/// tuples of arrays. For each length of lists there is an Op of single arrays, which does the rest.
class ListOp {
 public:
  ListOp(std::string name, nanobind::object result);

  /// As those of Op; in the place of a list the arguments have a list or a tuple, results a list.
  nanobind::object Call(
      nanobind::handle inputs,
      nanobind::handle attributes,
      nanobind::handle outputs,
      nanobind::handle out,
      Policies& policies);
  double Time(
      nanobind::handle inputs,
      nanobind::handle attributes,
      nanobind::handle outputs,
      nanobind::handle out,
      Policies& policies,
      int calls);
  [[nodiscard]] nanobind::list Wanted(nanobind::handle outputs) const;
  nanobind::object InferShapes(nanobind::handle inputs, nanobind::handle attributes);

 private:
  /// The operator for lists of one length.
  struct Spelled {
    std::shared_ptr<const OpSchema> schema;
    std::vector<Row> rows;
    std::unique_ptr<Op> op;
  };

  /// What is given for one argument, and how many arrays that are.
  struct Given {
    const TensorSpec* spec;
    nanobind::object object;  ///< not valid where nothing is given
    Py_ssize_t size = 1;
  };

  /// A call as the Op takes it.
  struct Flat {
    Spelled* spelled;
    int length;
    nanobind::object inputs;
    nanobind::object outputs;
    nanobind::object out;
  };

  /// Raises TypeError where an argument that is a list is given something else.
  [[nodiscard]] Given Read(const TensorSpec& spec, nanobind::handle object) const;
  [[nodiscard]] std::vector<Given> ReadInputs(nanobind::handle inputs) const;
  /// The one length of all lists. Raises ValueError where they differ or are empty.
  [[nodiscard]] int LengthOf(const std::vector<Given>& inputs, const std::vector<Given>& out) const;
  Flat Bind(nanobind::handle inputs, nanobind::handle outputs, nanobind::handle out);
  Spelled& ForLength(int length);
  /// A list's arrays and what is no list, one after another, None in the place of what is not
  /// given.
  static nanobind::object Flattened(const std::vector<Given>& given, int length);
  /// The names of those of the Op's outputs that are wanted; None where all are.
  [[nodiscard]] nanobind::object
  WantedOf(const Spelled& spelled, const std::vector<Wish>& wishes, int length) const;
  /// The items of a flat tuple with lists in the place of lists, None where the first is None.
  [[nodiscard]] nanobind::object Grouped(nanobind::handle flat, int length) const;

  std::string name_;
  ResultTuple result_;
  std::vector<const Row*> rows_;
  const OpSchema* schema_ = nullptr;
  std::mutex mutex_;
  /// The operators that were made so far, by the length of their lists.
  std::map<int, std::unique_ptr<Spelled>> spelled_;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_LIST_OP_H_
