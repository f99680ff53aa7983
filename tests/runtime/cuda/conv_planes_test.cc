// Compiled alone: its namespaces see what each other declares.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/planes.h"
#include "conv/cuda/sharing_plan.h"
#include "runtime/cuda/conv_layer.h"
#include "runtime/cuda/primitive_call.h"
#include "support/turns.h"

/// Forward and the filter's gradient of few channels of x in planes: how they are launched, without
/// a GPU, and what they compute, run by name.
namespace gradsmith::conv {
namespace {

struct Layer {
  Primitive primitive = Primitive::kBackwardFilter;
  std::int64_t batch = 128;
  std::int64_t x_channels = 3;
  std::int64_t y_channels = 128;
  std::vector<std::int64_t> x = {64, 64};
  std::int64_t taps = 4;
  std::int64_t step = 2;
  std::int64_t dilation = 1;
  std::int64_t pad = 1;
  std::int64_t group = 1;
  DataType type = DataType::kFloat;
};

Task MakeTask(const Layer& layer) {
  Task task = TaskOf(layer.primitive, layer);
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ContiguousStrides(DimsOf(task.problem, operand));
  }
  return task;
}

std::optional<Planes> PlanOf(const Layer& layer, int compute_capability = 90) {
  return PlanPlanes(compute_capability, MakeTask(layer));
}

/// Of 32 by 32 pixels of y eight rows at a time: two works for each of 256 blocks of two tiles.
TEST(Planes, SharesALayer) {
  const std::optional<Planes> plan = PlanOf({});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->places, 48);
  EXPECT_EQ(plan->tiles, 2);
  EXPECT_EQ(plan->arguments.rows, 8);
  EXPECT_EQ(plan->arguments.columns, 32);
  EXPECT_EQ(plan->arguments.tile_rows, 18);
  // From -4 on: 66 that are met, and three before them.
  EXPECT_EQ(plan->arguments.tile_left, -4);
  EXPECT_EQ(plan->arguments.tile_columns, 72);
  EXPECT_EQ(plan->arguments.tile_pitch, 76);
  EXPECT_EQ(plan->arguments.works, 512);
  EXPECT_EQ(plan->blocks, 256);
  EXPECT_TRUE(plan->arguments.has_x_vectors);
  EXPECT_TRUE(plan->arguments.has_y_vectors);
  EXPECT_EQ(plan->workspace(), std::size_t{256} * 128 * 48 * sizeof(float));
  EXPECT_EQ(
      plan->shared_bytes(), std::size_t{2} * 3 * 18 * 76 * sizeof(float) + planes::kRingBytes);
}

/// As many as run at once: fewer of more terms.
TEST(Planes, CountsBlocksThatRunAtOnce) {
  const Layer stem = {.batch = 4096, .y_channels = 64, .taps = 7, .pad = 3};
  const std::optional<Planes> filter = PlanOf(stem);
  ASSERT_TRUE(filter);
  EXPECT_LE(filter->blocks, 3 * 132);
  EXPECT_GT(filter->blocks, 2 * 132);
  Layer forward = stem;
  forward.primitive = Primitive::kForward;
  EXPECT_LE(PlanOf(forward)->blocks, 2 * 132);
}

TEST(Planes, ForwardTakesNoWorkspace) {
  const std::optional<Planes> plan = PlanOf({.primitive = Primitive::kForward});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->workspace(), 0U);
}

/// Fewer rows where what they meet would not fit, and strips of long ones.
TEST(Planes, FitsSharedMemory) {
  const std::optional<Planes> stem =
      PlanOf({.y_channels = 64, .x = {224, 224}, .taps = 7, .pad = 3});
  ASSERT_TRUE(stem);
  EXPECT_EQ(stem->places, 152);
  EXPECT_EQ(stem->arguments.columns, 112);
  EXPECT_LT(stem->arguments.rows, planes::kMostRows);
  EXPECT_LE(stem->shared_bytes(), std::size_t{planes::kMostSharedBytes});
  const std::optional<Planes> wide = PlanOf({.x = {64, 1000}, .step = 1});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->arguments.columns, planes::kMostColumns);
  EXPECT_EQ(wide->arguments.strips.divisor, 8U);
}

