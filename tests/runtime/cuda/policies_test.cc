#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/cuda/op_problems.h"
#include "support/turns.h"

/// The policies of a context: precision, determinism, workspace, search mode.
namespace gradsmith::cuda {
namespace {

class CudaPolicies : public CudaTest {
 protected:
  /// Runs the call and waits.
  static Status Finish(const OpCall& call, const Context& context) {
    const Status status = call.Run(context);
    return status.ok() ? Synchronize(context) : status;
  }
  static void RunAndCompare(const OpCall& call, const Context& context, const std::string& doing) {
    const Status status = Finish(call, context);
    ASSERT_TRUE(status.ok()) << doing << ": " << status.message() << RecentChoices();
    call.ExpectResults(doing);
  }
  /// Fails where one of 20 runs has other bits than the first.
  static void ExpectSameBits(const OpCall& call, const Context& context, const std::string& doing) {
    std::vector<std::vector<std::byte>> first;
    for (int run = 0; run < 20; ++run) {
      call.ResetOutputs();
      const Status status = Finish(call, context);
      ASSERT_TRUE(status.ok()) << doing << ": " << status.message() << RecentChoices();
      const std::vector<std::vector<std::byte>> bytes = call.OutputBytes();
      if (run == 0) {
        first = bytes;
      }
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_TRUE(bytes[i] == first[i]) << doing << ": output " << i << " of " << call.Describe()
                                          << ", run " << run << RecentChoices();
      }
    }
  }
  /// A problem whose kernel copies its tensors first, and so needs workspace.
  static OpCall NeedsWorkspace(Random& random) {
    const ConvShape shape = Conv3x3();
    OpCall call = MakeConvGrad(shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
    const Sizes x = shape.x;
    call.inputs[1] = std::make_shared<GpuTensor>(
        DataType::kMLFloat16, x, support::StridesFor(Layout::kChannelsLast, x), 1);
    call.outputs[0] = std::make_shared<GpuTensor>(
        DataType::kMLFloat16, x, support::StridesFor(Layout::kChannelsLast, x), 1);
    call.FillInputs(random);
    return call;
  }
};

TEST_F(CudaPolicies, FloatAgreesWithDouble) {
  Random random("cuda policies float");
  // Heuristic before benchmark: what was timed serves both.
  for (const SearchMode mode : kAllModes) {
    const Context context(OnGpu(mode));
    for (const Layout layout : kDenseLayouts) {
      for (const ConvShape& shape :
           {Conv3x3(), Conv1x1(), ConvGrouped(), ConvStrided(), ConvDepthwise()}) {
        RunAndCompare(
            MakeConvGrad(shape, DataType::kFloat, layout, random), context,
            std::string(ToString(mode)));
      }
    }
  }
}

TEST_F(CudaPolicies, Tf32IsUsedWhereAllowed) {
  Random random("cuda policies tf32");
  double largest = 0;
  std::string all;
  Turns turns(3);  // of two filters in two layouts and two modes
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    ContextOptions options = OnGpu(mode, 3);
    options.allow_tf32 = true;
    const Context context(options);
    for (const Layout layout : kDenseLayouts) {
      for (const Sizes& filter : {Sizes{64, 64, 3, 3}, Sizes{64, 64, 1, 1}}) {
        if (!turns.Next()) {
          continue;
        }
        const ConvShape shape = {
            .name = "tf32", .x = {IsEmulated() ? 1 : 8, 64, 28, 28}, .w = filter};
        const OpCall call = MakeConvGrad(shape, DataType::kFloat, layout, random);
        const Status status = Finish(call, context);
        ASSERT_TRUE(status.ok()) << status.message();
        const std::vector<std::vector<double>> expected = call.Expected();
        for (std::size_t i = 0; i < 2; ++i) {
          const double error = RelativeError(call.outputs[i]->GpuValues(), expected[i]);
          EXPECT_LE(error, 2e-3) << call.Describe() << RecentChoices();
          largest = std::max(largest, error);
          all += " " + std::to_string(error * 1e6) + "e-6";
        }
      }
    }
  }
  EXPECT_GT(largest, 1e-5) << "errors:" << all << RecentChoices(16);
}

TEST_F(CudaPolicies, DeterministicGivesSameBits) {
  Random random("cuda policies deterministic");
  const ConvShape plain = {
      .name = "plain", .x = {8, 32, 14, 14}, .w = {32, 32, 3, 3}, .pads = {1, 1, 1, 1}};
  Turns turns(5);  // of two shapes in two layouts, four types and every mode
  for (const SearchMode mode : kAllModes) {
    ContextOptions options = OnGpu(mode, 0.3);
    options.deterministic = true;
    const Context context(options);
    for (const DataType type : kAllTypes) {
      for (const Layout layout : kDenseLayouts) {
        for (const ConvShape& shape : {plain, ConvGrouped()}) {
          if (!turns.Next()) {
            continue;
          }
          ExpectSameBits(
              MakeConvGrad(shape, type, layout, random), context, std::string(ToString(mode)));
        }
      }
    }
  }
}

TEST_F(CudaPolicies, DoubleIsDeterministicByDefault) {
  Random random("cuda policies double");
  for (const SearchMode mode : kAllModes) {
    const Context context(OnGpu(mode, 1));
    for (const Layout layout : kDenseLayouts) {
      ExpectSameBits(
          MakeConvGrad(Conv3x3(), DataType::kDouble, layout, random), context,
          std::string(ToString(mode)));
    }
  }
}

TEST_F(CudaPolicies, WorkspaceLimitHolds) {
  Random random("cuda policies limit");
  const std::int64_t images = IsEmulated() ? 1 : 4;
  const ConvShape shape = {
      .name = "limited", .x = {images, 32, 28, 28}, .w = {32, 32, 3, 3}, .pads = {1, 1, 1, 1}};
  Turns turns(5);  // of two layouts, four types, every mode and two limits
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1} << 20U}) {
    for (const SearchMode mode : kAllModes) {
      CountingAllocator allocator;
      ContextOptions options = OnGpu(mode, 0.5);
      options.workspace_limit = limit;
      options.allocator = allocator.Get();
      const Context context(options);
      for (const DataType type : kAllTypes) {
        for (const Layout layout : kDenseLayouts) {
          if (!turns.Next()) {
            continue;
          }
          OpCall call = MakeConvGrad(shape, type, layout, random);
          const std::vector<TensorPointer> outputs = call.outputs;
          for (std::size_t i = 0; i < outputs.size(); ++i) {
            call.outputs = {nullptr, nullptr, nullptr};
            call.outputs[i] = outputs[i];
            const std::string doing =
                "limit " + std::to_string(limit) + ", " + std::string(ToString(mode));
            // Our own kernels need none.
            const Status status = Finish(call, context);
            ASSERT_TRUE(status.ok())
                << doing << ": " << call.Describe() << ": " << status.message();
            // Thousands of terms are summed for dW and dB.
            call.ExpectResults(doing, 4 * Tolerance(type));
          }
        }
      }
      EXPECT_LE(allocator->peak, limit) << ToString(mode);
    }
  }
}

