#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conv/cuda/search_space.h"
#include "conv/kernels.h"
#include "conv/problem.h"
#include "core/selection.h"
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

Status CheckTensors(const Context& context, const std::array<const TensorRef*, 3>& tensors) {
  constexpr std::array<const char*, 3> kNames = {"x", "w", "y"};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorRef& tensor = *tensors.at(i);
    const std::string name = kNames.at(i);
    if (!tensor.present || tensor.data == nullptr) {
      return InvalidArgument(name + " is absent; it is required");
    }
    if (tensor.type != tensors[0]->type) {
      return InvalidArgument(
          name + " has type " + std::string(ToString(tensor.type)) + "; expected that of x, " +
          std::string(ToString(tensors[0]->type)));
    }
    if (tensor.device != context.device() || context.backend() != Backend::kCuda) {
      return InvalidArgument(name + " is on another device than the context; expected one on CUDA");
    }
    if (tensor.rank() != tensors[0]->rank() || tensor.rank() < 3 || tensor.rank() > 5) {
      return InvalidArgument(
          name + " has " + std::to_string(tensor.rank()) + " dims; expected 3 to 5, as many as x");
    }
    if (NumElements(tensor.dims) <= 0) {
      return InvalidArgument(name + " has dims " + ToString(tensor.dims) + "; expected 1 or more");
    }
  }
  return {};
}

}  // namespace

class ConvAlgorithms::Impl {
 public:
  Impl(
      const Context& context,
      const cuda::DeviceInfo& device,
      const conv::Task& task,
      const std::array<void*, conv::kOperands>& operands)
      : context_(context),
        device_(device),
        operands_(operands),
        space_(
            device,
            static_cast<CUstream>(context.options().stream),
            task,
            operands,
            cuda::PolicyOf(context, task.problem.type)) {}

  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] const cuda::DeviceInfo& device() const { return device_; }

  std::vector<ConvAlgorithm> List() {
    std::vector<Rejection> rejections;
    std::vector<ConvAlgorithm> algorithms;
    for (int batch = 0; batch < space_.batches(); ++batch) {
      for (const Candidate& candidate : space_.List(batch, &rejections)) {
        algorithms.push_back(
            {.name = candidate.id,
             .workspace = candidate.workspace,
             .deterministic = candidate.notes.deterministic,
             .tf32 = candidate.notes.tf32,
             .runtime_compiled = candidate.notes.runtime_compiled,
             .reduced_precision =
                 candidate.notes.reduced_precision || candidate.notes.down_converts});
      }
    }
    return algorithms;
  }

  Result<Plan*> PlanOf(const std::string& name) {
    std::unique_ptr<Plan>& plan = plans_[name];
    if (plan == nullptr) {
      Result<std::unique_ptr<Plan>> built = space_.Build(name);
      if (!built.ok()) {
        return built.status();
      }
      plan = std::move(*built);
    }
    return plan.get();
  }

  Result<ConvAlgorithm> Best(SearchMode mode, std::size_t limit) {
    internal::SearchPolicy policy = cuda::PolicyOf(context_, space_.type());
    policy.mode = mode;
    policy.workspace_limit = std::min(policy.workspace_limit, limit);
    Result<internal::Selected> selected = internal::Select(space_, policy);
    if (!selected.ok()) {
      return selected.status();
    }
    const internal::Decision& decision = selected->decision;
    plans_[decision.id] = std::move(selected->plan);
    for (ConvAlgorithm& algorithm : List()) {
      if (algorithm.name == decision.id) {
        algorithm.workspace = decision.workspace;
        algorithm.milliseconds = decision.milliseconds;
        return algorithm;
      }
    }
    return Internal("the algorithm that was chosen is not listed: " + decision.id);
  }

  Status Run(const std::string& name) {
    const Result<Plan*> plan = PlanOf(name);
    if (!plan.ok()) {
      return plan.status();
    }
    Result<internal::WorkspaceArena::Lease> lease =
        context_.workspace_arena()->Take((*plan)->workspace());
    if (!lease.ok()) {
      return lease.status();
    }
    return (*plan)->Run({context_.options().stream, operands_, lease->address});
  }

 private:
  Context context_;
  const cuda::DeviceInfo& device_;
  std::array<void*, conv::kOperands> operands_;
  conv::ConvSearchSpace space_;
  std::map<std::string, std::unique_ptr<Plan>> plans_;
};

ConvAlgorithms::ConvAlgorithms(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConvAlgorithms::ConvAlgorithms(ConvAlgorithms&&) noexcept = default;
ConvAlgorithms& ConvAlgorithms::operator=(ConvAlgorithms&&) noexcept = default;
ConvAlgorithms::~ConvAlgorithms() = default;

Result<std::size_t> LargestWorkspace(const Context& context, const WorkspaceLimit& limit) {
  if (!limit.of_free_memory) {
    return limit.bytes;
  }
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

Result<ConvAlgorithms> ConvAlgorithms::Prepare(
    const Context& context,
    ConvPrimitive primitive,
    const TensorRef& x,
    const TensorRef& w,
    const TensorRef& y,
    const ConvGeometry& geometry) {
  if (Status status = CheckTensors(context, {&x, &w, &y}); !status.ok()) {
    return status;
  }
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
  const Result<const cuda::DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  conv::Task task;
  task.primitive = ToPrimitive(primitive);
  task.problem = conv::WithStrides(*problem, x.strides, w.strides, y.strides);
  const std::array<void*, conv::kOperands> operands = {x.data, w.data, y.data};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    task.alignment.at(i) = cuda::AlignmentClass(operands.at(i), x.type);
  }
  return ConvAlgorithms(std::make_unique<Impl>(context, **device, task, operands));
}

Result<std::vector<ConvAlgorithm>> ConvAlgorithms::List() {
  const cuda::CurrentDevice current(impl_->device());
  return impl_->List();
}

Result<std::size_t> ConvAlgorithms::WorkspaceOf(const std::string& name) {
  const cuda::CurrentDevice current(impl_->device());
  const Result<Plan*> plan = impl_->PlanOf(name);
  if (!plan.ok()) {
    return plan.status();
  }
  return (*plan)->workspace();
}

Result<ConvAlgorithm> ConvAlgorithms::Best(SearchMode mode, const WorkspaceLimit& limit) {
  const cuda::CurrentDevice current(impl_->device());
  const Result<std::size_t> largest = LargestWorkspace(impl_->context(), limit);
  return largest.ok() ? impl_->Best(mode, *largest) : largest.status();
}

Result<std::string> ConvAlgorithms::Run(
    std::span<const std::string> names,
    std::vector<ConvAttempt>* attempts) {
  const cuda::CurrentDevice current(impl_->device());
  std::string reasons;
  for (const std::string& name : names) {
    Status status = impl_->Run(name);
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

}  // namespace gradsmith
