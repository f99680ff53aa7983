#include "gradsmith/status.h"

#include <string>
#include <string_view>
#include <utility>

namespace gradsmith {

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

Status Status::WithPrefix(std::string_view prefix) const {
  if (ok()) {
    return {};
  }
  std::string message(prefix);
  message += message_;
  return {code_, std::move(message)};
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
Status Internal(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

}  // namespace gradsmith
