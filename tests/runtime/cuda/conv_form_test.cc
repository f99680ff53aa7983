#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/form.h"

namespace gradsmith::conv {
namespace {

/// x [2, 8, 6, 6], w [4, 8, 3, 3], y [2, 4, 4, 4], dense.
Task Dense(Primitive primitive, bool channels_last = false) {
  Task task;
  task.primitive = primitive;
  task.problem.batch = 2;
  task.problem.x_channels = 8;
  task.problem.y_channels = 4;
  task.problem.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    task.problem.axes[i].x = 6;
    task.problem.axes[i].w = 3;
    task.problem.axes[i].y = 4;
  }
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    StridesOf(task.problem, operand) =
        channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  }
  return task;
}

using Copied = std::array<bool, kOperands>;

using Forms = std::vector<std::pair<std::string, Copied>>;

/// The names of the forms, in order, and what each copies: the detours, or all others.
Forms Summary(const Task& task, bool detours = false) {
  Forms summary;
  for (const OperandForm& form : FormsOf(task)) {
    if (form.is_detour == detours) {
      summary.emplace_back(form.name, form.copied);
    }
  }
  return summary;
}
Forms Detours(const Task& task) {
  return Summary(task, true);
}

constexpr Copied kAllCopied = {true, true, true};

TEST(FormsOf, DenseOperandsAreTakenAsTheyAre) {
  for (const bool channels_last : {false, true}) {
    const Task task = Dense(Primitive::kForward, channels_last);
    EXPECT_EQ(Summary(task), (Forms{{"", {}}}));
    EXPECT_EQ(FormsOf(task)[0].inner.problem, task.problem);
    EXPECT_EQ(CopiesBytes(FormsOf(task)[0]), 0U);
  }
}

TEST(FormsOf, StridesOfDimsOfOneDoNotCount) {
  Task task = Dense(Primitive::kForward, /*channels_last=*/true);
  task.problem.batch = 1;
  const Strides x_strides = task.problem.x_strides;
  task.problem.x_strides[0] = 12345;
  task.problem.y_strides[0] = 0;
  EXPECT_EQ(Summary(task), (Forms{{"", {}}}));
  EXPECT_EQ(FormsOf(task)[0].inner.problem.x_strides, x_strides);
}

/// A filter of 1x1 lies in both layouts: an engine that is told the other one converts all tensors.
TEST(FormsOf, AFilterOfOneTapGoesWithTheOthers) {
  for (const bool channels_last : {false, true}) {
    Task task = Dense(Primitive::kBackwardFilter, channels_last);
    for (int i = 0; i < 2; ++i) {
      task.problem.axes[i].w = 1;
      task.problem.axes[i].x = 4;
    }
    const auto strides = [&](Operand operand, bool last) {
      const Dims dims = DimsOf(task.problem, operand);
      return last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    };
    for (const bool filter_last : {false, true}) {
      for (const Operand operand : {kX, kY}) {
        StridesOf(task.problem, operand) = strides(operand, channels_last);
      }
      task.problem.w_strides = strides(kW, filter_last);
      EXPECT_EQ(Summary(task), (Forms{{"", {}}}));
      EXPECT_EQ(FormsOf(task)[0].inner.problem.w_strides, strides(kW, channels_last));
      // In either layout it is not copied.
      const OperandForm detour = FormsOf(task)[1];
      EXPECT_EQ(detour.copied, (Copied{true, false, true})) << detour.name;
      EXPECT_EQ(detour.inner.problem.w_strides, strides(kW, !channels_last));
    }
  }
}

TEST(FormsOf, ADepthwiseFilterIsChannelsFirst) {
  Task task = Dense(Primitive::kBackwardData, /*channels_last=*/true);
  task.problem.group = 8;
  task.problem.y_channels = 8;
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ChannelsLastStrides(DimsOf(task.problem, operand));
  }
  const Problem inner = FormsOf(task)[0].inner.problem;
  EXPECT_EQ(inner.w_strides, ContiguousStrides(Dims{8, 1, 3, 3}));
  EXPECT_EQ(inner.x_strides, task.problem.x_strides);
  EXPECT_EQ(inner.y_strides, task.problem.y_strides);
}

