#include "cuda/tensor_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/random.h"
#include "support/device_memory.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith::cuda {
namespace {

using reference::Random;
using reference::Shape;
using support::DeviceMemory;
using support::DeviceStream;

constexpr std::array<DataType, kFloatingTypeCount> kTypes = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

/// Where a tensor's elements are: strides, and how many elements before the first one.
struct Placement {
  std::vector<std::int64_t> strides;
  std::int64_t shift = 0;
};

/// Strides of a tensor whose dims lie in memory in this order.
std::vector<std::int64_t> StridesInOrder(
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

Placement Contiguous(const Shape& dims) {
  return {support::StridesFor(support::Layout::kContiguous, dims)};
}

Placement ChannelsLast(const Shape& dims) {
  return {support::StridesFor(support::Layout::kChannelsLast, dims)};
}

/// Any order of dims, and often gaps and an odd address.
Placement RandomPlacement(const Shape& dims, Random* random) {
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
Placement RandomSource(const Shape& dims, Random* random) {
  Placement placement = RandomPlacement(dims, random);
  for (std::int64_t& stride : placement.strides) {
    stride = random->Chance(0.15) ? 0 : stride;
  }
  return placement;
}

Shape RandomDims(Random* random, int rank) {
  // The product stays near 20 thousand.
  const auto most = static_cast<std::int64_t>(std::pow(20000.0, 1.0 / rank));
  Shape dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(random->Chance(0.1) ? 1 : random->Integer(1, 2 * most));
  }
  return dims;
}

std::vector<std::int64_t> OffsetsOf(const Shape& dims, const std::vector<std::int64_t>& strides) {
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

  /// Of elements that share memory, the last value stays.
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
std::vector<Shape> ChannelShapes() {
  return {{2, 64, 16, 16},  {3, 65, 7, 7},   {2, 3, 33, 31},  {4, 8, 8, 8},     {1, 130, 130},
          {2, 9, 17},       {5, 7},          {1, 1, 1, 1},    {1, 2048, 7, 7},  {9, 2, 3, 4, 5},
          {2, 40, 4, 6, 6}, {1, 66, 64, 66}, {300, 16},       {16, 300},        {1, 1, 70000},
          {2, 2, 50001},    {70, 33, 2, 2},  {33, 256, 2, 2}, {3, 257, 5, 5},   {2, 2049, 4},
          {1, 600, 10, 10}, {8, 1, 24, 24},  {1, 24, 1, 100}, {50, 12, 14, 14}, {3, 5, 784}};
}

std::vector<Shape> EmptyShapes() {
  return {{0, 3, 4}, {2, 3, 0}, {2, 0, 4}, {0, 0}, {0, 5}, {2, 3, 4, 0, 2}};
}

TEST_F(TensorOpsTest, CopiesBetweenLayouts) {
  Random random("copies between layouts");
  for (const DataType type : kTypes) {
    for (const Shape& dims : ChannelShapes()) {
      const std::array<Placement, 2> layouts = {Contiguous(dims), ChannelsLast(dims)};
      for (const Placement& from_layout : layouts) {
        for (const Placement& to_layout : layouts) {
          for (const std::int64_t shift : {0, 1}) {
            Tensor from = Make(type, dims, {from_layout.strides, shift});
            Tensor to = Make(type, dims, {to_layout.strides, random.Integer(0, 1) * shift});
            CheckCopy(&from, &to, &random);
          }
        }
      }
    }
  }
}

TEST_F(TensorOpsTest, CopiesAnyStrides) {
  Random random("copies any strides");
  for (int repeat = 0; repeat < 300; ++repeat) {
    const DataType type = kTypes[repeat % 4];
    const Shape dims = RandomDims(&random, 1 + repeat % 5);
    Tensor from = Make(type, dims, RandomSource(dims, &random));
    Tensor to = Make(type, dims, RandomPlacement(dims, &random));
    CheckCopy(&from, &to, &random);
  }
}

TEST_F(TensorOpsTest, CopiesSlicesInWideUnits) {
  Random random("copies slices");
  for (const DataType type : kTypes) {
    for (const std::int64_t channels : {64, 60, 58, 57}) {
      // Some channels of a channels-last tensor of 72.
      const Shape dims = {2, channels, 5, 6};
      const std::vector<std::int64_t> slice = {2160, 1, 432, 72};
      for (const std::int64_t shift : {0, 1, 2, 4, 8}) {
        Tensor from = Make(type, dims, {slice, shift});
        Tensor to = Make(type, dims, ChannelsLast(dims));
        CheckCopy(&from, &to, &random);
        Tensor back = Make(type, dims, {slice, shift});
        CheckCopy(&to, &back, &random);
      }
    }
  }
}

TEST_F(TensorOpsTest, TransposesSlices) {
  Random random("transposes slices");
  for (const DataType type : kTypes) {
    for (const Shape& dims : std::vector<Shape>{{2, 40, 9, 10}, {1, 39, 66, 2}, {3, 16, 8, 8}}) {
      const std::int64_t pitch = dims[1] + random.Integer(1, 2);
      const Placement padded = {
          {dims[2] * dims[3] * pitch, 1, dims[3] * pitch, pitch}, random.Integer(0, 2)};
      Tensor planes = Make(type, dims, Contiguous(dims));
      Tensor pixels = Make(type, dims, padded);
      CheckCopy(&planes, &pixels, &random);
      CheckCopy(&pixels, &planes, &random);
      // Stored as (C, D..., N) and (D..., C, N).
      for (const std::vector<int>& order : {std::vector{0, 3, 2, 1}, std::vector{0, 1, 3, 2}}) {
        Tensor other = Make(type, dims, {StridesInOrder(dims, order)});
        CheckCopy(&planes, &other, &random);
        CheckCopy(&other, &pixels, &random);
      }
    }
  }
}

TEST_F(TensorOpsTest, ConvertsBetweenAllTypes) {
  Random random("converts");
  for (const DataType from_type : kTypes) {
    for (const DataType to_type : kTypes) {
      for (int repeat = 0; repeat < 4; ++repeat) {
        const Shape dims = RandomDims(&random, 1 + repeat);
        Tensor from =
            Make(from_type, dims, repeat == 0 ? Contiguous(dims) : RandomSource(dims, &random));
        Tensor to =
            Make(to_type, dims, repeat == 0 ? Contiguous(dims) : RandomPlacement(dims, &random));
        SCOPED_TRACE(from.Text() + " -> " + to.Text());
        // From far below the smallest half to far above the largest.
        std::vector<double> values(from.count());
        std::generate(values.begin(), values.end(), [&] {
          return std::ldexp(random.Real(-1, 1), static_cast<int>(random.Integer(-30, 20)));
        });
        from.Fill(values);
        support::Require(CopyTensor(device(), stream().get(), from.Ref(), to.Ref()));
        to.ExpectValues(from.Filled());
      }
    }
  }
}

TEST_F(TensorOpsTest, AddsTensorsOfAllTypes) {
  Random random("adds tensors");
  for (const DataType from_type : kTypes) {
    for (const DataType type : kTypes) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        const Shape dims = RandomDims(&random, 1 + repeat % 5);
        Tensor from = Make(from_type, dims, RandomSource(dims, &random));
        Tensor to = Make(type, dims, RandomPlacement(dims, &random));
        CheckAdd(&from, &to, &random);
      }
    }
  }
}

TEST_F(TensorOpsTest, FillsTensors) {
  Random random("fills tensors");
  for (const DataType type : kTypes) {
    for (const Shape& dims : ChannelShapes()) {
      for (const double value : {0.0, 1.5, -0.0, 0.1, 1e-7}) {
        Tensor to = Make(type, dims, {ChannelsLast(dims).strides, random.Integer(0, 3)});
        CheckFill(&to, value);
      }
    }
    for (int repeat = 0; repeat < 50; ++repeat) {
      const Shape dims = RandomDims(&random, 1 + repeat % 5);
      Tensor to = Make(type, dims, RandomPlacement(dims, &random));
      CheckFill(&to, repeat % 2 == 0 ? 0 : -3.25);
    }
  }
}

TEST_F(TensorOpsTest, SumsChannelsOfDenseTensors) {
  Random random("sums channels");
  int in_one_launch = 0;
  int in_two = 0;
  for (const DataType type : kTypes) {
    for (const Shape& dims : ChannelShapes()) {
      for (const Placement& layout : {Contiguous(dims), ChannelsLast(dims)}) {
        for (const std::int64_t shift : {0, 1}) {
          Tensor from = Make(type, dims, {layout.strides, shift});
          ++(PlanSums(from.Ref()).workspace == 0 ? in_one_launch : in_two);
          CheckSums(&from, {{1 + shift}, shift}, random.Chance(0.5), &random);
        }
      }
    }
  }
  EXPECT_GT(in_one_launch, 50);
  EXPECT_GT(in_two, 50);
}

TEST_F(TensorOpsTest, SumsChannelsOfAnyStrides) {
  Random random("sums channels of any strides");
  for (int repeat = 0; repeat < 300; ++repeat) {
    const Shape dims = RandomDims(&random, 2 + repeat % 4);
    Tensor from = Make(kTypes[repeat % 4], dims, RandomSource(dims, &random));
    CheckSums(&from, {{random.Integer(1, 3)}, 0}, random.Chance(0.5), &random);
  }
}

TEST_F(TensorOpsTest, SumsChannelsWithoutWorkspace) {
  Random random("sums channels without workspace");
  workspace_limit_ = 0;
  for (const DataType type : kTypes) {
    for (const Shape& dims : ChannelShapes()) {
      for (const Placement& layout : {Contiguous(dims), ChannelsLast(dims)}) {
        Tensor from = Make(type, dims, {layout.strides, random.Integer(0, 1)});
        CheckSums(&from, {{1}, 0}, random.Chance(0.5), &random);
      }
    }
  }
}

TEST_F(TensorOpsTest, SumsManyChannelsOfSlices) {
  Random random("sums channels of slices");
  for (const DataType type : kTypes) {
    for (const std::int64_t pitch : {72, 73}) {
      const Shape dims = {3, 64, 21, 20};
      Tensor pixels = Make(type, dims, {{pitch * 420, 1, pitch * 20, pitch}, random.Integer(0, 1)});
      CheckSums(&pixels, {{1}, 0}, false, &random);
      Tensor planes = Make(type, dims, {{26880 + pitch, 420, 20, 1}, random.Integer(0, 1)});
      CheckSums(&planes, {{1}, 0}, true, &random);
    }
  }
}

TEST_F(TensorOpsTest, SumsSeveralSlicesInABlock) {
  Random random("sums in rounds");
  const Shape dims = {2, 200, 128, 130};
  for (const std::int64_t shift : {0, 1}) {
    Tensor from = Make(DataType::kDouble, dims, {Contiguous(dims).strides, shift});
    const SumPlan plan = PlanSums(from.Ref());
    ASSERT_EQ(plan.stage, SumStage::kRows);
    ASSERT_LT(plan.blocks, dims[1]);
    CheckSums(&from, {{1}, 0}, true, &random);
  }
}

TEST_F(TensorOpsTest, SumsShortSlicesOfManyChannelsInABlock) {
  Random random("sums many channels");
  for (const Shape& dims : std::vector<Shape>{{2, 600, 96, 100}, {2, 140000, 3}}) {
    Tensor from = Make(DataType::kBFloat16, dims, Contiguous(dims));
    const SumPlan plan = PlanSums(from.Ref());
    ASSERT_EQ(plan.stage, SumStage::kRows);
    ASSERT_LT(plan.blocks, dims[1]);
    CheckSums(&from, {{1}, 0}, false, &random);
  }
}

/// Rows of sliding windows share elements, and several of them the tensor's last vector.
TEST_F(TensorOpsTest, SumsRowsThatOverlap) {
  Random random("sums rows that overlap");
  for (const DataType type : kTypes) {
    for (const Shape& dims : std::vector<Shape>{{4, 2, 9}, {3, 1, 40}, {40, 3, 33}, {700, 5, 17}}) {
      for (const std::int64_t step : {1, 2, 3}) {
        for (const std::int64_t shift : {0, 1}) {
          const std::int64_t plane = step * (dims[0] - 1) + dims[2] + 3;
          Tensor from = Make(type, dims, {{step, plane, 1}, shift});
          CheckSums(&from, {{1}, 0}, false, &random);
        }
      }
    }
  }
}

/// No byte behind it is read, which the emulated GPU notices.
TEST_F(TensorOpsTest, SumsUpToTheEndOfMemory) {
  for (const DataType type : kTypes) {
    for (const Shape& dims : std::vector<Shape>{{1, 64, 6}, {3, 5, 49}, {2, 9, 17}, {4, 3, 2}}) {
      const auto count = static_cast<std::size_t>(reference::Count(dims));
      DeviceMemory from(stream(), count * SizeOf(type));
      from.CopyIn(std::vector<std::byte>(count * SizeOf(type)));
      const std::size_t size = static_cast<std::size_t>(dims[1]) * SizeOf(type);
      DeviceMemory sums(stream(), size);
      sums.CopyIn(std::vector<std::byte>(size, std::byte{0xFF}));
      const ConstTensorRef ref(type, from.data(), support::ToIntList(dims), {Backend::kCuda, 0});
      const TensorRef to(type, sums.data(), Dims{dims[1]}, {Backend::kCuda, 0});
      DeviceMemory workspace(stream(), PlanSums(ref).workspace);
      support::Require(SumChannels(stream().get(), PlanSums(ref), ref, to, workspace.data()));
      EXPECT_EQ(sums.CopyOut(), std::vector<std::byte>(size));
    }
  }
}

/// Nothing is launched.
TEST_F(TensorOpsTest, PlansSumsOfMoreThanIntCounts) {
  const auto plan = [](const Shape& dims) {
    return PlanSums(
        TensorRef(DataType::kMLFloat16, nullptr, support::ToIntList(dims), {Backend::kCuda, 0}));
  };
  const std::int64_t large = std::int64_t{1} << 30U;
  EXPECT_EQ(plan({4, 3, large / 2}).stage, SumStage::kRows);
  EXPECT_EQ(plan({4, 3, large}).stage, SumStage::kAny);
  EXPECT_EQ(plan({large, 3, 9}).stage, SumStage::kAny);
  for (const Shape& dims :
       std::vector<Shape>{{4, 3, large}, {1, 2 * large, 2}, {large / 4, 2, 9}}) {
    EXPECT_GT(plan(dims).blocks, 0);
    EXPECT_LE(plan(dims).blocks, std::numeric_limits<int>::max());
  }
}

TEST_F(TensorOpsTest, CopiesAndSumsAtOnce) {
  Random random("copies and sums");
  std::vector<Shape> shapes = ChannelShapes();
  shapes.push_back({60, 16, 36, 36});  // thousands of rows of partial sums
  int summed = 0;
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const Shape& dims : shapes) {
      for (const std::int64_t shift : {0, 1, 2, 4}) {
        Tensor from = Make(type, dims, {Contiguous(dims).strides, shift});
        Tensor to = Make(type, dims, {ChannelsLast(dims).strides, random.Integer(0, 1) * shift});
        const std::int64_t rows = CopySumRows(from.Ref(), to.Ref());
        if (rows == 0) {
          continue;
        }
        ++summed;
        SCOPED_TRACE(from.Text() + " -> " + to.Text() + " and its sums");
        from.FillRandomly(&random);
        Tensor sums = Make(type, {dims[1]}, {{1 + shift}, shift});
        sums.FillRandomly(&random);
        std::vector<double> expected = sums.Filled();
        const std::vector<double> terms = from.Filled();
        for (std::size_t i = 0; i < terms.size(); ++i) {
          expected[ChannelOf(dims, i)] += terms[i];
        }
        const std::size_t size = static_cast<std::size_t>(rows * dims[1]) * sizeof(float);
        DeviceMemory partial(stream(), size + kGuard);
        partial.CopyIn(std::vector<std::byte>(size + kGuard, std::byte{0xFF}));
        support::Require(CopyAndSum(stream().get(), from.Ref(), to.Ref(), partial.data()));
        TensorRef ref = sums.Ref();
        ref.accumulate = true;
        support::Require(SumPartials(stream().get(), rows, partial.data(), ref));
        to.ExpectValues(terms);
        sums.ExpectValues(expected);
        const std::vector<std::byte> after = partial.CopyOut();
        EXPECT_TRUE(std::all_of(
            after.end() - kGuard, after.end(),
            [](std::byte byte) { return byte == std::byte{0xFF}; }))
            << "wrote behind its " << rows << " rows";
      }
    }
  }
  EXPECT_GT(summed, 100);
}

