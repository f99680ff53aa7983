#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "conv/cuda/direct.h"
#include "conv/kernels.h"
#include "conv/primitives.h"
#include "conv/problem.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/cuda/gpu_tensor.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith::conv {
namespace {

using cuda::GpuTensor;
using cuda::Sizes;
using reference::Random;
using support::Layout;

constexpr DataType kAllTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};
constexpr Primitive kAllPrimitives[] = {
    Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter};

std::string Describe(const Problem& problem) {
  std::ostringstream text;
  text << ToString(problem.type) << " batch " << problem.batch << " channels " << problem.x_channels
       << " -> " << problem.y_channels << " group " << problem.group;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes[i];
    text << "; x " << axis.x << " w " << axis.w << " y " << axis.y << " stride " << axis.stride
         << " dilation " << axis.dilation << " pads " << axis.pad_begin << ", " << axis.pad_end;
  }
  text << "; strides " << ToString(problem.x_strides) << ToString(problem.w_strides)
       << ToString(problem.y_strides);
  return text.str();
}

Sizes DimsOf(
    std::int64_t outer,
    std::int64_t channels,
    const Problem& problem,
    std::int64_t Axis::*size) {
  Sizes dims = {outer, channels};
  for (int i = 0; i < problem.spatial_rank; ++i) {
    dims.push_back(problem.axes[i].*size);
  }
  return dims;
}

/// A problem with its three tensors, on the host and on the GPU.
struct Tensors {
  Problem problem;
  std::unique_ptr<GpuTensor> x;
  std::unique_ptr<GpuTensor> w;
  std::unique_ptr<GpuTensor> y;

  [[nodiscard]] GpuTensor& Result(Primitive primitive) const {
    switch (primitive) {
      case Primitive::kForward:
        return *y;
      case Primitive::kBackwardData:
        return *x;
      case Primitive::kBackwardFilter:
        break;
    }
    return *w;
  }
};

/// The layout of each tensor; kBroadcast only of those that are read.
struct Layouts {
  Layout x = Layout::kContiguous;
  Layout w = Layout::kContiguous;
  Layout y = Layout::kContiguous;
};

Tensors MakeTensors(Problem problem, DataType type, const Layouts& layouts, Random& random) {
  problem.type = type;
  Tensors tensors;
  const auto make = [&](const Sizes& dims, Layout layout) {
    auto tensor = std::make_unique<GpuTensor>(type, dims, layout);
    tensor->FillRandom(random);
    return tensor;
  };
  tensors.x = make(DimsOf(problem.batch, problem.x_channels, problem, &Axis::x), layouts.x);
  tensors.w = make(
      DimsOf(problem.y_channels, problem.x_channels / problem.group, problem, &Axis::w), layouts.w);
  tensors.y = make(DimsOf(problem.batch, problem.y_channels, problem, &Axis::y), layouts.y);
  tensors.problem = WithStrides(
      problem, tensors.x->GpuRef().strides, tensors.w->GpuRef().strides,
      tensors.y->GpuRef().strides);
  return tensors;
}

struct Shape {
  std::int64_t N = 1;
  std::int64_t C = 1;
  std::int64_t M = 1;
  Sizes D;
  Sizes K;
};

Problem MakeProblem(const Shape& shape, const Attributes& attributes) {
  Sizes x = {shape.N, shape.C};
  Sizes w = {shape.M, shape.C / attributes.group};
  x.insert(x.end(), shape.D.begin(), shape.D.end());
  w.insert(w.end(), shape.K.begin(), shape.K.end());
  const Result<Problem> problem = ConvolutionProblem(
      attributes, ConstTensorRef(DataType::kFloat, nullptr, support::ToIntList(x)),
      ConstTensorRef(DataType::kFloat, nullptr, support::ToIntList(w)));
  EXPECT_TRUE(problem.ok()) << problem.status().message();
  return *problem;
}

/// Any valid convolution of a few thousand products.
Problem RandomProblem(Random& random) {
  const int rank = static_cast<int>(random.Integer(1, 3));
  Attributes attributes;
  attributes.group = random.Integer(1, 3);
  Shape shape = {
      .N = random.Integer(1, 3),
      .C = attributes.group * random.Integer(1, 3),
      .M = attributes.group * random.Integer(1, 3),
      .D = {},
      .K = {}};
  IntList pads_end;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t K = random.Integer(1, 4);
    const std::int64_t dilation = random.Integer(1, 4);
    const std::int64_t span = (dilation * (K - 1)) + 1;
    const std::int64_t pad = random.Integer(0, span + 1);
    const std::int64_t pad_end = random.Integer(0, span + 1);
    shape.K.push_back(K);
    shape.D.push_back(random.Integer(std::max<std::int64_t>(1, span - pad - pad_end), span + 5));
    attributes.strides.push_back(random.Integer(1, 4));
    attributes.dilations.push_back(dilation);
    attributes.pads.push_back(pad);
    pads_end.push_back(pad_end);
  }
  for (const std::int64_t pad : pads_end) {
    attributes.pads.push_back(pad);
  }
  return MakeProblem(shape, attributes);
}