TEST(FormsOf, MisalignedOperandsMustBeCopied) {
  Task task = Dense(Primitive::kBackwardData, /*channels_last=*/true);
  task.alignment[kW] = 4;
  EXPECT_EQ(Summary(task), (Forms{{"packed", {false, true, false}}}));
  const OperandForm packed = FormsOf(task)[0];
  EXPECT_EQ(packed.inner.alignment[kW], 16);
  EXPECT_EQ(packed.inner.problem.w_strides, task.problem.w_strides);
  // 4 * 8 * 3 * 3 floats, rounded up to 256 bytes.
  EXPECT_EQ(CopiesBytes(packed), 1280U);
}

TEST(FormsOf, ZeroStridesMustBeCopied) {
  Task task = Dense(Primitive::kBackwardFilter);
  task.problem.y_strides = {0, 1, 0, 0};
  EXPECT_EQ(Summary(task), (Forms{{"packed", {false, false, true}}}));
  const Dims y = DimsOf(task.problem, kY);
  const Strides strides = FormsOf(task)[0].inner.problem.y_strides;
  EXPECT_TRUE(strides == ContiguousStrides(y) || strides == ChannelsLastStrides(y));
}

TEST(FormsOf, OddStridesMayBeCopied) {
  for (const bool channels_last : {false, true}) {
    Task task = Dense(Primitive::kForward, channels_last);
    const Strides dense = task.problem.x_strides;
    for (int i = 0; i < 4; ++i) {
      task.problem.x_strides[i] *= 2;
    }
    EXPECT_EQ(Summary(task), (Forms{{"", {}}, {"packed", {true, false, false}}}));
    EXPECT_EQ(FormsOf(task)[0].inner.problem.x_strides, task.problem.x_strides);
    // The copy has the layout that the strides are nearest to.
    EXPECT_EQ(FormsOf(task)[1].inner.problem.x_strides, dense);
  }
}

TEST(FormsOf, ACopiedResultIsAddedToInItsCopy) {
  for (const Primitive primitive :
       {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    for (const Operand odd : {kX, kW, kY}) {
      Task task = Dense(primitive);
      task.accumulate = true;
      task.alignment.at(odd) = 4;
      const std::vector<OperandForm> forms = FormsOf(task);
      ASSERT_FALSE(forms.empty());
      EXPECT_EQ(forms[0].name, "packed");
      EXPECT_TRUE(forms[0].inner.accumulate);
      EXPECT_TRUE(forms[0].copied.at(odd));
    }
  }
}

TEST(FormsOf, TheOtherLayoutIsADetour) {
  EXPECT_EQ(Detours(Dense(Primitive::kForward)), (Forms{{"nhwc", kAllCopied}}));
  EXPECT_EQ(Detours(Dense(Primitive::kForward, true)), (Forms{{"nchw", kAllCopied}}));
  Task half = Dense(Primitive::kForward);
  half.problem.type = DataType::kMLFloat16;
  half.problem.y_channels = 16;
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(half.problem, operand) = ContiguousStrides(DimsOf(half.problem, operand));
  }
  EXPECT_EQ(Detours(half), (Forms{{"nhwc", kAllCopied}}));
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(half.problem, operand) = ChannelsLastStrides(DimsOf(half.problem, operand));
  }
  EXPECT_EQ(Detours(half), Forms());
}

TEST(FormsOf, WhatIsLaidOutAlikeIsNotCopiedForADetour) {
  Task task = Dense(Primitive::kBackwardFilter);
  task.problem.y_strides = ChannelsLastStrides(DimsOf(task.problem, kY));
  EXPECT_EQ(Detours(task), (Forms{{"nhwc", {true, true, false}}, {"nchw", {false, false, true}}}));
}

