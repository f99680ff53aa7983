#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "conv/cuda/direct.h"
#include "conv/primitives.h"
#include "conv/problem.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/cuda/conv_tensors.h"
#include "runtime/cuda/gpu_tensor.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith::conv {
namespace {

class ConvDirectTest : public cuda::GpuTest {
 protected:
  void Run(Primitive primitive, const ConvTensors& tensors, bool accumulate) {
    const Status status = Direct(
        device(), kStream, primitive, tensors.problem, tensors.x->GpuRef().data,
        tensors.w->GpuRef().data, tensors.y->GpuRef().data, accumulate);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  /// Runs on both and compares; with `accumulate`, on top of what the result holds.
  void Compare(Primitive primitive, const ConvTensors& tensors, bool accumulate) {
    SCOPED_TRACE(
        "primitive " + std::to_string(static_cast<int>(primitive)) + " " +
        DescribeConv(tensors.problem));
    GpuTensor& result = tensors.Result(primitive);
    std::vector<double> before = result.HostValues();
    if (!accumulate) {
      before.assign(before.size(), 0);
      result.Fill([] { return std::numeric_limits<double>::quiet_NaN(); });
    }
    RunConvOnCpu(primitive, tensors);
    Run(primitive, tensors, accumulate);
    const std::vector<double> expected = result.HostValues();
    const std::vector<double> actual = result.GpuValues();
    const DataType type = tensors.problem.type;
    const double sum_error =
        4 *
        support::UnitRoundoff(type == DataType::kDouble ? DataType::kDouble : DataType::kFloat) *
        (LargestConvSum(primitive, tensors.problem) + 2);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double allowed = sum_error + (2 * support::UnitRoundoff(type) *
                                          (std::abs(before[i]) + (2 * std::abs(expected[i]))));
      ASSERT_NEAR(actual[i], before[i] + expected[i], allowed) << "element " << i;
    }
    EXPECT_TRUE(result.SurroundingsIntact());
  }

  cuda::Difference Check(
      Primitive primitive,
      const ConvTensors& tensors,
      const void* before = nullptr,
      SampleSize size = SampleSize::kLarge) {
    const cuda::Block block(sizeof(cuda::Difference));
    block.Fill(0xFF);
    const Status status = CheckSample(
        device(), kStream, primitive, tensors.problem, tensors.x->GpuRef().data,
        tensors.w->GpuRef().data, tensors.y->GpuRef().data, before,
        reinterpret_cast<cuda::Difference*>(block.data()), size);
    EXPECT_TRUE(status.ok()) << status.message();
    cuda::Difference difference = {};
    std::memcpy(&difference, block.CopyOut().data(), sizeof(difference));
    return difference;
  }

