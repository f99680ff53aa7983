#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "layer_norm/functors.h"
#include "patterns/cuda/rows_shape.h"
#include "patterns/rows_info.h"
#include "runtime/cuda/op_call.h"

/// Column sums and row operands of the pattern `rows`, by each way in which it cuts a tensor.
namespace gradsmith::cuda {
namespace {

/// Types of X, of scale and Y, and of the statistics.
using Types = std::vector<DataType>;

constexpr DataType kFloat = DataType::kFloat;
constexpr DataType kHalf = DataType::kMLFloat16;

TensorPointer Make(DataType type, const Sizes& dims, Layout layout = Layout::kContiguous) {
  return std::make_shared<GpuTensor>(type, dims, layout);
}

class CudaLayerNormRows : public CudaTest {
 protected:
  OpCall MakeForward(const Sizes& dims, const Types& types, Layout layout = Layout::kContiguous) {
    OpCall call{.name = "rows", .op = "LayerNormalization", .types = types};
    const Sizes row = {dims.back()};
    const Sizes rows(dims.begin(), dims.end() - 1);
    call.inputs = {Make(types[0], dims, layout), Make(types[1], row), Make(types[1], row)};
    call.outputs = {Make(types[1], dims, layout), Make(types[2], rows), Make(types[2], rows)};
    call.FillInputs(random_);
    return call;
  }
  OpCall MakeGradient(const Sizes& dims, const Types& types, Layout layout = Layout::kContiguous) {
    OpCall call{
        .name = "rows", .op = "LayerNormalizationGrad", .types = {types[1], types[0], types[2]}};
    const Sizes row = {dims.back()};
    const Sizes rows(dims.begin(), dims.end() - 1);
    call.inputs = {
        Make(types[1], dims, layout), Make(types[0], dims, layout), Make(types[1], row),
        Make(types[2], rows), Make(types[2], rows)};
    call.outputs = {Make(types[0], dims, layout), Make(types[1], row), Make(types[1], row)};
    call.FillInputs(random_);
    return call;
  }

  /// The same of one type by operators that have formulas. Channels of one image are its rows.
  OpCall MakeSkip(const Sizes& dims, DataType type) {
    const Sizes row = {dims.back()};
    const Sizes rows(dims.begin(), dims.end() - 1);
    OpCall call{.name = "rows", .op = "SkipLayerNormalization", .types = {type}};
    call.inputs = {Make(type, dims), Make(type, dims), Make(type, row), nullptr, Make(type, row)};
    call.outputs = {Make(type, dims), Make(type, rows), nullptr, Make(type, dims)};
    call.FillInputs(random_);
    return call;
  }
  OpCall MakeSkipGradient(const Sizes& dims, DataType type) {
    OpCall call = MakeGradient(dims, {type, type, type});
    call.op = "SkipLayerNormalizationGrad";
    call.types = {type};
    return call;
  }
  OpCall MakeOfChannels(const std::string& op, const Sizes& rows_and_length, DataType type) {
    const std::int64_t rows = rows_and_length[0];
    const bool is_of_images = op.starts_with("Instance");
    const Sizes dims = {1, rows, rows_and_length[1]};
    const Sizes statistics = is_of_images ? Sizes{1, rows} : Sizes{rows};
    OpCall call{.name = "channels", .op = op, .types = Types(is_of_images ? 3 : 1, type)};
    call.inputs = {Make(type, dims)};
    call.outputs = {Make(type, dims)};
    const auto append = [&](std::vector<TensorPointer>* operands, const Sizes& of) {
      operands->insert(operands->end(), {Make(type, of), Make(type, of)});
    };
    if (op.ends_with("Grad")) {
      call.inputs.push_back(Make(type, dims));
      append(&call.inputs, statistics);
    } else {
      append(&call.outputs, statistics);
    }
    if (is_of_images && op.ends_with("Grad")) {
      call.inputs.insert(call.inputs.begin() + 2, Make(type, {rows}));
      append(&call.outputs, {rows});
    } else if (is_of_images) {
      append(&call.inputs, {rows});
    }
    call.FillInputs(random_);
    return call;
  }

