#include "batch_norm/cuda/resident.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "batch_norm/cuda/own_plan.h"
#include "cuda/kernel_images.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"

namespace gradsmith::batch_norm {
namespace {

template <int kElementBytes, bool kRelu>
constexpr int kSharedBytes = own::kResidentScratch<kElementBytes, kRelu> +
                             own::kResidentSlots<kElementBytes, kRelu> * own::kResidentStep;

/// Copies to shared memory are the hardware's from this compute capability on.
constexpr int kCopiesToShared = 80;

/// Of a block.
int SharedBytes(Activation activation, DataType type) {
  const bool relu = activation == Activation::kRelu;
  switch (SizeOf(type)) {
    case 2:
      return relu ? kSharedBytes<2, true> : kSharedBytes<2, false>;
    case 4:
      return relu ? kSharedBytes<4, true> : kSharedBytes<4, false>;
    default:
      return relu ? kSharedBytes<8, true> : kSharedBytes<8, false>;
  }
}

/// Whether blocks have their channels to themselves.
bool IsWhole(const own::Walk& walk) {
  return walk.slices == 1 && walk.places == walk.channels;
}

/// The kernels by device: how much shared memory a kernel may ask for is a matter of both.
Result<CUkernel>
FindResident(const cuda::DeviceInfo& device, Activation activation, bool whole, DataType type) {
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<std::tuple<int, bool, bool, DataType>, CUkernel>;
  const bool relu = activation == Activation::kRelu;
  const std::tuple key(device.ordinal(), relu, whole, type);
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(key); found != known.end()) {
    return found->second;
  }
  const std::string name = std::string(relu ? "gradsmith_bn_relu" : "gradsmith_bn") +
                           (whole ? "_whole_backward_" : "_resident_backward_") +
                           std::string(cuda::KernelSuffix(type));
  Result<CUkernel> kernel = cuda::FindKernelOf(
      SharedBytes(activation, type), device.ordinal(),
      {relu ? &cuda::kImage_batch_norm_relu : &cuda::kImage_batch_norm}, name.c_str());
  if (kernel.ok()) {
    known.emplace(key, *kernel);
  }
  return kernel;
}

}  // namespace

bool IsResident(
    const cuda::DeviceInfo& device,
    Activation activation,
    DataType type,
    std::int64_t blocks,
    const own::Walk& walk,
    const own::Operands& operands) {
  const int shared = SharedBytes(activation, type) + device.reserved_shared_bytes();
  const int at_once = std::min(own::kResidentBlocks, device.shared_bytes() / shared);
  const bool fits = IsWhole(walk)
                        ? at_once > 0
                        : blocks * walk.slices <= std::int64_t{at_once} * device.multiprocessors();
  return fits && device.compute_capability() >= kCopiesToShared && own::IsAligned(operands.dY) &&
         own::IsAligned(operands.X);
}

Status RunResident(
    const cuda::DeviceInfo& device,
    CUstream stream,
    Activation activation,
    DataType type,
    std::int64_t blocks,
    const own::BackwardFinish& finish,
    const own::Operands& operands,
    double* partials,
    double* coefficients) {
  const bool whole = IsWhole(finish.walk);
  const Result<CUkernel> kernel = FindResident(device, activation, whole, type);
  if (!kernel.ok()) {
    return kernel.status();
  }
  const cuda::LaunchShape shape = {
      .blocks_x = static_cast<unsigned>(blocks),
      .blocks_y = static_cast<unsigned>(finish.walk.slices),
      .threads = own::kThreads,
      .shared_bytes = static_cast<unsigned>(SharedBytes(activation, type)),
      .cooperative = !whole};
  return cuda::Launch(*kernel, shape, stream, finish, operands, partials, coefficients);
}

}  // namespace gradsmith::batch_norm
