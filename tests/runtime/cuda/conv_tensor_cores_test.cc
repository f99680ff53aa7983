#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/primitive_call.h"
#include "support/elements.h"
#include "support/turns.h"

/// Our own kernels on tensor cores, run by name: whether they are chosen does not matter here.
namespace gradsmith::cuda {
namespace {

constexpr const char* kTensorCores = "own/tensor-cores/";
enum class Math : unsigned char { kFloat, kTf32, kDouble, kHalf, kBfloat16 };
constexpr std::array<Math, 5> kMaths = {
    Math::kFloat, Math::kTf32, Math::kDouble, Math::kHalf, Math::kBfloat16};
constexpr std::array<Math, 2> kNarrowMaths = {Math::kHalf, Math::kBfloat16};
constexpr std::size_t kTiles = 4;
/// Of half and bf16 only these are listed.
constexpr std::size_t kBestTiles = 2;

DataType TypeOf(Math math) {
  constexpr std::array<DataType, 5> kTypes = {
      DataType::kFloat, DataType::kFloat, DataType::kDouble, DataType::kMLFloat16,
      DataType::kBFloat16};
  return kTypes.at(static_cast<std::size_t>(math));
}

/// Of a result's norm; 0 for what its type allows.
double ToleranceOf(Math math) {
  return math == Math::kTf32 ? 1e-3 : 0;
}

/// Channels of a group come in multiples of so many.
std::int64_t TermsOfChunk(Math math) {
  return 16 / static_cast<std::int64_t>(SizeOf(TypeOf(math)));
}

std::string NameOf(Math math, const std::string& tile) {
  constexpr std::array<const char*, 5> kNames = {"float/", "tf32/", "double/", "half/", "bf16/"};
  return kTensorCores + std::string(kNames.at(static_cast<std::size_t>(math))) + tile;
}

std::vector<std::string> NamesOf(Math math, ConvPrimitive primitive) {
  std::vector<const char*> tiles = {"128x128", "128x64", "64x64", "128x32"};
  if (math == Math::kTf32) {
    tiles = {"256x128", "256x64", "128x128", "128x64"};
  } else if (TermsOfChunk(math) == 8) {
    tiles = {"256x128", "256x64", "128x64", "256x32"};
  }
  const bool sums_once = math != Math::kFloat && math != Math::kDouble;
  if (sums_once && primitive == ConvPrimitive::kBackwardFilter) {
    tiles = {"128x256", "64x256", "128x128", "64x128"};
  }
  std::vector<std::string> names;
  names.reserve(tiles.size());
  for (const char* const tile : tiles) {
    names.push_back(NameOf(math, tile));
  }
  if (primitive == ConvPrimitive::kBackwardFilter) {
    names.push_back(names.back() + "/slices1");
  }
  return names;
}

std::vector<std::string> LineNamesOf(Math math, ConvPrimitive primitive) {
  if (primitive == ConvPrimitive::kBackwardFilter) {
    return {NameOf(math, "lines/64x288")};
  }
  std::vector<std::string> names;
  for (const char* const tile : {"lines/256x128", "lines/256x64", "lines/256x32"}) {
    names.push_back(NameOf(math, tile));
  }
  return names;
}

/// Tiles that are filled and that are not, taps outside, steps that leave results without taps,
/// groups, one slice of the filter's gradient and many, whose positions end within a stage, each
/// rank.
std::vector<ConvShape> Shapes() {
  return {
      {.name = "3x3", .x = {2, 64, 14, 14}, .w = {72, 64, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "small", .x = {1, 4, 5, 6}, .w = {8, 4, 2, 3}, .pads = {0, 1, 2, 1}},
      {.name = "1x1", .x = {3, 132, 9, 7}, .w = {36, 132, 1, 1}},
      {.name = "padded 1x1", .x = {2, 8, 5, 5}, .w = {8, 8, 1, 1}, .pads = {1, 1, 1, 1}},
      {.name = "1x1 by steps", .x = {2, 32, 9, 8}, .w = {16, 32, 1, 1}, .strides = {2, 3}},
      {.name = "3x3 by steps",
       .x = {2, 20, 13, 12},
       .w = {24, 20, 3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 0}},
      {.name = "7x7 by steps",
       .x = {2, 4, 21, 20},
       .w = {64, 4, 7, 7},
       .strides = {2, 2},
       .pads = {3, 3, 3, 3}},
      {.name = "steps beyond the filter",
       .x = {2, 8, 11, 13},
       .w = {12, 8, 2, 2},
       .strides = {4, 3},
       .pads = {1, 0, 0, 2}},
      {.name = "dilated",
       .x = {2, 16, 17, 15},
       .w = {40, 16, 3, 3},
       .pads = {2, 4, 2, 4},
       .dilations = {2, 4}},
      {.name = "dilated by steps",
       .x = {2, 16, 17, 15},
       .w = {16, 16, 3, 2},
       .strides = {2, 3},
       .pads = {1, 2, 2, 1},
       .dilations = {3, 2}},
      {.name = "grouped",
       .x = {2, 48, 8, 9},
       .w = {72, 16, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = 3},
      {.name = "1-D", .x = {4, 24, 70}, .w = {132, 24, 5}, .strides = {2}, .pads = {2, 1}},
      {.name = "3-D",
       .x = {1, 8, 6, 7, 8},
       .w = {20, 8, 3, 3, 3},
       .strides = {1, 2, 1},
       .pads = {1, 1, 1, 1, 1, 1}},
      {.name = "wide", .x = {3, 68, 9, 10}, .w = {136, 68, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "wide 1x1", .x = {3, 260, 9, 7}, .w = {140, 260, 1, 1}},
      {.name = "slices that end within a stage", .x = {6, 16, 37, 41}, .w = {16, 16, 3, 3}},
      {.name = "slices by steps",
       .x = {9, 8, 33, 31},
       .w = {12, 8, 5, 3},
       .strides = {2, 1},
       .pads = {2, 1, 1, 0}},
      {.name = "slices of 1x1", .x = {5, 32, 31, 29}, .w = {32, 32, 1, 1}},
      {.name = "many positions", .x = {8, 32, 40, 40}, .w = {32, 32, 3, 3}, .pads = {1, 1, 1, 1}},
  };
}

/// Single steps along the last axis, which is long: lines that begin and end within a tile, that
/// several tiles have parts of, taps far outside, far from each other and beyond each end alone,
/// few and many channels, steps along other axes (forward alone), each rank.
std::vector<ConvShape> LineShapes() {
  return {
      {.name = "3x3", .x = {2, 64, 7, 37}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "longer than a tile",
       .x = {2, 24, 2, 301},
       .w = {40, 24, 2, 3},
       .pads = {0, 1, 1, 1}},
      {.name = "without padding", .x = {3, 72, 5, 43}, .w = {8, 72, 3, 5}},
      {.name = "taps outside", .x = {2, 8, 6, 57}, .w = {136, 8, 3, 4}, .pads = {2, 5, 1, 0}},
      {.name = "dilated",
       .x = {1, 136, 9, 64},
       .w = {72, 136, 3, 3},
       .pads = {2, 3, 2, 3},
       .dilations = {2, 3}},
      {.name = "grouped",
       .x = {2, 48, 6, 40},
       .w = {120, 16, 3, 2},
       .pads = {1, 1, 1, 0},
       .group = 3},
      {.name = "1-D", .x = {5, 200, 130}, .w = {32, 200, 7}, .pads = {3, 3}},
      {.name = "3-D", .x = {2, 32, 3, 5, 36}, .w = {64, 32, 3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}},
      {.name = "steps along another axis",
       .x = {2, 32, 13, 41},
       .w = {32, 32, 3, 3},
       .strides = {2, 1},
       .pads = {1, 1, 1, 1}},
  };
}

/// Three taps along the last axis, whose lines are long beside a stage of 64 positions: units of
/// columns that are full and that are not, steps along other axes, slices that end within a stage.
std::vector<ConvShape> FilterLineShapes() {
  return {
      {.name = "3x3", .x = {2, 64, 7, 37}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "longer than a stage",
       .x = {2, 24, 3, 301},
       .w = {72, 24, 2, 3},
       .pads = {0, 1, 1, 1}},
      {.name = "without padding", .x = {3, 72, 5, 23}, .w = {8, 72, 3, 3}},
      {.name = "taps outside", .x = {2, 8, 6, 57}, .w = {136, 8, 3, 3}, .pads = {2, 5, 1, 0}},
      {.name = "dilated",
       .x = {1, 40, 9, 70},
       .w = {24, 40, 3, 3},
       .pads = {2, 1, 2, 2},
       .dilations = {2, 2}},
      {.name = "grouped",
       .x = {2, 48, 6, 40},
       .w = {120, 16, 3, 3},
       .pads = {1, 1, 1, 0},
       .group = 3},
      {.name = "1-D in slices", .x = {7, 40, 411}, .w = {32, 40, 3}, .pads = {1, 1}},
      {.name = "3-D in slices",
       .x = {2, 32, 8, 9, 36},
       .w = {64, 32, 3, 3, 3},
       .pads = {1, 1, 1, 1, 1, 1}},
      {.name = "steps along another axis",
       .x = {2, 32, 13, 41},
       .w = {32, 32, 3, 3},
       .strides = {2, 1},
       .pads = {1, 1, 1, 1}},
  };
}

/// The shape with as many more channels as the math asks for.
ConvShape InChunks(ConvShape shape, Math math) {
  const std::int64_t chunk = TermsOfChunk(math);
  const auto fill_up = [&](std::int64_t channels) {
    return (channels + chunk - 1) / chunk * chunk;
  };
  shape.w[1] = fill_up(shape.w[1]);
  shape.x[1] = shape.w[1] * shape.group;
  shape.w[0] = fill_up(shape.w[0] / shape.group) * shape.group;
  return shape;
}

std::vector<std::string> OwnOf(ConvAlgorithms& algorithms, bool in_tf32) {
  std::vector<std::string> names;
  const Result<std::vector<ConvAlgorithm>> list = algorithms.List();
  EXPECT_TRUE(list.ok()) << list.status().message();
  for (const ConvAlgorithm& algorithm : *list) {
    if (algorithm.name.find(kTensorCores) != std::string::npos) {
      EXPECT_TRUE(algorithm.deterministic);
      EXPECT_EQ(algorithm.tf32, in_tf32) << algorithm.name;
      EXPECT_EQ(algorithm.name.find("/tf32/") != std::string::npos, in_tf32) << algorithm.name;
      names.push_back(algorithm.name);
    }
  }
  return names;
}

class CudaConvTensorCores : public CudaTest {
 protected:
  /// The tiles whose turn it is, right against the CPU and with the same bits where they are run
  /// again.
  static void Check(
      const PrimitiveCall& call,
      const Context& context,
      Math math,
      double tolerance,
      Turns& turns) {
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const std::vector<std::vector<double>> expected = call.op.Expected();
    for (const std::string& name : NamesOf(math, call.primitive)) {
      if (!turns.Next()) {
        continue;
      }
      RunAndCompare(*algorithms, call, context, name, expected, tolerance);
      if (RunsOfCall() > 1) {
        const std::vector<std::byte> first = call.Result()->GpuBytes();
        RunAndCompare(*algorithms, call, context, name, expected, tolerance);
        EXPECT_TRUE(call.Result()->GpuBytes() == first) << "the second run has other bits";
      }
    }
  }
};

TEST_F(CudaConvTensorCores, ComputesEveryPrimitive) {
  Random random("cuda tensor cores");
  const Context context(WithTf32());
  Turns turns(7);  // of 65 tiles for a shape
  for (const ConvShape& shape : Shapes()) {
    for (const Math math : kMaths) {
      for (const ConvPrimitive primitive : kPrimitives) {
        const PrimitiveCall call =
            MakeCall(primitive, InChunks(shape, math), TypeOf(math), Layout::kChannelsLast, random);
        Check(call, context, math, ToleranceOf(math), turns);
      }
    }
  }
}

TEST_F(CudaConvTensorCores, IsExactOnIntegers) {
  Random random("cuda tensor cores on integers");
  const Context context(WithTf32());
  Turns turns(11);  // of 26 tiles for a shape
  for (const ConvShape& shape : Shapes()) {
    for (const ConvPrimitive primitive : kPrimitives) {
      const PrimitiveCall call =
          MakeCall(primitive, shape, DataType::kFloat, Layout::kChannelsLast, random);
      call.op.FillInputsWithIntegers(random, -3, 3);
      for (const Math math : {Math::kFloat, Math::kTf32}) {
        Check(call, context, math, 0, turns);
      }
    }
  }
}

/// Sums of integers are exact in float, whatever their order.
TEST_F(CudaConvTensorCores, AreRoundedExactSumsInHalfAndBfloat16) {
  Random random("cuda tensor cores on integers in half");
  const Context context(OnGpu());
  Turns turns(11);  // of 26 tiles for a shape
  for (const ConvShape& shape : Shapes()) {
    for (const ConvPrimitive primitive : kPrimitives) {
      for (const Math math : kNarrowMaths) {
        const PrimitiveCall call =
            MakeCall(primitive, InChunks(shape, math), TypeOf(math), Layout::kChannelsLast, random);
        SCOPED_TRACE(call.op.Describe());
        call.op.FillInputsWithIntegers(random, -3, 3);
        const std::vector<double> sums = support::RoundAll(TypeOf(math), ExpectedOf(call));
        Result<ConvAlgorithms> algorithms = call.Prepare(context);
        ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
        for (const std::string& name : NamesOf(math, primitive)) {
          if (!turns.Next()) {
            continue;
          }
          call.op.ResetOutputs();
          ASSERT_TRUE(algorithms->Run({name}).ok()) << name;
          ASSERT_TRUE(Synchronize(context).ok());
          EXPECT_EQ(call.Result()->GpuValues(), sums) << name;
          EXPECT_TRUE(call.Result()->SurroundingsIntact()) << name;
        }
      }
    }
  }
}

TEST_F(CudaConvTensorCores, AreRoundedExactSumsByLines) {
  Random random("cuda tensor cores by lines");
  const Context context(OnGpu());
  Turns turns(2);  // of two types, which share their code
  for (const ConvPrimitive primitive : kPrimitives) {
    const bool is_filter = primitive == ConvPrimitive::kBackwardFilter;
    for (const ConvShape& shape : is_filter ? FilterLineShapes() : LineShapes()) {
      if (primitive == ConvPrimitive::kBackwardData && !shape.strides.empty()) {
        continue;
      }
      turns.Next();  // each shape begins with the other type
      for (const Math math : kNarrowMaths) {
        if (!turns.Next()) {
          continue;
        }
        const PrimitiveCall call =
            MakeCall(primitive, shape, TypeOf(math), Layout::kChannelsLast, random);
        SCOPED_TRACE(call.op.Describe());
        call.op.FillInputsWithIntegers(random, -3, 3);
        const std::vector<double> sums = support::RoundAll(TypeOf(math), ExpectedOf(call));
        Result<ConvAlgorithms> algorithms = call.Prepare(context);
        ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
        for (const std::string& name : LineNamesOf(math, primitive)) {
          call.op.ResetOutputs();
          ASSERT_TRUE(algorithms->Run({name}).ok()) << name;
          ASSERT_TRUE(Synchronize(context).ok());
          EXPECT_EQ(call.Result()->GpuValues(), sums) << name;
          EXPECT_TRUE(call.Result()->SurroundingsIntact()) << name;
        }
      }
    }
  }
}

TEST_F(CudaConvTensorCores, AddByLinesToWhatIsThere) {
  Random random("cuda tensor cores accumulate by lines");
  const Context context(OnGpu());
  const ConvShape shape = {
      .name = "accumulated", .x = {2, 40, 5, 46}, .w = {72, 40, 3, 3}, .pads = {1, 1, 1, 1}};
  for (const ConvPrimitive primitive : kPrimitives) {
    for (const Math math : kNarrowMaths) {
      const PrimitiveCall call =
          MakeCall(primitive, shape, TypeOf(math), Layout::kChannelsLast, random);
      SCOPED_TRACE(call.op.Describe());
      call.op.FillInputsWithIntegers(random, -1, 1);
      const std::vector<double> sums = ExpectedOf(call);
      Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      for (const std::string& name : LineNamesOf(math, primitive)) {
        ASSERT_NO_FATAL_FAILURE(
            RunAndCompareAdding(*algorithms, call, context, name, sums, random));
      }
    }
  }
}

TEST_F(CudaConvTensorCores, GoByLinesWhereTapsShareThem) {
  Random random("cuda tensor cores without lines");
  const Context context(OnGpu());
  const auto is_offered = [&](ConvPrimitive primitive, const ConvShape& shape) {
    const PrimitiveCall call =
        MakeCall(primitive, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    EXPECT_TRUE(algorithms.ok());
    const std::vector<std::string> listed = OwnOf(*algorithms, /*in_tf32=*/false);
    EXPECT_EQ(listed.size(), kBestTiles);
    const auto lines = std::count_if(listed.begin(), listed.end(), [](const std::string& name) {
      return name.find("/lines/") != std::string::npos;
    });
    for (const std::string& name : LineNamesOf(Math::kHalf, primitive)) {
      EXPECT_EQ(algorithms->Run({name}).ok(), lines == 1) << name;
    }
    EXPECT_TRUE(Synchronize(context).ok());
    return lines == 1;
  };
  const ConvShape lines = {
      .name = "lines", .x = {2, 64, 5, 40}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}};
  ConvShape short_lines = lines;
  short_lines.x = {2, 64, 20, 14};
  ConvShape one_tap = lines;
  one_tap.w = {64, 64, 3, 1};
  ConvShape by_steps = lines;
  by_steps.strides = {1, 2};
  ConvShape by_other_steps = lines;
  by_other_steps.strides = {2, 1};
  for (const ConvPrimitive primitive : kPrimitives) {
    EXPECT_TRUE(is_offered(primitive, lines));
    for (const ConvShape& shape : {short_lines, one_tap, by_steps}) {
      EXPECT_FALSE(is_offered(primitive, shape)) << shape.name;
    }
    EXPECT_EQ(is_offered(primitive, by_other_steps), primitive != ConvPrimitive::kBackwardData);
  }
}

/// What is infinite comes out as not finite, at its own place alone.
TEST_F(CudaConvTensorCores, InfinityStaysWhereItIs) {
  const Context context(WithTf32());
  Random random("cuda tensor cores infinity");
  const ConvShape shape = {.name = "1x1", .x = {1, 16, 4, 4}, .w = {16, 16, 1, 1}};
  for (const Math math : kMaths) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kBackwardData, shape, TypeOf(math), Layout::kChannelsLast, random);
    bool is_first = true;
    call.y->Fill([&] { return std::exchange(is_first, false) ? INFINITY : 1.0; });
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok());
    for (const std::string& name : NamesOf(math, call.primitive)) {
      call.op.ResetOutputs();
      ASSERT_TRUE(algorithms->Run({name}).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      const std::vector<double> values = call.Result()->GpuValues();
      std::size_t finite = 0;
      for (const double value : values) {
        finite += std::isfinite(value) ? 1 : 0;
      }
      EXPECT_EQ(finite, values.size() - 16) << name;
    }
  }
}

TEST_F(CudaConvTensorCores, AreOfferedWhereTheyArePromising) {
  Random random("cuda tensor cores offered");
  const Context strict(OnGpu());
  const Context with_tf32(WithTf32());
  const auto offered = [&](const Context& context, const PrimitiveCall& call) {
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    EXPECT_TRUE(algorithms.ok());
    const bool is_float = call.op.types[0] == DataType::kFloat;
    return OwnOf(*algorithms, is_float && context.options().allow_tf32);
  };
  const ConvShape few = {.name = "few channels", .x = {2, 4, 9, 9}, .w = {4, 4, 3, 3}};
  const ConvShape two = {.name = "two channels", .x = {2, 2, 9, 9}, .w = {2, 2, 3, 3}};
  const ConvShape some = {.name = "some channels", .x = {2, 16, 9, 9}, .w = {16, 16, 3, 3}};
  const ConvShape many = {.name = "many channels", .x = {2, 64, 9, 9}, .w = {64, 64, 3, 3}};
  for (const ConvPrimitive primitive : kPrimitives) {
    const auto call = [&](const ConvShape& shape, DataType type, Layout layout) {
      return MakeCall(primitive, shape, type, layout, random);
    };
    EXPECT_EQ(offered(strict, call(many, DataType::kFloat, Layout::kChannelsLast)).size(), kTiles);
    EXPECT_EQ(offered(strict, call(many, DataType::kDouble, Layout::kChannelsLast)).size(), kTiles);
    EXPECT_EQ(
        offered(with_tf32, call(many, DataType::kFloat, Layout::kChannelsLast)).size(), kTiles);
    EXPECT_EQ(
        offered(with_tf32, call(many, DataType::kDouble, Layout::kChannelsLast)).size(), kTiles);
    for (const Context* const context : {&strict, &with_tf32}) {
      const std::vector<std::string> copied =
          offered(*context, call(many, DataType::kFloat, Layout::kContiguous));
      EXPECT_EQ(copied.size(), kTiles);
      for (const std::string& name : copied) {
        EXPECT_TRUE(name.starts_with("nhwc ")) << name;
      }
    }
    EXPECT_TRUE(offered(strict, call(few, DataType::kFloat, Layout::kChannelsLast)).empty());
    EXPECT_TRUE(offered(with_tf32, call(few, DataType::kFloat, Layout::kChannelsLast)).empty());
    // Of double, cuDNN's do without tensor cores: tiles that are an eighth full are quicker.
    EXPECT_EQ(offered(strict, call(some, DataType::kDouble, Layout::kChannelsLast)).size(), kTiles);
    EXPECT_TRUE(offered(strict, call(two, DataType::kDouble, Layout::kChannelsLast)).empty());
  }
}

/// Down to one slice of the filter's gradient, which takes none, also where other engines are
/// quicker as a rule.
TEST_F(CudaConvTensorCores, MakeDoWithTheWorkspaceThereIs) {
  Random random("cuda tensor cores without workspace");
  const ConvShape shape = {.name = "slices", .x = {6, 128, 37, 41}, .w = {128, 128, 3, 3}};
  for (const Math math : {Math::kFloat, Math::kDouble, Math::kHalf, Math::kBfloat16}) {
    const DataType type = TypeOf(math);
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kBackwardFilter, shape, type, Layout::kChannelsLast, random);
    const std::size_t slice = std::size_t{128 * 128 * 9} * std::max(SizeOf(type), sizeof(float));
    const auto offered = [&](std::size_t limit) {
      ContextOptions options = OnGpu();
      options.workspace_limit = limit;
      Result<ConvAlgorithms> algorithms = call.Prepare(Context(options));
      EXPECT_TRUE(algorithms.ok());
      std::vector<std::string> names = OwnOf(*algorithms, false);
      for (const std::string& name : names) {
        const Result<std::size_t> workspace = algorithms->WorkspaceOf(name);
        EXPECT_TRUE(workspace.ok() && *workspace <= limit) << name;
      }
      return names;
    };
    for (const std::size_t limit : {0U, 1U << 20U, 1U << 21U}) {
      const std::vector<std::string> names = offered(limit);
      EXPECT_EQ(names.size(), SizeOf(type) == 2 ? kBestTiles : kTiles);
      const std::string slices = std::to_string(std::max<std::size_t>(1, limit / slice));
      for (const std::string& name : names) {
        EXPECT_TRUE(name.ends_with("/slices" + slices)) << name << " in " << limit;
      }
    }
    for (const std::string& name : offered(std::numeric_limits<std::size_t>::max())) {
      EXPECT_EQ(name.find("slices"), std::string::npos) << name;
    }
  }
}

/// A few of them, and where cuDNN's tiles are not full.
TEST_F(CudaConvTensorCores, AreOfferedInHalfAndBfloat16WhereChannelsAreFew) {
  Random random("cuda tensor cores offered in half");
  const Context context(OnGpu());
  const ConvShape image = {.name = "image", .x = {2, 3, 9, 9}, .w = {16, 3, 3, 3}};
  const ConvShape odd = {.name = "odd", .x = {2, 33, 9, 9}, .w = {65, 33, 3, 3}};
  const ConvShape narrow = {.name = "narrow", .x = {2, 128, 9, 9}, .w = {64, 128, 3, 3}};
  const ConvShape grouped = {
      .name = "grouped", .x = {2, 128, 9, 9}, .w = {128, 64, 3, 3}, .group = 2};
  const ConvShape wide = {.name = "wide", .x = {2, 128, 9, 9}, .w = {72, 128, 3, 3}};
  for (const Math math : kNarrowMaths) {
    for (const ConvPrimitive primitive : kPrimitives) {
      const auto offered = [&](const ConvShape& shape, Layout layout = Layout::kChannelsLast) {
        Result<ConvAlgorithms> algorithms =
            MakeCall(primitive, shape, TypeOf(math), layout, random).Prepare(context);
        EXPECT_TRUE(algorithms.ok());
        return OwnOf(*algorithms, /*in_tf32=*/false);
      };
      EXPECT_TRUE(offered(image).empty());
      EXPECT_TRUE(offered(wide).empty());
      EXPECT_EQ(offered(narrow).size(), kBestTiles);
      EXPECT_EQ(offered(grouped).size(), kBestTiles);
      for (const std::string& name : offered(narrow, Layout::kContiguous)) {
        EXPECT_TRUE(name.starts_with("nhwc ")) << name;
      }
      const std::vector<std::string> padded = offered(odd);
      EXPECT_EQ(padded.size(), kBestTiles);
      for (const std::string& name : padded) {
        EXPECT_TRUE(name.starts_with("padded8 " + NameOf(math, ""))) << name;
      }
    }
  }
}

TEST_F(CudaConvTensorCores, RefuseWhatTheyDoNotTake) {
  Random random("cuda tensor cores others");
  const Context context(OnGpu());
  const ConvShape odd = {.name = "odd channels", .x = {2, 6, 9, 9}, .w = {9, 6, 3, 3}};
  const ConvShape in_fours = {.name = "channels in fours", .x = {2, 20, 9, 9}, .w = {16, 20, 3, 3}};
  for (const ConvPrimitive primitive : kPrimitives) {
    const PrimitiveCall odd_channels =
        MakeCall(primitive, odd, DataType::kFloat, Layout::kChannelsLast, random);
    const PrimitiveCall channels_first =
        MakeCall(primitive, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
    for (const PrimitiveCall& call : {odd_channels, channels_first}) {
      Result<ConvAlgorithms> algorithms = call.Prepare(context);
      ASSERT_TRUE(algorithms.ok());
      EXPECT_FALSE(algorithms->Run({NameOf(Math::kFloat, "64x64")}).ok());
      EXPECT_FALSE(algorithms->Run({NameOf(Math::kTf32, "128x128")}).ok());
    }
    const PrimitiveCall in_half =
        MakeCall(primitive, in_fours, DataType::kMLFloat16, Layout::kChannelsLast, random);
    Result<ConvAlgorithms> of_half = in_half.Prepare(context);
    ASSERT_TRUE(of_half.ok());
    for (const std::string& name : NamesOf(Math::kHalf, primitive)) {
      EXPECT_FALSE(of_half->Run({name}).ok());
    }
    const PrimitiveCall in_double =
        MakeCall(primitive, Conv3x3(), DataType::kDouble, Layout::kChannelsLast, random);
    Result<ConvAlgorithms> algorithms = in_double.Prepare(context);
    ASSERT_TRUE(algorithms.ok());
    EXPECT_FALSE(algorithms->Run({NameOf(Math::kTf32, "128x128")}).ok());
  }
}

/// A name is no way around what the context asks for.
TEST_F(CudaConvTensorCores, AreInTf32OnlyWhereThatIsAllowed) {
  Random random("cuda tensor cores strict");
  const ConvShape shape = {.name = "3x3", .x = {1, 8, 5, 6}, .w = {12, 8, 3, 3}};
  for (const ConvPrimitive primitive : kPrimitives) {
    const PrimitiveCall call =
        MakeCall(primitive, shape, DataType::kFloat, Layout::kChannelsLast, random);
    for (const bool is_allowed : {false, true}) {
      const Context context(is_allowed ? WithTf32() : OnGpu());
      Result<ConvAlgorithms> algorithms = call.Prepare(context);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      for (const std::string& name : NamesOf(Math::kTf32, primitive)) {
        EXPECT_EQ(algorithms->Run({name}).ok(), is_allowed) << name;
      }
      for (const std::string& name : NamesOf(Math::kFloat, primitive)) {
        EXPECT_TRUE(algorithms->Run({name}).ok()) << name;
      }
      ASSERT_TRUE(Synchronize(context).ok());
    }
  }
}

/// Through the op, whose choice they are for large strict float and double.
TEST_F(CudaConvTensorCores, AreChosenAndAddToWhatIsThere) {
  Random random("cuda tensor cores accumulate");
  const Context context(OnGpu());
  const ConvShape shape = {
      .name = "large", .x = {16, 64, 28, 28}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}};
  Turns turns(3);  // of two types, each with two gradients
  for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
    for (const ConvPrimitive primitive :
         {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
      if (!turns.Next()) {
        continue;
      }
      const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
      SCOPED_TRACE(call.op.Describe());
      call.op.FillInputsWithIntegers(random, -1, 1);
      const std::size_t output = primitive == ConvPrimitive::kBackwardFilter ? 1 : 0;
      const std::vector<double> gradient = call.op.Expected()[output];
      call.Result()->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
      const std::vector<double> before = call.Result()->HostValues();
      ASSERT_TRUE(call.op.Run(context, /*accumulate=*/true).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      const std::vector<double> after = call.Result()->GpuValues();
      for (std::size_t i = 0; i < after.size(); ++i) {
        ASSERT_EQ(after[i], before[i] + gradient[i]) << "element " << i;
      }
      EXPECT_TRUE(call.Result()->SurroundingsIntact());
    }
  }
}

TEST_F(CudaConvTensorCores, AddToWhatIsThereByName) {
  Random random("cuda tensor cores accumulate by name");
  const Context context(WithTf32());
  const ConvShape shape = {
      .name = "accumulated", .x = {3, 36, 13, 14}, .w = {68, 36, 3, 3}, .pads = {1, 1, 1, 1}};
  for (const ConvPrimitive primitive : kPrimitives) {
    for (const Math math : {Math::kTf32, Math::kHalf, Math::kBfloat16}) {
      const PrimitiveCall call =
          MakeCall(primitive, InChunks(shape, math), TypeOf(math), Layout::kChannelsLast, random);
      SCOPED_TRACE(call.op.Describe());
      call.op.FillInputsWithIntegers(random, -1, 1);
      const std::vector<double> sums = ExpectedOf(call);
      Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      for (const std::string& name : NamesOf(math, primitive)) {
        ASSERT_NO_FATAL_FAILURE(
            RunAndCompareAdding(*algorithms, call, context, name, sums, random));
      }
    }
  }
}

/// A sum that lies halfway between two numbers goes to another one where it is rounded by itself.
TEST_F(CudaConvTensorCores, RoundOnceWhatTheyAddInHalfAndBfloat16) {
  Random random("cuda tensor cores round once");
  const Context context(OnGpu());
  const ConvShape shape = {.name = "a pixel", .x = {1, 8, 1, 1}, .w = {8, 8, 1, 1}};
  for (const Math math : kNarrowMaths) {
    const double large = math == Math::kHalf ? 2048 : 256;  // the next number is by 2 larger
    for (const ConvPrimitive primitive : {ConvPrimitive::kForward, ConvPrimitive::kBackwardData}) {
      const PrimitiveCall call =
          MakeCall(primitive, shape, TypeOf(math), Layout::kChannelsLast, random);
      const TensorPointer& source = primitive == ConvPrimitive::kForward ? call.x : call.y;
      double next = large;
      source->Fill([&] { return std::exchange(next, next == large ? 1 : 0); });
      call.w->Fill([] { return 1; });
      Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      for (const std::string& name : NamesOf(math, primitive)) {
        call.Result()->Fill([] { return 1; });
        ASSERT_TRUE(algorithms->Run({name}).ok()) << name;
        ASSERT_TRUE(Synchronize(context).ok());
        EXPECT_EQ(call.Result()->GpuValues(), std::vector<double>(8, large + 2)) << name;
      }
    }
  }
}

TEST_F(CudaConvTensorCores, RoundOnceWhatTheyAddToAFilter) {
  Random random("cuda tensor cores round a filter once");
  const Context context(OnGpu());
  const ConvShape shape = {.name = "two pixels", .x = {1, 8, 1, 2}, .w = {8, 8, 1, 1}};
  for (const Math math : kNarrowMaths) {
    const double large = math == Math::kHalf ? 2048 : 256;  // the next number is by 2 larger
    const PrimitiveCall call = MakeCall(
        ConvPrimitive::kBackwardFilter, shape, TypeOf(math), Layout::kChannelsLast, random);
    double next = large;
    call.x->Fill([&] { return std::exchange(next, next == large ? 1 : large); });
    call.y->Fill([] { return 1; });
    Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    for (const std::string& name : NamesOf(math, ConvPrimitive::kBackwardFilter)) {
      call.Result()->Fill([] { return 1; });
      ASSERT_TRUE(algorithms->Run({name}).ok()) << name;
      ASSERT_TRUE(Synchronize(context).ok());
      EXPECT_EQ(call.Result()->GpuValues(), std::vector<double>(64, large + 2)) << name;
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
