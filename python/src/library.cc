#include "library.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arguments.h"
#include "core/tensor_memory.h"
#include "errors.h"
#include "lock.h"
#include "memory.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// What sentences on an output that was just made would name: there are none to be expected.
constexpr const char* kOurs = "gradsmith";
constexpr const char* kOutput = "an output";

/// What DLPack calls the legacy default stream, whose address is null in CUDA.
constexpr std::uintptr_t kLegacyStream = 1;

/// No machine has so many.
constexpr std::int64_t kMostDevices = 1 << 16;

/// The most types of arrays that are remembered; no program has more in use.
constexpr std::size_t kMostTypes = 1024;

using Libraries = std::unordered_map<PyTypeObject*, std::shared_ptr<const Library>>;

/// Never freed: types may be asked for until the interpreter is gone.
Libraries& KnownLibraries() {
  static auto* const known = new Libraries();
  return *known;
}

/// A type that is gone is forgotten: another may come to have its address.
void ForgetWithType(nb::handle type) {
  auto* const key = reinterpret_cast<PyTypeObject*>(type.ptr());
  const nb::object forget = nb::cpp_function([key](nb::handle reference) {
    // What goes with a library may be Python's code, which may ask for others.
    const auto gone = KnownLibraries().extract(key);
    reference.dec_ref();
  });
  // The reference is its own until then.
  if (PyWeakref_NewRef(type.ptr(), forget.ptr()) == nullptr) {
    throw nb::python_error();
  }
}

/// The functions of an array type that exchanges without Python calls; null where it does not, or
/// speaks another version.
const dlpack::Exchange* FindExchange(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") == 0) {
    return nullptr;
  }
  const void* pointer = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  const auto* exchange = static_cast<const dlpack::Exchange*>(pointer);
  const bool is_known = exchange->header.version.major == dlpack::kMajorVersion;
  return is_known && exchange->borrow != nullptr ? exchange : nullptr;
}

/// The function of the buffer protocol by which objects of a type are read; null where they are
/// not. What a subclass of the library's own arrays puts in its place may say anything.
GetBuffer FindGetBuffer(const nb::object& adaptor, nb::handle type) {
  if (!nb::cast<bool>(adaptor.attr("has_buffers"))) {
    return nullptr;
  }
  const nb::object array = adaptor.attr("array");
  auto* base = reinterpret_cast<PyTypeObject*>(array.ptr());
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), base) == 0) {
    return &PyObject_GetBuffer;
  }
  void* get = PyType_GetSlot(base, Py_bf_getbuffer);
  return get == nullptr ? &PyObject_GetBuffer : reinterpret_cast<GetBuffer>(get);
}

void SetPythonError(void* /*error*/, const char* kind, const char* message) {
  const bool is_memory = std::string(kind) == "MemoryError";
  PyErr_SetString(is_memory ? PyExc_MemoryError : PyExc_RuntimeError, message);
}

bool IsTrue(const nb::object& answer) {
  return answer.ptr() == Py_True;
}

nb::object ToTuple(const IntList& list) {
  nb::object tuple = nb::steal(PyTuple_New(list.size()));
  for (int i = 0; i < list.size(); ++i) {
    PyTuple_SetItem(tuple.ptr(), i, PyLong_FromLongLong(list[i]));
  }
  return tuple;
}

/// The device of CUDA that `__dlpack_device__` told of; empty where it is another.
std::optional<Device> FindCudaDevice(nb::handle place, const char* op, const char* name) {
  const std::string subject = std::string(op) + ": " + name + "'s __dlpack_device__";
  const IntList told = ReadInts(place, subject);
  if (told.size() != 2 || told[1] < 0 || told[1] > kMostDevices) {
    RaiseTypeError(
        subject + " is " + ReprOf(place) + "; expected a type of devices and the number of one");
  }
  if (told[0] != dlpack::kCuda && told[0] != dlpack::kCudaManaged) {
    return std::nullopt;
  }
  return Device{Backend::kCuda, static_cast<int>(told[1])};
}

