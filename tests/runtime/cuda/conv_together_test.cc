#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/decision_cache.h"
#include "gradsmith/cache.h"
#include "runtime/cuda/primitive_call.h"
#include "support/turns.h"

/// Gradients of X and W that are computed together: in turn or side by side, in forms that share
/// copies.
namespace gradsmith::cuda {
namespace {

using internal::DecisionCache;
using internal::StoredDecision;

constexpr std::array<const char*, 2> kOrders = {"in turn: ", "side by side: "};

/// The choice for two gradients together, where one is remembered.
std::optional<StoredDecision> Together() {
  for (const StoredDecision& stored : DecisionCache::Named(std::nullopt).Entries()) {
    const bool found = std::ranges::any_of(
        kOrders, [&](const char* order) { return stored.decision.id.starts_with(order); });
    if (found) {
      return stored;
    }
  }
  return std::nullopt;
}

void Choose(const StoredDecision& stored, const std::string& id) {
  StoredDecision changed = stored;
  changed.decision.id = id;
  DecisionCache::Named(std::nullopt).Add({changed});
}

/// Enqueued, recorded, and launched as recorded.
void RunThrice(const OpCall& call, const Context& context, const std::string& doing) {
  for (int run = 0; run < 3; ++run) {
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << doing << ": " << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults(doing + ", run " + std::to_string(run));
  }
}

class CudaConvTogether : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_TRUE(ClearCache().ok());
  }
  void TearDown() override { SetWarningHandler(nullptr); }

  static ConvShape Shape() {
    const std::int64_t side = IsEmulated() ? 5 : 12;
    return {.name = "3x3", .x = {2, 64, side, side}, .w = {32, 64, 3, 3}, .pads = {1, 1, 1, 1}};
  }

