#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/graph_capture.h"
#include "runtime/cuda/op_problems.h"

/// Calls that are captured into CUDA graphs, and prepared calls.
namespace gradsmith::cuda {
namespace {

using support::DeviceMemory;
using support::DeviceStream;

class CudaCapture : public CudaTest {
 protected:
  static ContextOptions OptionsFor(const DeviceStream& stream, CountingAllocator* allocator) {
    ContextOptions options = OnGpu();
    options.stream = stream.get();
    options.deterministic = true;
    if (allocator != nullptr) {
      options.allocator = allocator->Get();
    }
    return options;
  }

  static std::vector<OpCall> AllCalls(DataType type, Random& random) {
    std::vector<OpCall> calls;
    for (const Layout layout : kDenseLayouts) {
      calls.push_back(MakeConvGrad(Conv3x3(), type, layout, random));
      calls.push_back(MakeConv(ConvGrouped(), type, layout, random));
      calls.push_back(MakeConvTransposeGrad(Conv3x3(), type, layout, random));
      calls.push_back(MakeBatchNorm({4, 16, 12, 10}, type, layout, random));
      calls.push_back(MakeBatchNormGrad({4, 16, 12, 10}, type, layout, random));
    }
    // Of blocks that wait for each other.
    calls.push_back(MakeBatchNormGrad({4, 64, 16, 16}, type, Layout::kChannelsLast, random));
    return calls;
  }