/// As many blocks of dW as are counted on have room on a multiprocessor of Hopper, beside 1 KiB for
/// each.
TEST(Planes, FitsMultiprocessors) {
  const Layer layers[] = {
      {.y_channels = 64, .x = {224, 224}, .taps = 7, .pad = 3},
      {.y_channels = 64, .x = {299, 299}, .taps = 3, .pad = 0},
      {.y_channels = 32, .x = {256, 256}, .taps = 3},
      {.y_channels = 64, .x = {256, 256}, .taps = 4},
      {.y_channels = 64, .x = {128, 128}, .taps = 5, .step = 1, .pad = 2},
      {}};
  for (Layer layer : layers) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      for (const Primitive primitive : {Primitive::kForward, Primitive::kBackwardFilter}) {
        layer.type = type;
        layer.primitive = primitive;
        const std::optional<Planes> plan = PlanOf(layer);
        ASSERT_TRUE(plan);
        const int at_once = primitive == Primitive::kForward ? planes::BlocksOfForward(plan->places)
                                                             : planes::BlocksOfFilter(plan->places);
        EXPECT_LE(at_once * (plan->shared_bytes() + 1024), std::size_t{228} * 1024) << layer.taps;
        EXPECT_LE(plan->shared_bytes(), std::size_t{planes::kMostSharedBytes});
        EXPECT_LE(plan->blocks * plan->tiles, 132 * at_once);
      }
    }
  }
}

/// Rows of many channels leave room for fewer blocks.
TEST(Planes, TakesFewerBlocksForLongRows) {
  const std::optional<Planes> wide = PlanOf({.x_channels = 8, .x = {224, 224}, .taps = 3});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->places, 80);
  EXPECT_GT(4 * (wide->shared_bytes() + 1024), std::size_t{228} * 1024);
  EXPECT_LE(3 * (wide->shared_bytes() + 1024), std::size_t{228} * 1024);
  EXPECT_LE(wide->blocks * wide->tiles, 3 * 132);
}

/// How many times as long as they might the loads of a step's terms take, for lanes that meet
/// different words of a bank.
double LoadsOf(const Planes& plan, bool is_filter) {
  const planes::Arguments& p = plan.arguments;
  const int at_a_time = is_filter ? 8 : 4;
  int rounds = 0;
  for (int first = 0; first < plan.places; first += at_a_time) {
    std::map<int, std::set<int>> words;
    for (int lane = 0; lane < 32; ++lane) {
      const int group = lane / 4;
      const int quad = lane % 4;
      const int pixel = is_filter ? 4 * quad : group / 2 * 4 + group % 2;
      const int word = p.offsets[first + (is_filter ? group : quad)] / 4 + pixel * p.lines[1].step;
      words[word % 32].insert(word);
    }
    std::size_t most = 0;
    for (const auto& [bank, met] : words) {
      most = std::max(most, met.size());
    }
    rounds += static_cast<int>(most);
  }
  return static_cast<double>(rounds) * at_a_time / plan.places;
}

TEST(Planes, MeetsBanksApart) {
  const Layer rgb;
  const Layer stem = {.y_channels = 64, .x = {224, 224}, .taps = 7, .pad = 3};
  const Layer plain = {.x = {32, 32}, .taps = 3, .step = 1};
  const struct {
    Layer layer;
    double filter;
    double forward;
  } cases[] = {{rgb, 1.0, 1.0}, {stem, 1.45, 1.25}, {plain, 2.0, 1.75}};
  for (const auto& [layer, filter, forward] : cases) {
    EXPECT_LE(LoadsOf(*PlanOf(layer), true), filter) << layer.taps;
    Layer other = layer;
    other.primitive = Primitive::kForward;
    EXPECT_LE(LoadsOf(*PlanOf(other), false), forward) << layer.taps;
  }
}

/// Each once, where its tap is.
TEST(Planes, PlacesEveryTerm) {
  for (const Primitive primitive : {Primitive::kForward, Primitive::kBackwardFilter}) {
    const std::optional<Planes> plan =
        PlanOf({.primitive = primitive, .x = {30, 31}, .taps = 3, .dilation = 2, .pad = 1});
    ASSERT_TRUE(plan);
    const planes::Arguments& p = plan->arguments;
    EXPECT_FALSE(p.has_x_vectors);
    std::map<int, int> places;
    for (int place = 0; place < plan->places; ++place) {
      if (p.terms[place] >= 0) {
        EXPECT_TRUE(places.emplace(p.terms[place], p.offsets[place]).second);
      }
    }
    ASSERT_EQ(places.size(), 27U);
    for (const auto& [term, offset] : places) {
      const int row = term / 9 * p.tile_rows + term / 3 % 3 * 2;
      EXPECT_EQ(offset, 4 * (row * p.tile_pitch + term % 3 * 2)) << term;
    }
  }
}

