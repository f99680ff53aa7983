#include "core/warning.h"

#include <cstddef>
#include <cstdio>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "gradsmith/cache.h"

namespace gradsmith {

namespace {

struct Handler {
  std::mutex mutex;
  std::function<void(const std::string&)> function;
};

Handler& OfProcess() {
  // Never destroyed: threads may still call while the program ends.
  alignas(Handler) static std::byte memory[sizeof(Handler)];
  static auto& handler = *new (memory) Handler;
  return handler;
}

}  // namespace

void SetWarningHandler(std::function<void(const std::string& sentence)> handler) {
  const std::scoped_lock lock(OfProcess().mutex);
  OfProcess().function = std::move(handler);
}

namespace internal {

void Warn(const std::string& sentence) {
  std::function<void(const std::string&)> function;
  {
    const std::scoped_lock lock(OfProcess().mutex);
    function = OfProcess().function;
  }
  if (function) {
    function(sentence);
  } else {
    std::fputs(("gradsmith: " + sentence + "\n").c_str(), stderr);
  }
}

}  // namespace internal

}  // namespace gradsmith
