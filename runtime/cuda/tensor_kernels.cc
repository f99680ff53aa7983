#include "cuda/tensor_kernels.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/tiles.h"
#include "cuda/kernels/tensor_ops.h"

namespace gradsmith::cuda {

// LoadElement of cuda/kernels/element.cuh knows the types by these numbers.
static_assert(
    static_cast<int>(DataType::kFloat) == 0 && static_cast<int>(DataType::kDouble) == 1 &&
    static_cast<int>(DataType::kMLFloat16) == 2 && static_cast<int>(DataType::kBFloat16) == 3);

std::string Suffix(DataType type) {
  return std::string(KernelSuffix(type));
}

Result<CUkernel> FindOfType(
    const KernelImage& image,
    KernelsOfTypes* slots,
    std::string_view family,
    DataType type) {
  return FindOnce(
      image, &(*slots)[static_cast<std::size_t>(type)], family, [type] { return Suffix(type); });
}

Result<CUkernel> FindOfSize(
    const KernelImage& image,
    KernelsOfSizes* slots,
    std::string_view family,
    std::size_t size) {
  return FindOnce(image, &(*slots)[std::countr_zero(size) - 1], family, [size] {
    return std::to_string(size);
  });
}

LaunchShape ElementShape(const DeviceInfo& device, std::int64_t count) {
  constexpr std::int64_t kBlocksOfMultiprocessor = 64;
  const std::int64_t blocks =
      internal::CeilDivide(count, std::int64_t{kElementThreads} * kElementBatch);
  const std::int64_t most = kBlocksOfMultiprocessor * device.multiprocessors();
  return {
      .blocks_x = static_cast<unsigned>(std::min(blocks, most)),
      .blocks_y = 1,
      .blocks_z = 1,
      .threads = kElementThreads,
      .shared_bytes = 0};
}

}  // namespace gradsmith::cuda
