/// How a Library makes arrays.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "errors.h"
#include "library.h"
#include "lock.h"
#include "memory.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// Sentences on an output that was just made would name these: there are none to be expected.
constexpr const char* kOurs = "gradsmith";
constexpr const char* kOutput = "an output";

void SetPythonError(void* /*error*/, const char* kind, const char* message) {
  const bool is_memory = std::string(kind) == "MemoryError";
  PyErr_SetString(is_memory ? PyExc_MemoryError : PyExc_RuntimeError, message);
}

nb::object ToTuple(const IntList& list) {
  nb::object tuple = nb::steal(PyTuple_New(list.size()));
  for (int i = 0; i < list.size(); ++i) {
    PyTuple_SetItem(tuple.ptr(), i, PyLong_FromLongLong(list[i]));
  }
  return tuple;
}

/// Exchanged returns an array that the library makes itself, on the device and in the memory pool
/// that it uses.
Output Exchanged(const dlpack::Exchange& exchange, DataType type, Dims dims, Device device) {
  const bool is_cuda = device.backend == Backend::kCuda;
  std::int64_t sizes[kMaxRank] = {};
  std::copy(dims.begin(), dims.end(), sizes);
  dlpack::Tensor prototype;
  prototype.device = {.type = is_cuda ? dlpack::kCuda : dlpack::kCpu, .index = device.index};
  prototype.rank = dims.size();
  prototype.type = ToElementType(type);
  prototype.dims = sizes;
  dlpack::ManagedTensorVersioned* managed = nullptr;
  if (exchange.allocate(&prototype, &managed, nullptr, &SetPythonError) != 0) {
    throw nb::python_error();
  }
  Output output;
  void* data = static_cast<char*>(managed->tensor.data) + managed->tensor.byte_offset;
  output.array.ref = TensorRef(type, data, dims, device);
  void* object = nullptr;
  if (exchange.import_managed(managed, &object) != 0) {
    throw nb::python_error();
  }
  output.object = nb::steal(static_cast<PyObject*>(object));
  return output;
}

}  // namespace

OutputLayout::OutputLayout(const Dims& its_dims, bool is_channels_last)
    : dims(its_dims),
      is_permuted(is_channels_last && dims.size() > 2),
      is_empty(NumElements(dims) == 0),
      dims_tuple(ToTuple(dims)) {
  strides = is_permuted ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  strides_tuple = ToTuple(strides);
}

Output Library::Make(DataType type, const OutputLayout& layout, Device device, nb::handle like)
    const {
  if (std::optional<Output> made = MakeTensor(type, layout, device)) {
    return std::move(*made);
  }
  if (std::optional<Output> made = MakeStrided(type, layout, device)) {
    return std::move(*made);
  }
  if (!layout.is_permuted || (exchange_ == nullptr && empty_.is_none())) {
    return MakeDense(type, layout.dims, layout.dims_tuple, device, like);
  }
  Dims in_memory = {layout.dims[0]};
  for (int i = 2; i < layout.dims.size(); ++i) {
    in_memory.push_back(layout.dims[i]);
  }
  in_memory.push_back(layout.dims[1]);
  Output output = MakeDense(type, in_memory, ToTuple(in_memory), device, like);
  output.object = CallPython(adaptor_.attr("channels_second"), output.object);
  output.array.ref.dims = layout.dims;
  output.array.ref.strides = layout.strides;
  return output;
}

std::optional<Output> Library::MakeTensor(DataType type, const OutputLayout& layout, Device device)
    const {
  const std::uint64_t key_set = key_sets_.at(IndexOf(device.backend));
  if (key_set == 0 || layout.is_empty) {
    return std::nullopt;
  }
  const TorchFunctions::Made made =
      torch_.Make(type, layout.dims, layout.strides, device.backend, key_set);
  if (made.object == nullptr) {
    return std::nullopt;
  }
  Output output;
  output.object = nb::steal(made.object);
  output.array.ref = TensorRef(type, made.data, layout.dims, layout.strides, device);
  return made.device == device.index ? std::optional(std::move(output)) : std::nullopt;
}

std::optional<Output> Library::MakeStrided(DataType type, const OutputLayout& layout, Device device)
    const {
  const std::size_t backend = IndexOf(device.backend);
  const nb::object& make = empty_strided_.at(backend);
  // Libraries differ in what strides they give to what is empty.
  if (exchange_ == nullptr || make.is_none() || layout.is_empty) {
    return std::nullopt;
  }
  Output output;
  output.object = CallPython(
      make, layout.dims_tuple, layout.strides_tuple, dtypes_.at(static_cast<std::size_t>(type)));
  output.array = ReadMemory(output.object, kOurs, kOutput);
  if (key_sets_.at(backend) == 0 && torch_.CanMake(device.backend)) {
    key_sets_.at(backend) = nb::cast<std::uint64_t>(key_set_of_(output.object));
  }
  // It was made on the library's current device, which need not be that of the inputs.
  return output.array.ref.device == device ? std::optional(std::move(output)) : std::nullopt;
}

Output Library::MakeDense(
    DataType type,
    const Dims& dims,
    const nb::object& tuple,
    Device device,
    nb::handle like) const {
  if (exchange_ != nullptr) {
    return Exchanged(*exchange_, type, dims, device);
  }
  if (empty_.is_none()) {
    return Allocate(type, dims, device);
  }
  Output output;
  const nb::object& dtype = dtypes_.at(static_cast<std::size_t>(type));
  const bool is_plain = !plain_empty_.is_none() && !dtype.is_none();
  output.object =
      is_plain ? CallPython(plain_empty_, tuple, dtype) : CallPython(empty_, tuple, dtype, like);
  std::optional<Array> buffer =
      get_buffer_ != nullptr && !dtype.is_none()
          ? FromBuffer(get_buffer_, output.object, type, dtype, kOurs, kOutput)
          : std::nullopt;
  output.array = buffer ? std::move(*buffer) : ReadMemory(output.object, kOurs, kOutput);
  return output;
}

Output Library::Allocate(DataType type, const Dims& dims, Device device) const {
  const auto elements = static_cast<std::size_t>(std::max<std::int64_t>(NumElements(dims), 1));
  Result<DeviceBuffer> memory = DeviceBuffer::Allocate(device, elements * SizeOf(type));
  Check(memory.status());
  Output output;
  output.array.ref = TensorRef(type, memory->data(), dims, device);
  output.memory = std::move(*memory);
  return output;
}

nb::object Library::Finish(Output output, const Context& context, nb::handle place) const {
  if (output.object.is_valid()) {
    return std::move(output.object);
  }
  // The library does not know our stream, so it gets what is done.
  Check(Synchronize(context));
  const nb::object memory = nb::cast(Memory(std::move(output.memory), output.array.ref));
  return CallPython(adaptor_.attr("adopt"), memory, place);
}

}  // namespace gradsmith::python