/// How many products an element sums at most.
double LargestSum(Primitive primitive, const Problem& problem) {
  std::int64_t terms = problem.batch;
  if (primitive != Primitive::kBackwardFilter) {
    terms = std::max(problem.x_channels, problem.y_channels) / problem.group;
  }
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes[i];
    terms *= primitive == Primitive::kBackwardFilter ? axis.y : axis.w;
  }
  return static_cast<double>(terms);
}

void RunOnCpu(Primitive primitive, const Tensors& tensors) {
  static const Context kContext;
  void* x = tensors.x->HostRef().data;
  void* w = tensors.w->HostRef().data;
  void* y = tensors.y->HostRef().data;
  switch (primitive) {
    case Primitive::kForward:
      Forward(kContext, tensors.problem, x, w, nullptr, y);
      break;
    case Primitive::kBackwardData:
      BackwardData(kContext, tensors.problem, y, w, nullptr, x);
      break;
    case Primitive::kBackwardFilter:
      BackwardFilter(kContext, tensors.problem, x, y, w);
      break;
  }
}

class ConvDirectTest : public cuda::GpuTest {
 protected:
  void Run(Primitive primitive, const Tensors& tensors, bool accumulate) {
    const Status status = Direct(
        device(), kStream, primitive, tensors.problem, tensors.x->GpuRef().data,
        tensors.w->GpuRef().data, tensors.y->GpuRef().data, accumulate);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  /// Runs on both and compares; with `accumulate`, on top of what the result holds.
  void Compare(Primitive primitive, const Tensors& tensors, bool accumulate) {
    SCOPED_TRACE(
        "primitive " + std::to_string(static_cast<int>(primitive)) + " " +
        Describe(tensors.problem));
    GpuTensor& result = tensors.Result(primitive);
    std::vector<double> before = result.HostValues();
    if (!accumulate) {
      before.assign(before.size(), 0);
      result.Fill([] { return std::numeric_limits<double>::quiet_NaN(); });
    }
    RunOnCpu(primitive, tensors);
    Run(primitive, tensors, accumulate);
    const std::vector<double> expected = result.HostValues();
    const std::vector<double> actual = result.GpuValues();
    const DataType type = tensors.problem.type;
    const double sum_error =
        4 *
        support::UnitRoundoff(type == DataType::kDouble ? DataType::kDouble : DataType::kFloat) *
        (LargestSum(primitive, tensors.problem) + 2);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double allowed = sum_error + (2 * support::UnitRoundoff(type) *
                                          (std::abs(before[i]) + (2 * std::abs(expected[i]))));
      ASSERT_NEAR(actual[i], before[i] + expected[i], allowed) << "element " << i;
    }
    EXPECT_TRUE(result.SurroundingsIntact());
  }

