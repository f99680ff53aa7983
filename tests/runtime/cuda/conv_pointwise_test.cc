#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conv/cuda/pointwise.h"
#include "core/decision_cache.h"
#include "gradsmith/cache.h"
#include "runtime/cuda/op_problems.h"

/// Gradients of convolutions of one tap in one pass over dY.
namespace gradsmith::conv {
namespace {

struct Layer {
  std::int64_t x_channels = 64;
  std::int64_t y_channels = 256;
  std::int64_t side = 56;
  std::int64_t taps = 1;
  std::int64_t step = 1;
  std::int64_t group = 1;
  DataType type = DataType::kMLFloat16;
};

/// In NHWC.
Task MakeTask(Primitive primitive, const Layer& layer) {
  Task task;
  task.primitive = primitive;
  Problem& problem = task.problem;
  problem.type = layer.type;
  problem.batch = 2;
  problem.x_channels = layer.x_channels;
  problem.y_channels = layer.y_channels;
  problem.group = layer.group;
  problem.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    const std::int64_t y = ((layer.side - layer.taps) / layer.step) + 1;
    problem.axes.at(i) = {layer.side, layer.taps, y, layer.step, 1, 0, 0};
  }
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(problem, operand) = ChannelsLastStrides(DimsOf(problem, operand));
  }
  return task;
}

std::optional<Pointwise> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanPointwise(
      compute_capability, MakeTask(Primitive::kBackwardData, layer),
      MakeTask(Primitive::kBackwardFilter, layer));
}

TEST(Pointwise, HasRoomForItsChannels) {
  for (const std::int64_t x : {8, 24, 64, 72, 128, 136, 256, 264}) {
    for (const std::int64_t y : {8, 40, 64, 72, 128, 136, 256, 264}) {
      const std::optional<Pointwise> plan = PlanOf({.x_channels = x, .y_channels = y});
      const bool expected =
          (x <= 64 && y <= 256) || (x <= 128 && y <= 128) || (x <= 256 && y <= 64);
      ASSERT_EQ(plan.has_value(), expected) << x << " and " << y;
      if (!plan) {
        continue;
      }
      const pointwise::Form& form = pointwise::kFormAt[plan->form];
      EXPECT_LE(x, form.x_channels);
      EXPECT_LE(y, form.y_channels);
      EXPECT_EQ(plan->form == 0, x <= 64 && y <= 64) << "the least form that is enough";
      constexpr int kSharedOfHopper = 227 << 10;
      EXPECT_LE(form.blocks * pointwise::SharedBytes(form), kSharedOfHopper);
      EXPECT_EQ(plan->workspace(), static_cast<std::size_t>(plan->blocks * x * y) * sizeof(float));
    }
  }
}

/// Of 2 images of 56x56 positions there are 49 tiles of 128; of 300x300 more than run at once.
TEST(Pointwise, HasABlockForEachTileUpToWhatRunsAtOnce) {
  EXPECT_EQ(PlanOf({})->blocks, 49);
  EXPECT_FALSE(PlanOf({})->is_large());
  EXPECT_EQ(PlanOf({.side = 300})->blocks, 132);
  EXPECT_TRUE(PlanOf({.side = 300})->is_large());
  EXPECT_EQ(PlanOf({.y_channels = 64, .side = 300})->blocks, 264);
  // Warps that share the channels of x leave a row of sums each: of 40 channels both, of 32 one.
  EXPECT_EQ(PlanOf({.x_channels = 40})->sum_rows(), 98);
  EXPECT_EQ(PlanOf({.x_channels = 32})->sum_rows(), 49);
}

TEST(Pointwise, LeavesTheRestToOthers) {
  ASSERT_TRUE(PlanOf({}));
  EXPECT_TRUE(PlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(PlanOf({.type = DataType::kFloat}));
  EXPECT_FALSE(PlanOf({.type = DataType::kDouble}));
  EXPECT_FALSE(PlanOf({}, 80));
  EXPECT_FALSE(PlanOf({.x_channels = 60}));
  EXPECT_FALSE(PlanOf({.y_channels = 60}));
  EXPECT_FALSE(PlanOf({.taps = 3}));
  EXPECT_FALSE(PlanOf({.step = 2}));
  EXPECT_FALSE(PlanOf({.x_channels = 64, .y_channels = 64, .group = 2}));
  const Task data = MakeTask(Primitive::kBackwardData, {});
  const Task filter = MakeTask(Primitive::kBackwardFilter, {});
  EXPECT_FALSE(PlanPointwise(90, filter, data));
  Task padded = data;
  padded.problem.axes[1].pad_begin = 1;
  EXPECT_FALSE(PlanPointwise(90, padded, filter));
  Task first = data;
  first.problem.x_strides = ContiguousStrides(DimsOf(data.problem, kX));
  EXPECT_FALSE(PlanPointwise(90, first, filter));
  Task misaligned = filter;
  misaligned.alignment.at(kX) = 8;
  EXPECT_FALSE(PlanPointwise(90, data, misaligned));
}

}  // namespace
}  // namespace gradsmith::conv

