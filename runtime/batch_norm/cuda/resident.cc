#include "batch_norm/cuda/resident.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

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

/// How much shared memory a block takes, in bytes.
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

Result<CUkernel>
FindResident(const cuda::DeviceInfo& device, Activation activation, bool whole, DataType type) {
  static auto& plain = *new cuda::DeviceKernelTable(cuda::kImage_batch_norm);
  static auto& relu = *new cuda::DeviceKernelTable(cuda::kImage_batch_norm_relu);
  const bool has_relu = activation == Activation::kRelu;
  std::string_view name = whole ? "gradsmith_bn_whole_backward" : "gradsmith_bn_resident_backward";
  if (has_relu) {
    name = whole ? "gradsmith_bn_relu_whole_backward" : "gradsmith_bn_relu_resident_backward";
  }
  return (has_relu ? relu : plain)
      .Find(device.ordinal(), whole ? 1 : 0, name, type, SharedBytes(activation, type));
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
