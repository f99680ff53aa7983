#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conv/cuda/first_layers.h"
#include "conv/cuda/form.h"
#include "conv/cuda/planes.h"
#include "conv/cuda/preference.h"
#include "conv/cuda/warpgroups.h"
#include "conv/cuda/wide_layers.h"

/// What comes first where nothing is timed, for layers of the benchmarks whose quickest candidates
/// were measured on an H200 (docs/lab/first-choices.md). Needs no GPU.
namespace gradsmith::conv {
namespace {

enum class Layout : unsigned char { kFirst, kLast };

struct Layer {
  const char* name;
  std::int64_t batch;
  std::int64_t x_channels;
  std::int64_t y_channels;
  std::int64_t group;
  std::vector<std::int64_t> x;
  std::int64_t taps;
  std::int64_t stride;
};

const Layer kStem = {"rn50_stem", 128, 3, 64, 1, {224, 224}, 7, 2};
const Layer kPlain56 = {"rn50_1x1_56", 128, 64, 256, 1, {56, 56}, 1, 1};
const Layer kPlain14 = {"rn50_1x1_14", 128, 1024, 256, 1, {14, 14}, 1, 1};
const Layer kThree56 = {"rn50_3x3_56", 128, 64, 64, 1, {56, 56}, 3, 1};
const Layer kThree14 = {"rn50_3x3_14", 128, 256, 256, 1, {14, 14}, 3, 1};
const Layer kThree7 = {"rn50_3x3_7", 128, 512, 512, 1, {7, 7}, 3, 1};
const Layer kStrided = {"rn50_1x1_56_s2", 128, 256, 512, 1, {56, 56}, 1, 2};
const Layer kGrouped = {"resnext_g32_56", 128, 128, 128, 32, {56, 56}, 3, 1};
const Layer kDepthwise = {"mbv2_dw_56", 128, 144, 144, 144, {56, 56}, 3, 1};
const Layer kSevenTaps = {"convnext_dw_56", 128, 96, 96, 96, {56, 56}, 7, 1};
const Layer kSmallSeven = {"convnext_dw_7", 2, 768, 768, 768, {7, 7}, 7, 1};
const Layer kDoubled = {"dla_up_dw", 32, 64, 64, 64, {128, 128}, 4, 2};
const Layer kVolume = {"unet3d", 2, 32, 64, 1, {32, 96, 96}, 3, 1};
const Layer kImages = {"dcgan_rgb", 128, 3, 64, 1, {64, 64}, 4, 2};

Task TaskOf(const Layer& layer, Primitive primitive, DataType type, Layout layout) {
  Task task;
  task.primitive = primitive;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = layer.batch;
  problem.x_channels = layer.x_channels;
  problem.y_channels = layer.y_channels;
  problem.group = layer.group;
  problem.spatial_rank = static_cast<int>(layer.x.size());
  const std::int64_t pad = layer.stride < layer.taps ? (layer.taps - 1) / 2 : 0;
  for (std::size_t i = 0; i < layer.x.size(); ++i) {
    Axis& axis = problem.axes.at(i);
    axis.x = layer.x[i];
    axis.w = layer.taps;
    axis.stride = layer.stride;
    axis.pad_begin = axis.pad_end = pad;
    axis.y = ((axis.x + (2 * pad) - axis.w) / axis.stride) + 1;
  }
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(problem, operand);
    StridesOf(problem, operand) =
        layout == Layout::kLast ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    task.alignment.at(operand) = 16;
  }
  return task;
}

std::string FirstForm(const Layer& layer, Primitive primitive, DataType type, Layout layout) {
  return FormsOf(TaskOf(layer, primitive, type, layout)).front().name;
}

internal::KernelName Kernel(const std::string& name) {
  return internal::KernelName::Read(name).value();
}

TEST(Preference, WhatMayTakeSecondsIsALastResort) {
  Layer large = kThree56;
  large.batch *= 1024;
  for (const Primitive primitive : {Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    const auto is_endless = [&](const Layer& layer, DataType type, const std::string& engine) {
      return IsEndless(TaskOf(layer, primitive, type, Layout::kLast), Kernel(engine));
    };
    for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
      EXPECT_TRUE(is_endless(large, type, "legacy/algorithm 0/math 0"));
      EXPECT_TRUE(is_endless(large, type, "graph/engine 0"));
      EXPECT_FALSE(is_endless(large, type, "legacy/algorithm 1/math 0"));
      EXPECT_FALSE(is_endless(large, type, "graph/engine 67"));
      EXPECT_FALSE(is_endless(kThree56, type, "legacy/algorithm 0/math 0"));
      EXPECT_FALSE(is_endless(kThree56, type, "graph/engine 0"));
    }
    EXPECT_FALSE(is_endless(large, DataType::kFloat, "legacy/algorithm 0/math 0"));
    EXPECT_TRUE(is_endless(large, DataType::kFloat, "graph/engine 0"));
    EXPECT_FALSE(is_endless(large, DataType::kDouble, "graph/engine 0"))
        << "which is the quickest there";
  }
  EXPECT_FALSE(IsEndless(
      TaskOf(large, Primitive::kForward, DataType::kMLFloat16, Layout::kLast),
      Kernel("legacy/algorithm 0/math 0")));
}

/// Patches that do not overlap: dX of 14x14 and 16x16 took 9 to 12 s on an H200.
TEST(Preference, GradientsOfPatchesThatMultiplyZerosAreEndless) {
  const Layer patches = {"siglip_patch_14", 64, 3, 1152, 1, {378, 378}, 14, 14};
  const Layer small = {"patch_4", 128, 3, 96, 1, {224, 224}, 4, 4};
  const auto is_endless = [](const Layer& layer, Primitive primitive, DataType type, Layout layout,
                             const std::string& engine) {
    return IsEndless(TaskOf(layer, primitive, type, layout), Kernel(engine));
  };
  constexpr auto kData = Primitive::kBackwardData;
  constexpr DataType kHalf = DataType::kMLFloat16;
  for (const char* engine : {"graph/engine 1", "legacy/algorithm 1/math 0"}) {
    EXPECT_TRUE(is_endless(patches, kData, kHalf, Layout::kLast, engine));
    EXPECT_TRUE(is_endless(patches, kData, DataType::kBFloat16, Layout::kFirst, engine));
    EXPECT_TRUE(is_endless(patches, kData, DataType::kFloat, Layout::kLast, engine));
    EXPECT_FALSE(is_endless(patches, kData, DataType::kFloat, Layout::kFirst, engine));
    EXPECT_FALSE(is_endless(patches, Primitive::kBackwardFilter, kHalf, Layout::kLast, engine));
    EXPECT_FALSE(is_endless(small, kData, kHalf, Layout::kLast, engine));
  }
  EXPECT_FALSE(is_endless(patches, kData, kHalf, Layout::kLast, "graph/engine 10"));
}

TEST(Preference, HalfGoesToChannelsLastWhereTheCopiesPay) {
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const Primitive primitive :
         {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
      const auto first = [&](const Layer& layer, Layout layout = Layout::kFirst) {
        return FirstForm(layer, primitive, type, layout);
      };
      EXPECT_EQ(first(kThree56), "nhwc");
      EXPECT_EQ(first(kThree14), "nhwc");
      EXPECT_EQ(first(kVolume), "nhwc");
      EXPECT_EQ(first(kThree7), "") << "small";
      EXPECT_EQ(first(kPlain56), "") << "a matrix product that waits for memory";
      EXPECT_EQ(first(kPlain14), "nhwc");
      EXPECT_EQ(first(kGrouped), "");
      EXPECT_EQ(first(kDepthwise), "");
      EXPECT_EQ(first(kStem), "padded4");
      EXPECT_EQ(first(kThree56, Layout::kLast), "");
    }
  }
  EXPECT_EQ(FirstForm(kThree56, Primitive::kForward, DataType::kFloat, Layout::kFirst), "");
}

