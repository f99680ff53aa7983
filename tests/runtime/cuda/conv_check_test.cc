#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "conv/cuda/search_space.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/op_call.h"

/// Whether a search notices a candidate that computes a convolution wrongly.
namespace gradsmith::conv {
namespace {

using cuda::GpuTensor;
using internal::Plan;

/// Runs another plan, or none, and then sets some of its result's bytes to zero.
class SpoilingPlan final : public Plan {
 public:
  struct Spoiled {
    std::int64_t offset = 0;
    std::size_t size = 0;
  };

  SpoilingPlan(Operand result, std::unique_ptr<Plan> plan, Spoiled spoiled)
      : result_(result), plan_(std::move(plan)), spoiled_(spoiled) {}

  [[nodiscard]] std::size_t workspace() const override {
    return plan_ == nullptr ? 0 : plan_->workspace();
  }

  Status Run(const internal::Launch& launch) override {
    const Status status = plan_ == nullptr ? Status() : plan_->Run(launch);
    if (!status.ok() || spoiled_.size == 0) {
      return status;
    }
    auto* from = static_cast<std::byte*>(launch.operands[result_]) + spoiled_.offset;
    return cuda::ToStatus(
        cuda::Driver().cuMemsetD8Async(
            reinterpret_cast<CUdeviceptr>(from), 0, spoiled_.size,
            static_cast<CUstream>(launch.stream)),
        "spoiling a result");
  }

 private:
  Operand result_;
  std::unique_ptr<Plan> plan_;
  Spoiled spoiled_;
};

constexpr std::array<Primitive, 3> kPrimitives = {
    Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter};

class CudaConvCheck : public cuda::CudaTest {
 protected:
  /// A 3x3 convolution of 2 images with 16 channels each.
  Task MakeTask(Primitive primitive, DataType type, bool accumulate) {
    Task task;
    task.primitive = primitive;
    task.accumulate = accumulate;
    Problem& problem = task.problem;
    problem.type = type;
    problem.batch = 2;
    problem.x_channels = problem.y_channels = 16;
    problem.spatial_rank = 2;
    for (int i = 0; i < 2; ++i) {
      problem.axes.at(i) = {12, 3, 12, 1, 1, 1, 1};
    }
    for (const Operand operand : {kX, kW, kY}) {
      const Dims dims = DimsOf(problem, operand);
      StridesOf(problem, operand) = ContiguousStrides(dims);
      tensors_.at(operand) = std::make_unique<GpuTensor>(
          type, cuda::Sizes(dims.begin(), dims.end()),
          cuda::Sizes(StridesOf(problem, operand).begin(), StridesOf(problem, operand).end()), 0);
      operands_.at(operand) = tensors_.at(operand)->GpuRef().data;
    }
    return task;
  }

  ConvSearchSpace MakeSpace(const Task& task) {
    return {device(), nullptr, task, operands_, internal::SearchPolicy()};
  }

  static std::unique_ptr<Plan> Right(ConvSearchSpace& space) {
    Result<std::unique_ptr<Plan>> plan = space.Build("own/direct");
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? std::move(*plan) : nullptr;
  }

  /// What is added in half or bf16 may be taken for rounded twice as well.
  static void ExpectDisagrees(const Status& status, const Task& task) {
    EXPECT_FALSE(status.ok());
    const bool may_be_rounded = task.accumulate && SizeOf(task.problem.type) == 2;
    EXPECT_TRUE(
        status.message().starts_with("disagrees") ||
        (may_be_rounded && status.message() == "rounds what it adds twice"))
        << status.message();
  }

  std::array<std::unique_ptr<GpuTensor>, kOperands> tensors_;
  std::array<void*, kOperands> operands_{};
};

TEST_F(CudaConvCheck, WhatIsWrongIsRefused) {
  for (const Primitive primitive : kPrimitives) {
    for (const DataType type : cuda::kAllTypes) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(std::string(ToString(primitive)) + " of " + std::string(ToString(type)));
        const Task task = MakeTask(primitive, type, accumulate);
        ConvSearchSpace space = MakeSpace(task);
        EXPECT_TRUE(space.Check(*Right(space)).ok());
        const Operand result = ResultOf(primitive);
        const auto count = static_cast<std::size_t>(NumElements(DimsOf(task.problem, result)));
        SpoilingPlan wrong(result, Right(space), {0, count * SizeOf(type) / 4});
        const Status refused = space.Check(wrong);
        ExpectDisagrees(refused, task);
      }
    }
  }
}

/// After a run that left the right result in the same memory.
TEST_F(CudaConvCheck, WhatIsNotWrittenIsRefused) {
  for (const Primitive primitive : kPrimitives) {
    for (const DataType type : cuda::kAllTypes) {
      SCOPED_TRACE(std::string(ToString(primitive)) + " of " + std::string(ToString(type)));
      const Operand result = ResultOf(primitive);
      const Task task = MakeTask(primitive, type, false);
      ConvSearchSpace space = MakeSpace(task);
      EXPECT_TRUE(space.Check(*Right(space)).ok());
      SpoilingPlan empty(result, nullptr, {});
      const Status refused = space.Check(empty);
      EXPECT_EQ(refused.code(), StatusCode::kInternal);
      EXPECT_NE(refused.message().find("unwritten"), std::string::npos) << refused.message();
      // What is added to is as it was.
      const Task adding = MakeTask(primitive, type, true);
      ConvSearchSpace space_of_adding = MakeSpace(adding);
      EXPECT_TRUE(space_of_adding.Check(*Right(space_of_adding)).ok());
      const Status not_added = space_of_adding.Check(empty);
      ExpectDisagrees(not_added, adding);
    }
  }
}

TEST_F(CudaConvCheck, WhatWritesBeyondItsResultIsRefused) {
  const DataType type = DataType::kFloat;
  for (const Primitive primitive : kPrimitives) {
    const Task task = MakeTask(primitive, type, false);
    ConvSearchSpace space = MakeSpace(task);
    const Operand result = ResultOf(primitive);
    const auto bytes = static_cast<std::int64_t>(
        NumElements(DimsOf(task.problem, result)) * static_cast<std::int64_t>(SizeOf(type)));
    for (const std::int64_t offset : {std::int64_t{-4}, bytes}) {
      SpoilingPlan beyond(result, Right(space), {offset, 4});
      const Status refused = space.Check(beyond);
      EXPECT_TRUE(refused.message().starts_with("wrote 4 bytes")) << refused.message();
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv
