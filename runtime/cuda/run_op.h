#ifndef GRADSMITH_CUDA_RUN_OP_H_
#define GRADSMITH_CUDA_RUN_OP_H_

#include "cuda/implementation.h"
#include "cuda/op_task.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"

/// How a call of an operator runs on CUDA, the same for all families. A family says how its
/// operators are computed (a table of Implementation) and turns a call into an OpTask; what
/// operands each has (OpInfo) is in its operands.h, which the generator makes of its kernels.h. One
/// with a single kernel of its own is this much:
///
///     class SigmoidPlan final : public internal::Plan {
///      public:
///       explicit SigmoidPlan(const OpTask& task) : task_(task) {}
///       [[nodiscard]] std::size_t workspace() const override { return 0; }
///       Status Run(const internal::Launch& launch) override;  // launches the kernel
///      private:
///       OpTask task_;
///     };
///
///     constexpr std::array<Implementation, 1> kTable = {{
///         {.name = "own", .takes_all = true, .build = &BuildAs<SigmoidPlan>}}};
///     constexpr FamilyOnCuda kFamily = {.table = kTable};
///
///     Status SigmoidGrad::RunCuda(
///         const Context& context, const Attributes&, const Inputs& inputs, const Outputs& outputs)
///         {
///       return RunOp(
///           context, kFamily,
///           MakeOpTask(operands::SigmoidGrad::kOp, inputs.dY, inputs.Y, outputs.dX));
///     }
///
/// Where a table has more rows, each has a `fit`, and the family says what trials are filled with
/// and what candidates are compared with; batch_norm/cuda/family.cc is an example.
namespace gradsmith::cuda {

/// RunOp computes a task on the context's device and stream. It owns all that is not mathematics:
/// it opens the device, returns where nothing is to be written, stages outputs that an
/// implementation does not add to, finds the plan that this thread holds for the task or searches
/// for one, checks what it finds, leases workspace, records calls that come back as CUDA graphs,
/// lets a stream be captured into the caller's own, and explains errors.
///
/// Of a table with one row, and for trivial tasks, the row (the one that takes all) is run without
/// search, check and decision file.
Status RunOp(const Context& context, const FamilyOnCuda& family, const OpTask& task);

/// FindChoice returns the plan that was chosen by a key, to which it adds the call's policies, or
/// the one that a search of `maker`'s space chooses now. It is what RunOp finds plans by; families
/// whose plans are composed find their parts by it.
Result<internal::Plan*>
FindChoice(const TaskCall& call, internal::ProblemKey* key, const internal::SpaceMaker& maker);

/// BuildAs is the `build` of an implementation whose plan is made of the task alone.
template <typename PlanOfTask>
Result<std::unique_ptr<internal::Plan>>
BuildAs(const Target& /*target*/, const OpTask& task, const std::string& /*variant*/) {
  return std::unique_ptr<internal::Plan>(std::make_unique<PlanOfTask>(task));
}

/// WithoutImage is the error of operators whose library was built where there was no nvcc.
inline Status WithoutImage() {
  return Unsupported("the operator's library was built without nvcc, for the CPU alone");
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_RUN_OP_H_
