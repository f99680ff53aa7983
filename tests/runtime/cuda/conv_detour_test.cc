#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision_cache.h"
#include "runtime/cuda/primitive_call.h"

/// Convolutions in another layout, with more channels, or at fewer positions than the caller's.
namespace gradsmith::cuda {
namespace {

using internal::DecisionCache;
using internal::StoredDecision;

constexpr std::array<std::string_view, 11> kDetours = {
    "nhwc ",     "nchw ",    "padded2 ",  "padded4 ",       "padded8 ", "subsampled ",
    "bordered ", "patches ", "repeated ", "repeated-nchw ", "stacked "};

/// The detour that an algorithm takes; empty for none.
std::string_view DetourOf(const ConvAlgorithm& algorithm) {
  for (const std::string_view detour : kDetours) {
    if (algorithm.name.starts_with(detour)) {
      return detour;
    }
  }
  return {};
}

/// Whose axes have more padding at one end.
std::vector<ConvShape> ShapesWithBorders() {
  return {
      {.name = "causal", .x = {3, 16, 30}, .w = {8, 16, 4}, .pads = {6, 0}, .dilations = {2}},
      {.name = "behind",
       .x = {2, 16, 10, 12},
       .w = {24, 16, 3, 5},
       .strides = {2, 2},
       .pads = {0, 1, 1, 2}},
      {.name = "causal 3-D",
       .x = {1, 8, 5, 6, 7},
       .w = {8, 8, 3, 3, 3},
       .pads = {2, 1, 1, 0, 1, 1}},
  };
}

/// Sizes that tiles and vectors divide and that they do not, few channels and many.
std::vector<ConvShape> Shapes() {
  return {
      {.name = "image",
       .x = {2, 3, 21, 19},
       .w = {16, 3, 7, 7},
       .strides = {2, 2},
       .pads = {3, 3, 3, 3}},
      {.name = "odd", .x = {3, 33, 9, 11}, .w = {65, 33, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "one channel", .x = {2, 1, 12, 12}, .w = {5, 1, 3, 3}},
      {.name = "even", .x = {2, 64, 10, 9}, .w = {72, 64, 3, 3}, .pads = {2, 1, 2, 1}},
      {.name = "strided 1x1", .x = {2, 24, 15, 14}, .w = {40, 24, 1, 1}, .strides = {2, 3}},
      {.name = "patches", .x = {2, 3, 24, 20}, .w = {16, 3, 4, 4}, .strides = {4, 4}},
      {.name = "1-D", .x = {4, 12, 50}, .w = {20, 12, 5}, .pads = {2, 2}},
      {.name = "3-D", .x = {1, 5, 6, 7, 8}, .w = {8, 5, 3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}},
      ConvGrouped(),
      {.name = "two filters for each channel",
       .x = {2, 8, 9, 12},
       .w = {16, 1, 9, 9},
       .pads = {4, 4, 4, 4},
       .group = 8},
  };
}

class CudaConvDetour : public CudaTest {
 protected:
  /// Runs the first few of each detour that are built at once, or of one alone.
  static void Check(
      const PrimitiveCall& call,
      const Context& context,
      std::string_view only,
      std::map<std::string, int>* runs) {
    constexpr int kOfEach = 2;
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    std::map<std::string, int> here;
    for (const ConvAlgorithm& algorithm : *list) {
      const std::string detour(DetourOf(algorithm));
      if (detour.empty() || (!only.empty() && detour != only) || algorithm.runtime_compiled ||
          algorithm.reduced_precision || algorithm.tf32 || here[detour] == kOfEach ||
          !algorithms->WorkspaceOf(algorithm.name).ok()) {
        continue;
      }
      ++here[detour];
      ++(*runs)[detour];
      // Winograd's and FFT's transforms are among them.
      const double tolerance = call.Result()->type() == DataType::kFloat ? 5e-6 : 0;
      RunAndCompare(*algorithms, call, context, algorithm.name, tolerance);
    }
  }
};

TEST_F(CudaConvDetour, ComputesEveryPrimitive) {
  Random random("cuda detours");
  const Context context(OnGpu());
  std::map<std::string, int> runs;
  const auto check = [&](const ConvShape& shape, std::string_view only) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
        for (const ConvPrimitive primitive : kPrimitives) {
          Check(MakeCall(primitive, shape, type, layout, random), context, only, &runs);
        }
      }
    }
  };
  for (const ConvShape& shape : Shapes()) {
    check(shape, "");
  }
  // Engines of cuDNN compute uneven padding wrongly, which a search finds (20 dW in float).
  for (const ConvShape& shape : ShapesWithBorders()) {
    check(shape, "bordered ");
  }
  for (const std::string_view detour : kDetours) {
    EXPECT_GT(runs[std::string(detour)], 0) << "no algorithm of " << detour << "was run";
  }
}

/// The decisions that are remembered, by the primitive that their problem's text begins with.
std::map<std::string, StoredDecision> DecisionsByPrimitive() {
  std::map<std::string, StoredDecision> decisions;
  for (const StoredDecision& stored : DecisionCache::Named(std::nullopt).Entries()) {
    decisions[stored.problem.substr(0, stored.problem.find(' '))] = stored;
  }
  return decisions;
}

/// The gradients of X and W, by detours that need the same copy of dY, which is made once.
TEST_F(CudaConvDetour, GradientsShareTheCopyOfDY) {
  Random random("cuda shared copy");
  const Context context(OnGpu());
  const ConvShape shape = {
      .name = "3x3", .x = {2, 64, 12, 12}, .w = {32, 64, 3, 3}, .pads = {1, 1, 1, 1}};
  for (const bool transposed : {false, true}) {
    const auto make = [&](Layout layout) {
      return transposed ? MakeConvTransposeGrad(shape, DataType::kMLFloat16, layout, random)
                        : MakeConvGrad(shape, DataType::kMLFloat16, layout, random);
    };
    ASSERT_TRUE(ClearCache().ok());
    ASSERT_TRUE(make(Layout::kChannelsLast).Run(context).ok());
    const auto channels_last = DecisionsByPrimitive();
    ASSERT_EQ(channels_last.size(), 2U);
    ASSERT_TRUE(ClearCache().ok());
    const OpCall call = make(Layout::kContiguous);
    SCOPED_TRACE(call.Describe());
    ASSERT_TRUE(call.Run(context).ok());
    for (auto& [primitive, stored] : DecisionsByPrimitive()) {
      StoredDecision changed = stored;
      changed.decision.id = "nhwc " + channels_last.at(primitive).decision.id;
      DecisionCache::Named(std::nullopt).Add({changed});
    }
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults("by nhwc");
    for (const auto& [primitive, stored] : DecisionsByPrimitive()) {
      EXPECT_TRUE(stored.decision.id.starts_with("nhwc ")) << primitive << RecentChoices();
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
