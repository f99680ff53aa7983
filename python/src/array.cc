#include "array.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "errors.h"
#include "lock.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// No address space is larger.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56U;

std::string Subject(const char* op, const char* name) {
  return std::string(op) + ": " + name;
}

std::optional<DataType> FindType(dlpack::ElementType type) {
  if (type.lanes != 1) {
    return std::nullopt;
  }
  for (int i = 0; i < kDataTypeCount; ++i) {
    const dlpack::ElementType known = ToElementType(static_cast<DataType>(i));
    if (known.code == type.code && known.bits == type.bits) {
      return static_cast<DataType>(i);
    }
  }
  return std::nullopt;
}

std::string TypeText(dlpack::ElementType type) {
  constexpr const char* kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string name = type.code < std::size(kNames) ? kNames[type.code] : "unknown type";
  const std::string lanes = type.lanes == 1 ? "" : " in " + std::to_string(type.lanes) + " lanes";
  return name + std::to_string(type.bits) + lanes;
}

/// The type of a struct-style format such as "f" or "<q", whose letters say what elements are and
/// only together with the order of bytes how large; none where it is another, or big-endian.
std::optional<DataType> FindType(std::string_view format, Py_ssize_t item_size) {
  if (!format.empty() && std::string_view("@=<").find(format.front()) != std::string_view::npos) {
    format.remove_prefix(1);
  }
  if (format.size() != 1 || item_size < 1 || item_size > 8) {
    return std::nullopt;
  }
  dlpack::ElementType type{.bits = static_cast<std::uint8_t>(8 * item_size)};
  const auto is_one_of = [&](std::string_view letters) {
    return letters.find(format.front()) != std::string_view::npos;
  };
  if (is_one_of("efd")) {
    type.code = dlpack::kFloat;
  } else if (is_one_of("bhilqn")) {
    type.code = dlpack::kInt;
  } else if (is_one_of("BHILQN")) {
    type.code = dlpack::kUInt;
  } else if (is_one_of("?")) {
    type.code = dlpack::kBool;
  } else {
    return std::nullopt;
  }
  return FindType(type);
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
  RaiseTypeError(Subject(op, name) + " holds " + got + "; expected " + DataTypeNames());
}

dlpack::ElementType ToElementType(DataType type) {
  constexpr std::array<std::uint8_t, kDataTypeCount> kCodes = {
#define GRADSMITH_CODE(enumerator, type, name, dlpack_code, torch_type) dlpack_code,
      GRADSMITH_ELEMENT_TYPES(GRADSMITH_CODE)
#undef GRADSMITH_CODE
  };
  return {
      .code = kCodes.at(static_cast<std::size_t>(type)),
      .bits = static_cast<std::uint8_t>(8 * SizeOf(type))};
}

std::string DataTypeNames() {
  std::string names;
  for (int i = 0; i < kDataTypeCount; ++i) {
    if (i > 0) {
      names += i + 1 == kDataTypeCount ? " or " : ", ";
    }
    names += ToString(static_cast<DataType>(i));
  }
  return names;
}

namespace {

/// CheckTensor refuses what cannot be so, before anything that the tensor points to is read.
void CheckTensor(const dlpack::Tensor& tensor, const char* op, const char* name) {
  if (tensor.rank < 0 || tensor.rank > kMaxRank) {
    RaiseValueError(
        Subject(op, name) + " has " + std::to_string(tensor.rank) +
        " dimensions by DLPack; expected 0 to " + std::to_string(kMaxRank));
  }
  if (tensor.rank > 0 && tensor.dims == nullptr) {
    RaiseValueError(
        Subject(op, name) + " has no dims by DLPack; expected " + std::to_string(tensor.rank));
  }
  if (tensor.byte_offset > kMostBytes) {
    RaiseValueError(
        Subject(op, name) + " begins " + std::to_string(tensor.byte_offset) +
        " bytes into its memory by DLPack; expected " + std::to_string(kMostBytes) + " at most");
  }
}

}  // namespace

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
  CheckTensor(tensor, op, name);
  const auto rank = static_cast<std::size_t>(tensor.rank);
  const Dims dims(std::span<const std::int64_t>(tensor.dims, rank));
  const Strides strides = tensor.strides == nullptr
                              ? ContiguousStrides(dims)
                              : Strides(std::span<const std::int64_t>(tensor.strides, rank));
  Array array;
  // Null stays null, so that it is told.
  void* data =
      tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
  array.ref = TensorRef(*type, data, dims, strides, *device);
  array.is_writable = is_writable;
  return array;
}

