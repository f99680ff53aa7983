#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "conv/cuda/call.h"
#include "conv/cuda/direct.h"
#include "conv/cuda/together_space.h"
#include "cuda/implementation.h"
#include "gradsmith/context.h"
#include "runtime/cuda/conv_tensors.h"
#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/op_call.h"

/// How the results of two gradients together are compared.
namespace gradsmith::conv {
namespace {

using internal::KernelName;
using internal::Launch;
using internal::Plan;

/// Computes as another plan does, but spoils an element of its second run.
class SpoiltOnce final : public Plan {
 public:
  SpoiltOnce(std::unique_ptr<Plan> plan, int operand) : plan_(std::move(plan)), operand_(operand) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_->workspace(); }

  Status Run(const Launch& launch) override {
    const Status status = plan_->Run(launch);
    if (!status.ok() || ++runs_ != 2) {
      return status;
    }
    return cuda::ToStatus(
        cuda::Driver().cuMemsetD8Async(
            reinterpret_cast<CUdeviceptr>(launch.operands[operand_]), 0x42, sizeof(float),
            launch.stream),
        "spoiling an element");
  }

 private:
  std::unique_ptr<Plan> plan_;
  int operand_;
  int runs_ = 0;
};

/// How both were chosen alone.
struct Alone {
  std::string kernel = "own/direct";
  double milliseconds = 1;
  bool is_spoilt_once = false;
};

class CudaConvTogetherSpace : public cuda::GpuTest {
 protected:
  static constexpr std::array<std::string_view, kCallTensors> kNames = {"X",  "W",  "dY", "",
                                                                        "dX", "dW", "",   "dB"};
  static constexpr cuda::OpInfo kOp = {
      .name = "ConvGrad",
      .operands = kNames,
      .inputs = kCallInputs,
      .lead = kInputs + kY,
      .text_of_choices = &TextOfChoices};
  /// No comparison measures such an error.
  static constexpr double kErrorAlone = 0.125;

  void SetUp() override {
    cuda::GpuTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Random random("cuda together space");
    const Problem problem =
        MakeConvProblem({.N = 2, .C = 3, .M = 4, .D = {6, 7}, .K = {3, 3}}, Attributes());
    inputs_ = MakeConvTensors(problem, DataType::kFloat, {}, random);
    results_ = MakeConvTensors(problem, DataType::kFloat, {}, random);
    const TensorRef x = inputs_.x->GpuRef();
    const TensorRef w = inputs_.w->GpuRef();
    const TensorRef dy = inputs_.y->GpuRef();
    const TensorRef dx = results_.x->GpuRef();
    const TensorRef dw = results_.w->GpuRef();
    const TensorRef* const none = nullptr;
    task_ = cuda::MakeOpTask(kOp, &x, &w, &dy, none, &dx, &dw, none, none);
    AddChoices(problem, &task_);
    context_.emplace(cuda::OnGpu(SearchMode::kHeuristic));
  }

  /// Returns the error that the check finds of two direct kernels together. `alone` says what was
  /// chosen for each gradient alone.
  Result<double> Check(const Alone& alone, const std::string& order = "in turn: ") {
    const cuda::FamilyOnCuda family;
    const cuda::TaskCall op = {*context_, device(), family, task_};
    ReadyCall call{.op = op};
    ChoicesAlone choices;
    for (const Task& task : TasksOf(task_)) {
      ReadyTask& ready = call.tasks.emplace_back();
      ready.task = task;
      std::unique_ptr<Plan> plan = MakeDirectPlan(device(), task);
      if (alone.is_spoilt_once) {
        plan = std::make_unique<SpoiltOnce>(std::move(plan), ResultOf(task.primitive));
      }
      ready.plan = std::move(plan);
      choices.at(call.tasks.size() - 1) = {
          {.id = alone.kernel, .milliseconds = alone.milliseconds, .error = kErrorAlone},
          *KernelName::Read(alone.kernel)};
    }
    const std::unique_ptr<internal::SearchSpace> space =
        MakeTogetherSpace(call, std::move(choices), Order::kInTurn);
    Result<std::unique_ptr<Plan>> plan = space->Build(order + "own/direct & own/direct");
    return plan.ok() ? space->Check(**plan) : plan.status();
  }

  void ExpectComparedAnew(const Alone& alone) {
    const Result<double> error = Check(alone);
    ASSERT_TRUE(error.ok()) << error.status().message();
    EXPECT_GT(*error, 0);
    EXPECT_LT(*error, 1e-6);
  }

  /// Both results are added to what is there.
  void Accumulate() {
    task_.tensors[kResults + kX].accumulate = true;
    task_.tensors[kResults + kW].accumulate = true;
  }

 private:
  ConvTensors inputs_;
  ConvTensors results_;
  cuda::OpTask task_;
  std::optional<Context> context_;
};

/// What was chosen alone was compared then: it need only compute the same in the other's company.
TEST_F(CudaConvTogetherSpace, WhatComesOutAsAloneIsNotComparedAnew) {
  for (const bool accumulates : {false, true}) {
    for (const std::string order : {"in turn: ", "side by side: "}) {
      SCOPED_TRACE(order + (accumulates ? "added" : "written"));
      const Result<double> error = Check({}, order);
      ASSERT_TRUE(error.ok()) << error.status().message();
      EXPECT_EQ(*error, kErrorAlone);
    }
    Accumulate();
  }
}

TEST_F(CudaConvTogetherSpace, WhatComesOutOtherwiseIsCompared) {
  ExpectComparedAnew({.is_spoilt_once = true});
  Accumulate();
  ExpectComparedAnew({.is_spoilt_once = true});
}

TEST_F(CudaConvTogetherSpace, OtherKernelsThanAloneAreCompared) {
  ExpectComparedAnew({.kernel = "own/planes"});
}

/// Running a slow choice again takes longer than comparing, and 0 means that nobody timed it.
TEST_F(CudaConvTogetherSpace, WhatIsSlowAloneIsCompared) {
  ExpectComparedAnew({.milliseconds = 5});
  ExpectComparedAnew({.milliseconds = 0});
}

}  // namespace
}  // namespace gradsmith::conv
