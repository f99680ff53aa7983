#include "cache.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>

#include "errors.h"
#include "gradsmith/cache.h"

namespace gradsmith::python {

namespace nb = nanobind;

void BindCache(nb::module_& module) {
  module.def("cache_file", &CacheFile);
  module.def("cached_choices", [] {
    nb::list choices;
    for (const CachedChoice& choice : CachedChoices()) {
      choices.append(nb::make_tuple(
          choice.problem, choice.kernel, ToString(choice.mode), choice.milliseconds,
          choice.workspace));
    }
    return choices;
  });
  module.def("clear_cache", [] { Check(ClearCache()); });
  module.def("export_cache", [](const std::string& path) { Check(ExportCache(path)); });
  module.def("import_cache", [](const std::string& path) { Check(ImportCache(path)); });
}

}  // namespace gradsmith::python
