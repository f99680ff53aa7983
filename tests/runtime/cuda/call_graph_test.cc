#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda/thread_state.h"
#include "runtime/cuda/op_problems.h"
#include "support/allocations.h"

/// Calls that come back with the same plans and addresses, which are launched as one CUDA graph.
namespace gradsmith::cuda {
namespace {

class CudaCallGraph : public CudaTest {
 protected:
  [[nodiscard]] int Launched() const {
    return ThreadState::OfThisThread(device()).call_graphs().launched();
  }

  static void RunAndCheck(const OpCall& call, const Context& context, const std::string& doing) {
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << call.Describe() << ": " << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults(doing);
  }
};

TEST_F(CudaCallGraph, LaterCallsReadWhatIsThereThen) {
  Random random("cuda call graph");
  const Context context(OnGpu());
  for (const DataType type : kAllTypes) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
      for (const bool transposed : {false, true}) {
        const OpCall call = transposed ? MakeConvTransposeGrad(Conv3x3(), type, layout, random)
                                       : MakeConvGrad(Conv3x3(), type, layout, random);
        const int before = Launched();
        for (int run = 0; run < 5; ++run) {
          call.FillInputs(random);
          RunAndCheck(call, context, "run " + std::to_string(run));
        }
        EXPECT_EQ(Launched() - before, 4) << call.Describe();
      }
    }
  }
}

/// What was prepared is one launch from the first run on.
TEST_F(CudaCallGraph, PreparedCallsAreRecorded) {
  Random random("cuda call graph prepared");
  const Context context(OnGpu());
  for (const OpCall& call :
       {MakeConv(Conv3x3(), DataType::kFloat, Layout::kContiguous, random),
        MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random),
        MakeBatchNorm({4, 16, 12, 10}, DataType::kFloat, Layout::kContiguous, random)}) {
    const int before = Launched();
    ASSERT_TRUE(call.Prepare(context).ok()) << call.Describe();
    EXPECT_EQ(Launched(), before);
    for (int run = 0; run < 2; ++run) {
      call.FillInputs(random);
      RunAndCheck(call, context, "run " + std::to_string(run));
    }
    EXPECT_EQ(Launched() - before, 2) << call.Describe();
  }
}

/// One shape and type, so that a sanitizer can be given a few of them at a time.
class CudaCallGraphSideBySide
    : public CudaCallGraph,
      public testing::WithParamInterface<std::tuple<ConvShape, DataType>> {};

