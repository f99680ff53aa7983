#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/primitive_call.h"
#include "support/turns.h"

/// Depthwise convolutions by lines, run by name: whether they are chosen does not matter here.
namespace gradsmith::cuda {
namespace {

constexpr const char* kLines = "own/depthwise-lines";

/// A depthwise convolution of x (N, C, D...) with filters K.
ConvShape ByLines(
    const std::string& name,
    const Sizes& x,
    const Sizes& kernel,
    const IntList& pads,
    const IntList& dilations = {},
    const IntList& strides = {}) {
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

/// Lines shorter than a run, of several runs and of several blocks; taps of less than a vector, of
/// part of a run, of a whole one and of several; rows that are read by 16 bytes and by fewer; what
/// pads shift against what is aligned.
std::vector<ConvShape> ShapesOf1d() {
  return {
      ByLines("one tap", {2, 5, 33}, {1}, {0, 0}),
      ByLines("two taps", {2, 3, 40}, {2}, {1, 0}),
      ByLines("three taps", {3, 7, 29}, {3}, {1, 1}),
      ByLines("four taps", {2, 3, 64}, {4}, {3, 0}),
      ByLines("shorter than a vector", {3, 5, 3}, {4}, {2, 1}),
      ByLines("one element", {2, 3, 1}, {5}, {2, 2}),
      ByLines("short", {3, 20, 7}, {15}, {7, 7}),
      ByLines("sixteen taps", {2, 3, 96}, {16}, {8, 7}),
      ByLines("31 taps", {3, 4, 100}, {31}, {15, 15}),
      ByLines("31 taps, causal", {2, 3, 72}, {31}, {30, 0}),
      ByLines("31 taps, odd", {2, 3, 77}, {31}, {15, 15}),
      ByLines("31 taps, no pads", {2, 3, 90}, {31}, {0, 0}),
      ByLines("31 taps, long", {1, 2, 5003}, {31}, {15, 15}),
      ByLines("63 taps", {2, 3, 132}, {63}, {31, 31}),
      ByLines("64 taps", {2, 3, 131}, {64}, {32, 31}),
      ByLines("127 taps", {2, 2, 160}, {127}, {63, 63}),
      ByLines("127 taps of few elements", {5, 3, 32}, {127}, {63, 63}),
      ByLines("700 taps", {2, 2, 900}, {700}, {350, 349}),
      ByLines("pads larger than the filter", {2, 3, 21}, {5}, {9, 11}),
      ByLines("many short lines", {3, 150, 32}, {31}, {15, 15}),
      ByLines("many images", {40, 3, 50}, {9}, {4, 4}),
      ByLines("dilation of 2", {2, 3, 75}, {15}, {14, 14}, {2}),
      ByLines("dilation of 3, odd", {2, 3, 50}, {4}, {5, 2}, {3}),
      ByLines("dilation of 64", {2, 3, 300}, {3}, {64, 64}, {64}),
      ByLines("dilation of 64, causal", {1, 2, 700}, {2}, {64, 0}, {64}),
      ByLines("dilation beyond the line", {2, 3, 20}, {3}, {30, 30}, {30}),
      ByLines("dilation of 512", {1, 2, 2048}, {2}, {512, 0}, {512}),
      ByLines("by 2", {2, 3, 100}, {31}, {15, 15}, {}, {2}),
      ByLines("by 2, even", {2, 3, 77}, {10}, {4, 5}, {}, {2}),
      ByLines("by 3, odd", {2, 3, 80}, {7}, {2, 3}, {}, {3}),
      ByLines("by 4, few taps", {2, 3, 90}, {3}, {1, 0}, {}, {4}),
      ByLines("by 5", {2, 3, 200}, {16}, {7, 4}, {}, {5}),
  };
}

std::vector<ConvShape> ShapesOf2d() {
  return {
      ByLines("9x9", {2, 3, 14, 20}, {9, 9}, {4, 4, 4, 4}),
      ByLines("13x13 of small planes", {3, 5, 7, 7}, {13, 13}, {6, 6, 6, 6}),
      ByLines("31x31", {1, 2, 33, 40}, {31, 31}, {15, 15, 15, 15}),
      ByLines("31x31 of small planes", {3, 2, 9, 12}, {31, 31}, {15, 15, 15, 15}),
      ByLines("many planes of 7x7", {2, 37, 7, 7}, {9, 9}, {4, 4, 4, 4}),
      ByLines("1x9", {2, 3, 6, 21}, {1, 9}, {0, 4, 0, 4}),
      ByLines("9x1", {2, 3, 21, 10}, {9, 1}, {4, 0, 4, 0}),
      ByLines("3x3", {2, 3, 12, 24}, {3, 3}, {1, 1, 1, 1}),
      ByLines("8x6, uneven pads", {2, 3, 17, 19}, {8, 6}, {3, 7, 1, 0}),
      ByLines("5x11, no pads", {2, 3, 12, 56}, {5, 11}, {0, 0, 0, 0}),
      ByLines("9x9 of several blocks", {1, 2, 90, 72}, {9, 9}, {4, 4, 4, 4}),
      ByLines("3x3, dilations", {2, 3, 20, 31}, {3, 3}, {2, 3, 2, 3}, {2, 3}),
      ByLines("9x5, dilations", {2, 3, 20, 31}, {9, 5}, {12, 8, 12, 8}, {3, 4}),
      ByLines("9x9 by 2", {2, 3, 21, 30}, {9, 9}, {4, 4, 4, 4}, {}, {2, 2}),
      ByLines("3x7 by 3 and 2", {2, 3, 20, 33}, {3, 7}, {1, 2, 0, 3}, {}, {3, 2}),
      ByLines("5x9 by 1 and 4", {2, 3, 12, 50}, {5, 9}, {2, 4, 2, 3}, {}, {1, 4}),
      ByLines("9x3 by 4 and 1", {2, 3, 33, 18}, {9, 3}, {4, 1, 3, 1}, {}, {4, 1}),
  };
}

/// One plane and many, more tap planes than planes, and planes that meet padding alone.
std::vector<ConvShape> ShapesOf3d() {
  return {
      ByLines("3x3x3", {2, 3, 5, 12, 24}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
      ByLines("3x3x3 of small planes", {3, 21, 4, 7, 7}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
      // Slices of several depths, of which neighbours share planes.
      ByLines("3x3x3 of many channels", {5, 260, 4, 12, 2}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
      ByLines(
          "by 2 of many channels", {1, 900, 11, 3, 5}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {},
          {2, 2, 2}),
      ByLines("3x3x3 of several blocks", {1, 2, 3, 58, 75}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
      ByLines("3x3x3 of one plane", {2, 3, 1, 9, 11}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
      ByLines("3x1x1", {2, 3, 7, 6, 9}, {3, 1, 1}, {1, 0, 0, 1, 0, 0}),
      ByLines("1x3x3", {2, 3, 4, 10, 13}, {1, 3, 3}, {0, 1, 1, 0, 1, 1}),
      ByLines("2x4x5, uneven pads", {2, 3, 5, 11, 17}, {2, 4, 5}, {1, 2, 3, 0, 1, 2}),
      ByLines("5x3x3, causal", {2, 3, 6, 8, 16}, {5, 3, 3}, {4, 1, 1, 0, 1, 1}),
      ByLines("depth pads larger than the filter", {2, 3, 2, 6, 9}, {2, 3, 3}, {4, 1, 1, 3, 1, 1}),
      ByLines("no pads", {2, 3, 5, 9, 20}, {3, 3, 3}, {0, 0, 0, 0, 0, 0}),
      ByLines("3x3x3 by 1 and 2", {2, 3, 4, 15, 26}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {}, {1, 2, 2}),
      ByLines("3x3x3 by 2", {2, 3, 7, 13, 18}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {}, {2, 2, 2}),
      ByLines("3x3x3 by 2 and 1", {2, 3, 8, 9, 21}, {3, 3, 3}, {1, 1, 1, 0, 1, 1}, {}, {2, 1, 1}),
      ByLines("2x3x3 by 3 and 1", {1, 3, 9, 7, 14}, {2, 3, 3}, {2, 1, 1, 1, 1, 1}, {}, {3, 1, 1}),
      ByLines("dilated depth", {2, 3, 9, 8, 12}, {3, 3, 3}, {2, 1, 1, 2, 1, 1}, {2, 1, 1}),
      ByLines("dilations", {2, 3, 9, 11, 19}, {3, 2, 3}, {3, 1, 2, 2, 1, 2}, {3, 2, 2}),
      ByLines(
          "depth by 2 and 3", {2, 3, 11, 6, 8}, {3, 3, 3}, {4, 1, 1, 3, 1, 1}, {3, 1, 1},
          {2, 1, 1}),
      ByLines(
          "depth by 4 and 2", {1, 3, 13, 6, 8}, {4, 3, 3}, {3, 1, 1, 3, 1, 1}, {2, 1, 1},
          {4, 1, 1}),
  };
}

std::vector<ConvShape> AllShapes() {
  std::vector<ConvShape> shapes = ShapesOf1d();
  for (const std::vector<ConvShape>& more : {ShapesOf2d(), ShapesOf3d()}) {
    shapes.insert(shapes.end(), more.begin(), more.end());
  }
  return shapes;
}

/// Strides of rows, planes and images that have gaps after them.
Sizes StridesWithGaps(const Sizes& dims, std::int64_t gap) {
  Sizes strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * dims[i] + gap;
  }
  return strides;
}

/// The call with another x and y, of the same values where they are read.
void UseInstead(PrimitiveCall* call, const TensorPointer& x, const TensorPointer& y) {
  for (std::vector<TensorPointer>* tensors : {&call->op.inputs, &call->op.outputs}) {
    for (TensorPointer& tensor : *tensors) {
      if (tensor == call->x) {
        tensor = x;
      } else if (tensor == call->y) {
        tensor = y;
      }
    }
  }
  call->x = x;
  call->y = y;
}

class CudaConvDepthwiseLines : public CudaTest {
 protected:
  /// Integers to the last bit, where the sums of half and bf16 are small enough; random numbers
  /// within the type's tolerance, twice with the same bits.
  static void CheckLines(const PrimitiveCall& call, const Context& context, Random& random) {
    SCOPED_TRACE(call.op.Describe());
    RunOnIntegers(call, context, kLines, random);
    call.op.FillInputs(random);
    const std::vector<std::vector<double>> expected = call.op.Expected();
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    RunAndCompare(*algorithms, call, context, kLines, expected, 0);
    const std::vector<std::byte> first = call.Result()->GpuBytes();
    RunAndCompare(*algorithms, call, context, kLines, expected, 0);
    EXPECT_TRUE(call.Result()->GpuBytes() == first) << "the second run has other bits";
  }
};

TEST_F(CudaConvDepthwiseLines, ComputesEveryPrimitive) {
  Random random("cuda depthwise lines");
  const Context context(OnGpu());
  for (const ConvShape& shape : AllShapes()) {
    for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
      for (const ConvPrimitive primitive : kPrimitives) {
        CheckLines(MakeCall(primitive, shape, type, Layout::kContiguous, random), context, random);
      }
    }
  }
}

TEST_F(CudaConvDepthwiseLines, ComputesInHalfAndBf16) {
  Random random("cuda depthwise lines in half");
  const Context context(OnGpu());
  Turns turns(5);  // of 6 cases of a shape
  for (const ConvShape& shape : AllShapes()) {
    for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
      for (const ConvPrimitive primitive : kPrimitives) {
        if (turns.Next()) {
          CheckLines(
              MakeCall(primitive, shape, type, Layout::kContiguous, random), context, random);
        }
      }
    }
  }
}

TEST_F(CudaConvDepthwiseLines, TakesGapsAndAnyAddress) {
  Random random("cuda depthwise lines with gaps");
  const Context context(OnGpu());
  Turns turns(5);  // of 18 cases of a shape
  for (const ConvShape& shape : AllShapes()) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      for (const std::int64_t gap : {0, 3, 16}) {
        for (const ConvPrimitive primitive : kPrimitives) {
          if (!turns.Next()) {
            continue;
          }
          PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kContiguous, random);
          const auto with_gaps = [&](const Sizes& dims) {
            return std::make_shared<GpuTensor>(
                type, dims, StridesWithGaps(dims, gap), /*misaligned=*/gap == 16 ? 0 : 1);
          };
          UseInstead(&call, with_gaps(shape.x), with_gaps(shape.YDims()));
          CheckLines(call, context, random);
        }
      }
    }
  }
}

/// 1-D, 3-D and filters of many taps in channels last, by copies whose rows are dense.
TEST_F(CudaConvDepthwiseLines, ComputesChannelsLastByCopies) {
  Random random("cuda depthwise lines of copies");
  const Context context(OnGpu());
  Turns turns(7);  // of 12 cases of a shape
  for (const ConvShape& shape : AllShapes()) {
    for (const DataType type : kAllTypes) {
      for (const ConvPrimitive primitive : kPrimitives) {
        const bool is_row = shape.x.size() == 3;
        // Both layouts are one where there is one position.
        if (!turns.Next() || shape.name == "one element" || (!is_row && shape.name == "3x3")) {
          continue;
        }
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        SCOPED_TRACE(call.op.Describe());
        RunAndCompare(call, context, "nchw own/depthwise-lines");
      }
    }
  }
}

/// Integers, to the last bit where the sum is one of the type's.
TEST_F(CudaConvDepthwiseLines, AddsToWhatIsThere) {
  Random random("cuda depthwise lines accumulate");
  const Context context(OnGpu());
  Turns turns(5);  // of 12 cases of a shape
  for (const ConvShape& shape : AllShapes()) {
    for (const DataType type : kAllTypes) {
      for (const ConvPrimitive primitive : kPrimitives) {
        if (!turns.Next()) {
          continue;
        }
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kContiguous, random);
        SCOPED_TRACE(call.op.Describe());
        call.op.FillInputsWithIntegers(random, -1, 1);
        Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
        ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
        RunAndCompareAdding(*algorithms, call, context, kLines, ExpectedOf(call), random);
      }
    }
  }
}

/// What is not finite in x reaches what it is multiplied with alone, where taps are finite: also
/// next to where lines end in the middle of a vector.
TEST_F(CudaConvDepthwiseLines, MultipliesNothingElse) {
  Random random("cuda depthwise lines of infinity");
  const Context context(OnGpu());
  for (const ConvShape& shape :
       {ByLines("31 taps", {1, 2, 75}, {31}, {15, 15}), ByLines("5 taps", {1, 2, 37}, {5}, {2, 2}),
        ByLines("5x9 by 2", {1, 2, 9, 37}, {5, 9}, {2, 4, 2, 4}, {}, {2, 2}),
        ByLines("5x9", {1, 2, 9, 37}, {5, 9}, {2, 4, 2, 4})}) {
    for (const ConvPrimitive primitive : kPrimitives) {
      const PrimitiveCall call =
          MakeCall(primitive, shape, DataType::kFloat, Layout::kContiguous, random);
      SCOPED_TRACE(call.op.Describe());
      const bool is_data = primitive == ConvPrimitive::kBackwardData;
      const TensorPointer& source = is_data ? call.y : call.x;
      const std::int64_t width = (is_data ? shape.YDims() : shape.x).back();
      std::int64_t next = 0;
      // Neighbours of borders and of a middle.
      source->Fill([&] {
        const std::int64_t column = next++ % width;
        const bool is_planted = column == 0 || column == width - 1 || column == width / 2;
        return is_planted ? std::numeric_limits<double>::infinity() : 1.0;
      });
      const TensorPointer& other = primitive == ConvPrimitive::kBackwardFilter ? call.y : call.w;
      other->Fill([] { return 1.0; });
      RunExactly(call, context, kLines, ExpectedOf(call));
    }
  }
}

/// The bias gradient of what dW is computed from.
TEST_F(CudaConvDepthwiseLines, LeavesSumsForTheBiasGradient) {
  Random random("cuda depthwise lines and sums");
  const Context context(OnGpu());
  Turns turns(2);  // of 4 cases of a shape
  for (const ConvShape& shape :
       {ByLines("31 taps", {3, 4, 100}, {31}, {15, 15}),
        ByLines("9x9", {2, 3, 14, 20}, {9, 9}, {4, 4, 4, 4}),
        ByLines("3x3x3", {2, 3, 4, 9, 12}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
        ByLines("planes of pads", {2, 3, 2, 9, 12}, {2, 3, 3}, {3, 1, 1, 2, 1, 1}),
        ByLines("dilation of 3", {2, 3, 50}, {9}, {12, 12}, {3})}) {
    for (const DataType type : kAllTypes) {
      if (!turns.Next()) {
        continue;
      }
      const OpCall call = MakeConvGrad(shape, type, Layout::kContiguous, random);
      SCOPED_TRACE(call.Describe());
      call.FillInputsWithIntegers(random, -1, 1);
      call.ResetOutputs();
      ASSERT_TRUE(call.Run(context).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      call.ExpectResults("integers");
    }
  }
}

TEST_F(CudaConvDepthwiseLines, ComesFirstWhereThereAreNoKernelsByRows) {
  Random random("cuda depthwise lines first");
  const Context context(OnGpu());
  const auto first_of = [&](const ConvShape& shape, Layout layout) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kForward, shape, DataType::kFloat, layout, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    EXPECT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    EXPECT_TRUE(list.ok() && !list->empty());
    return list.ok() && !list->empty() ? list->front().name : "";
  };
  EXPECT_EQ(first_of(ByLines("1-D", {2, 3, 50}, {31}, {15, 15}), Layout::kContiguous), kLines);
  EXPECT_EQ(
      first_of(ByLines("9x9", {2, 3, 20, 20}, {9, 9}, {4, 4, 4, 4}), Layout::kContiguous), kLines);
  const ConvShape volume =
      ByLines("3x3x3 by 2", {2, 3, 4, 20, 20}, {3, 3, 3}, {1, 1, 1, 1, 1, 1}, {}, {1, 2, 2});
  EXPECT_EQ(first_of(volume, Layout::kContiguous), kLines);
  EXPECT_EQ(
      first_of(ByLines("3x3", {2, 3, 20, 20}, {3, 3}, {1, 1, 1, 1}), Layout::kContiguous),
      "own/depthwise");
}

}  // namespace
}  // namespace gradsmith::cuda
