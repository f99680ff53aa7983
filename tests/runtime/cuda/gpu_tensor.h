#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_GPU_TENSOR_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_GPU_TENSOR_H_

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "cuda/driver.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/test_clock.h"
#include "support/elements.h"
#include "support/test_tensor.h"
#include "support/turns.h"

/// What tests of our own kernels share: a GPU, and tensors that are on it and on the host.
namespace gradsmith::cuda {

using support::IsEmulated;
using support::RunsOfCall;
using support::Turns;

/// GpuTest skips its tests where there is no GPU. They run on the default stream of the first one.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (IsEmulated()) {
      clock_.emplace();  // how long the emulation takes says nothing
    }
    const Result<const DeviceInfo*> device = DeviceInfo::Open(0);
    if (!device.ok()) {
      GTEST_SKIP() << device.status().message();
    }
    device_ = *device;
    current_.emplace(*device_);
  }

  [[nodiscard]] const DeviceInfo& device() const { return *device_; }
  static constexpr CUstream kStream = nullptr;

 private:
  std::optional<TestClock> clock_;
  const DeviceInfo* device_ = nullptr;
  std::optional<CurrentDevice> current_;
};

/// Block is device memory.
class Block {
 public:
  explicit Block(std::size_t size) : size_(std::max<std::size_t>(size, 1)) {
    EXPECT_EQ(Driver().cuMemAlloc(&address_, size_), CUDA_SUCCESS);
  }
  Block(const Block&) = delete;
  Block(Block&&) = delete;
  Block& operator=(const Block&) = delete;
  Block& operator=(Block&&) = delete;
  ~Block() { Driver().cuMemFree(address_); }

  [[nodiscard]] std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }
  [[nodiscard]] std::size_t size() const { return size_; }

  void CopyIn(std::span<const std::byte> bytes) const {
    Copy(address_, reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size());
  }
  [[nodiscard]] std::vector<std::byte> CopyOut() const {
    std::vector<std::byte> bytes(size_);
    Copy(reinterpret_cast<CUdeviceptr>(bytes.data()), address_, size_);
    return bytes;
  }
  void Fill(unsigned char value) const {
    EXPECT_EQ(Driver().cuMemsetD8Async(address_, value, size_, nullptr), CUDA_SUCCESS);
  }

 private:
  static void Copy(CUdeviceptr to, CUdeviceptr from, std::size_t size) {
    EXPECT_EQ(Driver().cuMemcpyAsync(to, from, size, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(Driver().cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }

  CUdeviceptr address_ = 0;
  std::size_t size_;
};

/// CopyAndWait copies between host and device, for plans of tests that compute on the host.
inline Status CopyAndWait(void* to, const void* from, std::size_t bytes, CUstream stream) {
  const CUresult copied = Driver().cuMemcpyAsync(
      reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream);
  return ToStatus(
      copied == CUDA_SUCCESS ? Driver().cuStreamSynchronize(stream) : copied, "copying");
}

using Sizes = std::vector<std::int64_t>;

/// GpuTensor is one tensor on the host and on the GPU: the CPU backend works on the one, our
/// kernels on the other. All that is not an element has every bit set.
class GpuTensor {
 public:
  /// Bytes before and after the elements.
  static constexpr std::size_t kGuard = 64;

  /// `misaligned` is how many elements the data are off a 64-byte boundary.
  GpuTensor(DataType type, Sizes dims, Sizes strides, std::size_t misaligned = 0)
      : type_(type),
        dims_(std::move(dims)),
        strides_(std::move(strides)),
        begin_(kGuard + (misaligned * SizeOf(type))),
        host_(ByteOffset(Extent()) + kGuard, kPoison),
        gpu_(host_.size()) {
    Upload();
  }
  GpuTensor(DataType type, const Sizes& dims, support::Layout layout)
      : GpuTensor(
            type,
            dims,
            support::StridesFor(layout, dims),
            layout == support::Layout::kStrided ? 1 : 0) {}

  /// Fill sets the elements of both, in the order of their indices.
  void Fill(const std::function<double()>& draw) {
    ForEach([&](std::size_t at) { support::Encode(type_, draw(), &host_[at]); });
    Upload();
  }
  void FillRandom(reference::Random& random, double low = -1, double high = 1) {
    Fill([&] { return random.Real(low, high); });
  }
  /// Set changes one element of the GPU's.
  void SetOnGpu(std::size_t index, double value) {
    std::vector<std::byte> bytes = gpu_.CopyOut();
    std::size_t left = index;
    ForEach([&](std::size_t at) {
      if (left-- == 0) {
        support::Encode(type_, value, &bytes[at]);
      }
    });
    gpu_.CopyIn(bytes);
  }
  /// Upload makes the GPU's bytes the host's.
  void Upload() { gpu_.CopyIn(host_); }

  [[nodiscard]] std::vector<double> HostValues() const { return ValuesOf(host_); }
  [[nodiscard]] std::vector<double> GpuValues() const { return ValuesOf(gpu_.CopyOut()); }
  [[nodiscard]] std::vector<std::byte> GpuBytes() const { return gpu_.CopyOut(); }
  /// Whether nothing but elements was written.
  [[nodiscard]] bool SurroundingsIntact() const {
    std::vector<std::byte> bytes = gpu_.CopyOut();
    ForEach([&](std::size_t at) { std::fill_n(&bytes[at], SizeOf(type_), kPoison); });
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kPoison; });
  }

  [[nodiscard]] TensorRef HostRef() {
    return {type_, host_.data() + begin_, support::ToIntList(dims_), support::ToIntList(strides_)};
  }
  [[nodiscard]] TensorRef GpuRef() const {
    return {
        type_, gpu_.data() + begin_, support::ToIntList(dims_), support::ToIntList(strides_),
        Device{Backend::kCuda, 0}};
  }
  [[nodiscard]] DataType type() const { return type_; }

 private:
  static constexpr std::byte kPoison{0xFF};

  [[nodiscard]] std::int64_t Extent() const {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < dims_.size(); ++axis) {
      last += std::max<std::int64_t>(dims_[axis] - 1, 0) * strides_[axis];
    }
    return last + 1;
  }
  [[nodiscard]] std::size_t ByteOffset(std::int64_t offset) const {
    return begin_ + (static_cast<std::size_t>(offset) * SizeOf(type_));
  }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    support::ForEachOffset(
        dims_, strides_, [&](std::int64_t offset) { visit(ByteOffset(offset)); });
  }
  [[nodiscard]] std::vector<double> ValuesOf(const std::vector<std::byte>& bytes) const {
    std::vector<double> values;
    ForEach([&](std::size_t at) { values.push_back(support::Decode(type_, &bytes[at])); });
    return values;
  }

  DataType type_;
  Sizes dims_;
  Sizes strides_;
  std::size_t begin_;
  std::vector<std::byte> host_;
  Block gpu_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_GPU_TENSOR_H_
