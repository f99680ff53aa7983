#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "runtime/cuda/op_call.h"

/// The kernels of the pattern `channels`, by each way in which it cuts a tensor. The generated
/// tests compare small ones with an oracle.
namespace gradsmith::cuda {
namespace {

struct ChannelProblem {
  std::string name;
  Sizes dims;
  Layout layout = Layout::kContiguous;
};

class CudaChannels : public CudaTest {
 protected:
  static TensorPointer Make(DataType type, const ChannelProblem& problem) {
    return std::make_shared<GpuTensor>(type, problem.dims, problem.layout);
  }
  static TensorPointer MakeRow(DataType type, const ChannelProblem& problem) {
    return std::make_shared<GpuTensor>(type, Sizes{problem.dims[1]}, Layout::kContiguous);
  }

  /// Runs the operator and its gradient twice each, alike to the bit, and compares them with the
  /// CPU's in double.
  void Check(const ChannelProblem& problem, DataType type) {
    OpCall forward{.name = problem.name, .op = "ChannelNorm", .types = {type, type}};
    forward.inputs = {Make(type, problem), MakeRow(type, problem), MakeRow(type, problem)};
    forward.outputs = {Make(type, problem), MakeRow(type, problem), MakeRow(type, problem)};
    FillPositive(forward);
    RunRepeatedly(forward);
    OpCall gradient{.name = problem.name, .op = "ChannelNormGrad", .types = {type, type}};
    gradient.inputs = {Make(type, problem), Make(type, problem)};
    gradient.outputs = {Make(type, problem)};
    for (int row = 0; row < 3; ++row) {
      gradient.inputs.push_back(MakeRow(type, problem));
    }
    for (int row = 0; row < 2; ++row) {
      gradient.outputs.push_back(MakeRow(type, problem));
    }
    FillPositive(gradient);
    RunRepeatedly(gradient);
  }

  /// Sums of these do not cancel. Those of deviations from a mean do not where it is another.
  void FillPositive(const OpCall& call) {
    for (const TensorPointer& tensor : call.inputs) {
      tensor->FillRandom(random_, 0.5, 2);
    }
    if (call.inputs.size() == 5) {
      call.inputs[3]->FillRandom(random_, -1, 0);
    }
  }

