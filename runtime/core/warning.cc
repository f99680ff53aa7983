#include "core/warning.h"

#include <cstdio>
#include <functional>
#include <mutex>
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
  static auto& handler = *new Handler;
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