/// An array that the library makes itself, on the device and in the memory pool that it uses.
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

Property::Property(nb::object descriptor)
    : descriptor_(std::move(descriptor)),
      get_(reinterpret_cast<descrgetfunc>(
          PyType_GetSlot(Py_TYPE(descriptor_.ptr()), Py_tp_descr_get))) {}

nb::object Property::Get(nb::handle array) const {
  nb::object value = nb::steal(get_(descriptor_.ptr(), array.ptr(), array.type().ptr()));
  if (!value.is_valid()) {
    throw nb::python_error();
  }
  return value;
}

std::shared_ptr<const Library> Library::Of(nb::handle array, const char* op, const char* name) {
  Libraries& known = KnownLibraries();
  const nb::handle type = array.type();
  auto* const key = reinterpret_cast<PyTypeObject*>(type.ptr());
  if (const auto found = known.find(key); found != known.end()) {
    return found->second;
  }
  const nb::bool_ has_buffer(PyObject_CheckBuffer(array.ptr()) != 0);
  const nb::object find = ImportPython("_libraries", "find");
  const nb::object adaptor = CallPython(find, array, has_buffer);
  if (adaptor.is_none()) {
    RaiseTypeError(
        std::string(op) + ": " + name + " is " + ReprOf(array) + " (" + TypeNameOf(array) +
        "); expected an array that speaks DLPack or the buffer protocol");
  }
  auto library = std::make_shared<const Library>(adaptor, type);
  if (known.size() >= kMostTypes) {
    ForgetAll();
  }
  ForgetWithType(type);
  known.insert_or_assign(key, library);
  return library;
}

void Library::ForgetAll() {
  const Libraries gone = std::exchange(KnownLibraries(), {});
}

Library::Library(nb::object adaptor, nb::handle type)
    : adaptor_(std::move(adaptor)),
      empty_(adaptor_.attr("empty")),
      plain_empty_(adaptor_.attr("plain_empty")),
      is_negated_(adaptor_.attr("is_negated")),
      lacks_memory_(adaptor_.attr("lacks_memory")),
      place_of_(adaptor_.attr("place_of")),
      is_recording_(adaptor_.attr("is_recording")),
      requires_grad_(adaptor_.attr("requires_grad")),
      dtype_(CallPython(adaptor_.attr("dtype_of"), type)),
      written_(adaptor_.attr("written")),
      torch_(adaptor_.attr("functions")),
      implementation_(CallPython(adaptor_.attr("implementation_of"), type)),
      key_set_of_(adaptor_.attr("key_set")),
      exchange_owner_(CallPython(adaptor_.attr("exchange_of"), type)),
      exchange_(FindExchange(exchange_owner_)),
      get_buffer_(FindGetBuffer(adaptor_, type)),
      is_writable_(nb::cast<bool>(adaptor_.attr("is_writable"))) {
  const nb::object empty_strided = adaptor_.attr("empty_strided");
  for (std::size_t i = 0; i < empty_strided_.size(); ++i) {
    empty_strided_[i] = empty_strided[i];
  }
  const nb::object dtypes = adaptor_.attr("dtypes");
  for (std::size_t i = 0; i < nb::len(dtypes); ++i) {
    dtypes_.at(i) = dtypes[i];
  }
}

std::string Library::name() const {
  return TextOf(adaptor_.attr("name"));
}

Array Library::Read(nb::handle array, const char* op, const char* name) const {
  if (std::optional<Array> read = ReadTensor(array, op, name)) {
    return std::move(*read);
  }
  Array read = ReadMemory(array, op, name);
  CheckMeaning(array, op, name);
  return read;
}

void Library::ReadMoved(nb::handle object, const char* op, const char* name, Array* array) const {
  const bool is_writable = array->is_writable;
  *array = ReadMemory(object, op, name);
  array->is_writable = is_writable;
}

bool Library::IsViewed() const {
  return implementation_.is_known() && torch_.CanView() && !torch_.IsInMode();
}

