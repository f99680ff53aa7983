#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "conv/cuda/legacy.h"
#include "conv/task.h"
#include "runtime/cuda/odd_problem.h"

/// Problems of the convolutions as CUDA's kernels are chosen for them. Needs no GPU.
namespace gradsmith::conv {
namespace {

Task Base() {
  return {.primitive = Primitive::kBackwardFilter, .problem = OddProblem(DataType::kFloat)};
}

Task Dense(Task task, bool channels_last = false) {
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    StridesOf(task.problem, operand) =
        channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  }
  return task;
}

/// The base with one number of the problem changed, and strides as they were.
std::vector<Task> WithOneChanged(const Task& base) {
  std::vector<Task> tasks;
  const auto add = [&](auto change) {
    Task task = base;
    change(task);
    tasks.push_back(task);
  };
  for (const auto primitive : {Primitive::kForward, Primitive::kBackwardData}) {
    add([&](Task& task) { task.primitive = primitive; });
  }
  for (const auto type : {DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    add([&](Task& task) { task.problem.type = type; });
  }
  for (const auto field :
       {&Problem::batch, &Problem::x_channels, &Problem::y_channels, &Problem::group}) {
    add([&](Task& task) { task.problem.*field += 100; });
  }
  add([](Task& task) { task.problem.spatial_rank = 1; });
  for (int axis = 0; axis < base.problem.spatial_rank; ++axis) {
    for (const auto field :
         {&Axis::x, &Axis::w, &Axis::y, &Axis::stride, &Axis::dilation, &Axis::pad_begin,
          &Axis::pad_end}) {
      add([&](Task& task) { task.problem.axes.at(axis).*field += 100; });
    }
  }
  for (const Operand operand : {kX, kW, kY}) {
    for (int i = 0; i < 4; ++i) {
      add([&](Task& task) { StridesOf(task.problem, operand)[i] += 1000; });
    }
    for (const int alignment : {2, 4, 8}) {
      add([&](Task& task) { task.alignment.at(operand) = alignment; });
    }
  }
  add([](Task& task) { task.accumulate = true; });
  return tasks;
}

TEST(ConvTaskTest, TheKeyTellsTasksApart) {
  const Task base = Dense(Base());
  std::vector<Task> tasks = WithOneChanged(base);
  tasks.push_back(base);
  tasks.push_back(Dense(Base(), true));
  std::set<std::string> keys;
  for (const Task& task : tasks) {
    internal::ProblemKey key;
    AddTo(task, &key);
    EXPECT_TRUE(keys.insert(key.Text()).second) << Describe(task);
  }
  internal::ProblemKey again;
  AddTo(base, &again);
  EXPECT_TRUE(keys.contains(again.Text()));
}

TEST(ConvTaskTest, TheDescriptionTellsWhatAPersonMustKnow) {
  Task task = Dense(Base());
  EXPECT_EQ(
      Describe(task),
      "backward-filter of float, x [5, 14, 31, 32] NCHW, w [22, 7, 4, 3] NCHW, y [5, 22, 17, 18] "
      "NCHW, strides [6, 7], pads [9, 12, 10, 13], dilations [8, 11], group 2");
  task.alignment[kW] = 4;
  task.accumulate = true;
  EXPECT_NE(Describe(task).find("w [22, 7, 4, 3] NCHW aligned to 4 bytes, y"), std::string::npos);
  EXPECT_TRUE(Describe(task).ends_with("group 2, accumulating"));
  task = Dense(Base(), true);
  EXPECT_NE(Describe(task).find("x [5, 14, 31, 32] NHWC"), std::string::npos);
}

/// Strict float must never meet TF32: of the legacy API's math types one keeps it away.
TEST(LegacyMath, OnlyFmaMathIsStrictForFloat) {
  for (const auto math :
       {CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
        CUDNN_FMA_MATH}) {
    EXPECT_EQ(IsTf32(DataType::kFloat, math), math != CUDNN_FMA_MATH) << math;
    for (const auto type : {DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
      EXPECT_FALSE(IsTf32(type, math)) << math;
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv
