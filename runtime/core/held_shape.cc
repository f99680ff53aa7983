#include "core/held_shape.h"

#include <cstdint>
#include <string>

#include "core/tensor_memory.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

std::string Expected(const TensorSpec& spec) {
  return "; expected the dims of " + std::string(spec.shape_of) + ", " +
         std::string(spec.shape_text);
}

Status CheckIsVector(const TensorSpec& spec, const ConstTensorRef& tensor) {
  const std::string name(spec.name);
  if (tensor.type != DataType::kInt64) {
    return InvalidArgument(
        name + " has type " + std::string(ToString(tensor.type)) + "; expected int64");
  }
  if (tensor.rank() != 1 || tensor.dims.too_long()) {
    return InvalidArgument(
        name + " has shape " + ToString(tensor.dims) + ", rank " + std::to_string(tensor.rank()) +
        "; expected a vector with the dims of " + std::string(spec.shape_of));
  }
  if (tensor.dims[0] > kMaxRank) {
    return InvalidArgument(
        name + " holds " + Counted(tensor.dims[0], "number") + "; expected at most " +
        std::to_string(kMaxRank) + ", the dims of " + std::string(spec.shape_of));
  }
  return CheckMemory(spec.name, tensor);
}

}  // namespace

Status CheckOnHost(const TensorSpec& spec, const ConstTensorRef& tensor) {
  if (tensor.device == Device{}) {
    return {};
  }
  return InvalidArgument(
      std::string(spec.name) + " is on " + std::string(ToString(tensor.device.backend)) + " " +
      std::to_string(tensor.device.index) + "; expected cpu 0: the dims of " +
      std::string(spec.shape_of) + " are read on the host");
}

Result<Dims> HeldShape(const TensorSpec& spec, const ConstTensorRef& tensor) {
  if (Status status = CheckOnHost(spec, tensor); !status.ok()) {
    return status;
  }
  if (Status status = CheckIsVector(spec, tensor); !status.ok()) {
    return status;
  }
  Dims dims;
  for (std::int64_t i = 0; i < tensor.dims[0]; ++i) {
    dims.push_back(static_cast<const std::int64_t*>(tensor.data)[i * tensor.strides[0]]);
  }
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return InvalidArgument(
          std::string(spec.name) + " holds " + ToString(dims) + ", negative at " +
          std::to_string(i) + Expected(spec));
    }
  }
  return dims;
}

}  // namespace gradsmith::internal
