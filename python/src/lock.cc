#include "lock.h"

#include <chrono>
#include <thread>

namespace gradsmith::python {

namespace nb = nanobind;

void StayForever() {
  while (true) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

nb::object ImportPython(const char* module, const char* name) {
  PyObject* const found = InPython([module] { return PyImport_ImportModule(module); });
  if (found == nullptr) {
    throw nb::python_error();
  }
  return nb::getattr(nb::steal(found), name);
}

}  // namespace gradsmith::python
