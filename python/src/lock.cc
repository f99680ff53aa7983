#include "lock.h"

#include <chrono>
#include <string>
#include <thread>

namespace gradsmith::python {

namespace nb = nanobind;

void StayForever() {
  while (true) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

std::string& PackageName() {
  static std::string* const name = new std::string();
  return *name;
}

nb::object ImportPython(const char* module, const char* name) {
  const nb::object whole = nb::steal(PyUnicode_FromFormat("%s.%s", PackageName().c_str(), module));
  if (!whole.is_valid()) {
    throw nb::python_error();
  }
  PyObject* const found = InPython([&whole] { return PyImport_Import(whole.ptr()); });
  if (found == nullptr) {
    throw nb::python_error();
  }
  return nb::getattr(nb::steal(found), name);
}

}  // namespace gradsmith::python
