#include "core/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/test_clock.h"

namespace gradsmith::internal {
namespace {

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
  [[nodiscard]] bool IsSlowToList(int batch) const override { return slow_to_list.contains(batch); }
  [[nodiscard]] bool IsPromising(int batch) const override { return !unpromising.contains(batch); }
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
  std::set<int> slow_to_list;
  std::set<int> unpromising;

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
Engine Good(const std::string& id, double milliseconds = 1) {
  return {.candidate = {id, id.substr(0, id.find('/')), {}, 0}, .times = {milliseconds}};
}

Engine WithNotes(const std::string& id, const CandidateNotes& notes) {
  Engine engine = Good(id, 0.1);
  engine.candidate.notes = notes;
  return engine;
}

/// Of the quick modes what heuristics put first, by no clock.
SearchPolicy In(SearchMode mode) {
  return {.mode = mode, .first_choice_seconds = 0};
}

/// The default: the first is timed beside others for so long.
SearchPolicy Looking(double seconds = 0.010) {
  return {.mode = SearchMode::kHeuristic, .first_choice_seconds = seconds};
}

/// Why a candidate was rejected; empty where it was not.
std::string WhyNot(const std::vector<Rejection>& rejections, const std::string& id) {
  for (const Rejection& rejection : rejections) {
    if (rejection.id == id) {
      return rejection.reason;
    }
  }
  return "";
}

/// The id that is chosen, or the error.
std::string Choice(FakeSpace& space, const SearchPolicy& policy) {
  const Result<Selected> selected = Select(space, policy);
  return selected.ok() ? selected->decision.id : selected.status().message();
}

TEST(Selection, HeuristicModesTakeTheFirstAndAskForNoMoreThanNeeded) {
  for (const SearchMode mode : {SearchMode::kDefault, SearchMode::kHeuristic}) {
    FakeSpace space({{}, {Good("first", 9), Good("second", 1)}, {Good("third", 1)}});
    const Result<Selected> selected = Select(space, In(mode));
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "first");
    EXPECT_EQ(selected->decision.mode, mode);
    EXPECT_EQ(selected->decision.milliseconds, 0);
    ASSERT_NE(selected->plan, nullptr);
    EXPECT_EQ(space.listed, 2);
    EXPECT_EQ(space.built, std::vector<std::string>{"first"});
    EXPECT_EQ(space.checked, std::vector<std::string>{"first"});
    EXPECT_TRUE(space.timed.empty());
  }
}

TEST(Selection, OnlyDefaultModeInsistsOnDeterminismByItself) {
  const auto space = [] {
    return FakeSpace({{WithNotes("atomic", {.deterministic = false}), Good("ordered")}});
  };
  FakeSpace by_default = space();
  EXPECT_EQ(Choice(by_default, In(SearchMode::kDefault)), "ordered");
  FakeSpace by_heuristic = space();
  EXPECT_EQ(Choice(by_heuristic, In(SearchMode::kHeuristic)), "atomic");
  FakeSpace by_time = space();
  EXPECT_EQ(Choice(by_time, In(SearchMode::kBenchmark)), "atomic");
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    FakeSpace strict = space();
    EXPECT_EQ(Choice(strict, {.mode = mode, .deterministic = true}), "ordered");
  }
}

TEST(Selection, Tf32MustBeAllowed) {
  FakeSpace strict({{WithNotes("tf32", {.tf32 = true}), Good("ieee")}});
  EXPECT_EQ(Choice(strict, In(SearchMode::kBenchmark)), "ieee");
  FakeSpace loose({{WithNotes("tf32", {.tf32 = true}), Good("ieee")}});
  EXPECT_EQ(Choice(loose, {.mode = SearchMode::kBenchmark, .allow_tf32 = true}), "tf32");
}

