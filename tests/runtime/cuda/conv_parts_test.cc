#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "conv/cuda/parts.h"
#include "conv/cuda/search_space.h"
#include "core/selection.h"
#include "cuda/driver.h"
#include "runtime/cuda/primitive_call.h"

/// Batches in parts, for want of workspace or of bits.
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
      // Of half a filter's gradient is added up in float.
      task.problem.type = DataType::kMLFloat16;
      EXPECT_EQ(PartOf(task, 4, true).accumulate, accumulate && !is_filter);
      EXPECT_EQ(PartOf(task, 4, false).accumulate, accumulate && !is_filter);
    }
  }
  // Two images of 30 floats are 240 bytes, of halves 120.
  EXPECT_EQ(PartOf(BatchOf(8), 4, true).alignment, (std::array{16, 16, 16}));
  EXPECT_EQ(PartOf(BatchOf(8, DataType::kMLFloat16), 4, true).alignment, (std::array{2, 16, 16}));
}

/// A 3x3 convolution of square images, channels last, with as many channels of y as of x.
Task Images(
    std::int64_t batch,
    std::int64_t channels,
    std::int64_t side,
    DataType type = DataType::kMLFloat16) {
  Task task;
  Problem& problem = task.problem;
  problem.type = type;
  problem.batch = batch;
  problem.x_channels = problem.y_channels = channels;
  problem.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    problem.axes.at(i) = {side, 3, side, 1, 1, 1, 1};
  }
  for (const Operand operand : {kX, kW, kY}) {
    StridesOf(problem, operand) = ChannelsLastStrides(DimsOf(problem, operand));
  }
  return task;
}

TEST(Parts, AreAddedUpInFloatForFiltersIn16Bits) {
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const Primitive primitive :
         {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
      Task task = Images(8, 16, 4, type);
      task.primitive = primitive;
      // A part's gradient, of 16 by 16 by 9, and the sum.
      const bool is_summed = primitive == Primitive::kBackwardFilter && type != DataType::kFloat;
      EXPECT_EQ(PartSumsBytes(task), is_summed ? 2304U * (2 + 4) : 0U);
    }
  }
}

TEST(Parts, HaveNoMoreElementsThan32BitsCount) {
  EXPECT_EQ(PartsToCount(Images(256, 64, 256)), 1);   // 2^30
  EXPECT_EQ(PartsToCount(Images(511, 64, 256)), 1);   // 2^31 less an image
  EXPECT_EQ(PartsToCount(Images(512, 64, 256)), 2);   // 2^31, one more than an int holds
  EXPECT_EQ(PartsToCount(Images(1024, 64, 256)), 4);  // 2^32: halves are too large
  EXPECT_EQ(PartsToCount(Images(1024, 320, 64)), 1);
  EXPECT_EQ(PartsToCount(Images(8192, 320, 64)), 8);
}

TEST(Parts, OfAnyBatchAreAlike) {
  EXPECT_EQ(PartsToCount(Images(1022, 64, 256)), 2);
  EXPECT_EQ(PartsToCount(Images(1023, 64, 256)), 3);
  EXPECT_EQ(PartsToCount(Images(1021, 64, 256)), 1021);  // a prime
  // Too many parts of one image each, and an image that is too large.
  EXPECT_EQ(PartsToCount(Images(1031, 64, 256)), 1);
  EXPECT_EQ(PartsToCount(Images(1, 64, 8192)), 1);
  EXPECT_EQ(PartsToCount(Images(6, 64, 8192)), 1);
}

TEST(Parts, AreCountedByTheLargestTensorAndByItsStrides) {
  Task task = Images(512, 32, 256);
  EXPECT_EQ(PartsToCount(task), 1);
  task.problem.y_channels = 64;
  task.problem.y_strides = ChannelsLastStrides(DimsOf(task.problem, kY));
  EXPECT_EQ(PartsToCount(task), 2);
  // Every other image of a tensor.
  task = Images(512, 32, 256);
  task.problem.x_strides[0] *= 2;
  EXPECT_EQ(PartsToCount(task), 1);  // the last one's end is where the next would begin
  task.problem.x_strides[0] *= 2;
  EXPECT_EQ(PartsToCount(task), 2);
  // An image that is repeated: its dense copy is as large as any.
  task = Images(512, 64, 256);
  task.problem.x_strides[0] = 0;
  task.problem.y_strides[0] = 0;
  EXPECT_EQ(PartsToCount(task), 2);
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

/// Of values with a mean, whose sums would drift if each part were rounded and added to the last.
TEST_F(CudaConvParts, SumsOfManyPartsAreRoundedAsThoseOfOne) {
  Random random("cuda conv parts of half");
  const cuda::ConvShape shape = {.name = "1x1", .x = {512, 64, 8, 8}, .w = {64, 64, 1, 1}};
  constexpr double kGradient = 239.0 / 512;  // of 8 bits: so are sums of powers of two of it
  constexpr double kSum = kGradient * 512 * 64;
  constexpr double kBefore = 64;
  constexpr double kUnwritten = -1000;
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const unsigned limit : {19U, 20U}) {
      ContextOptions options = OnGpu();
      options.workspace_limit = std::size_t{1} << limit;
      const Context context(options);
      const PrimitiveCall call =
          MakeCall(ConvPrimitive::kBackwardFilter, shape, type, Layout::kContiguous, random);
      call.op.inputs[0]->Fill([] { return kGradient; });
      call.op.inputs[1]->Fill([] { return 1.0; });
      for (const bool accumulate : {false, true}) {
        Result<ConvAlgorithms> algorithms = call.Prepare(context, accumulate);
        ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
        int ran = 0;
        for (const std::string& name : InParts(*algorithms)) {
          const Result<std::size_t> workspace = algorithms->WorkspaceOf(name);
          if (!workspace.ok() || *workspace > options.workspace_limit) {
            continue;
          }
          SCOPED_TRACE(name);
          ++ran;
          call.Result()->Fill([&] { return accumulate ? kBefore : kUnwritten; });
          ASSERT_TRUE(algorithms->Run({name}).ok());
          ASSERT_TRUE(Synchronize(context).ok());
          for (const double value : call.Result()->GpuValues()) {
            // Each part's sum is exact, and the whole is rounded once.
            ASSERT_NEAR(value, kSum + (accumulate ? kBefore : 0), kSum / 256);
          }
        }
        EXPECT_GT(ran, 0);
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

/// What is too large for 32 bits is listed in parts alone, but for what always does. Such tensors
/// are not in memory: nothing runs.
TEST_F(CudaConvParts, OfTooManyElementsAreListedAlone) {
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    for (const Primitive primitive :
         {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
      Task task = Images(1024, 64, 256, type);
      task.primitive = primitive;
      SCOPED_TRACE(Describe(task));
      internal::SearchPolicy policy;
      policy.workspace_limit = std::numeric_limits<std::size_t>::max();
      // Otherwise the direct one comes when none of the others has kept the promise.
      policy.allow_reduced_accuracy = true;
      ConvSearchSpace space(device(), nullptr, task, {}, policy);
      std::vector<internal::Rejection> rejections;
      std::vector<std::string> ids;
      for (int batch = 0; batch < space.batches(); ++batch) {
        EXPECT_FALSE(space.IsSlowToList(batch));
        for (const internal::Candidate& candidate : space.List(batch, &rejections)) {
          ids.push_back(candidate.id);
        }
      }
      ASSERT_FALSE(ids.empty());
      EXPECT_EQ(ids.back(), "own/direct");
      ids.pop_back();
      int ours = 0;
      for (const std::string& id : ids) {
        EXPECT_TRUE(id.starts_with("parts4 ")) << id;
        if (id.starts_with("parts4 own/tensor-cores/")) {
          ++ours;
          const Result<std::unique_ptr<internal::Plan>> plan = space.Build(id);
          EXPECT_TRUE(plan.ok()) << plan.status().message();
        }
      }
      EXPECT_GT(ours, 0);
    }
  }
}

/// The kernels that a search finds for what is too large are right, as it compares them with sums
/// in 64 bits, and none of last resort; which of the others is the quickest the clock decides.
TEST_F(CudaConvParts, OfTooManyElementsAreFoundAndRight) {
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cuda::Driver().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  if (constexpr std::size_t kNeeded = std::size_t{12} << 30U; free < kNeeded) {
    GTEST_SKIP() << "takes 12 GiB of the GPU's memory";
  }
  for (const SearchMode mode : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    for (const Primitive primitive :
         {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
      Task task = Images(512, 64, 256);
      task.primitive = primitive;
      SCOPED_TRACE(Describe(task));
      internal::SearchPolicy policy;
      policy.mode = mode;
      policy.workspace_limit = std::size_t{1} << 30U;
      policy.budget_seconds = 0.2;
      ConvSearchSpace space(device(), nullptr, task, {}, policy);  // which has tensors of its own
      const Result<internal::Selected> selected = internal::Select(space, policy);
      ASSERT_TRUE(selected.ok()) << selected.status().message();
      EXPECT_TRUE(selected->decision.id.starts_with("parts2 ")) << selected->decision.id;
      EXPECT_FALSE(selected->decision.id.ends_with("own/direct")) << selected->decision.id;
    }
  }
}

/// Kernels of operands as they are, as what is too large for 32 bits goes.
TEST_F(CudaConvParts, NeedNoCopies) {
  Random random("cuda conv parts without copies");
  const cuda::ConvShape shape = {
      .name = "3x3", .x = {6, 32, 12, 10}, .w = {64, 32, 3, 3}, .pads = {1, 1, 1, 1}};
  const Context context(OnGpu());
  for (const ConvPrimitive primitive : cuda::kPrimitives) {
    const PrimitiveCall call =
        MakeCall(primitive, shape, DataType::kFloat, Layout::kChannelsLast, random);
    SCOPED_TRACE(call.op.Describe());
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    for (const char* name : {"parts3 own/direct", "parts2 own/tensor-cores/float/64x64"}) {
      cuda::RunAndCompare(*algorithms, call, context, name);
    }
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
