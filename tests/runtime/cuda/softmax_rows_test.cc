#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "runtime/cuda/op_call.h"

/// The kernels of the pattern `rows`, by each way in which it cuts a tensor.
namespace gradsmith::cuda {
namespace {

/// Where a tensor's rows lie, and how.
struct RowsProblem {
  std::string name;
  Sizes dims;
  std::int64_t axis = -1;
  Layout layout = Layout::kContiguous;
  bool coerced = false;
};

OpCall MakeCall(
    const std::string& op,
    const RowsProblem& problem,
    DataType type,
    const TensorPointer& x,
    const TensorPointer& y) {
  OpCall call{.name = problem.name, .op = op, .types = {type}};
  call.attributes = {{"axis", problem.axis}, {"coerced", problem.coerced}};
  call.inputs = {x};
  call.outputs = {y};
  return call;
}

class CudaSoftmaxRows : public CudaTest {
 protected:
  TensorPointer Make(DataType type, const RowsProblem& problem) {
    return std::make_shared<GpuTensor>(type, problem.dims, problem.layout);
  }

  /// Runs the gradient twice, alike to the bit, and compares it with the CPU's; then the operator.
  void Check(const RowsProblem& problem, DataType type, bool logarithm = false) {
    const std::string op = logarithm ? "LogSoftmax" : "Softmax";
    OpCall forward = MakeCall(op, problem, type, Make(type, problem), Make(type, problem));
    forward.inputs[0]->FillRandom(random_, -4, 4);
    RunRepeatedly(forward);
    OpCall gradient =
        MakeCall(op + "Grad", problem, type, Make(type, problem), Make(type, problem));
    gradient.inputs.push_back(Make(type, problem));
    gradient.inputs[0]->FillRandom(random_);
    // As large as what the sum has on average, so that it counts.
    gradient.inputs[1]->FillRandom(random_, logarithm ? -6 : 0, logarithm ? -1 : 1);
    RunRepeatedly(gradient);
  }

  Random random_{"softmax rows"};
};

TEST_F(CudaSoftmaxRows, TeamsOfAllSizesAlongMemory) {
  // One thread, several rows of a warp, a warp, several warps, all of a block, more than that
  // holds at once.
  for (const std::int64_t length : {1, 4, 24, 128, 520, 4096, 8192}) {
    Check({.name = "vectors", .dims = {3, length}}, DataType::kFloat);
  }
  for (const std::int64_t length : {3, 17, 129, 1001}) {
    Check({.name = "elements", .dims = {3, length}}, DataType::kMLFloat16);
  }
  Check({.name = "half", .dims = {9, 264}}, DataType::kMLFloat16, true);
  Check({.name = "bf16", .dims = {2, 1024}}, DataType::kBFloat16);
  Check({.name = "double", .dims = {5, 130}}, DataType::kDouble, true);
}

TEST_F(CudaSoftmaxRows, RaggedRows) {
  // Rows begin at each of a vector's places, and end anywhere; the longest are read again.
  const std::vector<DataType> types = {
      DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};
  for (const DataType type : types) {
    for (const std::int64_t length : {17, 30, 63, 515, 4099}) {
      Check({.name = "ragged", .dims = {9, length}}, type, length % 2 == 0);
    }
  }
  Check({.name = "not held", .dims = {2, 32767}}, DataType::kDouble);
  Check({.name = "not held", .dims = {2, 32001}}, DataType::kMLFloat16);
}

TEST_F(CudaSoftmaxRows, RowsThatNoBlockHolds) {
  // Longer than shared memory, and too short to be cut; what is not held is read again.
  Check({.name = "along", .dims = {2, 28000}}, DataType::kFloat);
  Check({.name = "across", .dims = {12000, 2}, .axis = 0}, DataType::kDouble);
}

TEST_F(CudaSoftmaxRows, FewLongRowsAreCut) {
  Check({.name = "vectors", .dims = {2, 40960}}, DataType::kFloat);
  Check({.name = "elements", .dims = {1, 40001}}, DataType::kFloat, true);
  Check({.name = "short_last_part", .dims = {1, 81936}}, DataType::kMLFloat16);
  Check({.name = "across", .dims = {9000, 16}, .axis = 0}, DataType::kFloat);
  Check({.name = "elements_across", .dims = {7001, 5}, .axis = 0}, DataType::kMLFloat16, true);
}

/// A gradient that is the same for all rows lies in memory as one row does.
TEST_F(CudaSoftmaxRows, BroadcastGradient) {
  const RowsProblem problem{.name = "broadcast", .dims = {6, 64}};
  OpCall call =
      MakeCall("SoftmaxGrad", problem, DataType::kFloat, nullptr, Make(DataType::kFloat, problem));
  call.inputs[0] = std::make_shared<GpuTensor>(DataType::kFloat, problem.dims, Sizes{0, 1});
  call.inputs.push_back(Make(DataType::kFloat, problem));
  call.inputs[0]->FillRandom(random_);
  call.inputs[1]->FillRandom(random_, 0, 1);
  RunRepeatedly(call);
}

TEST_F(CudaSoftmaxRows, RowsAcrossMemory) {
  Check({.name = "vectors", .dims = {2, 5, 6, 4}, .axis = 1}, DataType::kFloat);
  Check({.name = "deep", .dims = {2, 300, 24}, .axis = 1}, DataType::kMLFloat16);
  Check({.name = "logarithm", .dims = {2, 70, 8}, .axis = 1}, DataType::kBFloat16, true);
  Check({.name = "elements", .dims = {2, 70, 7}, .axis = 1}, DataType::kMLFloat16);
  Check({.name = "narrow", .dims = {3, 9, 2}, .axis = 1}, DataType::kDouble);
}

/// Short rows have one thread each where there are enough of them to keep the GPU busy.
TEST_F(CudaSoftmaxRows, ManyShortRowsAcrossMemory) {
  Check({.name = "vectors", .dims = {2, 5, 17000}, .axis = 1}, DataType::kFloat);
  Check({.name = "longest", .dims = {2, 32, 8500}, .axis = 1}, DataType::kDouble, true);
  Check({.name = "elements", .dims = {2, 9, 4999}, .axis = 1}, DataType::kMLFloat16);
}

TEST_F(CudaSoftmaxRows, AnyStrides) {
  for (const std::int64_t axis : {0, 1, 2, 3}) {
    Check({"strided", {2, 3, 4, 5}, axis, Layout::kStrided}, DataType::kFloat);
    Check({"channels_last", {2, 8, 3, 4}, axis, Layout::kChannelsLast}, DataType::kMLFloat16);
    Check({"coerced", {2, 3, 4, 5}, axis, Layout::kStrided, true}, DataType::kFloat);
  }
  RowsProblem mixed{.name = "unlike", .dims = {2, 3, 8}, .axis = 1, .coerced = true};
  OpCall call = MakeCall("Softmax", mixed, DataType::kFloat, nullptr, nullptr);
  call.inputs[0] = std::make_shared<GpuTensor>(DataType::kFloat, mixed.dims, Sizes{24, 8, 1});
  call.outputs[0] = std::make_shared<GpuTensor>(DataType::kFloat, mixed.dims, Sizes{1, 16, 2});
  call.inputs[0]->FillRandom(random_);
  RunRepeatedly(call);
}

TEST_F(CudaSoftmaxRows, MisalignedMemory) {
  const RowsProblem problem{.name = "misaligned", .dims = {4, 64}};
  OpCall call = MakeCall("Softmax", problem, DataType::kFloat, nullptr, nullptr);
  call.inputs[0] = std::make_shared<GpuTensor>(DataType::kFloat, problem.dims, Sizes{64, 1}, 1);
  call.outputs[0] = Make(DataType::kFloat, problem);
  call.inputs[0]->FillRandom(random_);
  RunRepeatedly(call);
}

TEST_F(CudaSoftmaxRows, ManyRows) {
  Check({.name = "short", .dims = {3001, 8}}, DataType::kMLFloat16);
  Check({.name = "one_element", .dims = {700, 1}}, DataType::kFloat);
}

TEST_F(CudaSoftmaxRows, AddsToWhatIsThere) {
  for (const RowsProblem& problem :
       {RowsProblem{"along", {3, 64}}, RowsProblem{"across", {2, 5, 8}, 1},
        RowsProblem{"odd", {3, 7}}}) {
    OpCall call = MakeCall(
        "SoftmaxGrad", problem, DataType::kFloat, Make(DataType::kFloat, problem),
        Make(DataType::kFloat, problem));
    call.inputs.push_back(Make(DataType::kFloat, problem));
    call.FillInputsWithIntegers(random_, -3, 3);
    const std::vector<std::vector<double>> expected = call.Expected();
    call.outputs[0]->Fill([] { return 1000.0; });
    ASSERT_TRUE(call.Run(Context(OnGpu()), /*accumulate=*/true).ok());
    const std::vector<double> values = call.outputs[0]->GpuValues();
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], expected[0][i] + 1000) << problem.name << ", element " << i;
    }
  }
}

