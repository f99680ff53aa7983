#ifndef GRADSMITH_TENSOR_H_
#define GRADSMITH_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/types.h"

namespace gradsmith {

/// BasicList holds up to eight numbers in place. It never allocates. A longer list keeps its first
/// eight and remembers that it was too long, so that the call it is passed to can refuse it with a
/// sentence.
template <typename Number>
class BasicList {
 public:
  static constexpr int kCapacity = 8;

  constexpr BasicList() = default;
  constexpr BasicList(std::initializer_list<Number> values) {
    for (const Number value : values) {
      push_back(value);
    }
  }
  explicit constexpr BasicList(std::span<const Number> values) {
    for (const Number value : values) {
      push_back(value);
    }
  }
  /// Filled returns `count` copies of `value`.
  static constexpr BasicList Filled(int count, Number value) {
    BasicList result;
    for (int i = 0; i < count; ++i) {
      result.push_back(value);
    }
    return result;
  }

  constexpr void push_back(Number value) {
    if (size_ == kCapacity) {
      too_long_ = true;
      return;
    }
    values_[Index(size_++)] = value;
  }

  [[nodiscard]] constexpr int size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr bool too_long() const { return too_long_; }
  constexpr Number operator[](int i) const { return values_[Index(i)]; }
  constexpr Number& operator[](int i) { return values_[Index(i)]; }
  [[nodiscard]] constexpr const Number* begin() const { return values_.data(); }
  [[nodiscard]] constexpr const Number* end() const { return values_.data() + size_; }

  friend constexpr bool operator==(const BasicList& a, const BasicList& b) {
    if (a.size_ != b.size_) {
      return false;
    }
    for (int i = 0; i < a.size_; ++i) {
      if (a[i] != b[i]) {
        return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::size_t Index(int i) { return static_cast<std::size_t>(i); }

  std::array<Number, kCapacity> values_{};
  std::uint8_t size_ = 0;
  bool too_long_ = false;
};

/// IntList holds up to eight integers: dims, strides, and attributes such as `pads`.
using IntList = BasicList<std::int64_t>;
/// FloatList holds up to eight doubles: attributes such as `scales`.
using FloatList = BasicList<double>;

/// Dims are a tensor's dimensions, outermost first: (N, C, D...) whatever the memory layout.
using Dims = IntList;
/// Strides are counted in elements, one for each dimension.
using Strides = IntList;

inline constexpr int kMaxRank = IntList::kCapacity;

/// ToString returns, for example, "[2, 3, 9, 11]".
std::string ToString(const IntList& list);
/// ToString returns, for example, "[0.5, 2.0]".
std::string ToString(const FloatList& list);

/// ContiguousStrides returns the strides of a dense tensor, last dimension fastest (NCHW).
Strides ContiguousStrides(const Dims& dims);

/// ChannelsLastStrides returns the strides of dims (N, C, D...) stored as (N, D..., C) (NHWC).
Strides ChannelsLastStrides(const Dims& dims);

/// NumElements returns the product of dims, or -1 where it does not fit 63 bits or a dim is
/// negative.
std::int64_t NumElements(const Dims& dims);

/// BasicTensorRef is a non-owning view of a tensor whose element type is known at run time. A
/// default-constructed one is absent: it stands for an output that is not wanted, or for an
/// optional input that is not given.
template <typename Void>
struct BasicTensorRef {
  Void* data = nullptr;
  Dims dims;
  Strides strides;
  Device device;
  DataType type = DataType::kFloat;
  bool present = false;
  /// True of a gradient, an output, that is added to what is there (beta = 1) instead of replacing
  /// it.
  bool accumulate = false;

  BasicTensorRef() = default;
  /// The view is dense: its last dimension is the fastest.
  BasicTensorRef(DataType element_type, Void* first, const Dims& sizes, Device place = {})
      : BasicTensorRef(element_type, first, sizes, ContiguousStrides(sizes), place) {}
  BasicTensorRef(
      DataType element_type,
      Void* first,
      const Dims& sizes,
      const Strides& steps,
      Device place = {})
      : data(first),
        dims(sizes),
        strides(steps),
        device(place),
        type(element_type),
        present(true) {}
  /// A writable view serves as a read-only one.
  template <typename Other>
    requires(std::is_const_v<Void> && !std::is_const_v<Other>)
  BasicTensorRef(const BasicTensorRef<Other>& other)  // NOLINT(google-explicit-constructor)
      : data(other.data),
        dims(other.dims),
        strides(other.strides),
        device(other.device),
        type(other.type),
        present(other.present),
        accumulate(other.accumulate) {}

  [[nodiscard]] int rank() const { return dims.size(); }

  /// Accumulating returns the view of an output that is added to.
  [[nodiscard]] BasicTensorRef Accumulating() const {
    BasicTensorRef result = *this;
    result.accumulate = true;
    return result;
  }
};

/// TensorRef views a tensor that may be written.
using TensorRef = BasicTensorRef<void>;
/// ConstTensorRef views a tensor that is only read.
using ConstTensorRef = BasicTensorRef<const void>;

/// TensorView is a non-owning view whose element type is known at compile time: TensorView<float>
/// may be written, TensorView<const float> is only read. A default-constructed one is absent.
template <typename T>
class TensorView {
 public:
  using Ref = std::conditional_t<std::is_const_v<T>, ConstTensorRef, TensorRef>;

  TensorView() = default;
  /// The view is dense: its last dimension is the fastest.
  TensorView(T* data, const Dims& dims, Device device = {})
      : ref_(kDataTypeOf<std::remove_const_t<T>>, data, dims, device) {}
  TensorView(T* data, const Dims& dims, const Strides& strides, Device device = {})
      : ref_(kDataTypeOf<std::remove_const_t<T>>, data, dims, strides, device) {}
  /// A writable view serves as a read-only one.
  template <typename U>
    requires(std::is_const_v<T> && std::is_same_v<std::remove_const_t<T>, U>)
  // NOLINTNEXTLINE(google-explicit-constructor)
  TensorView(const TensorView<U>& other) : ref_(other.ref()) {}

  [[nodiscard]] T* data() const { return static_cast<T*>(ref_.data); }
  [[nodiscard]] const Dims& dims() const { return ref_.dims; }
  [[nodiscard]] const Strides& strides() const { return ref_.strides; }
  [[nodiscard]] bool present() const { return ref_.present; }
  [[nodiscard]] const Ref& ref() const { return ref_; }

  /// Accumulating returns the view of an output that is added to.
  [[nodiscard]] TensorView Accumulating() const {
    TensorView result = *this;
    result.ref_.accumulate = true;
    return result;
  }

 private:
  Ref ref_;
};

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_TENSOR_H_
