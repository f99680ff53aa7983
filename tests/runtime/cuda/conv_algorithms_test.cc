#include "gradsmith/conv_algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/primitive_call.h"

namespace gradsmith::cuda {
namespace {

std::string SourceOf(const ConvAlgorithm& algorithm) {
  return algorithm.name.substr(0, algorithm.name.find('/'));
}

class CudaConvAlgorithms : public CudaTest {};

TEST_F(CudaConvAlgorithms, ListsAllSourcesAndTheirWorkspaces) {
  Random random("cuda algorithms list");
  const Context context(OnGpu());
  for (const ConvPrimitive primitive : kPrimitives) {
    const PrimitiveCall call =
        MakeCall(primitive, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    std::map<std::string, int> listed;
    std::map<std::string, int> built;
    for (const ConvAlgorithm& algorithm : *list) {
      const std::string source = SourceOf(algorithm);
      // What compiles at run time takes seconds each.
      if (++listed[source] > 12 || algorithm.runtime_compiled) {
        continue;
      }
      const Result<std::size_t> workspace = algorithms->WorkspaceOf(algorithm.name);
      if (!workspace.ok()) {
        std::cout << "[ note     ] not built: " << algorithm.name << ": "
                  << workspace.status().message() << "\n";
        continue;
      }
      ++built[source];
      EXPECT_LE(*workspace, algorithm.workspace) << algorithm.name;
      if (*workspace != algorithm.workspace) {
        std::cout << "[ note     ] " << algorithm.name << ": listed with " << algorithm.workspace
                  << " bytes, needs " << *workspace << "\n";
      }
    }
    for (const std::string source : {"graph", "legacy", "own"}) {
      EXPECT_GT(listed[source], 0) << source << ", primitive " << static_cast<int>(primitive);
      EXPECT_GT(built[source], 0) << source << ", primitive " << static_cast<int>(primitive);
    }
  }
}

TEST_F(CudaConvAlgorithms, LargestWorkspace) {
  const Context context(OnGpu());
  EXPECT_EQ(*gradsmith::LargestWorkspace(context, WorkspaceLimit::AtMost(12345)), 12345U);
  EXPECT_EQ(*gradsmith::LargestWorkspace(context, WorkspaceLimit::None()), kNoLimit);
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(Driver().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  const Result<std::size_t> largest =
      gradsmith::LargestWorkspace(context, WorkspaceLimit::OfFreeMemory());
  ASSERT_TRUE(largest.ok()) << largest.status().message();
  EXPECT_NEAR(
      static_cast<double>(*largest), 0.9 * static_cast<double>(free),
      0.05 * static_cast<double>(total));
}

TEST_F(CudaConvAlgorithms, BestKeepsModeAndLimit) {
  Random random("cuda algorithms best");
  constexpr std::size_t kLimits[] = {0, std::size_t{32} << 20U, kNoLimit};
  for (const ConvPrimitive primitive : kPrimitives) {
    for (const Layout layout : kDenseLayouts) {
      const PrimitiveCall call = MakeCall(primitive, Conv3x3(), DataType::kFloat, layout, random);
      const Context context(OnGpu(SearchMode::kHeuristic, 1));
      Result<ConvAlgorithms> algorithms = call.Prepare(context);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      for (const SearchMode mode : kAllModes) {
        for (const std::size_t limit : kLimits) {
          const std::string doing = call.op.Describe() + ", " + std::string(ToString(mode)) +
                                    ", limit " + std::to_string(limit);
          const Result<ConvAlgorithm> best = algorithms->Best(mode, WorkspaceLimit::AtMost(limit));
          ASSERT_TRUE(best.ok()) << doing << ": " << best.status().message();
          EXPECT_LE(best->workspace, limit) << doing << ": " << best->name;
          EXPECT_FALSE(best->tf32 || best->reduced_precision) << doing << ": " << best->name;
          EXPECT_TRUE(best->deterministic || mode != SearchMode::kDefault) << doing;
          EXPECT_EQ(best->milliseconds > 0, mode == SearchMode::kBenchmark)
              << doing << ": " << best->name << ", " << best->milliseconds;
          EXPECT_LE(*algorithms->WorkspaceOf(best->name), limit) << doing << ": " << best->name;
          RunAndCompare(*algorithms, call, context, best->name);
        }
      }
    }
  }
}

TEST_F(CudaConvAlgorithms, RunFallsBack) {
  Random random("cuda algorithms fall back");
  for (const ConvPrimitive primitive : kPrimitives) {
    const PrimitiveCall call =
        MakeCall(primitive, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
    ContextOptions options = OnGpu();
    options.workspace_limit = 0;
    const Context context(options);
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok());
    const auto greedy =
        std::find_if(list->begin(), list->end(), [&](const ConvAlgorithm& algorithm) {
          if (algorithm.runtime_compiled || algorithm.workspace == 0) {
            return false;
          }
          const Result<std::size_t> workspace = algorithms->WorkspaceOf(algorithm.name);
          return workspace.ok() && *workspace > 0;
        });
    ASSERT_NE(greedy, list->end()) << "no algorithm needs workspace";
    call.op.ResetOutputs();
    std::vector<ConvAttempt> attempts;
    const Result<std::string> ran =
        algorithms->Run({"no such thing", greedy->name, "own/direct"}, &attempts);
    ASSERT_TRUE(ran.ok()) << ran.status().message();
    EXPECT_EQ(*ran, "own/direct");
    ASSERT_EQ(attempts.size(), 2U);
    EXPECT_EQ(attempts[0].name, "no such thing");
    EXPECT_EQ(attempts[0].status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(attempts[0].status.message().find("'no such thing'"), std::string::npos)
        << attempts[0].status.message();
    EXPECT_EQ(attempts[1].name, greedy->name);
    EXPECT_EQ(attempts[1].status.code(), StatusCode::kOutOfMemory);
    EXPECT_NE(attempts[1].status.message().find("bytes of workspace"), std::string::npos)
        << attempts[1].status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.op.ExpectResults("after falling back");

    const Result<std::string> none = algorithms->Run({"no such thing", greedy->name});
    EXPECT_EQ(none.status().code(), StatusCode::kUnsupported);
    for (const std::string& part :
         {std::string("none of 2 algorithms ran"), std::string("no such thing"), greedy->name}) {
      EXPECT_NE(none.status().message().find(part), std::string::npos) << none.status().message();
    }
  }
}

TEST_F(CudaConvAlgorithms, ResultsAreTheOps) {
  Random random("cuda algorithms op");
  ContextOptions options = OnGpu(SearchMode::kDefault);
  options.deterministic = true;
  const Context context(options);
  for (const DataType type : kAllTypes) {
    for (const ConvPrimitive primitive : kPrimitives) {
      for (const ConvShape& shape : {Conv3x3(), ConvGrouped()}) {
        ASSERT_TRUE(ClearCache().ok());
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        const Status status = call.op.Run(context);
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(Synchronize(context).ok());
        const std::vector<std::byte> by_op = call.Result()->GpuBytes();
        ASSERT_EQ(CachedChoices().size(), 1U) << RecentChoices(8);
        const std::string name = CachedChoices().front().kernel;
        Result<ConvAlgorithms> algorithms = call.Prepare(context);
        ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
        RunAndCompare(*algorithms, call, context, name);
        EXPECT_TRUE(call.Result()->GpuBytes() == by_op) << call.op.Describe() << ", " << name;
      }
    }
  }
}

TEST_F(CudaConvAlgorithms, RefusesWhatDoesNotFit) {
  Random random("cuda algorithms errors");
  const Context context(OnGpu());
  PrimitiveCall call =
      MakeCall(ConvPrimitive::kForward, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  call.geometry.pads = {0, 0, 0, 0};
  Status status = call.Prepare(context).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("[2, 24, 12, 12]"), std::string::npos) << status.message();
  status = call.Prepare(Context()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("x is on another device"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace gradsmith::cuda
