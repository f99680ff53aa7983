#include "conv/onednn/search_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "conv/onednn/convolution.h"
#include "conv/primitives.h"
#include "conv/trial_data.h"
#include "core/candidate_name.h"
#include "core/rounding.h"

namespace gradsmith::conv {

namespace {

using internal::Candidate;
using internal::Plan;
using internal::Rejection;

constexpr const char* kOwn = "own/gemm";

/// The bias as our own kernels take it; absent where there is none.
ConstTensorRef BiasOf(const Task& task, const void* data) {
  if (!task.bias) {
    return {};
  }
  const Dims dims = DimsOf(task.problem, ResultOf(task.primitive));
  return {DataType::kFloat, data, Dims{dims[1]}};
}

void RunOwnTask(const Context& context, const Task& task, std::span<void* const> operands) {
  const ConstTensorRef bias = BiasOf(task, operands[kBias]);
  RunOwn(
      context, task.primitive, task.problem, {operands[kX], operands[kW], operands[kY]},
      task.bias ? &bias : nullptr);
}

/// Runs our own kernel.
class OwnPlan final : public Plan {
 public:
  explicit OwnPlan(const Task& task) : task_(task) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    RunOwnTask(*launch.context, task_, launch.operands);
    return {};
  }

 private:
  Task task_;
};

/// Whether our own kernel is the first to be taken: oneDNN's take longer to be made than such a
/// problem takes, and are no quicker.
bool OwnIsFirst(const Task& task) {
  constexpr double kFew = 1e4;
  return ProductsOf(task) < kFew;
}

/// How far a result may be from our own kernel's, which sums floats as well.
double Allowed(const Task& task, bool allow_reduced_accuracy) {
  constexpr double kLess = 5;
  return internal::AllowedOfStrictFloat(TermsOf(task)) * (allow_reduced_accuracy ? kLess : 1);
}

/// RangesOf returns what x, w, y and the bias are filled from.
std::array<internal::UniformRange, kOperands + 1> RangesOf(const Task& task, TrialData data) {
  std::array<internal::UniformRange, kOperands + 1> ranges{};
  for (const Operand operand : {kX, kW, kY}) {
    if (operand != ResultOf(task.primitive)) {
      const bool is_factor = operand == FactorOf(task.primitive);
      ranges.at(operand) =
          is_factor ? RangeOfFactor(data, TermsOf(task)) : RangeOfData(data, DataType::kFloat);
    }
  }
  return ranges;
}

}  // namespace

CpuSearchSpace::CpuSearchSpace(
    const Context& context,
    const Task& task,
    int threads,
    const internal::SearchPolicy& policy)
    : context_(context),
      task_(task),
      threads_(threads),
      is_deterministic_(policy.deterministic || policy.mode == SearchMode::kDefault),
      allow_reduced_accuracy_(policy.allow_reduced_accuracy) {}

std::string CpuSearchSpace::Describe() const {
  return conv::Describe(task_) + ", on the CPU with " + std::to_string(threads_) +
         (threads_ == 1 ? " thread" : " threads");
}

std::vector<Candidate> CpuSearchSpace::List(int batch, std::vector<Rejection>* rejections) {
  if ((batch == 0) == OwnIsFirst(task_)) {
    return {{.id = kOwn, .engine = kOwn}};
  }
  std::vector<Candidate> candidates = ListOneDnn(task_, threads_, rejections);
  for (Candidate& candidate : candidates) {
    candidate.id = internal::NameOfVariant(kOneDnn, candidate.id);
    candidate.engine = internal::NameOfVariant(kOneDnn, candidate.engine);
  }
  return candidates;
}

Result<std::unique_ptr<Plan>> CpuSearchSpace::Build(const std::string& id) {
  if (id == kOwn) {
    return std::unique_ptr<Plan>(std::make_unique<OwnPlan>(task_));
  }
  const std::optional<std::string> variant = internal::VariantOf(kOneDnn, id);
  return variant ? BuildOneDnnPlan(task_, threads_, *variant)
                 : InvalidArgument("'" + id + "' is no candidate on the CPU");
}

template <typename Call>
auto CpuSearchSpace::InTrial(const Call& try_it) -> decltype(try_it(std::declval<cpu::Trial&>())) {
  try {
    if (!trial_) {
      std::vector<ConstTensorRef> tensors;
      for (const Operand operand : {kX, kW, kY}) {
        tensors.emplace_back(
            DataType::kFloat, nullptr, DimsOf(task_.problem, operand),
            StridesOf(task_.problem, operand));
      }
      tensors.push_back(BiasOf(task_, nullptr));
      trial_.emplace(
          context_, tensors, ResultOf(task_.primitive),
          [this](std::span<void* const> operands) { RunOwnTask(context_, task_, operands); });
    }
    return try_it(*trial_);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("no memory to try candidates in");
  }
}

Result<double> CpuSearchSpace::Check(Plan& plan) {
  if (dynamic_cast<const OwnPlan*>(&plan) != nullptr) {
    return 0.0;  // what others are compared with
  }
  return InTrial([&](cpu::Trial& trial) {
    Result<double> largest = 0.0;
    for (const TrialData data : DataOf(allow_reduced_accuracy_)) {
      trial.Refill(RangesOf(task_, data));
      const Result<double> found =
          trial.Check(plan, Allowed(task_, allow_reduced_accuracy_), is_deterministic_);
      if (!found.ok()) {
        largest = found.status().WithPrefix(PrefixOf(data));
        break;
      }
      largest = std::max(*largest, *found);
    }
    trial.Refill(RangesOf(task_, TrialData::kUsual));
    return largest;
  });
}

/// A call takes milliseconds where it has many products.
bool CpuSearchSpace::MayTakeMilliseconds() const {
  constexpr double kProducts = 1e8;
  return ProductsOf(task_) > kProducts;
}

Result<double> CpuSearchSpace::Time(Plan& plan) {
  return InTrial([&](cpu::Trial& trial) { return trial.Time(plan); });
}

}  // namespace gradsmith::conv