TEST(FormsOf, TensorCoresWantMultiplesOfChannels) {
  Task task = Dense(Primitive::kForward, true);
  task.problem.type = DataType::kBFloat16;
  EXPECT_EQ(Detours(task), (Forms{{"padded8", {false, true, true}}}));
  task.problem.x_channels = 3;
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ChannelsLastStrides(DimsOf(task.problem, operand));
  }
  EXPECT_EQ(Detours(task), (Forms{{"padded4", {true, true, false}}, {"padded8", kAllCopied}}));
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ContiguousStrides(DimsOf(task.problem, operand));
  }
  EXPECT_EQ(Detours(task), (Forms{{"padded4", kAllCopied}, {"padded8", kAllCopied}}));
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ChannelsLastStrides(DimsOf(task.problem, operand));
  }
  const OperandForm padded = FormsOf(task)[1];
  EXPECT_EQ(padded.name, "padded4");
  EXPECT_EQ(DimsOf(padded.inner.problem, kX), (Dims{2, 4, 6, 6}));
  EXPECT_EQ(DimsOf(padded.inner.problem, kW), (Dims{4, 4, 3, 3}));
  EXPECT_EQ(padded.inner.problem.x_strides, ChannelsLastStrides(Dims{2, 4, 6, 6}));
  task.problem.type = DataType::kFloat;
  EXPECT_EQ(Detours(task), (Forms{{"padded4", {true, true, false}}, {"nchw", kAllCopied}}));
  task.problem.type = DataType::kDouble;
  EXPECT_EQ(Detours(task), (Forms{{"padded2", {true, true, false}}, {"nchw", kAllCopied}}));
  // Groups cannot be padded at their ends.
  task.problem.group = 2;
  EXPECT_EQ(Detours(task), (Forms{{"nchw", kAllCopied}}));
}

/// The backward data of a network's first layer by small steps is such a problem.
TEST(FormsOf, ChannelsThatWindowsTakeNeedNoPadding) {
  struct Case {
    Primitive primitive;
    DataType type;
    std::int64_t stride;
    bool fits;
  };
  const std::vector<Case> cases = {
      {Primitive::kBackwardData, DataType::kMLFloat16, 1, true},
      {Primitive::kBackwardData, DataType::kBFloat16, 2, true},
      {Primitive::kBackwardData, DataType::kFloat, 2, true},
      {Primitive::kBackwardData, DataType::kMLFloat16, 3, false},
      {Primitive::kBackwardData, DataType::kDouble, 1, false},
      {Primitive::kForward, DataType::kMLFloat16, 1, false},
      {Primitive::kBackwardFilter, DataType::kMLFloat16, 1, false}};
  for (const Case& each : cases) {
    Task task = Dense(each.primitive);
    task.problem.type = each.type;
    task.problem.x_channels = 3;
    task.problem.y_channels = 8;
    for (int i = 0; i < 2; ++i) {
      task.problem.axes[i].stride = each.stride;
      task.problem.axes[i].y = ((6 - 3) / each.stride) + 1;
    }
    for (const Operand operand : {kX, kW, kY}) {
      StridesOf(task.problem, operand) = ContiguousStrides(DimsOf(task.problem, operand));
    }
    SCOPED_TRACE(Describe(task));
    bool has_own = false;
    for (const OperandForm& form : FormsOf(task)) {
      EXPECT_EQ(form.is_for_own, form.name == "nhwc") << form.name;
      has_own = has_own || form.is_for_own;
    }
    EXPECT_EQ(has_own, each.fits);
  }
}

