#ifndef GRADSMITH_PYTHON_CACHE_H_
#define GRADSMITH_PYTHON_CACHE_H_

#include <nanobind/nanobind.h>

namespace gradsmith::python {

/// BindCache adds what gradsmith/cache.h declares to the module.
void BindCache(nanobind::module_& module);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_CACHE_H_
