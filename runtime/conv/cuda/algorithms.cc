#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "conv/cuda/search_space.h"
#include "conv/kernels.h"
#include "conv/merged_axes.h"
#include "conv/problem.h"
#include "core/candidate.h"
#include "core/exceptions.h"
#include "core/selection.h"
#include "core/tensor_memory.h"
#include "core/validate.h"
#include "cuda/alignment.h"
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/selected_run.h"
#include "cuda/workspace_arena.h"
#include "gradsmith/conv_algorithms.h"

namespace gradsmith {

namespace {

using internal::Candidate;
using internal::Plan;
using internal::Rejection;

constexpr double kPartOfFreeMemory = 0.9;

conv::Primitive ToPrimitive(ConvPrimitive primitive) {
  switch (primitive) {
    case ConvPrimitive::kForward:
      break;
    case ConvPrimitive::kBackwardData:
      return conv::Primitive::kBackwardData;
    case ConvPrimitive::kBackwardFilter:
      return conv::Primitive::kBackwardFilter;
  }
  return conv::Primitive::kForward;
}

constexpr std::array<const char*, conv::kOperands> kNames = {"x", "w", "y"};

using Tensors = std::array<TensorRef, conv::kOperands>;

/// What a convolution's tensors must have in common.
Status CheckTensors(const Context& context, const Tensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorRef& tensor = tensors.at(i);
    const std::string name = kNames.at(i);
    if (!tensor.present || tensor.data == nullptr) {
      return InvalidArgument(name + " is absent; it is required");
    }
    if (tensor.type != tensors[0].type) {
      return InvalidArgument(
          name + " has type " + std::string(ToString(tensor.type)) + "; expected that of x, " +
          std::string(ToString(tensors[0].type)));
    }
    if (tensor.device != context.device() || context.backend() != Backend::kCuda) {
      return InvalidArgument(name + " is on another device than the context; expected one on CUDA");
    }
    if (tensor.rank() != tensors[0].rank() || tensor.rank() < 3 || tensor.rank() > 5) {
      return InvalidArgument(
          name + " has " + std::to_string(tensor.rank()) + " dims; expected 3 to 5, as many as x");
    }
    if (NumElements(tensor.dims) == 0) {
      return InvalidArgument(name + " has dims " + ToString(tensor.dims) + "; expected 1 or more");
    }
  }
  return {};
}

/// The memory of all three, as ops check theirs.
Status CheckMemoryOf(const Tensors& tensors, conv::Operand result) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (Status status = internal::CheckMemory(kNames.at(i), tensors.at(i)); !status.ok()) {
      return status;
    }
  }
  const TensorRef& output = tensors.at(result);
  Status status = internal::CheckNotShared(kNames.at(result), output);
  for (std::size_t i = 0; status.ok() && i < tensors.size(); ++i) {
    if (i != result) {
      status = internal::CheckDisjoint(
          kNames.at(result), output, {"input", kNames.at(i)}, tensors.at(i));
    }
  }
  return status;
}

Status CheckAccumulate(const Tensors& tensors, conv::Operand result) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors.at(i).accumulate && i != result) {
      return InvalidArgument(
          std::string(kNames.at(i)) + " is to be added to; only " + kNames.at(result) +
          ", which is computed, can be");
    }
  }
  return {};
}

Status CheckArguments(const Context& context, const Tensors& tensors, conv::Operand result) {
  Status status = context.status();
  if (status.ok()) {
    status = CheckTensors(context, tensors);
  }
  if (status.ok()) {
    status = CheckMemoryOf(tensors, result);
  }
  if (status.ok()) {
    status = CheckAccumulate(tensors, result);
  }
  return status.ok() ? internal::CheckWorkspace(context) : status;
}

std::array<void*, conv::kOperands> AddressesOf(const Tensors& tensors) {
  return {tensors[0].data, tensors[1].data, tensors[2].data};
}

/// Passes another space on, and keeps what it lists: selection gives a candidate's name alone.
class RecordingSpace final : public internal::SearchSpace {
 public:
  explicit RecordingSpace(internal::SearchSpace& space) : space_(space) {}