/// Of 21 channels, which no tensor core takes as they are: from 2^19 elements of x and y on.
TEST(Preference, HalfIsPaddedSoonWhereChannelsAreMany) {
  const Layer up = {"fcn_up_s2", 8, 21, 21, 1, {70, 70}, 4, 2};
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const Primitive primitive :
         {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
      const auto first = [&](const Layer& layer, Layout layout = Layout::kLast) {
        return FirstForm(layer, primitive, type, layout);
      };
      EXPECT_EQ(first(up), "padded8");
      EXPECT_EQ(first(up, Layout::kFirst), "padded8");
      Layer other = up;
      other.batch = 4;
      EXPECT_EQ(first(other), "") << "the launches of copies weigh more";
      other = up;
      other.x_channels = 15;
      EXPECT_EQ(first(other), "") << "copies have more channels beside them";
      other.batch = 128;
      EXPECT_EQ(first(other), "padded8");
      EXPECT_EQ(first(other, Layout::kFirst), "") << "large copies to another layout";
      other = up;
      other.x_channels = other.y_channels = 24;
      EXPECT_EQ(first(other), "");
    }
  }
  EXPECT_EQ(FirstForm(up, Primitive::kForward, DataType::kFloat, Layout::kLast), "");
}

/// cuDNN's heuristic names its plain kernel first for the filter's gradient of this one.
TEST(Preference, PlainKernelsAreSlowSoonInHalf) {
  const Layer small = {"from 19 to 64", 32, 19, 64, 1, {14, 14}, 3, 2};
  const auto is_slow = [](const Layer& layer, DataType type,
                          const char* engine = "graph/engine 0") {
    return IsSlow(TaskOf(layer, Primitive::kBackwardFilter, type, Layout::kLast), Kernel(engine));
  };
  EXPECT_TRUE(is_slow(small, DataType::kMLFloat16));
  EXPECT_TRUE(is_slow(small, DataType::kBFloat16));
  EXPECT_FALSE(is_slow(small, DataType::kMLFloat16, "graph/engine 39"));
  EXPECT_FALSE(is_slow(small, DataType::kFloat));
  EXPECT_TRUE(is_slow(kThree56, DataType::kFloat));
  Layer smaller = small;
  smaller.batch = 4;
  EXPECT_FALSE(is_slow(smaller, DataType::kMLFloat16));
  for (const char* scalar : {"graph/engine 1/2=6,3=0", "legacy/algorithm 1/math 0"}) {
    EXPECT_TRUE(is_slow(kThree56, DataType::kMLFloat16, scalar)) << scalar;
    EXPECT_FALSE(is_slow(kThree56, DataType::kFloat, scalar)) << scalar;
    EXPECT_FALSE(is_slow(small, DataType::kMLFloat16, scalar)) << scalar;
    EXPECT_FALSE(is_slow(kDepthwise, DataType::kMLFloat16, scalar)) << scalar;
  }
  EXPECT_FALSE(is_slow(kThree56, DataType::kMLFloat16, "legacy/algorithm 1/math 1"));
  EXPECT_FALSE(is_slow(kThree56, DataType::kMLFloat16, "graph/engine 10"));
}

