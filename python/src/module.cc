#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "cache.h"
#include "errors.h"
#include "gradsmith/context.h"
#include "memory.h"
#include "op.h"
#include "policies.h"
#include "table.h"
#include "tuning.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

std::optional<SearchMode> ParseMode(nb::handle name) {
  if (name.is_none()) {
    return std::nullopt;
  }
  const std::string text = TextOf(name);
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    if (ToString(mode) == text) {
      return mode;
    }
  }
  RaiseValueError("search_mode is '" + text + "'; expected 'default', 'heuristic' or 'benchmark'");
}

/// Progress comes from the searching thread, which does not hold the interpreter's lock. What the
/// callback raises must not pass through the search: it is shown, as Python shows errors in
/// destructors.
void Report(const nb::object& callback, const SearchProgress& progress) {
  const nb::gil_scoped_acquire acquired;
  try {
    callback(
        progress.problem, progress.candidate, progress.tried, progress.candidates, progress.best,
        progress.best_milliseconds, progress.seconds);
  } catch (nb::python_error& error) {
    error.restore();
    PyErr_WriteUnraisable(callback.ptr());
  }
}

void InitPolicies(
    Policies* self,
    std::optional<bool> deterministic,
    bool allow_tf32,
    std::optional<std::size_t> workspace_limit,
    nb::handle search_mode,
    double search_budget_seconds,
    nb::handle cache,
    int threads,
    nb::object on_search_progress,
    bool is_preparing) {
  ContextOptions options;
  options.deterministic = deterministic;
  options.allow_tf32 = allow_tf32;
  options.workspace_limit = workspace_limit.value_or(kNoLimit);
  options.search_mode = ParseMode(search_mode);
  options.search_budget_seconds = search_budget_seconds;
  options.cache = ReadCache(cache);
  options.threads = threads;
  if (!on_search_progress.is_none()) {
    options.on_search_progress =
        [callback = std::move(on_search_progress)](const SearchProgress& progress) {
          Report(callback, progress);
        };
  }
  new (self) Policies(std::move(options), is_preparing);
}

void BindPolicies(nb::module_& module) {
  nb::class_<Policies>(module, "Policies")
      .def(
          "__init__", &InitPolicies, nb::kw_only(), nb::arg("deterministic").none(),
          nb::arg("allow_tf32"), nb::arg("workspace_limit").none(), nb::arg("search_mode").none(),
          nb::arg("search_budget_seconds"), nb::arg("cache").none(), nb::arg("threads"),
          nb::arg("on_search_progress").none(), nb::arg("is_preparing"));
  module.def("abandon_threads", &Policies::AbandonThreads);
}

void BindOp(nb::module_& module) {
  nb::class_<Op>(module, "Op")
      .def(nb::init<const std::string&, nb::object>())
      .def(
          "call", &Op::Call, nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
          nb::arg())
      .def(
          "time", &Op::Time, nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg().none(),
          nb::arg(), nb::arg())
      .def("wanted", &Op::Wanted, nb::arg().none())
      .def("infer_shapes", &Op::InferShapes);
}

/// Empty where calls can run on the device, otherwise what is missing.
std::string MissingFor(int device, bool is_cuda) {
  return CheckDevice({is_cuda ? Backend::kCuda : Backend::kCpu, device}).message();
}

}  // namespace

}  // namespace gradsmith::python

NB_MODULE(_core, module) {
  using namespace gradsmith::python;  // NOLINT(google-build-using-namespace): the macro's body is a
                                      // function
  // What modules hold lives until the interpreter is gone, and some of it in cycles.
  nanobind::set_leak_warnings(false);
  module.doc() = "The part of gradsmith that is in C++. Its users are gradsmith's own modules.";
  BindPolicies(module);
  BindMemory(module);
  BindOp(module);
  BindTable(module);
  BindCache(module);
  BindTuning(module);
  module.def("missing_for", &MissingFor, nanobind::arg("device"), nanobind::arg("is_cuda"));
}