namespace {

/// The tensor of a capsule, which from then on is a used one; null where it is of another kind.
template <typename Managed>
std::shared_ptr<Managed> Take(nb::handle capsule, const char* kind, const char* used) {
  if (PyCapsule_IsValid(capsule.ptr(), kind) == 0) {
    return nullptr;
  }
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), kind));
  if (PyCapsule_SetName(capsule.ptr(), used) != 0) {
    throw nb::python_error();
  }
  return {managed, [](Managed* taken) {
            if (taken->deleter != nullptr) {
              taken->deleter(taken);
            }
          }};
}

}  // namespace

Array FromCapsule(const nb::object& capsule, const char* op, const char* name) {
  if (auto managed = Take<dlpack::ManagedTensorVersioned>(
          capsule, "dltensor_versioned", "used_dltensor_versioned")) {
    if (managed->version.major != dlpack::kMajorVersion) {
      RaiseTypeError(
          Subject(op, name) + " speaks DLPack " + std::to_string(managed->version.major) +
          "; expected DLPack " + std::to_string(dlpack::kMajorVersion));
    }
    // What is written to a copy is lost.
    const bool is_writable = (managed->flags & (dlpack::kReadOnly | dlpack::kIsCopied)) == 0;
    Array array = FromTensor(managed->tensor, is_writable, op, name);
    array.managed = std::move(managed);
    return array;
  }
  if (auto managed = Take<dlpack::ManagedTensor>(capsule, "dltensor", "used_dltensor")) {
    Array array = FromTensor(managed->tensor, true, op, name);
    array.managed = std::move(managed);
    return array;
  }
  RaiseTypeError(
      Subject(op, name) + ": __dlpack__ returned " + ReprOf(capsule) +
      "; expected a capsule of DLPack that nobody has used");
}

namespace {

/// CheckView refuses a view of elements of another size, or without dims.
void CheckView(const Py_buffer& view, DataType type, const char* op, const char* name) {
  const auto size = static_cast<Py_ssize_t>(SizeOf(type));
  if (view.itemsize != size) {
    RaiseTypeError(
        Subject(op, name) + " holds elements of " + std::to_string(view.itemsize) +
        " bytes; expected " + std::to_string(size) + " for " + std::string(ToString(type)));
  }
  if (view.ndim < 0 || (view.ndim > 0 && view.shape == nullptr)) {
    RaiseValueError(Subject(op, name) + " has a buffer without dims; expected one for each axis");
  }
}

/// CheckLength compares dims with the length, which counts each element once, also where strides
/// let them share memory.
void CheckLength(const Py_buffer& view, const Dims& dims, const char* op, const char* name) {
  const std::int64_t elements = NumElements(dims);
  // What has too many dims, or more elements than can be counted, is refused by the operator.
  const bool is_counted = !dims.too_long() && elements >= 0;
  if (is_counted && (view.len / view.itemsize != elements || view.len % view.itemsize != 0)) {
    RaiseValueError(
        Subject(op, name) + " has dims " + ToString(dims) + " and a buffer of " +
        std::to_string(view.len) + " bytes; expected " + std::to_string(elements) +
        " elements of " + std::to_string(view.itemsize) + " bytes");
  }
}

}  // namespace

std::optional<Array> FromBuffer(
    GetBuffer get,
    nb::handle object,
    std::optional<DataType> type,
    nb::handle dtype,
    const char* op,
    const char* name) {
  auto view = std::make_unique<Py_buffer>();
  // NumPy composes the format anew each time, so it is asked for only where it is needed.
  const int flags = PyBUF_STRIDED_RO | (type ? 0 : PyBUF_FORMAT);
  const int got = InPython([&] { return get(object.ptr(), view.get(), flags); });
  if (got != 0) {
    ClearError();
    return std::nullopt;
  }
  Array array;
  array.buffer.reset(view.release());
  const Py_buffer& buffer = *array.buffer;
  if (!type) {
    const char* const format = buffer.format == nullptr ? "B" : buffer.format;
    type = FindType(std::string_view(format), buffer.itemsize);
  }
  if (!type) {
    RaiseElementType(op, name, dtype.is_valid() ? ShortTextOf(nb::str(dtype)) : buffer.format);
  }
  CheckView(buffer, *type, op, name);
  Dims dims;
  for (int i = 0; i < buffer.ndim; ++i) {
    dims.push_back(buffer.shape[i]);
  }
  CheckLength(buffer, dims, op, name);
  array.ref = TensorRef(*type, buffer.buf, dims, ElementStrides(buffer, dims, op, name));
  array.is_writable = buffer.readonly == 0;
  return array;
}

}  // namespace gradsmith::python
