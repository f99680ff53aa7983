#include "support/generated_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reference/definitions.h"
#include "support/checks.h"
#include "support/memory.h"

namespace gradsmith::support {

namespace {

std::vector<const OpTests*>& Added() {
  static std::vector<const OpTests*> tests;
  return tests;
}

std::string Join(const std::vector<std::string>& texts, const std::string& separator) {
  std::string joined;
  for (const std::string& text : texts) {
    joined += (joined.empty() ? "" : separator) + text;
  }
  return joined;
}

bool HasFormulas(const Row& row) {
  return row.op->kernel.starts_with("formulas::");
}

/// A test whose body is a check.
class GeneratedTest : public testing::Test {
 public:
  GeneratedTest(std::function<Report()> check, std::string rerun)
      : check_(std::move(check)), rerun_(std::move(rerun)) {}

  void TestBody() override { Assert(check_(), rerun_); }

 private:
  std::function<Report()> check_;
  std::string rerun_;
};

class Registrar {
 public:
  Registrar(const Registry& registry, std::string program, std::optional<Backend> only)
      : registry_(registry), program_(std::move(program)), only_(only) {}

  void AddRow(const OpTests& tests, const TypedRow& typed, Backend backend) {
    const std::string name = typed.name + "_" + std::string(ToString(backend));
    const Row* row = FindRow(tests.op, typed.name, backend);
    if (row == nullptr) {
      return;  // CoverEveryRow fails and names it
    }
    const Subject subject{&registry_, row, &tests, typed.run};
    Add(tests.op, "Neighbours/" + name, backend, [subject] { return CheckNeighbours(subject); });
    for (const Case* problem : tests.cases) {
      Subject subject_of_case = subject;
      subject_of_case.row = &RowForCase(*row, *problem);
      for (const Kind& kind : CaseKinds()) {
        if (kind.applies(*row, tests, *problem)) {
          AddCase(subject_of_case, *problem, kind, kind.name + "/" + name + "_" + problem->name);
        }
      }
    }
  }

  void AddCoverage() {
    Add("GeneratedTests", "CoverEveryRow", Backend::kCpu,
        [this_copy = *this] { return this_copy.CheckCoverage(); });
  }

 private:
  using RowName = std::pair<std::string, std::pair<std::string, Backend>>;

  void
  AddCase(const Subject& subject, const Case& problem, const Kind& kind, const std::string& name) {
    const std::string seed = subject.tests->op + "." + name;
    Add(subject.tests->op, name, subject.row->backend,
        [subject, &problem, check = kind.check, seed] { return check(subject, problem, seed); });
  }

  void Add(
      const std::string& suite,
      const std::string& name,
      Backend backend,
      std::function<Report()> check) {
    if (only_.value_or(backend) != backend) {
      return;
    }
    const std::string rerun = program_ + " --gtest_filter='" + suite + "." + name + "'";
    const auto guarded = [backend, check = std::move(check)] {
      Report report;
      report.skipped = WhyUnavailable(backend);
      return report.skipped.empty() ? check() : report;
    };
    testing::RegisterTest(
        suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [guarded, rerun]() -> testing::Test* { return new GeneratedTest(guarded, rerun); });
  }

  [[nodiscard]] const Row* FindRow(const std::string& op, const std::string& name, Backend backend)
      const {
    const auto& rows = registry_.rows();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row* r) {
      return r->op->name == op && r->name == name && r->backend == backend;
    });
    return row == rows.end() ? nullptr : *row;
  }

  [[nodiscard]] Report CheckCoverage() const {
    std::set<RowName> registered;
    for (const Row* row : registry_.rows()) {
      registered.insert({std::string(row->op->name), {std::string(row->name), row->backend}});
    }
    std::set<RowName> tested;
    for (const OpTests* tests : AllOpTests()) {
      for (const TypedRow& row : tests->rows) {
        for (const Backend backend : tests->backends) {
          tested.insert({tests->op, {row.name, backend}});
        }
      }
    }
    Report report;
    FailForMissing(registered, tested, "is in the registry and has no generated tests", report);
    FailForMissing(tested, registered, "has generated tests and is not in the registry", report);
    return report;
  }

  static void FailForMissing(
      const std::set<RowName>& rows,
      const std::set<RowName>& others,
      const std::string& what,
      Report& report) {
    for (const RowName& row : rows) {
      if (!others.contains(row)) {
        report.Fail(
            row.first + "[" + row.second.first + "] on " +
            std::string(ToString(row.second.second)) + " " + what);
      }
    }
  }

