#include "cuda/tensor_ops.h"

#include <cuda.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda/alignment.h"
#include "cuda/driver.h"
#include "cuda/kernel_images.h"
#include "cuda/pair_dims.h"
#include "cuda/tensor_kernels.h"

namespace gradsmith::cuda {

namespace {

/// Pattern is a value of a type, repeated to fill a vector.
struct alignas(kVectorBytes) Pattern {
  std::array<std::uint64_t, 2> words{};
};

Pattern Repeat(std::uint64_t bits, std::size_t size) {
  if (size == 2) {
    bits *= 0x0001000100010001U;
  } else if (size == 4) {
    bits *= 0x0000000100000001U;
  }
  return {{bits, bits}};
}

Pattern PatternOf(double value, DataType type) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case DataType::kFloat:
      return Repeat(std::bit_cast<std::uint32_t>(single), 4);
    case DataType::kDouble:
      return Repeat(std::bit_cast<std::uint64_t>(value), 8);
    case DataType::kMLFloat16:
      return Repeat(MLFloat16(value).bits, 2);
    case DataType::kBFloat16:
      return Repeat(BFloat16(value).bits, 2);
    default:
      break;
  }
  return {};
}

}  // namespace

TensorRef PartOfDim(const TensorRef& tensor, int dim, std::int64_t begin, std::int64_t end) {
  TensorRef part = tensor;
  part.dims[dim] = end - begin;
  part.data = static_cast<std::byte*>(tensor.data) +
              (begin * tensor.strides[dim] * static_cast<std::int64_t>(SizeOf(tensor.type)));
  return part;
}

Status FillTensor(const DeviceInfo& device, CUstream stream, double value, const TensorRef& to) {
  static KernelsOfSizes kernels;
  if (Status status = CheckRank(to.rank()); !status.ok() || IsEmpty(to.dims)) {
    return status;
  }
  const Pattern pattern = PatternOf(value, to.type);
  PairDims dims = PairUp(to.dims, to.strides, to.strides);
  if (IsDense(dims) && pattern.words[0] == 0) {
    return ToStatus(
        Driver().cuMemsetD8Async(
            AddressOf(to.data), 0, static_cast<std::size_t>(dims.Count()) * SizeOf(to.type),
            stream),
        "filling device memory");
  }
  const std::size_t unit = Widen(SizeOf(to.type), AddressOf(to.data), &dims);
  const PairGrid grid = dims.Grid();
  // A kernel for smaller units takes as much of the pattern as it needs.
  const Result<CUkernel> kernel = FindOfSize(kImage_elementwise, &kernels, "fill_", unit);
  return LaunchFound(kernel, ElementShape(device, grid.count), stream, pattern, to.data, grid);
}

Status FillRandom(
    const DeviceInfo& device,
    CUstream stream,
    DataType type,
    void* data,
    std::int64_t count,
    std::uint64_t seed,
    const UniformRange& range) {
  static KernelsOfTypes kernels;
  if (count == 0) {
    return {};
  }
  return LaunchFound(
      FindOfType(kImage_elementwise, &kernels, "fill_random_", type), ElementShape(device, count),
      stream, data, count, seed, range.center, range.radius, range.levels);
}

Status CompareTensors(
    const DeviceInfo& device,
    CUstream stream,
    const ConstTensorRef& a,
    const ConstTensorRef& b,
    Difference* difference) {
  static KernelSlot kernel;
  if (Status status = CheckRank(a.rank()); !status.ok()) {
    return status;
  }
  if (Status status = ToStatus(
          Driver().cuMemsetD8Async(AddressOf(difference), 0, sizeof(Difference), stream),
          "clearing device memory");
      !status.ok() || IsEmpty(a.dims)) {
    return status;
  }
  const PairGrid grid = PairUp(a.dims, a.strides, b.strides).Grid();
  return LaunchFound(
      FindOnce(kImage_compare, &kernel, "compare", [] { return std::string(); }),
      ElementShape(device, grid.count), stream, a.data, b.data, static_cast<int>(a.type),
      static_cast<int>(b.type), grid, difference);
}

}  // namespace gradsmith::cuda