namespace gradsmith::cuda {
namespace {

using internal::DecisionCache;
using internal::StoredDecision;

constexpr const char* kInOnePass = "in one pass: own/pointwise";

/// The choice for two gradients together, where one is remembered.
std::optional<StoredDecision> Together() {
  for (const StoredDecision& stored : DecisionCache::Named(std::nullopt).Entries()) {
    if (stored.problem.find(" and backward-filter") != std::string::npos) {
      return stored;
    }
  }
  return std::nullopt;
}

void ChooseOnePass() {
  std::optional<StoredDecision> together = Together();
  ASSERT_TRUE(together) << RecentChoices(8);
  together->decision.id = kInOnePass;
  DecisionCache::Named(std::nullopt).Add({*together});
}

/// Enqueued, recorded, and launched as recorded.
void RunThrice(const OpCall& call, const Context& context) {
  for (int run = 0; run < 3; ++run) {
    SCOPED_TRACE(call.Describe() + ", run " + std::to_string(run));
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults("in one pass");
  }
}

class CudaConvPointwise : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_TRUE(ClearCache().ok());
    SetWarningHandler([&](const std::string& sentence) { warnings_ += sentence + "\n"; });
  }
  void TearDown() override {
    SetWarningHandler(nullptr);
    EXPECT_EQ(warnings_, "");
  }

  std::string warnings_;
};

/// Channels of every form, also where they fill neither a form nor a multiple of 16; tiles that are
/// not full, and several for a block.
TEST_F(CudaConvPointwise, EveryFormComputesTheSame) {
  Random random("cuda pointwise");
  const Context context(OnGpu(SearchMode::kBenchmark, 0.02));
  const std::vector<ConvShape> shapes = {
      {.name = "8 to 8", .x = {1, 8, 3, 5}, .w = {8, 8, 1, 1}},
      {.name = "64 to 64", .x = {2, 64, 16, 8}, .w = {64, 64, 1, 1}},
      {.name = "24 to 40, 1-d", .x = {3, 24, 131}, .w = {40, 24, 1}},
      {.name = "40 to 136", .x = {2, 40, 7, 13}, .w = {136, 40, 1, 1}},
      {.name = "64 to 256", .x = {1, 64, 17, 9}, .w = {256, 64, 1, 1}},
      {.name = "128 to 104, 3-d", .x = {2, 128, 3, 5, 7}, .w = {104, 128, 1, 1, 1}},
      {.name = "248 to 56", .x = {2, 248, 9, 11}, .w = {56, 248, 1, 1}},
      {.name = "136 to 8", .x = {1, 136, 11, 19}, .w = {8, 136, 1, 1}},
      {.name = "tiles for a block", .x = {1, 8, 190, 190}, .w = {16, 8, 1, 1}}};
  for (const ConvShape& shape : shapes) {
    for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
      for (const bool with_bias : {true, false}) {
        ASSERT_TRUE(ClearCache().ok());
        OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
        if (!with_bias) {
          call.outputs[2] = nullptr;
        }
        ASSERT_TRUE(call.Run(context).ok());
        ASSERT_NO_FATAL_FAILURE(ChooseOnePass());
        ASSERT_NO_FATAL_FAILURE(RunThrice(call, context));
        ASSERT_TRUE(Together());
        EXPECT_EQ(Together()->decision.id, kInOnePass) << "forgotten";
      }
    }
  }
}

/// Integers, so that every sum is exact, are added to what is there.
TEST_F(CudaConvPointwise, AddsToWhatIsThere) {
  Random random("cuda pointwise accumulate");
  const Context context(OnGpu(SearchMode::kBenchmark, 0.02));
  const ConvShape shape = {.name = "1x1", .x = {1, 40, 9, 15}, .w = {72, 40, 1, 1}};
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    ASSERT_TRUE(ClearCache().ok());
    OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
    call.FillInputsWithIntegers(random, -1, 1);
    for (const TensorPointer& output : call.outputs) {
      output->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
    }
    const std::vector<std::vector<double>> gradients = call.Expected();
    ASSERT_TRUE(call.Run(context, true).ok());
    ASSERT_NO_FATAL_FAILURE(ChooseOnePass());
    for (int run = 0; run < 3; ++run) {
      call.ResetOutputs();
      ASSERT_TRUE(call.Run(context, true).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      for (std::size_t i = 0; i < call.outputs.size(); ++i) {
        const std::vector<double> before = call.outputs[i]->HostValues();
        const std::vector<double> after = call.outputs[i]->GpuValues();
        for (std::size_t j = 0; j < after.size(); ++j) {
          ASSERT_EQ(after[j], before[j] + gradients[i][j]) << "output " << i << ", element " << j;
        }
        EXPECT_TRUE(call.outputs[i]->SurroundingsIntact());
      }
    }
    EXPECT_EQ(Together()->decision.id, kInOnePass) << "forgotten";
  }
}

/// Without a search it is what large tensors get, and a call that wants one gradient does not.
TEST_F(CudaConvPointwise, IsTheFirstChoiceOfLargeTensors) {
  Random random("cuda pointwise first choice");
  const Context context(OnGpu());
  for (const std::int64_t side : {96, 12}) {
    const ConvShape shape = {.name = "1x1", .x = {2, 16, side, side}, .w = {8, 16, 1, 1}};
    ASSERT_TRUE(ClearCache().ok());
    OpCall call = MakeConvGrad(shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    ASSERT_NO_FATAL_FAILURE(RunThrice(call, context));
    ASSERT_EQ(Together().has_value(), side == 96) << RecentChoices(8);
    if (Together()) {
      EXPECT_EQ(Together()->decision.id, kInOnePass);
      EXPECT_EQ(Together()->decision.mode, SearchMode::kHeuristic);
    }
    ASSERT_TRUE(ClearCache().ok());
    call.outputs[0] = nullptr;
    ASSERT_NO_FATAL_FAILURE(RunThrice(call, context));
    EXPECT_FALSE(Together()) << RecentChoices(8);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
