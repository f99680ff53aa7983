#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/candidate_name.h"
#include "runtime/cuda/primitive_call.h"

/// Depthwise convolutions with several filters for each channel of x, by copies in which each
/// channel of x is as often as there are filters for it, and gradients of x by filters that are
/// stacked to one of an axis more.
namespace gradsmith::cuda {
namespace {

constexpr std::array<std::string_view, 3> kForms = {"repeated", "repeated-nchw", "stacked"};

/// x (N, C, D...), with filters of size K, `times` of them for each channel.
ConvShape WithFilters(
    const std::string& name,
    const Sizes& x,
    std::int64_t times,
    const Sizes& kernel,
    const IntList& pads,
    const IntList& strides = {}) {
  Sizes w = {x[1] * times, 1};
  w.insert(w.end(), kernel.begin(), kernel.end());
  return {.name = name, .x = x, .w = w, .strides = strides, .pads = pads, .group = x[1]};
}

std::vector<ConvShape> Shapes() {
  return {
      WithFilters("two 3x3", {2, 8, 9, 10}, 2, {3, 3}, {1, 1, 1, 1}),
      WithFilters("three 3x3, odd", {3, 5, 7, 11}, 3, {3, 3}, {1, 1, 1, 1}),
      WithFilters("two 7x7", {1, 16, 14, 13}, 2, {7, 7}, {3, 3, 3, 3}),
      WithFilters("two 13x13", {2, 8, 14, 16}, 2, {13, 13}, {6, 6, 6, 6}),
      WithFilters("four 5x5 by 2", {2, 6, 15, 17}, 4, {5, 5}, {2, 2, 2, 2}, {2, 2}),
      WithFilters("2x2, uneven pads", {2, 4, 8, 9}, 2, {2, 2}, {0, 1, 1, 0}),
      WithFilters("two sequences", {3, 12, 50}, 2, {15}, {7, 7}),
      WithFilters("causal sequences", {2, 3, 41}, 5, {4}, {3, 0}),
      WithFilters("two volumes", {2, 4, 5, 6, 7}, 2, {3, 3, 3}, {1, 1, 1, 1, 1, 1}),
  };
}

bool IsOursInForms(std::string_view name) {
  const std::string form = internal::FormOf(name);
  return std::ranges::find(kForms, form) != kForms.end() &&
         name.substr(form.size()).starts_with(" own/depthwise");
}

class CudaConvRepeated : public CudaTest {
 protected:
  /// Our own kernels in these forms that are listed for a call.
  void ListOurs(const PrimitiveCall& call, std::vector<std::string>* names) const {
    Result<ConvAlgorithms> algorithms = call.Prepare(context_);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    for (const ConvAlgorithm& algorithm : *list) {
      if (IsOursInForms(algorithm.name)) {
        names->push_back(algorithm.name);
      }
    }
    // Volumes have no axis to spare.
    const bool is_volume_in_half = SizeOf(call.x->type()) == 2 && call.x->GpuRef().rank() == 5;
    EXPECT_EQ(names->empty(), is_volume_in_half && call.primitive == ConvPrimitive::kBackwardData);
  }

  /// Integers to the last bit, added to what is there as well; random numbers within the type's
  /// tolerance, twice with the same bits. Counts what is run.
  void Check(const PrimitiveCall& call) {
    SCOPED_TRACE(call.op.Describe());
    std::vector<std::string> names;
    ASSERT_NO_FATAL_FAILURE(ListOurs(call, &names));
    for (const std::string& name : names) {
      ++runs_[name];
      const bool in_tf32 = call.Result()->type() == DataType::kFloat && name.ends_with("-bands");
      const double tolerance = in_tf32 ? 1e-3 : 0;
      RunOnIntegers(call, context_, name, random_);
      RunAddingIntegers(call, context_, name, 1, random_);
      call.op.FillInputs(random_);
      RunAndCompare(call, context_, name, tolerance);
      const std::vector<std::byte> first = call.Result()->GpuBytes();
      RunAndCompare(call, context_, name, tolerance);
      EXPECT_TRUE(call.Result()->GpuBytes() == first) << name << ": the second run has other bits";
    }
  }

  Random random_{"cuda depthwise with several filters"};
  Context context_{WithTf32()};
  std::map<std::string, int> runs_;
};

TEST_F(CudaConvRepeated, ComputesEveryPrimitive) {
  for (const ConvShape& shape : Shapes()) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
        for (const ConvPrimitive primitive : kPrimitives) {
          ASSERT_NO_FATAL_FAILURE(Check(MakeCall(primitive, shape, type, layout, random_)));
        }
      }
    }
  }
  for (const char* name :
       {"repeated own/depthwise", "repeated own/depthwise-tiles", "repeated own/depthwise-lines",
        "repeated own/depthwise-bands", "repeated-nchw own/depthwise",
        "repeated-nchw own/depthwise-lines", "repeated-nchw own/depthwise-bands",
        "stacked own/depthwise-lines", "stacked own/depthwise-bands"}) {
    EXPECT_GT(runs_[name], 0) << name << " was never run";
  }
}

/// What a user calls, which chooses among all.
TEST_F(CudaConvRepeated, IsChosenAmongOthers) {
  const ConvShape shape = WithFilters("two 7x7", {2, 32, 19, 19}, 2, {7, 7}, {3, 3, 3, 3});
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      const OpCall call = MakeConvGrad(shape, type, layout, random_);
      const Context context(OnGpu());
      const std::vector<std::vector<double>> expected = call.Expected();
      ASSERT_TRUE(call.Run(context).ok());
      ASSERT_TRUE(Synchronize(context).ok());
      call.ExpectResults("chosen", expected);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
