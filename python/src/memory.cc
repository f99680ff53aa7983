#include "memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "array.h"
#include "dlpack.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

constexpr const char* kCapsule = "dltensor";

/// What an exported tensor points to.
struct Exported {
  dlpack::ManagedTensor managed;
  std::array<std::int64_t, kMaxRank> dims = {};
  std::array<std::int64_t, kMaxRank> strides = {};
  std::shared_ptr<DeviceBuffer> buffer;
};

void Delete(dlpack::ManagedTensor* managed) {
  delete static_cast<Exported*>(managed->owner);
}

/// A capsule that nobody took still owns its tensor; whoever takes one renames it.
void DeleteCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kCapsule) != 0) {
    Delete(static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule, kCapsule)));
  }
}

dlpack::Device PlaceOfDevice(Device device) {
  const bool is_cuda = device.backend == Backend::kCuda;
  return {.type = is_cuda ? dlpack::kCuda : dlpack::kCpu, .index = device.index};
}

}  // namespace

nb::object Memory::Export() const {
  auto exported = std::make_unique<Exported>();
  exported->buffer = buffer_;
  std::copy(ref_.dims.begin(), ref_.dims.end(), exported->dims.begin());
  std::copy(ref_.strides.begin(), ref_.strides.end(), exported->strides.begin());
  dlpack::Tensor& tensor = exported->managed.tensor;
  tensor.data = ref_.data;
  tensor.device = PlaceOfDevice(ref_.device);
  tensor.rank = ref_.rank();
  tensor.type = ToElementType(ref_.type);
  tensor.dims = exported->dims.data();
  tensor.strides = exported->strides.data();
  exported->managed.owner = exported.get();
  exported->managed.deleter = &Delete;
  nb::object capsule = nb::steal(PyCapsule_New(&exported->managed, kCapsule, &DeleteCapsule));
  if (!capsule.is_valid()) {
    throw nb::python_error();
  }
  exported.release();
  return capsule;
}

nb::tuple Memory::PlaceOf() const {
  const dlpack::Device place = PlaceOfDevice(ref_.device);
  return nb::make_tuple(static_cast<int>(place.type), place.index);
}

void BindMemory(nb::module_& module) {
  nb::class_<Memory>(module, "Memory")
      .def(
          "__dlpack__",
          [](const Memory& self, const nb::args& /*unused*/, const nb::kwargs& /*unused*/) {
            // The work is done by now, so that every stream finds it so.
            return self.Export();
          })
      .def("__dlpack_device__", &Memory::PlaceOf);
}

}  // namespace gradsmith::python
