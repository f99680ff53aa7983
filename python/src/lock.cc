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
  const std::string whole = PackageName() + "." + module;
  PyObject* const found = InPython([&whole] { return PyImport_ImportModule(whole.c_str()); });
  if (found == nullptr) {
    throw nb::python_error();
  }
  return nb::getattr(nb::steal(found), name);
}

}  // namespace gradsmith::python