/// Two matrices of partial sums in one launch, of unlike sizes; whole numbers, so that sums are
/// exact. One is added to what is there, strided.
TEST_F(TensorOpsTest, AddsUpTwoMatricesOfPartialSums) {
  Random random("two matrices of partial sums");
  struct Size {
    std::int64_t rows;
    std::int64_t channels;
  };
  const std::vector<std::array<Size, 2>> pairs = {
      {{{1, 1}, {1, 1}}},     {{{3, 700}, {5, 9}}},    {{{132, 4096}, {264, 256}}},
      {{{2000, 8}, {1, 33}}}, {{{7, 31}, {1500, 64}}}, {{{1, 5000}, {2, 1}}}};
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const std::array<Size, 2>& sizes : pairs) {
      std::vector<Tensor> sums;
      std::vector<std::vector<double>> expected;
      std::vector<DeviceMemory> partials;
      std::array<PartialSums, 2> both;
      for (int i = 0; i < 2; ++i) {
        const auto [rows, channels] = sizes.at(i);
        sums.push_back(Make(type, {channels}, {{1 + i}, i}));
        sums.back().FillRandomly(&random);
        expected.push_back(i == 1 ? sums.back().Filled() : std::vector<double>(channels, 0));
        std::vector<float> partial(static_cast<std::size_t>(rows * channels));
        for (std::size_t j = 0; j < partial.size(); ++j) {
          // Sums of no more than 100 are exact in bf16.
          partial[j] = j / channels < 50 ? static_cast<float>(random.Integer(-1, 1)) : 0.0F;
          expected.back()[j % channels] += partial[j];
        }
        const std::span<const std::byte> bytes = std::as_bytes(std::span(partial));
        partials.emplace_back(stream(), bytes.size());
        partials.back().CopyIn({bytes.begin(), bytes.end()});
      }
      for (int i = 0; i < 2; ++i) {
        both.at(i) = {sizes.at(i).rows, partials.at(i).data(), sums.at(i).Ref()};
        both.at(i).sums.accumulate = i == 1;
      }
      support::Require(SumPartials(stream().get(), both[0], both[1]));
      for (int i = 0; i < 2; ++i) {
        SCOPED_TRACE(sums.at(i).Text());
        sums.at(i).ExpectValues(expected.at(i));
      }
    }
  }
}

