#ifndef GRADSMITH_PYTHON_CACHE_H_
#define GRADSMITH_PYTHON_CACHE_H_

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

namespace gradsmith::python {

/// ReadCache returns the bytes of a path, or "off"; empty for None. As ContextOptions::cache.
std::optional<std::string> ReadCache(nanobind::handle cache);

/// BindCache adds what gradsmith/cache.h declares to the module.
void BindCache(nanobind::module_& module);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_CACHE_H_
