#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "patterns/cuda/rows_shape.h"
#include "patterns/rows_info.h"
#include "runtime/cuda/norm_calls.h"

/// Column sums and row operands of the pattern `rows`, by each way in which it cuts a tensor.
namespace gradsmith::cuda {
namespace {

class CudaLayerNormRows : public CudaNormTest {
 protected:
  /// The kernels that a gradient's tensors take.
  [[nodiscard]] RowsAccess AccessOfGradient(const OpCall& call) const {
    const bool is_skip = call.op.starts_with("Skip");
    const RowsInfo& info =
        is_skip ? kRowsInfo<SkipGradientOperands> : kRowsInfo<LayerNormGradientOperands>;
    std::vector<TensorRef> tensors;
    for (const auto& operands : {call.inputs, call.outputs}) {
      for (const TensorPointer& operand : operands) {
        tensors.push_back(operand == nullptr ? TensorRef() : operand->GpuRef());
      }
    }
    if (is_skip) {  // dTotal is the last input, and has elements as the first two
      std::rotate(tensors.begin() + 2, tensors.begin() + 5, tensors.begin() + 6);
    }
    const int rank = tensors[0].dims.size();
    const internal::RowsAxes axes = internal::AxesFrom(rank - 1, rank);
    return AccessOf(
        {device()}, internal::RowsTaskOf(tensors, info.counts, axes, {}), tensors, info);
  }
};

TEST_F(CudaLayerNormRows, ColumnsOverTeamsBlocksAndParts) {
  // Several teams of a warp, of a block, one; more rows than there are blocks; rows that are cut,
  // and such as no block holds; single elements.
  for (const Sizes& dims :
       {Sizes{70, 8}, Sizes{9, 264}, Sizes{3, 4096}, Sizes{3000, 16}, Sizes{2, 40960},
        Sizes{2, 30000}, Sizes{11, 77}, Sizes{1, 1}}) {
    RunRepeatedly(MakeGradient(dims, {kFloat, kFloat, kFloat}), 4e-6);
    // Means are much smaller than what they are of.
    RunRepeatedly(MakeForward(dims, {kFloat, kFloat, kFloat}), 1e-4);
  }
}

/// Several vectors of a row and several teams, whose sums of columns take more shared memory than
/// those of float.
TEST_F(CudaLayerNormRows, ColumnsOfHalfAndOfDouble) {
  RunRepeatedly(MakeGradient({40, 768}, {kHalf, kHalf, kFloat}));
  RunRepeatedly(
      MakeGradient({40, 1001}, {DataType::kDouble, DataType::kDouble, DataType::kDouble}), 1e-13);
}

TEST_F(CudaLayerNormRows, MixedTypes) {
  RunRepeatedly(MakeGradient({5, 24}, {kHalf, kFloat, kFloat}), 1e-3);
  RunRepeatedly(MakeGradient({5, 24}, {kFloat, kHalf, kFloat}), 1e-3);
  RunRepeatedly(MakeForward({5, 23}, {kHalf, kFloat, kFloat}), 1e-3);
  RunRepeatedly(MakeForward({5, 24}, {kHalf, kHalf, kFloat}), 1e-3);
}

TEST_F(CudaLayerNormRows, StridesAndSubsets) {
  RunRepeatedly(MakeGradient({3, 4, 16}, {kFloat, kFloat, kFloat}, Layout::kStrided), 4e-6);
  for (std::size_t absent = 0; absent < 3; ++absent) {
    OpCall call = MakeGradient({6, 40}, {kFloat, kFloat, kFloat});
    call.outputs[absent] = nullptr;
    RunRepeatedly(call, 4e-6);
    for (std::size_t other = 0; other < 3; ++other) {
      call.outputs[other] =
          other == absent ? Make(kFloat, absent == 0 ? Sizes{6, 40} : Sizes{40}) : nullptr;
    }
    RunRepeatedly(call, 4e-6);
  }
}

TEST_F(CudaLayerNormRows, AddsToWhatIsThere) {
  const Types types = {kFloat, kFloat, kFloat};
  for (const Sizes& dims :
       {Sizes{6, 40}, Sizes{RowsByColumns(1024, types), 1024},
        Sizes{RowsByColumns(999, types), 999}}) {
    OpCall call = MakeGradient(dims, types);
    call.FillInputsWithIntegers(random_, -3, 3);
    const std::vector<std::vector<double>> expected = call.Expected();
    for (const TensorPointer& output : call.outputs) {
      output->Fill([] { return 1000.0; });
    }
    ASSERT_TRUE(call.Run(Context(OnGpu()), /*accumulate=*/true).ok());
    for (std::size_t output = 0; output < 3; ++output) {
      const std::vector<double> values = call.outputs[output]->GpuValues();
      const double tolerance = output == 0 ? 1e-3 : 0;  // sums of integers are exact
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], expected[output][i] + 1000, tolerance)
            << "output " << output << ", element " << i;
      }
    }
  }
}

