#include "patterns/map.h"

#include <cstdlib>
#include <string>

namespace gradsmith::internal {

namespace {

/// A dim of the index space, with all tensors' strides along it.
struct MapDim {
  std::int64_t size = 1;
  std::array<std::int64_t, kMaxMapTensors> strides{};
};

/// The stride of a tensor along a dim of the space that has `rank` dims; zero where it is
/// broadcast.
std::int64_t StrideAlong(const TensorRef& tensor, int rank, int dim) {
  const int own = dim - (rank - tensor.dims.size());
  return own < 0 || tensor.dims[own] == 1 ? 0 : tensor.strides[own];
}

bool AreOne(const MapDim& outer, const MapDim& inner, int tensors) {
  for (int t = 0; t < tensors; ++t) {
    if (outer.strides[t] != inner.strides[t] * inner.size) {
      return false;
    }
  }
  return true;
}

/// Whether a tensor has dims of its own along no other than the output's.
bool IsBroadcast(const Dims& dims, const Dims& output) {
  const int ahead = output.size() - dims.size();
  for (int dim = 0; dim < dims.size(); ++dim) {
    if (ahead < 0 || (dims[dim] != 1 && dims[dim] != output[ahead + dim])) {
      return false;
    }
  }
  return true;
}

}  // namespace

Status CheckMap(std::span<const TensorRef> tensors, int inputs) {
  const TensorRef& output = tensors[inputs];
  for (int t = 0; t < static_cast<int>(tensors.size()); ++t) {
    const TensorRef& tensor = tensors[t];
    const std::string name =
        t < inputs ? "input " + std::to_string(t) : "output " + std::to_string(t - inputs);
    if (tensor.type != output.type) {
      return Internal(
          name + " has type " + std::string(ToString(tensor.type)) + "; expected " +
          std::string(ToString(output.type)) + ", as the first output");
    }
    const bool fits =
        t < inputs ? IsBroadcast(tensor.dims, output.dims) : tensor.dims == output.dims;
    if (!fits) {
      return WrongDims(
          name, tensor.dims, output.dims, t < inputs ? ", or what is broadcast to it" : "");
    }
  }
  return {};
}

MapTask MapTaskOf(std::span<const TensorRef> tensors, int inputs, std::span<const double> scalars) {
  const int count = static_cast<int>(tensors.size());
  const TensorRef& output = tensors[inputs];
  const int rank = output.dims.size();
  MapTask task;
  std::ranges::copy(scalars, task.scalars);
  task.count = NumElements(output.dims);
  for (int t = 0; t < count; ++t) {
    task.tensors[t] = tensors[t].data;
    task.accumulate |= t >= inputs && tensors[t].accumulate ? 1U << (t - inputs) : 0U;
  }
  if (task.count == 0) {
    return task;
  }
  std::array<MapDim, kMaxMapRank> dims;
  int used = 0;
  for (int dim = 0; dim < rank; ++dim) {
    if (output.dims[dim] == 1) {
      continue;
    }
    dims[used].size = output.dims[dim];
    for (int t = 0; t < count; ++t) {
      dims[used].strides[t] = StrideAlong(tensors[t], rank, dim);
    }
    ++used;
  }
  std::stable_sort(dims.begin(), dims.begin() + used, [inputs](const MapDim& a, const MapDim& b) {
    return std::abs(a.strides[inputs]) > std::abs(b.strides[inputs]);
  });
  for (int dim = 0; dim < used; ++dim) {
    const bool joins = task.rank > 0 && AreOne(dims[task.rank - 1], dims[dim], count);
    if (joins) {
      dims[task.rank - 1].size *= dims[dim].size;
      dims[task.rank - 1].strides = dims[dim].strides;
    } else {
      dims[task.rank++] = dims[dim];
    }
  }
  for (int dim = 0; dim < task.rank; ++dim) {
    task.dims[dim] = dims[dim].size;
    for (int t = 0; t < count; ++t) {
      task.strides[t][dim] = dims[dim].strides[t];
    }
  }
  return task;
}

}  // namespace gradsmith::internal
