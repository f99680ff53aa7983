#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_TENSOR_OPS_FIXTURE_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_TENSOR_OPS_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cuda/tensor_ops.h"
#include "reference/random.h"
#include "support/device_memory.h"
#include "support/elements.h"
#include "support/test_tensor.h"

/// Tensors that lie anywhere, for the tests of kernels that copy, fill, compare and sum them.
namespace gradsmith::cuda::tensor_ops_test {

using reference::Random;
using reference::Shape;
using support::DeviceMemory;
using support::DeviceStream;

inline constexpr std::array<DataType, kFloatingTypeCount> kTypes = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

/// Where a tensor's elements are: strides, and how many elements before the first one.
struct Placement {
  std::vector<std::int64_t> strides;
  std::int64_t shift = 0;
};

/// Strides of a tensor whose dims lie in memory in this order.
inline std::vector<std::int64_t> StridesInOrder(
    const Shape& dims,
    const std::vector<int>& innermost_first) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t step = 1;
  for (const int axis : innermost_first) {
    strides[axis] = step;
    step *= std::max<std::int64_t>(dims[axis], 1);
  }
  return strides;
}

inline Placement Contiguous(const Shape& dims) {
  return {support::StridesFor(support::Layout::kContiguous, dims)};
}

inline Placement ChannelsLast(const Shape& dims) {
  return {support::StridesFor(support::Layout::kChannelsLast, dims)};
}

/// Any order of dims, and often gaps and an odd address.
inline Placement RandomPlacement(const Shape& dims, Random* random) {
  Placement placement;
  placement.strides.resize(dims.size());
  std::vector<std::size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random->Integer(0, static_cast<std::int64_t>(i) - 1)]);
  }
  std::int64_t step = random->Chance(0.2) ? 2 : 1;
  for (const std::size_t axis : order) {
    placement.strides[axis] = step;
    step *= std::max<std::int64_t>(dims[axis], 1);
    step += random->Chance(0.3) ? random->Integer(1, 8) : 0;
  }
  placement.shift = random->Chance(0.3) ? random->Integer(1, 9) : 0;
  return placement;
}

/// The same with zero strides, for what is only read.
inline Placement RandomSource(const Shape& dims, Random* random) {
  Placement placement = RandomPlacement(dims, random);
  for (std::int64_t& stride : placement.strides) {
    stride = random->Chance(0.15) ? 0 : stride;
  }
  return placement;
}

inline Shape RandomDims(Random* random, int rank) {
  // The product stays near 20 thousand.
  const auto most = static_cast<std::int64_t>(std::pow(20000.0, 1.0 / rank));
  Shape dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(random->Chance(0.1) ? 1 : random->Integer(1, 2 * most));
  }
  return dims;
}

inline std::vector<std::int64_t> OffsetsOf(
    const Shape& dims,
    const std::vector<std::int64_t>& strides) {
  std::vector<std::int64_t> offsets;
  support::ForEachOffset(dims, strides, [&](std::int64_t offset) { offsets.push_back(offset); });
  return offsets;
}

/// Tensor is a tensor on the device with poison before, between and behind its elements.
class Tensor {
 public:
  Tensor(const DeviceStream& stream, DataType type, Shape dims, Placement placement)
      : type_(type),
        dims_(std::move(dims)),
        strides_(std::move(placement.strides)),
        offsets_(OffsetsOf(dims_, strides_)),
        begin_(kGuard + (static_cast<std::size_t>(placement.shift) * SizeOf(type))),
        bytes_(Size(), kPoison),
        memory_(stream, bytes_.size()) {
    memory_.CopyIn(bytes_);
  }