TEST_F(CudaLayerNormRows, NoRowsSumToZero) {
  OpCall call = MakeGradient({0, 5}, {kFloat, kFloat, kFloat});
  RunRepeatedly(call);
}

/// Teams of a few lanes, of a warp, of warps that are no power of two, and of all of a block; rows
/// that fill no team's vectors, rows of no whole vectors, and more rows than all blocks take at
/// once.
TEST_F(CudaLayerNormRows, ByColumns) {
  const Types float_types = {kFloat, kFloat, kFloat};
  for (const std::int64_t length : {8, 256, 744, 4096, 8192, 3, 30, 100, 999, 4095, 8191}) {
    const Sizes dims = {RowsByColumns(length, float_types), length};
    const OpCall gradient = MakeGradient(dims, float_types);
    ASSERT_EQ(AccessOfGradient(gradient).is_by_columns, dims[0] > 0) << length;
    RunRepeatedly(gradient, 4e-6);
    RunRepeatedly(MakeForward(dims, float_types), 1e-4);
  }
  const Sizes many = {3 * RowsByColumns(2048, float_types), 2048};
  RunRepeatedly(MakeGradient(many, float_types), 4e-6);
}

/// Rows that no block holds: one phase and, of the forward, two, whose results blocks read; as many
/// rows as a block has at once, more, and fewer; vectors and single elements.
TEST_F(CudaLayerNormRows, ByColumnsInParts) {
  constexpr DataType kDouble = DataType::kDouble;
  const Types float_types = {kFloat, kFloat, kFloat};
  for (const Sizes& dims :
       {Sizes{1, 100000}, Sizes{9, 16388}, Sizes{11, 16385}, Sizes{23, 16400}}) {
    const OpCall gradient = MakeGradient(dims, float_types);
    // A thread keeps eight vectors of both inputs, for which not every GPU has place.
    const bool has_place = kFewerRowsThreads * 8 * 2 * 16 <= MostShared({device()});
    ASSERT_TRUE(!has_place || AccessOfGradient(gradient).is_by_columns) << gradient.Describe();
    RunRepeatedly(gradient, 4e-6);
    RunRepeatedly(MakeForward(dims, float_types), 1e-4);
  }
  for (const Types& types :
       {Types{kHalf, kHalf, kFloat}, Types{kHalf, kFloat, kFloat}, Types{kFloat, kHalf, kFloat},
        Types{kDouble, kDouble, kDouble}}) {
    for (const std::int64_t length : {16392, 16393}) {
      const Sizes dims = {11, length};
      RunRepeatedly(MakeGradient(dims, types), types[0] == kDouble ? 1e-13 : 1e-3);
      RunRepeatedly(MakeForward(dims, types), types[0] == kDouble ? 1e-12 : 1e-3);
    }
  }
}