  [[nodiscard]] const Candidate* Find(const std::string& id) const {
    const auto found = listed_.find(id);
    return found == listed_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] std::string Describe() const override { return space_.Describe(); }
  [[nodiscard]] int batches() const override { return space_.batches(); }
  std::vector<Candidate> List(int batch, std::vector<Rejection>* rejections) override {
    std::vector<Candidate> candidates = space_.List(batch, rejections);
    for (const Candidate& candidate : candidates) {
      listed_.emplace(candidate.id, candidate);
    }
    return candidates;
  }
  [[nodiscard]] bool IsSlowToList(int batch) const override { return space_.IsSlowToList(batch); }
  [[nodiscard]] bool IsPromising(int batch) const override { return space_.IsPromising(batch); }
  [[nodiscard]] bool IsQuickToTry(int batch) const override { return space_.IsQuickToTry(batch); }
  Result<std::unique_ptr<Plan>> Build(const std::string& id) override { return space_.Build(id); }
  Result<double> Check(Plan& plan) override { return space_.Check(plan); }
  bool Relax(bool lacks_memory) override { return space_.Relax(lacks_memory); }
  [[nodiscard]] bool LeavesSlow() const override { return space_.LeavesSlow(); }
  [[nodiscard]] bool MayTakeMilliseconds() const override { return space_.MayTakeMilliseconds(); }
  Result<double> Time(Plan& plan) override { return space_.Time(plan); }

 private:
  internal::SearchSpace& space_;
  std::map<std::string, Candidate> listed_;
};

ConvAlgorithm ToAlgorithm(const Candidate& candidate) {
  const internal::CandidateNotes& notes = candidate.notes;
  return {
      .name = candidate.id,
      .workspace = candidate.workspace,
      .deterministic = notes.deterministic,
      .tf32 = notes.tf32,
      .runtime_compiled = notes.runtime_compiled,
      .reduced_precision = notes.reduced_precision || notes.down_converts};
}

}  // namespace

class ConvAlgorithms::Impl {
 public:
  Impl(
      const Context& context,
      const cuda::DeviceInfo& device,
      const conv::Task& task,
      const Tensors& tensors)
      : context_(context),
        device_(device),
        task_(task),
        tensors_(tensors),
        space_(MakeSpace(cuda::PolicyOf(context, task.problem.type))) {}

  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] const cuda::DeviceInfo& device() const { return device_; }

  std::vector<ConvAlgorithm> List() {
    std::vector<Rejection> rejections;
    std::vector<ConvAlgorithm> algorithms;
    for (int batch = 0; batch < space_->batches(); ++batch) {
      for (const Candidate& candidate : space_->List(batch, &rejections)) {
        algorithms.push_back(ToAlgorithm(candidate));
      }
    }
    return algorithms;
  }

  Result<Plan*> PlanOf(const std::string& name) {
    std::shared_ptr<Plan>& plan = plans_[name];
    if (plan == nullptr) {
      Result<std::unique_ptr<Plan>> built = space_->Build(name);
      if (!built.ok()) {
        return built.status();
      }
      plan = std::move(*built);
    }
    return plan.get();
  }

  Result<ConvAlgorithm> Best(SearchMode mode, std::size_t limit) {
    internal::SearchPolicy policy = cuda::PolicyOf(context_, task_.problem.type);
    policy.mode = mode;
    policy.workspace_limit = std::min(policy.workspace_limit, limit);
    // A space of its own: what is asked of results goes by the mode, and the copies of the tensors
    // that kernels are tried on go with it.
    const std::unique_ptr<conv::ConvSearchSpace> space = MakeSpace(policy);
    RecordingSpace recording(*space);
    Result<internal::Selected> selected = internal::Select(recording, policy);
    if (!selected.ok()) {
      return selected.status();
    }
    const internal::Decision& decision = selected->decision;
    const Candidate* candidate = recording.Find(decision.id);
    if (candidate == nullptr) {
      return Internal("the algorithm that was chosen is not listed: " + decision.id);
    }
    plans_[decision.id] = std::move(selected->plan);
    ConvAlgorithm algorithm = ToAlgorithm(*candidate);
    algorithm.workspace = decision.workspace;
    algorithm.milliseconds = decision.milliseconds;
    return algorithm;
  }

  /// Addresses of the same shapes, or why the plans do not serve them.
  Result<Tensors> At(const ConvAddresses& addresses) const {
    Tensors tensors = tensors_;
    const std::array<void*, conv::kOperands> given = {addresses.x, addresses.w, addresses.y};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tensors.at(i).data = given.at(i);
    }
    if (Status status = CheckMemoryOf(tensors, conv::ResultOf(task_.primitive)); !status.ok()) {
      return status;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int alignment = cuda::AlignmentClass(given.at(i), task_.problem.type);
      if (alignment < task_.alignment.at(i)) {
        return InvalidArgument(
            std::string(kNames.at(i)) + " is aligned to " + std::to_string(alignment) +
            " bytes; expected " + std::to_string(task_.alignment.at(i)) +
            ", as when the algorithms were prepared");
      }
    }
    return tensors;
  }

  Result<std::string> Run(
      std::span<const std::string> names,
      const Tensors& tensors,
      std::vector<ConvAttempt>* attempts) {
    std::string reasons;
    for (const std::string& name : names) {
      Status status = RunOne(name, tensors);
      if (status.ok()) {
        return name;
      }
      reasons += "; " + name + ": " + status.message();
      if (attempts != nullptr) {
        attempts->push_back({name, std::move(status)});
      }
    }
    return Unsupported("none of " + std::to_string(names.size()) + " algorithms ran" + reasons);
  }

  [[nodiscard]] const Tensors& tensors() const { return tensors_; }

 private:
  [[nodiscard]] std::unique_ptr<conv::ConvSearchSpace> MakeSpace(
      const internal::SearchPolicy& policy) const {
    return std::make_unique<conv::ConvSearchSpace>(
        device_, static_cast<CUstream>(context_.options().stream), task_, AddressesOf(tensors_),
        policy);
  }

  Status RunOne(const std::string& name, const Tensors& tensors) {
    const Result<Plan*> plan = [&] {
      const cuda::RelaxedCapture relaxed;  // building may allocate
      return PlanOf(name);
    }();
    if (!plan.ok()) {
      return plan.status();
    }
    Result<internal::WorkspaceArena::Lease> lease =
        context_.workspace_arena()->Take((*plan)->workspace());
    if (!lease.ok()) {
      return lease.status();
    }
    if (lease->capturing) {
      cuda::ThreadState::OfThisThread(device_).Keep(**plan);
    }
    const std::array<void*, conv::kOperands> operands = AddressesOf(tensors);
    return (*plan)->Run(
        {static_cast<CUstream>(context_.options().stream), operands, lease->address});
  }

  Context context_;
  const cuda::DeviceInfo& device_;
  conv::Task task_;
  Tensors tensors_;
  std::unique_ptr<conv::ConvSearchSpace> space_;
  std::map<std::string, std::shared_ptr<Plan>> plans_;
};

