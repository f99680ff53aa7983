#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runtime/cuda/op_problems.h"

/// The policy exact_padding: what is not finite in an input reaches only those results that have a
/// product with it.
namespace gradsmith::cuda {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class CudaConvPadding : public CudaTest {
 protected:
  static ContextOptions Exactly(SearchMode mode) {
    ContextOptions options = OnGpu(mode);
    options.exact_padding = true;
    return options;
  }

  /// Of 7x7 taps by steps of two; and one whose sizes come out even, for the transposed.
  static std::vector<OpCall> AllCalls(DataType type, Layout layout, Random& random) {
    const ConvShape images = ConvBySteps(2, "images", {2, 3, 18, 18}, 16, {7, 7}, {3, 3, 2, 2});
    const ConvShape beyond = {
        .name = "pads of more than the filter",
        .x = {2, 8, 6, 7},
        .w = {8, 8, 3, 3},
        .pads = {4, 5, 3, 4}};
    std::vector<OpCall> calls;
    for (const ConvShape& shape :
         {Conv3x3(), Conv1x1(), ConvGrouped(), ConvStrided(), ConvDepthwise(), images, beyond}) {
      calls.push_back(MakeConv(shape, type, layout, random));
      calls.push_back(MakeConvGrad(shape, type, layout, random));
    }
    calls.push_back(MakeConvTransposeGrad(Conv3x3(), type, layout, random));
    calls.push_back(MakeConvTransposeGrad(ConvDepthwise(), type, layout, random));
    return calls;
  }

  /// Fails where other elements than those of the CPU's results are not finite, or where finite
  /// ones are off.
  static void ExpectAsOnTheCpu(const OpCall& call, const std::string& doing) {
    const std::vector<std::vector<double>> expected = call.Expected();
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      std::vector<double> found = call.outputs[i]->GpuValues();
      std::vector<double> right = expected[i];
      int differ = 0;
      for (std::size_t at = 0; at < right.size(); ++at) {
        differ += std::isfinite(found[at]) == std::isfinite(right[at]) ? 0 : 1;
        if (!std::isfinite(right[at])) {
          found[at] = right[at] = 0;
        }
      }
      EXPECT_EQ(differ, 0) << doing << ": output " << i << " of " << call.Describe()
                           << RecentChoices();
      if (differ == 0) {
        EXPECT_LE(RelativeError(found, right), Tolerance(call.outputs[i]->type()))
            << doing << ": output " << i << " of " << call.Describe() << RecentChoices();
      }
    }
  }

  /// Makes the first, the middle and the last element of each input NaN in turn.
  static void PlantEach(const OpCall& call, const Context& context) {
    for (std::size_t input = 0; input < call.inputs.size(); ++input) {
      const std::vector<double> values = call.inputs[input]->HostValues();
      for (const std::size_t place : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
        std::vector<double> planted = values;
        planted[place] = kNan;
        FillWith(planted, *call.inputs[input]);
        call.ResetOutputs();
        const Status status = call.Run(context);
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(Synchronize(context).ok());
        ExpectAsOnTheCpu(call, "input " + std::to_string(input) + " at " + std::to_string(place));
      }
      FillWith(values, *call.inputs[input]);
    }
  }

 private:
  static void FillWith(const std::vector<double>& values, GpuTensor& tensor) {
    std::size_t next = 0;
    tensor.Fill([&] { return values[next++]; });
  }
};

TEST_F(CudaConvPadding, WhatIsNotFiniteReachesItsProductsAlone) {
  Random random("cuda conv padding");
  for (const DataType type : kAllTypes) {
    for (const SearchMode mode : {SearchMode::kDefault, SearchMode::kBenchmark}) {
      const Context context(Exactly(mode));
      for (const Layout layout : kDenseLayouts) {
        for (const OpCall& call : AllCalls(type, layout, random)) {
          ASSERT_NO_FATAL_FAILURE(PlantEach(call, context));
        }
      }
    }
  }
}

/// As above, of one layer: also for the emulated GPU, which takes long for all.
TEST_F(CudaConvPadding, WhatIsNotFiniteInALayerReachesItsProductsAlone) {
  Random random("cuda conv padding of a layer");
  const Context context(Exactly(SearchMode::kDefault));
  const ConvShape shape = {
      .name = "small", .x = {2, 8, 5, 6}, .w = {8, 8, 3, 3}, .pads = {1, 1, 1, 1}};
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    ASSERT_NO_FATAL_FAILURE(
        PlantEach(MakeConvGrad(shape, type, Layout::kChannelsLast, random), context));
  }
}

TEST_F(CudaConvPadding, ChoicesOfThePolicyAreItsOwn) {
  Random random("cuda conv padding choices");
  const OpCall call = MakeConv(Conv3x3(), DataType::kMLFloat16, Layout::kChannelsLast, random);
  ASSERT_TRUE(call.Run(Context(OnGpu())).ok());
  const std::size_t before = CachedChoices().size();
  ASSERT_TRUE(call.Run(Context(Exactly(SearchMode::kHeuristic))).ok());
  EXPECT_EQ(CachedChoices().size(), before + 1);
}

/// Kernels on tensor cores fill their tiles with zeros: ours are tried first, and told of.
TEST_F(CudaConvPadding, CandidatesThatMultiplyPaddingAreToldSo) {
  Random random("cuda conv padding told");
  std::vector<std::string> reasons;
  ContextOptions options = Exactly(SearchMode::kBenchmark);
  options.on_search_progress = [&](const SearchProgress& progress) {
    if (progress.rejection.find("multiplies padding") != std::string::npos) {
      reasons.push_back(progress.candidate);
    }
  };
  const OpCall call =
      MakeConvGrad(ConvGrouped(), DataType::kMLFloat16, Layout::kChannelsLast, random);
  const Status status = call.Run(Context(options));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(reasons.empty());
}

}  // namespace
}  // namespace gradsmith::cuda
