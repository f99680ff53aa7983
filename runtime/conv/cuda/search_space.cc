#include "conv/cuda/search_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "conv/cuda/depthwise.h"
#include "conv/cuda/direct.h"
#include "conv/cuda/graph.h"
#include "conv/cuda/parts.h"
#include "conv/cuda/preference.h"
#include "cuda/exactness.h"

namespace gradsmith::conv {

namespace {

/// A filter's gradient sums so many products that what tensor cores cut off counts. Depthwise ones
/// do without them.
bool MayCutOff(const Task& task) {
  return IsFilter(task) && !HasGroupOfEachChannel(task.problem);
}

/// Reduced accuracy is that of what PyTorch and cuDNN's own search take.
cuda::Exactness
ExactnessOf(const internal::SearchPolicy& policy, DataType type, bool keeps_promise) {
  if (IsInTf32(policy, type)) {
    return cuda::Exactness::kTf32;
  }
  if (policy.allow_reduced_accuracy) {
    return cuda::Exactness::kUsual;
  }
  return keeps_promise ? cuda::Exactness::kPromised : cuda::Exactness::kStrict;
}

}  // namespace

bool IsInTf32(const internal::SearchPolicy& policy, DataType type) {
  return policy.allow_tf32 && type == DataType::kFloat;
}

Result<double> CheckResult(
    cuda::Trial& trial,
    const cuda::DeviceInfo& device,
    const Task& task,
    const std::array<void*, kOperands>& operands,
    const void* before,
    TrialData data,
    const Demands& demands,
    const internal::SearchPolicy& policy) {
  const SampleSize size = data == TrialData::kUsual ? SampleSize::kLarge : SampleSize::kSmall;
  if (Status status = CheckSample(
          device, trial.stream(), task.primitive, task.problem, operands[kX], operands[kW],
          operands[kY], before, trial.difference(), size);
      !status.ok()) {
    return status;
  }
  const Result<cuda::Difference> difference = trial.Read();
  if (!difference.ok()) {
    return difference.status();
  }
  // By chance, or where terms cancel, a few are further off.
  if (constexpr int kFew = 50; demands.rounds_once && data == TrialData::kUsual &&
                               difference->rounded_twice > difference->compared / kFew) {
    return Unsupported("rounds what it adds twice");
  }
  const DataType type = task.problem.type;
  const double terms = TermsOf(task);
  if (Status status = cuda::CheckDifference(
          *difference, type, terms, ExactnessOf(policy, type, demands.keeps_promise),
          MayCutOff(task) ? terms : 0);
      !status.ok()) {
    return status;
  }
  return cuda::RelativeError(*difference);
}

ConvSearchSpace::ConvSearchSpace(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const Task& task,
    const std::array<void*, kOperands>& operands,
    internal::SearchPolicy policy)
    : ConvTrialSpace(device, stream, std::move(policy)),
      task_(task),
      operands_(operands),
      demands_{
          .rounds_once = task.accumulate && SizeOf(task.problem.type) == 2,
          .keeps_promise = task.problem.type == DataType::kFloat && !this->policy().allow_tf32 &&
                           !this->policy().allow_reduced_accuracy},
      forms_(FormsOf(task)),
      parts_to_count_(PartsToCount(task)),
      parts_(MustBeCut() ? parts_to_count_ : PartsForCopies()),
      part_(parts_ > 1 ? MakeSpaceOfPart(parts_, /*is_first=*/true) : nullptr) {}

std::int64_t ConvSearchSpace::PartsForCopies() const {
  std::size_t images = 0;
  std::size_t filters = 0;
  for (const OperandForm& form : forms_) {
    images = std::max(images, CopyBytes(form, kX) + CopyBytes(form, kY));
    filters = std::max(filters, CopyBytes(form, kW));
  }
  filters += PartSumsBytes(task_);
  // Beside its copies a kernel may need some workspace.
  const std::size_t room = policy().workspace_limit / 4 * 3;
  return room > filters ? PartsWithin(task_, images, room - filters) : 1;
}

std::unique_ptr<ConvSearchSpace> ConvSearchSpace::MakeSpaceOfPart(std::int64_t parts, bool is_first)
    const {
  return std::make_unique<ConvSearchSpace>(
      device(), stream(), PartOf(task_, parts, is_first), operands_, policy());
}

const WindowWork* ConvSearchSpace::WindowOf(const OperandForm& form) {
  auto found = windows_.find(form.name);
  if (found == windows_.end()) {
    found = windows_.emplace(form.name, MakeWindowWork(device(), form.inner, policy().allow_tf32))
                .first;
  }
  const std::optional<WindowWork>& work = found->second;
  return work ? &*work : nullptr;
}

Result<const cuda::OperationGraph*> ConvSearchSpace::GraphOf(const OperandForm& form) {
  if (const auto found = graphs_.find(form.name); found != graphs_.end()) {
    return &found->second;
  }
  const Result<cuda::CudnnHandle*> handle = cuda::ThreadState::OfThisThread(device()).handle();
  if (!handle.ok()) {
    return handle.status();
  }
  Result<cuda::OperationGraph> graph = MakeGraph(cuda::GraphTarget(*handle), form.inner);
  if (!graph.ok()) {
    return graph.status();
  }
  return &graphs_.emplace(form.name, std::move(*graph)).first->second;
}

std::vector<cuda::TrialOperand> ConvSearchSpace::TrialOperands() const {
  std::vector<cuda::TrialOperand> operands;
  for (const Operand operand : {kX, kW, kY}) {
    const bool is_output = operand == ResultOf(task_.primitive);
    ConstTensorRef tensor(
        task_.problem.type, operands_.at(operand), DimsOf(task_.problem, operand),
        StridesOf(task_.problem, operand));
    tensor.accumulate = is_output && task_.accumulate;
    operands.push_back({tensor, is_output});
  }
  return operands;
}

std::vector<cuda::UniformRange> ConvSearchSpace::ValuesOf(TrialData data) const {
  std::vector<cuda::UniformRange> values(kOperands);
  for (const Operand operand : {kX, kW, kY}) {
    if (operand != ResultOf(task_.primitive)) {
      const bool is_factor = operand == FactorOf(task_.primitive);
      values.at(operand) =
          is_factor ? RangeOfFactor(data, TermsOf(task_)) : RangeOfData(data, task_.problem.type);
    }
  }
  return values;
}

std::vector<TriedTask> ConvSearchSpace::TriedTasks() const {
  return {{&task_, {kX, kW, kY}}};
}

Result<double> ConvSearchSpace::Compare(const internal::Plan& /*plan*/, TrialData data) {
  std::array<void*, kOperands> operands{};
  std::ranges::copy(trial().operands(), operands.begin());
  return CheckResult(
      trial(), device(), task_, operands, trial().Before(ResultOf(task_.primitive)), data, demands_,
      policy());
}

bool ConvSearchSpace::MayTakeMilliseconds() const {
  return IsLongRunning(task_);
}

/// Sums of millions of terms in float keep what is promised by chance, of plain kernels by less.
bool ConvSearchSpace::LeavesSlow() const {
  return demands_.keeps_promise && MayTakeMilliseconds() && !lists_slow_;
}

bool ConvSearchSpace::Relax(bool lacks_memory) {
  const bool was_strict = demands_.rounds_once || demands_.keeps_promise;
  if (lacks_memory) {
    const bool lists_more =
        was_strict && MayTakeMilliseconds() && !std::exchange(lists_slow_, true);
    return std::exchange(demands_.rounds_once, false) || lists_more;
  }
  demands_ = {.rounds_once = false, .keeps_promise = false};
  return was_strict;
}

}  // namespace gradsmith::conv