TEST_F(CudaSoftmaxRows, InPlace) {
  // A row that is cut into parts, one that is held, and rows across memory.
  for (const RowsProblem& problem :
       {RowsProblem{"cut", {1, 40000}}, RowsProblem{"held", {3, 72}},
        RowsProblem{"across", {2, 5, 8}, 1}}) {
    const TensorPointer both = Make(DataType::kFloat, problem);
    OpCall call = MakeCall("Softmax", problem, DataType::kFloat, both, both);
    both->FillRandom(random_);
    const std::vector<std::vector<double>> expected = call.Expected();
    ASSERT_TRUE(call.Run(Context(OnGpu())).ok());
    call.ExpectResults(problem.name, expected);
  }
}

TEST_F(CudaSoftmaxRows, HurtfulRows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> rows = {
      {-kInfinity, 1, 1, -kInfinity}, {-kInfinity, -kInfinity, -kInfinity, -kInfinity},
      {kInfinity, 0, 1, 2},           {nan, 0, 1, 2},
      {65504, 65504, -65504, -65504}, {-65504, -65504, -65504, -65504}};
  for (const DataType type : kAllTypes) {
    for (const std::int64_t axis : {0, 1}) {
      const RowsProblem problem{
          .name = "hurtful", .dims = axis == 1 ? Sizes{6, 4} : Sizes{4, 6}, .axis = axis};
      OpCall call = MakeCall("Softmax", problem, type, Make(type, problem), Make(type, problem));
      std::size_t next = 0;
      call.inputs[0]->Fill([&] {
        const std::size_t i = next++;
        return axis == 1 ? rows[i / 4][i % 4] : rows[i % 6][i / 6];
      });
      ASSERT_TRUE(call.Run(Context(OnGpu())).ok());
      const std::vector<double> y = call.outputs[0]->GpuValues();
      const auto at = [&](std::size_t row, std::size_t i) {
        return axis == 1 ? y[row * 4 + i] : y[i * 6 + row];
      };
      EXPECT_EQ(at(0, 0), 0);
      EXPECT_EQ(at(0, 1), 0.5);
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(std::isnan(at(1, i))) << i;
        EXPECT_TRUE(std::isnan(at(2, i))) << i;
        EXPECT_TRUE(std::isnan(at(3, i))) << i;
        EXPECT_EQ(at(4, i), i < 2 ? 0.5 : 0) << i;
        EXPECT_EQ(at(5, i), 0.25) << i;
      }
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
