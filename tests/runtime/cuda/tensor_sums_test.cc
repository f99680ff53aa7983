#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cuda/tensor_ops.h"
#include "reference/random.h"
#include "runtime/cuda/tensor_ops_fixture.h"
#include "support/device_memory.h"

/// Sums of the channels of tensors, alone and along with copies.
namespace gradsmith::cuda::tensor_ops_test {
namespace {

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

/// Two matrices of partial sums, of unlike sizes, in one launch or two; whole numbers, so that sums
/// are exact. One is added to what is there, strided.
TEST_F(TensorOpsTest, AddsUpTwoMatricesOfPartialSums) {
  Random random("two matrices of partial sums");
  struct Size {
    std::int64_t rows;
    std::int64_t channels;
  };
  const std::vector<std::array<Size, 2>> pairs = {
      {{{1, 1}, {1, 1}}},
      {{{3, 700}, {5, 9}}},
      {{{132, 4096}, {264, 256}}},
      {{{2000, 8}, {1, 33}}},
      {{{7, 31}, {1500, 64}}},
      {{{1, 5000}, {2, 1}}},
      {{{5, (1 << 17) + 3}, {264, 33}}},
      {{{2, 8}, {3, 1 << 17}}},
      {{{1, 1 << 17}, {6, (1 << 17) + 1}}},
      {{{65, 1 << 17}, {2, 3}}}};
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

}  // namespace
}  // namespace gradsmith::cuda::tensor_ops_test