/// cuDNN's engines for double do without tensor cores, but for matrix products.
TEST(Preference, OursComeFirstInDoubleBeforeTheyTakeLong) {
  const auto first = [](const Layer& layer) {
    return OursComeFirst(
        TaskOf(layer, Primitive::kBackwardData, DataType::kDouble, Layout::kLast),
        /*in_tf32=*/false, /*has_window=*/false);
  };
  const Layer sequence = {"11 taps", 16, 160, 24, 1, {1024}, 11, 1};
  EXPECT_FALSE(
      IsLongRunning(TaskOf(sequence, Primitive::kBackwardData, DataType::kDouble, Layout::kLast)));
  EXPECT_TRUE(first(sequence));
  EXPECT_TRUE(first(kThree56));
  EXPECT_FALSE(first(kPlain56)) << "a matrix product";
  EXPECT_FALSE(first({"3x3 of little", 1, 16, 16, 1, {14, 14}, 3, 1}));
}

TEST(Preference, TheDirectKernelPaysForGradientsOfImagesInDouble) {
  const Layer stem = {"4x4 by 2", 4, 3, 16, 1, {512, 512}, 4, 2};
  const Layer head = {"to 3", 4, 64, 3, 1, {64, 64}, 3, 1};
  for (const Primitive gradient : {Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    for (const Layer& layer : {stem, head}) {
      EXPECT_TRUE(DirectPays(TaskOf(layer, gradient, DataType::kDouble, Layout::kLast)));
      EXPECT_FALSE(DirectPays(TaskOf(layer, gradient, DataType::kFloat, Layout::kLast)));
    }
    for (const Layer& layer : {kThree56, kDepthwise}) {
      EXPECT_FALSE(DirectPays(TaskOf(layer, gradient, DataType::kDouble, Layout::kLast)));
    }
  }
  EXPECT_FALSE(DirectPays(TaskOf(stem, Primitive::kForward, DataType::kDouble, Layout::kLast)));
}

/// A thread of it adds up all terms of an element, which for a filter's gradient are those of the
/// whole batch; where elements are few, a block does.
TEST(Preference, TheDirectKernelIsSlowForManyTerms) {
  Layer layer = {"1x1", 128, 512, 512, 1, {32, 32}, 1, 1};
  const auto is_slow = [](const Layer& of, Primitive primitive) {
    return IsDirectSlow(TaskOf(of, primitive, DataType::kMLFloat16, Layout::kLast));
  };
  EXPECT_TRUE(is_slow(layer, Primitive::kBackwardFilter));
  EXPECT_FALSE(is_slow(layer, Primitive::kBackwardData));
  layer.batch = 63;
  EXPECT_FALSE(is_slow(layer, Primitive::kBackwardFilter));
  const Layer few = {"1x1", 128, 80, 80, 1, {32, 32}, 1, 1};
  EXPECT_FALSE(is_slow(few, Primitive::kBackwardFilter));
}

TEST(Preference, DepthwiseOfManyTapsGoesByDenseRows) {
  constexpr auto kData = Primitive::kBackwardData;
  constexpr auto kFilter = Primitive::kBackwardFilter;
  constexpr DataType kHalf = DataType::kMLFloat16;
  const auto pays = [](const Layer& layer, Primitive primitive, DataType type) {
    EXPECT_FALSE(DenseRowsPay(TaskOf(layer, primitive, type, Layout::kFirst)));
    return DenseRowsPay(TaskOf(layer, primitive, type, Layout::kLast));
  };
  for (const Primitive primitive : {Primitive::kForward, kData, kFilter}) {
    for (const DataType type : {kHalf, DataType::kFloat, DataType::kDouble}) {
      EXPECT_TRUE(pays(kSevenTaps, primitive, type));
      EXPECT_FALSE(pays(kDepthwise, primitive, type)) << "3x3";
    }
  }
  EXPECT_TRUE(pays(kDoubled, kData, kHalf));
  EXPECT_TRUE(pays(kDoubled, kFilter, DataType::kFloat));
  EXPECT_TRUE(pays(kDoubled, kData, DataType::kFloat));
  EXPECT_FALSE(pays(kDoubled, Primitive::kForward, DataType::kFloat))
      << "copies cost more than they gain";
  EXPECT_FALSE(pays(kSmallSeven, kFilter, kHalf)) << "launches cost more than they gain";
}

TEST(Preference, BandsPayAlongALineAndOfManyTaps) {
  constexpr DataType kHalf = DataType::kMLFloat16;
  const auto pay = [](const Layer& layer, DataType type, Layout layout = Layout::kFirst) {
    return BandsPay(TaskOf(layer, Primitive::kBackwardData, type, layout));
  };
  Layer line = {"line", 16, 512, 512, 512, {1500}, 3, 1};
  EXPECT_TRUE(pay(line, kHalf));
  EXPECT_TRUE(pay(line, DataType::kFloat));
  EXPECT_FALSE(pay(line, kHalf, Layout::kLast)) << "copies cost more than they gain";
  line.taps = 63;
  EXPECT_TRUE(pay(line, kHalf, Layout::kLast));
  line.stride = 2;
  EXPECT_FALSE(pay(line, kHalf));
  EXPECT_FALSE(pay(kDepthwise, kHalf)) << "3x3";
  EXPECT_TRUE(pay(kSevenTaps, kHalf));
  EXPECT_TRUE(pay(kSevenTaps, DataType::kFloat));
  EXPECT_FALSE(pay(kSevenTaps, kHalf, Layout::kLast)) << "there are tiles";
  Layer five = kSevenTaps;
  five.taps = 5;
  EXPECT_TRUE(pay(five, kHalf));
  EXPECT_FALSE(pay(five, DataType::kFloat));
}

TEST(Preference, WindowsComeBeforeDepthwiseOfHalfInChannelsLast) {
  constexpr auto kFilter = Primitive::kBackwardFilter;
  const auto pay = [](const Layer& layer, DataType type, Layout layout) {
    return WindowsPayForDepthwise(TaskOf(layer, kFilter, type, layout));
  };
  EXPECT_TRUE(pay(kDoubled, DataType::kMLFloat16, Layout::kLast));
  EXPECT_TRUE(pay(kDepthwise, DataType::kBFloat16, Layout::kLast));
  EXPECT_FALSE(pay(kDoubled, DataType::kMLFloat16, Layout::kFirst)) << "dense rows";
  EXPECT_FALSE(pay(kDoubled, DataType::kFloat, Layout::kLast));
  EXPECT_FALSE(pay(kSmallSeven, DataType::kMLFloat16, Layout::kLast));
  // Ours come after cuDNN's own depthwise engines, though.
  EXPECT_FALSE(OursComeFirst(
      TaskOf(kDepthwise, kFilter, DataType::kMLFloat16, Layout::kLast), /*in_tf32=*/false,
      /*has_window=*/true));
  EXPECT_FALSE(OursComeFirst(
      TaskOf(kDepthwise, kFilter, DataType::kFloat, Layout::kLast), /*in_tf32=*/true,
      /*has_window=*/true));
}

TEST(Preference, OneTapByStepsIsSubsampledInChannelsFirst) {
  for (const DataType type : {DataType::kMLFloat16, DataType::kFloat, DataType::kDouble}) {
    for (const Primitive primitive : {Primitive::kBackwardData, Primitive::kBackwardFilter}) {
      EXPECT_EQ(FirstForm(kStrided, primitive, type, Layout::kFirst), "subsampled");
      EXPECT_EQ(FirstForm(kStrided, primitive, type, Layout::kLast), "");
    }
  }
}

TEST(Preference, PatchesOfManyTapsOrFewChannelsBecomeAMatrix) {
  const Layer images = {"vit_patch_16", 128, 3, 768, 1, {224, 224}, 16, 16};
  const Layer few_taps = {"sd3_patch_2", 16, 16, 1536, 1, {128, 128}, 2, 2};
  const Layer many_channels = {"convnext_down_56", 128, 96, 192, 1, {56, 56}, 2, 2};
  const Layer small = {"small", 1, 3, 64, 1, {64, 64}, 16, 16};
  for (const Primitive primitive :
       {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    for (const Layout layout : {Layout::kFirst, Layout::kLast}) {
      for (const DataType type : {DataType::kMLFloat16, DataType::kFloat, DataType::kDouble}) {
        EXPECT_EQ(FirstForm(images, primitive, type, layout), "patches");
        EXPECT_EQ(FirstForm(few_taps, primitive, type, layout), "patches");
        EXPECT_NE(FirstForm(many_channels, primitive, type, layout), "patches");
        EXPECT_NE(FirstForm(small, primitive, type, layout), "patches");
      }
    }
  }
}

/// How a layer's type is multiplied.
enum class Math : unsigned char { kHalf, kTf32, kFloat, kDouble };

struct Choice {
  const Layer& layer;
  Primitive primitive;
  Math math;
  bool has_window;
  bool ours;
};

TEST(Preference, OursComeFirstWhereTheyWereQuicker) {
  constexpr auto kData = Primitive::kBackwardData;
  constexpr auto kFilter = Primitive::kBackwardFilter;
  const std::vector<Choice> choices = {
      {kGrouped, kData, Math::kHalf, true, true},
      {kThree56, kFilter, Math::kHalf, false, false},
      {kStem, kData, Math::kTf32, true, true},
      {kStem, kFilter, Math::kTf32, false, true},
      {kImages, kFilter, Math::kTf32, false, true},
      {kGrouped, kFilter, Math::kTf32, true, true},
      {kGrouped, Primitive::kForward, Math::kTf32, true, false},
      {kVolume, kFilter, Math::kTf32, false, true},
      {kThree56, kFilter, Math::kTf32, false, true},
      {kThree56, kData, Math::kTf32, false, false},
      {kThree14, kFilter, Math::kTf32, false, false},
      {kPlain56, kFilter, Math::kTf32, false, false},
      {kThree14, kData, Math::kFloat, false, true},
      {kPlain56, kData, Math::kFloat, false, true},
      {kImages, kFilter, Math::kFloat, false, true},
      {kImages, kFilter, Math::kDouble, false, true},
      {kThree14, kFilter, Math::kDouble, false, true},
      {kPlain56, kData, Math::kDouble, false, false},
      {kPlain56, kFilter, Math::kDouble, false, false},
      {kStrided, kData, Math::kDouble, false, true},
  };
  for (const Choice& choice : choices) {
    const DataType type = choice.math == Math::kHalf     ? DataType::kMLFloat16
                          : choice.math == Math::kDouble ? DataType::kDouble
                                                         : DataType::kFloat;
    const Task task = TaskOf(choice.layer, choice.primitive, type, Layout::kLast);
    EXPECT_EQ(OursComeFirst(task, choice.math == Math::kTf32, choice.has_window), choice.ours)
        << choice.layer.name << ": " << Describe(task);
  }
}

/// The first layer's filter takes cuDNN 0.53 ms in bf16 and by its first choice 0.85 in half, ours
/// 0.42; the volume's 0.35 and 0.26.
TEST(Preference, OursComeFirstForFiltersOfFewChannelsInHalf) {
  const auto ours_come_first = [](const Layer& layer, Primitive primitive, DataType type) {
    return OursComeFirst(
        TaskOf(layer, primitive, type, Layout::kLast), /*in_tf32=*/false, /*has_window=*/false);
  };
  constexpr auto kFilter = Primitive::kBackwardFilter;
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    EXPECT_TRUE(ours_come_first(kStem, kFilter, type));
    EXPECT_TRUE(ours_come_first(kVolume, kFilter, type));
    EXPECT_FALSE(ours_come_first(kStem, Primitive::kBackwardData, type));
    EXPECT_FALSE(ours_come_first(kVolume, Primitive::kBackwardData, type));
    EXPECT_FALSE(ours_come_first(kImages, kFilter, type)) << "few taps";
    EXPECT_FALSE(ours_come_first(kThree56, kFilter, type)) << "64 channels";
    EXPECT_FALSE(ours_come_first(kStrided, kFilter, type)) << "one tap";
    EXPECT_FALSE(ours_come_first(kGrouped, kFilter, type));
    Layer small = kVolume;
    small.batch = 1;
    small.x = {4, 12, 12};
    EXPECT_FALSE(ours_come_first(small, kFilter, type)) << "small";
  }
}

/// dX of 65 channels from 33 takes ours 0.06 ms and cuDNN's engines with more channels 0.11; of 64
/// from 32 0.038 and 0.045 by the best of cuDNN's; of 32 from 64 0.051 and 0.034. dW of 19 from 64
/// takes ours 0.094 and cuDNN's with more channels 0.070; of 64 from 3 0.444, and 0.152 others.
TEST(Preference, FewChannelsPayWhereTheyFillTheirRoom) {
  const auto pay = [](Primitive primitive, std::int64_t x_channels, std::int64_t y_channels) {
    Layer layer = kThree56;
    layer.x_channels = x_channels;
    layer.y_channels = y_channels;
    const Task task = TaskOf(layer, primitive, DataType::kMLFloat16, Layout::kLast);
    const std::optional<FewChannels> few = PlanFewChannels(90, task);
    EXPECT_TRUE(few);
    return FewChannelsPay(task, *few);
  };
  constexpr auto kFilter = Primitive::kBackwardFilter;
  constexpr auto kData = Primitive::kBackwardData;
  EXPECT_TRUE(pay(kFilter, 32, 64));
  EXPECT_TRUE(pay(kFilter, 64, 32));
  EXPECT_TRUE(pay(kFilter, 20, 20));
  EXPECT_FALSE(pay(kFilter, 64, 19));
  EXPECT_FALSE(pay(kFilter, 3, 64));
  EXPECT_TRUE(pay(kData, 33, 65));
  EXPECT_TRUE(pay(kData, 20, 20));
  EXPECT_TRUE(pay(kData, 16, 16));
  EXPECT_FALSE(pay(kData, 32, 64));
  EXPECT_FALSE(pay(kData, 63, 31));
  EXPECT_FALSE(pay(kData, 3, 64));
}

/// From 2^20 elements of dY on; not where its rows are 8 or 12 wide, half or three quarters of a
/// tile.
TEST(Preference, FirstLayersPayWhereDyIsLargeAndFillsTiles) {
  const auto pay = [](std::int64_t batch, std::int64_t y_channels, std::int64_t width = 224) {
    Layer layer = kStem;
    layer.batch = batch;
    layer.y_channels = y_channels;
    layer.x[1] = width;
    const Task task =
        TaskOf(layer, Primitive::kBackwardFilter, DataType::kMLFloat16, Layout::kLast);
    EXPECT_TRUE(PlanFirstLayersFilter(90, task));
    return FirstLayersPay(task);
  };
  EXPECT_TRUE(pay(2, 64));
  EXPECT_FALSE(pay(1, 64));
  EXPECT_TRUE(pay(3, 32));
  EXPECT_TRUE(pay(1, 128));
  EXPECT_TRUE(pay(128, 64, 28));
  EXPECT_FALSE(pay(128, 64, 24));
  EXPECT_FALSE(pay(128, 64, 16));
  EXPECT_FALSE(pay(128, 64, 40)) << "two tiles, of which the second has four columns";
  EXPECT_TRUE(pay(128, 64, 52));
}

/// Where its tiles are full, and seven eighths of their rows; not of few channels, by which they
/// are empty, nor of small layers.
TEST(Preference, WideLayersPayWhereTheyFillTheirRoom) {
  const auto pay = [](const Layer& layer) {
    const Task task = TaskOf(layer, Primitive::kBackwardFilter, DataType::kFloat, Layout::kLast);
    const std::optional<WideLayers> plan = PlanWideLayers(90, task);
    EXPECT_TRUE(plan) << layer.name;
    return WideLayersPay(task, *plan);
  };
  EXPECT_TRUE(pay(kThree14));
  EXPECT_TRUE(pay(kThree7));
  EXPECT_FALSE(pay(kThree56));
  const auto may_pay = [](const Layer& layer) {
    const Task task = TaskOf(layer, Primitive::kBackwardFilter, DataType::kFloat, Layout::kLast);
    return WideLayersMayPay(*PlanWideLayers(90, task));
  };
  EXPECT_TRUE(may_pay(kThree56));
  Layer few = kThree56;
  few.y_channels = 16;
  EXPECT_FALSE(may_pay(few));
  Layer one_tap = kThree14;
  one_tap.taps = 1;
  EXPECT_FALSE(pay(one_tap));
  Layer small = kThree14;
  small.batch = 1;
  EXPECT_FALSE(pay(small));
}

/// Of 0.77 and 0.84 of its places where it is quicker; of 0.51 and 0.43 it is not.
TEST(Preference, WarpgroupsPayWhereTheyFillTheirRoom) {
  const auto pay = [](const Layer& layer) {
    const Task task = TaskOf(layer, Primitive::kBackwardFilter, DataType::kFloat, Layout::kLast);
    const std::optional<Warpgroups> plan = PlanWarpgroups(90, task);
    EXPECT_TRUE(plan) << layer.name;
    return WarpgroupsPay(task, *plan);
  };
  EXPECT_TRUE(pay(kThree56));
  EXPECT_TRUE(pay(kThree14));
  EXPECT_FALSE(pay(kThree7));
  Layer by_two = kThree14;
  by_two.x = {28, 28};
  by_two.stride = 2;
  EXPECT_FALSE(pay(by_two));
  Layer few = kThree56;
  few.x_channels = 24;
  EXPECT_FALSE(pay(few));
  const auto beat = [](const Layer& layer) {
    const Task task = TaskOf(layer, Primitive::kBackwardFilter, DataType::kFloat, Layout::kLast);
    return WarpgroupsBeatTensorCores(*PlanWarpgroups(90, task));
  };
  EXPECT_TRUE(beat(few));
  Layer image = kStem;
  image.x_channels = 4;
  EXPECT_FALSE(beat(image));
  Layer small = kThree56;
  small.batch = 1;
  EXPECT_FALSE(pay(small));
}

/// Rows of lengths that are no multiples of four are copied an element at a time: 3x3 by two of
/// 299x299 in TF32 took forward 0.287 ms (cuDNN 0.210) and dW 0.230 (0.287), in half 0.528 and
/// 0.466 (0.209, 0.348).
TEST(Preference, PlanesPayForImages) {
  const auto pay = [](const Layer& layer, Primitive primitive, DataType type) {
    const Task task = TaskOf(layer, primitive, type, Layout::kFirst);
    const std::optional<Planes> planes = PlanPlanes(90, task);
    EXPECT_TRUE(planes);
    return PlanesPay(task, *planes);
  };
  Layer narrow = kStem;
  narrow.y_channels = 16;
  Layer more = kStem;
  more.x_channels = 8;
  more.taps = 3;
  Layer even = kStem;
  even.x = {56, 60};  // y is 30 wide
  Layer odd = kStem;
  odd.x = {56, 58};
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    for (const Primitive primitive : {Primitive::kForward, Primitive::kBackwardFilter}) {
      EXPECT_TRUE(pay(kStem, primitive, type));
      EXPECT_FALSE(pay(narrow, primitive, type));
      EXPECT_FALSE(pay(more, primitive, type));
      const bool in_any_rows = type == DataType::kFloat && primitive == Primitive::kBackwardFilter;
      EXPECT_EQ(pay(even, primitive, type), in_any_rows);
      EXPECT_EQ(pay(odd, primitive, type), in_any_rows);
    }
  }
}

