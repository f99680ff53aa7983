#ifndef GRADSMITH_BENCH_GPU_CASES_H_
#define GRADSMITH_BENCH_GPU_CASES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/measure.h"
#include "gpu/suite.h"

/// What families of kernels have measured: each says so in a folder of its own beside this file,
/// where the build finds it.
namespace gradsmith::bench {

struct CaseOptions {
  int samples = 24;
  /// How long each search may take.
  double budget_seconds = 1;
  /// How long the default may take for its first choice.
  double first_choice_seconds = ContextOptions().first_choice_seconds;
  /// Where inputs and outputs are written; empty: nowhere.
  std::string save;
};

/// CaseMeasure is one way to measure a case.
struct CaseMeasure {
  /// The program's argument that asks for it, as "--relu"; empty of what is measured without one.
  std::string_view option = {};
  /// What is measured, for the usage.
  std::string_view what = {};
  JsonObject (*measure)(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) =
      nullptr;
};

/// CaseKind is what a suite has cases of.
struct CaseKind {
  /// As the suite's file is named, for example "conv".
  std::string_view name;
  /// Whether a case is of the kind, by the columns that only such cases have.
  bool (*has)(const SuiteCase& suite_case) = nullptr;
  std::span<const CaseMeasure> measures = {};
  /// A small case, which is measured and forgotten before others.
  SuiteCase (*small_case)() = nullptr;
};

/// Family is what a family of kernels has measured.
struct Family {
  std::string_view name;
  std::span<const CaseKind> kinds = {};
  /// Returns what calls cost the host to enqueue, in microseconds. Null where that is not measured.
  JsonObject (*host_time)(Gpu* gpu) = nullptr;
  /// Returns what first calls of new shapes take on the host, in milliseconds, up to the result. It
  /// must be the first that the process does. Null where that is not measured.
  JsonObject (*first_calls)(SearchMode mode, double budget_seconds) = nullptr;
};

/// Families returns all of them. That of a folder is what BenchFamily returns there, a function
/// without arguments in the namespace gradsmith::bench::FOLDER.
std::vector<Family> Families();

/// KindOf returns a case's kind; it throws where there is none.
CaseKind KindOf(const SuiteCase& suite_case);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CASES_H_
