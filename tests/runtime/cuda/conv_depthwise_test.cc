#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/primitive_call.h"
#include "support/elements.h"
#include "support/turns.h"

/// Our own depthwise kernels, run by name: whether they are chosen does not matter here.
namespace gradsmith::cuda {
namespace {

constexpr const char* kDepthwise = "own/depthwise";
constexpr const char* kTiles = "own/depthwise-tiles";
constexpr DataType kTypesOfTiles[] = {DataType::kFloat, DataType::kMLFloat16, DataType::kBFloat16};

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

/// Squares of 2 to 7 by steps of 1 and 2, which have kernels of their own where rows are dense:
/// rows that are read by 16 bytes and by fewer, that are shorter than that, that pads shift against
/// what is aligned; more columns of x than any y meets; channels that are summed in one slice and
/// in several.
std::vector<ConvShape> ShapesOfRows() {
  return {
      Depthwise("rows of whole vectors", {2, 8, 12, 56}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("rows of half vectors", {2, 5, 9, 28}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("rows of pairs", {2, 3, 6, 14}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("odd rows", {2, 3, 10, 33}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("short rows", {2, 3, 6, 3}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("one row", {1, 2, 1, 21}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("one column", {1, 2, 21, 1}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("no pads", {1, 3, 9, 32}, {3, 3}),
      Depthwise("uneven pads", {2, 3, 8, 24}, {3, 3}, {}, {2, 0, 1, 2}),
      Depthwise("5x5 of whole vectors", {2, 4, 11, 24}, {5, 5}, {}, {2, 2, 2, 2}),
      Depthwise("5x5 of odd rows", {1, 3, 7, 7}, {5, 5}, {}, {2, 2, 2, 2}),
      Depthwise("5x5, uneven pads", {2, 3, 8, 19}, {5, 5}, {}, {4, 1, 0, 3}),
      Depthwise("by two", {2, 4, 16, 32}, {3, 3}, {2, 2}, {1, 1, 1, 1}),
      Depthwise("by two, odd", {2, 3, 15, 17}, {3, 3}, {2, 2}, {1, 1, 1, 1}),
      Depthwise("by two, pads at the end", {2, 3, 16, 16}, {3, 3}, {2, 2}, {0, 0, 1, 1}),
      Depthwise("by two, pads at the beginning", {1, 3, 9, 14}, {3, 3}, {2, 2}, {2, 2, 0, 1}),
      Depthwise("by two, no pads", {1, 3, 12, 24}, {3, 3}, {2, 2}),
      Depthwise("5x5 by two", {2, 4, 28, 48}, {5, 5}, {2, 2}, {2, 2, 2, 2}),
      Depthwise("5x5 by two, uneven pads", {2, 3, 14, 15}, {5, 5}, {2, 2}, {1, 1, 2, 2}),
      Depthwise("5x5 by two, more pads", {1, 3, 6, 9}, {5, 5}, {2, 2}, {3, 4, 4, 2}),
      Depthwise("7x7 of whole vectors", {2, 4, 14, 24}, {7, 7}, {}, {3, 3, 3, 3}),
      Depthwise("7x7 of a few odd rows", {1, 3, 7, 7}, {7, 7}, {}, {3, 3, 3, 3}),
      Depthwise("7x7, uneven pads", {2, 3, 9, 21}, {7, 7}, {}, {5, 2, 1, 6}),
      Depthwise("7x7, no pads", {2, 3, 12, 33}, {7, 7}),
      Depthwise("7x7, several slices", {48, 2, 28, 28}, {7, 7}, {}, {3, 3, 3, 3}),
      Depthwise("2x2 by two", {2, 4, 16, 32}, {2, 2}, {2, 2}),
      Depthwise("2x2 by two, odd", {2, 3, 15, 17}, {2, 2}, {2, 2}),
      Depthwise("2x2 by two, pads", {2, 3, 13, 20}, {2, 2}, {2, 2}, {1, 1, 0, 1}),
      Depthwise("4x4 by two", {2, 4, 16, 32}, {4, 4}, {2, 2}, {1, 1, 1, 1}),
      Depthwise("4x4 by two, odd", {2, 3, 15, 17}, {4, 4}, {2, 2}, {1, 1, 1, 1}),
      Depthwise("4x4 by two, no pads", {2, 3, 14, 24}, {4, 4}, {2, 2}),
      Depthwise("4x4 by two, uneven pads", {1, 3, 11, 18}, {4, 4}, {2, 2}, {3, 2, 0, 3}),
      Depthwise("4x4 by two, several slices", {96, 2, 28, 32}, {4, 4}, {2, 2}, {1, 1, 1, 1}),
      Depthwise("many small planes of 4x4 by two", {9, 33, 7, 7}, {4, 4}, {2, 2}, {1, 1, 1, 1}),
      Depthwise("odd planes of several blocks", {5, 7, 13, 55}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("many small planes", {9, 33, 7, 7}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("many small planes by two", {9, 33, 7, 7}, {5, 5}, {2, 2}, {2, 2, 2, 2}),
      Depthwise("more rows than are read", {3, 5, 10, 7}, {3, 3}, {2, 2}),
      Depthwise("two slices", {24, 3, 28, 28}, {3, 3}, {}, {1, 1, 1, 1}),
      Depthwise("several slices by two", {96, 2, 28, 28}, {3, 3}, {2, 2}, {1, 1, 1, 1}),
  };
}

/// The same with 8 times the channels, which vectors divide: of one block, of part of one, and of
/// several.
std::vector<ConvShape> ShapesOfTiles() {
  std::vector<ConvShape> shapes = ShapesOfRows();
  for (ConvShape& shape : shapes) {
    constexpr std::int64_t kVector = 8;
    shape.x[1] *= kVector;
    shape.w[0] = shape.group = shape.x[1];
  }
  return shapes;
}

/// Strides of rows that have a gap after them.
Sizes StridesWithGap(const Sizes& dims, std::int64_t gap) {
  Sizes strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) {
    strides[i - 1] = strides[i] * dims[i] + (i + 1 == dims.size() ? gap : 0);
  }
  return strides;
}

/// The call with another x and y, of the same values where they are read.
void Replace(PrimitiveCall* call, const TensorPointer& x, const TensorPointer& y, Random& random) {
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
  call->op.FillInputs(random);
}

class CudaConvDepthwise : public CudaTest {
 protected:
  /// Right against the CPU, twice with the same bits.
  static void Check(
      const PrimitiveCall& call,
      const Context& context,
      const std::string& candidate = kDepthwise) {
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const std::vector<std::vector<double>> expected = call.op.Expected();
    RunAndCompare(*algorithms, call, context, candidate, expected, 0);
    const std::vector<std::byte> first = call.Result()->GpuBytes();
    RunAndCompare(*algorithms, call, context, candidate, expected, 0);
    EXPECT_TRUE(call.Result()->GpuBytes() == first) << "the second run has other bits";
  }

  /// The kernel that is chosen, ours first, adds to integers: to the last bit where the sum is one
  /// of the type's.
  static void CheckAdding(const PrimitiveCall& call, const Context& context, Random& random) {
    SCOPED_TRACE(call.op.Describe());
    const std::vector<double> gradient = call.op.Expected()[OutputOf(call)];
    call.Result()->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
    const std::vector<double> before = call.Result()->HostValues();
    ASSERT_TRUE(call.op.Run(context, /*accumulate=*/true).ok());
    ASSERT_TRUE(Synchronize(context).ok());
    const std::vector<double> after = call.Result()->GpuValues();
    const double roundoff = support::UnitRoundoff(call.op.types[0]);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const double sum = before[i] + gradient[i];
      ASSERT_NEAR(after[i], sum, roundoff * std::abs(sum)) << "element " << i;
    }
    EXPECT_TRUE(call.Result()->SurroundingsIntact());
  }

  /// The same of both gradients in every type.
  static void CheckAddingOf(
      const std::vector<ConvShape>& shapes,
      std::span<const DataType> types,
      Layout layout,
      Random& random) {
    const Context context(OnGpu());
    Turns turns(5);  // of 6 or 8 cases of a shape
    for (const ConvShape& shape : shapes) {
      for (const DataType type : types) {
        for (const ConvPrimitive primitive :
             {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
          if (!turns.Next()) {
            continue;
          }
          const PrimitiveCall call = MakeCall(primitive, shape, type, layout, random);
          call.op.FillInputsWithIntegers(random, -1, 1);
          CheckAdding(call, context, random);
        }
      }
    }
  }

 private:
  static std::size_t OutputOf(const PrimitiveCall& call) {
    return call.primitive == ConvPrimitive::kBackwardFilter ? 1 : 0;
  }
};

TEST_F(CudaConvDepthwise, ComputesEveryPrimitive) {
  Random random("cuda depthwise");
  const Context context(OnGpu());
  Turns turns(5);  // of 24 cases of a shape
  for (const ConvShape& shape : Shapes()) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : kDenseLayouts) {
        for (const ConvPrimitive primitive : kPrimitives) {
          if (shape.name == "large" && !turns.Next()) {
            continue;
          }
          Check(MakeCall(primitive, shape, type, layout, random), context);
        }
      }
    }
  }
}

TEST_F(CudaConvDepthwise, ComputesByRows) {
  Random random("cuda depthwise rows");
  const Context context(OnGpu());
  for (const ConvShape& shape : ShapesOfRows()) {
    for (const DataType type : kAllTypes) {
      for (const ConvPrimitive primitive : kPrimitives) {
        Check(MakeCall(primitive, shape, type, Layout::kContiguous, random), context);
      }
    }
  }
}

/// Channels last by copies whose rows are dense.
TEST_F(CudaConvDepthwise, ComputesByRowsOfCopies) {
  Random random("cuda depthwise rows of copies");
  const Context context(OnGpu());
  for (const ConvShape& shape : ShapesOfRows()) {
    for (const DataType type : kAllTypes) {
      for (const ConvPrimitive primitive : kPrimitives) {
        // The short ones are left to the general kernel.
        const std::int64_t run = 8 / (shape.strides.empty() ? 1 : shape.strides[1]);
        if (primitive == ConvPrimitive::kBackwardFilter && SizeOf(type) == 2 && shape.w[3] <= 3 &&
            shape.YDims()[3] < run) {
          continue;
        }
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        Check(call, context, "nchw own/depthwise");
      }
    }
  }
}

/// Channels last by tiles of channels.
TEST_F(CudaConvDepthwise, ComputesByTiles) {
  Random random("cuda depthwise tiles");
  const Context context(OnGpu());
  Turns turns(2);  // of 9 cases of a shape
  for (const ConvShape& shape : ShapesOfTiles()) {
    for (const DataType type : kTypesOfTiles) {
      for (const ConvPrimitive primitive : kPrimitives) {
        if (!turns.Next()) {
          continue;
        }
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        Check(call, context, kTiles);
      }
    }
  }
}

TEST_F(CudaConvDepthwise, TilesTakePixelsWithGaps) {
  Random random("cuda depthwise tiles with gaps");
  const Context context(OnGpu());
  Turns turns(5);  // of 6 or 18 cases of a shape
  for (const ConvShape& shape : ShapesOfTiles()) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      for (const ConvPrimitive primitive : kPrimitives) {
        if (!turns.Next()) {
          continue;
        }
        PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        const auto with_gaps = [&](const Sizes& dims) {
          const std::int64_t pixel = dims[1] + 8;
          const std::int64_t row = (dims[3] * pixel) + 16;
          return std::make_shared<GpuTensor>(
              type, dims, Sizes{(dims[2] * row) + 8, 1, row, pixel}, /*misaligned=*/0);
        };
        Replace(&call, with_gaps(shape.x), with_gaps(shape.YDims()), random);
        Check(call, context, kTiles);
      }
    }
  }
}

/// The bias gradient of what dW is computed from by tiles: what integers add up to, rounded once.
TEST_F(CudaConvDepthwise, TilesLeaveSumsForTheBiasGradient) {
  Random random("cuda depthwise tiles and sums");
  const Context context(OnGpu());
  Turns turns(4);  // of 3 cases of a shape
  for (const ConvShape& shape : ShapesOfTiles()) {
    for (const DataType type : kTypesOfTiles) {
      if (!turns.Next()) {
        continue;
      }
      const OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
      SCOPED_TRACE(call.Describe());
      call.FillInputsWithIntegers(random, -1, 1);
      for (const bool with_data : {true, false}) {
        OpCall asked = call;
        asked.outputs[0] = with_data ? call.outputs[0] : nullptr;
        asked.ResetOutputs();
        ASSERT_TRUE(asked.Run(context).ok());
        ASSERT_TRUE(Synchronize(context).ok());
        const std::vector<std::vector<double>> expected = asked.Expected();
        asked.ExpectResults("integers", expected);
        const std::vector<double> sums = asked.outputs[2]->GpuValues();
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const double rounding = support::UnitRoundoff(type) * std::abs(expected[2][i]);
          ASSERT_NEAR(sums[i], expected[2][i], rounding) << "channel " << i;
        }
      }
    }
  }
}

TEST_F(CudaConvDepthwise, TakesRowsWithGapsAndAnyAddress) {
  Random random("cuda depthwise rows with gaps");
  const Context context(OnGpu());
  Turns turns(5);  // of 6 or 18 cases of a shape
  for (const ConvShape& shape : ShapesOfRows()) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      for (const std::int64_t gap : {0, 3, 16}) {
        const std::size_t misaligned = gap == 16 ? 0 : 1;
        for (const ConvPrimitive primitive : kPrimitives) {
          if (!turns.Next()) {
            continue;
          }
          PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kContiguous, random);
          const auto with_gap = [&](const Sizes& dims) {
            return std::make_shared<GpuTensor>(type, dims, StridesWithGap(dims, gap), misaligned);
          };
          Replace(&call, with_gap(shape.x), with_gap(shape.YDims()), random);
          Check(call, context);
        }
      }
    }
  }
}

TEST_F(CudaConvDepthwise, AddsToWhatIsThere) {
  Random random("cuda depthwise accumulates");
  CheckAddingOf(ShapesOfRows(), kAllTypes, Layout::kContiguous, random);
}

TEST_F(CudaConvDepthwise, TilesAddToWhatIsThere) {
  Random random("cuda depthwise tiles accumulate");
  CheckAddingOf(ShapesOfTiles(), kTypesOfTiles, Layout::kChannelsLast, random);
}

/// Where depthwise kernels come first, the batch that a look lists first has the direct kernel
/// alone, which is nevertheless tried after them.
TEST_F(CudaConvDepthwise, AreTriedBeforeTheDirectKernel) {
  Random random("depthwise in a look");
  ContextOptions options = OnGpu(SearchMode::kHeuristic);
  options.first_choice_seconds = ContextOptions().first_choice_seconds;
  std::vector<std::string> tried;
  options.on_search_progress = [&](const SearchProgress& progress) {
    if (progress.problem.starts_with("backward-data of") && progress.milliseconds > 0) {
      tried.push_back(progress.candidate);
    }
  };
  const OpCall call =
      MakeConvGrad(ConvDepthwise(), DataType::kFloat, Layout::kChannelsLast, random);
  ASSERT_TRUE(call.Run(Context(options)).ok());
  const auto place = [&](const char* id) { return std::ranges::find(tried, id) - tried.begin(); };
  EXPECT_LT(place("own/depthwise"), place("own/direct"));
  EXPECT_LT(place("nchw own/depthwise"), place("own/direct"));
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