TEST(Selection, KeepsTheErrorOfWhatItChooses) {
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    Engine exact = Good("exact");
    exact.times = {1};
    exact.error = 2e-7;
    Engine slow = Good("slow");
    slow.times = {5};
    slow.error = 5e-8;
    FakeSpace space({{exact, slow}});
    SearchPolicy policy = In(mode);
    std::map<std::string, double> reported;
    policy.on_progress = [&](const SearchProgress& progress) {
      reported[progress.candidate] = progress.error;
    };
    const Result<Selected> selected = Select(space, policy);
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "exact");
    EXPECT_EQ(selected->decision.error, 2e-7);
    EXPECT_EQ(reported["exact"], 2e-7);
    EXPECT_EQ(reported["slow"], 0) << "it was not compared";
  }
}

TEST(Selection, NeverBuildsWhatMayNotBeChosen) {
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    FakeSpace space(
        {{WithNotes("narrows", {.down_converts = true}),
          WithNotes("sums in half", {.reduced_precision = true}),
          WithNotes("crashes", {.known_bad = true}), Good("good", 5)}});
    const Result<Selected> selected = Select(space, {.mode = mode, .allow_tf32 = true});
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "good");
    EXPECT_EQ(space.built, std::vector<std::string>{"good"});
    EXPECT_EQ(WhyNot(selected->rejections, "narrows"), "narrows its inputs");
    EXPECT_EQ(WhyNot(selected->rejections, "sums in half"), "sums in less than float");
    EXPECT_EQ(WhyNot(selected->rejections, "crashes"), "known to be bad in this version");
  }
}

/// Every way in which an engine may fail after it was listed, before one that does not.
std::vector<Engine> Liars() {
  std::vector<Engine> engines = {
      Good("unbuildable", 0.1), Good("wrong", 0.1), Good("leaves poison", 0.1), Good("good", 5)};
  engines[0].build_error = "CUDNN_STATUS_NOT_SUPPORTED";
  engines[1].check_error = "differs by 3 in 10 elements";
  engines[2].check_error = "leaves 7 elements unwritten";
  return engines;
}

TEST(Selection, TrustsNoEngineThatFailsItsTrial) {
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    FakeSpace space({Liars()});
    const Result<Selected> selected = Select(space, In(mode));
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "good");
    EXPECT_EQ(space.checked, (std::vector<std::string>{"wrong", "leaves poison", "good"}));
    EXPECT_EQ(WhyNot(selected->rejections, "unbuildable"), "CUDNN_STATUS_NOT_SUPPORTED");
    EXPECT_EQ(WhyNot(selected->rejections, "wrong"), "differs by 3 in 10 elements");
    EXPECT_EQ(WhyNot(selected->rejections, "leaves poison"), "leaves 7 elements unwritten");
  }
}

TEST(Selection, HoldsTheWorkspaceLimitAsListedAndAsBuilt) {
  std::vector<Engine> engines = {Good("listed"), Good("built"), Good("fits")};
  engines[0].candidate.workspace = 101;
  engines[1].built_workspace = 102;
  engines[2].candidate.workspace = 99;
  engines[2].built_workspace = 100;
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    FakeSpace space({engines});
    const Result<Selected> selected = Select(space, {.mode = mode, .workspace_limit = 100});
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "fits");
    EXPECT_EQ(selected->decision.workspace, 100U);
    EXPECT_EQ(space.built, (std::vector<std::string>{"built", "fits"}));
    EXPECT_EQ(space.checked, std::vector<std::string>{"fits"});
    for (const char* id : {"listed", "built"}) {
      EXPECT_EQ(
          WhyNot(selected->rejections, id), "needs more workspace than the limit of 100 bytes");
    }
  }
}

TEST(Selection, HeuristicModeCompilesAtRunTimeOnlyWhereNothingElseIsLeft) {
  const Engine slow = WithNotes("compiled", {.runtime_compiled = true});
  FakeSpace space({{slow, Good("first")}, {Good("second")}});
  EXPECT_EQ(Choice(space, In(SearchMode::kHeuristic)), "first");
  std::vector<Engine> all = Liars();
  all.pop_back();
  all.insert(all.begin(), slow);
  FakeSpace none_else({all, {WithNotes("compiled later", {.runtime_compiled = true})}});
  EXPECT_EQ(Choice(none_else, In(SearchMode::kHeuristic)), "compiled");
  EXPECT_EQ(
      none_else.built,
      (std::vector<std::string>{"unbuildable", "wrong", "leaves poison", "compiled"}));
}