std::optional<Array> Library::ReadTensor(nb::handle array, const char* op, const char* name) const {
  if (!IsViewed()) {
    return std::nullopt;
  }
  const nb::object address = implementation_.Get(array);
  TorchFunctions::View view;
  if (!torch_.ViewOf(PyLong_AsVoidPtr(address.ptr()), &view)) {
    return std::nullopt;
  }
  if (view.is_negative || (view.requires_grad && IsTrue(CallPython(is_recording_)))) {
    return std::nullopt;
  }
  return FromTensor(view.tensor, true, op, name);
}

Array Library::ReadMemory(nb::handle array, const char* op, const char* name) const {
  if (exchange_ != nullptr) {
    dlpack::Tensor tensor;
    if (exchange_->borrow(array.ptr(), &tensor) != 0) {
      RaiseUnreadable(array, nb::python_error(), op, name);
    }
    return FromTensor(tensor, true, op, name);
  }
  if (get_buffer_ == nullptr) {
    return ReadCapsule(array, op, name);
  }
  const nb::object dtype = dtype_.is_known() ? dtype_.Get(array) : nb::object();
  std::optional<Array> read = FromBuffer(get_buffer_, array, FindType(dtype), dtype, op, name);
  if (!read && dtype.is_valid()) {
    // The buffer protocol has no name for bfloat16; as integers its elements can be had.
    const nb::object bits = CallPython(adaptor_.attr("bits"), array, dtype);
    if (!bits.is_none()) {
      read = FromBuffer(get_buffer_, bits, DataType::kBFloat16, dtype, op, name);
    }
  }
  if (!read) {
    RaiseElementType(op, name, "elements that the buffer protocol cannot describe");
  }
  return std::move(*read);
}

std::optional<DataType> Library::FindType(nb::handle dtype) const {
  for (int i = 0; i < kDataTypeCount; ++i) {
    if (dtype.is_valid() && !dtypes_[i].is_none() && dtypes_[i].is(dtype)) {
      return static_cast<DataType>(i);
    }
  }
  return std::nullopt;
}

Array Library::ReadCapsule(nb::handle array, const char* op, const char* name) const {
  nb::object place;
  nb::object capsule;
  try {
    place = CallPython(adaptor_.attr("device"), array);
  } catch (const nb::python_error& error) {
    RaiseUnreadable(array, error, op, name);
  }
  nb::object stream = nb::none();
  const std::optional<Device> device = FindCudaDevice(place, op, name);
  if (device) {
    const auto address = reinterpret_cast<std::uintptr_t>(CurrentStream(*device));
    stream = nb::int_(address == 0 ? kLegacyStream : address);
  }
  try {
    capsule = CallPython(adaptor_.attr("capsule"), array, stream);
  } catch (const nb::python_error& error) {
    RaiseUnreadable(array, error, op, name);
  }
  Array read = FromCapsule(capsule, op, name);
  // Nobody has looked at it before.
  Check(internal::CheckMemory(std::string(op) + ": " + name, read.ref));
  if (read.ref.device != device.value_or(Device{})) {
    RaiseValueError(
        std::string(op) + ": " + name + "'s __dlpack_device__ is " + ReprOf(place) +
        ", its capsule is on another device; expected the same");
  }
  return read;
}

void Library::RaiseUnreadable(
    nb::handle array,
    const nb::python_error& error,
    const char* op,
    const char* name) const {
  if (MustPass(error)) {
    throw nb::python_error(error);
  }
  const nb::object why = CallPython(adaptor_.attr("unreadable"), array, error.value());
  RaiseTypeError(std::string(op) + ": " + name + " " + TextOf(why));
}