TEST(FormsOf, LargeTensorsArePaddedFirst) {
  Task task = Dense(Primitive::kForward, true);
  task.problem.type = DataType::kMLFloat16;
  task.problem.x_channels = 3;
  for (const std::int64_t batch : {2, 200'000}) {
    task.problem.batch = batch;
    for (const Operand operand : {kX, kW, kY}) {
      StridesOf(task.problem, operand) = ChannelsLastStrides(DimsOf(task.problem, operand));
    }
    const std::vector<OperandForm> forms = FormsOf(task);
    ASSERT_EQ(forms.size(), 3U);
    EXPECT_EQ(forms[0].name, batch == 2 ? "" : "padded4");
    EXPECT_EQ(forms[1].name, batch == 2 ? "padded4" : "");
    EXPECT_EQ(forms[2].name, "padded8");
  }
}

TEST(FormsOf, SingleTapsBySteps) {
  Task task = Dense(Primitive::kBackwardData);
  for (int i = 0; i < 2; ++i) {
    Axis& axis = task.problem.axes[i];
    axis.w = 1;
    axis.stride = 2;
    axis.y = 3;
  }
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ContiguousStrides(DimsOf(task.problem, operand));
  }
  EXPECT_EQ(
      Detours(task), (Forms{{"subsampled", {true, false, false}}, {"nhwc", {true, false, true}}}));
  const OperandForm form = FormsOf(task)[1];
  EXPECT_EQ(DimsOf(form.inner.problem, kX), (Dims{2, 8, 3, 3}));
  EXPECT_EQ(form.inner.problem.axes[0].stride, 1);
  // A pad puts taps between the positions that are copied.
  task.problem.axes[0].pad_begin = task.problem.axes[0].pad_end = 1;
  EXPECT_EQ(Detours(task), (Forms{{"nhwc", {true, false, true}}}));
}

TEST(FormsOf, UnlikeEndsAreABorderOfX) {
  Task task = Dense(Primitive::kBackwardFilter);
  Axis& height = task.problem.axes[0];
  height.pad_begin = 4;
  height.pad_end = 1;
  height.y = 9;
  Axis& width = task.problem.axes[1];
  width.pad_end = 2;
  width.y = 6;
  for (const bool channels_last : {false, true}) {
    for (const Operand operand : {kX, kW, kY}) {
      const Dims dims = DimsOf(task.problem, operand);
      StridesOf(task.problem, operand) =
          channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    }
    EXPECT_EQ(
        Detours(task),
        (Forms{{"bordered", {true, false, false}}, {channels_last ? "nchw" : "nhwc", kAllCopied}}));
    const OperandForm form = FormsOf(task)[1];
    ASSERT_EQ(form.name, "bordered");
    EXPECT_EQ(DimsOf(form.inner.problem, kX), (Dims{2, 8, 9, 8}));
    EXPECT_EQ(DimsOf(form.inner.problem, kY), DimsOf(task.problem, kY));
    for (const auto& [axis, padding] : {std::pair(0, 1), std::pair(1, 0)}) {
      EXPECT_EQ(form.inner.problem.axes.at(axis).pad_begin, padding);
      EXPECT_EQ(form.inner.problem.axes.at(axis).pad_end, padding);
    }
    const Dims wide = {2, 8, 9, 8};
    EXPECT_EQ(
        form.inner.problem.x_strides,
        channels_last ? ChannelsLastStrides(wide) : ContiguousStrides(wide));
    EXPECT_EQ(CopiesBytes(form), AlignedWorkspace(std::size_t{2} * 8 * 9 * 8 * 4));
  }
  // Tensor cores take half in channels last.
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(task.problem, operand) = ContiguousStrides(DimsOf(task.problem, operand));
  }
  task.problem.type = DataType::kMLFloat16;
  EXPECT_EQ(FormsOf(task)[1].name, "bordered");
  EXPECT_EQ(FormsOf(task)[1].copied, kAllCopied);
}

TEST(FormsOf, ABorderIsNoLargerThanATensor) {
  Task task = Dense(Primitive::kForward);
  Axis& height = task.problem.axes[0];
  height.pad_end = std::int64_t{1} << 60;
  height.stride = std::int64_t{1} << 58;
  EXPECT_EQ(Detours(task), (Forms{{"nhwc", kAllCopied}}));
}