TEST(Selection, BenchmarkTriesEnginesInTurnAndWhatCompilesLast) {
  FakeSpace space(
      {{Good("a/1"), Good("a/2"), Good("a/3"), WithNotes("c/1", {.runtime_compiled = true})},
       {Good("b/1"), Good("a/4"), Good("b/2"), Good("d/1")}});
  EXPECT_EQ(Choice(space, In(SearchMode::kBenchmark)), "c/1");
  EXPECT_EQ(
      space.built,
      (std::vector<std::string>{"a/1", "b/1", "d/1", "a/2", "b/2", "a/3", "a/4", "c/1"}));
}

TEST(Selection, BenchmarkTriesTheFirstOfEachEngineBeforeFallbacks) {
  FakeSpace space(
      {{Good("a/1"), Good("a/2")},
       {WithNotes("slow/1", {.fallback = true}), WithNotes("slow/2", {.fallback = true})},
       {WithNotes("naive/1", {.slow = true}), Good("legacy/1")}});
  EXPECT_TRUE(Select(space, In(SearchMode::kBenchmark)).ok());
  EXPECT_EQ(
      space.built,
      (std::vector<std::string>{"a/1", "legacy/1", "a/2", "slow/1", "slow/2", "naive/1"}));
}

/// What is quick by turns is as slow as it is in the mean; one run that was held up does not count.
TEST(Selection, BenchmarkGoesByTheMeanWhereTimesVary) {
  Engine by_turns = WithNotes("by turns", {.varies = true});
  by_turns.times = {5, 1, 1, 1, 1, 3, 1, 3, 3, 1, 1, 3, 3, 1, 3, 1, 1, 3, 3, 3};
  Engine held_up = WithNotes("held up", {.varies = true});
  // Two of the first three runs are slow as well.
  held_up.times = {5, 5, 1.8, 1.8, 1.8, 50, 1.8};
  FakeSpace space({{Good("steady", 1.9), by_turns, held_up}});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "held up");
  EXPECT_NEAR(selected->decision.milliseconds, 1.8, 1e-9);
}

TEST(Selection, BenchmarkTakesTheFastestByTheMedianOfItsRuns) {
  std::vector<Engine> engines = {
      Good("steady", 2), Good("lucky"), Good("fast", 1.5), Good("slow", 3)};
  engines[1].times = {0.1, 9, 0.1, 9, 9, 0.1, 9, 9, 9};
  engines[2].times = {40, 1.5, 1.5, 40, 1.5, 1.5, 40, 1.5};
  FakeSpace space({engines});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "fast");
  EXPECT_EQ(selected->decision.milliseconds, 1.5);
  EXPECT_EQ(selected->decision.mode, SearchMode::kBenchmark);
  EXPECT_EQ(dynamic_cast<FakePlan&>(*selected->plan).engine().candidate.id, "fast");
  EXPECT_EQ(space.timed.size(), engines.size());
  for (const auto& [id, samples] : space.timed) {
    EXPECT_GE(samples, 3) << id;
  }
}

TEST(Selection, BenchmarkNamesTheFastestOfTheOtherFormsThatAreNotFarBehind) {
  std::vector<Engine> engines = {Good("own/plain", 1),    Good("own/faster", 0.8),
                                 Good("last own/a", 1.4), Good("last own/b", 1.2),
                                 Good("wide own/a", 1.7), Good("wrong own/a", 0.1)};
  engines[5].check_error = "disagrees";
  FakeSpace space({engines});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "own/faster");
  EXPECT_EQ(selected->decision.of_other_forms, std::vector<std::string>{"last own/b"});

  FakeSpace others({{Good("last own/a", 1), Good("own/plain", 0.8), engines[4]}});
  const Result<Selected> best_is_later = Select(others, In(SearchMode::kBenchmark));
  ASSERT_TRUE(best_is_later.ok());
  EXPECT_EQ(best_is_later->decision.of_other_forms, std::vector<std::string>{"last own/a"});
}

