// What operators take on a GPU, case by case of a suite (bench/suites), beside cuDNN's legacy API:
// those of the families that have a folder in bench/gpu. bench/gpu_benchmark.py runs it together
// with PyTorch; docs/performance.md says how it measures.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/cudnn.h"
#include "gpu/cases.h"
#include "gpu/measure.h"
#include "gpu/suite.h"

namespace gradsmith::bench {
namespace {

constexpr const char* kUsageBefore =
    "usage: gpu_benchmark --suite FILE [--out FILE] [options]\n"
    "       gpu_benchmark --host [--out FILE]\n"
    "       gpu_benchmark --first-calls heuristic|benchmark [--out FILE]\n"
    "\n"
    "  --suite FILE         time the cases of a file of bench/suites\n";
constexpr const char* kUsageAfter =
    "  --out FILE           where the results go, one JSON object a line; default: standard output\n"
    "  --filter A,B         only cases whose name (as \"rn50_stem f16 NHWC\") contains one of these\n"
    "  --skip N             leave out the first N of them\n"
    "  --budget SECONDS     for each search; default 1\n"
    "  --first-choice SECONDS\n"
    "                       first_choice_seconds of the default, with --modes\n"
    "  --samples N          timed calls for each figure, 20 or more; default 24\n"
    "  --time-limit SECONDS begin no case later than this, and say how many were left out\n"
    "  --step               wait for a line on standard input before each case; end where there is none\n"
    "  --save FOLDER        write the last case's inputs and outputs there\n"
    "  --host               time what a call costs the host\n"
    "  --first-calls MODE   time first calls of new shapes; GRADSMITH_CACHE names the file that is\n"
    "                       remembered, which all else does without\n";

struct Options {
  std::string suite;
  /// CaseMeasure::option.
  std::string measure;
  std::string out;
  std::vector<std::string> filters;
  std::string first_calls;
  std::size_t skip = 0;
  double time_limit = 1e9;
  bool step = false;
  bool host = false;
  CaseOptions cases;
};

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    parts.push_back(part);
  }
  return parts;
}

/// The ways to measure that arguments ask for; kinds may share one.
std::vector<CaseMeasure> AskedMeasures() {
  std::vector<CaseMeasure> measures;
  for (const Family& family : Families()) {
    for (const CaseKind& kind : family.kinds) {
      for (const CaseMeasure& measure : kind.measures) {
        const bool is_known =
            std::ranges::find(measures, measure.option, &CaseMeasure::option) != measures.end();
        if (!measure.option.empty() && !is_known) {
          measures.push_back(measure);
        }
      }
    }
  }
  return measures;
}

bool IsMeasure(std::string_view option) {
  const std::vector<CaseMeasure> measures = AskedMeasures();
  return std::ranges::find(measures, option, &CaseMeasure::option) != measures.end();
}

void PrintUsage() {
  std::cerr << kUsageBefore;
  for (const CaseMeasure& measure : AskedMeasures()) {
    constexpr std::size_t kColumn = 21;
    std::string option(measure.option);
    option.resize(std::max(option.size() + 1, kColumn), ' ');
    std::cerr << "  " << option << measure.what << "\n";
  }
  std::cerr << kUsageAfter;
}

/// Takes an argument that stands alone; false where it is none.
bool ParseFlag(const std::string& name, Options* options) {
  if (name == "--step") {
    options->step = true;
  } else if (name == "--host") {
    options->host = true;
  } else if (IsMeasure(name)) {
    options->measure = name;
  } else {
    return false;
  }
  return true;
}

/// False where the arguments make no sense.
bool Parse(const std::vector<std::string>& arguments, Options* options) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (ParseFlag(name, options)) {
      continue;
    }
    if (i + 1 == arguments.size()) {
      return false;
    }
    const std::string& value = arguments[++i];
    if (name == "--suite") {
      options->suite = value;
    } else if (name == "--out") {
      options->out = value;
    } else if (name == "--filter") {
      options->filters = Split(value);
    } else if (name == "--skip") {
      options->skip = std::strtoul(value.c_str(), nullptr, 10);
    } else if (name == "--budget") {
      options->cases.budget_seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "--first-choice") {
      options->cases.first_choice_seconds = std::strtod(value.c_str(), nullptr);
    } else if (name == "--samples") {
      options->cases.samples = static_cast<int>(std::strtol(value.c_str(), nullptr, 10));
    } else if (name == "--time-limit") {
      options->time_limit = std::strtod(value.c_str(), nullptr);
    } else if (name == "--save") {
      options->cases.save = value;
    } else if (name == "--first-calls" && (value == "heuristic" || value == "benchmark")) {
      options->first_calls = value;
    } else {
      return false;
    }
  }
  const int tasks = (options->suite.empty() ? 0 : 1) + (options->host ? 1 : 0) +
                    (options->first_calls.empty() ? 0 : 1);
  return tasks == 1 && options->cases.samples > 0;
}

bool IsWanted(const std::string& name, const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) {
    if (name.find(filter) != std::string::npos) {
      return true;
    }
  }
  return filters.empty();
}