  const Registry& registry_;
  std::string program_;
  std::optional<Backend> only_;
};

}  // namespace

void Assert(const Report& report, const std::string& rerun) {
  constexpr std::size_t kShown = 20;
  if (!report.notes.empty()) {
    testing::Test::RecordProperty("notes", Join(report.notes, "; "));
  }
  if (!report.skipped.empty()) {
    GTEST_SKIP() << report.skipped;
  }
  if (!report.failures.empty()) {
    std::vector<std::string> shown = report.failures;
    shown.resize(std::min(shown.size(), kShown));
    const std::size_t hidden = report.failures.size() - shown.size();
    ADD_FAILURE() << Join(shown, "\n")
                  << (hidden > 0 ? "\nand more: " + std::to_string(hidden) : "")
                  << "\nRerun: " << rerun;
  }
}

bool AddOpTests(const OpTests& tests) {
  std::vector<const OpTests*>& added = Added();
  const auto place = std::upper_bound(
      added.begin(), added.end(), &tests,
      [](const OpTests* a, const OpTests* b) { return a->op < b->op; });
  added.insert(place, &tests);
  return true;
}

const std::vector<const OpTests*>& AllOpTests() {
  return Added();
}

const std::vector<Kind>& CaseKinds() {
  constexpr auto kAlways = [](const Row&, const OpTests&, const Case&) { return true; };
  constexpr auto kGradients = [](const Row& row, const OpTests&, const Case&) {
    return !row.op->gradient_of.empty();
  };
  constexpr auto kInPlace = [](const Row& row, const OpTests&, const Case&) {
    return std::ranges::any_of(
        row.op->outputs, [](const TensorSpec& output) { return output.in_place_of >= 0; });
  };
  constexpr auto kShapeOnly = [](const Row& row, const OpTests&, const Case&) {
    return std::ranges::any_of(
        row.op->inputs, [](const TensorSpec& input) { return input.shape_only; });
  };
  constexpr auto kDefined = [](const Row& row, const OpTests&, const Case&) {
    return HasFormulas(row) && reference::DefinitionOf(row.op->name) != nullptr;
  };
  constexpr auto kHasSeams = [](const Row&, const OpTests& tests, const Case&) {
    return !tests.seams.empty();
  };
  constexpr auto kContiguous = [](const Row&, const OpTests&, const Case& problem) {
    return problem.layout == Layout::kContiguous;
  };
  constexpr auto kHasAttributes = [](const Row&, const OpTests&, const Case& problem) {
    return !problem.attributes.empty();
  };
  // Kernels on tensor cores multiply the zeros of padding.
  constexpr auto kAsFormulas = [](const Row& row, const OpTests&, const Case&) {
    return row.backend == Backend::kCpu || HasFormulas(row);
  };
  static const std::vector<Kind> kKinds = {
      {"Exact", &CheckExact, kAlways},
      {"Random", &CheckRandom, kAlways},
      {"Layouts", &CheckLayouts, kContiguous},
      {"Attributes", &CheckAttributes, kHasAttributes},
      {"Definition", &CheckDefinition, kDefined},
      {"Seams", &CheckSeams, kHasSeams},
      {"NotFinite", &CheckNotFinite, kAsFormulas},
      {"Accumulate", &CheckAccumulate, kGradients},
      {"Gradient", &CheckGradient, kGradients},
      {"OutputSubsets", &CheckOutputSubsets, kAlways},
      {"InPlace", &CheckInPlace, kInPlace},
      {"Repeat", &CheckRepeat, kAlways},
      {"ShapeOnly", &CheckShapeOnly, kShapeOnly},
      {"Doors", &CheckDoors, kAlways},
      {"Shapes", &CheckShapes, kAlways},
      {"BadArguments", &CheckBadArguments, kAlways},
      {"BadAttributes", &CheckBadAttributes, kAlways},
  };
  return kKinds;
}

void RegisterGeneratedTests(
    const Registry& registry,
    const std::string& program,
    std::optional<Backend> only) {
  Registrar registrar(registry, program, only);
  registrar.AddCoverage();
  for (const OpTests* tests : AllOpTests()) {
    for (const TypedRow& row : tests->rows) {
      for (const Backend backend : tests->backends) {
        registrar.AddRow(*tests, row, backend);
      }
    }
  }
}

}  // namespace gradsmith::support
