#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda/primitive_call.h"

/// Our own depthwise kernels, run by name: whether they are chosen does not matter here.
namespace gradsmith::cuda {
namespace {

constexpr const char* kDepthwise = "own/depthwise";

/// A depthwise convolution of x (N, C, D...) with filters K.
ConvShape Depthwise(
    const std::string& name,
    const Sizes& x,
    const Sizes& kernel,
    const IntList& strides = {},
    const IntList& pads = {},
    const IntList& dilations = {}) {
  Sizes w = {x[1], 1};
  w.insert(w.end(), kernel.begin(), kernel.end());
  return {
      .name = name,
      .x = x,
      .w = w,
      .strides = strides,
      .pads = pads,
      .dilations = dilations,
      .group = x[1]};
}

/// Channels that vectors divide and that they do not, filters of 3x3 and others, rows that a thread
/// goes down once and more often, one block and many, one slice and many.
std::vector<ConvShape> Shapes() {
  return {
      Depthwise("3x3", {2, 16, 14, 14}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("3x3 of many channels", {2, 272, 9, 10}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("3x3 of odd channels", {3, 33, 11, 7}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("3x3 by strides", {2, 24, 17, 15}, {3, 3}, {2, 3}, {1, 0, 1, 2}),
      Depthwise("3x3 dilated", {2, 8, 20, 19}, {3, 3}, {2, 1}, {3, 2, 1, 2}, {3, 2}),
      Depthwise("3x3 without pads", {1, 40, 8, 41}, {3, 3}),
      Depthwise("3x3 of one pixel", {5, 16, 1, 1}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("5x5", {2, 48, 13, 12}, {5, 5}, {2, 2}, {2, 2, 2, 2}),
      Depthwise("7x7", {1, 20, 16, 18}, {7, 7}, {}, {3, 3, 3, 3}),
      Depthwise("1x1", {2, 16, 6, 5}, {1, 1}),
      Depthwise("1x9", {2, 8, 6, 21}, {1, 9}, {}, {0, 4, 0, 4}),
      Depthwise("1-D", {3, 24, 50}, {3}, {}, {1, 1}),
      Depthwise("1-D odd", {3, 7, 50}, {4}, {3}, {0, 2}),
      Depthwise("3-D", {2, 16, 5, 9, 8}, {3, 3, 3}, {}, {1, 1, 1, 1, 1, 1}),
      Depthwise("3-D by strides", {2, 12, 7, 9, 8}, {2, 3, 3}, {2, 1, 2}, {0, 1, 1, 1, 1, 0}),
      Depthwise("large", {4, 96, 56, 56}, {3, 3}, {}, {1, 1, 1, 1}),
  };
}

class CudaConvDepthwise : public CudaTest {
 protected:
  /// Right against the CPU, twice with the same bits.
  static void Check(const PrimitiveCall& call, const Context& context) {
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    RunAndCompare(*algorithms, call, context, kDepthwise);
    const std::vector<std::byte> first = call.Result()->GpuBytes();
    RunAndCompare(*algorithms, call, context, kDepthwise);
    EXPECT_TRUE(call.Result()->GpuBytes() == first) << "the second run has other bits";
  }
};

TEST_F(CudaConvDepthwise, ComputesEveryPrimitive) {
  Random random("cuda depthwise");
  const Context context(OnGpu());
  for (const ConvShape& shape : Shapes()) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : kDenseLayouts) {
        for (const ConvPrimitive primitive : kPrimitives) {
          Check(MakeCall(primitive, shape, type, layout, random), context);
        }
      }
    }
  }
}

TEST_F(CudaConvDepthwise, IsNotOfferedForOtherGroups) {
  Random random("cuda depthwise others");
  const Context context(OnGpu());
  ConvShape doubled = Depthwise("two filters for each channel", {2, 16, 9, 9}, {3, 3});
  doubled.w[0] = 32;
  const ConvShape large = Depthwise("filters of 9x9", {1, 8, 16, 16}, {9, 9});
  for (const ConvShape& shape : {doubled, large, ConvGrouped(), Conv3x3()}) {
    for (const ConvPrimitive primitive : kPrimitives) {
      const PrimitiveCall call =
          MakeCall(primitive, shape, DataType::kFloat, Layout::kContiguous, random);
      Result<ConvAlgorithms> algorithms = call.Prepare(context);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
      ASSERT_TRUE(list.ok()) << list.status().message();
      for (const ConvAlgorithm& algorithm : *list) {
        EXPECT_NE(algorithm.name, kDepthwise) << shape.name;
      }
      EXPECT_FALSE(algorithms->Run({kDepthwise}).ok()) << shape.name;
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
