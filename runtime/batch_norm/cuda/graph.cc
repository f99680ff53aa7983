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

Result<Descriptor> MakeOperation(const std::vector<Descriptor>& tensors) {
  const cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM;
  return DescriptorBuilder(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, "norm-backward")
      .SetRaw(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode)
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, tensors[backward::kX])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, tensors[backward::kSavedMean])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, tensors[backward::kSavedInvStd])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, tensors[backward::kDY])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, tensors[backward::kScale])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, tensors[backward::kDScale])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, tensors[backward::kDBias])
      .Set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, tensors[backward::kDX])
      .Finalize();
}

}  // namespace

Result<cuda::OperationGraph> MakeGraph(const cuda::GraphTarget& target, const Form& form) {
  const Dims large = Expanded(XOf(form.inner).dims);
  Dims small = Dims::Filled(large.size(), 1);
  small[1] = large[1];
  std::vector<Descriptor> tensors;
  std::vector<std::int64_t> uids;
  for (int i = 0; i < backward::kOperands; ++i) {
    const TensorRef& operand = form.inner.tensors.at(i);
    const Dims& dims = IsLarge(operand) ? large : small;
    Result<Descriptor> tensor = cuda::MakeTensor(
        {.uid = i,
         .type = operand.type,
         .dims = dims,
         .strides = DenseStrides(dims, form.channels_last)});
    if (!tensor.ok()) {
      return tensor.status();
    }
    tensors.push_back(std::move(*tensor));
    uids.push_back(i);
  }
  Result<Descriptor> operation = MakeOperation(tensors);
  if (!operation.ok()) {
    return operation.status();
  }
  std::vector<Descriptor> operations;
  operations.push_back(std::move(*operation));
  return cuda::FinalizeGraph(target, std::move(tensors), std::move(operations), std::move(uids));
}

}  // namespace gradsmith::batch_norm
