#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "conv/cuda/call.h"
#include "conv/cuda/call_plan.h"
#include "conv/cuda/sharing_plan.h"
#include "conv/task.h"
#include "cuda/op_task.h"
#include "runtime/cuda/odd_problem.h"

/// Calls of the convolutions, as what computes them sees them. Needs no GPU.
namespace gradsmith::conv {
namespace {

constexpr std::array<std::string_view, kCallTensors> kNames = {"X",  "W",  "dY", "B",
                                                               "dX", "dW", "Y",  "dB"};
constexpr cuda::OpInfo kOp = {
    .name = "Op",
    .operands = kNames,
    .inputs = kCallInputs,
    .lead = kInputs + kY,
    .text_of_choices = &TextOfChoices};

/// A call of those operands of a problem whose places are listed. Results are channels last.
cuda::OpTask CallOf(const Problem& problem, const std::vector<int>& places) {
  cuda::OpTask call;
  call.op = &kOp;
  for (int place = 0; place < kCallTensors; ++place) {
    TensorRef tensor;
    const bool is_vector = place == kBiasInput || place == kSums;
    const Dims dims = is_vector ? Dims{problem.y_channels}
                                : DimsOf(problem, static_cast<Operand>(place % kResults));
    for (const int wanted : places) {
      if (wanted == place) {
        tensor = TensorRef(
            problem.type, nullptr, dims,
            place >= kResults && !is_vector ? ChannelsLastStrides(dims) : ContiguousStrides(dims));
      }
    }
    call.tensors.push_back(tensor);
  }
  AddChoices(problem, &call);
  return call;
}

const std::vector<int> kGradient = {kInputs + kX,  kInputs + kW,  kInputs + kY,
                                    kResults + kX, kResults + kW, kSums};

/// x, w and y as inputs, and the bias; then as results, and the sums.
TEST(ConvCall, APrimitiveTakesItsResultFromTheResults) {
  const std::array<char, kCallTensors> of_call = {'x', 'w', 'y', 'b', 'X', 'W', 'Y', 's'};
  using Operands = std::array<char, kOperands>;
  EXPECT_EQ(OperandsOf(Primitive::kForward, of_call), (Operands{'x', 'w', 'Y'}));
  EXPECT_EQ(OperandsOf(Primitive::kBackwardData, of_call), (Operands{'X', 'w', 'y'}));
  EXPECT_EQ(OperandsOf(Primitive::kBackwardFilter, of_call), (Operands{'x', 'W', 'y'}));
}

TEST(ConvCall, DimsAndChoicesTellTheProblem) {
  const Problem problem = OddProblem(DataType::kMLFloat16);
  EXPECT_TRUE(ProblemOf(CallOf(problem, kGradient)) == problem);
  EXPECT_TRUE(ProblemOf(CallOf(problem, {kInputs + kX, kInputs + kW, kResults + kY})) == problem);
}

TEST(ConvCall, ItsPrimitivesAreItsResults) {
  cuda::OpTask call = CallOf(OddProblem(DataType::kMLFloat16), kGradient);
  call.tensors[kResults + kW].accumulate = true;
  call.tensors[kInputs + kX].data = reinterpret_cast<void*>(std::uintptr_t{2});
  const std::vector<Task> tasks = TasksOf(call);
  ASSERT_EQ(tasks.size(), 2U);
  const Task& data = tasks[0];
  EXPECT_EQ(data.primitive, Primitive::kBackwardData);
  EXPECT_FALSE(data.accumulate);
  EXPECT_EQ(data.problem.x_strides, ChannelsLastStrides(DimsOf(data.problem, kX)));
  EXPECT_EQ(data.problem.w_strides, ContiguousStrides(DimsOf(data.problem, kW)));
  EXPECT_EQ(data.alignment, (std::array<int, kOperands>{16, 16, 16}));
  const Task& filter = tasks[1];
  EXPECT_EQ(filter.primitive, Primitive::kBackwardFilter);
  EXPECT_TRUE(filter.accumulate);
  EXPECT_EQ(filter.problem.x_strides, ContiguousStrides(DimsOf(filter.problem, kX)));
  EXPECT_EQ(filter.alignment, (std::array<int, kOperands>{2, 16, 16}));
  EXPECT_EQ(SharedOf(call), kY);
}

TEST(ConvCall, ABiasIsAddedToAndOfNothingThereAreNoPrimitives) {
  Problem problem = OddProblem(DataType::kMLFloat16);
  const std::vector<int> forward = {kInputs + kX, kInputs + kW, kBiasInput, kResults + kY};
  const std::vector<Task> tasks = TasksOf(CallOf(problem, forward));
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].primitive, Primitive::kForward);
  EXPECT_TRUE(tasks[0].accumulate);
  problem.batch = 0;
  EXPECT_TRUE(TasksOf(CallOf(problem, forward)).empty());
  EXPECT_TRUE(TasksOf(CallOf(problem, kGradient)).empty());
}

