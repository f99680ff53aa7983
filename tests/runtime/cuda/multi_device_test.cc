#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/op_problems.h"

/// Calls on two GPUs of one process.
namespace gradsmith::cuda {
namespace {

using Bytes = std::vector<std::vector<std::byte>>;

class CudaMultiDevice : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (const Status status = CheckDevice({Backend::kCuda, 1}); !status.ok()) {
      GTEST_SKIP() << "two GPUs are needed: " << status.message();
    }
  }

  static const DeviceInfo& Gpu(int index) { return **DeviceInfo::Open(index); }
  static Context ContextOn(int index) {
    ContextOptions options = OnGpu();
    options.device.index = index;
    options.deterministic = true;
    return Context(options);
  }

  /// The same calls with the same numbers, on any device.
  static std::vector<OpCall> CallsOn(int index) {
    const CurrentDevice current(Gpu(index));
    Random random("cuda multi device");
    std::vector<OpCall> calls;
    for (const DataType type : kAllTypes) {
      calls.push_back(MakeConvGrad(Conv3x3(), type, Layout::kChannelsLast, random));
      calls.push_back(MakeConv(ConvGrouped(), type, Layout::kContiguous, random));
      calls.push_back(MakeBatchNormGrad({4, 8, 6, 5}, type, Layout::kContiguous, random));
    }
    for (OpCall& call : calls) {
      call.device_index = index;
    }
    return calls;
  }

  /// Whatever device is current, and it stays so.
  static void Run(const OpCall& call, const Context& context) {
    CUcontext before = nullptr;
    CUcontext after = nullptr;
    Driver().cuCtxGetCurrent(&before);
    Status status = call.Run(context);
    status = status.ok() ? Synchronize(context) : status;
    Driver().cuCtxGetCurrent(&after);
    EXPECT_EQ(before, after) << call.Describe() << " left another device current";
    ASSERT_TRUE(status.ok()) << "device " << call.device_index << ": " << call.Describe() << ": "
                             << status.message();
  }
  static Bytes Results(const OpCall& call) {
    const CurrentDevice current(Gpu(call.device_index));
    call.ExpectResults("device " + std::to_string(call.device_index));
    return call.OutputBytes();
  }
};

TEST_F(CudaMultiDevice, OneThread) {
  const std::vector<Context> contexts = {ContextOn(0), ContextOn(1)};
  const std::vector<std::vector<OpCall>> calls = {CallsOn(0), CallsOn(1)};
  const bool alike = Gpu(0).description() == Gpu(1).description();
  for (std::size_t i = 0; i < calls[0].size(); ++i) {
    std::vector<Bytes> bytes;
    for (const std::size_t index : {std::size_t{0}, std::size_t{1}}) {
      // Once while the device is current, once while the other is.
      for (const std::size_t current_index : {index, 1 - index}) {
        {
          const CurrentDevice reset(Gpu(static_cast<int>(index)));
          calls[index][i].ResetOutputs();
        }
        const CurrentDevice current(Gpu(static_cast<int>(current_index)));
        Run(calls[index][i], contexts[index]);
        if (HasFatalFailure()) {
          return;
        }
        bytes.push_back(Results(calls[index][i]));
      }
    }
    EXPECT_TRUE(bytes[0] == bytes[1] && bytes[2] == bytes[3]) << calls[0][i].Describe();
    if (alike) {
      EXPECT_TRUE(bytes[0] == bytes[2]) << calls[0][i].Describe() << ": devices differ";
    }
  }
}

TEST_F(CudaMultiDevice, TwoThreads) {
  std::vector<std::thread> threads;
  for (const int index : {0, 1}) {
    threads.emplace_back([index] {
      const CurrentDevice current(Gpu(index));
      const Context context = ContextOn(index);
      const std::vector<OpCall> calls = CallsOn(index);
      for (int round = 0; round < 20; ++round) {
        for (const OpCall& call : calls) {
          call.ResetOutputs();
          Run(call, context);
          Results(call);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

/// A stream of its own device, and workspace that the context takes there.
TEST_F(CudaMultiDevice, StreamOfTheSecondDevice) {
  const support::DeviceStream stream(Gpu(1));
  CountingAllocator allocator;
  ContextOptions options = OnGpu();
  options.device.index = 1;
  options.stream = stream.get();
  options.allocator = allocator.Get();
  const Context context(options);
  for (const OpCall& call : CallsOn(1)) {
    const CurrentDevice other(Gpu(0));
    Run(call, context);
    if (HasFatalFailure()) {
      return;
    }
    Results(call);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