/// Of half, forward has two taps next to each other in a place: 84 of them for 7x7 of three
/// channels. Elements of half take half the room as they were copied.
TEST(Planes, PairsTapsOfHalf) {
  const Layer stem = {
      .primitive = Primitive::kForward,
      .y_channels = 64,
      .x = {224, 224},
      .taps = 7,
      .pad = 3,
      .type = DataType::kMLFloat16};
  const std::optional<Planes> plan = PlanOf(stem);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->places, 88);
  const planes::Arguments& p = plan->arguments;
  EXPECT_EQ(p.to_pair, 1);
  EXPECT_EQ(
      plan->shared_bytes(), static_cast<std::size_t>(3 * p.tile_rows * p.tile_pitch) * (4 + 2));
  std::set<int> terms;
  for (int place = 0; place < plan->places; ++place) {
    if (p.terms[place] >= 0) {
      EXPECT_EQ(p.terms[place] % 7 % 2, 0);
      terms.insert(p.terms[place]);
    }
  }
  EXPECT_EQ(terms.size(), 84U);
  Layer filter = stem;
  filter.primitive = Primitive::kBackwardFilter;
  EXPECT_EQ(PlanOf(filter)->places, 152);
  EXPECT_EQ(PlanOf(filter)->arguments.to_pair, 2);
  EXPECT_FALSE(PlanOf(
      {.primitive = Primitive::kForward,
       .x_channels = 90,
       .taps = 1,
       .pad = 0,
       .type = DataType::kBFloat16}));
}

/// Four pixels are read as one where each row begins at a multiple of four.
TEST(Planes, ReadsPixelsAloneWhereRowsAreOdd) {
  EXPECT_FALSE(PlanOf({.x = {64, 66}})->arguments.has_x_vectors);
  EXPECT_FALSE(PlanOf({.x = {64, 62}})->arguments.has_y_vectors);
  Task task = MakeTask({});
  task.alignment[kY] = 4;
  EXPECT_FALSE(PlanPlanes(90, task)->arguments.has_y_vectors);
  task = MakeTask({});
  task.problem.y_strides[2] += 2;
  EXPECT_FALSE(PlanPlanes(90, task)->arguments.has_y_vectors);
}

TEST(Planes, LeavesTheRestToOthers) {
  EXPECT_TRUE(PlanOf({}, 80));
  EXPECT_FALSE(PlanOf({}, 75));
  EXPECT_FALSE(PlanOf({.primitive = Primitive::kBackwardData}));
  EXPECT_FALSE(PlanOf({.type = DataType::kDouble}));
  EXPECT_TRUE(PlanOf({.type = DataType::kMLFloat16}));
  EXPECT_TRUE(PlanOf({.type = DataType::kBFloat16}));
  EXPECT_FALSE(PlanOf({.x_channels = 4, .y_channels = 4, .group = 2}));
  EXPECT_FALSE(PlanOf({.batch = 0}));
  EXPECT_FALSE(PlanOf({.x_channels = 10}));
  EXPECT_FALSE(PlanOf({.x = {8, 8, 8}}));
  // Channels last.
  EXPECT_FALSE(PlanPlanes(90, TaskOf(Primitive::kBackwardFilter, Layer{})));
  // A filter that does not lie as it is summed.
  Task turned = MakeTask({});
  turned.problem.w_strides = ChannelsLastStrides(DimsOf(turned.problem, kW));
  EXPECT_FALSE(PlanPlanes(90, turned));
  // Room for 152 terms.
  EXPECT_TRUE(PlanOf({.x_channels = 8, .x = {100}, .taps = 19}));
  EXPECT_FALSE(PlanOf({.x_channels = 9, .x = {100}, .taps = 17}));
  // Long lines, wide images, and many works.
  EXPECT_FALSE(PlanOf({.batch = 1, .x_channels = 1, .y_channels = 1, .x = {1 << 21}}));
  Task wide = MakeTask({});
  wide.problem.x_strides[2] = 1 << 30;
  EXPECT_FALSE(PlanPlanes(90, wide));
  wide.problem.x_strides[2] = std::int64_t{1} << 62;
  EXPECT_FALSE(PlanPlanes(90, wide));
  EXPECT_TRUE(PlanOf({.batch = 1 << 30, .x = {1}, .taps = 1, .pad = 0}));
  EXPECT_FALSE(PlanOf({.batch = (1 << 30) + 1, .x = {1}, .taps = 1, .pad = 0}));
  // More than shared memory holds of one row.
  EXPECT_FALSE(PlanOf({.x = {64, 4096}, .step = 32}));
}