/// What takes so long that no loading does is run once.
TEST(Selection, BenchmarkRunsTwiceWhatTakesLongAndTwiceTheBest) {
  FakeSpace space(
      {{Good("first", 100), Good("hopeless/1", 201), Good("slow/1", 199), Good("good", 2),
        Good("naive/1", 501)},
       {Good("hopeless/2"), Good("slow/2"), Good("nhwc hopeless/1")}});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "slow/2");
  EXPECT_EQ(space.timed["hopeless/1"], 2);
  EXPECT_EQ(space.timed["naive/1"], 1);
  EXPECT_GE(space.timed["first"], 3);
  EXPECT_GE(space.timed["slow/1"], 3);
  // Nor do other knobs or a detour help it.
  for (const char* id : {"hopeless/2", "nhwc hopeless/1"}) {
    EXPECT_EQ(space.timed.count(id), 0) << id;
    EXPECT_EQ(
        WhyNot(selected->rejections, id), "not tried: the engine took much longer than the best");
  }
}

/// Where there is no memory to try anything in, the error does not say that nothing is supported.
TEST(Selection, NoMemoryToTryInIsNoMemory) {
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    std::vector<Engine> engines = {Good("wrong"), Good("large")};
    engines[0].check_error = "disagrees";
    engines[1].is_out_of_memory = true;
    FakeSpace space({engines});
    const Result<Selected> selected = Select(space, In(mode));
    ASSERT_FALSE(selected.ok());
    EXPECT_EQ(selected.status().code(), StatusCode::kOutOfMemory);
    EXPECT_EQ(
        selected.status().message(),
        "forward of fakes: no candidate is left; wrong: disagrees; large: no 8 bytes");
  }
}

/// Nor does it keep others from being taken that are less exact.
TEST(Selection, NoMemoryForOneRelaxesWhatIsAskedOfOthers) {
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    std::vector<Engine> engines = {Good("rounds"), Good("large")};
    engines[0].check_error = "rounds twice";
    engines[1].is_out_of_memory = true;
    FakeSpace space({engines});
    space.relaxes = true;
    const Result<Selected> selected = Select(space, In(mode));
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "rounds");
    EXPECT_EQ(space.relaxed_for_memory, 1) << "the space is not told why none is left";
    EXPECT_EQ(space.relaxed, 0);
  }
}

/// A first run may take long as it loads code, and says nothing of those that follow.
TEST(Selection, BenchmarkDropsNothingForItsFirstRun) {
  std::vector<Engine> engines = {Good("best", 1), Good("cold/1"), Good("cold/2", 0.3)};
  engines[1].times = {60, 0.2, 0.2};
  FakeSpace space({engines});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "cold/1");
  EXPECT_GE(space.timed["cold/2"], 3);
}

TEST(Selection, BenchmarkKeepsTheFirstOfThoseThatAreAlike) {
  FakeSpace space({{Good("first", 1), Good("by chance", 0.995), Good("faster", 0.98)}});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "faster");
  EXPECT_EQ(space.checked, (std::vector<std::string>{"first", "faster"}));
}

TEST(Selection, BenchmarkTakesFewerSamplesOfLongRuns) {
  FakeSpace space({{Good("long", 20), Good("short", 2)}});
  ASSERT_TRUE(Select(space, In(SearchMode::kBenchmark)).ok());
  EXPECT_EQ(space.timed["long"], 3);
  EXPECT_GT(space.timed["short"], 3);
}

