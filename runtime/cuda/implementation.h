#ifndef GRADSMITH_CUDA_IMPLEMENTATION_H_
#define GRADSMITH_CUDA_IMPLEMENTATION_H_

#include <cuda.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate.h"
#include "core/plan.h"
#include "core/problem_key.h"
#include "core/uniform_range.h"
#include "cuda/device.h"
#include "cuda/op_task.h"
#include "cuda/selected_run.h"
#include "cuda/thread_state.h"
#include "cuda/trial.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/types.h"

/// What a family of operators tells of itself. run_op.h says how it is used.
namespace gradsmith::cuda {

/// Target is what a task is computed on.
struct Target {
  const DeviceInfo& device;
  /// This thread's cuDNN; null for implementations that do not need it.
  CudnnHandle* cudnn = nullptr;
};

/// Variants are the ways in which an implementation can compute a task, best first. Each is a
/// candidate whose id and engine are what follows the implementation's name; they are empty where
/// there is one way alone.
using Variants = std::vector<internal::Candidate>;

/// OneWay is that of an implementation with a single way.
inline Variants OneWay(std::size_t workspace, const internal::CandidateNotes& notes = {}) {
  return {{.id = {}, .engine = {}, .notes = notes, .workspace = workspace}};
}

/// Implementation is one row of a family's table.
struct Implementation {
  /// For example "own/rows", "graph", "legacy/spatial": the first part of its candidates' names.
  std::string_view name;
  Needs needs = Needs::kDriver;
  /// Whether outputs with `accumulate` are added to. Where not, they are staged, and neither Fit
  /// nor Build ever sees one.
  bool adds = false;
  /// Whether every task fits, empty tensors included. Such a one is run where there is nothing to
  /// choose, and trusted where there is no memory to try it in.
  bool takes_all = false;
  /// Fit returns the ways to compute a task. The error says why it does not fit.
  Result<Variants> (*fit)(const Target& target, const OpTask& task) = nullptr;
  /// Build makes the plan of one of the ways that Fit has returned, now or in another process.
  Result<std::unique_ptr<internal::Plan>> (
      *build)(const Target& target, const OpTask& task, const std::string& variant) = nullptr;
};

/// Comparison is the other opinion that candidates are held to. `task` has a trial's memory and
/// scalars.
struct Comparison {
  /// Compare returns the largest error of the outputs that the trial's last run left, relative to
  /// their norms; one that is too large is an error. `usual` asks for what is in general use only.
  Result<double> (*compare)(Trial& trial, const OpTask& task, bool usual) = nullptr;
  /// HurtfulFills returns how often the inputs are to be filled with data that hurts, and
  /// FillHurtful is the `number`-th time. Null where there is no such data.
  int (*hurtful_fills)(const OpTask& task) = nullptr;
  Status (*fill_hurtful)(CUstream stream, const OpTask& task, int number) = nullptr;
  /// What hurts, for messages: "constants or large means".
  std::string_view what_hurts = {};
};

struct FamilyOnCuda;

/// TaskCall is a task where it is called: its device is open, and current.
struct TaskCall {
  const Context& context;
  const DeviceInfo& device;
  const FamilyOnCuda& family;
  const OpTask& task;

  [[nodiscard]] DataType type() const { return task.lead().type; }
  [[nodiscard]] CUstream stream() const { return static_cast<CUstream>(context.options().stream); }
};

/// FamilyOnCuda is all that RunOp has to know of a family; a constant.
struct FamilyOnCuda {
  /// Best first. A table of one row needs nothing else: there is nothing to choose or to compare.
  std::span<const Implementation> table = {};
  /// What calls are refused without. An implementation may need more than its family.
  Needs needs = Needs::kDriver;
  /// Raised by whoever changes what remembered choices rely on: which candidates there are (our own
  /// kernels, detours, engines that are left out), what the name of one means, or how the family
  /// compares them.
  int revision = 1;
  /// Whether a task is so plain that the row which takes all is run without a choice.
  bool (*is_trivial)(const OpTask& task) = &HasEmptyOperand;
  /// What an operand holds in a trial.
  internal::UniformRange (*values)(const OpTask& task, int operand) = nullptr;
  const Comparison* comparison = nullptr;
  /// Instead of all that is above, but for `needs` and `revision`: returns a plan that is composed
  /// of others, where a call's outputs are chosen one by one and then computed together, as those
  /// of convolutions are. It searches by FindChoice (run_op.h), and keeps the plan in the thread's
  /// plans (thread_state.h) by the key, which holds all that the call and its context ask for but
  /// the exact limit of workspace, and to which it may add. The plan may be a BranchingPlan.
  Result<internal::Plan*> (*compose)(const TaskCall& call, internal::ProblemKey* key) = nullptr;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_IMPLEMENTATION_H_