TEST_F(CudaPolicies, CallersOwnWorkspace) {
  Random random("cuda policies own workspace");
  constexpr std::size_t kGiven = std::size_t{8} << 20U;
  constexpr std::size_t kBeyond = 4096;
  const Block block(kGiven + kBeyond);
  block.Fill(0x5A);
  CountingAllocator allocator;
  ContextOptions options = OnGpu();
  options.workspace = block.data();
  options.workspace_size = kGiven;
  options.allocator = allocator.Get();
  const Context context(options);
  RunAndCompare(NeedsWorkspace(random), context, "own workspace");
  // The bias gradient of so many pixels is summed in slices, whatever computes the rest.
  const ConvShape large = {.name = "many pixels", .x = {2, 16, 60, 60}, .w = {24, 16, 3, 3}};
  RunAndCompare(
      MakeConvGrad(large, DataType::kMLFloat16, Layout::kChannelsLast, random), context,
      "own workspace");
  for (const DataType type : kAllTypes) {
    RunAndCompare(
        MakeConvGrad(Conv3x3(), type, Layout::kChannelsLast, random), context, "own workspace");
  }
  EXPECT_EQ(allocator->allocations, 0);
  const std::vector<std::byte> bytes = block.CopyOut();
  const auto is_untouched = [](std::byte byte) { return byte == std::byte{0x5A}; };
  EXPECT_TRUE(std::all_of(bytes.begin() + kGiven, bytes.end(), is_untouched))
      << "memory beyond the given workspace was written" << RecentChoices();
  EXPECT_FALSE(std::all_of(bytes.begin(), bytes.begin() + kGiven, is_untouched))
      << "the given workspace was not used" << RecentChoices();
}

TEST_F(CudaPolicies, NoMemoryIsSaidAndNothingWritten) {
  Random random("cuda policies no memory");
  OpCall call = NeedsWorkspace(random);
  call.outputs[1] = nullptr;
  call.outputs[2] = nullptr;
  CountingAllocator allocator;
  ContextOptions options = OnGpu();
  options.allocator = allocator.Get();
  RunAndCompare(call, Context(options), "with memory");
  ASSERT_GT(allocator->allocations, 0) << "the call needs no workspace" << RecentChoices();
  EXPECT_EQ(allocator->live, 0U) << "the context has gone, its workspace has not";

  call.ResetOutputs();
  const std::vector<std::vector<std::byte>> before = call.OutputBytes();
  CountingAllocator empty;
  empty->is_empty = true;
  options.allocator = empty.Get();
  const Context context(options);
  const Status status = Finish(call, context);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
  EXPECT_NE(status.message().find("the context's allocator has no "), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("ConvGrad[half] on cuda"), std::string::npos) << status.message();
  EXPECT_TRUE(Synchronize(context).ok());
  EXPECT_TRUE(call.OutputBytes() == before) << "something was written";
  // Once there is memory again the same context works.
  empty->is_empty = false;
  RunAndCompare(call, context, "with memory again");
}

}  // namespace
}  // namespace gradsmith::cuda
