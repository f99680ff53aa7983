#include "cuda/module.h"

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/kernel_images.h"

namespace gradsmith::cuda {

namespace {

Result<std::vector<CUlibrary>> LoadImages() {
  // Loading is refused to a thread that captures, unless it says that it knows.
  const RelaxedCapture relaxed;
  std::vector<CUlibrary> libraries;
  for (const KernelImage& image : KernelImages()) {
    libraries.emplace_back();
    if (Status status = ToStatus(
            Driver().cuLibraryLoadData(
                &libraries.back(), image.bytes, nullptr, nullptr, 0, nullptr, nullptr, 0),
            std::string("loading the kernels of ") + image.name);
        !status.ok()) {
      return status;
    }
  }
  return libraries;
}

Result<CUkernel> FindIn(const std::vector<CUlibrary>& libraries, const char* name) {
  CUresult result = CUDA_ERROR_NOT_FOUND;
  for (const CUlibrary library : libraries) {
    CUkernel kernel = nullptr;
    result = Driver().cuLibraryGetKernel(&kernel, library, name);
    if (result == CUDA_SUCCESS) {
      return kernel;
    }
  }
  return ToStatus(result, std::string("finding the kernel ") + name);
}

}  // namespace

Result<CUkernel> FindKernel(const char* name) {
  static const auto& libraries = *new Result<std::vector<CUlibrary>>(LoadImages());
  static auto& mutex = *new std::mutex;
  static auto& kernels = *new std::map<std::string, CUkernel, std::less<>>;
  if (!libraries.ok()) {
    return libraries.status();
  }
  const std::scoped_lock lock(mutex);
  if (const auto found = kernels.find(name); found != kernels.end()) {
    return found->second;
  }
  Result<CUkernel> kernel = FindIn(*libraries, name);
  if (kernel.ok()) {
    kernels.emplace(name, *kernel);
  }
  return kernel;
}

Status LaunchAny(CUkernel kernel, const LaunchShape& shape, CUstream stream, void** arguments) {
  return ToStatus(
      Driver().cuLaunchKernel(
          // The driver takes a CUkernel for a CUfunction and finds the current device's code.
          reinterpret_cast<CUfunction>(kernel), shape.blocks_x, shape.blocks_y, shape.blocks_z,
          shape.threads, 1, 1, shape.shared_bytes, stream, arguments, nullptr),
      "launching a kernel");
}

}  // namespace gradsmith::cuda