TEST(Selection, BenchmarkRunsOnceWhatTakesSeconds) {
  FakeSpace space({{Good("very long", 5000), Good("no better", 4990), Good("better", 2500)}});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "better");
  EXPECT_EQ(selected->decision.milliseconds, 2500);
  for (const char* id : {"very long", "no better", "better"}) {
    EXPECT_EQ(space.timed[id], 1) << id;
  }
}

TEST(Selection, TheBudgetBeginsAfterTheFirstThatIsTried) {
  FakeSpace space({{Good("first", 9), Good("good", 1)}});
  space.time_of_first = 0.150;
  SearchPolicy policy = In(SearchMode::kBenchmark);
  policy.budget_seconds = 0.05;
  const Result<Selected> selected = Select(space, policy);
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "good");
}

TEST(Selection, WhatIsSlowToListIsListedLastIfThereIsTime) {
  const auto search = [](double budget_seconds) {
    FakeSpace space({{Good("a", 3)}, {Good("late", 1)}, {Good("b", 2)}});
    space.slow_to_list = {1};
    space.time_taken = 0.010;
    SearchPolicy policy = In(SearchMode::kBenchmark);
    policy.budget_seconds = budget_seconds;
    EXPECT_TRUE(Select(space, policy).ok());
    return space.built;
  };
  EXPECT_EQ(search(10), (std::vector<std::string>{"a", "b", "late"}));
  EXPECT_EQ(search(0.03), (std::vector<std::string>{"a", "b"}));
}

TEST(Selection, AQuickChoiceThatIsSlowIsTimedBesideOthers) {
  const std::vector<std::vector<Engine>> engines = {
      {Good("slow", 30), Good("good", 6), WithNotes("compiled", {.runtime_compiled = true}),
       WithNotes("inexact", {.transforms = true})}};
  const auto choose = [&](const SearchPolicy& policy) {
    FakeSpace space(engines);
    space.may_take_milliseconds = true;
    const Result<Selected> selected = Select(space, policy);
    EXPECT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.mode, policy.mode);
    return selected->decision.id;
  };
  EXPECT_EQ(choose(Looking()), "good");
  // The same on every run.
  EXPECT_EQ(choose(In(SearchMode::kHeuristic)), "slow");
  EXPECT_EQ(choose(In(SearchMode::kDefault)), "slow");
}

/// As long as 20 of its runs, after the first of the others.
TEST(Selection, AQuickChoiceThatIsSlowLeavesLittleTimeToOthers) {
  FakeSpace space({{Good("first", 6), Good("a", 8), Good("b", 8), Good("fast", 1)}});
  space.may_take_milliseconds = true;
  space.time_taken = 0.050;
  const Result<Selected> selected = Select(space, Looking());
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "first");
  EXPECT_EQ(WhyNot(selected->rejections, "fast"), "not tried: the search's budget was spent");
}

TEST(Selection, AQuickChoiceIsTimedBesideOthersForAMoment) {
  FakeSpace space({{Good("first", 1), Good("better", 0.5)}, {Good("best", 0.3)}});
  const Result<Selected> selected = Select(space, Looking());
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "best");
  EXPECT_EQ(selected->decision.mode, SearchMode::kHeuristic);
  EXPECT_EQ(selected->decision.milliseconds, 0.3);
  EXPECT_EQ(dynamic_cast<FakePlan&>(*selected->plan).engine().candidate.id, "best");
  // Only what is taken is compared.
  EXPECT_EQ(space.checked, (std::vector<std::string>{"first", "best"}));
}

/// The best of each batch comes before the second of any, an engine's further knobs and fallbacks
/// later, and what is listed for its exceptions last.
TEST(Selection, ALookTriesTheBestOfEachSourceFirst) {
  Engine fallback = Good("fallback");
  fallback.candidate.notes.fallback = true;
  FakeSpace space(
      {{Good("first"), Good("a"), Good("a/knobs"), Good("b")},
       {fallback, Good("legacy")},
       {Good("c"), Good("d")}});
  space.unpromising = {1};
  ASSERT_EQ(Choice(space, Looking()), "first");
  EXPECT_EQ(
      space.built,
      (std::vector<std::string>{"first", "a", "c", "b", "d", "a/knobs", "legacy", "fallback"}));
}

