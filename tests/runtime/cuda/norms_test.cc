#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "runtime/cuda/norm_calls.h"

/// What every norm makes of numbers that hurt.
namespace gradsmith::cuda {
namespace {

using CudaNorms = CudaNormTest;

/// Deviations of up to two units beside a large mean, in rows of kLength, each second of which is a
/// constant.
struct LargeMean {
  static constexpr std::int64_t kLength = 1000;

  DataType type;
  double mean;
  double unit;

  [[nodiscard]] static bool IsConstant(std::size_t element) { return element / kLength % 2 == 1; }

  /// Gives a forward operator this for X; what it adds is 0.
  void Fill(const OpCall& call) const {
    std::size_t next = 0;
    call.inputs[0]->Fill([&] {
      const std::size_t i = next++;
      return IsConstant(i) ? 0.1 : mean + unit * static_cast<double>(i % 5);
    });
    const std::size_t factor = call.op.starts_with("Skip") ? 2 : 1;
    for (std::size_t input = 1; input < call.inputs.size(); ++input) {
      if (call.inputs[input] != nullptr && input != factor) {
        call.inputs[input]->Fill([] { return 0.0; });
      }
    }
  }
};

TEST_F(CudaNorms, LargeMeansAndConstants) {
  constexpr std::int64_t kLength = LargeMean::kLength;
  // Half has each eighth number there.
  for (const LargeMean& large : {LargeMean{kFloat, 1048576, 1}, LargeMean{kHalf, 10000, 8}}) {
    const Types types = {large.type, large.type, kFloat};
    const Sizes dims = {2, kLength};
    const Sizes many = {large.type == kFloat ? RowsByColumns(kLength, types) : 4, kLength};
    for (const OpCall& call :
         {MakeForward(dims, types), MakeForward(many, types), MakeSkip(dims, large.type),
          MakeSkip(many, large.type), MakeOfChannels("MeanVarianceNormalization", dims, large.type),
          MakeOfChannels("InstanceNormalization", dims, large.type),
          MakeOfChannels("GroupNormalization", dims, large.type)}) {
      SCOPED_TRACE(call.Describe());
      large.Fill(call);
      RunRepeatedly(call, large.type == kFloat ? 4e-6 : 0);
      const std::vector<double> y = call.outputs[0]->GpuValues();
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i] == 0, LargeMean::IsConstant(i) || i % 5 == 2) << i;
      }
      const std::vector<double> means = call.outputs[1]->GpuValues();
      EXPECT_EQ(means[0], large.mean + 2 * large.unit);
      EXPECT_EQ(means[1], call.inputs[0]->HostValues()[kLength]);
    }
  }
}

/// What is no number stays in its row and in its columns, and infinity gives none.
TEST_F(CudaNorms, WhereElementsAreNotFinite) {
  constexpr std::int64_t kLength = 2048;
  const Types types = {kFloat, kFloat, kFloat};
  const Sizes many = {RowsByColumns(kLength, types), kLength};
  const Sizes dims = {6, kLength};
  const Context context(OnGpu());
  for (const OpCall& call :
       {MakeForward(dims, types), MakeSkip(dims, kFloat),
        MakeOfChannels("MeanVarianceNormalization", dims, kFloat),
        MakeOfChannels("InstanceNormalization", dims, kFloat),
        MakeOfChannels("GroupNormalization", dims, kFloat), MakeGradient(many, types),
        MakeSkipGradient(many, kFloat),
        MakeOfChannels("MeanVarianceNormalizationGrad", dims, kFloat),
        MakeOfChannels("InstanceNormalizationGrad", dims, kFloat),
        MakeOfChannels("GroupNormalizationGrad", dims, kFloat)}) {
    SCOPED_TRACE(call.Describe());
    const auto elements = static_cast<std::int64_t>(call.outputs[0]->HostValues().size());
    const std::int64_t last = (elements / kLength) - 1;
    call.inputs[0]->SetOnGpu((3 * kLength) + 5, std::numeric_limits<double>::quiet_NaN());
    call.inputs[0]->SetOnGpu((last * kLength) + 2047, std::numeric_limits<double>::infinity());
    call.ResetOutputs();
    ASSERT_TRUE(call.Run(context).ok());
    ASSERT_TRUE(Synchronize(context).ok());
    const std::vector<double> made = call.outputs[0]->GpuValues();
    for (std::int64_t row = 0; row <= last; ++row) {
      const double* const begin = made.data() + (row * kLength);
      const auto finite =
          std::count_if(begin, begin + kLength, [](double one) { return std::isfinite(one); });
      ASSERT_EQ(finite, row == 3 || row == last ? 0 : kLength) << row;
    }
    const bool is_gradient = call.op.ends_with("Grad");
    const bool sums_columns = is_gradient && call.name == "rows";
    for (std::size_t output = 1; is_gradient && output < call.outputs.size(); ++output) {
      // A sum is of one column, or of one row: this says which sums have the bad numbers.
      const std::size_t no_number = sums_columns ? 5 : 3;
      const std::size_t infinite = sums_columns ? 2047 : static_cast<std::size_t>(last);
      const std::vector<double> sums = call.outputs[output]->GpuValues();
      if (call.op.starts_with("Skip") && output == 3) {  // all of a row's dX are terms of dBias
        EXPECT_TRUE(std::ranges::all_of(sums, [](double one) { return std::isnan(one); }));
        continue;
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        ASSERT_EQ(std::isfinite(sums[i]), i != no_number && i != infinite) << i;
      }
      EXPECT_TRUE(std::isnan(sums[no_number]));
      EXPECT_TRUE(std::isinf(sums[infinite]));
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
