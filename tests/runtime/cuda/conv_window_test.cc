#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/primitive_call.h"
#include "support/elements.h"
#include "support/turns.h"

/// Our own kernels for few channels, run by name: whether they are chosen does not matter here.
namespace gradsmith::cuda {
namespace {

constexpr const char* kWindow = "own/window";

/// Groups that share a chunk, have one, or have several; more channels than a slab; steps, taps
/// beyond the image, results that no tap reaches, tiles that end beyond the image, signals.
std::vector<ConvShape> Groups() {
  return {
      {.name = "4 to 4",
       .x = {2, 128, 14, 17},
       .w = {128, 4, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = 32},
      {.name = "8 to 8", .x = {3, 24, 9, 70}, .w = {24, 8, 3, 3}, .group = 3},
      {.name = "16 to 16",
       .x = {2, 48, 12, 11},
       .w = {48, 16, 3, 3},
       .pads = {2, 1, 0, 1},
       .group = 3},
      {.name = "4 to 8", .x = {2, 32, 10, 9}, .w = {64, 4, 2, 3}, .pads = {1, 1, 0, 1}, .group = 8},
      {.name = "8 to 4", .x = {2, 64, 10, 9}, .w = {32, 8, 3, 2}, .group = 8},
      {.name = "2 to 2", .x = {2, 16, 8, 8}, .w = {16, 2, 3, 3}, .pads = {1, 1, 1, 1}, .group = 8},
      {.name = "by steps",
       .x = {2, 32, 15, 14},
       .w = {32, 8, 3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1},
       .group = 4},
      {.name = "steps beyond the filter",
       .x = {2, 16, 17, 13},
       .w = {16, 8, 2, 2},
       .strides = {4, 3},
       .pads = {1, 0, 0, 2},
       .group = 2},
      {.name = "dilated by steps",
       .x = {2, 16, 17, 15},
       .w = {32, 8, 3, 2},
       .strides = {2, 3},
       .pads = {1, 2, 2, 1},
       .dilations = {3, 2},
       .group = 2},
      {.name = "1-D",
       .x = {4, 32, 200},
       .w = {32, 8, 5},
       .strides = {2},
       .pads = {2, 1},
       .group = 4},
      {.name = "many tiles",
       .x = {16, 64, 40, 40},
       .w = {64, 4, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = 16},
  };
}

/// Backward data to few channels.
std::vector<ConvShape> Stems() {
  return {
      {.name = "7x7 by steps",
       .x = {2, 3, 44, 37},
       .w = {64, 3, 7, 7},
       .strides = {2, 2},
       .pads = {3, 3, 3, 3}},
      {.name = "5x5 by steps", .x = {2, 3, 32, 32}, .w = {16, 3, 5, 5}, .strides = {2, 2}},
      {.name = "one channel", .x = {3, 1, 28, 28}, .w = {32, 1, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "one channel of many", .x = {2, 1, 9, 9}, .w = {64, 1, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "by four",
       .x = {1, 2, 33, 31},
       .w = {24, 2, 4, 4},
       .strides = {4, 4},
       .pads = {0, 1, 1, 0}},
      {.name = "smaller than a step",
       .x = {2, 4, 1, 17},
       .w = {32, 4, 2, 1},
       .strides = {4, 2},
       .pads = {3, 2, 0, 0}},
      {.name = "8 channels", .x = {2, 8, 13, 12}, .w = {40, 8, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "dilated", .x = {2, 4, 20, 20}, .w = {16, 4, 3, 3}, .dilations = {2, 3}},
      {.name = "1-D", .x = {2, 1, 400}, .w = {32, 1, 9}, .strides = {4}, .pads = {4, 4}},
  };
}

/// Forward to few channels.
std::vector<ConvShape> Heads() {
  return {
      {.name = "to RGB", .x = {2, 64, 21, 22}, .w = {3, 64, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "by steps",
       .x = {2, 16, 21, 22},
       .w = {5, 16, 4, 3},
       .strides = {3, 2},
       .pads = {1, 1, 1, 1}},
  };
}

struct Case {
  ConvPrimitive primitive;
  ConvShape shape;
  DataType type;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&](ConvPrimitive primitive, const std::vector<ConvShape>& shapes) {
    for (const ConvShape& shape : shapes) {
      const bool is_wide = shape.w[1] > 8 || shape.w[0] / shape.group > 8;
      if (primitive == ConvPrimitive::kBackwardFilter && is_wide) {
        continue;  // cuDNN's are quicker
      }
      for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16, DataType::kFloat}) {
        cases.push_back({primitive, shape, type});
      }
    }
  };
  for (const ConvPrimitive primitive : kPrimitives) {
    add(primitive, Groups());
  }
  add(ConvPrimitive::kBackwardData, Stems());
  add(ConvPrimitive::kForward, Heads());
  return cases;
}

class CudaConvWindow : public CudaTest {
 protected:
  /// Right against the CPU, and with the same bits where it is run again.
  static void Check(const PrimitiveCall& call, const Context& context, double tolerance) {
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const std::vector<std::vector<double>> expected = call.op.Expected();
    RunAndCompare(*algorithms, call, context, kWindow, expected, tolerance);
    if (RunsOfCall() > 1) {
      const std::vector<std::byte> first = call.Result()->GpuBytes();
      RunAndCompare(*algorithms, call, context, kWindow, expected, tolerance);
      EXPECT_TRUE(call.Result()->GpuBytes() == first) << "the second run has other bits";
    }
  }

  static bool IsOffered(const PrimitiveCall& call, const Context& context) {
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    EXPECT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    EXPECT_TRUE(list.ok()) << list.status().message();
    return std::ranges::any_of(*list, [&](const ConvAlgorithm& algorithm) {
      EXPECT_TRUE(!algorithm.name.ends_with(kWindow) || algorithm.deterministic);
      return algorithm.name.ends_with(kWindow);
    });
  }
};

TEST_F(CudaConvWindow, ComputesEveryPrimitive) {
  Random random("cuda conv window");
  const Context context(WithTf32());
  Turns turns(2);  // of three types for a shape
  for (const Case& each : Cases()) {
    if (!turns.Next()) {
      continue;
    }
    const PrimitiveCall call =
        MakeCall(each.primitive, each.shape, each.type, Layout::kChannelsLast, random);
    constexpr double kTf32Tolerance = 2e-3;
    Check(call, context, each.type == DataType::kFloat ? kTf32Tolerance : 0);
  }
}

TEST_F(CudaConvWindow, IsExactOnIntegers) {
  Random random("cuda conv window on integers");
  const Context context(WithTf32());
  Turns turns(2);  // of three types for a shape
  for (const Case& each : Cases()) {
    if (!turns.Next()) {
      continue;
    }
    const PrimitiveCall call =
        MakeCall(each.primitive, each.shape, each.type, Layout::kChannelsLast, random);
    call.op.FillInputsWithIntegers(random, -1, 1);
    Check(call, context, 0);
  }
}

/// Blocks that have three tiles and more: what a tile reads takes the place of what was read
/// before. A prime number of groups makes slabs of one each, so many that a GPU has few blocks for
/// each.
TEST_F(CudaConvWindow, BlocksOfManyTiles) {
  Random random("cuda conv window blocks of many tiles");
  const Context context(WithTf32());
  const ConvShape shape = {
      .name = "many slabs",
      .x = {6, 2152, 7, 11},
      .w = {2152, 8, 3, 3},
      .pads = {1, 1, 1, 1},
      .group = 269};
  for (const ConvPrimitive primitive : {ConvPrimitive::kForward, ConvPrimitive::kBackwardFilter}) {
    const PrimitiveCall call =
        MakeCall(primitive, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    call.op.FillInputsWithIntegers(random, -1, 1);
    Check(call, context, 0);
  }
}

TEST_F(CudaConvWindow, AddsToWhatIsThere) {
  Random random("cuda conv window accumulate");
  const Context context(WithTf32());
  Turns turns(2);  // of three types for a shape
  for (const Case& each : Cases()) {
    if (each.primitive == ConvPrimitive::kForward || !turns.Next()) {
      continue;
    }
    const PrimitiveCall call =
        MakeCall(each.primitive, each.shape, each.type, Layout::kChannelsLast, random);
    SCOPED_TRACE(call.op.Describe());
    call.op.FillInputsWithIntegers(random, -1, 1);
    const std::size_t output = each.primitive == ConvPrimitive::kBackwardFilter ? 1 : 0;
    const std::vector<double> gradient = call.op.Expected()[output];
    call.Result()->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
    const std::vector<double> before = call.Result()->HostValues();
    Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::string> ran = algorithms->Run({kWindow});
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    ASSERT_TRUE(Synchronize(context).ok());
    const std::vector<double> after = call.Result()->GpuValues();
    // Up to these, integers are exact in the type.
    const double most = each.type == DataType::kBFloat16 ? 256 : 2048;
    std::size_t compared = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (std::abs(before[i] + gradient[i]) <= most) {
        ASSERT_EQ(after[i], before[i] + gradient[i]) << "element " << i;
        ++compared;
      }
    }
    EXPECT_GT(compared, after.size() / 2);
    EXPECT_TRUE(call.Result()->SurroundingsIntact());
  }
}

/// Launches of one kernel ask for more and for less shared memory: what comes later takes nothing
/// from what was prepared before.
TEST_F(CudaConvWindow, PlansOfOneKernelKeepTheirSharedMemory) {
  Random random("cuda conv window shared memory");
  const Context context(OnGpu());
  const ConvShape large = Stems()[0];
  const ConvShape small = {.name = "small", .x = {1, 1, 5, 5}, .w = {8, 1, 3, 3}};
  const auto call = [&](const ConvShape& shape) {
    return MakeCall(
        ConvPrimitive::kBackwardData, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
  };
  const PrimitiveCall first = call(large);
  const PrimitiveCall second = call(small);
  Result<ConvAlgorithms> of_first = first.Prepare(context);
  Result<ConvAlgorithms> of_second = second.Prepare(context);
  ASSERT_TRUE(of_first.ok() && of_second.ok());
  for (int i = 0; i < 2; ++i) {
    RunAndCompare(*of_first, first, context, kWindow);
    RunAndCompare(*of_second, second, context, kWindow);
  }
}

/// The filter's gradient takes nothing from beyond y, where x may be infinite.
TEST_F(CudaConvWindow, InfinityBesideTheTileIsNotMultiplied) {
  Random random("cuda conv window infinity");
  const Context context(WithTf32());
  const ConvShape shape = {
      .name = "steps that leave a row",
      .x = {1, 16, 10, 10},
      .w = {16, 8, 2, 2},
      .strides = {3, 3},
      .group = 2};
  for (const DataType type : {DataType::kMLFloat16, DataType::kFloat}) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kBackwardFilter, shape, type, Layout::kChannelsLast, random);
    // No window of y reaches the last row of x.
    std::size_t at = 0;
    call.x->Fill([&] { return at++ % 100 >= 90 ? INFINITY : 1.0; });
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok());
    call.op.ResetOutputs();
    ASSERT_TRUE(algorithms->Run({kWindow}).ok());
    ASSERT_TRUE(Synchronize(context).ok());
    for (const double value : call.w->GpuValues()) {
      ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST_F(CudaConvWindow, IsOfferedWhereChannelsAreFew) {
  Random random("cuda conv window offered");
  const Context strict(OnGpu());
  const Context with_tf32(WithTf32());
  const ConvShape groups = Groups()[0];
  const ConvShape stem = Stems()[0];
  const ConvShape wide = {.name = "wide", .x = {2, 64, 9, 9}, .w = {32, 64, 3, 3}};
  const auto offered = [&](const Context& context, ConvPrimitive primitive, const ConvShape& shape,
                           DataType type, Layout layout) {
    return IsOffered(MakeCall(primitive, shape, type, layout, random), context);
  };
  for (const Layout layout : {Layout::kChannelsLast, Layout::kContiguous}) {
    for (const ConvPrimitive primitive : kPrimitives) {
      for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
        EXPECT_TRUE(offered(strict, primitive, groups, type, layout));
        EXPECT_EQ(
            offered(strict, primitive, stem, type, layout),
            primitive == ConvPrimitive::kBackwardData);
        EXPECT_FALSE(offered(strict, primitive, wide, type, layout));
      }
      EXPECT_TRUE(offered(with_tf32, primitive, groups, DataType::kFloat, layout));
      EXPECT_FALSE(offered(strict, primitive, groups, DataType::kFloat, layout));
      EXPECT_FALSE(offered(with_tf32, primitive, groups, DataType::kDouble, layout));
    }
  }
}

TEST_F(CudaConvWindow, RefusesWhatItDoesNotTake) {
  Random random("cuda conv window others");
  const Context strict(OnGpu());
  const auto refused = [&](const ConvShape& shape, DataType type, Layout layout) {
    const PrimitiveCall call = MakeCall(ConvPrimitive::kBackwardData, shape, type, layout, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(strict);
    EXPECT_TRUE(algorithms.ok());
    return !algorithms->Run({kWindow}).ok();
  };
  const ConvShape groups = Groups()[0];
  ConvShape volume = {.name = "3-D", .x = {1, 16, 5, 5, 5}, .w = {16, 8, 3, 3, 3}, .group = 2};
  const ConvShape odd = {.name = "odd", .x = {2, 15, 9, 9}, .w = {15, 5, 3, 3}, .group = 3};
  EXPECT_TRUE(refused(groups, DataType::kMLFloat16, Layout::kContiguous));
  EXPECT_TRUE(refused(groups, DataType::kFloat, Layout::kChannelsLast));
  EXPECT_TRUE(refused(volume, DataType::kMLFloat16, Layout::kChannelsLast));
  EXPECT_TRUE(refused(odd, DataType::kMLFloat16, Layout::kChannelsLast));
}

}  // namespace
}  // namespace gradsmith::cuda
