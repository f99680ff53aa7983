#include "errors.h"

#include <nanobind/stl/string.h>

#include <string>

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

constexpr std::size_t kLongestRepr = 60;

PyObject* ExceptionOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return PyExc_ValueError;
    case StatusCode::kUnsupported:
      return PyExc_NotImplementedError;
    case StatusCode::kOutOfMemory:
      return PyExc_MemoryError;
    case StatusCode::kOk:
    case StatusCode::kInternal:
      break;
  }
  return PyExc_RuntimeError;
}

[[noreturn]] void Throw(PyObject* exception, const std::string& sentence) {
  PyErr_SetString(exception, sentence.c_str());
  throw nb::python_error();
}

}  // namespace

void Raise(const Status& status) {
  Throw(ExceptionOf(status.code()), status.message());
}

void RaiseTypeError(const std::string& sentence) {
  Throw(PyExc_TypeError, sentence);
}

void RaiseValueError(const std::string& sentence) {
  Throw(PyExc_ValueError, sentence);
}

std::string TypeNameOf(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = nb::cast<std::string>(nb::str(type.attr("__module__")));
  const std::string name = nb::cast<std::string>(nb::str(type.attr("__qualname__")));
  return module == "builtins" ? name : module + "." + name;
}

std::string ReprOf(nb::handle object) {
  const std::string text = nb::cast<std::string>(nb::repr(object));
  return text.size() <= kLongestRepr ? text : text.substr(0, kLongestRepr) + "...";
}

}  // namespace gradsmith::python
