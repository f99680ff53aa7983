#include "cache.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <optional>
#include <string>

#include "errors.h"
#include "gradsmith/cache.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// The bytes of a str, of bytes or of an os.PathLike, which need not be UTF-8.
std::string ReadPath(nb::handle path) {
  PyObject* converted = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &converted) == 0) {
    throw nb::python_error();
  }
  const nb::object bytes = nb::steal(converted);
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

nb::list Choices(nb::handle cache) {
  nb::list choices;
  for (const CachedChoice& choice : CachedChoices(ReadCache(cache))) {
    choices.append(nb::make_tuple(
        choice.problem, choice.kernel, ToString(choice.mode), choice.milliseconds, choice.workspace,
        choice.error));
  }
  return choices;
}

nb::object File(nb::handle cache) {
  const std::string path = CacheFile(ReadCache(cache));
  return nb::steal(
      PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

void Clear(nb::handle cache) {
  Check(ClearCache(ReadCache(cache)));
}

void Export(nb::handle path, nb::handle cache) {
  Check(ExportCache(ReadPath(path), ReadCache(cache)));
}

void Import(nb::handle path, nb::handle cache) {
  Check(ImportCache(ReadPath(path), ReadCache(cache)));
}

}  // namespace

std::optional<std::string> ReadCache(nb::handle cache) {
  return cache.is_none() ? std::nullopt : std::optional(ReadPath(cache));
}

void BindCache(nb::module_& module) {
  module.def("cache_file", &File, nb::arg().none());
  module.def("cached_choices", &Choices, nb::arg().none());
  module.def("clear_cache", &Clear, nb::arg().none());
  module.def("export_cache", &Export, nb::arg(), nb::arg().none());
  module.def("import_cache", &Import, nb::arg(), nb::arg().none());
}

}  // namespace gradsmith::python
