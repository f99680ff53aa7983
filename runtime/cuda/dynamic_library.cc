#include "cuda/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <vector>

namespace gradsmith::cuda {

namespace {

std::string LoaderMessage() {
  const char* message = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is per thread
  return message == nullptr ? "no reason given" : message;
}

std::string PathOf(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && *map->l_name != '\0') {
    return map->l_name;
  }
  return fallback;
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::Open(const std::vector<std::string>& candidates) {
  std::string reasons;
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return DynamicLibrary(handle, PathOf(handle, candidate));
    }
    reasons += (reasons.empty() ? "" : "; ") + LoaderMessage();
  }
  return Unsupported(reasons);
}

Result<void*> DynamicLibrary::Address(const char* symbol) const {
  if (void* address = dlsym(handle_, symbol); address != nullptr) {
    return address;
  }
  return Unsupported(path_ + " has no " + symbol + "; a newer version is needed");
}

}  // namespace gradsmith::cuda
