#ifndef GRADSMITH_TESTS_RUNTIME_FAKE_SPACE_H_
#define GRADSMITH_TESTS_RUNTIME_FAKE_SPACE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/selection.h"
#include "runtime/test_clock.h"

/// Candidates that do what a test wants of them, for the tests of selection.
namespace gradsmith::internal {

/// Engine is a candidate that does what a test wants of it.
struct Engine {
  Candidate candidate;
  /// Milliseconds of its runs in turn, the last one repeated.
  std::vector<double> times = {1};
  std::string build_error = {};
  std::string check_error = {};
  std::string time_error = {};
  bool is_out_of_memory = false;
  /// What the plan says, where it is not what was listed.
  std::size_t built_workspace = 0;
  /// What comparing its output measures.
  double error = 1e-7;
};

class FakePlan final : public Plan {
 public:
  FakePlan(const Engine* engine, std::size_t workspace) : engine_(engine), workspace_(workspace) {}
  [[nodiscard]] std::size_t workspace() const override { return workspace_; }
  Status Run(const Launch& /*launch*/) override { return {}; }
  [[nodiscard]] const Engine& engine() const { return *engine_; }

 private:
  const Engine* engine_;
  std::size_t workspace_;
};

/// FakeSpace offers engines, batch by batch, and notes what is asked of it.
class FakeSpace final : public SearchSpace {
 public:
  explicit FakeSpace(std::vector<std::vector<Engine>> batches) : batches_(std::move(batches)) {}

  [[nodiscard]] std::string Describe() const override { return "forward of fakes"; }
  [[nodiscard]] bool MayTakeMilliseconds() const override { return may_take_milliseconds; }
  [[nodiscard]] bool LeavesSlow() const override { return leaves_slow; }
  [[nodiscard]] bool IsSlowToList(int batch) const override { return slow_to_list.contains(batch); }
  [[nodiscard]] bool IsPromising(int batch) const override { return !unpromising.contains(batch); }
  [[nodiscard]] bool IsQuickToTry(int batch) const override { return quick_to_try.contains(batch); }
  [[nodiscard]] int batches() const override { return static_cast<int>(batches_.size()); }
  std::vector<Candidate> List(int batch, std::vector<Rejection>* /*rejections*/) override {
    listed = batch + 1;
    std::vector<Candidate> candidates;
    for (const Engine& engine : batches_.at(batch)) {
      candidates.push_back(engine.candidate);
    }
    return candidates;
  }
  Result<std::unique_ptr<Plan>> Build(const std::string& id) override {
    built.push_back(id);
    const Engine& engine = Find(id);
    if (!engine.build_error.empty()) {
      return Unsupported(engine.build_error);
    }
    return std::unique_ptr<Plan>(std::make_unique<FakePlan>(
        &engine, std::max(engine.candidate.workspace, engine.built_workspace)));
  }
  Result<double> Check(Plan& plan) override {
    const Engine& engine = Of(plan);
    checked.push_back(engine.candidate.id);
    if (engine.is_out_of_memory) {
      return OutOfMemory("no 8 bytes");
    }
    const bool is_taken = engine.check_error == "rounds twice" && was_relaxed;
    return engine.check_error.empty() || is_taken ? Result<double>(engine.error)
                                                  : Internal(engine.check_error);
  }
  Result<double> Time(Plan& plan) override {
    const Engine& engine = Of(plan);
    if (!engine.time_error.empty()) {
      return Internal(engine.time_error);
    }
    TestClock::Advance(timed.empty() ? time_of_first : time_taken);
    const auto run = static_cast<std::size_t>(timed[engine.candidate.id]++);
    return engine.times.at(std::min(run, engine.times.size() - 1));
  }

  bool Relax(bool lacks_memory) override {
    ++(lacks_memory ? relaxed_for_memory : relaxed);
    was_relaxed = relaxes;
    leaves_slow = leaves_slow && !relaxes;
    return std::exchange(relaxes, false);
  }

  int listed = 0;
  /// Once relaxed, what only rounds too often is right.
  bool relaxes = false;
  bool was_relaxed = false;
  int relaxed = 0;
  int relaxed_for_memory = 0;
  std::vector<std::string> built;
  std::vector<std::string> checked;
  std::map<std::string, int> timed;
  /// Seconds that a timing takes.
  double time_taken = 0;
  double time_of_first = 0;
  bool may_take_milliseconds = false;
  /// Until it is relaxed.
  bool leaves_slow = false;
  std::set<int> slow_to_list;
  std::set<int> unpromising;
  std::set<int> quick_to_try;

 private:
  TestClock clock_;
  static const Engine& Of(Plan& plan) { return dynamic_cast<FakePlan&>(plan).engine(); }
  [[nodiscard]] const Engine& Find(const std::string& id) const {
    for (const std::vector<Engine>& batch : batches_) {
      for (const Engine& engine : batch) {
        if (engine.candidate.id == id) {
          return engine;
        }
      }
    }
    throw std::out_of_range(id);
  }

  std::vector<std::vector<Engine>> batches_;
};

/// An engine without faults, whose id is "<engine>/<knobs>" or "<engine>".
inline Engine Good(const std::string& id, double milliseconds = 1) {
  return {.candidate = {.id = id, .engine = id.substr(0, id.find('/'))}, .times = {milliseconds}};
}

inline Engine WithNotes(const std::string& id, const CandidateNotes& notes) {
  Engine engine = Good(id, 0.1);
  engine.candidate.notes = notes;
  return engine;
}

/// A policy of a mode in which nothing is timed beside what heuristics put first.
inline SearchPolicy In(SearchMode mode) {
  return {.mode = mode, .first_choice_seconds = 0};
}

/// The default: the first is timed beside others for so long.
inline SearchPolicy Looking(double seconds = 0.010) {
  return {.mode = SearchMode::kHeuristic, .first_choice_seconds = seconds};
}

/// Why a candidate was rejected; empty where it was not.
inline std::string WhyNot(const std::vector<Rejection>& rejections, const std::string& id) {
  for (const Rejection& rejection : rejections) {
    if (rejection.id == id) {
      return rejection.reason;
    }
  }
  return "";
}

/// The id that is chosen, or the error.
inline std::string Choice(FakeSpace& space, const SearchPolicy& policy) {
  const Result<Selected> selected = Select(space, policy);
  return selected.ok() ? selected->decision.id : selected.status().message();
}

/// Every way in which an engine may fail after it was listed, before one that does not.
inline std::vector<Engine> Liars() {
  std::vector<Engine> engines = {
      Good("unbuildable", 0.1), Good("wrong", 0.1), Good("leaves poison", 0.1), Good("good", 5)};
  engines[0].build_error = "CUDNN_STATUS_NOT_SUPPORTED";
  engines[1].check_error = "differs by 3 in 10 elements";
  engines[2].check_error = "leaves 7 elements unwritten";
  return engines;
}

}  // namespace gradsmith::internal

#endif  // GRADSMITH_TESTS_RUNTIME_FAKE_SPACE_H_
