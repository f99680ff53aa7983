#include <gtest/gtest.h>

#include <array>
#include <memory>
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

/// Computes as the direct kernel does, then spoils the first element of one operand.
class Spoiling final : public Plan {
 public:
  Spoiling(std::unique_ptr<Plan> plan, int operand) : plan_(std::move(plan)), operand_(operand) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_->workspace(); }

  Status Run(const Launch& launch) override {
    Status status = plan_->Run(launch);
    return !status.ok() ? status
                        : cuda::ToStatus(
                              cuda::Driver().cuMemsetD8Async(
                                  reinterpret_cast<CUdeviceptr>(launch.operands[operand_]), 0x42,
                                  sizeof(float), launch.stream),
                              "spoiling an element");
  }

 private:
  std::unique_ptr<Plan> plan_;
  int operand_;
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

  /// Both were chosen alone as `kernel`, and are the direct kernel, or what is made of it.
  template <typename Make>
  Result<double> Check(const std::string& kernel, const std::string& candidate, const Make& make) {
    const cuda::FamilyOnCuda family;
    const cuda::TaskCall op = {*context_, device(), family, task_};
    ReadyCall call{.op = op};
    ChoicesAlone alone;
    for (const Task& task : TasksOf(task_)) {
      ReadyTask& ready = call.tasks.emplace_back();
      ready.task = task;
      ready.plan = make(MakeDirectPlan(device(), task), ResultOf(task.primitive));
      alone.at(call.tasks.size() - 1) = {
          {.id = kernel, .error = kErrorAlone}, *KernelName::Read(kernel)};
    }
    const std::unique_ptr<internal::SearchSpace> space =
        MakeTogetherSpace(call, std::move(alone), Order::kInTurn);
    Result<std::unique_ptr<Plan>> plan = space->Build(candidate);
    return plan.ok() ? space->Check(**plan) : plan.status();
  }

  static std::unique_ptr<Plan> AsItIs(std::unique_ptr<Plan> plan, Operand /*result*/) {
    return plan;
  }
  static std::unique_ptr<Plan> Spoilt(std::unique_ptr<Plan> plan, Operand result) {
    return std::make_unique<Spoiling>(std::move(plan), result);
  }

 private:
  ConvTensors inputs_;
  ConvTensors results_;
  cuda::OpTask task_;
  std::optional<Context> context_;
};

/// What was chosen alone was compared then: it need only compute the same in the other's company.
TEST_F(CudaConvTogetherSpace, WhatComesOutAsAloneIsNotComparedAnew) {
  for (const std::string order : {"in turn: ", "side by side: "}) {
    const Result<double> error =
        Check("own/direct", order + "own/direct & own/direct", &CudaConvTogetherSpace::AsItIs);
    ASSERT_TRUE(error.ok()) << error.status().message();
    EXPECT_EQ(*error, kErrorAlone);
  }
}

/// Here the choices alone are not what is tried together, and are wrong besides.
TEST_F(CudaConvTogetherSpace, WhatComesOutOtherwiseIsCompared) {
  const Result<double> error =
      Check("own/planes", "in turn: own/direct & own/direct", &CudaConvTogetherSpace::Spoilt);
  ASSERT_TRUE(error.ok()) << error.status().message();
  EXPECT_GT(*error, 0);
  EXPECT_LT(*error, 1e-6);
}

}  // namespace
}  // namespace gradsmith::conv