TEST_F(CudaLayerNormRows, ByColumnsOfOtherTypes) {
  constexpr DataType kDouble = DataType::kDouble;
  constexpr DataType kBFloat = DataType::kBFloat16;
  for (const Types& types :
       {Types{kHalf, kHalf, kFloat}, Types{kDouble, kDouble, kDouble},
        Types{kBFloat, kBFloat, kFloat}, Types{kHalf, kFloat, kFloat},
        Types{kFloat, kHalf, kFloat}}) {
    for (const std::int64_t length : {types[0] == kHalf ? 1024 : 328, 333}) {
      const Sizes dims = {RowsByColumns(length, types), length};
      const OpCall gradient = MakeGradient(dims, types);
      ASSERT_TRUE(AccessOfGradient(gradient).is_by_columns) << gradient.Describe();
      const double tolerance = types[0] == kDouble ? 1e-13 : types[0] == kBFloat ? 8e-3 : 1e-3;
      RunRepeatedly(gradient, tolerance);
      RunRepeatedly(MakeForward(dims, types), types[0] == kDouble ? 1e-12 : tolerance);
    }
  }
}

/// Operators with fewer operands, with more, and with columns that are absent.
TEST_F(CudaLayerNormRows, ByColumnsOfOtherOperators) {
  constexpr std::int64_t kLength = 1000;
  const Types types = {kFloat, kFloat, kFloat};
  const std::int64_t rows = RowsByColumns(kLength, types);
  const Sizes dims = {rows, kLength};
  OpCall rms{.name = "rows", .op = "SimplifiedLayerNormalization", .types = types};
  rms.inputs = {Make(kFloat, dims), Make(kFloat, {kLength})};
  rms.outputs = {Make(kFloat, dims), Make(kFloat, {rows})};
  OpCall rms_gradient{.name = "rows", .op = "SimplifiedLayerNormalizationGrad", .types = types};
  rms_gradient.inputs = {
      Make(kFloat, dims), Make(kFloat, dims), Make(kFloat, {kLength}), Make(kFloat, {rows})};
  rms_gradient.outputs = {Make(kFloat, dims), Make(kFloat, {kLength})};
  for (const OpCall& call : {rms, rms_gradient}) {
    call.FillInputs(random_);
    RunRepeatedly(call, 1e-4);
  }
  RunRepeatedly(MakeSkip(dims, kFloat), 1e-4);
}

/// Sums of columns that are made of what was found of each row: by teams of all sizes, by columns
/// in whole rows and in parts, of vectors and single elements, and of each type.
TEST_F(CudaLayerNormRows, SumsOfResults) {
  for (const Sizes& dims : {Sizes{70, 8}, Sizes{9, 264}, Sizes{2, 40960}, Sizes{11, 77}}) {
    const OpCall call = MakeSkipGradient(dims, kFloat);
    ASSERT_FALSE(AccessOfGradient(call).is_by_columns) << call.Describe();
    RunRepeatedly(call, 4e-6);
  }
  RunRepeatedly(MakeSkipGradient({3, 4, 16}, kFloat, Layout::kStrided), 4e-6);
  for (const DataType type : kAllTypes) {
    const double tolerance = Tolerance(type) * (SizeOf(type) == 2 ? 1 : 10);
    const Types types = {type, type, StatisticsOf(type)};
    for (const std::int64_t length : {1024, 333}) {
      const OpCall call = MakeSkipGradient({RowsByColumns(length, types), length}, type);
      // A thread keeps eight vectors of three inputs, for which not every GPU has place.
      const std::int64_t members = length / ColumnsOfThread(type == DataType::kDouble ? 8 : 4);
      const bool has_place = length % 2 != 0 || members * 8 * 3 * 16 <= MostShared({device()});
      ASSERT_EQ(AccessOfGradient(call).is_by_columns, has_place) << call.Describe();
      RunRepeatedly(call, tolerance);
    }
    for (const std::int64_t length : {16392, 16393}) {
      RunRepeatedly(MakeSkipGradient({11, length}, type), tolerance);
    }
  }
}

