#include "array.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "errors.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

std::string Subject(const char* op, const char* name) {
  return std::string(op) + ": " + name;
}

std::optional<DataType> FindType(dlpack::ElementType type) {
  if (type.lanes != 1) {
    return std::nullopt;
  }
  if (type.code == dlpack::kBfloat && type.bits == 16) {
    return DataType::kBFloat16;
  }
  if (type.code != dlpack::kFloat) {
    return std::nullopt;
  }
  switch (type.bits) {
    case 16:
      return DataType::kMLFloat16;
    case 32:
      return DataType::kFloat;
    case 64:
      return DataType::kDouble;
    default:
      return std::nullopt;
  }
}

std::string TypeText(dlpack::ElementType type) {
  constexpr const char* kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string name = type.code < std::size(kNames) ? kNames[type.code] : "unknown type";
  return name + std::to_string(type.bits);
}

/// The type of a struct-style format such as "f" or "<d"; none where it is another, or big-endian.
std::optional<DataType> FindType(std::string_view format) {
  if (!format.empty() && std::string_view("@=<").find(format.front()) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  if (format == "f") {
    return DataType::kFloat;
  }
  if (format == "d") {
    return DataType::kDouble;
  }
  if (format == "e") {
    return DataType::kMLFloat16;
  }
  return std::nullopt;
}

std::optional<Device> FindDevice(dlpack::Device device) {
  switch (device.type) {
    case dlpack::kCpu:
    case dlpack::kCudaHost:
      return Device{Backend::kCpu, 0};
    case dlpack::kCuda:
    case dlpack::kCudaManaged:
      return Device{Backend::kCuda, device.index};
    default:
      return std::nullopt;
  }
}

Strides ElementStrides(const Py_buffer& view, const Dims& dims, const char* op, const char* name) {
  Strides strides;
  if (view.strides == nullptr) {  // ctypes says that it is dense by saying nothing
    return ContiguousStrides(dims);
  }
  for (int i = 0; i < view.ndim; ++i) {
    if (view.strides[i] % view.itemsize != 0) {
      RaiseValueError(
          Subject(op, name) + " has a stride of " + std::to_string(view.strides[i]) +
          " bytes at dimension " + std::to_string(i) + "; expected a multiple of its elements' " +
          std::to_string(view.itemsize));
    }
    strides.push_back(view.strides[i] / view.itemsize);
  }
  return strides;
}

}  // namespace

void RaiseElementType(const char* op, const char* name, const std::string& got) {
  RaiseTypeError(
      Subject(op, name) + " holds " + got +
      "; expected float, double, MLFloat16 (half) or BFloat16");
}

dlpack::ElementType ToElementType(DataType type) {
  return {
      .code = type == DataType::kBFloat16 ? dlpack::kBfloat : dlpack::kFloat,
      .bits = static_cast<std::uint8_t>(8 * SizeOf(type))};
}

Array FromTensor(const dlpack::Tensor& tensor, bool is_writable, const char* op, const char* name) {
  const std::optional<DataType> type = FindType(tensor.type);
  if (!type) {
    RaiseElementType(op, name, TypeText(tensor.type));
  }
  const std::optional<Device> device = FindDevice(tensor.device);
  if (!device) {
    RaiseTypeError(
        Subject(op, name) + " is on a device of DLPack type " + std::to_string(tensor.device.type) +
        "; expected the CPU or CUDA");
  }
  const auto rank = static_cast<std::size_t>(tensor.rank);
  const Dims dims(std::span<const std::int64_t>(tensor.dims, rank));
  const Strides strides = tensor.strides == nullptr
                              ? ContiguousStrides(dims)
                              : Strides(std::span<const std::int64_t>(tensor.strides, rank));
  Array array;
  void* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  array.ref = TensorRef(*type, data, dims, strides, *device);
  array.is_writable = is_writable;
  return array;
}

Array FromCapsule(nb::object capsule, const char* op, const char* name) {
  constexpr const char* kVersioned = "dltensor_versioned";
  constexpr const char* kUnversioned = "dltensor";
  Array array;
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned) != 0) {
    const auto* managed = static_cast<const dlpack::ManagedTensorVersioned*>(
        PyCapsule_GetPointer(capsule.ptr(), kVersioned));
    if (managed->version.major != dlpack::kMajorVersion) {
      RaiseTypeError(
          Subject(op, name) + " speaks DLPack " + std::to_string(managed->version.major) +
          "; expected DLPack " + std::to_string(dlpack::kMajorVersion));
    }
    array = FromTensor(managed->tensor, (managed->flags & dlpack::kReadOnly) == 0, op, name);
  } else if (PyCapsule_IsValid(capsule.ptr(), kUnversioned) != 0) {
    const auto* managed = static_cast<const dlpack::ManagedTensor*>(
        PyCapsule_GetPointer(capsule.ptr(), kUnversioned));
    array = FromTensor(managed->tensor, true, op, name);
  } else {
    RaiseTypeError(
        Subject(op, name) + ": __dlpack__ returned " + ReprOf(capsule) +
        "; expected a capsule of DLPack");
  }
  array.owner = std::move(capsule);
  return array;
}

std::optional<Array>
FromBuffer(nb::handle object, std::optional<DataType> type, const char* op, const char* name) {
  auto view = std::make_unique<Py_buffer>();
  // NumPy composes the format anew each time, so it is asked for only where it is needed.
  const int flags = PyBUF_STRIDED_RO | (type ? 0 : PyBUF_FORMAT);
  if (PyObject_GetBuffer(object.ptr(), view.get(), flags) != 0) {
    ClearError();
    return std::nullopt;
  }
  Array array;
  array.buffer.reset(view.release());
  const Py_buffer& buffer = *array.buffer;
  if (!type) {
    type = FindType(std::string_view(buffer.format == nullptr ? "B" : buffer.format));
  }
  if (!type) {
    const nb::object dtype = nb::getattr(object, "dtype", nb::none());
    const nb::object what = dtype.is_none() ? nb::object(nb::str(buffer.format)) : dtype;
    RaiseElementType(op, name, TextOf(nb::str(what)));
  }
  Dims dims;
  for (int i = 0; i < buffer.ndim; ++i) {
    dims.push_back(buffer.shape[i]);
  }
  array.ref = TensorRef(*type, buffer.buf, dims, ElementStrides(buffer, dims, op, name));
  array.is_writable = buffer.readonly == 0;
  return array;
}

}  // namespace gradsmith::python