namespace {

/// What is done before algorithms run: on the object's device, and without harm to a stream of
/// another's that is being captured.
struct Preparing {
  explicit Preparing(const cuda::DeviceInfo& device) : current(device) {}

  cuda::CurrentDevice current;
  cuda::RelaxedCapture relaxed;
};

/// With calls what a public function does with the prepared object.
template <typename Impl, typename Call>
std::invoke_result_t<Call> With(const std::unique_ptr<Impl>& impl, Call&& call) {
  return internal::CatchExceptions([&]() -> std::invoke_result_t<Call> {
    if (impl == nullptr) {
      return InvalidArgument("the algorithms were moved from");
    }
    if (Status status = cuda::CheckDriver(); !status.ok()) {
      return status;
    }
    return std::forward<Call>(call)();
  });
}

Result<std::size_t> PartOfFreeMemory(const Context& context) {
  const Result<const cuda::DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const cuda::CurrentDevice current(**device);
  std::size_t free = 0;
  std::size_t total = 0;
  if (Status status =
          cuda::ToStatus(cuda::Driver().cuMemGetInfo(&free, &total), "asking for free memory");
      !status.ok()) {
    return status;
  }
  return static_cast<std::size_t>(kPartOfFreeMemory * static_cast<double>(free));
}

/// The tensors' convolution, without addresses.
Result<conv::Task>
TaskOf(ConvPrimitive primitive, const Tensors& tensors, const ConvGeometry& geometry) {
  const auto& [x, w, y] = tensors;
  const conv::Attributes attributes{
      .strides = geometry.strides,
      .pads = geometry.pads,
      .dilations = geometry.dilations,
      .group = geometry.group};
  Result<conv::Problem> problem = conv::ConvolutionProblem(attributes, x, w);
  if (!problem.ok()) {
    return problem.status();
  }
  if (conv::DimsOf(*problem, conv::kW) != w.dims || conv::DimsOf(*problem, conv::kY) != y.dims) {
    return InvalidArgument(
        "w has dims " + ToString(w.dims) + " and y " + ToString(y.dims) + "; expected " +
        ToString(conv::DimsOf(*problem, conv::kW)) + " and " +
        ToString(conv::DimsOf(*problem, conv::kY)));
  }
  conv::Task task;
  task.primitive = ToPrimitive(primitive);
  task.problem = conv::WithMergedAxes(conv::WithStrides(*problem, x.strides, w.strides, y.strides));
  task.accumulate = tensors.at(conv::ResultOf(task.primitive)).accumulate;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    task.alignment.at(i) = cuda::AlignmentClass(tensors.at(i).data, x.type);
  }
  return task;
}

}  // namespace