/// Where copying is no transposition of float, half or bf16 that makes channels last.
TEST_F(TensorOpsTest, CopiesThatCannotSum) {
  const Shape dims = {2, 64, 16, 16};
  const auto rows = [&](DataType type, const Placement& from, const Placement& to) {
    return CopySumRows(Make(type, dims, from).Ref(), Make(type, dims, to).Ref());
  };
  EXPECT_EQ(rows(DataType::kMLFloat16, Contiguous(dims), ChannelsLast(dims)), 2 * 4);
  EXPECT_EQ(rows(DataType::kFloat, Contiguous(dims), ChannelsLast(dims)), 2 * 8);
  EXPECT_EQ(rows(DataType::kDouble, Contiguous(dims), ChannelsLast(dims)), 0);
  EXPECT_EQ(rows(DataType::kFloat, ChannelsLast(dims), Contiguous(dims)), 0);
  EXPECT_EQ(rows(DataType::kFloat, Contiguous(dims), Contiguous(dims)), 0);
  const Shape narrow = {2, 4, 16, 16};
  EXPECT_EQ(
      CopySumRows(
          Make(DataType::kFloat, narrow, Contiguous(narrow)).Ref(),
          Make(DataType::kFloat, narrow, ChannelsLast(narrow)).Ref()),
      0);
}

