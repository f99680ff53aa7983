#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/op_problems.h"
#include "support/elements.h"

/// Outputs that are added to (beta = 1). Values are small integers, so that every sum is exact.
namespace gradsmith::cuda {
namespace {

enum class Memory : unsigned char { kContiguous, kChannelsLast, kStrided, kMisaligned };
constexpr Memory kAllMemory[] = {
    Memory::kContiguous, Memory::kChannelsLast, Memory::kStrided, Memory::kMisaligned};

class CudaAccumulate : public CudaTest {
 protected:
  /// An output that holds small integers, in one of the ways to lie in memory.
  static TensorPointer Output(DataType type, const Sizes& dims, Memory memory, Random& random) {
    const Layout layout = memory == Memory::kContiguous ? Layout::kContiguous
                          : memory == Memory::kStrided  ? Layout::kStrided
                                                        : Layout::kChannelsLast;
    auto tensor = std::make_shared<GpuTensor>(
        type, dims, support::StridesFor(layout, dims),
        memory == Memory::kStrided || memory == Memory::kMisaligned ? 1 : 0);
    tensor->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
    return tensor;
  }
  static void
  ReplaceOutputs(OpCall& call, const std::vector<Sizes>& dims, Memory memory, Random& random) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      call.outputs[i] = Output(call.types[0], dims[i], memory, random);
    }
  }

  /// Runs twice, so that the second run is by the plan that the first one made.
  static void Check(
      const OpCall& call,
      const Context& context,
      Memory memory,
      const std::vector<double>& roundoffs = {0, 0, 0}) {
    const std::vector<std::vector<double>> gradients = call.Expected();
    for (int run = 0; run < 2; ++run) {
      call.ResetOutputs();
      const std::string doing = call.Describe() + ", memory " +
                                std::to_string(static_cast<int>(memory)) + ", run " +
                                std::to_string(run);
      Status status = call.Run(context, true);
      status = status.ok() ? Synchronize(context) : status;
      ASSERT_TRUE(status.ok()) << doing << ": " << status.message() << RecentChoices();
      for (std::size_t i = 0; i < call.outputs.size(); ++i) {
        Compare(
            *call.outputs[i], gradients[i], roundoffs[i], doing + ", output " + std::to_string(i));
      }
    }
  }

 private:
  static void Compare(
      const GpuTensor& output,
      const std::vector<double>& gradient,
      double roundoffs,
      const std::string& doing) {
    const std::vector<double> before = output.HostValues();
    const std::vector<double> after = output.GpuValues();
    const double roundoff = roundoffs * support::UnitRoundoff(output.type());
    // Transforms (Winograd's, Fourier's) round even integers, in the type that is summed in.
    const DataType summed =
        output.type() == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
    const double slack = 256 * support::UnitRoundoff(summed);
    for (std::size_t i = 0; i < after.size(); ++i) {
      ASSERT_NEAR(
          after[i], before[i] + gradient[i],
          slack + (roundoff * (std::abs(before[i]) + std::abs(gradient[i]))))
          << doing << ", element " << i << ": was " << before[i] << ", gradient " << gradient[i]
          << RecentChoices();
    }
    EXPECT_TRUE(output.SurroundingsIntact()) << doing << RecentChoices();
  }
};

TEST_F(CudaAccumulate, ConvGrad) {
  Random random("cuda accumulate conv");
  // 2 * 6 * 6 terms at most: bf16 counts to 256.
  const std::vector<ConvShape> shapes = {
      {.name = "3x3", .x = {2, 8, 6, 6}, .w = {8, 8, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "grouped",
       .x = {2, 8, 6, 5},
       .w = {16, 2, 3, 2},
       .strides = {2, 1},
       .pads = {1, 0, 0, 1},
       .group = 4},
      {.name = "1d", .x = {2, 4, 20}, .w = {6, 4, 3}}};
  Turns turns(5);  // of four types and each way to lie, in two modes
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    const Context context(OnGpu(mode, 0.3));
    for (const ConvShape& shape : shapes) {
      for (const DataType type : kAllTypes) {
        for (const Memory memory : kAllMemory) {
          if (!turns.Next()) {
            continue;
          }
          const Layout layout =
              memory == Memory::kContiguous ? Layout::kContiguous : Layout::kChannelsLast;
          OpCall call = MakeConvGrad(shape, type, layout, random);
          ReplaceOutputs(call, {shape.x, shape.w, {shape.w[0]}}, memory, random);
          call.FillInputsWithIntegers(random, -1, 1);
          Check(call, context, memory);
        }
      }
    }
  }
}

TEST_F(CudaAccumulate, ConvTransposeGrad) {
  Random random("cuda accumulate transposed");
  const ConvShape shape = {
      .name = "3x3", .x = {2, 8, 6, 6}, .w = {4, 8, 3, 3}, .pads = {1, 1, 1, 1}};
  const Context context(OnGpu());
  for (const DataType type : kAllTypes) {
    for (const Memory memory : kAllMemory) {
      OpCall call = MakeConvTransposeGrad(shape, type, Layout::kContiguous, random);
      ReplaceOutputs(call, {shape.YDims(), shape.w, {shape.x[1]}}, memory, random);
      call.FillInputsWithIntegers(random, -1, 1);
      Check(call, context, memory);
    }
  }
}

TEST_F(CudaAccumulate, BatchNormalizationGrad) {
  Random random("cuda accumulate batch norm");
  const Sizes x = {4, 6, 4, 2};
  const Context context(OnGpu());
  for (const DataType type : kAllTypes) {
    for (const Memory memory : kAllMemory) {
      OpCall call = MakeBatchNormGrad(x, type, Layout::kContiguous, random);
      call.FillInputsWithIntegers(random, -1, 1);
      ReplaceOutputs(call, {x, {6}, {6}}, memory, random);
      // The sums are exact; dX is divided by the count, and so rounded.
      Check(call, context, memory, {8, 0, 0});
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