void Library::CheckMeaning(nb::handle array, const char* op, const char* name) const {
  if (!lacks_memory_.is_none() && IsTrue(CallPython(lacks_memory_, array))) {
    RaiseValueError(
        std::string(op) + ": " + name + " (" + nb::inst_name(array).c_str() +
        ") has no memory of its own; expected a tensor that has, such as the local one of a "
        "distributed tensor");
  }
  if (!is_negated_.is_none() && IsTrue(CallPython(is_negated_, array))) {
    RaiseValueError(
        std::string(op) + ": " + name +
        " is a view whose values are the negatives of those in its memory (its negative bit is "
        "set); expected the values themselves (call resolve_neg())");
  }
  if (is_recording_.is_none() || !IsTrue(requires_grad_.Get(array)) ||
      !IsTrue(CallPython(is_recording_))) {
    return;
  }
  RaiseValueError(
      std::string(op) + ": " + name +
      " requires a gradient, which this function does not record; expected a tensor without (call "
      "detach(), or the function of the same name in " +
      PackageName() + ".torch)");
}

void Library::TellWritten(nb::handle arrays) const {
  if (!written_.is_none()) {
    CallPython(written_, arrays);
  }
}

void* Library::CurrentStream(Device device) const {
  if (device.backend == Backend::kCpu) {
    return nullptr;
  }
  if (exchange_ != nullptr && exchange_->current_stream != nullptr) {
    void* stream = nullptr;
    if (exchange_->current_stream(dlpack::kCuda, device.index, &stream) != 0) {
      throw nb::python_error();
    }
    return stream;
  }
  const nb::object address = CallPython(adaptor_.attr("stream"), nb::int_(device.index));
  void* const stream = PyLong_AsVoidPtr(address.ptr());
  if (stream == nullptr && PyErr_Occurred() != nullptr) {
    throw nb::python_error();
  }
  return stream;
}

Form::Form(const Dims& its_dims, bool is_channels_last)
    : dims(its_dims),
      is_permuted(is_channels_last && dims.size() > 2),
      is_empty(NumElements(dims) == 0),
      dims_tuple(ToTuple(dims)) {
  strides = is_permuted ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  strides_tuple = ToTuple(strides);
}

Output Library::Make(DataType type, const Form& form, Device device, nb::handle like) const {
  if (std::optional<Output> made = MakeTensor(type, form, device)) {
    return std::move(*made);
  }
  if (std::optional<Output> made = MakeStrided(type, form, device)) {
    return std::move(*made);
  }
  if (!form.is_permuted || (exchange_ == nullptr && empty_.is_none())) {
    return MakeDense(type, form.dims, form.dims_tuple, device, like);
  }
  Dims in_memory = {form.dims[0]};
  for (int i = 2; i < form.dims.size(); ++i) {
    in_memory.push_back(form.dims[i]);
  }
  in_memory.push_back(form.dims[1]);
  Output output = MakeDense(type, in_memory, ToTuple(in_memory), device, like);
  output.object = CallPython(adaptor_.attr("channels_second"), output.object);
  output.array.ref.dims = form.dims;
  output.array.ref.strides = form.strides;
  return output;
}

std::optional<Output> Library::MakeTensor(DataType type, const Form& form, Device device) const {
  const std::uint64_t key_set = key_sets_.at(IndexOf(device.backend));
  if (key_set == 0 || form.is_empty) {
    return std::nullopt;
  }
  const TorchFunctions::Made made =
      torch_.Make(type, form.dims, form.strides, device.backend, key_set);
  if (made.object == nullptr) {
    return std::nullopt;
  }
  Output output;
  output.object = nb::steal(made.object);
  output.array.ref = TensorRef(type, made.data, form.dims, form.strides, device);
  return made.device == device.index ? std::optional(std::move(output)) : std::nullopt;
}

std::optional<Output> Library::MakeStrided(DataType type, const Form& form, Device device) const {
  const std::size_t backend = IndexOf(device.backend);
  const nb::object& make = empty_strided_.at(backend);
  // Libraries differ in what strides they give to what is empty.
  if (exchange_ == nullptr || make.is_none() || form.is_empty) {
    return std::nullopt;
  }
  Output output;
  output.object = CallPython(
      make, form.dims_tuple, form.strides_tuple, dtypes_.at(static_cast<std::size_t>(type)));
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

nb::object Library::PlaceOf(nb::handle array, const char* op, const char* name) const {
  try {
    return CallPython(place_of_, array);
  } catch (const nb::python_error& error) {
    RaiseUnreadable(array, error, op, name);
  }
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