  static void ExpectClose(const cuda::Difference& difference, DataType type) {
    const double roundoff = support::UnitRoundoff(type);
    EXPECT_EQ(difference.not_finite, 0U);
    EXPECT_GT(difference.squared_expected, 0);
    EXPECT_LE(std::sqrt(difference.squared_error / difference.squared_expected), 64 * roundoff);
    EXPECT_LE(difference.largest_error, 1024 * roundoff);
  }
};

TEST_F(ConvDirectTest, AgreesWithCpu) {
  Random random("conv direct");
  constexpr Layout kOutputs[] = {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided};
  for (int round = 0; round < 60; ++round) {
    const Problem problem = RandomConvProblem(random);
    for (const DataType type : kConvTypes) {
      for (const Primitive primitive : kConvPrimitives) {
        const auto layout = [&](Primitive written) {
          return primitive != written && random.Chance(0.2) ? Layout::kBroadcast
                                                            : kOutputs[random.Integer(0, 2)];
        };
        const ConvLayouts layouts = {
            .x = layout(Primitive::kBackwardData),
            .w = layout(Primitive::kBackwardFilter),
            .y = layout(Primitive::kForward)};
        Compare(primitive, MakeConvTensors(problem, type, layouts, random), random.Chance(0.3));
        if (HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

/// More elements than the threads of a small grid, and thousands of terms in a sum.
TEST_F(ConvDirectTest, LargerProblems) {
  Random random("conv direct larger");
  Attributes attributes;
  attributes.pads = {1, 1, 1, 1};
  const Problem problem =
      MakeConvProblem({.N = 4, .C = 5, .M = 7, .D = {31, 29}, .K = {3, 3}}, attributes);
  for (const DataType type : kConvTypes) {
    for (const Primitive primitive : kConvPrimitives) {
      const ConvLayouts layouts = {
          .x = Layout::kChannelsLast, .w = Layout::kContiguous, .y = Layout::kChannelsLast};
      Compare(primitive, MakeConvTensors(problem, type, layouts, random), false);
    }
  }
}

/// Blocks of threads share the terms of each element.
TEST_F(ConvDirectTest, LongSumsOfFewElements) {
  Random random("conv direct long sums");
  Attributes padded;
  padded.pads = {1, 2, 0, 1};
  padded.strides = {1, 2};
  Attributes grouped;
  grouped.group = 2;
  const struct {
    ConvSizes sizes;
    Attributes attributes;
    Primitive primitive;
  } kCases[] = {
      {{.N = 5, .C = 3, .M = 7, .D = {40, 47}, .K = {3, 2}}, padded, Primitive::kBackwardFilter},
      {{.N = 3, .C = 4, .M = 6, .D = {1500}, .K = {5}}, grouped, Primitive::kBackwardFilter},
      {{.N = 6, .C = 1, .M = 3, .D = {9, 11, 8}, .K = {1, 1, 1}},
       Attributes(),
       Primitive::kBackwardFilter},
      {{.N = 1, .C = 520, .M = 3, .D = {4, 5}, .K = {3, 3}}, Attributes(), Primitive::kForward},
      {{.N = 1, .C = 3, .M = 520, .D = {7, 6}, .K = {3, 3}},
       Attributes(),
       Primitive::kBackwardData}};
  for (const auto& [sizes, attributes, primitive] : kCases) {
    const Problem problem = MakeConvProblem(sizes, attributes);
    ASSERT_TRUE(DirectSumsByBlocks({.primitive = primitive, .problem = problem}));
    for (const DataType type : kConvTypes) {
      for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
        const ConvLayouts layouts = {.x = layout, .w = layout, .y = layout};
        const ConvTensors tensors = MakeConvTensors(problem, type, layouts, random);
        Compare(primitive, tensors, layout == Layout::kStrided);
      }
    }
  }
}

TEST(ConvDirectSums, AreByBlocksWhereTheyAreLongAndFew) {
  const auto by_blocks = [](const ConvSizes& sizes, Primitive primitive) {
    return DirectSumsByBlocks(
        {.primitive = primitive, .problem = MakeConvProblem(sizes, Attributes())});
  };
  const ConvSizes pointwise = {.N = 64, .C = 3, .M = 128, .D = {24, 24, 24}, .K = {1, 1, 1}};
  EXPECT_TRUE(by_blocks(pointwise, Primitive::kBackwardFilter));
  EXPECT_FALSE(by_blocks(pointwise, Primitive::kForward));
  EXPECT_FALSE(by_blocks(pointwise, Primitive::kBackwardData));
  const ConvSizes wide = {.N = 64, .C = 512, .M = 512, .D = {14, 14}, .K = {1, 1}};
  EXPECT_FALSE(by_blocks(wide, Primitive::kBackwardFilter));
}

/// A stride larger than the filter leaves positions of x that nothing reaches.
TEST_F(ConvDirectTest, ZeroWhereNothingReaches) {
  Random random("conv direct unreached");
  Attributes attributes;
  attributes.strides = {5};
  const ConvTensors tensors = MakeConvTensors(
      MakeConvProblem({.N = 1, .C = 1, .M = 1, .D = {14}, .K = {2}}, attributes), DataType::kFloat,
      {}, random);
  Compare(Primitive::kBackwardData, tensors, false);
  EXPECT_EQ(tensors.x->GpuValues()[3], 0);
  EXPECT_NE(tensors.x->GpuValues()[5], 0);
}

TEST_F(ConvDirectTest, EmptyTensors) {
  Random random("conv direct empty");
  const ConvSizes shapes[] = {
      {.N = 0, .C = 2, .M = 3, .D = {4, 4}, .K = {2, 2}},
      {.N = 2, .C = 2, .M = 0, .D = {4, 4}, .K = {2, 2}},
      {.N = 2, .C = 0, .M = 3, .D = {4, 4}, .K = {2, 2}}};
  for (const ConvSizes& shape : shapes) {
    for (const Primitive primitive : kConvPrimitives) {
      const ConvTensors tensors =
          MakeConvTensors(MakeConvProblem(shape, Attributes()), DataType::kFloat, {}, random);
      Compare(primitive, tensors, false);
      const cuda::Difference difference = Check(primitive, tensors);
      EXPECT_EQ(difference.squared_error, 0);
      EXPECT_EQ(difference.not_finite, 0U);
    }
  }
}

TEST_F(ConvDirectTest, CheckPassesRightResults) {
  Random random("conv check right");
  Attributes attributes;
  attributes.pads = {2, 0, 1, 1};
  attributes.strides = {1, 2};
  const ConvSizes small = {.N = 2, .C = 4, .M = 3, .D = {9, 8}, .K = {3, 2}};
  const ConvSizes large = {.N = 3, .C = 40, .M = 36, .D = {20, 43}, .K = {3, 3}};
  for (const ConvSizes& shape : {small, large}) {
    for (const DataType type : kConvTypes) {
      for (const Primitive primitive : kConvPrimitives) {
        SCOPED_TRACE(ToString(type));
        const ConvLayouts layouts = {
            .x = Layout::kChannelsLast, .w = Layout::kStrided, .y = Layout::kContiguous};
        const ConvTensors tensors =
            MakeConvTensors(MakeConvProblem(shape, attributes), type, layouts, random);
        Run(primitive, tensors, false);
        ExpectClose(Check(primitive, tensors), type);
      }
    }
  }
}

TEST_F(ConvDirectTest, CheckAddsWhatWasThereBefore) {
  Random random("conv check before");
  for (const Primitive primitive : kConvPrimitives) {
    const ConvTensors tensors = MakeConvTensors(
        MakeConvProblem({.N = 3, .C = 20, .M = 24, .D = {21, 22}, .K = {5, 5}}, Attributes()),
        DataType::kFloat, {}, random);
    const GpuTensor& result = tensors.Result(primitive);
    const std::vector<std::byte> bytes = result.GpuBytes();
    const cuda::Block before(bytes.size());
    before.CopyIn(bytes);
    Run(primitive, tensors, true);
    ExpectClose(Check(primitive, tensors, before.data() + GpuTensor::kGuard), DataType::kFloat);
    EXPECT_GT(Check(primitive, tensors).squared_error, 1);
  }
}

/// Checked returns how many elements of a 3x3 convolution of square images are looked at.
std::int64_t Checked(
    Primitive primitive,
    std::int64_t batch,
    std::int64_t channels,
    int side,
    SampleSize size = SampleSize::kLarge) {
  Attributes attributes;
  attributes.pads = {1, 1, 1, 1};
  const ConvSizes shape = {
      .N = batch, .C = channels, .M = channels, .D = {side, side}, .K = {3, 3}};
  return CheckedElements(primitive, MakeConvProblem(shape, attributes), size);
}

TEST(ConvCheckedElements, AreAllOfFewAndSomeOfMany) {
  EXPECT_EQ(Checked(Primitive::kForward, 2, 4, 32), 8192);
  EXPECT_EQ(Checked(Primitive::kForward, 2, 4, 33), 4256);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 2, 4, 32), 144);
}

/// Each sums over all positions of the batch.
TEST(ConvCheckedElements, OfAFilterAreFewerTheMorePositionsThereAre) {
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 4, 64, 256), 4256);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 16, 64, 256), 2056);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 64, 64, 256), 533);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 1 << 20, 64, 256), 164);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 1 << 20, 64, 256, SampleSize::kSmall), 70);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 4, 64, 256, SampleSize::kSmall), 560);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 32, 8, 256), 576);  // all of them
  EXPECT_EQ(Checked(Primitive::kBackwardData, 1024, 64, 256), 4256);
}