/// Each output alone, of which two read nothing that is found, and all; without what comes to the
/// total as well. What reads results comes first, before others could have left them anywhere.
TEST_F(CudaLayerNormRows, SumsOfResultsAlone) {
  for (const Sizes& dims :
       {Sizes{6, 40}, Sizes{2, 40960}, Sizes{RowsByColumns(1024, {kFloat, kFloat}), 1024}}) {
    OpCall call = MakeSkipGradient(dims, kFloat);
    const std::vector<TensorPointer> outputs = call.outputs;
    for (const TensorPointer& total : {call.inputs[5], TensorPointer()}) {
      call.inputs[5] = total;
      std::vector<std::vector<std::byte>> alone(outputs.size());
      for (std::size_t wanted = outputs.size(); wanted-- > 0;) {
        call.outputs.assign(outputs.size(), nullptr);
        call.outputs[wanted] = outputs[wanted];
        RunRepeatedly(call, 4e-6);
        alone[wanted] = outputs[wanted]->GpuBytes();
      }
      call.outputs = outputs;
      RunRepeatedly(call, 4e-6);
      EXPECT_TRUE(call.OutputBytes() == alone);
    }
  }
}

/// Rows of which nothing is found: their elements are first read when outputs are made. Long ones
/// are in parts.
TEST_F(CudaLayerNormRows, ByColumnsWithoutResults) {
  for (const DataType type : {kFloat, kHalf}) {
    for (const std::int64_t length : {1024, 1023, 20000, 20001}) {
      const std::int64_t rows = length > 8192 ? 9 : 2 * RowsByColumns(length, {type, type, type});
      const Sizes dims = {rows, length};
      OpCall call{.name = "rows", .op = "BiasGeluGrad", .types = {type}};
      call.inputs = {Make(type, dims), Make(type, dims), Make(type, {length})};
      call.outputs = {Make(type, dims), Make(type, {length})};
      call.FillInputs(random_);
      RunRepeatedly(call, type == kFloat ? 4e-6 : 0);
    }
  }
}

/// Rows of an image with a gap behind it have two dims, and are computed along memory.
TEST_F(CudaLayerNormRows, ByColumnsAndAlongAgree) {
  constexpr std::int64_t kLength = 512;
  const Types types = {kFloat, kFloat, kFloat};
  const std::int64_t half = RowsByColumns(kLength, types) / 2 + 1;
  const OpCall dense = MakeGradient({2, half, kLength}, types);
  OpCall apart = dense;
  apart.inputs[1] = std::make_shared<GpuTensor>(
      kFloat, Sizes{2, half, kLength}, Sizes{(half + 1) * kLength, kLength, 1});
  const std::vector<double> values = dense.inputs[1]->HostValues();
  std::size_t next = 0;
  apart.inputs[1]->Fill([&] { return values[next++]; });
  ASSERT_TRUE(AccessOfGradient(dense).is_by_columns);
  ASSERT_FALSE(AccessOfGradient(apart).is_by_columns);
  ASSERT_EQ(AccessOfGradient(apart).vector, 4);
  RunRepeatedly(apart, 4e-6);
  RunRepeatedly(dense, 4e-6);
}

/// Which outputs are wanted changes no bit of the others.
TEST_F(CudaLayerNormRows, ByColumnsSubsets) {
  const Types types = {kHalf, kHalf, kFloat};
  OpCall call = MakeGradient({RowsByColumns(2048, types), 2048}, types);
  RunRepeatedly(call);
  const std::vector<std::vector<std::byte>> all = call.OutputBytes();
  const std::vector<TensorPointer> outputs = call.outputs;
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    call.outputs = {nullptr, nullptr, nullptr};
    call.outputs[wanted] = outputs[wanted];
    ASSERT_TRUE(AccessOfGradient(call).is_by_columns);
    RunRepeatedly(call);
    EXPECT_TRUE(call.outputs[wanted]->GpuBytes() == all[wanted]) << "output " << wanted;
  }
}

}  // namespace
}  // namespace gradsmith::cuda