  /// The kernels that a gradient's tensors take.
  [[nodiscard]] RowsForm FormOfGradient(const OpCall& call) const {
    const RowsInfo& info = kRowsInfo<layer_norm::LayerNormalizationGradRows>;
    std::vector<TensorRef> tensors;
    for (const auto& operands : {call.inputs, call.outputs}) {
      for (const TensorPointer& operand : operands) {
        tensors.push_back(operand == nullptr ? TensorRef() : operand->GpuRef());
      }
    }
    const int rank = tensors[0].dims.size();
    const internal::RowsAxes axes = internal::AxesFrom(rank - 1, rank);
    return FormOf(device(), internal::RowsTaskOf(tensors, info.counts, axes, {}), tensors, info);
  }
  /// As few rows as all multiprocessors take by columns, and a rest that is no full team; 0 where
  /// a row has no place in shared memory.
  [[nodiscard]] std::int64_t RowsByColumns(std::int64_t length, const Types& types) const {
    const RowsInfo& info = kRowsInfo<layer_norm::LayerNormalizationGradRows>;
    const int bytes = static_cast<int>(std::max(SizeOf(types[0]), SizeOf(types[1])));
    internal::RowsTask task;
    task.rows = 1;
    task.length = length;
    const RowsForm form = {.vector = 16 / bytes, .is_by_columns = true};
    const RowsShape shape = ShapeOf(device(), task, form, info, bytes);
    const int rows = RowsOfTeam(bytes == sizeof(double) ? 8 : 4, form.vector);
    return static_cast<int>(shape.shared_bytes) > MostShared(device())
               ? 0
               : std::int64_t{shape.launch.teams} * rows * (device().multiprocessors() - 1) + 1;
  }

  static void RunTwice(const OpCall& call, double tolerance = 0) {
    SCOPED_TRACE(call.Describe());
    const Context context(OnGpu());
    std::vector<std::vector<std::byte>> bytes;
    for (int run = 0; run < 2; ++run) {
      call.ResetOutputs();
      const Status status = call.Run(context);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_TRUE(Synchronize(context).ok());
      EXPECT_TRUE(run == 0 || bytes == call.OutputBytes());
      bytes = call.OutputBytes();
    }
    call.ExpectResults(call.name, tolerance);
  }

  Random random_{"layer norm rows"};
};

TEST_F(CudaLayerNormRows, ColumnsOverTeamsBlocksAndParts) {
  // Several teams of a warp, of a block, one; more rows than there are blocks; rows that are cut,
  // and such as no block holds; single elements.
  for (const Sizes& dims :
       {Sizes{70, 8}, Sizes{9, 264}, Sizes{3, 4096}, Sizes{3000, 16}, Sizes{2, 40960},
        Sizes{2, 30000}, Sizes{11, 77}, Sizes{1, 1}}) {
    RunTwice(MakeGradient(dims, {kFloat, kFloat, kFloat}), 4e-6);
    // Means are much smaller than what they are of.
    RunTwice(MakeForward(dims, {kFloat, kFloat, kFloat}), 1e-4);
  }
}

/// Several vectors of a row and several teams, whose sums of columns take more shared memory than
/// those of float.
TEST_F(CudaLayerNormRows, ColumnsOfHalfAndOfDouble) {
  RunTwice(MakeGradient({40, 768}, {kHalf, kHalf, kFloat}));
  RunTwice(
      MakeGradient({40, 1001}, {DataType::kDouble, DataType::kDouble, DataType::kDouble}), 1e-13);
}

TEST_F(CudaLayerNormRows, MixedTypes) {
  RunTwice(MakeGradient({5, 24}, {kHalf, kFloat, kFloat}), 1e-3);
  RunTwice(MakeGradient({5, 24}, {kFloat, kHalf, kFloat}), 1e-3);
  RunTwice(MakeForward({5, 23}, {kHalf, kFloat, kFloat}), 1e-3);
  RunTwice(MakeForward({5, 24}, {kHalf, kHalf, kFloat}), 1e-3);
}

TEST_F(CudaLayerNormRows, StridesAndSubsets) {
  RunTwice(MakeGradient({3, 4, 16}, {kFloat, kFloat, kFloat}, Layout::kStrided), 4e-6);
  for (std::size_t absent = 0; absent < 3; ++absent) {
    OpCall call = MakeGradient({6, 40}, {kFloat, kFloat, kFloat});
    call.outputs[absent] = nullptr;
    RunTwice(call, 4e-6);
    for (std::size_t other = 0; other < 3; ++other) {
      call.outputs[other] =
          other == absent ? Make(kFloat, absent == 0 ? Sizes{6, 40} : Sizes{40}) : nullptr;
    }
    RunTwice(call, 4e-6);
  }
}

TEST_F(CudaLayerNormRows, AddsToWhatIsThere) {
  const Types types = {kFloat, kFloat, kFloat};
  for (const Sizes& dims : {Sizes{6, 40}, Sizes{RowsByColumns(1024, types), 1024}}) {
    OpCall call = MakeGradient(dims, types);
    call.FillInputsWithIntegers(random_, -3, 3);
    const std::vector<std::vector<double>> expected = call.Expected();
    for (const TensorPointer& output : call.outputs) {
      output->Fill([] { return 1000.0; });
    }
    ASSERT_TRUE(call.Run(Context(OnGpu()), /*accumulate=*/true).ok());
    for (std::size_t output = 1; output < 3; ++output) {
      const std::vector<double> values = call.outputs[output]->GpuValues();
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], expected[output][i] + 1000)
            << "output " << output << ", element " << i;
      }
    }
  }
}

