#ifndef GRADSMITH_CORE_INLINE_VECTOR_H_
#define GRADSMITH_CORE_INLINE_VECTOR_H_

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace gradsmith::internal {

/// InlineVector holds up to kCapacity values in place and never allocates. What was not added is
/// neither made nor copied, so that room for many values costs a call with few nothing.
template <typename T, int kCapacity>
class InlineVector {  // NOLINT(*-pro-type-member-init): only size_ values are made
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  InlineVector() {}  // NOLINT(modernize-use-equals-default): a union's would be deleted
  InlineVector(std::initializer_list<T> values) {
    for (const T& value : values) {
      push_back(value);
    }
  }
  InlineVector(const InlineVector& other) { Assign(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      Assign(other);
    }
    return *this;
  }
  InlineVector(InlineVector&& other) noexcept { Assign(other); }
  InlineVector& operator=(InlineVector&& other) noexcept {
    *this = other;  // values are trivial: to move them is to copy them
    return *this;
  }
  ~InlineVector() = default;

  /// The vector has room for the value.
  void push_back(const T& value) { emplace_back(value); }
  /// Makes a value of the arguments, in its place.
  template <typename... Arguments>
  void emplace_back(Arguments&&... arguments) {
    assert(size_ < kCapacity);
    std::construct_at(values_.data() + size_++, std::forward<Arguments>(arguments)...);
  }
  /// Adds default values, or drops the last ones, until there are `size`.
  void resize(int size) {
    while (size_ < size) {
      emplace_back();
    }
    size_ = size;
  }

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T& operator[](int i) {
    assert(i >= 0 && i < size_);
    return values_[static_cast<std::size_t>(i)];
  }
  const T& operator[](int i) const {
    assert(i >= 0 && i < size_);
    return values_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] T* begin() { return values_.data(); }
  [[nodiscard]] T* end() { return values_.data() + size_; }
  [[nodiscard]] const T* begin() const { return values_.data(); }
  [[nodiscard]] const T* end() const { return values_.data() + size_; }
  [[nodiscard]] const T* data() const { return values_.data(); }

 private:
  void Assign(const InlineVector& other) {
    size_ = other.size_;
    std::uninitialized_copy(other.begin(), other.end(), values_.data());
  }

  union {
    std::array<T, kCapacity> values_;
  };
  int size_ = 0;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_INLINE_VECTOR_H_
