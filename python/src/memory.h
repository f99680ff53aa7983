#ifndef GRADSMITH_PYTHON_MEMORY_H_
#define GRADSMITH_PYTHON_MEMORY_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "gradsmith/device_buffer.h"
#include "gradsmith/tensor.h"

namespace gradsmith::python {

/// Memory is an output in memory of ours, for libraries to adopt through DLPack: the memory lives
/// until they let go of it.
class Memory {
 public:
  Memory(DeviceBuffer buffer, const TensorRef& ref)
      : buffer_(std::make_shared<DeviceBuffer>(std::move(buffer))), ref_(ref) {}

  /// Export returns a capsule of DLPack 1 or, where the reader is older, of before: only the former
  /// says that the memory may be written to.
  [[nodiscard]] nanobind::object Export(bool is_versioned) const;

  /// DLPack's type of the device, and its index.
  [[nodiscard]] nanobind::tuple PlaceOf() const;

 private:
  std::shared_ptr<DeviceBuffer> buffer_;
  TensorRef ref_;
};

/// BindMemory adds the class to the module.
void BindMemory(nanobind::module_& module);

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_MEMORY_H_
