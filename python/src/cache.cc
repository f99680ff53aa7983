#include "cache.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>
#include <string>

#include "errors.h"
#include "gradsmith/cache.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// As ContextOptions::cache.
using Name = std::optional<std::string>;

nb::list Choices(const Name& cache) {
  nb::list choices;
  for (const CachedChoice& choice : CachedChoices(cache)) {
    choices.append(nb::make_tuple(
        choice.problem, choice.kernel, ToString(choice.mode), choice.milliseconds,
        choice.workspace));
  }
  return choices;
}

}  // namespace

void BindCache(nb::module_& module) {
  module.def("cache_file", &CacheFile, nb::arg().none());
  module.def("cached_choices", &Choices, nb::arg().none());
  module.def("clear_cache", [](const Name& cache) { Check(ClearCache(cache)); }, nb::arg().none());
  module.def(
      "export_cache",
      [](const std::string& path, const Name& cache) { Check(ExportCache(path, cache)); },
      nb::arg(), nb::arg().none());
  module.def(
      "import_cache",
      [](const std::string& path, const Name& cache) { Check(ImportCache(path, cache)); },
      nb::arg(), nb::arg().none());
}

}  // namespace gradsmith::python
