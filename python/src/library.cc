#include "library.h"

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "errors.h"
#include "lock.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// How many types of arrays are remembered: more than any program has in use.
constexpr std::size_t kMostTypes = 1024;

using Libraries = std::unordered_map<PyTypeObject*, std::shared_ptr<const Library>>;

/// KnownLibraries are never freed: types may be asked for until the interpreter is gone.
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

/// FindExchange returns the functions of an array type that exchanges without Python calls; null
/// where it does not, or speaks another version.
const dlpack::Exchange* FindExchange(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api") == 0) {
    return nullptr;
  }
  const void* pointer = PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api");
  const auto* exchange = static_cast<const dlpack::Exchange*>(pointer);
  const bool is_known = exchange->header.version.major == dlpack::kMajorVersion;
  return is_known && exchange->borrow != nullptr ? exchange : nullptr;
}

/// FindGetBuffer returns the function of the buffer protocol by which objects of a type are read;
/// null where they are not. What a subclass of the library's own arrays puts in its place may say
/// anything.
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

nb::object Library::PlaceOf(nb::handle array, const char* op, const char* name) const {
  try {
    return CallPython(place_of_, array);
  } catch (const nb::python_error& error) {
    RaiseUnreadable(array, error, op, name);
  }
}

}  // namespace gradsmith::python
