#include "batch_norm/cuda/graph.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/descriptor.h"

namespace gradsmith::batch_norm {

namespace {

using cuda::Descriptor;
using cuda::DescriptorBuilder;

/// Virtual tensors, behind the operands: what ReLU was given, and the gradient of that.
constexpr int kNormalized = backward::kOperands;
constexpr int kPassed = kNormalized + 1;
constexpr int kTensors = kPassed + 1;

/// A descriptor for each operand, in their order; those of absent ones are empty.
using Tensors = std::vector<Descriptor>;

/// Batch normalization by the saved statistics.
Result<Descriptor> Normalize(const Tensors& tensors) {
  const cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM;
  const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_INFERENCE;
  return DescriptorBuilder(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, "norm-forward")
      .SetRaw(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode)
      .SetRaw(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase)
      .Set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, tensors[backward::kX])
      .Set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, tensors[backward::kSavedMean])
      .Set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, tensors[backward::kSavedInvStd])
      .Set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, tensors[backward::kScale])
      .Set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, tensors[backward::kB])
      .Set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, tensors[kNormalized])
      .Finalize();
}

Result<Descriptor> ReluBackward(const Tensors& tensors) {
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_RELU_BWD;
  Result<Descriptor> relu =
      DescriptorBuilder(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "ReLU")
          .SetRaw(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
          .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
          .Finalize();
  if (!relu.ok()) {
    return relu;
  }
  return DescriptorBuilder(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "ReLU-backward")
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, *relu)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, tensors[backward::kDY])
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors[kNormalized])
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, tensors[kPassed])
      .Finalize();
}

/// The gradients of batch normalization from that of what it gave.
Result<Descriptor> NormBackward(const Tensors& tensors, int dY) {
  const cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM;
  return DescriptorBuilder(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, "norm-backward")
      .SetRaw(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode)
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, tensors[backward::kX])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, tensors[backward::kSavedMean])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, tensors[backward::kSavedInvStd])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, tensors[dY])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, tensors[backward::kScale])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, tensors[backward::kDScale])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, tensors[backward::kDBias])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, tensors[backward::kDX])
      .Finalize();
}

Result<std::vector<Descriptor>> MakeOperations(const Tensors& tensors, bool has_relu) {
  std::vector<Result<Descriptor>> made;
  if (has_relu) {
    made.push_back(Normalize(tensors));
    made.push_back(ReluBackward(tensors));
  }
  made.push_back(NormBackward(tensors, has_relu ? kPassed : backward::kDY));
  std::vector<Descriptor> operations;
  for (Result<Descriptor>& operation : made) {
    if (!operation.ok()) {
      return operation.status();
    }
    operations.push_back(std::move(*operation));
  }
  return operations;
}

/// MadeTensors are the tensors of a graph, and the numbers of those in memory.
struct MadeTensors {
  Tensors tensors = Tensors(kTensors);
  std::vector<std::int64_t> uids;

  Status Add(const StagedForm& form, int uid, DataType type, const Dims& dims) {
    const bool is_virtual = uid >= kNormalized;
    Result<Descriptor> tensor = cuda::MakeTensor(
        {.uid = uid,
         .type = type,
         .dims = dims,
         .strides = DenseStrides(dims, form.channels_last),
         .is_virtual = is_virtual});
    if (!tensor.ok()) {
      return tensor.status();
    }
    tensors.at(uid) = std::move(*tensor);
    if (!is_virtual) {
      uids.push_back(uid);
    }
    return {};
  }
};

Result<MadeTensors> MakeTensors(const StagedForm& form) {
  const Dims large = Expanded(XOf(form.inner).dims);
  Dims small = Dims::Filled(large.size(), 1);
  small[1] = large[1];
  MadeTensors made;
  for (int i = 0; i < backward::kOperands; ++i) {
    const TensorRef& operand = form.inner.tensors[i];
    if (!operand.present) {
      continue;
    }
    if (Status status = made.Add(form, i, operand.type, IsPerElement(operand) ? large : small);
        !status.ok()) {
      return status;
    }
  }
  if (ActivationOf(form.inner) == Activation::kNone) {
    return made;
  }
  // An engine is found where the gradient that ReLU passes on has the type of dY.
  for (const int uid : {kNormalized, kPassed}) {
    if (Status status = made.Add(form, uid, XOf(form.inner).type, large); !status.ok()) {
      return status;
    }
  }
  return made;
}

}  // namespace

Result<cuda::OperationGraph> MakeGraph(const cuda::GraphTarget& target, const StagedForm& form) {
  Result<MadeTensors> made = MakeTensors(form);
  if (!made.ok()) {
    return made.status();
  }
  const bool has_relu = ActivationOf(form.inner) == Activation::kRelu;
  Result<std::vector<Descriptor>> operations = MakeOperations(made->tensors, has_relu);
  if (!operations.ok()) {
    return operations.status();
  }
  return cuda::FinalizeGraph(
      target, std::move(made->tensors), std::move(*operations), std::move(made->uids));
}

}  // namespace gradsmith::batch_norm
