#include "batch_norm/cuda/own.h"
#include "batch_norm/kernels.h"
#include "cuda/selected_run.h"
#include "cuda/workspace_arena.h"

/// The two ops on CUDA.
namespace gradsmith::batch_norm {

namespace {

CUstream StreamOf(const Context& context) {
  return static_cast<CUstream>(context.options().stream);
}

}  // namespace

Status BatchNormalization::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<const cuda::DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const cuda::CurrentDevice current(**device);
  Result<internal::WorkspaceArena::Lease> lease =
      context.workspace_arena()->Take(ForwardWorkspace(**device, *inputs.X));
  if (!lease.ok() || context.preparing()) {
    return lease.status();
  }
  return Forward(**device, StreamOf(context), attributes, inputs, outputs, lease->address);
}

Status BatchNormalizationGrad::RunCuda(
    const Context& context,
    const Attributes& /*attributes*/,
    const Inputs& inputs,
    const Outputs& outputs) {
  const Result<const cuda::DeviceInfo*> device = cuda::OpenCall(context);
  if (!device.ok()) {
    return device.status();
  }
  const cuda::CurrentDevice current(**device);
  Result<internal::WorkspaceArena::Lease> lease =
      context.workspace_arena()->Take(BackwardWorkspace(**device, *inputs.X));
  if (!lease.ok() || context.preparing()) {
    return lease.status();
  }
  return Backward(**device, StreamOf(context), inputs, outputs, lease->address);
}

}  // namespace gradsmith::batch_norm
