#ifndef GRADSMITH_PYTHON_TUNING_H_
#define GRADSMITH_PYTHON_TUNING_H_

#include <nanobind/nanobind.h>

namespace gradsmith::python {

/// BindTuning adds to the module what reads lines of problems: `tune_problem`, which prepares the
/// call that a line describes, and `parse_problem`.
void BindTuning(nanobind::module_& module);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_TUNING_H_
