#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/selection.h"
#include "runtime/fake_space.h"

/// How kBenchmark tries, times and chooses candidates.
namespace gradsmith::internal {
namespace {

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

/// Each try of the best engine makes a next one less likely, so that others have their turn: such a
/// one as takes little longer, what nothing is known of, and last what was wrong.
TEST(Selection, BenchmarkGoesOnWithTheEngineThatDidBest) {
  std::vector<Engine> engines = {Good("a/1", 1.4), Good("b/1", 1.2), Good("wrong/1", 0.1)};
  engines[2].check_error = "wrong";
  for (const char* more : {"a/2", "wrong/2", "b/2", "b/3", "b/4", "b/5", "b/6"}) {
    engines.push_back(Good(more, 1));
  }
  Engine fallback = WithNotes("fallback/1", {.fallback = true});
  fallback.times = {2};
  FakeSpace space({engines, {fallback}});
  EXPECT_TRUE(Select(space, In(SearchMode::kBenchmark)).ok());
  EXPECT_EQ(
      space.built, (std::vector<std::string>{
                       "a/1", "b/1", "wrong/1", "b/2", "b/3", "b/4", "b/5", "fallback/1", "b/6",
                       "a/2", "wrong/2"}));
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

TEST(Selection, BenchmarkRunsTwiceWhatTakesTenMillisecondsAndFourTimesTheBest) {
  FakeSpace space(
      {{Good("good", 2), Good("hopeless/1", 10.1), Good("short/1", 9.9), Good("hopeless/2")}});
  const Result<Selected> selected = Select(space, In(SearchMode::kBenchmark));
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(space.timed["hopeless/1"], 2);
  EXPECT_GE(space.timed["short/1"], 3);
  EXPECT_EQ(
      WhyNot(selected->rejections, "hopeless/2"),
      "not tried: the engine took much longer than the best");
}

/// Nor does a bad setting speak for others of an engine that did well, or of its detours.
TEST(Selection, BenchmarkGoesOnWithAnEngineThatDidWellOnce) {
  FakeSpace space(
      {{Good("a/1", 2), Good("nhwc a/1", 2.1), Good("a/2", 10.1), Good("a/3", 1),
        Good("nhwc a/2", 0.5)}});
  EXPECT_EQ(Choice(space, In(SearchMode::kBenchmark)), "nhwc a/2");
  EXPECT_GE(space.timed["a/3"], 3);
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
              .first_choice_seconds = 0,
              .on_progress = [&](const SearchProgress& report) { reports.push_back(report); }});
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  // However little there is to spend, it goes on until there is one that works.
  EXPECT_EQ(selected->decision.id, "good");
  EXPECT_EQ(WhyNot(selected->rejections, "faster"), "not tried: the search's budget was spent");
  EXPECT_EQ(reports.size(), 4U);
}

TEST(Selection, SpentBudgetDoesNoWorseThanAQuickChoice) {
  const auto search = [](double first_choice_seconds) {
    FakeSpace space({{Good("first", 9), Good("second", 8), Good("better", 1), Good("worse", 5)}});
    space.time_taken = 0.001;
    Result<Selected> selected = Select(
        space, {.mode = SearchMode::kBenchmark,
                .budget_seconds = 0,
                .first_choice_seconds = first_choice_seconds});
    EXPECT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(WhyNot(selected->rejections, "worse"), "not tried: the search's budget was spent");
    EXPECT_EQ(selected->decision.mode, SearchMode::kBenchmark);
    return std::pair(selected->decision.id, WhyNot(selected->rejections, selected->decision.id));
  };
  EXPECT_EQ(search(0.010), std::pair(std::string("better"), std::string()));
  EXPECT_EQ(search(0), std::pair(std::string("second"), std::string()));
}

/// Also where that is listed by what a search that was cut short has not come to.
TEST(Selection, SpentBudgetDoesNoWorseThanAQuickChoiceThatIsSlowToList) {
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    std::vector<Engine> inexact = {Good("inexact", 3), Good("as inexact", 3)};
    inexact[0].candidate.notes.transforms = inexact[1].candidate.notes.transforms = true;
    FakeSpace space({inexact, {Good("late", 1), Good("later", 2)}});
    space.slow_to_list = {1};
    space.time_taken = 0.001;
    const Result<Selected> selected = Select(space, {.mode = mode, .budget_seconds = 0});
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "late");
    EXPECT_EQ(selected->decision.mode, mode);
  }
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

}  // namespace
}  // namespace gradsmith::internal