TEST(Selection, ALookEndsWithItsTime) {
  FakeSpace space({{Good("first", 1), Good("a", 0.9), Good("b", 0.8), Good("c", 0.1)}});
  space.time_taken = 0.002;                       // three runs of each
  ASSERT_EQ(Choice(space, Looking(0.007)), "b");  // and four runs of the first
  EXPECT_EQ(space.built, (std::vector<std::string>{"first", "a", "b"}));
}

/// Loading code makes the first run long; a run that is far behind is not made again.
TEST(Selection, ALookRunsOnceWhatIsFarBehind) {
  Engine loading = Good("loading");
  loading.times = {15, 0.5, 0.6};
  Engine hopeless = Good("hopeless", 400);
  Engine behind = Good("behind", 5);
  FakeSpace space({{Good("first", 1), loading, hopeless, behind}});
  ASSERT_EQ(Choice(space, Looking()), "loading");
  EXPECT_EQ(space.timed["loading"], 3);
  EXPECT_EQ(space.timed["hopeless"], 1);
  EXPECT_EQ(space.timed["behind"], 2);
}

TEST(Selection, ALookLeavesWhatIsInexactSlowOrCompiled) {
  FakeSpace space(
      {{Good("first", 1), WithNotes("inexact", {.transforms = true}),
        WithNotes("slow", {.slow = true}), WithNotes("last", {.last_resort = true}),
        WithNotes("compiled", {.runtime_compiled = true})},
       {Good("late", 0.1)}});
  space.slow_to_list = {1};
  EXPECT_EQ(Choice(space, Looking()), "first");
  EXPECT_EQ(space.built, std::vector<std::string>{"first"});
}

TEST(Selection, ALookGoesByTheMeanWhereTimesVary) {
  const auto varying = [](const std::string& id, std::vector<double> times) {
    Engine engine = WithNotes(id, {.varies = true});
    engine.times = std::move(times);
    return engine;
  };
  FakeSpace space({{varying("steady", {1, 1, 1}), varying("lucky", {2, 0.9, 1.2})}});
  EXPECT_EQ(Choice(space, Looking()), "steady");
}

TEST(Selection, ALookReportsWhatItTriesAndTakes) {
  Engine wrong = Good("wrong", 0.2);
  wrong.check_error = "is off";
  FakeSpace space({{Good("first", 1), wrong, Good("better", 0.5), Good("slower", 2)}});
  SearchPolicy policy = Looking();
  std::vector<std::string> told;
  policy.on_progress = [&](const SearchProgress& progress) {
    told.push_back(
        std::to_string(progress.tried) + " " + progress.candidate +
        (progress.rejection.empty() ? "" : " " + progress.rejection) + ", best " + progress.best);
  };
  ASSERT_EQ(Choice(space, policy), "better");
  EXPECT_EQ(
      told, (std::vector<std::string>{
                "1 first, best first", "2 wrong, best first", "3 better, best first",
                "4 slower, best first", "4 wrong is off, best first", "4 better, best better"}));
}

TEST(Selection, ALookTimesNothingWhereThereAreNoOthers) {
  FakeSpace space({{Good("only", 9), WithNotes("last", {.last_resort = true})}});
  space.may_take_milliseconds = true;
  EXPECT_EQ(Choice(space, Looking()), "only");
  EXPECT_TRUE(space.timed.empty());
}

TEST(Selection, ALookKeepsTheFirstOfThoseThatAreAlike) {
  FakeSpace space({{Good("first", 1), Good("hardly", 0.98)}});
  EXPECT_EQ(Choice(space, Looking()), "first");
  EXPECT_EQ(space.checked, std::vector<std::string>{"first"});
}