/// dX of 32 channels from 64 takes cuDNN 0.237 ms, ours 0.178; of 16 from 32 twice as large 0.284,
/// ours, by prediction, no longer than that.
TEST(Preference, FewChannelsPayForLargeVolumesWhereTheyFillHalfTheirRoom) {
  const auto pay = [](Layer layer, std::int64_t x_channels, std::int64_t y_channels) {
    layer.x_channels = x_channels;
    layer.y_channels = y_channels;
    const Task task = TaskOf(layer, Primitive::kBackwardData, DataType::kMLFloat16, Layout::kLast);
    const std::optional<FewChannels> few = PlanFewChannels(90, task);
    EXPECT_TRUE(few);
    return FewChannelsPay(task, *few);
  };
  EXPECT_TRUE(pay(kVolume, 32, 64));
  EXPECT_TRUE(pay(kVolume, 16, 32));
  EXPECT_FALSE(pay(kVolume, 8, 32));
  EXPECT_FALSE(pay(kVolume, 64, 32));
  EXPECT_FALSE(pay(kVolume, 31, 64));
  Layer small = kVolume;
  small.batch = 1;
  small.x = {4, 12, 12};
  EXPECT_FALSE(pay(small, 32, 64));
}

TEST(Preference, ProductsInDoubleAreCudnnsWhereStepsAreSubsampled) {
  for (const Layout layout : {Layout::kFirst, Layout::kLast}) {
    const Task task = TaskOf(kStrided, Primitive::kBackwardData, DataType::kDouble, layout);
    EXPECT_EQ(OursComeFirst(task, false, false), layout == Layout::kLast);
  }
}

TEST(Preference, SmallOnesAreCudnnsUnlessTheyAreImages) {
  Layer small = kThree56;
  small.batch = 1;
  small.x = {14, 14};
  Layer images = kImages;
  images.batch = 4;
  for (const Layer& layer : {small, images}) {
    const Task task = TaskOf(layer, Primitive::kBackwardFilter, DataType::kFloat, Layout::kFirst);
    EXPECT_FALSE(IsLongRunning(task));
    EXPECT_EQ(OursComeFirst(task, false, false), layer.x_channels == 3) << layer.name;
  }
}

}  // namespace
}  // namespace gradsmith::conv