/// What the stride of a dim of size 1 is does not count.
TEST(Planes, TakesAnyStrideOfOne) {
  Task task = MakeTask({.batch = 1, .x_channels = 1, .y_channels = 1, .x = {1, 20}, .taps = 3});
  const std::optional<Planes> plain = PlanPlanes(90, task);
  ASSERT_TRUE(plain);
  for (const Operand operand : {kX, kY}) {
    for (int i = 0; i < 3; ++i) {
      StridesOf(task.problem, operand)[i] = std::int64_t{1} << 62;
    }
  }
  const std::optional<Planes> odd = PlanPlanes(90, task);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->arguments.x.row, 0);
  EXPECT_EQ(odd->arguments.has_y_vectors, plain->arguments.has_y_vectors);
}

}  // namespace
}  // namespace gradsmith::conv

namespace gradsmith::cuda {
namespace {

/// Of a result's norm, in TF32; 0 is what goes by the type.
double ToleranceOf(DataType type) {
  return type == DataType::kFloat ? 1e-3 : 0;
}
constexpr DataType kTypes[] = {DataType::kFloat, DataType::kMLFloat16, DataType::kBFloat16};
constexpr ConvPrimitive kBoth[] = {ConvPrimitive::kForward, ConvPrimitive::kBackwardFilter};

ConvShape Image(
    std::string name,
    Sizes x,
    std::int64_t y_channels,
    std::int64_t taps,
    std::int64_t step = 1) {
  Sizes w = {y_channels, x[1], taps, taps};
  const std::int64_t pad = (taps - 1) / 2;
  return {
      .name = std::move(name),
      .x = std::move(x),
      .w = std::move(w),
      .strides = {step, step},
      .pads = {pad, pad, pad, pad}};
}

/// Each room for terms, full and not, with several works for a block too; channels of y that fill
/// warps and blocks and that do not; rows that are read four pixels at a time and one at a time;
/// several bands, strips and works of a block; taps and pixels that meet nothing.
std::vector<ConvShape> Shapes() {
  ConvShape dilated = Image("dilated", {2, 3, 12, 20}, 20, 3);
  dilated.pads = {2, 2, 2, 2};
  dilated.dilations = {2, 2};
  ConvShape uneven = Image("uneven", {2, 2, 15, 29}, 9, 3);
  uneven.strides = {3, 2};
  uneven.pads = {0, 1, 2, 0};
  ConvShape padded = Image("more pads than taps", {1, 3, 5, 6}, 8, 2);
  padded.pads = {4, 3, 5, 4};
  return {
      Image("4 by 4 by 2", {3, 3, 16, 32}, 128, 4, 2),
      Image("4 by 4 by 2, rows of 4", {2, 3, 12, 20}, 20, 4, 2),
      Image("3 by 3 by 3", {2, 3, 13, 24}, 12, 3, 3),
      Image("4 by 4 by 2, an odd row", {3, 3, 18, 30}, 70, 4, 2),
      Image("3 by 3", {2, 3, 20, 36}, 64, 3),
      Image("3 by 3 of one channel", {2, 1, 9, 9}, 1, 3),
      Image("4 by 4 of two channels", {2, 2, 10, 20}, 24, 4),
      Image("3 by 3 of five channels", {2, 5, 9, 20}, 24, 3),
      Image("4 by 4 of five channels", {2, 5, 9, 20}, 24, 4),
      Image("5 by 5", {2, 3, 19, 24}, 24, 5),
      Image("5 by 5, works for a block of two tiles", {300, 3, 7, 8}, 70, 5),
      Image("7 by 7, works for a block", {400, 3, 5, 8}, 24, 7),
      Image("7 by 7 by 2, few rows", {1, 3, 30, 224}, 8, 7, 2),
      Image("7 by 7 by 2", {2, 3, 40, 56}, 40, 7, 2),
      Image("1 by 1", {2, 3, 9, 20}, 17, 1),
      Image("strips", {1, 2, 3, 300}, 8, 3),
      Image("strips of an odd row", {1, 2, 3, 301}, 8, 3),
      Image("works for a block", {300, 1, 18, 4}, 4, 3),
      Image("works for a block of two tiles", {140, 3, 34, 34}, 72, 4, 2),
      dilated,
      uneven,
      padded,
      {.name = "2 by 5", .x = {2, 3, 9, 20}, .w = {8, 3, 2, 5}, .pads = {0, 2, 1, 2}},
      {.name = "152 terms", .x = {2, 8, 70}, .w = {20, 8, 19}, .pads = {9, 9}},
      {.name = "a line", .x = {3, 2, 150}, .w = {20, 2, 15}, .strides = {2}, .pads = {7, 7}},
  };
}

class CudaConvPlanes : public CudaTest {};

PrimitiveCall CallOf(
    ConvPrimitive primitive,
    const ConvShape& shape,
    Random& random,
    DataType type = DataType::kFloat) {
  return MakeCall(primitive, shape, type, Layout::kContiguous, random);
}

TEST_F(CudaConvPlanes, AreExactOnIntegers) {
  Random random("planes");
  const Context context(WithTf32());
  Turns narrow(3);  // of 4 cases of a shape in 16 bits, whose types share their code
  for (const ConvShape& shape : Shapes()) {
    for (const ConvPrimitive primitive : kBoth) {
      for (const DataType type : kTypes) {
        if (type != DataType::kFloat && primitive == ConvPrimitive::kForward &&
            shape.name == "152 terms") {
          continue;  // of pairs there is room for 88
        }
        if (type != DataType::kFloat && !narrow.Next()) {
          continue;
        }
        const PrimitiveCall call = CallOf(primitive, shape, random, type);
        SCOPED_TRACE(shape.name + ": " + call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kPlanes, random));
      }
    }
  }
}

/// Whatever the layout of x is, and where rows, channels and images of y lie apart: by multiples of
/// four and not.
TEST_F(CudaConvPlanes, TakeTensorsAsTheyLie) {
  Random random("planes that lie apart");
  const Context context(WithTf32());
  const ConvShape shape = Image("apart", {3, 3, 9, 20}, 40, 3);
  for (const DataType type : kTypes) {
    for (const std::int64_t row : {24, 23}) {
      for (const ConvPrimitive primitive : kBoth) {
        PrimitiveCall call = CallOf(primitive, shape, random, type);
        const bool is_forward = primitive == ConvPrimitive::kForward;
        call.x = MakeTensor(type, shape.x, Layout::kChannelsLast);
        const std::int64_t plane = 10 * row;
        call.y = std::make_shared<GpuTensor>(type, shape.YDims(), Sizes{41 * plane, plane, row, 1});
        call.op.inputs[is_forward ? 0 : 1] = call.x;
        (is_forward ? call.op.outputs : call.op.inputs)[0] = call.y;
        SCOPED_TRACE(call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunOnIntegers(call, context, conv::kPlanes, random));
      }
    }
  }
}

TEST_F(CudaConvPlanes, ComputeWithNumbers) {
  Random random("planes of numbers");
  const Context context(WithTf32());
  for (const ConvShape& shape :
       {Image("4 by 4 by 2", {4, 3, 32, 32}, 64, 4, 2), Image("7 by 7", {2, 3, 21, 21}, 32, 7)}) {
    for (const ConvPrimitive primitive : kBoth) {
      for (const DataType type : kTypes) {
        const PrimitiveCall call = CallOf(primitive, shape, random, type);
        SCOPED_TRACE(call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunAndCompare(call, context, conv::kPlanes, ToleranceOf(type)));
      }
    }
  }
}

TEST_F(CudaConvPlanes, RoundBothFactors) {
  Random random("planes round");
  const Context context(WithTf32());
  for (const ConvPrimitive primitive : kBoth) {
    const PrimitiveCall call = CallOf(primitive, Image("rounded", {2, 3, 6, 8}, 8, 3), random);
    SCOPED_TRACE(call.op.Describe());
    const TensorPointer& other = primitive == ConvPrimitive::kForward ? call.w : call.y;
    ASSERT_NO_FATAL_FAILURE(RunOnWhatIsRounded(call, call.x, other, context, conv::kPlanes));
    ASSERT_NO_FATAL_FAILURE(RunOnWhatIsRounded(call, other, call.x, context, conv::kPlanes));
  }
}

/// Four pixels at a time, and one at a time.
TEST_F(CudaConvPlanes, AddToWhatIsThere) {
  Random random("planes accumulate");
  const Context context(WithTf32());
  for (const std::int64_t width : {20, 21}) {
    for (const ConvPrimitive primitive : kBoth) {
      for (const DataType type : kTypes) {
        const PrimitiveCall call =
            CallOf(primitive, Image("accumulated", {1, 3, 9, width}, 12, 3), random, type);
        SCOPED_TRACE(call.op.Describe());
        ASSERT_NO_FATAL_FAILURE(RunAddingIntegers(call, context, conv::kPlanes, 1, random));
      }
    }
  }
}

TEST_F(CudaConvPlanes, AreInTf32OnlyWhereThatIsAllowed) {
  Random random("planes only in TF32");
  for (const ConvPrimitive primitive : kBoth) {
    for (const std::int64_t channels : {3, 8}) {
      ASSERT_NO_FATAL_FAILURE(ExpectInTf32Only(
          CallOf(primitive, Image("listed", {2, channels, 9, 12}, 64, 3), random), conv::kPlanes));
    }
  }
}

/// Where they are not the first choice they are tried right after it, before kernels that have to
/// be built.
TEST_F(CudaConvPlanes, AreTriedNextToTheFirstChoice) {
  Random random("planes in a look");
  ContextOptions options = OnGpu(SearchMode::kHeuristic);
  options.first_choice_seconds = ContextOptions().first_choice_seconds;
  std::vector<std::string> tried;
  options.on_search_progress = [&](const SearchProgress& progress) {
    if (progress.problem.starts_with("backward-filter")) {
      tried.push_back(progress.candidate);
    }
  };
  const ConvShape shape = {
      .name = "not first", .x = {2, 4, 20, 20}, .w = {16, 4, 3, 3}, .pads = {1, 1, 1, 1}};
  const OpCall call = MakeConvGrad(shape, DataType::kMLFloat16, Layout::kContiguous, random);
  ASSERT_TRUE(call.Run(Context(options)).ok());
  ASSERT_GE(tried.size(), 2U);
  EXPECT_NE(tried[0], conv::kPlanes);
  EXPECT_EQ(tried[1], conv::kPlanes);

  const std::vector<std::string> by_the_call = std::exchange(tried, {});
  const PrimitiveCall filter = MakeCall(
      ConvPrimitive::kBackwardFilter, shape, DataType::kMLFloat16, Layout::kContiguous, random);
  Result<ConvAlgorithms> algorithms = filter.Prepare(Context(options));
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  ASSERT_TRUE(algorithms->Best(SearchMode::kHeuristic, {}).ok());
  ASSERT_GE(tried.size(), 2U);
  // How many more there are is up to the clock, but not which.
  const auto [left, of_call] = std::ranges::mismatch(tried, by_the_call);
  EXPECT_TRUE(left == tried.end() || of_call == by_the_call.end()) << *left << ", " << *of_call;
}

/// A row of them from each block.
TEST_F(CudaConvPlanes, LeavePartialSumsOfDy) {
  const conv::Task task = conv::MakeTask({});
  const std::optional<conv::Planes> planes = conv::PlanPlanes(90, task);
  ASSERT_TRUE(planes);
  const Result<std::unique_ptr<internal::Plan>> plan = conv::MakePlanesPlan(0, task, *planes);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto& sharing = dynamic_cast<const conv::SharingPlan&>(**plan);
  EXPECT_EQ(sharing.PartialSumRows(conv::kY), planes->blocks);
  EXPECT_EQ(sharing.PartialSumRows(conv::kX), 0);
  EXPECT_TRUE(sharing.AddsUpSums());
}

/// With dW, in one call: what dY is read for. The default's choice goes by no clock.
TEST_F(CudaConvPlanes, SumTheChannelsOfDyToo) {
  Random random("planes and sums");
  const Context context(WithTf32(SearchMode::kDefault));
  const auto run = [&](const ConvShape& shape, DataType type) {
    OpCall call = MakeConvGrad(shape, type, Layout::kContiguous, random);
    call.outputs[0] = nullptr;
    RunByChoice(call, context, conv::kPlanes, 1, ToleranceOf(type));
  };
  for (const ConvShape& shape :
       {Image("sums", {300, 3, 16, 16}, 72, 4, 2), Image("odd channels", {2, 3, 9, 12}, 37, 3)}) {
    for (const DataType type : kTypes) {
      ASSERT_NO_FATAL_FAILURE(run(shape, type));
    }
  }
  // Which come first in TF32 alone.
  ASSERT_NO_FATAL_FAILURE(run(Image("odd rows", {2, 3, 9, 11}, 37, 3), DataType::kFloat));
}

}  // namespace
}  // namespace gradsmith::cuda
