/// How a Library reads arrays.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "arguments.h"
#include "core/tensor_memory.h"
#include "errors.h"
#include "library.h"
#include "lock.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// DLPack calls the legacy default stream so, whose address is null in CUDA.
constexpr std::uintptr_t kLegacyStream = 1;

/// No machine has so many.
constexpr std::int64_t kMostDevices = 1 << 16;

bool IsTrue(const nb::object& answer) {
  return answer.ptr() == Py_True;
}

/// FindCudaDevice returns the device of CUDA that `__dlpack_device__` told of; empty where it is
/// another.
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

}  // namespace

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

}  // namespace gradsmith::python