TEST(ConvCall, TheDescriptionNamesTheAttributes) {
  const cuda::OpTask call = CallOf(
      OddProblem(DataType::kMLFloat16), {kInputs + kX, kInputs + kW, kInputs + kY, kResults + kW});
  EXPECT_EQ(
      Describe(call),
      "Op, X MLFloat16 [5, 14, 31, 32], W MLFloat16 [22, 7, 4, 3], dY MLFloat16 [5, 22, 17, 18], "
      "dW MLFloat16 [22, 7, 4, 3] channels last, strides [6, 7], pads [9, 12, 10, 13], dilations "
      "[8, 11], group 2");
}

/// Takes some workspace, and can leave partial sums.
class SummingPlan final : public SharingPlan {
 public:
  explicit SummingPlan(std::size_t workspace) : workspace_(workspace) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }
  [[nodiscard]] std::int64_t PartialSumRows(int operand) const override {
    return operand == kY ? 4 : 0;
  }
  Status RunShared(const internal::Launch& launch, const Shared& shared) override {
    end_ = static_cast<std::byte*>(launch.workspace) + workspace_;
    sums_ = shared.partial_sums;
    return Internal("it is not run");
  }

  /// Where the workspace of the last run ended, and its partial sums.
  [[nodiscard]] const void* end() const { return end_; }
  [[nodiscard]] const void* sums() const { return sums_; }

 private:
  std::size_t workspace_;
  const void* end_ = nullptr;
  const void* sums_ = nullptr;
};

CallParts PartsOf(std::shared_ptr<SummingPlan> plan, std::size_t limit) {
  CallParts parts;
  parts.limit = limit;
  parts.parts.push_back({.primitive = Primitive::kBackwardFilter, .plan = std::move(plan)});
  return parts;
}

/// Partial sums lie before the workspace of who leaves them.
TEST(ConvCallPlan, KeepsToALimitThatItsPartsKeepTo) {
  constexpr std::size_t kPart = 1000;
  for (const std::size_t limit : {kPart, kNoLimit}) {
    const auto part = std::make_shared<SummingPlan>(kPart);
    CallParts parts = PartsOf(part, limit);
    parts.sums = BiasSums{};
    parts.sums->to = TensorRef(DataType::kFloat, nullptr, Dims{8}, Strides{1});
    CallPlan plan(std::move(parts));
    EXPECT_LE(plan.workspace(), limit);
    if (limit != kNoLimit) {
      continue;
    }
    std::array<std::byte, 4096> workspace{};
    std::array<void*, kCallTensors> operands{};
    const Status status = plan.Run({.operands = operands, .workspace = workspace.data()});
    EXPECT_EQ(status.message(), "it is not run");
    EXPECT_EQ(part->sums(), workspace.data());
    EXPECT_EQ(part->end(), workspace.data() + plan.workspace());
  }
}

/// A limit may be any number of bytes.
TEST(ConvCallPlan, TakesNoMoreThanItsPart) {
  EXPECT_EQ(CallPlan(PartsOf(std::make_shared<SummingPlan>(100), 100)).workspace(), 100U);
}

}  // namespace
}  // namespace gradsmith::conv