TEST(Selection, ALookTrustsNothingWrong) {
  Engine wrong = Good("wrong", 0.1);
  wrong.check_error = "is off";
  Engine broken = Good("broken", 0.1);
  broken.time_error = "fails";
  FakeSpace space({{Good("first", 1), wrong, broken, Good("right", 0.5)}});
  const Result<Selected> selected = Select(space, Looking());
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "right");
  EXPECT_EQ(WhyNot(selected->rejections, "wrong"), "is off");
  EXPECT_EQ(WhyNot(selected->rejections, "broken"), "fails");
}

TEST(Selection, ALookNamesTheFastestOfTheOtherFormsThatAreNotFarBehind) {
  Engine wrong = Good("packed own/wrong", 0.4);
  wrong.check_error = "is off";
  FakeSpace space(
      {{Good("own/first", 1), Good("nhwc own/a", 0.5), Good("nhwc own/b", 0.6),
        Good("packed own/c", 0.8), Good("padded8 own/d", 3), wrong}});
  const Result<Selected> selected = Select(space, Looking());
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "nhwc own/a");
  EXPECT_EQ(WhyNot(selected->rejections, "packed own/wrong"), "is off");
  EXPECT_EQ(selected->decision.of_other_forms, (std::vector<std::string>{"packed own/c"}));
}

/// Kernels side by side are not in a form that others could share.
TEST(Selection, ALookNamesNoOtherFormsOfSeveralKernels) {
  FakeSpace space(
      {{Good("in turn: nhwc own/a & nhwc own/b", 1),
        Good("side by side: nhwc own/a & nhwc own/b", 0.5),
        Good("side by side: own/c & own/b", 0.6), Good("in one pass: own/d", 0.7)}});
  const Result<Selected> selected = Select(space, Looking());
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "side by side: nhwc own/a & nhwc own/b");
  EXPECT_TRUE(selected->decision.of_other_forms.empty());
}

TEST(Selection, AQuickChoiceLeavesWhatIsSlowForLast) {
  FakeSpace space(
      {{WithNotes("slow", {.slow = true}), WithNotes("compiled", {.runtime_compiled = true})}});
  Result<Selected> selected = Select(space, In(SearchMode::kHeuristic));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "compiled");
}

TEST(Selection, BenchmarkChecksWhatItWouldTake) {
  std::vector<Engine> engines = {Good("slow", 4),         Good("slower", 5), Good("wrong", 1),
                                 Good("much slower", 50), Good("good", 2),   Good("as good", 2)};
  engines[2].check_error = "differs by 3 in 10 elements";
  FakeSpace space({engines});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "good");
  EXPECT_EQ(space.checked, (std::vector<std::string>{"slow", "wrong", "good"}));
  EXPECT_EQ(WhyNot(selected->rejections, "wrong"), "differs by 3 in 10 elements");
  EXPECT_LT(space.timed["much slower"], space.timed["slower"]);
}

TEST(Selection, BenchmarkDropsWhatCannotBeTimed) {
  std::vector<Engine> engines = {Good("hangs", 0.1), Good("good", 5)};
  engines[0].time_error = "the device does not answer";
  FakeSpace space({engines});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "good");
  EXPECT_EQ(WhyNot(selected->rejections, "hangs"), "the device does not answer");
}

TEST(Selection, SpentBudgetLeavesTheRestUntriedAndSaysSo) {
  std::vector<Engine> engines = Liars();
  engines.push_back(Good("faster", 1));
  FakeSpace space({engines});
  space.time_taken = 0.001;
  std::vector<SearchProgress> reports;
  const Result<Selected> selected = Select(
      space, {.mode = SearchMode::kBenchmark,
              .budget_seconds = 0,
              .on_progress = [&](const SearchProgress& report) { reports.push_back(report); }});
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  // However little there is to spend, it goes on until there is one that works.
  EXPECT_EQ(selected->decision.id, "good");
  EXPECT_EQ(WhyNot(selected->rejections, "faster"), "not tried: the search's budget was spent");
  EXPECT_EQ(reports.size(), 4U);
}