TEST_F(CudaLayerNormRows, NoRowsSumToZero) {
  OpCall call = MakeGradient({0, 5}, {kFloat, kFloat, kFloat});
  RunTwice(call);
}

TEST_F(CudaLayerNormRows, LargeMeansAndConstants) {
  constexpr std::size_t kLength = 1000;
  // Deviations of 1, 2, 3 units beside a large mean: 2^20 and 1, and what half has of 10^4; and a
  // constant.
  struct Values {
    DataType type;
    double mean;
    double unit;
  };
  for (const Values& values : {Values{kFloat, 1048576, 1}, Values{kHalf, 10000, 8}}) {
    const Types types = {values.type, values.type, kFloat};
    for (const std::int64_t rows : {std::int64_t{2}, RowsByColumns(kLength, types)}) {
      OpCall layer = MakeForward({rows, kLength}, types);
      layer.inputs[2]->Fill([] { return 0.0; });
      const OpCall skip = MakeSkip({rows, kLength}, values.type);
      for (const std::size_t added : {1, 4}) {
        skip.inputs[added]->Fill([] { return 0.0; });
      }
      const Sizes dims = {rows, kLength};
      const OpCall images = MakeOfChannels("InstanceNormalization", dims, values.type);
      images.inputs[2]->Fill([] { return 0.0; });
      for (const OpCall& call :
           {layer, skip, images, MakeOfChannels("MeanVarianceNormalization", dims, values.type)}) {
        std::size_t next = 0;
        call.inputs[0]->Fill([&] {
          const std::size_t i = next++;
          const bool is_constant = i / kLength % 2 == 1;
          return is_constant ? 0.1 : values.mean + values.unit * static_cast<double>(i % 5);
        });
        RunTwice(call, values.type == kFloat ? 4e-6 : 0);
        const std::vector<double> y = call.outputs[0]->GpuValues();
        for (std::size_t i = 0; i < y.size(); ++i) {
          ASSERT_EQ(y[i] == 0, i / kLength % 2 == 1 || i % 5 == 2) << call.Describe() << ", " << i;
        }
        const std::vector<double> means = call.outputs[1]->GpuValues();
        EXPECT_EQ(means[0], values.mean + 2 * values.unit) << call.Describe();
        EXPECT_EQ(means[1], call.inputs[0]->HostValues()[kLength]) << call.Describe();
      }
    }
  }
}

/// Teams of a few lanes, of a warp, of warps that are no power of two, and of all of a block; rows
/// that fill no team's vectors, and more rows than all blocks take at once.
TEST_F(CudaLayerNormRows, ByColumns) {
  const Types float_types = {kFloat, kFloat, kFloat};
  for (const std::int64_t length : {8, 256, 744, 4096, 8192}) {
    const Sizes dims = {RowsByColumns(length, float_types), length};
    const OpCall gradient = MakeGradient(dims, float_types);
    ASSERT_EQ(FormOfGradient(gradient).is_by_columns, dims[0] > 0) << length;
    RunTwice(gradient, 4e-6);
    RunTwice(MakeForward(dims, float_types), 1e-4);
  }
  const Sizes many = {3 * RowsByColumns(2048, float_types), 2048};
  RunTwice(MakeGradient(many, float_types), 4e-6);
}

TEST_F(CudaLayerNormRows, ByColumnsOfOtherTypes) {
  constexpr DataType kDouble = DataType::kDouble;
  constexpr DataType kBFloat = DataType::kBFloat16;
  for (const Types& types :
       {Types{kHalf, kHalf, kFloat}, Types{kDouble, kDouble, kDouble},
        Types{kBFloat, kBFloat, kFloat}, Types{kHalf, kFloat, kFloat},
        Types{kFloat, kHalf, kFloat}}) {
    const std::int64_t length = types[0] == kHalf ? 1024 : 328;
    const Sizes dims = {RowsByColumns(length, types), length};
    const OpCall gradient = MakeGradient(dims, types);
    ASSERT_TRUE(FormOfGradient(gradient).is_by_columns) << gradient.Describe();
    const double tolerance = types[0] == kDouble ? 1e-13 : types[0] == kBFloat ? 8e-3 : 1e-3;
    RunTwice(gradient, tolerance);
    RunTwice(MakeForward(dims, types), types[0] == kDouble ? 1e-12 : tolerance);
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
    RunTwice(call, 1e-4);
  }
  RunTwice(MakeSkip(dims, kFloat), 1e-4);
  RunTwice(MakeSkipGradient(dims, kFloat), 4e-6);
}

