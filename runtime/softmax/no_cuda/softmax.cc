#include "core/no_cuda/no_cuda.h"
#include "softmax/kernels.h"

/// The CUDA kernels of a build without them.
namespace gradsmith::softmax {

Status Softmax::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status SoftmaxGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status LogSoftmax::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

Status LogSoftmaxGrad::RunCuda(
    const Context& /*context*/,
    const Attributes& /*attributes*/,
    const Inputs& /*inputs*/,
    const Outputs& /*outputs*/) {
  return internal::NoCuda();
}

}  // namespace gradsmith::softmax