TEST(FormsOf, PatchesThatDoNotOverlapAreColumnsOfAMatrix) {
  for (const bool channels_last : {false, true}) {
    Task task = Dense(Primitive::kBackwardFilter, channels_last);
    for (int i = 0; i < 2; ++i) {
      task.problem.axes[i].stride = 3;
      task.problem.axes[i].y = 2;
    }
    for (const Operand operand : {kX, kW, kY}) {
      const Dims dims = DimsOf(task.problem, operand);
      StridesOf(task.problem, operand) =
          channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    }
    const Forms detours = Detours(task);
    // The filter's memory is a matrix already.
    const Copied copied = {true, false, !channels_last};
    ASSERT_EQ(
        std::count(detours.begin(), detours.end(), std::pair(std::string("patches"), copied)), 1);
    for (const OperandForm& form : FormsOf(task)) {
      if (form.name == "patches") {
        EXPECT_EQ(DimsOf(form.inner.problem, kX), (Dims{2, 72, 2, 2}));
        EXPECT_EQ(DimsOf(form.inner.problem, kW), (Dims{4, 72, 1, 1}));
        EXPECT_EQ(form.inner.problem.axes[0].stride, 1);
      }
    }
  }
}

TEST(FormsOf, DepthwiseGoesAboutWhereItsRowsAreNotDenseAndTheirKernelsFit) {
  const auto depthwise = [](bool channels_last) {
    Task task = Dense(Primitive::kBackwardData, channels_last);
    task.problem.group = 8;
    task.problem.y_channels = 8;
    for (const Operand operand : {kX, kW, kY}) {
      const Dims dims = DimsOf(task.problem, operand);
      StridesOf(task.problem, operand) =
          channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    }
    return task;
  };
  EXPECT_EQ(Detours(depthwise(false)), Forms());
  Task task = depthwise(true);
  EXPECT_EQ(Detours(task), (Forms{{"nchw", {true, false, true}}}));
  EXPECT_TRUE(FormsOf(task).back().is_for_own);
  // It is computed by bands and by lines now, and by rows no more.
  task.problem.axes[1].dilation = 2;
  EXPECT_EQ(Detours(task), (Forms{{"nchw", {true, false, true}}}));
  // There are no kernels for both.
  task.problem.axes[1].stride = 2;
  EXPECT_EQ(Detours(task), Forms());
}

/// x [2, 8, 6, 6], w [8 * filters, 1, 3, 3].
Task WithFiltersOfEachChannel(
    Primitive primitive,
    std::int64_t filters,
    bool channels_last,
    bool accumulate = false) {
  Task task = Dense(primitive, channels_last);
  task.accumulate = accumulate;
  task.problem.group = 8;
  task.problem.y_channels = 8 * filters;
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    StridesOf(task.problem, operand) =
        channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  }
  return task;
}

TEST(FormsOf, ChannelsOfSeveralFiltersAreRepeatedOrStacked) {
  constexpr Copied kOnlyX = {true, false, false};
  constexpr Copied kImages = {true, false, true};
  for (const Primitive primitive : {Primitive::kForward, Primitive::kBackwardFilter}) {
    EXPECT_EQ(
        Detours(WithFiltersOfEachChannel(primitive, 3, /*channels_last=*/false)),
        (Forms{{"repeated", kOnlyX}}));
    EXPECT_EQ(
        Detours(WithFiltersOfEachChannel(primitive, 3, /*channels_last=*/true)),
        (Forms{{"repeated", kOnlyX}, {"repeated-nchw", kImages}}));
  }
  Task first = WithFiltersOfEachChannel(Primitive::kBackwardData, 3, /*channels_last=*/false);
  Task last = WithFiltersOfEachChannel(Primitive::kBackwardData, 3, /*channels_last=*/true);
  EXPECT_EQ(Detours(first), (Forms{{"stacked", {false, true, false}}, {"repeated", kOnlyX}}));
  EXPECT_EQ(
      Detours(last),
      (Forms{{"stacked", kAllCopied}, {"repeated", kOnlyX}, {"repeated-nchw", kImages}}));
  // What is rounded before it is added up is rounded twice.
  first.problem.type = last.problem.type = DataType::kMLFloat16;
  EXPECT_EQ(Detours(first), (Forms{{"stacked", {false, true, false}}}));
  EXPECT_EQ(Detours(last), (Forms{{"stacked", kAllCopied}}));
}