/// Rows of which nothing is found: their elements are first read when outputs are made.
TEST_F(CudaLayerNormRows, ByColumnsWithoutResults) {
  for (const DataType type : {kFloat, kHalf}) {
    const Sizes dims = {2 * RowsByColumns(1024, {type, type, type}), 1024};
    OpCall call{.name = "rows", .op = "BiasGeluGrad", .types = {type}};
    call.inputs = {Make(type, dims), Make(type, dims), Make(type, {1024})};
    call.outputs = {Make(type, dims), Make(type, {1024})};
    call.FillInputs(random_);
    RunTwice(call, type == kFloat ? 4e-6 : 0);
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
  ASSERT_TRUE(FormOfGradient(dense).is_by_columns);
  ASSERT_FALSE(FormOfGradient(apart).is_by_columns);
  ASSERT_EQ(FormOfGradient(apart).vector, 4);
  RunTwice(apart, 4e-6);
  RunTwice(dense, 4e-6);
}

/// Which outputs are wanted changes no bit of the others.
TEST_F(CudaLayerNormRows, ByColumnsSubsets) {
  const Types types = {kHalf, kHalf, kFloat};
  OpCall call = MakeGradient({RowsByColumns(2048, types), 2048}, types);
  RunTwice(call);
  const std::vector<std::vector<std::byte>> all = call.OutputBytes();
  const std::vector<TensorPointer> outputs = call.outputs;
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    call.outputs = {nullptr, nullptr, nullptr};
    call.outputs[wanted] = outputs[wanted];
    ASSERT_TRUE(FormOfGradient(call).is_by_columns);
    RunTwice(call);
    EXPECT_TRUE(call.outputs[wanted]->GpuBytes() == all[wanted]) << "output " << wanted;
  }
}

/// What is no number stays in its row and in its columns, and infinity gives none.
TEST_F(CudaLayerNormRows, WhereElementsAreNotFinite) {
  constexpr std::int64_t kLength = 2048;
  const Types types = {kFloat, kFloat, kFloat};
  const std::int64_t rows = RowsByColumns(kLength, types);
  const std::int64_t last = rows - 1;
  const Sizes dims = {rows, kLength};
  const Context context(OnGpu());
  for (const OpCall& call :
       {MakeForward(dims, types), MakeSkip(dims, kFloat),
        MakeOfChannels("MeanVarianceNormalization", dims, kFloat),
        MakeOfChannels("InstanceNormalization", dims, kFloat), MakeGradient(dims, types),
        MakeSkipGradient(dims, kFloat),
        MakeOfChannels("MeanVarianceNormalizationGrad", dims, kFloat),
        MakeOfChannels("InstanceNormalizationGrad", dims, kFloat)}) {
    SCOPED_TRACE(call.Describe());
    call.inputs[0]->SetOnGpu((3 * kLength) + 5, std::numeric_limits<double>::quiet_NaN());
    call.inputs[0]->SetOnGpu((last * kLength) + 2047, std::numeric_limits<double>::infinity());
    call.ResetOutputs();
    ASSERT_TRUE(call.Run(context).ok());
    ASSERT_TRUE(Synchronize(context).ok());
    const std::vector<double> elements = call.outputs[0]->GpuValues();
    for (std::int64_t row = 0; row < rows; ++row) {
      const double* const begin = elements.data() + row * kLength;
      const auto finite =
          std::count_if(begin, begin + kLength, [](double one) { return std::isfinite(one); });
      ASSERT_EQ(finite, row == 3 || row == last ? 0 : kLength) << row;
    }
    const bool is_gradient = call.op.ends_with("Grad");
    const bool sums_columns = is_gradient && call.name == "rows";
    for (std::size_t output = 1; is_gradient && output < call.outputs.size(); ++output) {
      // Of each column, or of each row.
      const std::size_t no_number = sums_columns ? 5 : 3;
      const std::size_t infinite = sums_columns ? 2047 : static_cast<std::size_t>(last);
      const std::vector<double> sums = call.outputs[output]->GpuValues();
      for (std::size_t i = 0; i < sums.size(); ++i) {
        ASSERT_EQ(std::isfinite(sums[i]), i != no_number && i != infinite) << i;
      }
      EXPECT_TRUE(std::isnan(sums[no_number]));
      EXPECT_TRUE(std::isinf(sums[infinite]));
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