TEST_F(TensorOpsTest, SumsHaveTheSameBitsWhereverTheTensorLies) {
  Random random("bits of sums");
  for (const DataType type : kTypes) {
    for (const Shape& dims : std::vector<Shape>{{8, 24, 30, 30}, {7, 33, 7, 7}, {2, 3, 20000}}) {
      for (const Placement& layout : {Contiguous(dims), ChannelsLast(dims)}) {
        std::vector<double> values(reference::Count(dims));
        std::generate(values.begin(), values.end(), [&] { return random.Real(-1, 1); });
        std::vector<std::byte> first;
        for (const std::int64_t shift : {0, 0, 1, 3}) {
          Tensor from = Make(type, dims, {layout.strides, shift});
          from.Fill(values);
          Tensor sums = Make(type, {dims[1]}, {{1}, 0});
          DeviceMemory workspace(stream(), PlanSums(from.Ref()).workspace);
          support::Require(SumChannels(
              stream().get(), PlanSums(from.Ref()), from.Ref(), sums.Ref(), workspace.data()));
          const std::vector<std::byte> bytes = sums.Bytes();
          if (first.empty()) {
            first = bytes;
          }
          EXPECT_EQ(first, bytes) << from.Text();
        }
      }
    }
  }
}

TEST_F(TensorOpsTest, SumsOfManyTermsStayPrecise) {
  Random random("precision of sums");
  for (const DataType type : kTypes) {
    const Shape dims = {4, 3, 300, 301};
    for (const Placement& layout : {Contiguous(dims), ChannelsLast(dims)}) {
      Tensor from = Make(type, dims, layout);
      std::vector<double> values(from.count());
      std::generate(values.begin(), values.end(), [&] { return random.Real(0, 0.25); });
      from.Fill(values);
      std::vector<long double> expected(3);
      const std::vector<double> rounded = from.Filled();
      for (std::size_t i = 0; i < rounded.size(); ++i) {
        expected[ChannelOf(dims, i)] += rounded[i];
      }
      Tensor sums = Make(type, {3}, {{1}, 0});
      DeviceMemory workspace(stream(), PlanSums(from.Ref()).workspace);
      support::Require(SumChannels(
          stream().get(), PlanSums(from.Ref()), from.Ref(), sums.Ref(), workspace.data()));
      const std::vector<std::byte> bytes = sums.Bytes();
      for (int channel = 0; channel < 3; ++channel) {
        const double sum = support::Decode(type, &bytes[256 + channel * SizeOf(type)]);
        const auto right = static_cast<double>(expected[channel]);
        const double error = type == DataType::kDouble ? 1e-14 : 5e-7;
        EXPECT_NEAR(sum, right, (error + support::UnitRoundoff(type)) * right);
      }
    }
  }
}

