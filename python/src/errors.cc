#include "errors.h"

#include <string>

#include "lock.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

constexpr const char* kText = "_text";

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
  // A path within it need not be UTF-8.
  const auto size = static_cast<Py_ssize_t>(sentence.size());
  const nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(sentence.data(), size, "backslashreplace"));
  if (text.is_valid()) {
    PyErr_SetObject(exception, text.ptr());
  }
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

bool MustPass(const nb::python_error& error) {
  return !error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError);
}

void ClearError() {
  const nb::python_error error;
  if (MustPass(error)) {
    throw nb::python_error(error);
  }
}

std::string TextOf(nb::handle text) {
  const nb::object bytes =
      nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) {
    throw nb::python_error();
  }
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

std::string TypeNameOf(nb::handle object) {
  return TextOf(CallPython(ImportPython(kText, "type_name"), object));
}

std::string ReprOf(nb::handle object) {
  return TextOf(CallPython(ImportPython(kText, "quoted"), object));
}

std::string ShortTextOf(nb::handle text) {
  return TextOf(CallPython(ImportPython(kText, "shortened"), text));
}

}  // namespace gradsmith::python
