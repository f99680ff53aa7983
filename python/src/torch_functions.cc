#include "torch_functions.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// Sets a function that there is.
template <typename Function>
void Find(nb::handle addresses, const char* name, Function* function) {
  const nb::object address = nb::steal(PyMapping_GetItemString(addresses.ptr(), name));
  if (!address.is_valid()) {
    PyErr_Clear();
    return;
  }
  *function = reinterpret_cast<Function>(PyLong_AsVoidPtr(address.ptr()));
}

}  // namespace

TorchFunctions::TorchFunctions(nb::handle addresses) {
  Find(addresses, "is_in_mode", &is_in_mode_);
  Find(addresses, "is_neg", &is_neg_);
  Find(addresses, "requires_grad", &requires_grad_);
  Find(addresses, "to_dlpack", &to_dlpack_);
  Find(addresses, "empty_strided", &empty_strided_);
  Find(addresses, "cpu_allocator", &allocator_[IndexOf(Backend::kCpu)]);
  Find(addresses, "cuda_allocator", &allocator_[IndexOf(Backend::kCuda)]);
  Find(addresses, "wrap", &wrap_);
  Find(addresses, "data", &data_);
  Find(addresses, "device", &device_);
  Find(addresses, "storage_offset", &storage_offset_);
}

bool TorchFunctions::CanView() const {
  return is_in_mode_ != nullptr && is_neg_ != nullptr && requires_grad_ != nullptr &&
         to_dlpack_ != nullptr && storage_offset_ != nullptr;
}

bool TorchFunctions::ViewOf(void* implementation, View* view) const {
  try {
    view->is_negative = is_neg_(implementation);
    view->requires_grad = requires_grad_(implementation);
    to_dlpack_(implementation, &view->tensor, false);
    std::int64_t offset = 0;
    if (storage_offset_(&implementation, &offset) != 0) {
      return false;
    }
    // PyTorch adds the offset to the address of a storage that has no memory, too.
    constexpr int kBits = 8;
    const std::int64_t bytes = offset * (view->tensor.type.bits / kBits);
    if (reinterpret_cast<std::intptr_t>(view->tensor.data) == bytes) {
      view->tensor.data = nullptr;
    }
    return true;
  } catch (...) {  // whoever asks in Python is told why
    PyErr_Clear();
    return false;
  }
}

bool TorchFunctions::CanMake(Backend backend) const {
  return empty_strided_ != nullptr && allocator_.at(IndexOf(backend)) != nullptr &&
         wrap_ != nullptr && data_ != nullptr && device_ != nullptr;
}

TorchFunctions::ScalarType TorchFunctions::ToScalarType(DataType type) {
  switch (type) {
#define GRADSMITH_TORCH_TYPE(enumerator, type, name, dlpack_code, torch_type) \
  case DataType::enumerator:                                                  \
    return ScalarType{torch_type};
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_TORCH_TYPE)
#undef GRADSMITH_TORCH_TYPE
  }
  return ScalarType{};
}

TorchFunctions::Made TorchFunctions::Make(
    DataType type,
    const Dims& dims,
    const Strides& strides,
    Backend backend,
    std::uint64_t key_set) const {
  try {
    Owned tensor = empty_strided_(
        {dims.begin(), static_cast<std::size_t>(dims.size())},
        {strides.begin(), static_cast<std::size_t>(strides.size())},
        allocator_.at(IndexOf(backend))(), {key_set}, ToScalarType(type));
    void* const implementation = tensor.implementation;
    const nb::object object = nb::steal(wrap_(&tensor));
    if (!object.is_valid()) {
      PyErr_Clear();
      return {};
    }
    Made made;
    std::int32_t index = 0;
    if (data_(&implementation, &made.data) != 0 || device_(&implementation, &index) != 0) {
      return {};
    }
    made.device = backend == Backend::kCuda ? index : 0;
    made.object = object.inc_ref().ptr();
    return made;
  } catch (...) {  // such as for want of memory, which PyTorch's function for Python tells better
    PyErr_Clear();
    return {};
  }
}

}  // namespace gradsmith::python