  cuda::Difference
  Check(Primitive primitive, const Tensors& tensors, const void* before = nullptr) {
    const cuda::Block block(sizeof(cuda::Difference));
    block.Fill(0xFF);
    const Status status = CheckSample(
        device(), kStream, primitive, tensors.problem, tensors.x->GpuRef().data,
        tensors.w->GpuRef().data, tensors.y->GpuRef().data, before,
        reinterpret_cast<cuda::Difference*>(block.data()));
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
    const Problem problem = RandomProblem(random);
    for (const DataType type : kAllTypes) {
      for (const Primitive primitive : kAllPrimitives) {
        const auto layout = [&](Primitive written) {
          return primitive != written && random.Chance(0.2) ? Layout::kBroadcast
                                                            : kOutputs[random.Integer(0, 2)];
        };
        const Layouts layouts = {
            .x = layout(Primitive::kBackwardData),
            .w = layout(Primitive::kBackwardFilter),
            .y = layout(Primitive::kForward)};
        Compare(primitive, MakeTensors(problem, type, layouts, random), random.Chance(0.3));
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
      MakeProblem({.N = 4, .C = 5, .M = 7, .D = {31, 29}, .K = {3, 3}}, attributes);
  for (const DataType type : kAllTypes) {
    for (const Primitive primitive : kAllPrimitives) {
      const Layouts layouts = {
          .x = Layout::kChannelsLast, .w = Layout::kContiguous, .y = Layout::kChannelsLast};
      Compare(primitive, MakeTensors(problem, type, layouts, random), false);
    }
  }
}

/// A stride larger than the filter leaves positions of x that nothing reaches.
TEST_F(ConvDirectTest, ZeroWhereNothingReaches) {
  Random random("conv direct unreached");
  Attributes attributes;
  attributes.strides = {5};
  const Tensors tensors = MakeTensors(
      MakeProblem({.N = 1, .C = 1, .M = 1, .D = {14}, .K = {2}}, attributes), DataType::kFloat, {},
      random);
  Compare(Primitive::kBackwardData, tensors, false);
  EXPECT_EQ(tensors.x->GpuValues()[3], 0);
  EXPECT_NE(tensors.x->GpuValues()[5], 0);
}

TEST_F(ConvDirectTest, EmptyTensors) {
  Random random("conv direct empty");
  const Shape shapes[] = {
      {.N = 0, .C = 2, .M = 3, .D = {4, 4}, .K = {2, 2}},
      {.N = 2, .C = 2, .M = 0, .D = {4, 4}, .K = {2, 2}},
      {.N = 2, .C = 0, .M = 3, .D = {4, 4}, .K = {2, 2}}};
  for (const Shape& shape : shapes) {
    for (const Primitive primitive : kAllPrimitives) {
      const Tensors tensors =
          MakeTensors(MakeProblem(shape, Attributes()), DataType::kFloat, {}, random);
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
  const Shape small = {.N = 2, .C = 4, .M = 3, .D = {9, 8}, .K = {3, 2}};
  const Shape large = {.N = 3, .C = 40, .M = 36, .D = {20, 43}, .K = {3, 3}};
  for (const Shape& shape : {small, large}) {
    for (const DataType type : kAllTypes) {
      for (const Primitive primitive : kAllPrimitives) {
        SCOPED_TRACE(ToString(type));
        const Layouts layouts = {
            .x = Layout::kChannelsLast, .w = Layout::kStrided, .y = Layout::kContiguous};
        const Tensors tensors = MakeTensors(MakeProblem(shape, attributes), type, layouts, random);
        Run(primitive, tensors, false);
        ExpectClose(Check(primitive, tensors), type);
      }
    }
  }
}

TEST_F(ConvDirectTest, CheckAddsWhatWasThereBefore) {
  Random random("conv check before");
  for (const Primitive primitive : kAllPrimitives) {
    const Tensors tensors = MakeTensors(
        MakeProblem({.N = 3, .C = 20, .M = 24, .D = {21, 22}, .K = {5, 5}}, Attributes()),
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
std::int64_t Checked(Primitive primitive, std::int64_t batch, std::int64_t channels, int side) {
  Attributes attributes;
  attributes.pads = {1, 1, 1, 1};
  const Shape shape = {.N = batch, .C = channels, .M = channels, .D = {side, side}, .K = {3, 3}};
  return CheckedElements(primitive, MakeProblem(shape, attributes));
}

TEST(ConvCheckedElements, AreAllOfFewAndSomeOfMany) {
  EXPECT_EQ(Checked(Primitive::kForward, 2, 4, 32), 8192);
  EXPECT_EQ(Checked(Primitive::kForward, 2, 4, 33), 4256);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 2, 4, 32), 144);
}

/// Each sums over all positions of the batch.
TEST(ConvCheckedElements, OfAFilterAreFewerTheMorePositionsThereAre) {
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 64, 64, 256), 4256);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 256, 64, 256), 2056);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 1024, 64, 256), 533);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 1 << 20, 64, 256), 296);
  EXPECT_EQ(Checked(Primitive::kBackwardFilter, 1024, 8, 256), 576);  // all of them
  EXPECT_EQ(Checked(Primitive::kBackwardData, 1024, 64, 256), 4256);
}

TEST_F(ConvDirectTest, CheckFindsPlantedErrors) {
  Random random("conv check planted");
  const Shape small = {.N = 2, .C = 3, .M = 4, .D = {6, 7}, .K = {3, 3}};
  const Shape large = {.N = 3, .C = 32, .M = 48, .D = {19, 21}, .K = {3, 3}};
  for (const Shape& shape : {small, large}) {
    for (const Primitive primitive : kAllPrimitives) {
      const Tensors tensors =
          MakeTensors(MakeProblem(shape, Attributes()), DataType::kFloat, {}, random);
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
      ExpectClose(Check(primitive, tensors), DataType::kFloat);
    }
  }
}

/// A stretch that a kernel forgot is met by the elements that are spread over the whole.
TEST_F(ConvDirectTest, CheckFindsStretchesAnywhere) {
  Random random("conv check stretch");
  const Tensors tensors = MakeTensors(
      MakeProblem({.N = 4, .C = 3, .M = 32, .D = {40, 40}, .K = {3, 3}}, Attributes()),
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
