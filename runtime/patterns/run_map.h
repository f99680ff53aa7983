#ifndef GRADSMITH_PATTERNS_RUN_MAP_H_
#define GRADSMITH_PATTERNS_RUN_MAP_H_

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "core/stub.h"
#include "cuda/op_task.h"
#include "gradsmith/context.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "patterns/map.h"

/// How an operator that has formulas is run: by the pattern `map`, on tensors in the operator's
/// order. Those that are absent may be missing at the end.
namespace gradsmith::internal {

/// RunMapOnCpu computes a map on the context's threads.
template <typename Functor, std::size_t kScalars>
Status RunMapOnCpu(
    const Context& context,
    const std::array<double, kScalars>& scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  return [&]<std::size_t... S, std::size_t... I, std::size_t... O>(
             std::index_sequence<S...>, std::index_sequence<I...>, std::index_sequence<O...>) {
    return MapOnCpu<Functor>(
        context, {scalars[S]...}, ArgumentAt(inputs, I)..., ArgumentAt(outputs, O)...);
  }(std::make_index_sequence<kScalars>(), std::make_index_sequence<Functor::kInputs>(),
         std::make_index_sequence<Functor::kOutputs>());
}

/// RunMapOnCuda computes a map with the operator's kernels, which are in `op.image`; in a build
/// without CUDA it returns an error.
Status RunMapOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    std::span<const double> scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

/// RunMapWithSumsOnCuda does so where outputs may be sums.
Status RunMapWithSumsOnCuda(
    const Context& context,
    const cuda::OpInfo& op,
    std::span<const double> scalars,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_RUN_MAP_H_
