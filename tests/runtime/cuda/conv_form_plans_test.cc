#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/direct.h"
#include "conv/cuda/form.h"
#include "core/plan.h"
#include "runtime/cuda/conv_tensors.h"
#include "runtime/cuda/gpu_tensor.h"

/// Copies of operands in other forms, around a kernel that takes any.
namespace gradsmith::conv {
namespace {

class CudaConvFormPlans : public cuda::GpuTest {
 protected:
  /// Small integers, which all sums are made of to the last bit, in any order.
  static void Fill(const ConvTensors& tensors, Random& random) {
    for (GpuTensor* tensor : {tensors.x.get(), tensors.w.get(), tensors.y.get()}) {
      tensor->Fill([&] { return static_cast<double>(random.Integer(-2, 2)); });
    }
  }

  static int AlignmentOf(const GpuTensor& tensor) {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(tensor.GpuRef().data) % 16 == 0;
    return is_aligned ? 16 : static_cast<int>(SizeOf(tensor.type()));
  }

  /// Computes the task in each of its forms, from the same values and in a workspace of NaN.
  void ComputeInEachForm(const Task& task, const ConvTensors& tensors, Random& random) {
    for (const OperandForm& form : FormsOf(task)) {
      SCOPED_TRACE(form.name + " " + DescribeConv(task.problem));
      Fill(tensors, random);
      GpuTensor& result = tensors.Result(task.primitive);
      std::vector<double> expected = result.HostValues();
      if (!task.accumulate) {
        result.Fill([] { return std::numeric_limits<double>::quiet_NaN(); });
      }
      const std::unique_ptr<internal::Plan> plan =
          WrapPlan(device(), task, form, MakeDirectPlan(device(), form.inner));
      const std::array<void*, kOperands> operands = {
          tensors.x->GpuRef().data, tensors.w->GpuRef().data, tensors.y->GpuRef().data};
      const cuda::Block workspace(plan->workspace());
      workspace.CopyIn(std::vector(workspace.size(), std::byte{0xFF}));
      const Status status =
          plan->Run({.stream = kStream, .operands = operands, .workspace = workspace.data()});
      ASSERT_TRUE(status.ok()) << status.message();
      const std::vector<double> actual = result.GpuValues();
      RunConvOnCpu(task.primitive, tensors);
      const std::vector<double> sums = result.HostValues();
      for (std::size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(actual[i], sums[i] + (task.accumulate ? expected[i] : 0)) << "element " << i;
      }
      EXPECT_TRUE(result.SurroundingsIntact());
      ++runs_[form.name];
    }
  }

  std::map<std::string, int> runs_;
};

TEST_F(CudaConvFormPlans, EachComputesTheTask) {
  Random random("conv forms");
  constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided};
  for (int round = 0; round < 600; ++round) {
    const Problem problem = RandomConvProblem(random);
    const DataType type = kConvTypes[round % 4];
    for (const Primitive primitive : kConvPrimitives) {
      const auto layout = [&] { return kLayouts[random.Integer(0, 2)]; };
      const ConvLayouts layouts = {.x = layout(), .w = layout(), .y = layout()};
      const ConvTensors tensors = MakeConvTensors(problem, type, layouts, random);
      Task task;
      task.primitive = primitive;
      task.problem = tensors.problem;
      task.alignment = {AlignmentOf(*tensors.x), AlignmentOf(*tensors.w), AlignmentOf(*tensors.y)};
      task.accumulate = random.Chance(0.3);
      ComputeInEachForm(task, tensors, random);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
  for (const char* form :
       {"", "packed", "nhwc", "nchw", "padded2", "padded4", "padded8", "subsampled", "bordered",
        "patches", "repeated", "repeated-nchw", "stacked"}) {
    EXPECT_GT(runs_[form], 0) << form;
  }
}

}  // namespace
}  // namespace gradsmith::conv
