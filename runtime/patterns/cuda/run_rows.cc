#include "patterns/run_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/plan.h"
#include "core/stub.h"
#include "cuda/implementation.h"
#include "cuda/run_op.h"
#include "patterns/cuda/rows.h"
#include "patterns/rows_info.h"

namespace gradsmith::internal {

namespace {

static_assert(kMaxRowsArguments <= cuda::kMaxOperands);

constexpr std::uintptr_t kSomewhere = 256;
constexpr auto kAbsent = static_cast<std::size_t>(-1);

/// A pass of a plan, and where each of its operands comes from: the task's operands, or the
/// temporaries behind them.
struct PlannedPass {
  std::unique_ptr<Plan> plan;
  std::vector<std::size_t> operands;
};

/// Runs passes one after the other. The workspace begins with their temporaries.
class PassesPlan final : public Plan {
 public:
  PassesPlan(std::vector<PlannedPass> passes, std::vector<std::size_t> offsets, std::size_t bytes)
      : passes_(std::move(passes)), offsets_(std::move(offsets)), bytes_(bytes) {}

  [[nodiscard]] std::size_t workspace() const override {
    std::size_t most = 0;
    for (const PlannedPass& pass : passes_) {
      most = std::max(most, pass.plan->workspace());
    }
    return bytes_ + most;
  }

  Status Run(const Launch& launch) override {
    auto* memory = static_cast<std::byte*>(launch.workspace);
    for (const PlannedPass& pass : passes_) {
      std::array<void*, kMaxRowsTensors> operands{};
      for (std::size_t i = 0; i < pass.operands.size(); ++i) {
        const std::size_t from = pass.operands[i];
        if (from < launch.operands.size()) {
          operands[i] = launch.operands[from];
        } else if (from != kAbsent) {
          operands[i] = memory + offsets_[from - launch.operands.size()];
        }
      }
      Launch own = launch;
      own.operands = std::span(operands).first(pass.operands.size());
      own.workspace = memory + bytes_;
      if (Status status = pass.plan->Run(own); !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  std::vector<PlannedPass> passes_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_;
};

/// The places of a pass's operands among the task's and the temporaries behind them.
std::vector<std::size_t>
PlacesOf(const RowsPasses& passes, std::size_t pass, std::span<const TensorRef> spread) {
  const RowsPass& one = passes.passes[pass];
  const auto inputs = static_cast<std::size_t>(passes.inputs);
  const auto outputs = static_cast<std::size_t>(passes.outputs);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < spread.size(); ++i) {
    const bool is_output = i >= static_cast<std::size_t>(one.counts.all_inputs());
    const auto argument = static_cast<std::size_t>(one.operands[i].argument);
    std::size_t place = is_output ? inputs + argument : argument;
    if (!is_output && argument >= inputs) {
      place += outputs;
    }
    places.push_back(spread[i].present ? place : kAbsent);
  }
  return places;
}

/// The task's choices are how many dims each name has.
Result<std::unique_ptr<Plan>>
BuildPasses(const cuda::Target& target, const cuda::OpTask& task, const std::string& /*variant*/) {
  const cuda::RowsPassesInfo& info = *task.op->rows;
  const std::span<const TensorRef> tensors(
      task.tensors.begin(), static_cast<std::size_t>(task.operands()));
  const auto inputs = static_cast<std::size_t>(task.inputs());
  const std::vector<ConstTensorRef> in(tensors.begin(), tensors.begin() + task.inputs());
  const NamedDims dims(task.lead().dims, std::span(task.choices.begin(), task.choices.end()));
  PassOperands operands(info.passes, dims, in, tensors.subspan(inputs));
  operands.Place(std::bit_cast<void*>(kSomewhere));  // what counts of it is the alignment
  std::vector<PlannedPass> planned;
  for (std::size_t pass = 0; pass < info.kernels.size(); ++pass) {
    if (!operands.IsWanted(pass)) {
      continue;
    }
    const PassOperands::Tensors found = operands.Spread(pass);
    const std::span<const TensorRef> spread(found.begin(), found.end());
    const cuda::RowsKernels& kernels = info.kernels[pass];
    Result<std::unique_ptr<Plan>> plan =
        cuda::MakeRowsPlan({target.device}, *task.op->image, kernels, spread, operands.Axes(pass));
    if (!plan.ok()) {
      return plan.status();
    }
    planned.push_back({std::move(*plan), PlacesOf(info.passes, pass, spread)});
  }
  std::vector<std::size_t> offsets;
  offsets.reserve(info.passes.temporaries.size());
  for (int i = 0; i < static_cast<int>(info.passes.temporaries.size()); ++i) {
    offsets.push_back(operands.offset(i));
  }
  return std::unique_ptr<Plan>(
      std::make_unique<PassesPlan>(std::move(planned), std::move(offsets), operands.bytes()));
}

constexpr std::array<cuda::Implementation, 1> kTable = {
    {{.name = "own/rows", .adds = true, .takes_all = true, .build = &BuildPasses}}};
constexpr cuda::FamilyOnCuda kRows = {.table = kTable};

}  // namespace

Status RunRowsOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    const RowsCall& call,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  if (op.image == nullptr) {
    return cuda::WithoutImage();
  }
  cuda::OpTask task;
  task.op = &op;
  for (int i = 0; i < call.passes.inputs; ++i) {
    cuda::AddOperand(ArgumentAt(inputs, static_cast<std::size_t>(i)), &task);
  }
  for (int i = 0; i < call.passes.outputs; ++i) {
    cuda::AddOperand(ArgumentAt(outputs, static_cast<std::size_t>(i)), &task);
  }
  for (const std::int64_t length : call.dims.lengths()) {
    task.choices.push_back(length);
  }
  for (const double scalar : call.scalars) {
    task.scalars.push_back(scalar);
  }
  return cuda::RunOp(context, kRows, task);
}

}  // namespace gradsmith::internal
