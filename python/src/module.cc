#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "cache.h"
#include "errors.h"
#include "gradsmith/context.h"
#include "library.h"
#include "list_op.h"
#include "lock.h"
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
  const std::string text = ShortTextOf(name);
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
  WithLock([&] {
    try {
      CallPython(
          callback, nb::cast(progress.problem), nb::cast(progress.candidate),
          nb::cast(progress.tried), nb::cast(progress.candidates), nb::cast(progress.best),
          nb::cast(progress.best_milliseconds), nb::cast(progress.seconds));
    } catch (nb::python_error& error) {
      error.restore();
      PyErr_WriteUnraisable(callback.ptr());
    }
  });
}

void InitPolicies(
    Policies* self,
    std::optional<bool> deterministic,
    bool allow_tf32,
    bool allow_reduced_accuracy,
    bool exact_padding,
    std::optional<std::size_t> workspace_limit,
    nb::handle search_mode,
    double search_budget_seconds,
    double first_choice_seconds,
    nb::handle cache,
    int threads,
    nb::object on_search_progress,
    bool is_preparing) {
  ContextOptions options;
  options.deterministic = deterministic;
  options.allow_tf32 = allow_tf32;
  options.allow_reduced_accuracy = allow_reduced_accuracy;
  options.exact_padding = exact_padding;
  options.workspace_limit = workspace_limit.value_or(kNoLimit);
  options.search_mode = ParseMode(search_mode);
  options.search_budget_seconds = search_budget_seconds;
  options.first_choice_seconds = first_choice_seconds;
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
          nb::arg("allow_tf32"), nb::arg("allow_reduced_accuracy"), nb::arg("exact_padding"),
          nb::arg("workspace_limit").none(), nb::arg("search_mode").none(),
          nb::arg("search_budget_seconds"), nb::arg("first_choice_seconds"),
          nb::arg("cache").none(), nb::arg("threads"), nb::arg("on_search_progress").none(),
          nb::arg("is_preparing"));
  module.def("abandon_threads", &Policies::AbandonThreads);
}

template <typename Callable>
void BindCallable(nb::module_& module, const char* name) {
  nb::class_<Callable>(module, name)
      .def(nb::init<const std::string&, nb::object>())
      .def(
          "call", &Callable::Call, nb::arg().none(), nb::arg().none(), nb::arg().none(),
          nb::arg().none(), nb::arg())
      .def(
          "time", &Callable::Time, nb::arg().none(), nb::arg().none(), nb::arg().none(),
          nb::arg().none(), nb::arg(), nb::arg())
      .def("wanted", &Callable::Wanted, nb::arg().none())
      .def("infer_shapes", &Callable::InferShapes);
}

/// Empty where calls can run on the device, otherwise what is missing.
std::string MissingFor(int device, bool is_cuda) {
  return CheckDevice({is_cuda ? Backend::kCuda : Backend::kCpu, device}).message();
}

void BindAll(nb::module_& module) {
  // What modules hold lives until the interpreter is gone, and some of it in cycles.
  nb::set_leak_warnings(false);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void* /*unused*/) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "gradsmith: memory ran out");
    }
  });
  module.doc() = "The part of the package that is in C++. Its users are the package's own modules.";
  BindPolicies(module);
  BindMemory(module);
  BindCallable<Op>(module, "Op");
  BindCallable<ListOp>(module, "ListOp");
  BindTable(module);
  BindCache(module);
  BindTuning(module);
  module.def("forget_libraries", &Library::ForgetAll);
  module.def("missing_for", &MissingFor, nb::arg("device"), nb::arg("is_cuda"));
}

/// Whether the interpreter that the module was imported into has ended.
bool& HasEnded() {
  static bool has_ended = false;
  return has_ended;
}

/// Why the module cannot be imported here; null where it can. What it holds is of one interpreter.
const char* WhyNotHere() {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
    return "gradsmith cannot be imported in a sub-interpreter; expected the main interpreter";
  }
  if (HasEnded()) {
    return "gradsmith was imported into an interpreter that has ended; expected one interpreter in "
           "the life of a process";
  }
  return nullptr;
}

/// Fills a module that is imported after the first was dropped from sys.modules: there can be only
/// one of each type, so that both have the same.
void FillAgain(nb::handle first, nb::handle again) {
  for (const auto [name, value] : nb::borrow<nb::dict>(first.attr("__dict__"))) {
    if (!TextOf(name).starts_with("__")) {
      again.attr(name) = value;
    }
  }
}

}  // namespace

}  // namespace gradsmith::python

NB_MODULE(_core_here, module) {
  using namespace gradsmith::python;  // NOLINT(google-build-using-namespace): the macro's body is a
                                      // function
  // Held for good, as its functions may be in use when it is dropped.
  static PyObject* first = nullptr;
  if (first != nullptr) {
    FillAgain(first, module);
    return;
  }
  BindAll(module);
  Py_AtExit([] { HasEnded() = true; });
  const std::string name = TextOf(module.attr("__name__"));
  PackageName() = name.substr(0, name.rfind('.'));
  first = module.inc_ref().ptr();
}

/// The module's own entry looks at the interpreter before nanobind's does, which would take what it
/// has in the first interpreter away from that.
// NOLINTNEXTLINE(bugprone-reserved-identifier): Python's name for it
extern "C" NB_EXPORT PyObject* PyInit__core() {
  if (const char* const why = gradsmith::python::WhyNotHere()) {
    PyErr_SetString(PyExc_ImportError, why);
    return nullptr;
  }
  return PyInit__core_here();
}
