#include "cuda/tensor_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "reference/random.h"
#include "runtime/cuda/tensor_ops_fixture.h"
#include "support/device_memory.h"

/// Copies, conversions, additions, fillings and comparisons of tensors.
namespace gradsmith::cuda::tensor_ops_test {
namespace {

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
        // Values go from far below the smallest half to far above the largest.
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
}  // namespace gradsmith::cuda::tensor_ops_test
