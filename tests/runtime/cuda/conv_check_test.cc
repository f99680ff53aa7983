#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conv/cuda/search_space.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "runtime/cuda/conv_layer.h"
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
            reinterpret_cast<CUdeviceptr>(from), 0, spoiled_.size, launch.stream),
        "spoiling a result");
  }

 private:
  Operand result_;
  std::unique_ptr<Plan> plan_;
  Spoiled spoiled_;
};

/// Runs another plan, whose result of floats it then multiplies with a number that depends on the
/// first number of an operand.
class LyingPlan final : public Plan {
 public:
  using Factor = std::function<float(float first)>;

  LyingPlan(
      Operand data,
      Operand result,
      std::size_t count,
      std::unique_ptr<Plan> plan,
      Factor factor)
      : data_(data),
        result_(result),
        values_(count),
        plan_(std::move(plan)),
        factor_(std::move(factor)) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_->workspace(); }

  Status Run(const internal::Launch& launch) override {
    const std::size_t bytes = values_.size() * sizeof(float);
    float first = 0;
    Status status = plan_->Run(launch);
    if (status.ok()) {
      status = cuda::CopyAndWait(&first, launch.operands[data_], sizeof(first), launch.stream);
    }
    if (status.ok()) {
      status = cuda::CopyAndWait(values_.data(), launch.operands[result_], bytes, launch.stream);
    }
    for (float& value : values_) {
      value *= factor_(first);
    }
    return status.ok()
               ? cuda::CopyAndWait(launch.operands[result_], values_.data(), bytes, launch.stream)
               : status;
  }

 private:
  Operand data_;
  Operand result_;
  std::vector<float> values_;
  std::unique_ptr<Plan> plan_;
  Factor factor_;
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

  ConvSearchSpace MakeSpace(const Task& task, const internal::SearchPolicy& policy = {}) {
    return {device(), nullptr, task, operands_, policy};
  }

  /// What a candidate's check says whose floats are off by a factor.
  Result<double> CheckLying(
      Primitive primitive,
      const internal::SearchPolicy& policy,
      const LyingPlan::Factor& factor) {
    const Task task = MakeTask(primitive, DataType::kFloat, false);
    ConvSearchSpace space = MakeSpace(task, policy);
    const Operand result = ResultOf(primitive);
    LyingPlan plan(
        primitive == Primitive::kBackwardData ? kW : kX, result,
        static_cast<std::size_t>(NumElements(DimsOf(task.problem, result))), Right(space), factor);
    return space.Check(plan);
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
        const Status refused = space.Check(wrong).status();
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
      const Status refused = space.Check(empty).status();
      EXPECT_EQ(refused.code(), StatusCode::kInternal);
      EXPECT_NE(refused.message().find("unwritten"), std::string::npos) << refused.message();
      // What is added to is as it was.
      const Task adding = MakeTask(primitive, type, true);
      ConvSearchSpace space_of_adding = MakeSpace(adding);
      EXPECT_TRUE(space_of_adding.Check(*Right(space_of_adding)).ok());
      const Status not_added = space_of_adding.Check(empty).status();
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
      const Status refused = space.Check(beyond).status();
      EXPECT_TRUE(refused.message().starts_with("wrote 4 bytes")) << refused.message();
    }
  }
}