  Random random_{"channels"};
};

TEST_F(CudaChannels, LongOnesAreCut) {
  Check({.name = "vectors", .dims = {5, 1, 116, 120}}, DataType::kFloat);
  Check({.name = "short_last_part", .dims = {3, 1, 220, 200}}, DataType::kBFloat16);
  Check({.name = "elements", .dims = {5, 1, 119, 121}}, DataType::kFloat);
  Check({"channels_last", {3, 16, 28, 29}, Layout::kChannelsLast}, DataType::kMLFloat16);
  Check({"odd_channels_last", {5, 3, 41, 41}, Layout::kChannelsLast}, DataType::kFloat);
}

TEST_F(CudaChannels, ThatNoBlockHolds) {
  Check({.name = "vectors", .dims = {7, 2, 64, 64}}, DataType::kFloat);
  Check({.name = "elements", .dims = {7, 1, 63, 65}}, DataType::kDouble);
}

TEST_F(CudaChannels, AnyStrides) {
  Check({"strided", {2, 3, 4, 5}, Layout::kStrided}, DataType::kFloat);
  // dX lies in memory otherwise than X and dY do, which are of a larger tensor.
  const ChannelProblem problem{.name = "unlike", .dims = {3, 2, 4, 8}};
  OpCall call{.name = "unlike", .op = "ChannelTotals", .types = {DataType::kFloat}};
  const auto make = [](const Sizes& dims, const Sizes& strides, std::size_t misaligned = 0) {
    return std::make_shared<GpuTensor>(DataType::kFloat, dims, strides, misaligned);
  };
  call.inputs = {
      make(problem.dims, {80, 40, 8, 1}), make({3, 4, 8}, {32, 8, 1}),
      MakeRow(DataType::kFloat, problem)};
  call.outputs = {
      make(problem.dims, {64, 1, 16, 2}), make({3, 4, 8}, {1, 24, 3}), make({3, 4, 8}, {40, 9, 1}),
      MakeRow(DataType::kFloat, problem)};
  call.FillInputsWithIntegers(random_, -3, 3);
  RunRepeatedly(call);
  call.inputs[0] = make(problem.dims, {80, 40, 8, 1}, 1);
  call.FillInputsWithIntegers(random_, -3, 3);
  RunRepeatedly(call);
}

/// Three numbers, each of which is broadcast: no 32-bit number counts the elements of a channel,
/// nor in the second problem the channels.
TEST_F(CudaChannels, MoreElementsThan32BitsCount) {
  if (IsEmulated()) {
    GTEST_SKIP() << "the emulated GPU takes hours for so many elements";
  }
  constexpr std::int64_t kMany = std::int64_t{1} << 30U;
  const auto filled = [](double value) {
    auto tensor = std::make_shared<GpuTensor>(DataType::kDouble, Sizes{3}, Layout::kContiguous);
    tensor->Fill([value]() mutable { return value++; });
    return tensor;
  };
  const TensorPointer numbers = filled(1);
  const TensorPointer weights = filled(4);
  TensorRef x = numbers->GpuRef();
  TensorRef weight = weights->GpuRef();
  const Result<Kernel> kernel =
      Kernel::Create(AllOps(), "ChannelTotals", {DataType::kDouble}, Backend::kCuda, {});
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const Context context(OnGpu());
  x.dims = {3, 1, kMany};
  x.strides = {1, 1, 0};
  weight.dims = {3, kMany};
  weight.strides = {1, 0};
  TensorRef factor = numbers->GpuRef();
  factor.dims = {1};
  const TensorPointer totals = filled(0);
  TensorRef total = totals->GpuRef();
  total.dims = {1};
  Status status =
      kernel->Run(context, {x, weight, factor}, {TensorRef(), TensorRef(), TensorRef(), total});
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  EXPECT_EQ(totals->GpuValues()[0], (1 * 4 + 2 * 5 + 3 * 6) * static_cast<double>(kMany));
  x.dims = {3, 2 * kMany + 8, 1};
  x.strides = {1, 0, 1};
  weight.dims = {3, 1};
  weight.strides = {1, 1};
  factor.dims = {2 * kMany + 8};
  factor.strides = {0};
  const TensorPointer sums = filled(0);
  TensorRef sum = sums->GpuRef();
  sum.dims = {3, 1};
  sum.strides = {1, 1};
  status = kernel->Run(context, {x, weight, factor}, {TensorRef(), sum, TensorRef(), TensorRef()});
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  const auto many = static_cast<double>(2 * kMany + 8);
  EXPECT_EQ(sums->GpuValues(), (std::vector<double>{many, 2 * many, 3 * many}));
}

/// Columns are places of the batch and the images; their sums are over few channels and over many,
/// and those of one kind are made of what was found of each channel.
TEST_F(CudaChannels, SumsOverChannels) {
  for (const std::int64_t channels : {1, 3, 150}) {
    for (const std::int64_t width : {8, 7}) {
      const ChannelProblem problem{.name = "sums", .dims = {3, channels, 4, width}};
      OpCall call{.name = "sums", .op = "ChannelTotals", .types = {DataType::kFloat}};
      const auto of_places = [&] {
        return std::make_shared<GpuTensor>(
            DataType::kFloat, Sizes{3, 4, width}, Layout::kContiguous);
      };
      call.inputs = {
          Make(DataType::kFloat, problem), of_places(), MakeRow(DataType::kFloat, problem)};
      const TensorPointer sums = of_places();
      const TensorPointer of_totals = of_places();
      call.FillInputsWithIntegers(random_, -3, 3);
      call.outputs = {nullptr, nullptr, of_totals, nullptr};
      RunRepeatedly(call);
      call.outputs = {nullptr, sums, nullptr, nullptr};
      RunRepeatedly(call);
      call.outputs = {
          Make(DataType::kFloat, problem), sums, of_totals, MakeRow(DataType::kFloat, problem)};
      RunRepeatedly(call);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