  /// Writes the values, one to each element. Where elements share memory, the last value stays.
  void Fill(const std::vector<double>& values) {
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      support::Encode(type_, values[i], &bytes_[ByteOffset(offsets_[i])]);
    }
    memory_.CopyIn(bytes_);
  }
  /// Multiples of 1/64 in [-1, 1), whose sums are exact.
  void FillRandomly(Random* random) {
    std::vector<double> values(offsets_.size());
    std::generate(values.begin(), values.end(), [&] {
      return static_cast<double>(random->Integer(-64, 63)) / 64;
    });
    Fill(values);
  }

  /// The values that Fill left, last dim fastest.
  [[nodiscard]] std::vector<double> Filled() const { return Decode(bytes_); }

  /// Checks that the device holds these values, each rounded once, and poison around them.
  void ExpectValues(const std::vector<double>& values) {
    std::vector<std::byte> expected = bytes_;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      support::Encode(type_, values[i], &expected[ByteOffset(offsets_[i])]);
    }
    const std::vector<std::byte> found = memory_.CopyOut();
    if (found == expected) {
      return;
    }
    const std::vector<double> found_values = Decode(found);
    int reported = 0;
    for (std::size_t i = 0; i < values.size() && reported < 5; ++i) {
      const double value = support::Round(type_, values[i]);
      if (found_values[i] != value) {
        ADD_FAILURE() << "element " << i << " is " << found_values[i] << "; expected " << value;
        ++reported;
      }
    }
    if (reported == 0) {
      const auto first = std::mismatch(found.begin(), found.end(), expected.begin()).first;
      ADD_FAILURE() << "byte " << first - found.begin() << " of " << found.size()
                    << " changed; elements begin at " << begin_;
    }
  }

  [[nodiscard]] std::vector<std::byte> Bytes() const { return memory_.CopyOut(); }
  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] const Shape& dims() const { return dims_; }
  [[nodiscard]] std::size_t count() const { return offsets_.size(); }
  [[nodiscard]] TensorRef Ref() const {
    return {
        type_,
        memory_.data() + begin_,
        support::ToIntList(dims_),
        support::ToIntList(strides_),
        {Backend::kCuda, 0}};
  }
  [[nodiscard]] std::string Text() const {
    return std::string(ToString(type_)) + " " + support::ToString(dims_) + " strides " +
           support::ToString(strides_) + " at byte " + std::to_string(begin_ % 16);
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::byte kPoison{0xFF};

  [[nodiscard]] std::size_t ByteOffset(std::int64_t offset) const {
    return begin_ + (static_cast<std::size_t>(offset) * SizeOf(type_));
  }
  [[nodiscard]] std::size_t Size() const {
    const auto last = std::max_element(offsets_.begin(), offsets_.end());
    return ByteOffset(last == offsets_.end() ? 0 : *last + 1) + kGuard;
  }
  [[nodiscard]] std::vector<double> Decode(const std::vector<std::byte>& bytes) const {
    std::vector<double> values;
    values.reserve(offsets_.size());
    for (const std::int64_t offset : offsets_) {
      values.push_back(support::Decode(type_, &bytes[ByteOffset(offset)]));
    }
    return values;
  }

  DataType type_;
  Shape dims_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> offsets_;
  std::size_t begin_;
  std::vector<std::byte> bytes_;
  DeviceMemory memory_;
};

class TensorOpsTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<const DeviceInfo*> device = DeviceInfo::Open(0);
    if (!device.ok()) {
      GTEST_SKIP() << device.status().message();
    }
    stream_ = std::make_unique<DeviceStream>(**device);
  }

  [[nodiscard]] const DeviceStream& stream() const { return *stream_; }
  [[nodiscard]] const DeviceInfo& device() const { return stream_->device(); }

  Tensor Make(DataType type, const Shape& dims, const Placement& placement) const {
    return {*stream_, type, dims, placement};
  }

  void CheckCopy(Tensor* from, Tensor* to, Random* random) const {
    SCOPED_TRACE(from->Text() + " -> " + to->Text());
    from->FillRandomly(random);
    support::Require(CopyTensor(device(), stream().get(), from->Ref(), to->Ref()));
    to->ExpectValues(from->Filled());
  }

  void CheckAdd(Tensor* from, Tensor* to, Random* random) const {
    SCOPED_TRACE(from->Text() + " added to " + to->Text());
    from->FillRandomly(random);
    to->FillRandomly(random);
    support::Require(AddTensor(device(), stream().get(), from->Ref(), to->Ref()));
    std::vector<double> sums = to->Filled();
    const std::vector<double> terms = from->Filled();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += terms[i];
    }
    to->ExpectValues(sums);
  }

  void CheckFill(Tensor* to, double value) const {
    SCOPED_TRACE(to->Text() + " filled with " + std::to_string(value));
    support::Require(FillTensor(device(), stream().get(), value, to->Ref()));
    to->ExpectValues(std::vector<double>(to->count(), value));
  }

  /// Sums twice, into tensors of the same placement: values must be right, bits the same.
  void CheckSums(Tensor* from, const Placement& placement, bool accumulate, Random* random) const {
    Tensor sums = Make(from->type(), {from->dims()[1]}, placement);
    SCOPED_TRACE(from->Text() + " summed to " + sums.Text() + (accumulate ? ", accumulating" : ""));
    from->FillRandomly(random);
    std::vector<double> expected(sums.count());
    if (accumulate) {
      sums.FillRandomly(random);
      expected = sums.Filled();
    }
    const std::vector<double> terms = from->Filled();
    for (std::size_t i = 0; i < terms.size(); ++i) {
      expected[ChannelOf(from->dims(), i)] += terms[i];
    }
    const SumPlan plan = PlanSums(from->Ref(), workspace_limit_);
    const std::size_t size = plan.workspace;
    EXPECT_LE(size, workspace_limit_);
    // A guard behind the workspace, and garbage in it.
    DeviceMemory workspace(stream(), size + kGuard);
    workspace.CopyIn(std::vector<std::byte>(size + kGuard, std::byte{0xFF}));
    TensorRef ref = sums.Ref();
    ref.accumulate = accumulate;
    support::Require(SumChannels(stream().get(), plan, from->Ref(), ref, workspace.data()));
    sums.ExpectValues(expected);
    const std::vector<std::byte> after = workspace.CopyOut();
    EXPECT_TRUE(std::all_of(
        after.end() - kGuard, after.end(), [](std::byte byte) { return byte == std::byte{0xFF}; }))
        << "wrote behind its workspace of " << size << " bytes";
  }

  static std::size_t ChannelOf(const Shape& dims, std::size_t index) {
    std::size_t inner = 1;
    for (std::size_t axis = 2; axis < dims.size(); ++axis) {
      inner *= dims[axis];
    }
    return index / inner % dims[1];
  }

  static constexpr std::ptrdiff_t kGuard = 256;

  /// For sums.
  std::size_t workspace_limit_ = std::numeric_limits<std::size_t>::max();

 private:
  std::unique_ptr<DeviceStream> stream_;
};

/// Dims (N, C, D...) whose layouts reach every fast path and miss each narrowly.
inline std::vector<Shape> ChannelShapes() {
  return {{2, 64, 16, 16},  {3, 65, 7, 7},   {2, 3, 33, 31},  {4, 8, 8, 8},     {1, 130, 130},
          {2, 9, 17},       {5, 7},          {1, 1, 1, 1},    {1, 2048, 7, 7},  {9, 2, 3, 4, 5},
          {2, 40, 4, 6, 6}, {1, 66, 64, 66}, {300, 16},       {16, 300},        {1, 1, 70000},
          {2, 2, 50001},    {70, 33, 2, 2},  {33, 256, 2, 2}, {3, 257, 5, 5},   {2, 2049, 4},
          {1, 600, 10, 10}, {8, 1, 24, 24},  {1, 24, 1, 100}, {50, 12, 14, 14}, {3, 5, 784}};
}

inline std::vector<Shape> EmptyShapes() {
  return {{0, 3, 4}, {2, 3, 0}, {2, 0, 4}, {0, 0}, {0, 5}, {2, 3, 4, 0, 2}};
}

}  // namespace gradsmith::cuda::tensor_ops_test

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_TENSOR_OPS_FIXTURE_H_
