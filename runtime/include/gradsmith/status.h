#ifndef GRADSMITH_STATUS_H_
#define GRADSMITH_STATUS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/language.h"

namespace gradsmith {

/// StatusCode says what kind of error came.
enum class StatusCode : std::uint8_t {
  kOk,
  kInvalidArgument,  ///< the caller can mend it: a shape, a type, an attribute, a device
  kUnsupported,      ///< no row of the dispatch table, or no kernel, does what was asked
  kOutOfMemory,      ///< memory ran out; nothing the caller passed in is wrong
  kInternal,         ///< a fault in the library or below it
};

/// ToString returns the code's name, for example "invalid argument".
std::string_view ToString(StatusCode code);

/// Status is success, or a code and a sentence that names the op, the combination, the tensor, what
/// was expected and what came. Copies share the sentence. Neither success, nor a copy, nor running
/// out of memory needs memory: where there is none for a sentence, the Status is kOutOfMemory.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) noexcept;

  [[nodiscard]] bool ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] StatusCode code() const { return code_; }
  /// message returns the sentence, which is empty for success.
  [[nodiscard]] const std::string& message() const noexcept;

  /// WithPrefix returns the same error with `prefix` before its sentence, or, where there is no
  /// memory for that, as it is; success stays success.
  [[nodiscard]] Status WithPrefix(std::string_view prefix) const noexcept;

 private:
  StatusCode code_ = StatusCode::kOk;
  /// The sentence, or null where there is none.
  std::shared_ptr<const std::string> message_;
};

/// InvalidArgument, Unsupported, OutOfMemory and Internal return the errors of these codes.
Status InvalidArgument(std::string message);
Status Unsupported(std::string message);
Status OutOfMemory(std::string message);
/// OutOfMemory without a sentence of its own needs no memory.
Status OutOfMemory() noexcept;
Status Internal(std::string message);

/// Result is a value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  [[nodiscard]] Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  /// The value may be asked for only when ok(); otherwise std::bad_variant_access is thrown.
  [[nodiscard]] const T& value() const& { return std::get<T>(state_); }
  [[nodiscard]] T& value() & { return std::get<T>(state_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<Status, T> state_;
};

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_STATUS_H_