/// Recorded, the three gradients run side by side, each with its part of the workspace: many times,
/// as what they did to each other would come and go.
TEST_P(CudaCallGraphSideBySide, GradientsLeaveEachOtherAlone) {
  const auto& [shape, type] = GetParam();
  Random random("cuda call graph side by side");
  ContextOptions options = OnGpu();
  options.deterministic = true;
  const Context context(options);
  for (const Layout layout : kDenseLayouts) {
    const OpCall call = MakeConvGrad(shape, type, layout, random);
    RunAndCheck(call, context, "as it is");
    std::vector<std::vector<std::byte>> first;
    for (const TensorPointer& output : call.outputs) {
      first.push_back(output->GpuBytes());
    }
    for (int run = 0; run < 20; ++run) {
      call.ResetOutputs();
      ASSERT_TRUE(call.Run(context).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      for (std::size_t i = 0; i < first.size(); ++i) {
        ASSERT_TRUE(call.outputs[i]->GpuBytes() == first[i])
            << call.Describe() << ", output " << i << ", run " << run;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases,
    CudaCallGraphSideBySide,
    testing::Combine(
        testing::Values(
            ConvShape{
                .name = "large",
                .x = {3, 64, 28, 28},
                .w = {128, 64, 3, 3},
                .pads = {1, 1, 1, 1}},
            ConvShape{.name = "odd", .x = {4, 33, 21, 19}, .w = {65, 33, 3, 3}},
            ConvGrouped(),
            ConvDepthwise()),
        testing::ValuesIn(kAllTypes)),
    [](const auto& of_case) {
      const DataType type = std::get<1>(of_case.param);
      return std::get<0>(of_case.param).name + "_" + std::string(ToString(type));
    });

TEST_F(CudaCallGraph, BatchNormalizationWithOtherNumbers) {
  Random random("cuda call graph batch norm");
  const Context context(OnGpu());
  OpCall call = MakeBatchNorm({4, 16, 12, 10}, DataType::kFloat, Layout::kContiguous, random);
  for (const double epsilon : {1e-5, 0.5, 1e-5, 0.5}) {
    call.attributes = {{"epsilon", epsilon}};
    const int before = Launched();
    for (int run = 0; run < 3; ++run) {
      RunAndCheck(call, context, "epsilon " + std::to_string(epsilon));
    }
    EXPECT_GE(Launched() - before, 2);
  }
}

/// dB's layout and dW's plan stay the same, and so do all addresses but one.
TEST_F(CudaCallGraph, OtherAddressesAreAnotherGraph) {
  Random random("cuda call graph addresses");
  const Context context(OnGpu());
  OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    for (int run = 0; run < 3; ++run) {
      RunAndCheck(call, context, "before another output " + std::to_string(i));
    }
    const TensorPointer old = call.outputs[i];
    const std::vector<std::byte> bytes = old->GpuBytes();
    call.outputs[i] = MakeTensor(
        DataType::kFloat, i == 0   ? Conv3x3().x
                          : i == 1 ? Conv3x3().w
                                   : Sizes{Conv3x3().w[0]});
    RunAndCheck(call, context, "another output " + std::to_string(i));
    EXPECT_TRUE(old->GpuBytes() == bytes);
  }
}

/// The driver waits where it has to make room for a graph: a call that may wait makes room for
/// another as well, which a call with other addresses takes.
TEST_F(CudaCallGraph, OtherAddressesTakeRoomThatWasMadeBefore) {
  Random random("cuda call graph room");
  const Context context(OnGpu());
  CallGraphs& graphs = ThreadState::OfThisThread(device()).call_graphs();
  graphs.Clear();
  const auto make = [&] {
    return MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  };
  const std::vector<OpCall> prepared = {make(), make()};
  for (const OpCall& call : prepared) {
    ASSERT_TRUE(call.Prepare(context).ok());
  }
  EXPECT_EQ(graphs.spares(), 2U);
  const std::vector<OpCall> others = {make(), make(), make()};
  for (std::size_t i = 0; i < others.size(); ++i) {
    RunAndCheck(others[i], context, "enqueued");
    EXPECT_EQ(graphs.spares(), i < 2 ? 2 - i : 0U);
    RunAndCheck(others[i], context, "recorded");
    EXPECT_EQ(graphs.spares(), i < 2 ? 1 - i : 0U);
  }
  graphs.Clear();
}

TEST_F(CudaCallGraph, AccumulatesEachTime) {
  Random random("cuda call graph accumulates");
  const Context context(OnGpu());
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kDouble, Layout::kContiguous, random);
  std::vector<std::vector<double>> expected = call.Expected();
  for (const TensorPointer& output : call.outputs) {
    output->Fill([] { return 0.0; });
  }
  constexpr int kRuns = 5;
  for (int run = 0; run < kRuns; ++run) {
    ASSERT_TRUE(call.Run(context, /*accumulate=*/true).ok());
  }
  ASSERT_TRUE(Synchronize(context).ok());
  for (std::vector<double>& values : expected) {
    for (double& value : values) {
      value *= kRuns;
    }
  }
  call.ExpectResults("the sum of all runs", expected);
}

TEST_F(CudaCallGraph, NewPlansAreRecordedAnew) {
  Random random("cuda call graph plans");
  const Context context(OnGpu());
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(ClearCache().ok());
    const int before = Launched();
    for (int run = 0; run < 3; ++run) {
      RunAndCheck(call, context, "round " + std::to_string(round));
    }
    EXPECT_EQ(Launched() - before, 2);
  }
}

/// An operator's call on tensors of one shape.
OpCall MakeAlike(const std::string& op, int inputs, Random& random) {
  const Sizes dims = {6, 10};
  OpCall call{.name = "alike", .op = op, .types = {DataType::kFloat}};
  for (int i = 0; i < inputs; ++i) {
    call.inputs.push_back(MakeTensor(DataType::kFloat, dims));
  }
  call.outputs = {MakeTensor(DataType::kFloat, dims)};
  call.FillInputs(random);
  return call;
}

/// A tensor's name that is longer than a string holds in place.
OpCall MakeAccumulator(Random& random) {
  OpCall call = MakeAlike("InPlaceAccumulatorV2", 2, random);
  call.types = {DataType::kFloat, DataType::kFloat};
  call.outputs.insert(call.outputs.begin(), MakeTensor(DataType::kBool, {}));
  return call;
}

/// ConvGrad with the outputs at these places alone.
OpCall MakeConvGradOf(const std::vector<std::size_t>& wanted, Random& random) {
  OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kChannelsLast, random);
  std::vector<TensorPointer> outputs(call.outputs.size());
  for (const std::size_t output : wanted) {
    outputs[output] = call.outputs[output];
  }
  call.outputs = outputs;
  return call;
}

/// All that the host does for a call that comes back, but the launch, which is the driver's: what
/// was prepared is prepared again.
TEST_F(CudaCallGraph, CallsThatComeBackAllocateNothing) {
  Random random("cuda call graph allocations");
  const Context preparing = Context(OnGpu()).ForPreparing();
  for (const OpCall& call :
       {MakeConvGradOf({0}, random), MakeConvGradOf({1}, random), MakeConvGradOf({2}, random),
        MakeConvGradOf({0, 1, 2}, random),
        MakeBatchNormGrad({4, 16, 12, 10}, DataType::kFloat, Layout::kContiguous, random),
        MakeAlike("SigmoidGrad", 2, random), MakeAlike("SoftmaxGrad", 2, random),
        MakeAccumulator(random)}) {
    const Result<Kernel> kernel =
        Kernel::Create(AllOps(), call.op, call.types, Backend::kCuda, call.attributes);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const std::vector<ConstTensorRef> inputs = call.InputRefs();
    const std::vector<TensorRef> outputs = call.OutputRefs();
    const Status first = kernel->Run(preparing, inputs, outputs);
    ASSERT_TRUE(first.ok()) << call.Describe() << ": " << first.message();
    const auto [again, count] = [&] {
      const support::Allocations allocations;
      const Status status = kernel->Run(preparing, inputs, outputs);
      return std::pair(status, allocations.count());
    }();
    EXPECT_TRUE(again.ok()) << call.Describe();
    EXPECT_EQ(count, 0) << call.Describe();
  }
}

}  // namespace
}  // namespace gradsmith::cuda