/// Right on the numbers that a candidate is usually tried on, and wrong on others.
TEST_F(CudaConvCheck, WhoIsRightOnFriendlyDataAloneIsRefused) {
  const LyingPlan::Factor overflows = [](float first) {
    return std::abs(first) > 1e20F ? 2.F : 1.F;
  };
  const LyingPlan::Factor flushes = [](float first) {
    return std::abs(first) < 1e-20F ? 0.F : 1.F;
  };
  for (const Primitive primitive : kPrimitives) {
    for (const SearchMode mode :
         {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
      SCOPED_TRACE(std::string(ToString(primitive)) + ", " + std::string(ToString(mode)));
      const Status large = CheckLying(primitive, {.mode = mode}, overflows).status();
      EXPECT_TRUE(large.message().starts_with(
          "on numbers near the type's largest it disagrees with the direct computation"))
          << large.message();
      const Status small = CheckLying(primitive, {.mode = mode}, flushes).status();
      EXPECT_TRUE(small.message().starts_with("on numbers near the type's smallest it disagrees"))
          << small.message();
      const internal::SearchPolicy loose = {.mode = mode, .allow_reduced_accuracy = true};
      EXPECT_TRUE(CheckLying(primitive, loose, overflows).ok());
      EXPECT_TRUE(CheckLying(primitive, loose, flushes).ok());
    }
  }
}

/// 1e-6 of the norm is what is promised of float, in every mode.
TEST_F(CudaConvCheck, WhatIsLessExactThanIsPromisedTakesAPolicy) {
  const LyingPlan::Factor off = [](float) { return 1 + 3e-6F; };
  for (const Primitive primitive : kPrimitives) {
    for (const SearchMode mode :
         {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
      SCOPED_TRACE(std::string(ToString(primitive)) + ", " + std::string(ToString(mode)));
      const Status refused = CheckLying(primitive, {.mode = mode}, off).status();
      EXPECT_NE(refused.message().find("expected at most 1.00e-06"), std::string::npos)
          << refused.message();
      const Result<double> taken =
          CheckLying(primitive, {.mode = mode, .allow_reduced_accuracy = true}, off);
      ASSERT_TRUE(taken.ok()) << taken.status().message();
      EXPECT_NEAR(*taken, 3e-6, 2e-7);
    }
  }
}

/// Who is left where nobody keeps the promise is held to what can be had of long sums.
TEST_F(CudaConvCheck, ThePromiseIsRelaxedLast) {
  const Task task = MakeTask(Primitive::kForward, DataType::kFloat, false);
  ConvSearchSpace space = MakeSpace(task);
  LyingPlan plan(
      kX, kY, static_cast<std::size_t>(NumElements(DimsOf(task.problem, kY))), Right(space),
      [](float) { return 1 + 1.2e-6F; });
  EXPECT_FALSE(space.Check(plan).ok());
  EXPECT_FALSE(space.Relax(/*lacks_memory=*/true)) << "nothing was left out as too slow";
  EXPECT_FALSE(space.Check(plan).ok()) << "lack of memory lowers what is demanded";
  EXPECT_TRUE(space.Relax(/*lacks_memory=*/false));
  EXPECT_TRUE(space.Check(plan).ok());
  EXPECT_FALSE(space.Relax(/*lacks_memory=*/false));
  ConvSearchSpace of_double = MakeSpace(MakeTask(Primitive::kForward, DataType::kDouble, false));
  EXPECT_FALSE(of_double.Relax(/*lacks_memory=*/false))
      << "nothing is asked of it that could be relaxed";
}

/// Long ones in strict float.
TEST_F(CudaConvCheck, WhatIsSlowIsLeftWhileThePromiseIsAskedFor) {
  const auto space_of = [&](DataType type) {
    const Axis axis = LayerAxis(299, 7, 2, 1, 3);
    return MakeSpace(
        NhwcTask(Primitive::kBackwardFilter, type, 128, {.x = 3, .y = 32}, {axis, axis}));
  };
  for (const bool lacks_memory : {false, true}) {
    ConvSearchSpace space = space_of(DataType::kFloat);
    EXPECT_TRUE(space.LeavesSlow());
    EXPECT_TRUE(space.Relax(lacks_memory));
    EXPECT_FALSE(space.LeavesSlow());
  }
  EXPECT_FALSE(space_of(DataType::kDouble).LeavesSlow());
  EXPECT_FALSE(MakeSpace(MakeTask(Primitive::kForward, DataType::kFloat, false)).LeavesSlow());
}

/// What is measured lies within what is promised, and is not made up.
TEST_F(CudaConvCheck, TheErrorIsMeasured) {
  for (const Primitive primitive : kPrimitives) {
    for (const auto& [type, least, most] :
         {std::tuple(DataType::kFloat, 1e-8, 1e-6), std::tuple(DataType::kDouble, 1e-17, 1e-14),
          std::tuple(DataType::kMLFloat16, 5e-5, 1e-3),
          std::tuple(DataType::kBFloat16, 5e-4, 8e-3)}) {
      SCOPED_TRACE(std::string(ToString(primitive)) + " of " + std::string(ToString(type)));
      ConvSearchSpace space = MakeSpace(MakeTask(primitive, type, false));
      const Result<double> error = space.Check(*Right(space));
      ASSERT_TRUE(error.ok()) << error.status().message();
      EXPECT_GT(*error, least);
      EXPECT_LT(*error, most);
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv
