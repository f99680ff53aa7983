#ifndef GRADSMITH_PYTHON_TABLE_H_
#define GRADSMITH_PYTHON_TABLE_H_

#include <nanobind/nanobind.h>

#include "gradsmith/registry.h"

namespace gradsmith::python {

/// BuiltinRegistry holds every row of this build.
const Registry& BuiltinRegistry();

/// BindTable adds `operators` and `explain` to the module.
void BindTable(nanobind::module_& module);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_TABLE_H_
