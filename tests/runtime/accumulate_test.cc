#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith {
namespace {

using support::Layout;
using support::TestTensor;
using Values = std::vector<double>;

/// The dims of each op's inputs. Of an op that the schema gains the generated tests alone ask this.
const std::map<std::string_view, std::vector<std::vector<std::int64_t>>> kInputs = {
    {"Conv", {{2, 4, 5, 6}, {6, 4, 3, 2}, {6}}},
    {"ConvGrad", {{2, 6, 3, 5}, {2, 4, 5, 6}, {6, 4, 3, 2}}},
    {"ConvTranspose", {{2, 4, 5, 6}, {4, 6, 3, 2}, {6}}},
    {"ConvTransposeGrad", {{2, 6, 7, 7}, {2, 4, 5, 6}, {4, 6, 3, 2}}},
    {"BatchNormalization", {{2, 4, 5, 6}, {4}, {4}, {4}, {4}}},
    {"BatchNormalizationGrad", {{2, 4, 5, 6}, {2, 4, 5, 6}, {4}, {4}, {4}}},
    {"BatchNormalizationRelu", {{2, 4, 5, 6}, {4}, {4}, {4}, {4}}},
    {"BatchNormalizationReluGrad", {{2, 4, 5, 6}, {2, 4, 5, 6}, {4}, {4}, {4}, {4}}},
};

DataType TypeOf(const Row& row, const TensorSpec& spec) {
  return spec.type_parameter < 0 ? spec.fixed_type : row.types[spec.type_parameter];
}

/// Small whole numbers from 1 on, in an order without pattern.
Values SmallNumbers(std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 1 + static_cast<double>((i * 7) % 5);
  }
  return values;
}

/// A call of a row, with outputs in a layout.
class CallOfRow {
 public:
  CallOfRow(const Row& row, Layout layout) : kernel_(Kernel::Create(row, {})) {
    const OpSchema& op = *row.op;
    std::vector<ConstTensorRef> refs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      inputs_.emplace_back(
          TypeOf(row, op.inputs[i]), kInputs.at(op.name).at(i), Layout::kContiguous);
      inputs_.back().Fill(SmallNumbers(inputs_.back().Values().size()));
      refs.emplace_back(inputs_.back().Ref());
    }
    const Result<std::vector<Dims>> dims = kernel_->InferShapes(refs);
    EXPECT_TRUE(dims.ok()) << dims.status().message();
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const Dims& of_output = dims->at(i);
      outputs_.emplace_back(
          TypeOf(row, op.outputs[i]), std::vector<std::int64_t>(of_output.begin(), of_output.end()),
          layout);
      outputs_.back().Poison();
    }
  }

  Status Run(bool accumulate) {
    std::vector<ConstTensorRef> inputs;
    for (const TestTensor& tensor : inputs_) {
      inputs.emplace_back(tensor.Ref());
    }
    std::vector<TensorRef> outputs;
    for (const TestTensor& tensor : outputs_) {
      outputs.push_back(accumulate ? tensor.Ref().Accumulating() : tensor.Ref());
    }
    return kernel_->Run(Context({.threads = 2}), inputs, outputs);
  }

  std::vector<TestTensor>& outputs() { return outputs_; }

 private:
  Result<Kernel> kernel_;
  std::vector<TestTensor> inputs_;
  std::vector<TestTensor> outputs_;
};

/// What adding `b` to `a` gives in memory of the type.
double Sum(DataType type, double a, double b) {
  const double sum = type == DataType::kDouble ? a + b : support::Round(DataType::kFloat, a + b);
  return support::Round(type, sum);
}

class Accumulating : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAll(registry_).ok()); }

  std::vector<const Row*> RowsOnCpu(bool gradients) {
    std::vector<const Row*> rows;
    for (const Row* row : registry_.rows()) {
      if (row->backend == Backend::kCpu && kInputs.contains(row->op->name) &&
          row->op->gradient_of.empty() != gradients) {
        rows.push_back(row);
      }
    }
    EXPECT_GE(rows.size(), 3U * kFloatingTypeCount);
    return rows;
  }

  Registry registry_;
};

