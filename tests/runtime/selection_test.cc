#include "core/selection.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/fake_space.h"

/// What is chosen by heuristics, and what every mode refuses.
namespace gradsmith::internal {
namespace {

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