JsonObject MeasureFigures(
    Gpu* gpu,
    const SuiteCase& suite_case,
    const CaseKind& kind,
    const Options& options) {
  const auto measure = std::ranges::find(kind.measures, options.measure, &CaseMeasure::option);
  if (measure == kind.measures.end()) {
    throw std::runtime_error(std::string(kind.name) + " has no " + options.measure);
  }
  return measure->measure(gpu, suite_case, options.cases);
}

/// Measures a case; what goes wrong is part of the result.
JsonObject Measure(Gpu* gpu, const SuiteCase& suite_case, const Options& options) {
  const CaseKind kind = KindOf(suite_case);
  JsonObject line;
  line.Add("kind", kind.name).Add("name", suite_case.Name());
  for (const char* column : {"case", "type", "scale_type", "layout"}) {
    line.Add(column, suite_case.Text(column));
  }
  const Stopwatch watch;
  try {
    line.Add("results", MeasureFigures(gpu, suite_case, kind, options));
  } catch (const std::exception& error) {
    line.Add("error", error.what());
  }
  return line.Add("seconds", watch.Seconds());
}

/// Measures a small case of that kind and forgets it: what a process does once, as loading cuDNN,
/// is then no part of a first call.
void WarmUp(Gpu* gpu, const CaseKind& kind) {
  Options options;
  options.cases.samples = 1;
  options.cases.budget_seconds = 0.01;
  static_cast<void>(Measure(gpu, kind.small_case(), options));
}

int RunSuite(const Options& options, std::ostream& out) {
  std::vector<SuiteCase> cases;
  for (SuiteCase& suite_case : Take(ReadSuite(options.suite))) {
    if (IsWanted(suite_case.Name(), options.filters)) {
      cases.push_back(std::move(suite_case));
    }
  }
  cases.erase(
      cases.begin(),
      cases.begin() + static_cast<std::ptrdiff_t>(std::min(options.skip, cases.size())));
  Gpu gpu;
  if (!cases.empty()) {
    WarmUp(&gpu, KindOf(cases.front()));
  }
  const Stopwatch watch;
  std::size_t done = 0;
  for (; done < cases.size() && watch.Seconds() < options.time_limit; ++done) {
    std::string go;
    if (options.step && !std::getline(std::cin, go)) {
      break;
    }
    const std::string line = Measure(&gpu, cases[done], options).Text();
    out << line << "\n" << std::flush;
    std::cerr << "[" << done + 1 << "/" << cases.size() << ", " << static_cast<int>(watch.Seconds())
              << " s] " << cases[done].Name() << "\n";
  }
  const auto left_out = static_cast<double>(cases.size() - done);
  out << JsonObject()
             .Add("kind", "end")
             .Add("cases", static_cast<double>(done))
             .Add("left_out", left_out)
             .Text()
      << "\n";
  if (left_out > 0) {
    std::cerr << left_out << " of " << cases.size() << " cases were left out\n";
  }
  return 0;
}

/// Measures the first calls of one family, the first that has any to measure: no call of another
/// may come before them in the process.
int RunFirstCalls(const Options& options, std::ostream& out) {
  const SearchMode mode =
      options.first_calls == "benchmark" ? SearchMode::kBenchmark : SearchMode::kHeuristic;
  const std::vector<Family> families = Families();
  const auto family =
      std::ranges::find_if(families, [](const Family& one) { return one.first_calls != nullptr; });
  if (family == families.end()) {
    throw std::runtime_error("no family has first calls measured");
  }
  const JsonObject first = family->first_calls(mode, options.cases.budget_seconds);
  out << JsonObject().Add("kind", "first_calls").Add("results", first).Text() << "\n";
  return 0;
}

int RunHost(std::ostream& out) {
  Gpu gpu;
  for (const Family& family : Families()) {
    if (family.host_time != nullptr) {
      const JsonObject host = family.host_time(&gpu);
      out << JsonObject().Add("kind", "host").Add("family", family.name).Add("results", host).Text()
          << "\n";
    }
  }
  return 0;
}

int Run(const Options& options) {
  std::ofstream file;
  if (!options.out.empty()) {
    file.open(options.out);
    if (!file) {
      throw std::runtime_error("cannot write " + options.out);
    }
  }
  std::ostream& out = options.out.empty() ? std::cout : file;
  if (!options.first_calls.empty()) {
    return RunFirstCalls(options, out);
  }
  Require(CheckDevice({Backend::kCuda, 0}));
  out << JsonObject()
             .Add("kind", "machine")
             .Add("gpu", Take(cuda::DeviceInfo::Open(0))->description())
             .Add("cudnn", cuda::CudnnVersionText())
             .Text()
      << "\n"
      << std::flush;
  if (options.host) {
    return RunHost(out);
  }
  return RunSuite(options, out);
}

}  // namespace
}  // namespace gradsmith::bench

int main(int argc, char** argv) {
  gradsmith::bench::Options options;
  if (!Parse({argv + 1, argv + argc}, &options)) {
    gradsmith::bench::PrintUsage();
    return 2;
  }
  if (options.first_calls.empty()) {
    setenv("GRADSMITH_CACHE", "off", 1);  // NOLINT(concurrency-mt-unsafe): no thread yet
  }
  try {
    return gradsmith::bench::Run(options);
  } catch (const std::exception& error) {
    std::cerr << "gpu_benchmark: " << error.what() << "\n";
    return 1;
  }
}
