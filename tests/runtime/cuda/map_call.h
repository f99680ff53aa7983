#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_MAP_CALL_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_MAP_CALL_H_

#include <cstddef>
#include <string>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/kernel.h"
#include "gradsmith/ops.h"
#include "gradsmith/registry.h"
#include "runtime/cuda/gpu_tensor.h"

/// What tests of the pattern `map` on CUDA share.
namespace gradsmith::cuda {

/// RunOnGpu runs an operator that has one element type on the first GPU.
inline Status RunOnGpu(
    const std::string& op,
    DataType type,
    const std::vector<ConstTensorRef>& inputs,
    const std::vector<TensorRef>& outputs) {
  Registry registry;
  if (Status status = RegisterAll(registry); !status.ok()) {
    return status;
  }
  const Result<Kernel> kernel = Kernel::Create(registry, op, {type}, Backend::kCuda);
  ContextOptions options;
  options.device = {Backend::kCuda, 0};
  return kernel.ok() ? kernel->Run(Context(options), inputs, outputs) : kernel.status();
}

/// BroadcastPlace returns which element of a contiguous tensor of `own` dims is broadcast to the
/// i-th place of a tensor of `whole` dims: dims are aligned at the last.
inline std::size_t BroadcastPlace(const Sizes& own, const Sizes& whole, std::size_t i) {
  std::size_t place = 0;
  std::size_t stride = 1;
  for (std::size_t back = 1; back <= own.size(); ++back) {
    const auto size = static_cast<std::size_t>(own[own.size() - back]);
    const auto of_whole = static_cast<std::size_t>(whole[whole.size() - back]);
    place += (size == 1 ? 0 : i % of_whole) * stride;
    stride *= size;
    i /= of_whole;
  }
  return place;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_MAP_CALL_H_
