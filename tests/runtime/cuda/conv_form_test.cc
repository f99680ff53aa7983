#include <gtest/gtest.h>

#include <array>
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

/// The names of the forms, in order, and what each copies.
std::vector<std::pair<std::string, Copied>> Summary(const Task& task) {
  std::vector<std::pair<std::string, Copied>> summary;
  for (const Form& form : FormsOf(task)) {
    summary.emplace_back(form.name, form.copied);
  }
  return summary;
}

using Forms = std::vector<std::pair<std::string, Copied>>;

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

TEST(FormsOf, MisalignedOperandsMustBeCopied) {
  Task task = Dense(Primitive::kBackwardData, /*channels_last=*/true);
  task.alignment[kW] = 4;
  EXPECT_EQ(Summary(task), (Forms{{"packed ", {false, true, false}}}));
  const Form packed = FormsOf(task)[0];
  EXPECT_EQ(packed.inner.alignment[kW], 16);
  EXPECT_EQ(packed.inner.problem.w_strides, task.problem.w_strides);
  // 4 * 8 * 3 * 3 floats, rounded up to 256 bytes.
  EXPECT_EQ(CopiesBytes(packed), 1280U);
}

TEST(FormsOf, ZeroStridesMustBeCopied) {
  Task task = Dense(Primitive::kBackwardFilter);
  task.problem.y_strides = {0, 1, 0, 0};
  EXPECT_EQ(Summary(task), (Forms{{"packed ", {false, false, true}}}));
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
    EXPECT_EQ(Summary(task), (Forms{{"", {}}, {"packed ", {true, false, false}}}));
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
      const std::vector<Form> forms = FormsOf(task);
      ASSERT_EQ(forms.size(), 1U);
      EXPECT_TRUE(forms[0].inner.accumulate);
      EXPECT_TRUE(forms[0].copied.at(odd));
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv
