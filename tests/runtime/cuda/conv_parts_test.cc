#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "conv/cuda/parts.h"
#include "runtime/cuda/primitive_call.h"

/// Batches in parts, for want of workspace.
namespace gradsmith::conv {
namespace {

using cuda::CudaTest;
using cuda::MakeCall;
using cuda::OnGpu;
using cuda::PrimitiveCall;
using cuda::Random;
using support::Layout;

Task BatchOf(std::int64_t batch, DataType type = DataType::kFloat) {
  Task task;
  task.problem.type = type;
  task.problem.batch = batch;
  task.problem.x_strides = {30, 10, 1};
  task.problem.w_strides = {30, 10, 1};
  task.problem.y_strides = {64, 16, 1};
  return task;
}

TEST(Parts, AreAsFewAsThereIsRoomFor) {
  EXPECT_EQ(PartsWithin(BatchOf(8), 100, 100), 1);
  EXPECT_EQ(PartsWithin(BatchOf(8), 101, 100), 2);
  EXPECT_EQ(PartsWithin(BatchOf(8), 400, 100), 4);
  EXPECT_EQ(PartsWithin(BatchOf(8), 800, 100), 8);
  // No part is smaller than an image, and all are alike.
  EXPECT_EQ(PartsWithin(BatchOf(8), 1700, 100), 1);
  EXPECT_EQ(PartsWithin(BatchOf(6), 200, 100), 2);
  EXPECT_EQ(PartsWithin(BatchOf(6), 400, 100), 1);
  EXPECT_EQ(PartsWithin(BatchOf(1), 200, 100), 1);
  EXPECT_EQ(PartsWithin(BatchOf(8), 1, 0), 1);
}

TEST(Parts, AddToTheFilterAndAreAlignedByTheirImages) {
  for (const Primitive primitive :
       {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    for (const bool accumulate : {false, true}) {
      Task task = BatchOf(8);
      task.primitive = primitive;
      task.accumulate = accumulate;
      const bool is_filter = primitive == Primitive::kBackwardFilter;
      EXPECT_EQ(PartOf(task, 4, true).accumulate, accumulate);
      EXPECT_EQ(PartOf(task, 4, false).accumulate, accumulate || is_filter);
      EXPECT_EQ(PartOf(task, 4, false).problem.batch, 2);
    }
  }
  // Two images of 30 floats are 240 bytes, of halves 120.
  EXPECT_EQ(PartOf(BatchOf(8), 4, true).alignment, (std::array{16, 16, 16}));
  EXPECT_EQ(PartOf(BatchOf(8, DataType::kMLFloat16), 4, true).alignment, (std::array{2, 16, 16}));
}

class CudaConvParts : public CudaTest {
 protected:
  static std::vector<std::string> InParts(ConvAlgorithms& algorithms) {
    const Result<std::vector<ConvAlgorithm>> list = algorithms.List();
    EXPECT_TRUE(list.ok()) << list.status().message();
    std::vector<std::string> names;
    for (const ConvAlgorithm& algorithm : *list) {
      if (algorithm.name.starts_with("parts")) {
        names.push_back(algorithm.name);
      }
    }
    return names;
  }
};

/// Copies of the tensors in channels last, which our kernels on tensor cores ask for, do not fit.
TEST_F(CudaConvParts, ComputeWhatTheWholeBatchDoes) {
  Random random("cuda conv parts");
  const cuda::ConvShape shape = {
      .name = "3x3", .x = {8, 32, 12, 10}, .w = {64, 32, 3, 3}, .pads = {1, 1, 1, 1}};
  for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
    ContextOptions options = OnGpu();
    // Less than what copies of both tensors take, which is some 360 KB in float.
    options.workspace_limit = std::size_t{1} << (type == DataType::kFloat ? 18U : 19U);
    const Context context(options);
    for (const ConvPrimitive primitive : cuda::kPrimitives) {
      const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kContiguous, random);
      SCOPED_TRACE(call.op.Describe());
      for (const bool accumulate : {false, true}) {
        Result<ConvAlgorithms> algorithms = call.Prepare(context, accumulate);
        ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
        const std::vector<std::string> names = InParts(*algorithms);
        ASSERT_FALSE(names.empty());
        EXPECT_TRUE(std::ranges::any_of(names, [](const std::string& name) {
          return name.starts_with("parts4 nhwc own/");
        })) << names.front();
        for (const std::string& name : names) {
          const Result<std::size_t> workspace = algorithms->WorkspaceOf(name);
          if (!workspace.ok() || *workspace > options.workspace_limit || accumulate) {
            continue;
          }
          cuda::RunAndCompare(*algorithms, call, context, name);
        }
      }
    }
  }
}

/// What is added to: the first part adds to what was there, and the others to that.
TEST_F(CudaConvParts, AddToWhatIsThere) {
  Random random("cuda conv parts accumulate");
  const cuda::ConvShape shape = {
      .name = "3x3", .x = {8, 32, 12, 10}, .w = {64, 32, 3, 3}, .pads = {1, 1, 1, 1}};
  ContextOptions options = OnGpu();
  options.workspace_limit = std::size_t{1} << 18U;
  const Context context(options);
  for (const ConvPrimitive primitive :
       {ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter}) {
    const PrimitiveCall call =
        MakeCall(primitive, shape, DataType::kFloat, Layout::kContiguous, random);
    SCOPED_TRACE(call.op.Describe());
    call.op.FillInputsWithIntegers(random, -1, 1);
    const std::size_t output = primitive == ConvPrimitive::kBackwardFilter ? 1 : 0;
    const std::vector<double> gradient = call.op.Expected()[output];
    Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    int ran = 0;
    for (const std::string& name : InParts(*algorithms)) {
      const Result<std::size_t> workspace = algorithms->WorkspaceOf(name);
      if (!workspace.ok() || *workspace > options.workspace_limit) {
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(
          cuda::RunAndCompareAdding(*algorithms, call, context, name, gradient, random));
      ++ran;
    }
    EXPECT_GT(ran, 0);
  }
}

TEST_F(CudaConvParts, OtherNamesAreRefused) {
  Random random("cuda conv parts names");
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kForward, cuda::Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  const Context context(OnGpu());
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  for (const char* name :
       {"parts", "parts2", "parts0 own/direct", "parts1 own/direct", "parts-2 own/direct",
        "parts64 own/direct", "parts2 parts2 own/direct", "parts2x own/direct"}) {
    EXPECT_FALSE(algorithms->Run({name}).ok()) << name;
  }
  // No limit, no parts.
  EXPECT_TRUE(InParts(*algorithms).empty());
}

}  // namespace
}  // namespace gradsmith::conv
