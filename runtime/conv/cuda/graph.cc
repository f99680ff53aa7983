#include "conv/cuda/graph.h"

#include <array>
#include <utility>
#include <vector>

#include "cuda/descriptor.h"

namespace gradsmith::conv {

namespace {

using cuda::Descriptor;
using cuda::DescriptorBuilder;

/// Half and bf16 are summed in float.
cudnnDataType_t ComputeType(DataType type) {
  return type == DataType::kDouble ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

Result<Descriptor> MakeConvolution(const Problem& problem) {
  IntList strides;
  IntList dilations;
  IntList begins;
  IntList ends;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    strides.push_back(problem.axes[i].stride);
    dilations.push_back(problem.axes[i].dilation);
    begins.push_back(problem.axes[i].pad_begin);
    ends.push_back(problem.axes[i].pad_end);
  }
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  return DescriptorBuilder(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "the convolution descriptor")
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, ComputeType(problem.type))
      .SetRaw(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{problem.spatial_rank})
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, begins)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, ends)
      .Finalize();
}

/// The names that the graph API has for a primitive's attributes.
struct Attributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution;
  std::array<cudnnBackendAttributeName_t, kOperands> operands;
  cudnnBackendAttributeName_t alpha;
  cudnnBackendAttributeName_t beta;
};

Attributes AttributesOf(Primitive primitive) {
  switch (primitive) {
    case Primitive::kForward:
      break;
    case Primitive::kBackwardData:
      return {
          CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Primitive::kBackwardFilter:
      return {
          CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
           CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  return {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

/// Scaling factors are double where the computation is.
void SetFactor(
    DataType type,
    cudnnBackendAttributeName_t attribute,
    double factor,
    DescriptorBuilder* builder) {
  const auto narrow = static_cast<float>(factor);
  if (type == DataType::kDouble) {
    builder->SetRaw(attribute, CUDNN_TYPE_DOUBLE, 1, &factor);
  } else {
    builder->SetRaw(attribute, CUDNN_TYPE_FLOAT, 1, &narrow);
  }
}

Result<Descriptor> MakeOperation(const Task& task, const std::vector<Descriptor>& parts) {
  const Attributes attributes = AttributesOf(task.primitive);
  DescriptorBuilder builder(attributes.operation, std::string(ToString(task.primitive)));
  for (const Operand operand : {kX, kW, kY}) {
    builder.Set(attributes.operands.at(operand), parts[operand]);
  }
  builder.Set(attributes.convolution, parts[kOperands]);
  SetFactor(task.problem.type, attributes.alpha, 1, &builder);
  SetFactor(task.problem.type, attributes.beta, task.accumulate ? 1 : 0, &builder);
  return builder.Finalize();
}

}  // namespace

Result<cuda::OperationGraph> MakeGraph(const cuda::GraphTarget& target, const Task& task) {
  std::vector<Descriptor> parts;
  for (const Operand operand : {kX, kW, kY}) {
    Result<Descriptor> tensor = cuda::MakeTensor(
        {.uid = operand,
         .type = task.problem.type,
         .dims = DimsOf(task.problem, operand),
         .strides = StridesOf(task.problem, operand),
         .alignment = task.alignment.at(operand)});
    if (!tensor.ok()) {
      return tensor.status();
    }
    parts.push_back(std::move(*tensor));
  }
  Result<Descriptor> convolution = MakeConvolution(task.problem);
  if (!convolution.ok()) {
    return convolution.status();
  }
  parts.push_back(std::move(*convolution));
  Result<Descriptor> operation = MakeOperation(task, parts);
  if (!operation.ok()) {
    return operation.status();
  }
  std::vector<Descriptor> operations;
  operations.push_back(std::move(*operation));
  return cuda::FinalizeGraph(target, std::move(parts), std::move(operations), {kX, kW, kY});
}

}  // namespace gradsmith::conv
