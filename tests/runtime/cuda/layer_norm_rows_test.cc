#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
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
  OpCall call = MakeGradient({6, 40}, {kFloat, kFloat, kFloat});
  call.FillInputsWithIntegers(random_, -3, 3);
  const std::vector<std::vector<double>> expected = call.Expected();
  for (const TensorPointer& output : call.outputs) {
    output->Fill([] { return 1000.0; });
  }
  ASSERT_TRUE(call.Run(Context(OnGpu()), /*accumulate=*/true).ok());
  for (std::size_t output = 1; output < 3; ++output) {
    const std::vector<double> values = call.outputs[output]->GpuValues();
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], expected[output][i] + 1000) << "output " << output << ", element " << i;
    }
  }
}

TEST_F(CudaLayerNormRows, NoRowsSumToZero) {
  OpCall call = MakeGradient({0, 5}, {kFloat, kFloat, kFloat});
  RunTwice(call);
}

TEST_F(CudaLayerNormRows, LargeMeansAndConstants) {
  OpCall call = MakeForward({2, 1000}, {kFloat, kFloat, kFloat});
  std::size_t next = 0;
  // Deviations of 1, 2, 3 beside a mean of 2^20; and a constant.
  call.inputs[0]->Fill([&] {
    const std::size_t i = next++;
    return i < 1000 ? 1048576.0 + static_cast<double>(i % 5) : 0.1;
  });
  call.inputs[2]->Fill([] { return 0.0; });
  RunTwice(call, 4e-6);
  const std::vector<double> y = call.outputs[0]->GpuValues();
  for (std::size_t i = 1000; i < 2000; ++i) {
    ASSERT_EQ(y[i], 0) << i;
  }
  EXPECT_EQ(call.outputs[1]->GpuValues()[1], static_cast<double>(0.1F));
}

}  // namespace
}  // namespace gradsmith::cuda
