#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/selection.h"
#include "runtime/fake_space.h"

/// How a choice by heuristics is timed beside others for a moment.
namespace gradsmith::internal {
namespace {

TEST(Selection, AQuickChoiceThatIsSlowIsTimedBesideOthers) {
  const std::vector<std::vector<Engine>> engines = {
      {Good("slow", 30), Good("good", 6), Good("a", 40), Good("b", 40),
       WithNotes("compiled", {.runtime_compiled = true}),
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

/// One run of such a kernel may take seconds.
TEST(Selection, AQuickChoiceThatIsSlowIsNotTimedBesideWhatIsSlowerByFar) {
  Engine naive = WithNotes("naive", {.slow = true});
  naive.times = {2900};
  Engine endless = WithNotes("endless", {.last_resort = true});
  endless.times = {12000};
  FakeSpace space({{Good("first", 30), naive, endless, Good("good", 16)}});
  space.may_take_milliseconds = true;
  EXPECT_EQ(Choice(space, Looking()), "good");
  EXPECT_EQ(space.timed["naive"], 0);
  EXPECT_EQ(space.timed["endless"], 0);
}

/// As long as 20 of its runs, after the first of the others.
TEST(Selection, AQuickChoiceThatIsSlowLeavesLittleTimeToOthers) {
  FakeSpace space({{Good("first", 6), Good("a", 8), Good("b", 8), Good("fast", 1)}});
  space.may_take_milliseconds = true;
  space.time_taken = 0.070;
  const Result<Selected> selected = Select(space, Looking());
  ASSERT_TRUE(selected.ok()) << selected.status().message();
  EXPECT_EQ(selected->decision.id, "first");
  EXPECT_EQ(WhyNot(selected->rejections, "fast"), "not tried: the search's budget was spent");
}

/// What may not take milliseconds is timed beside others for a moment, whatever its first run
/// takes; of what may, a short one.
TEST(Selection, AQuickChoiceLeavesARaceOnlyToWhatIsSlow) {
  const auto runs_of_first = [](double milliseconds, bool may_take_milliseconds) {
    FakeSpace space({{Good("first", milliseconds), Good("other", 2 * milliseconds)}});
    space.may_take_milliseconds = may_take_milliseconds;
    EXPECT_EQ(Choice(space, Looking()), "first");
    return space.timed["first"];
  };
  EXPECT_EQ(runs_of_first(9, true), 1);
  EXPECT_EQ(runs_of_first(9, false), 3);
  EXPECT_EQ(runs_of_first(1, true), 3);
  EXPECT_EQ(runs_of_first(0.5, true), 4);
}

/// What comes next in a list differs little from what is before it.
TEST(Selection, AQuickChoiceIsTimedBesideOtherTilesFirst) {
  std::vector<Engine> engines = {
      Good("e/1"), Good("e/2"), Good("e/3"), Good("e/4"), Good("other/1")};
  engines[2].candidate.tile = engines[3].candidate.tile = 7;
  FakeSpace space({engines});
  EXPECT_EQ(Choice(space, Looking()), "e/1");
  EXPECT_EQ(space.built, (std::vector<std::string>{"e/1", "e/3", "other/1", "e/2", "e/4"}));
}

/// As for dW of 7x7 taps in half, of which cuDNN has one good engine, that it compiles.
TEST(Selection, AQuickChoiceCompilesWhereThereIsLittleElse) {
  const auto choose = [](double milliseconds, int others, bool may_take_milliseconds = true) {
    std::vector<Engine> engines = {Good("first", milliseconds)};
    for (int i = 0; i < others; ++i) {
      engines.push_back(Good("other" + std::to_string(i), 2 * milliseconds));
    }
    engines.push_back(WithNotes("compiled", {.runtime_compiled = true}));
    FakeSpace space({engines, {WithNotes("slow", {.slow = true})}});
    space.may_take_milliseconds = may_take_milliseconds;
    return Choice(space, Looking());
  };
  EXPECT_EQ(choose(3, 0), "compiled");
  EXPECT_EQ(choose(3, 2), "compiled");
  EXPECT_EQ(choose(3, 3), "first");
  EXPECT_EQ(choose(1, 0), "first");
  EXPECT_EQ(choose(8, 3), "first");
  EXPECT_EQ(choose(60, 3), "compiled");
  EXPECT_EQ(choose(3, 0, /*may_take_milliseconds=*/false), "first");
}

/// Four of one engine that are wrong, in other forms and with other knobs.
std::vector<Engine> WrongOnes() {
  std::vector<Engine> engines;
  for (const char* name : {"bad/1", "nhwc bad/1", "bad/2", "nhwc bad/2"}) {
    engines.push_back(Good(name, 0.1));
    engines.back().check_error = "is off";
  }
  return engines;
}

/// It is neither tried nor timed again where another engine is right.
TEST(Selection, AQuickChoiceLeavesAnEngineThatWasWrongThreeTimes) {
  const std::vector<Engine> wrong = WrongOnes();
  for (const SearchPolicy& policy : {In(SearchMode::kHeuristic), Looking()}) {
    FakeSpace space({wrong, {Good("good", 1), Good("better", 0.5)}});
    const Result<Selected> selected = Select(space, policy);
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, policy.first_choice_seconds > 0 ? "better" : "good");
    EXPECT_EQ(std::ranges::count(space.built, wrong[2].candidate.id), 1);
    EXPECT_EQ(std::ranges::count(space.built, wrong[3].candidate.id), 0);
    EXPECT_EQ(
        WhyNot(selected->rejections, wrong[3].candidate.id),
        "its engine was refused in other forms");
  }
}

TEST(Selection, AnEngineThatWasWrongIsTakenWhereNoOtherIsLeft) {
  std::vector<Engine> engines = WrongOnes();
  engines.push_back(Good("bad/3", 1));
  Engine wrong = Good("other", 1);
  wrong.check_error = "is off";
  // What is slow comes later still.
  FakeSpace space({engines, {wrong, WithNotes("slow", {.slow = true})}});
  EXPECT_EQ(Choice(space, Looking()), "bad/3");
}

/// As oneDNN's, of which each is an engine of its own.
TEST(Selection, EnginesOfOneSourceAreRefusedEachForItself) {
  std::vector<Engine> engines = WrongOnes();
  engines.push_back(Good("bad/3", 1));
  for (Engine& engine : engines) {
    engine.candidate.engine = engine.candidate.id;
  }
  FakeSpace space({engines, {Good("good", 1)}});
  EXPECT_EQ(Choice(space, In(SearchMode::kHeuristic)), "bad/3");
}

/// Neither by a look nor by a race is what was refused before the first choice tried again; nor
/// does a race try the first choice, which is the quickest of its form where another form is
/// quicker.
TEST(Selection, AQuickChoiceTriesNothingTwice) {
  for (const double milliseconds : {1.0, 9.0}) {
    Engine wrong = Good("own/wrong", 0.1);
    wrong.check_error = "is off";
    Engine unbuilt = Good("own/unbuilt", 0.1);
    unbuilt.build_error = "is not there";
    FakeSpace space(
        {{wrong, unbuilt, Good("nhwc own/first", milliseconds),
          Good("own/other", 0.8 * milliseconds)}});
    space.may_take_milliseconds = true;
    const Result<Selected> selected = Select(space, Looking());
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, "own/other");
    EXPECT_EQ(selected->decision.of_other_forms, std::vector<std::string>{"nhwc own/first"});
    EXPECT_EQ(
        space.built,
        (std::vector<std::string>{"own/wrong", "own/unbuilt", "nhwc own/first", "own/other"}));
  }
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

TEST(Selection, ALookTriesFirstWhatIsQuickToTry) {
  FakeSpace space(
      {{Good("first"), Good("a")}, {Good("b")}, {Good("c")}, {Good("own"), Good("own too")}});
  space.quick_to_try = {1, 3};
  space.unpromising = {1};  // it is among the last all the same
  ASSERT_EQ(Choice(space, Looking()), "first");
  EXPECT_EQ(space.built, (std::vector<std::string>{"first", "own", "a", "c", "own too", "b"}));
}

TEST(Selection, ALookEndsWithItsTime) {
  FakeSpace space({{Good("first", 1), Good("a", 0.9), Good("b", 0.8), Good("c", 0.1)}});
  space.time_taken = 0.002;                       // three runs of each
  ASSERT_EQ(Choice(space, Looking(0.005)), "b");  // and four runs of the first
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

/// The first run counts where it is quicker than the best; else it may have loaded code, and a
/// second tells.
TEST(Selection, ALookRunsWhatIsLongOnceOrTwice) {
  Engine loads = Good("loads", 0);
  loads.times = {12, 2};
  FakeSpace space({{Good("first", 4), Good("quicker", 3), Good("slower", 3.2), loads}});
  EXPECT_EQ(Choice(space, Looking()), "loads");
  EXPECT_EQ(space.timed["quicker"], 1);
  EXPECT_EQ(space.timed["slower"], 2);
  EXPECT_EQ(space.timed["loads"], 2);
}

TEST(Selection, ARaceOfAQuickChoiceRunsWhatIsLongOnceOrTwice) {
  Engine loads = Good("loads", 0);
  loads.times = {20, 6};
  FakeSpace space({{Good("first", 9), Good("quicker", 7), Good("slower", 8), loads}});
  space.may_take_milliseconds = true;
  EXPECT_EQ(Choice(space, Looking()), "loads");
  EXPECT_EQ(space.timed["quicker"], 1);
  EXPECT_EQ(space.timed["slower"], 2);
  EXPECT_EQ(space.timed["loads"], 2);
}

/// The first of a candidate's three runs may load its code, so a look takes the better of the other
/// two.
TEST(Selection, ALookGoesByTheBetterOfTwoRuns) {
  Engine third_is_worse = Good("third is worse");
  third_is_worse.times = {5, 0.5, 0.9};
  FakeSpace space({{Good("first", 0.6), third_is_worse}});
  EXPECT_EQ(Choice(space, Looking()), "third is worse");
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
  // Also of the first, whose batch is not the first that is looked at.
  FakeSpace first_is_lucky({{varying("lucky", {2, 2, 0.5, 1.5})}, {Good("steady", 0.8)}});
  first_is_lucky.quick_to_try = {1};
  EXPECT_EQ(Choice(first_is_lucky, Looking()), "steady");
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
    EXPECT_EQ(progress.candidates, 4);
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

/// What rounds too often is taken before what is slow is tried; what is slow serves where nothing
/// else is right.
TEST(Selection, AQuickChoiceTriesWhatIsSlowOnlyOnceLessIsDemanded) {
  Engine rounds = Good("rounds", 1);
  rounds.check_error = "rounds twice";
  Engine wrong = Good("wrong", 1);
  wrong.check_error = "is off";
  const Engine slow = WithNotes("slow", {.slow = true});
  for (const auto& [other, expected] : {std::pair(rounds, "rounds"), std::pair(wrong, "slow")}) {
    FakeSpace space({{slow, other}});
    space.leaves_slow = space.relaxes = true;
    const Result<Selected> selected = Select(space, In(SearchMode::kHeuristic));
    ASSERT_TRUE(selected.ok()) << selected.status().message();
    EXPECT_EQ(selected->decision.id, expected);
    EXPECT_EQ(std::ranges::count(space.checked, "slow"), other.check_error == "is off" ? 1 : 0);
  }
}

/// The message says why.
TEST(Selection, WhatIsLeftAsSlowIsToldOf) {
  FakeSpace space({{WithNotes("slow", {.slow = true})}});
  space.leaves_slow = true;
  const Result<Selected> selected = Select(space, In(SearchMode::kHeuristic));
  ASSERT_FALSE(selected.ok());
  EXPECT_NE(
      selected.status().message().find("slow: is slow: not while others may do"), std::string::npos)
      << selected.status().message();
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

}  // namespace
}  // namespace gradsmith::internal
