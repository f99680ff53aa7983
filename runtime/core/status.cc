#include "gradsmith/status.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace gradsmith {

namespace {

/// A text that is never destroyed: threads may still ask for it while the program ends.
class FixedText {
 public:
  explicit FixedText(const char* text) : text_(*new(memory_) std::string(text)) {}

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  alignas(std::string) std::byte memory_[sizeof(std::string)] = {};
  const std::string& text_;
};

const std::string& NoText() {
  static const FixedText none("");
  return none.text();
}

const std::string& OutOfMemoryText() {
  static const FixedText out_of_memory("out of memory");
  return out_of_memory.text();
}

#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
/// Made while the library is loaded: this std::string keeps no text in place, and when it is asked
/// for there is no memory. Any other keeps so short a one, and runs no code before main().
[[maybe_unused]] const std::string& made_out_of_memory_text = OutOfMemoryText();
#endif

}  // namespace

std::string_view ToString(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown status code";
}

Status::Status(StatusCode code, std::string message) noexcept : code_(code) {
  if (code == StatusCode::kOk || message.empty()) {
    return;
  }
  try {
    message_ = std::make_shared<const std::string>(std::move(message));
  } catch (const std::bad_alloc&) {
    code_ = StatusCode::kOutOfMemory;
  }
}

const std::string& Status::message() const noexcept {
  if (message_ != nullptr) {
    return *message_;
  }
  return code_ == StatusCode::kOutOfMemory ? OutOfMemoryText() : NoText();
}

Status Status::WithPrefix(std::string_view prefix) const noexcept {
  if (ok()) {
    return {};
  }
  try {
    std::string text(prefix);
    text += message();
    Status longer = *this;
    longer.message_ = std::make_shared<const std::string>(std::move(text));
    return longer;
  } catch (const std::exception&) {
    return *this;
  }
}

Status InvalidArgument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status Unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
Status OutOfMemory(std::string message) {
  return {StatusCode::kOutOfMemory, std::move(message)};
}
Status OutOfMemory() noexcept {
  return {StatusCode::kOutOfMemory, {}};
}
Status Internal(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

}  // namespace gradsmith