TEST(Selection, ReportsProgress) {
  std::vector<SearchProgress> reports;
  std::vector<Engine> engines = Liars();
  engines.erase(engines.begin(), engines.begin() + 2);
  engines.push_back(Good("faster", 1));
  engines.push_back(WithNotes("filtered", {.known_bad = true}));
  FakeSpace space({engines});
  const Result<Selected> selected = Select(
      space, {.mode = SearchMode::kBenchmark,
              .on_progress = [&](const SearchProgress& report) { reports.push_back(report); }});
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  ASSERT_EQ(reports.size(), 3U);
  const std::vector<std::string> ids = {"leaves poison", "good", "faster"};
  const std::vector<std::string> best = {"", "good", "faster"};
  const std::vector<double> milliseconds = {0, 5, 1};
  EXPECT_EQ(reports[0].rejection, "leaves 7 elements unwritten");
  EXPECT_EQ(reports[1].rejection + reports[2].rejection, "");
  double seconds = 0;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].problem, "forward of fakes");
    EXPECT_EQ(reports[i].candidate, ids[i]);
    EXPECT_EQ(reports[i].tried, static_cast<int>(i) + 1);
    EXPECT_EQ(reports[i].candidates, 3);
    EXPECT_GT(reports[i].milliseconds, 0);
    EXPECT_EQ(reports[i].best, best[i]);
    EXPECT_EQ(reports[i].best_milliseconds, milliseconds[i]);
    EXPECT_GE(reports[i].seconds, seconds);
    seconds = reports[i].seconds;
  }
}

TEST(Selection, QuickChoicesReportWhatTheyDropAsWell) {
  for (const SearchMode mode : {SearchMode::kDefault, SearchMode::kHeuristic}) {
    std::vector<Engine> engines = Liars();  // the last is good
    const std::size_t liars = engines.size() - 1;
    engines.push_back(Good("not needed"));
    FakeSpace space({engines});
    std::vector<SearchProgress> reports;
    SearchPolicy policy = In(mode);
    policy.on_progress = [&](const SearchProgress& progress) { reports.push_back(progress); };
    ASSERT_TRUE(Select(space, policy).ok());
    ASSERT_EQ(reports.size(), liars + 1);
    for (std::size_t i = 0; i < reports.size(); ++i) {
      EXPECT_EQ(reports[i].candidate, engines[i].candidate.id);
      EXPECT_EQ(reports[i].rejection.empty(), i == liars) << reports[i].candidate;
      EXPECT_EQ(reports[i].tried, static_cast<int>(i) + 1);
      EXPECT_EQ(reports[i].candidates, static_cast<int>(engines.size()));
      EXPECT_EQ(reports[i].best, i == liars ? "good" : "");
    }
  }
}

TEST(Selection, SaysOfEachReasonOnceWhomItExcluded) {
  std::vector<Engine> engines = Liars();
  engines.back() = Good("wrong too");
  engines.back().check_error = engines[1].check_error;
  engines.push_back(WithNotes("atomic", {.deterministic = false}));
  engines.push_back(WithNotes("tf32/1", {.tf32 = true}));
  engines.push_back(WithNotes("tf32/2", {.tf32 = true}));
  engines.push_back(WithNotes("tf32/3", {.tf32 = true}));
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    FakeSpace space({engines});
    const Status status = Select(space, {.mode = mode, .deterministic = true}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(
        status.message(),
        "forward of fakes: no candidate is left"
        "; unbuildable: CUDNN_STATUS_NOT_SUPPORTED"
        "; tf32/1 and 2 more: computes in TF32, and allow_tf32 is off"
        "; wrong and 1 more: differs by 3 in 10 elements"
        "; atomic: is not deterministic"
        "; leaves poison: leaves 7 elements unwritten");
  }
  FakeSpace empty({{}, {}});
  EXPECT_EQ(Choice(empty, {}), "forward of fakes: no candidate is left; none was offered");
}

}  // namespace
}  // namespace gradsmith::internal