TEST_F(Accumulating, AddsEveryGradientToWhatIsThere) {
  for (const Row* row : RowsOnCpu(/*gradients=*/true)) {
    CallOfRow plain(*row, Layout::kContiguous);
    Status status = plain.Run(/*accumulate=*/false);
    ASSERT_TRUE(status.ok()) << status.message();
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
      SCOPED_TRACE(ToString(*row) + ", layout " + std::to_string(static_cast<int>(layout)));
      CallOfRow adding(*row, layout);
      for (TestTensor& output : adding.outputs()) {
        output.Fill(SmallNumbers(output.Values().size()));
      }
      status = adding.Run(/*accumulate=*/true);
      ASSERT_TRUE(status.ok()) << status.message();
      for (std::size_t i = 0; i < adding.outputs().size(); ++i) {
        const TestTensor& output = adding.outputs()[i];
        const Values addend = plain.outputs()[i].Values();
        Values expected = SmallNumbers(addend.size());
        for (std::size_t j = 0; j < addend.size(); ++j) {
          expected[j] = Sum(output.type(), expected[j], addend[j]);
        }
        EXPECT_EQ(output.Values(), expected) << row->op->outputs[i].name;
        EXPECT_NE(output.Values(), SmallNumbers(addend.size())) << row->op->outputs[i].name;
        EXPECT_TRUE(output.SurroundingsIntact()) << row->op->outputs[i].name;
      }
    }
  }
}

TEST_F(Accumulating, IsRefusedForWhatIsNoGradient) {
  for (const Row* row : RowsOnCpu(/*gradients=*/false)) {
    CallOfRow call(*row, Layout::kContiguous);
    const std::vector<std::byte> before = call.outputs().front().AllBytes();
    const Status status = call.Run(/*accumulate=*/true);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(
        status.message(),
        ToString(*row) + ": Y is to be added to; only the outputs of a gradient can be");
    EXPECT_EQ(call.outputs().front().AllBytes(), before);
  }
}

TEST(AccumulatingOne, LeavesTheOthersReplaced) {
  const Values ones(64, 1.0);
  Values dX(4, 10.0);
  Values dW(4, 10.0);
  Values dB(1, 10.0);
  const TensorView<const double> x(ones.data(), {1, 1, 4});
  const TensorView<const double> w(ones.data(), {1, 1, 4});
  const TensorView<const double> dy(ones.data(), {1, 1, 1});
  const Status status = ConvGrad<double>(
      Context(), {}, {.dY = dy, .X = x, .W = w},
      {.dX = TensorView<double>(dX.data(), {1, 1, 4}),
       .dW = TensorView<double>(dW.data(), {1, 1, 4}).Accumulating(),
       .dB = TensorView<double>(dB.data(), {1})});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(dX, Values(4, 1.0));
  EXPECT_EQ(dW, Values(4, 11.0));
  EXPECT_EQ(dB, Values(1, 1.0));
}

TEST(AccumulatingOne, OfNothingAddsNothing) {
  const Values ones(64, 1.0);
  Values dW(4, 10.0);
  Values dB(1, 10.0);
  Values untouched(1, 10.0);
  const Status status = ConvGrad<double>(
      Context(), {},
      {.dY = {ones.data(), {0, 1, 1}},
       .X = {ones.data(), {0, 1, 4}},
       .W = {ones.data(), {1, 1, 4}}},
      {.dX = TensorView<double>(untouched.data(), {0, 1, 4}).Accumulating(),
       .dW = TensorView<double>(dW.data(), {1, 1, 4}).Accumulating(),
       .dB = TensorView<double>(dB.data(), {1}).Accumulating()});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(untouched, Values(1, 10.0));
  EXPECT_EQ(dW, Values(4, 10.0));
  EXPECT_EQ(dB, Values(1, 10.0));
}

TEST(AccumulatingOne, IsNotDoneWhilePreparing) {
  const Values ones(64, 1.0);
  Values dB(1, 10.0);
  const Status status = ConvGrad<double>(
      Context().ForPreparing(), {},
      {.dY = {ones.data(), {1, 1, 1}},
       .X = {ones.data(), {1, 1, 4}},
       .W = {ones.data(), {1, 1, 4}}},
      {.dB = TensorView<double>(dB.data(), {1}).Accumulating()});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(dB, Values(1, 10.0));
}

}  // namespace
}  // namespace gradsmith
