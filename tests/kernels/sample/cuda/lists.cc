#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/host_number.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"
#include "cuda/run_op.h"
#include "sample/descend_step.h"
#include "sample/kernels.h"
#include "sample/operands.h"

namespace gradsmith::sample {

namespace {

using enum operands::Descend::Operand;

/// DescendPlan runs a step of one parameter. A task has two scalars: the momentum, and the rate,
/// which is 0 where the rate lies on the device.
class DescendPlan final : public internal::Plan {
 public:
  explicit DescendPlan(const cuda::OpTask& task) : type_(task.lead().type) {
    const Dims& dims = task.lead().dims;
    step_.count = 1;
    step_.rank = dims.size();
    constexpr std::array kStrided = {kW, kDW, kV, kNewW, kNewV};
    for (int dim = 0; dim < dims.size(); ++dim) {
      step_.dims[dim] = dims[dim];
      step_.count *= dims[dim];
      for (std::size_t t = 0; t < kStrided.size(); ++t) {
        const TensorRef& tensor = task.tensors[kStrided[t]];
        step_.strides[t][dim] = tensor.present ? tensor.strides[dim] : 0;
      }
    }
  }

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    const Result<CUkernel> kernel = cuda::FindKernel(
        {&cuda::kImage_descend},
        type_ == DataType::kFloat ? "gradsmith_descend_f32" : "gradsmith_descend_f16");
    if (!kernel.ok()) {
      return kernel.status();
    }
    DescendStep step = step_;
    step.W = launch.operands[kW];
    step.dW = launch.operands[kDW];
    step.V = static_cast<const float*>(launch.operands[kV]);
    step.rate = static_cast<const float*>(launch.operands[kRate]);
    step.scale = static_cast<const float*>(launch.operands[kScale]);
    step.new_W = launch.operands[kNewW];
    step.new_V = static_cast<float*>(launch.operands[kNewV]);
    step.momentum = static_cast<float>(launch.scalars[0]);
    step.rate_on_host = static_cast<float>(launch.scalars[1]);
    const cuda::LaunchShape shape = {
        .blocks_x = static_cast<unsigned>(internal::CeilDivide(step.count, kDescendThreads)),
        .threads = kDescendThreads};
    return cuda::Launch(*kernel, shape, launch.stream, step);
  }

 private:
  DataType type_;
  DescendStep step_;
};

constexpr std::array<cuda::Implementation, 1> kTable = {
    {{.name = "own", .takes_all = true, .build = &cuda::BuildAs<DescendPlan>}}};
constexpr cuda::FamilyOnCuda kFamily = {.table = kTable};

}  // namespace

Status Descend::RunCuda(
    const Context& context,
    const Attributes& attributes,
    const Inputs& inputs,
    const Outputs& outputs) {
  const std::optional<double> rate = internal::NumberOnHost(*inputs.rate);
  const ConstTensorRef* const rate_on_device = rate ? nullptr : inputs.rate;
  for (std::size_t i = 0; i < inputs.W.size(); ++i) {
    cuda::OpTask task = cuda::MakeOpTask(
        operands::Descend::kOp, &inputs.W[i], &inputs.dW[i], &inputs.V[i], rate_on_device,
        &inputs.scale[i], &outputs.new_W[i], &outputs.new_V[i]);
    task.scalars.push_back(attributes.momentum);
    task.scalars.push_back(rate.value_or(0));
    if (Status status = cuda::RunOp(context, kFamily, task); !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace gradsmith::sample