class CudaConvCheckLayouts : public ConvDirectTest, public ::testing::WithParamInterface<Layout> {};

INSTANTIATE_TEST_SUITE_P(
    All,
    CudaConvCheckLayouts,
    ::testing::Values(Layout::kContiguous, Layout::kChannelsLast),
    [](const auto& info) {
      return info.param == Layout::kContiguous ? "Contiguous" : "ChannelsLast";
    });

TEST_P(CudaConvCheckLayouts, FindPlantedErrors) {
  Random random("conv check planted");
  const ConvLayouts layouts = {.x = GetParam(), .w = GetParam(), .y = GetParam()};
  const ConvSizes small = {.N = 2, .C = 3, .M = 4, .D = {6, 7}, .K = {3, 3}};
  const ConvSizes large = {.N = 3, .C = 32, .M = 48, .D = {19, 21}, .K = {3, 3}};
  const ConvSizes large_filter = {.N = 1, .C = 40, .M = 100, .D = {4, 5}, .K = {3, 3}};
  for (const ConvSizes& shape : {small, large, large_filter}) {
    for (const Primitive primitive : kConvPrimitives) {
      const ConvTensors tensors =
          MakeConvTensors(MakeConvProblem(shape, Attributes()), DataType::kFloat, layouts, random);
      GpuTensor& result = tensors.Result(primitive);
      Run(primitive, tensors, false);
      const std::vector<double> right = result.GpuValues();
      const Dims dims = result.GpuRef().dims;
      const auto last = static_cast<std::size_t>(NumElements(dims) - 1);
      const auto row_end = static_cast<std::size_t>(dims[3] - 1);
      const auto second_image =
          static_cast<std::size_t>(dims[1] * dims[2] * dims[3] * (dims[0] - 1));
      for (const std::size_t planted : {std::size_t{0}, row_end, second_image, last}) {
        SCOPED_TRACE(planted);
        result.SetOnGpu(planted, right[planted] + 100);
        EXPECT_NEAR(Check(primitive, tensors).largest_error, 100, 1e-3);
        result.SetOnGpu(planted, std::numeric_limits<double>::quiet_NaN());
        EXPECT_GE(Check(primitive, tensors).not_finite, 1U);
        result.SetOnGpu(planted, right[planted]);
      }
      const cuda::Difference difference = Check(primitive, tensors);
      ExpectClose(difference, DataType::kFloat);
      EXPECT_EQ(difference.compared, CheckedElements(primitive, tensors.problem));
    }
  }
}

