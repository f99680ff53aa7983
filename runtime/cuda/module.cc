#include "cuda/module.h"

#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/capture.h"
#include "cuda/driver.h"

namespace gradsmith::cuda {

namespace {

using KernelMap = std::map<std::string, CUkernel, std::less<>>;

/// Adds the kernels of one image under their names.
Status AddImage(const KernelImage& image, KernelMap* kernels) {
  const DriverApi& driver = Driver();
  const std::string doing = std::string("loading the kernels of ") + image.name;
  CUlibrary library = nullptr;
  unsigned count = 0;
  if (Status status = ToStatus(
          driver.cuLibraryLoadData(&library, image.bytes, nullptr, nullptr, 0, nullptr, nullptr, 0),
          doing);
      !status.ok()) {
    return status;
  }
  if (Status status = ToStatus(driver.cuLibraryGetKernelCount(&count, library), doing);
      !status.ok()) {
    return status;
  }
  std::vector<CUkernel> found(count);
  Status status = ToStatus(driver.cuLibraryEnumerateKernels(found.data(), count, library), doing);
  for (std::size_t i = 0; i < found.size() && status.ok(); ++i) {
    const char* name = nullptr;
    status = ToStatus(driver.cuKernelGetName(&name, found[i]), doing);
    if (status.ok()) {
      kernels->emplace(name, found[i]);
    }
  }
  return status;
}

Result<KernelMap> LoadImage(const KernelImage& image) {
  // Loading is refused to a thread that captures, unless it says that it knows.
  const RelaxedCapture relaxed;
  KernelMap kernels;
  if (Status status = AddImage(image, &kernels); !status.ok()) {
    return status;
  }
  return kernels;
}

/// The kernels of an image, which is loaded when first asked for.
const Result<KernelMap>& KernelsOf(const KernelImage& image) {
  static auto& mutex = *new std::mutex;
  static auto& loaded = *new std::map<const KernelImage*, Result<KernelMap>>;
  const std::scoped_lock lock(mutex);
  const auto found = loaded.find(&image);
  return found != loaded.end() ? found->second
                               : loaded.emplace(&image, LoadImage(image)).first->second;
}

}  // namespace

Result<CUkernel> FindKernel(std::initializer_list<const KernelImage*> images, const char* name) {
  for (const KernelImage* image : images) {
    const Result<KernelMap>& kernels = KernelsOf(*image);
    if (!kernels.ok()) {
      return kernels.status();
    }
    if (const auto found = kernels->find(std::string_view(name)); found != kernels->end()) {
      return found->second;
    }
  }
  return Internal(std::string("there is no kernel ") + name);
}

Result<CUkernel> FindKernelOf(
    int most_shared_bytes,
    int device,
    std::initializer_list<const KernelImage*> images,
    const char* name) {
  Result<CUkernel> kernel = FindKernel(images, name);
  if (!kernel.ok()) {
    return kernel;
  }
  const Status status = ToStatus(
      Driver().cuKernelSetAttribute(
          CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most_shared_bytes, *kernel, device),
      "asking for shared memory");
  if (!status.ok()) {
    return status;
  }
  return kernel;
}

Status LaunchAny(CUkernel kernel, const LaunchShape& shape, CUstream stream, void** arguments) {
  // The driver takes a CUkernel for a CUfunction and finds the current device's code.
  auto* const function = reinterpret_cast<CUfunction>(kernel);
  const CUresult result =
      shape.cooperative ? Driver().cuLaunchCooperativeKernel(
                              function, shape.blocks_x, shape.blocks_y, shape.blocks_z,
                              shape.threads, 1, 1, shape.shared_bytes, stream, arguments)
                        : Driver().cuLaunchKernel(
                              function, shape.blocks_x, shape.blocks_y, shape.blocks_z,
                              shape.threads, 1, 1, shape.shared_bytes, stream, arguments, nullptr);
  Status status = ToStatus(result, "launching a kernel");
  const bool cannot =
      result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE || result == CUDA_ERROR_NOT_SUPPORTED;
  return shape.cooperative && cannot ? Unsupported(status.message()) : status;
}

}  // namespace gradsmith::cuda
