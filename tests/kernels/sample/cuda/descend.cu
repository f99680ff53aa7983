#include "cuda/kernels/element.cuh"
#include "sample/descend_step.h"

namespace {

using gradsmith::sample::DescendStep;

/// A thread has an element. The rate is read when the kernel runs, where it lies on the device.
template <typename T>
__device__ __forceinline__ void Descend(const DescendStep& step) {
  const std::int64_t index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= step.count) {
    return;
  }
  std::int64_t offsets[5] = {};
  std::int64_t rest = index;
  for (int dim = step.rank - 1; dim >= 0; --dim) {
    for (int t = 0; t < 5; ++t) {
      offsets[t] += rest % step.dims[dim] * step.strides[t][dim];
    }
    rest /= step.dims[dim];
  }
  using gradsmith::cuda::Convert;
  const float rate = step.rate != nullptr ? *step.rate : step.rate_on_host;
  const float scale = step.scale != nullptr ? *step.scale : 1;
  const float gradient = Convert<float>(static_cast<const T*>(step.dW)[offsets[1]]);
  const float velocity = step.momentum * step.V[offsets[2]] + scale * gradient;
  const float before = Convert<float>(static_cast<const T*>(step.W)[offsets[0]]);
  static_cast<T*>(step.new_W)[offsets[3]] = Convert<T>(before - rate * velocity);
  if (step.new_V != nullptr) {
    step.new_V[offsets[4]] = velocity;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(gradsmith::sample::kDescendThreads)
    gradsmith_descend_f32(const __grid_constant__ gradsmith::sample::DescendStep step) {
  Descend<float>(step);
}

extern "C" __global__ void __launch_bounds__(gradsmith::sample::kDescendThreads)
    gradsmith_descend_f16(const __grid_constant__ gradsmith::sample::DescendStep step) {
  Descend<__half>(step);
}