TEST_F(TensorOpsTest, EmptyTensorsAreFine) {
  Random random("empty");
  for (const DataType type : kTypes) {
    for (const Shape& dims : EmptyShapes()) {
      Tensor from = Make(type, dims, Contiguous(dims));
      Tensor to = Make(type, dims, Contiguous(dims));
      CheckCopy(&from, &to, &random);
      CheckAdd(&from, &to, &random);
      CheckFill(&to, 1);
      CheckSums(&from, {{2}, 1}, false, &random);
      CheckSums(&from, {{2}, 1}, true, &random);
    }
  }
}

TEST_F(TensorOpsTest, FillsWithRandomValues) {
  for (const DataType type : kTypes) {
    for (const std::int64_t count : {0, 1, 1023, 100000}) {
      std::vector<std::vector<double>> all;
      for (const std::uint64_t seed : {7, 7, 8}) {
        Tensor to = Make(type, {count}, {{1}, 1});
        support::Require(FillRandom(device(), stream().get(), type, to.Ref().data, count, seed));
        const std::vector<std::byte> bytes = to.Bytes();
        std::vector<double> values;
        for (std::int64_t i = 0; i < count; ++i) {
          values.push_back(support::Decode(type, &bytes[256 + (i + 1) * SizeOf(type)]));
        }
        to.ExpectValues(values);  // nothing around them has changed
        EXPECT_TRUE(std::all_of(
            values.begin(), values.end(), [&](double value) { return value >= -1 && value <= 1; }));
        if (count > 1000) {
          // Small ones have small steps: that few bits would do shows no rounding.
          EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](double value) {
            return value * 4096 != std::floor(value * 4096);
          }));
        }
        all.push_back(values);
      }
      EXPECT_EQ(all[0], all[1]);
      if (count > 1000) {
        EXPECT_NE(all[0], all[2]);
        const double sum = std::accumulate(all[0].begin(), all[0].end(), 0.0);
        EXPECT_NEAR(sum / static_cast<double>(count), 0, 5 / std::sqrt(count));
      }
    }
  }
}