ConvAlgorithms::ConvAlgorithms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConvAlgorithms::ConvAlgorithms(ConvAlgorithms&&) noexcept = default;
ConvAlgorithms& ConvAlgorithms::operator=(ConvAlgorithms&&) noexcept = default;
ConvAlgorithms::~ConvAlgorithms() = default;

Result<std::size_t> LargestWorkspace(const Context& context, const WorkspaceLimit& limit) {
  if (!limit.of_free_memory) {
    return limit.bytes;
  }
  return internal::CatchExceptions([&] { return PartOfFreeMemory(context); });
}

Result<ConvAlgorithms> ConvAlgorithms::Prepare(
    const Context& context,
    ConvPrimitive primitive,
    const TensorRef& x,
    const TensorRef& w,
    const TensorRef& y,
    const ConvGeometry& geometry) {
  return internal::CatchExceptions([&]() -> Result<ConvAlgorithms> {
    const Tensors tensors = {x, w, y};
    const conv::Operand result = conv::ResultOf(ToPrimitive(primitive));
    if (Status status = CheckArguments(context, tensors, result); !status.ok()) {
      return status;
    }
    Result<conv::Task> task = TaskOf(primitive, tensors, geometry);
    if (!task.ok()) {
      return task.status();
    }
    const Result<const cuda::DeviceInfo*> device = cuda::OpenCall(context);
    if (!device.ok()) {
      return device.status();
    }
    return ConvAlgorithms(std::make_unique<Impl>(context, **device, *task, tensors));
  });
}

Result<std::vector<ConvAlgorithm>> ConvAlgorithms::List() {
  return With(impl_, [&]() -> Result<std::vector<ConvAlgorithm>> {
    const Preparing preparing(impl_->device());
    return impl_->List();
  });
}

Result<std::size_t> ConvAlgorithms::WorkspaceOf(const std::string& name) {
  return With(impl_, [&]() -> Result<std::size_t> {
    const Preparing preparing(impl_->device());
    const Result<Plan*> plan = impl_->PlanOf(name);
    if (!plan.ok()) {
      return plan.status();
    }
    return (*plan)->workspace();
  });
}

Result<ConvAlgorithm> ConvAlgorithms::Best(SearchMode mode, const WorkspaceLimit& limit) {
  return With(impl_, [&]() -> Result<ConvAlgorithm> {
    const Preparing preparing(impl_->device());
    if (cuda::IsCapturing(static_cast<CUstream>(impl_->context().options().stream))) {
      return InvalidArgument(
          "no algorithm can be sought while the context's stream is captured into a CUDA graph; "
          "ask for the best one before");
    }
    const Result<std::size_t> largest = LargestWorkspace(impl_->context(), limit);
    return largest.ok() ? impl_->Best(mode, *largest) : largest.status();
  });
}

Result<std::string> ConvAlgorithms::Run(
    std::span<const std::string> names,
    std::vector<ConvAttempt>* attempts) {
  return With(impl_, [&] {
    const cuda::CurrentDevice current(impl_->device());
    return impl_->Run(names, impl_->tensors(), attempts);
  });
}

Result<std::string> ConvAlgorithms::Run(
    std::span<const std::string> names,
    const ConvAddresses& addresses,
    std::vector<ConvAttempt>* attempts) {
  return With(impl_, [&]() -> Result<std::string> {
    const Result<Tensors> tensors = impl_->At(addresses);
    if (!tensors.ok()) {
      return tensors.status();
    }
    const cuda::CurrentDevice current(impl_->device());
    return impl_->Run(names, *tensors, attempts);
  });
}

}  // namespace gradsmith
