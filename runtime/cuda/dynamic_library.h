#ifndef GRADSMITH_CUDA_DYNAMIC_LIBRARY_H_
#define GRADSMITH_CUDA_DYNAMIC_LIBRARY_H_

#include <string>
#include <vector>

#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// DynamicLibrary is a shared library that is loaded when it is first needed and stays loaded: the
/// program starts, and runs on the CPU, where there is none.
class DynamicLibrary {
 public:
  /// Open takes the first of the candidates (paths, or names for the loader to search) that loads.
  /// The error names each and says why it did not.
  static Result<DynamicLibrary> Open(const std::vector<std::string>& candidates);

  /// Find sets `*function` to the address of a symbol.
  template <typename Function>
  Status Find(const char* symbol, Function* function) const {
    Result<void*> address = Address(symbol);
    if (!address.ok()) {
      return address.status();
    }
    *function = reinterpret_cast<Function>(*address);
    return {};
  }

  /// The file that was loaded.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  [[nodiscard]] Result<void*> Address(const char* symbol) const;

  void* handle_;
  std::string path_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_DYNAMIC_LIBRARY_H_