TEST_F(TensorOpsTest, FillsWithRandomValuesOfARange) {
  constexpr std::int64_t kCount = 5000;
  for (const DataType type : kTypes) {
    Tensor to = Make(type, {kCount}, {{1}, 1});
    support::Require(FillRandom(
        device(), stream().get(), type, to.Ref().data, kCount, 7, {.center = 1, .radius = 0.5}));
    const std::vector<std::byte> bytes = to.Bytes();
    double smallest = 1;
    double largest = 1;
    for (std::int64_t i = 0; i < kCount; ++i) {
      const double value = support::Decode(type, &bytes[256 + (i + 1) * SizeOf(type)]);
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
    }
    EXPECT_GE(smallest, 0.5);
    EXPECT_LT(smallest, 0.51);
    EXPECT_GT(largest, 1.48);
    EXPECT_LE(largest, 1.5);
  }
}

TEST_F(TensorOpsTest, ComparesTensors) {
  Random random("compares");
  for (int repeat = 0; repeat < 100; ++repeat) {
    const Shape dims = RandomDims(&random, 1 + repeat % 5);
    Tensor a = Make(kTypes[repeat % 4], dims, RandomPlacement(dims, &random));
    Tensor b = Make(kTypes[repeat / 4 % 4], dims, RandomSource(dims, &random));
    SCOPED_TRACE(a.Text() + " and " + b.Text());
    a.FillRandomly(&random);
    b.FillRandomly(&random);
    std::vector<double> values = a.Filled();
    for (int i = 0; i < repeat % 3; ++i) {
      values[random.Integer(0, static_cast<std::int64_t>(values.size()) - 1)] =
          i == 0 ? std::numeric_limits<double>::infinity()
                 : std::numeric_limits<double>::quiet_NaN();
    }
    a.Fill(values);
    Difference expected = {};
    const std::vector<double> others = b.Filled();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) {
        ++expected.not_finite;
        continue;
      }
      const double error = std::abs(values[i] - others[i]);
      expected.squared_error += error * error;
      expected.squared_expected += others[i] * others[i];
      expected.largest_error = std::max(expected.largest_error, error);
    }
    DeviceMemory found(stream(), sizeof(Difference));
    found.CopyIn(std::vector<std::byte>(sizeof(Difference), std::byte{0xFF}));
    support::Require(CompareTensors(
        device(), stream().get(), a.Ref(), b.Ref(), reinterpret_cast<Difference*>(found.data())));
    Difference difference = {};
    const std::vector<std::byte> bytes = found.CopyOut();
    std::memcpy(&difference, bytes.data(), sizeof(difference));
    // All terms are multiples of 2^-12: sums in any order are exact.
    EXPECT_EQ(difference.squared_error, expected.squared_error);
    EXPECT_EQ(difference.squared_expected, expected.squared_expected);
    EXPECT_EQ(difference.largest_error, expected.largest_error);
    EXPECT_EQ(difference.not_finite, expected.not_finite);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
