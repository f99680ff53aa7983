#ifndef GRADSMITH_PYTHON_TORCH_FUNCTIONS_H_
#define GRADSMITH_PYTHON_TORCH_FUNCTIONS_H_

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "dlpack.h"
#include "gradsmith/tensor.h"

namespace gradsmith::python {

/// IndexOf returns the place of what there is one of for each backend.
constexpr std::size_t IndexOf(Backend backend) {
  return backend == Backend::kCuda ? 1 : 0;
}

/// TorchFunctions are those of PyTorch's own C++ that its functions for Python come to, called
/// without the way there, which is half of reading a tensor and a third of making one. PyTorch's
/// headers are not needed: what is passed are pointers, numbers, and a tensor as what it is, a
/// pointer to its implementation. The functions are found by their mangled names, which tell the
/// types of parameters, so that a version with others has no such function. Callers then do what
/// they would without any.
class TorchFunctions {
 public:
  /// There are none.
  TorchFunctions() = default;
  /// `addresses` is a dict by the names of the members; those that PyTorch lacks are not in it.
  explicit TorchFunctions(nanobind::handle addresses);

  /// What a tensor's memory does not show is told too.
  struct View {
    dlpack::Tensor tensor;
    bool is_negative = false;
    bool requires_grad = false;
  };

  [[nodiscard]] bool CanView() const;
  /// IsInMode says whether a mode of torch.overrides answers what is asked of tensors in Python,
  /// where a tensor's implementation is: it may tell that of another, which is gone by then.
  [[nodiscard]] bool IsInMode() const { return is_in_mode_(); }
  /// View describes the tensor whose implementation is at an address, without data where its
  /// storage has none. False, and no error, where PyTorch does not.
  bool ViewOf(void* implementation, View* view) const;

  [[nodiscard]] bool CanMake(Backend backend) const;

  struct Made {
    /// Null, and no error, where PyTorch made none.
    PyObject* object = nullptr;
    void* data = nullptr;
    int device = 0;
  };
  /// Make makes a tensor on the current device. `key_set` is that of one which PyTorch itself made
  /// on a device of the kind: by then it has prepared its allocator, too.
  [[nodiscard]] Made Make(
      DataType type,
      const Dims& dims,
      const Strides& strides,
      Backend backend,
      std::uint64_t key_set) const;

 private:
  struct List {
    const std::int64_t* data;
    std::size_t size;
  };
  struct Allocator;
  struct KeySet {
    std::uint64_t bits;
  };
  /// c10::ScalarType, whose numbers GRADSMITH_ELEMENT_TYPES has.
  enum class ScalarType : std::int8_t {};
  /// Owned is a tensor in the caller's place that was returned, as classes with a destructor are.
  /// Whoever takes it leaves another pointer.
  struct Owned {
    Owned() = default;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    // A trivial one would have it returned in a register.
    // NOLINTNEXTLINE(modernize-use-equals-default)
    ~Owned() {}
    void* implementation = nullptr;
  };

  static ScalarType ToScalarType(DataType type);

  bool (*is_in_mode_)() = nullptr;
  bool (*is_neg_)(void* const& tensor) = nullptr;
  bool (*requires_grad_)(const void* implementation) = nullptr;
  /// That of PyTorch 2.11 has no last parameter, and does not look at what is passed for it.
  void (*to_dlpack_)(void* const& tensor, dlpack::Tensor* out, bool is_read_only) = nullptr;
  Owned (*empty_strided_)(List dims, List strides, Allocator* allocator, KeySet, ScalarType) =
      nullptr;
  std::array<Allocator* (*)(), 2> allocator_ = {};
  PyObject* (*wrap_)(Owned* tensor) = nullptr;
  std::int32_t (*data_)(void* const* tensor, void** data) = nullptr;
  std::int32_t (*device_)(void* const* tensor, std::int32_t* index) = nullptr;
  std::int32_t (*storage_offset_)(void* const* tensor, std::int64_t* elements) = nullptr;
};

}  // namespace gradsmith::python

#endif  // GRADSMITH_PYTHON_TORCH_FUNCTIONS_H_
