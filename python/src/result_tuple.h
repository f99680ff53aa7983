#ifndef GRADSMITH_PYTHON_RESULT_TUPLE_H_
#define GRADSMITH_PYTHON_RESULT_TUPLE_H_

#include <nanobind/nanobind.h>

#include <utility>

namespace gradsmith::python {

/// ResultTuple makes the named tuples that an operator's calls return.
class ResultTuple {
 public:
  /// `type` is that of the named tuple, or tuple itself.
  explicit ResultTuple(nanobind::object type)
      : type_(std::move(type)),
        make_(reinterpret_cast<newfunc>(PyType_GetSlot(&PyTuple_Type, Py_tp_new))) {}

  /// Make returns the named tuple with the items of a tuple.
  [[nodiscard]] nanobind::object Make(nanobind::object items) const {
    const nanobind::object arguments = nanobind::steal(PyTuple_New(1));
    PyTuple_SetItem(arguments.ptr(), 0, items.release().ptr());
    auto* const type = reinterpret_cast<PyTypeObject*>(type_.ptr());
    nanobind::object result = nanobind::steal(make_(type, arguments.ptr(), nullptr));
    if (!result.is_valid()) {
      throw nanobind::python_error();
    }
    return result;
  }

 private:
  nanobind::object type_;
  /// What the named tuple's own __new__ would call, without its detours through Python.
  newfunc make_;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_RESULT_TUPLE_H_