/// A block checks eight neighbouring elements of a filter's gradient where channels are innermost,
/// so that a sample has eight times as many.
TEST_P(CudaConvCheckLayouts, CountWhatIsChecked) {
  Random random("conv check count");
  const ConvLayouts layouts = {.x = GetParam(), .w = GetParam(), .y = GetParam()};
  const ConvTensors tensors = MakeConvTensors(
      MakeConvProblem({.N = 1, .C = 64, .M = 64, .D = {10, 10}, .K = {9, 9}}, Attributes()),
      DataType::kFloat, layouts, random);
  Run(Primitive::kBackwardFilter, tensors, false);
  const std::size_t expected = GetParam() == Layout::kContiguous ? 4256 : 32 + (4224 * 8);
  EXPECT_EQ(CheckedElements(Primitive::kBackwardFilter, tensors.problem), expected);
  EXPECT_EQ(Check(Primitive::kBackwardFilter, tensors).compared, expected);
  const std::size_t of_small = GetParam() == Layout::kContiguous ? 560 : 32 + (528 * 8);
  const cuda::Difference small =
      Check(Primitive::kBackwardFilter, tensors, nullptr, SampleSize::kSmall);
  EXPECT_EQ(small.compared, of_small);
  ExpectClose(small, DataType::kFloat);
  tensors.w->Fill([] { return std::numeric_limits<double>::quiet_NaN(); });
  EXPECT_EQ(Check(Primitive::kBackwardFilter, tensors).not_finite, expected);
  EXPECT_EQ(
      Check(Primitive::kBackwardFilter, tensors, nullptr, SampleSize::kSmall).not_finite, of_small);
}

/// A stretch that a kernel forgot is met by the elements that are spread over the whole.
TEST_F(ConvDirectTest, CheckFindsStretchesAnywhere) {
  Random random("conv check stretch");
  const ConvTensors tensors = MakeConvTensors(
      MakeConvProblem({.N = 4, .C = 3, .M = 32, .D = {40, 40}, .K = {3, 3}}, Attributes()),
      DataType::kFloat, {}, random);
  Run(Primitive::kForward, tensors, false);
  const std::vector<double> values = tensors.y->GpuValues();
  const std::size_t begin = values.size() / 3;
  std::size_t i = 0;
  tensors.y->Fill([&] {
    const bool forgotten = i >= begin && i < begin + (values.size() / 500);
    return forgotten ? values[i++] + 10 : values[i++];
  });
  EXPECT_NEAR(Check(Primitive::kForward, tensors).largest_error, 10, 1e-3);
}

}  // namespace
}  // namespace gradsmith::conv
