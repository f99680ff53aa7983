#include "memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "arguments.h"
#include "array.h"
#include "dlpack.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

constexpr const char* NameOf(const dlpack::ManagedTensor* /*unused*/) {
  return "dltensor";
}
constexpr const char* NameOf(const dlpack::ManagedTensorVersioned* /*unused*/) {
  return "dltensor_versioned";
}

/// What an exported tensor points to. `Managed` is one of DLPack's two structures.
template <typename Managed>
struct Exported {
  Managed managed;
  std::array<std::int64_t, kMaxRank> dims = {};
  std::array<std::int64_t, kMaxRank> strides = {};
  std::shared_ptr<DeviceBuffer> buffer;
};

template <typename Managed>
void Delete(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->owner);
}

/// A capsule that nobody took still owns its tensor; whoever takes one renames it.
template <typename Managed>
void DeleteCapsule(PyObject* capsule) {
  constexpr const char* kName = NameOf(static_cast<const Managed*>(nullptr));
  if (PyCapsule_IsValid(capsule, kName) != 0) {
    Delete(static_cast<Managed*>(PyCapsule_GetPointer(capsule, kName)));
  }
}

dlpack::Device PlaceOfDevice(Device device) {
  const bool is_cuda = device.backend == Backend::kCuda;
  return {.type = is_cuda ? dlpack::kCuda : dlpack::kCpu, .index = device.index};
}

template <typename Managed>
nb::object Capsule(const TensorRef& ref, const std::shared_ptr<DeviceBuffer>& buffer) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->buffer = buffer;
  std::copy(ref.dims.begin(), ref.dims.end(), exported->dims.begin());
  std::copy(ref.strides.begin(), ref.strides.end(), exported->strides.begin());
  Managed& managed = exported->managed;
  managed.tensor.data = ref.data;
  managed.tensor.device = PlaceOfDevice(ref.device);
  managed.tensor.rank = ref.rank();
  managed.tensor.type = ToElementType(ref.type);
  managed.tensor.dims = exported->dims.data();
  managed.tensor.strides = exported->strides.data();
  if constexpr (requires { managed.version; }) {
    managed.version = {.major = dlpack::kMajorVersion, .minor = 0};
  }
  managed.owner = exported.get();
  managed.deleter = &Delete<Managed>;
  nb::object capsule =
      nb::steal(PyCapsule_New(&managed, NameOf(&managed), &DeleteCapsule<Managed>));
  if (!capsule.is_valid()) {
    throw nb::python_error();
  }
  exported.release();
  return capsule;
}

/// Whether whoever calls `__dlpack__` reads DLPack 1.
bool ReadsVersions(const nb::kwargs& keywords) {
  const nb::object version = keywords.get("max_version", nb::none());
  if (version.is_none()) {
    return false;
  }
  const IntList told = ReadInts(version, "__dlpack__: max_version");
  return !told.empty() && told[0] >= dlpack::kMajorVersion;
}

}  // namespace

nb::object Memory::Export(bool is_versioned) const {
  return is_versioned ? Capsule<dlpack::ManagedTensorVersioned>(ref_, buffer_)
                      : Capsule<dlpack::ManagedTensor>(ref_, buffer_);
}

nb::tuple Memory::PlaceOf() const {
  const dlpack::Device place = PlaceOfDevice(ref_.device);
  return nb::make_tuple(static_cast<int>(place.type), place.index);
}

void BindMemory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory")
      .def(
          "__dlpack__",
          [](const Memory& self, const nb::args& /*unused*/, const nb::kwargs& keywords) {
            // The work is done by now, so that every stream finds it so.
            return self.Export(ReadsVersions(keywords));
          })
      .def("__dlpack_device__", &Memory::PlaceOf);
}

}  // namespace gradsmith::python
