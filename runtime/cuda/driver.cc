#include "cuda/driver.h"

#include <string>
#include <string_view>

#include "core/origin_process.h"
#include "cuda/dynamic_library.h"

// cuda.h defines cuMemAlloc as cuMemAlloc_v2 and so on: the symbol is what the macro expands to.
#define GRADSMITH_TEXT(text) #text
#define GRADSMITH_SYMBOL(name) GRADSMITH_TEXT(name)

namespace gradsmith::cuda {

namespace {

constexpr const char* kAfterFork = "; as in a fork's child whose parent has used CUDA";

Status FindFunctions(const DynamicLibrary& library, DriverApi* api) {
#define GRADSMITH_FIND(name)                                                            \
  if (Status status = library.Find(GRADSMITH_SYMBOL(name), &api->name); !status.ok()) { \
    return status;                                                                      \
  }
  GRADSMITH_DRIVER_FUNCTIONS(GRADSMITH_FIND)
#undef GRADSMITH_FIND
  return {};
}

std::string CodeText(const DriverApi& api, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.cuGetErrorName(result, &name);
  api.cuGetErrorString(result, &text);
  return std::string(name == nullptr ? "unknown error" : name) + " (" +
         (text == nullptr ? "no text" : text) + ")";
}

Result<DriverApi> Load() {
  Result<DynamicLibrary> library = DynamicLibrary::Open({"libcuda.so.1"});
  if (!library.ok()) {
    return library.status().WithPrefix("there is no NVIDIA driver: ");
  }
  DriverApi api;
  if (Status status = FindFunctions(*library, &api); !status.ok()) {
    return status.WithPrefix("the NVIDIA driver is too old: ");
  }
  if (const CUresult result = api.cuInit(0); result != CUDA_SUCCESS) {
    return Unsupported(
        "the NVIDIA driver does not start: " + CodeText(api, result) +
        (result == CUDA_ERROR_NOT_INITIALIZED ? kAfterFork : ""));
  }
  return api;
}

struct Loaded {
  Result<DriverApi> api = Load();
  internal::OriginProcess by;
};

const Loaded& LoadOnce() {
  static const auto& loaded = *new Loaded;
  return loaded;
}

}  // namespace

const Result<DriverApi>& LoadDriver() {
  return LoadOnce().api;
}

Status CheckDriver() {
  const Loaded& loaded = LoadOnce();
  if (!loaded.api.ok() || loaded.by.IsCurrent()) {
    return loaded.api.status();
  }
  return Unsupported(
      "CUDA is the parent process's, which used it before fork(); use it in the child alone, or in "
      "a program that the child starts by exec()");
}

const DriverApi& Driver() {
  static const DriverApi& api = LoadDriver().value();
  return api;
}

Status ToStatus(CUresult result, std::string_view doing) {
  if (result == CUDA_SUCCESS) {
    return {};
  }
  const std::string message = std::string(doing) + ": " + CodeText(Driver(), result);
  return result == CUDA_ERROR_OUT_OF_MEMORY ? OutOfMemory(message) : Internal(message);
}

}  // namespace gradsmith::cuda