  /// The first algorithm for a gradient that begins with a form's name and is built at once.
  static std::string FirstOfForm(
      const std::string& form,
      ConvPrimitive primitive,
      DataType type,
      const Context& context) {
    Random random("cuda together");
    const PrimitiveCall call = MakeCall(primitive, Shape(), type, Layout::kContiguous, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    EXPECT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    EXPECT_TRUE(list.ok()) << list.status().message();
    for (const ConvAlgorithm& algorithm : *list) {
      if (algorithm.name.starts_with(form) && !algorithm.runtime_compiled &&
          !algorithm.reduced_precision && !algorithm.tf32 && algorithm.deterministic &&
          algorithms->WorkspaceOf(algorithm.name).ok()) {
        return algorithm.name;
      }
    }
    ADD_FAILURE() << "no algorithm of " << form;
    return "";
  }
};

/// A search times both together, with and without the bias gradient, and once.
TEST_F(CudaConvTogether, ASearchRemembersHowGradientsGoTogether) {
  Random random("cuda together search");
  ContextOptions options = OnGpu(SearchMode::kBenchmark, 1);
  int tried = 0;
  options.on_search_progress = [&](const SearchProgress&) { ++tried; };
  const Context context(options);
  Turns turns(3);  // of two ops, four types, with the bias and without
  for (const bool transposed : {false, true}) {
    for (const DataType type : kAllTypes) {
      for (const bool with_bias : {true, false}) {
        if (!turns.Next()) {
          continue;
        }
        ASSERT_TRUE(ClearCache().ok());
        OpCall call = transposed ? MakeConvTransposeGrad(Shape(), type, Layout::kContiguous, random)
                                 : MakeConvGrad(Shape(), type, Layout::kContiguous, random);
        if (!with_bias) {
          call.outputs[2] = nullptr;
        }
        SCOPED_TRACE(call.Describe());
        ASSERT_NO_FATAL_FAILURE(RunThrice(call, context, "searched"));
        const std::optional<StoredDecision> together = Together();
        ASSERT_TRUE(together) << RecentChoices(8);
        EXPECT_GT(together->decision.milliseconds, 0);
        EXPECT_EQ(together->decision.mode, SearchMode::kBenchmark);
        EXPECT_EQ(CachedChoices().size(), 3U) << RecentChoices(8);
        const int before = tried;
        ASSERT_NO_FATAL_FAILURE(RunThrice(call, context, "again"));
        EXPECT_EQ(tried, before) << "searched again";
      }
    }
  }
}

/// So does the default for a moment; by no clock a rule decides, and nothing is remembered of both.
TEST_F(CudaConvTogether, TheDefaultTimesThemForAMoment) {
  Random random("cuda together look");
  for (const double seconds : {1.0, 0.0}) {
    ASSERT_TRUE(ClearCache().ok());
    ContextOptions options = OnGpu();
    options.first_choice_seconds = seconds;
    const Context context(options);
    const OpCall call = MakeConvGrad(Shape(), DataType::kFloat, Layout::kContiguous, random);
    ASSERT_NO_FATAL_FAILURE(RunThrice(call, context, "for a moment"));
    const std::optional<StoredDecision> together = Together();
    EXPECT_EQ(together.has_value(), seconds > 0) << RecentChoices(8);
    if (together) {
      EXPECT_EQ(together->decision.mode, SearchMode::kHeuristic);
      EXPECT_GT(together->decision.milliseconds, 0);
    }
    EXPECT_EQ(CachedChoices().size(), seconds > 0 ? 3U : 2U) << RecentChoices(8);
  }
}

/// Every order, by the plans chosen alone and by detours that make the same copy of dY.
TEST_F(CudaConvTogether, EveryOrderAndFormComputesTheSame) {
  Random random("cuda together forms");
  const Context context(OnGpu(SearchMode::kBenchmark, 1));
  std::string warnings;
  SetWarningHandler([&](const std::string& sentence) { warnings += sentence + "\n"; });
  for (const DataType type : {DataType::kMLFloat16, DataType::kFloat, DataType::kDouble}) {
    ASSERT_TRUE(ClearCache().ok());
    const OpCall call = MakeConvGrad(Shape(), type, Layout::kContiguous, random);
    ASSERT_TRUE(call.Run(context).ok());
    const std::optional<StoredDecision> together = Together();
    ASSERT_TRUE(together) << RecentChoices(8);
    const std::string& id = together->decision.id;
    std::vector<std::string> pairs = {id.substr(id.find(": ") + 2)};
    pairs.push_back(
        FirstOfForm("nhwc ", ConvPrimitive::kBackwardData, type, context) + " & " +
        FirstOfForm("nhwc ", ConvPrimitive::kBackwardFilter, type, context));
    for (const std::string& pair : pairs) {
      for (const char* order : kOrders) {
        SCOPED_TRACE(order + pair);
        Choose(*together, order + pair);
        ASSERT_NO_FATAL_FAILURE(RunThrice(call, context, "chosen"));
        ASSERT_TRUE(Together());
        EXPECT_EQ(Together()->decision.id, order + pair) << "forgotten";
      }
    }
  }
  EXPECT_EQ(warnings, "");
}

/// Where another kernel was quicker for dW alone, one that leaves the sums of dB is tried as well.
TEST_F(CudaConvTogether, TilesAreTriedWhereTheySumTheBiasGradient) {
  Random random("cuda together tiles");
  ContextOptions options = OnGpu(SearchMode::kBenchmark, 1);
  std::set<std::string> tried;
  options.on_search_progress = [&](const SearchProgress& p) { tried.insert(p.candidate); };
  const Context context(options);
  const ConvShape shape = {
      .name = "depthwise",
      .x = {2, 64, 12, 12},
      .w = {64, 1, 3, 3},
      .pads = {1, 1, 1, 1},
      .group = 64};
  for (const bool with_bias : {true, false}) {
    ASSERT_TRUE(ClearCache().ok());
    OpCall call = MakeConvGrad(shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    if (!with_bias) {
      call.outputs[2] = nullptr;
    }
    ASSERT_TRUE(call.Run(context).ok());
    for (const StoredDecision& stored : DecisionCache::Named(std::nullopt).Entries()) {
      if (stored.problem.starts_with("backward-filter")) {
        Choose(stored, "own/depthwise");
      }
    }
    tried.clear();
    ASSERT_NO_FATAL_FAILURE(RunThrice(call, context, "with another choice for dW"));
    const bool has_tiles = std::ranges::any_of(tried, [](const std::string& candidate) {
      return candidate.ends_with(" & own/depthwise-tiles");
    });
    EXPECT_EQ(has_tiles, with_bias) << RecentChoices(8);
  }
}

/// By heuristics the choice of an earlier search counts as well; one that cannot be built any more
/// is forgotten, and the call goes on, or searches anew where it may.
TEST_F(CudaConvTogether, AChoiceThatCannotBeBuiltIsForgotten) {
  Random random("cuda together forgotten");
  const Context searching(OnGpu(SearchMode::kBenchmark, 1));
  const Context context(OnGpu());
  const OpCall call = MakeConvGrad(Shape(), DataType::kFloat, Layout::kContiguous, random);
  ASSERT_TRUE(ClearCache().ok());
  ASSERT_TRUE(call.Run(searching).ok());
  for (const std::string wrong : {"in turn: graph/engine 9999/ & nonsense", "in turn: nonsense"}) {
    ASSERT_TRUE(Together()) << RecentChoices(8);
    const StoredDecision together = *Together();
    Choose(together, wrong);
    std::string warnings;
    SetWarningHandler([&](const std::string& sentence) { warnings += sentence + "\n"; });
    ASSERT_NO_FATAL_FAILURE(RunThrice(call, context, "after " + wrong));
    SetWarningHandler(nullptr);
    EXPECT_FALSE(Together()) << RecentChoices(8);
    EXPECT_NE(warnings.find(wrong + " is not used"), std::string::npos) << warnings;
    Choose(together, wrong);
    ASSERT_TRUE(call.Run(searching).ok());
    ASSERT_TRUE(Together()) << RecentChoices(8);
    EXPECT_NE(Together()->decision.id, wrong);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
