#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "emulated_gpu/block.h"
#include "emulated_gpu/device.h"
#include "emulated_gpu/kernel.h"
#include "emulated_gpu/stream.h"

/// The driver's functions that gradsmith calls, for GPUs that there are not.
namespace emulated_gpu {

namespace {

/// Memory begins at multiples of this, as the driver's does. What lies between an allocation's end
/// and the next guarded page is filled, and looked at when it is freed.
constexpr std::size_t kAlignment = 256;
constexpr unsigned char kFilling = 0xA5;
/// Not a number in any type, where nothing has been written. More than this takes long.
constexpr std::size_t kMostPoisoned = std::size_t{16} << 20U;

std::size_t RoundedUp(std::size_t size, std::size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

struct Allocation {
  std::size_t size = 0;
  int ordinal = 0;
  std::byte* base = nullptr;
  std::size_t mapped = 0;
};

class Memory {
 public:
  static Memory& Get() {
    static auto& memory = *new Memory;
    return memory;
  }

  CUresult Allocate(int ordinal, std::size_t size, CUdeviceptr* address) {
    if (size == 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::scoped_lock lock(mutex_);
    if (size > kMemoryBytes - used_.at(ordinal)) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t aligned = RoundedUp(size, kAlignment);
    const std::size_t readable = RoundedUp(aligned, page);
    void* base = mmap(
        nullptr, readable + page, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    auto* first = static_cast<std::byte*>(base) + (readable - aligned);
    mprotect(static_cast<std::byte*>(base) + readable, page, PROT_NONE);
    std::memset(first, 0xFF, std::min(size, kMostPoisoned));
    std::memset(first + size, kFilling, aligned - size);
    used_.at(ordinal) += size;
    *address = reinterpret_cast<CUdeviceptr>(first);
    allocations_[*address] = {size, ordinal, static_cast<std::byte*>(base), readable + page};
    return CUDA_SUCCESS;
  }

  CUresult Free(CUdeviceptr address) {
    if (address == 0) {
      return CUDA_SUCCESS;
    }
    const std::scoped_lock lock(mutex_);
    const auto found = allocations_.find(address);
    if (found == allocations_.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const Allocation& allocation = found->second;
    const auto* first = reinterpret_cast<const unsigned char*>(address);
    for (std::size_t i = allocation.size; i % kAlignment != 0; ++i) {
      if (first[i] != kFilling) {
        Fail("%zu bytes of memory were allocated, and byte %zu was written", allocation.size, i);
      }
    }
    used_.at(allocation.ordinal) -= allocation.size;
    munmap(allocation.base, allocation.mapped);
    allocations_.erase(found);
    return CUDA_SUCCESS;
  }

  std::size_t FreeBytes(int ordinal) {
    const std::scoped_lock lock(mutex_);
    return kMemoryBytes - used_.at(ordinal);
  }

 private:
  std::mutex mutex_;
  std::map<CUdeviceptr, Allocation> allocations_;
  std::array<std::size_t, kDevices> used_{};
};

CUcontext ContextOf(int ordinal) {
  static auto& contexts = *new std::array<CUctx_st, kDevices>{CUctx_st{0}, CUctx_st{1}};
  return &contexts.at(ordinal);
}

/// Of device `device`, which is its ordinal.
bool Exists(CUdevice device) {
  return device >= 0 && device < kDevices;
}

CUresult EnqueueLaunch(
    CUfunction function,
    const dim3& grid,
    const dim3& block,
    unsigned shared_bytes,
    CUstream stream,
    void** arguments,
    bool cooperative) {
  constexpr unsigned kMostBlocks = 65535;  // but in x
  const auto* kernel = reinterpret_cast<const Kernel*>(function);
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > kMostBlocks ||
      grid.z > kMostBlocks || threads == 0 || threads > kernel->most_threads ||
      shared_bytes > kernel->most_dynamic_shared) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUstream resolved = Resolve(stream);
  if (resolved == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (resolved->context != CurrentContext()) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  static const Order order = OrderOfEnvironment();
  const Launch launch = {
      .name = kernel->name.c_str(),
      .kernel = kernel->address,
      .grid = grid,
      .block = block,
      .shared_bytes = shared_bytes,
      .thread = kernel->bind(arguments),
      .cooperative = cooperative};
  return Enqueue(resolved, [launch, threads] {
    constexpr std::uint64_t kOfALaunch = 1000;
    Spend(kOfALaunch + threads * launch.grid.x * launch.grid.y * launch.grid.z);
    Run(launch, order);
  });
}

}  // namespace

}  // namespace emulated_gpu

using emulated_gpu::CheckNoCaptureForbids;
using emulated_gpu::CurrentContext;
using emulated_gpu::Enqueue;
using emulated_gpu::Kernel;
using emulated_gpu::Kernels;
using emulated_gpu::Memory;

extern "C" {

CUresult cuInit(unsigned /*flags*/) {
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  thread_local std::array<char, 32> text;
  std::snprintf(
      text.data(), text.size(), "%s",
      error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                        : ("CUresult " + std::to_string(error)).c_str());
  *name = text.data();
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult /*error*/, const char** text) {
  *text = "from the emulated GPU";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return emulated_gpu::Exists(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetCount(int* count) {
  *count = emulated_gpu::kDevices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice /*device*/) {
  std::snprintf(name, static_cast<std::size_t>(size), "emulated GPU");
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice /*device*/) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = emulated_gpu::ModelOfThisProcess().major;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = emulated_gpu::ModelOfThisProcess().minor;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = emulated_gpu::ModelOfThisProcess().multiprocessors;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = emulated_gpu::kL2Bytes;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = emulated_gpu::ModelOfThisProcess().shared_bytes;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      *value = emulated_gpu::ModelOfThisProcess().shared_bytes -
               emulated_gpu::ModelOfThisProcess().most_dynamic_shared;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice /*device*/) {
  *bytes = emulated_gpu::kMemoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = emulated_gpu::ContextOf(device);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = CurrentContext();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  emulated_gpu::SetCurrentContext(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  return CurrentContext() == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CheckNoCaptureForbids();
}

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  if (CurrentContext() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *free = Memory::Get().FreeBytes(CurrentContext()->ordinal);
  *total = emulated_gpu::kMemoryBytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t size) {
  if (CurrentContext() == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (const CUresult result = CheckNoCaptureForbids(); result != CUDA_SUCCESS) {
    return result;
  }
  return Memory::Get().Allocate(CurrentContext()->ordinal, size, address);
}

CUresult cuMemFree(CUdeviceptr address) {
  if (const CUresult result = CheckNoCaptureForbids(); result != CUDA_SUCCESS) {
    return result;
  }
  return Memory::Get().Free(address);
}

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t size, CUstream stream) {
  stream = emulated_gpu::Resolve(stream);
  if (stream == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (stream->frontier.capture != nullptr) {
    return CUDA_ERROR_NOT_SUPPORTED;  // a node, in CUDA; nothing of ours may make one
  }
  return Memory::Get().Allocate(stream->context->ordinal, size, address);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream /*stream*/) {
  return Memory::Get().Free(address);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  return Enqueue(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
  });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t size, CUstream stream) {
  return Enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(to), value, size); });
}

// Every image has all kernels: what an image is made of, its bytes do not tell.
CUresult cuLibraryLoadData(
    CUlibrary* library,
    const void* /*code*/,
    CUjit_option* /*jit_options*/,
    void** /*jit_values*/,
    unsigned /*jit_count*/,
    CUlibraryOption* /*options*/,
    void** /*values*/,
    unsigned /*count*/) {
  *library = nullptr;
  return CheckNoCaptureForbids();
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary /*library*/) {
  *count = static_cast<unsigned>(Kernels().size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary /*library*/) {
  for (unsigned i = 0; i < count; ++i) {
    kernels[i] = reinterpret_cast<CUkernel>(Kernels()[i]);
  }
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  *name = reinterpret_cast<const Kernel*>(kernel)->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(
    CUfunction_attribute attribute,
    int value,
    CUkernel kernel,
    CUdevice /*device*/) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      value > emulated_gpu::ModelOfThisProcess().most_dynamic_shared) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reinterpret_cast<Kernel*>(kernel)->most_dynamic_shared = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(
    CUfunction function,
    unsigned grid_x,
    unsigned grid_y,
    unsigned grid_z,
    unsigned block_x,
    unsigned block_y,
    unsigned block_z,
    unsigned shared_bytes,
    CUstream stream,
    void** arguments,
    void** /*extra*/) {
  return emulated_gpu::EnqueueLaunch(
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream,
      arguments, false);
}

CUresult cuLaunchCooperativeKernel(
    CUfunction function,
    unsigned grid_x,
    unsigned grid_y,
    unsigned grid_z,
    unsigned block_x,
    unsigned block_y,
    unsigned block_z,
    unsigned shared_bytes,
    CUstream stream,
    void** arguments) {
  const std::uint64_t blocks = std::uint64_t{grid_x} * grid_y * grid_z;
  const std::uint64_t threads = std::uint64_t{block_x} * block_y * block_z;
  if (blocks * threads > emulated_gpu::kMostTogether) {
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return emulated_gpu::EnqueueLaunch(
      function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream,
      arguments, true);
}

}  // extern "C"
