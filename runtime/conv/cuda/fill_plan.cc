#include "conv/cuda/fill_plan.h"

#include <cstddef>
#include <utility>

#include "conv/cuda/call.h"
#include "cuda/tensor_ops.h"

namespace gradsmith::conv {

namespace {

class FillPlan final : public internal::Plan {
 public:
  /// `call` has a bias, or an empty operand.
  FillPlan(const cuda::DeviceInfo& device, cuda::OpTask call)
      : device_(device), call_(std::move(call)) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    for (const Operand result : {kX, kW, kY}) {
      TensorRef tensor = call_.tensors[kResults + result];
      if (!tensor.present) {
        continue;
      }
      tensor.data = launch.operands[kResults + result];
      if (Status status = Fill(launch, tensor); !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  Status Fill(const internal::Launch& launch, const TensorRef& result) {
    const TensorRef& bias = call_.tensors[kBiasInput];
    if (!bias.present) {
      return result.accumulate ? Status() : cuda::FillTensor(device_, launch.stream, 0, result);
    }
    Strides strides = Strides::Filled(result.rank(), 0);
    strides[1] = bias.strides[0];
    const ConstTensorRef broadcast(
        bias.type, launch.operands[kBiasInput], result.dims, strides, bias.device);
    return cuda::CopyTensor(device_, launch.stream, broadcast, result);
  }

  const cuda::DeviceInfo& device_;
  cuda::OpTask call_;
};

}  // namespace

std::unique_ptr<internal::Plan> MakeFillPlan(
    const cuda::DeviceInfo& device,
    const cuda::OpTask& call) {
  const bool is_filled = call.tensors[kBiasInput].present || HasEmptyOperand(ProblemOf(call));
  return is_filled ? std::make_unique<FillPlan>(device, call) : nullptr;
}

}  // namespace gradsmith::conv