TEST(FormsOf, AStackedFormHasAPlaneForEachFilter) {
  const OperandForm form =
      FormsOf(WithFiltersOfEachChannel(Primitive::kBackwardData, 3, /*channels_last=*/false))[1];
  ASSERT_EQ(form.name, "stacked");
  const Problem& problem = form.inner.problem;
  EXPECT_EQ(form.stacked, 3);
  EXPECT_TRUE(form.is_for_own);
  EXPECT_EQ(problem.group, 8);
  EXPECT_EQ(DimsOf(problem, kX), (Dims{2, 8, 1, 6, 6}));
  EXPECT_EQ(DimsOf(problem, kW), (Dims{8, 1, 3, 3, 3}));
  EXPECT_EQ(DimsOf(problem, kY), (Dims{2, 8, 3, 4, 4}));
  EXPECT_EQ(problem.axes[0].pad_begin, 2);
  EXPECT_EQ(problem.axes[0].pad_end, 2);
  for (const Operand operand : {kX, kW, kY}) {
    EXPECT_EQ(StridesOf(problem, operand), ContiguousStrides(DimsOf(problem, operand)));
  }
}

TEST(FormsOf, ARepeatedFormHasOneFilterForEachChannel) {
  for (const bool channels_last : {false, true}) {
    const Task task =
        WithFiltersOfEachChannel(Primitive::kBackwardFilter, 3, channels_last, /*accumulate=*/true);
    for (const OperandForm& form : FormsOf(task)) {
      if (!form.is_detour) {
        EXPECT_EQ(form.repeats, 1) << form.name;
        continue;
      }
      const Problem& problem = form.inner.problem;
      EXPECT_EQ(form.repeats, 3) << form.name;
      EXPECT_EQ(problem.x_channels, 24) << form.name;
      EXPECT_EQ(problem.group, 24) << form.name;
      EXPECT_EQ(problem.y_channels, 24) << form.name;
      EXPECT_EQ(problem.w_strides, ContiguousStrides(DimsOf(problem, kW))) << form.name;
      EXPECT_TRUE(form.inner.accumulate) << form.name;
      EXPECT_EQ(form.is_for_own, form.name == "repeated-nchw");
    }
  }
}

/// Where x is the result its copies are added up, to what is there, once they are computed.
TEST(FormsOf, ARepeatedResultIsNotAddedToByItsKernel) {
  const Task task =
      WithFiltersOfEachChannel(Primitive::kBackwardData, 2, false, /*accumulate=*/true);
  const std::vector<OperandForm> forms = FormsOf(task);
  ASSERT_EQ(forms.back().name, "repeated");
  EXPECT_FALSE(forms.back().inner.accumulate);
  EXPECT_TRUE(forms.front().inner.accumulate);
}

TEST(FormsOf, ChannelsAreNotRepeatedBeyondWhatEnginesCount) {
  Task task = WithFiltersOfEachChannel(Primitive::kForward, 8, false);
  task.problem.batch = 1 << 20;
  ASSERT_TRUE(NumElements(DimsOf(task.problem, kX)) < std::int64_t{1} << 31);
  EXPECT_EQ(Detours(task), Forms());
}

}  // namespace
}  // namespace gradsmith::conv