  /// A problem that needs workspace: x is off its boundary, so that it is copied.
  static OpCall MakeMisaligned(const ConvShape& shape, Random& random) {
    OpCall call = MakeConvGrad(shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    call.inputs[1] = std::make_shared<GpuTensor>(
        DataType::kMLFloat16, shape.x, support::StridesFor(Layout::kChannelsLast, shape.x), 1);
    call.outputs[0] = nullptr;
    call.outputs[2] = nullptr;
    call.FillInputs(random);
    return call;
  }

  static void Capture(CudaGraph& graph, const OpCall& call, const Context& context) {
    graph.Begin();
    const Status called = call.Run(context);
    const Status ended = graph.End();
    ASSERT_TRUE(called.ok()) << call.Describe() << ": " << called.message() << RecentChoices();
    ASSERT_TRUE(ended.ok()) << call.Describe() << ": " << ended.message() << RecentChoices();
  }

  /// Replays with inputs that change each time, and compares with calls that are not captured.
  static void
  Replay(const CudaGraph& graph, const OpCall& call, const Context& context, Random& random) {
    for (int run = 0; run < 10; ++run) {
      call.FillInputs(random);
      call.ResetOutputs();
      ASSERT_TRUE(graph.Launch().ok()) << call.Describe();
      ASSERT_TRUE(Synchronize(context).ok()) << call.Describe();
      const std::vector<std::vector<std::byte>> replayed = call.OutputBytes();
      call.ResetOutputs();
      const Status status = call.Run(context);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_TRUE(Synchronize(context).ok());
      ASSERT_TRUE(replayed == call.OutputBytes())
          << call.Describe() << ": replay " << run << " differs from the call" << RecentChoices();
    }
    call.ExpectResults("the last call");
  }
};

TEST_F(CudaCapture, ReplaysWhatCallsCompute) {
  Random random("cuda capture replay");
  Turns turns(3);  // of four types
  for (const DataType type : kAllTypes) {
    for (const OpCall& call : AllCalls(type, random)) {
      if (!turns.Next()) {
        continue;
      }
      const DeviceStream stream(device());
      CountingAllocator allocator;
      const Context context(OptionsFor(stream, &allocator));
      const Status prepared = call.Prepare(context);
      ASSERT_TRUE(prepared.ok()) << call.Describe() << ": " << prepared.message();
      const int allocations = allocator->allocations;
      CudaGraph graph(stream.get());
      Capture(graph, call, context);
      if (HasFatalFailure()) {
        return;
      }
      EXPECT_LE(allocator->allocations, allocations + 1) << "more than a graph's workspace";
      Replay(graph, call, context, random);
    }
  }
}

TEST_F(CudaCapture, PreparingLeavesOutputsAlone) {
  Random random("cuda capture outputs");
  const Context context(OnGpu());
  for (const OpCall& call : AllCalls(DataType::kFloat, random)) {
    const std::vector<std::vector<std::byte>> before = call.OutputBytes();
    ASSERT_TRUE(call.Prepare(context).ok()) << call.Describe();
    ASSERT_TRUE(Synchronize(context).ok());
    EXPECT_TRUE(call.OutputBytes() == before) << call.Describe();
  }
}

TEST_F(CudaCapture, PreparedOnAnotherThread) {
  Random random("cuda capture other thread");
  for (const OpCall& call : AllCalls(DataType::kFloat, random)) {
    const DeviceStream stream(device());
    const Context context(OptionsFor(stream, nullptr));
    Status prepared;
    std::thread([&] {
      const CurrentDevice current(device());
      prepared = call.Prepare(context);
    }).join();
    ASSERT_TRUE(prepared.ok()) << call.Describe() << ": " << prepared.message();
    CudaGraph graph(stream.get());
    Capture(graph, call, context);
    if (HasFatalFailure()) {
      return;
    }
    Replay(graph, call, context, random);
  }
}

TEST_F(CudaCapture, NewProblemIsRefused) {
  Random random("cuda capture refused");
  const DeviceStream stream(device());
  const Context context(OptionsFor(stream, nullptr));
  const OpCall known = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  const OpCall never = MakeConvGrad(ConvStrided(), DataType::kFloat, Layout::kContiguous, random);
  ASSERT_TRUE(known.Prepare(context).ok());
  CudaGraph graph(stream.get());
  graph.Begin();
  const Status refused = never.Run(context);
  const CUstreamCaptureStatus state = CaptureStatus(stream.get());
  const Status called = known.Run(context);
  const Status ended = graph.End();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.message();
  EXPECT_NE(
      refused.message().find("none can be sought while the stream is captured into a CUDA graph"),
      std::string::npos)
      << refused.message();
  EXPECT_NE(refused.message().find("Context::ForPreparing"), std::string::npos);
  EXPECT_EQ(state, CU_STREAM_CAPTURE_STATUS_ACTIVE) << "the refusal has spoilt the capture";
  EXPECT_TRUE(called.ok()) << called.message();
  EXPECT_TRUE(ended.ok()) << ended.message();
  EXPECT_EQ(CaptureStatus(stream.get()), CU_STREAM_CAPTURE_STATUS_NONE);
  if (ended.ok()) {
    Replay(graph, known, context, random);
  }
  const Status later = never.Run(context);
  EXPECT_TRUE(later.ok()) << later.message();
  EXPECT_TRUE(Synchronize(context).ok());
  never.ExpectResults("after the capture");
}

/// What needs workspace, and more of it, than one call before has left.
TEST_F(CudaCapture, AllocatesForTheGraphAlone) {
  Random random("cuda capture allocates");
  const DeviceStream stream(device());
  CountingAllocator allocator;
  const OpCall call = MakeMisaligned(Conv3x3(), random);
  // The plan is ready on this thread, and the second context has no workspace yet.
  ASSERT_TRUE(call.Prepare(Context(OptionsFor(stream, &allocator))).ok());
  ASSERT_GT(allocator->allocations, 0) << "the call needs no workspace" << RecentChoices();
  const int allocations = allocator->allocations;
  const Context context(OptionsFor(stream, &allocator));
  CudaGraph graph(stream.get());
  ASSERT_NO_FATAL_FAILURE(Capture(graph, call, context));
  EXPECT_EQ(allocator->allocations, allocations + 1);
  Replay(graph, call, context, random);
}

/// Forgotten choices are made anew, and their old plans are dropped: not those in a graph.
TEST_F(CudaCapture, GraphsOutliveTheChoicesTheyWereCapturedWith) {
  Random random("cuda capture forgotten");
  Turns turns(3);  // of two types
  for (const DataType type : {DataType::kMLFloat16, DataType::kFloat}) {
    const DeviceStream stream(device());
    const Context context(OptionsFor(stream, nullptr));
    for (const OpCall& call : AllCalls(type, random)) {
      if (!turns.Next()) {
        continue;
      }
      ASSERT_TRUE(call.Run(context).ok());
      CudaGraph graph(stream.get());
      ASSERT_NO_FATAL_FAILURE(Capture(graph, call, context));
      ASSERT_TRUE(ClearCache().ok());
      ASSERT_TRUE(call.Run(context).ok());
      Replay(graph, call, context, random);
    }
  }
}

/// Work that keeps a stream busy for some 0.2 s or more.
void KeepBusy(const DeviceStream& stream, const DeviceMemory& memory, std::size_t size) {
  for (int i = 0; i < 500; ++i) {
    Driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory.data()), 0, size, stream.get());
  }
}

/// Runs a call behind other work, and expects that it neither waits for that nor allocates.
void RunBehindOtherWork(
    const OpCall& call,
    const Context& context,
    const DeviceStream& stream,
    const CountingAllocator& allocator) {
  constexpr std::size_t kBusyBytes = std::size_t{1} << 30U;
  const int allocations = allocator->allocations;
  const DeviceMemory busy(stream, kBusyBytes);
  KeepBusy(stream, busy, kBusyBytes);
  const auto begin = std::chrono::steady_clock::now();
  const Status status = call.Run(context);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  const CUresult state = CaptureApi::Get().query(stream.get());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(state, CUDA_ERROR_NOT_READY)
      << call.Describe() << ": waited, or the stream was not busy; the call took " << taken.count()
      << " ms" << RecentChoices();
  EXPECT_EQ(allocator->allocations, allocations) << call.Describe();
  ASSERT_TRUE(Synchronize(context).ok());
  call.ExpectResults("behind other work");
}

TEST_F(CudaCapture, PreparedCallsNeitherAllocateNorWait) {
  Random random("cuda capture no wait");
  for (const OpCall& call : AllCalls(DataType::kFloat, random)) {
    const DeviceStream stream(device());
    CountingAllocator allocator;
    const Context context(OptionsFor(stream, &allocator));
    ASSERT_TRUE(call.Prepare(context).ok()) << call.Describe();
    ASSERT_TRUE(Synchronize(context).ok());
    for (const char* run : {"the first run", "the second run"}) {
      SCOPED_TRACE(run);
      call.ResetOutputs();
      RunBehindOtherWork(call, context, stream, allocator);
    }
  }
}

/// Also where other tensors come, which are recorded when they come a second time.
TEST_F(CudaCapture, OtherAddressesNeitherAllocateNorWait) {
  Random random("cuda capture no wait");
  Random random_of_others("cuda capture no wait");
  const std::vector<OpCall> calls = AllCalls(DataType::kFloat, random);
  const std::vector<OpCall> others = AllCalls(DataType::kFloat, random_of_others);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const DeviceStream stream(device());
    CountingAllocator allocator;
    const Context context(OptionsFor(stream, &allocator));
    ASSERT_TRUE(calls[i].Run(context).ok()) << calls[i].Describe();
    ASSERT_TRUE(Synchronize(context).ok());
    for (const char* run : {"the first run", "the second run", "the third run"}) {
      SCOPED_TRACE(run);
      others[i].ResetOutputs();
      RunBehindOtherWork(others[i], context, stream, allocator);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
