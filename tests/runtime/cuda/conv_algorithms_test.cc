#include "gradsmith/conv_algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/graph_capture.h"
#include "runtime/cuda/primitive_call.h"

namespace gradsmith::cuda {
namespace {

using support::DeviceStream;

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
        ASSERT_NO_FATAL_FAILURE(RunAndCompare(call, context, name));
        EXPECT_TRUE(call.Result()->GpuBytes() == by_op) << call.op.Describe() << ", " << name;
      }
    }
  }
}

/// Runs on what the result holds already; all of these add in float or wider.
TEST_F(CudaConvAlgorithms, AddsToWhatIsThere) {
  Random random("cuda algorithms accumulate");
  const Context context(OnGpu());
  for (const ConvPrimitive primitive : kPrimitives) {
    for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
      const PrimitiveCall call = MakeCall(primitive, Conv3x3(), type, Layout::kContiguous, random);
      Result<ConvAlgorithms> replacing = call.Prepare(context);
      ASSERT_TRUE(replacing.ok()) << replacing.status().message();
      Result<ConvAlgorithms> adding = call.Prepare(context, true);
      ASSERT_TRUE(adding.ok()) << adding.status().message();
      const Result<ConvAlgorithm> best =
          adding->Best(SearchMode::kHeuristic, WorkspaceLimit::None());
      ASSERT_TRUE(best.ok()) << best.status().message();
      for (const std::string& name : {best->name, std::string("own/direct")}) {
        const std::string doing = call.op.Describe() + ", " + name;
        ASSERT_TRUE(replacing->Run({"own/direct"}).ok()) << doing;
        ASSERT_TRUE(Synchronize(context).ok());
        std::vector<double> twice = call.Result()->GpuValues();
        std::ranges::for_each(twice, [](double& value) { value *= 2; });
        ASSERT_TRUE(adding->Run({name}).ok()) << doing;
        ASSERT_TRUE(Synchronize(context).ok());
        EXPECT_LE(RelativeError(call.Result()->GpuValues(), twice), Tolerance(type)) << doing;
      }
    }
  }
}

TEST_F(CudaConvAlgorithms, RunsOnTensorsElsewhere) {
  Random random("cuda algorithms addresses");
  const Context context(OnGpu());
  for (const ConvPrimitive primitive : kPrimitives) {
    for (const DataType type : kAllTypes) {
      const auto make = [&] {
        return MakeCall(primitive, Conv3x3(), type, Layout::kChannelsLast, random);
      };
      const PrimitiveCall prepared = make();
      Result<ConvAlgorithms> algorithms = prepared.Prepare(context);
      ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
      const Result<ConvAlgorithm> best =
          algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::None());
      ASSERT_TRUE(best.ok()) << best.status().message();
      const std::vector<std::byte> before = prepared.Result()->GpuBytes();
      for (int batch = 0; batch < 3; ++batch) {
        const PrimitiveCall call = make();
        const std::string doing = call.op.Describe() + ", " + best->name;
        const Result<std::string> ran = algorithms->Run({best->name}, call.Addresses());
        ASSERT_TRUE(ran.ok()) << doing << ": " << ran.status().message();
        ASSERT_TRUE(Synchronize(context).ok());
        call.op.ExpectResults(doing);
      }
      EXPECT_TRUE(prepared.Result()->GpuBytes() == before) << "the prepared tensors were written";
    }
  }
}

TEST_F(CudaConvAlgorithms, RefusesAddressesThatDoNotServe) {
  Random random("cuda algorithms bad addresses");
  const Context context(OnGpu());
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  const auto error = [&](ConvAddresses addresses) {
    const Status status = algorithms->Run({"own/direct"}, addresses).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  const auto moved = [](void* address, std::size_t bytes) {
    return static_cast<void*>(static_cast<std::byte*>(address) + bytes);
  };
  ConvAddresses addresses = call.Addresses();
  addresses.x = moved(addresses.x, 4);
  EXPECT_EQ(
      error(addresses),
      "x is aligned to 4 bytes; expected 16, as when the algorithms were prepared");
  addresses.x = moved(addresses.x, 1);
  EXPECT_NE(error(addresses).find("x has data 1 byte past a multiple of 4"), std::string::npos);
  addresses = call.Addresses();
  addresses.w = addresses.y;
  EXPECT_NE(error(addresses).find("output w overlaps input y in memory"), std::string::npos);
  addresses = call.Addresses();
  addresses.y = nullptr;
  EXPECT_NE(error(addresses).find("y has null data"), std::string::npos);
}

TEST_F(CudaConvAlgorithms, SeeksNothingWhileTheStreamIsCaptured) {
  Random random("cuda algorithms capture");
  const DeviceStream stream(device());
  ContextOptions options = OnGpu();
  options.stream = stream.get();
  const Context context(options);
  const PrimitiveCall call =
      MakeCall(ConvPrimitive::kForward, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  CudaGraph graph(stream.get());
  graph.Begin();
  const Status refused =
      algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::OfFreeMemory()).status();
  const CUstreamCaptureStatus state = CaptureStatus(stream.get());
  const Result<std::string> ran = algorithms->Run({"own/direct"});
  const Status ended = graph.End();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused.message();
  EXPECT_NE(refused.message().find("is captured into a CUDA graph"), std::string::npos)
      << refused.message();
  EXPECT_EQ(state, CU_STREAM_CAPTURE_STATUS_ACTIVE) << "the refusal has spoilt the capture";
  EXPECT_TRUE(ran.ok()) << ran.status().message();
  ASSERT_TRUE(ended.ok()) << ended.message();
  call.op.ResetOutputs();
  ASSERT_TRUE(graph.Launch().ok());
  ASSERT_TRUE(Synchronize(context).ok());
  call.op.ExpectResults("replayed");
}

TEST_F(CudaConvAlgorithms, LeavesTheCaptureOfAnotherStreamAlone) {
  Random random("cuda algorithms other capture");
  const DeviceStream own(device());
  ContextOptions options = OnGpu();
  options.stream = own.get();
  const Context searching(options);
  const PrimitiveCall call =
      MakeCall(ConvPrimitive::kForward, Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  const DeviceStream other(device());
  CudaGraph graph(other.get());
  graph.Begin();
  Result<ConvAlgorithms> algorithms = call.Prepare(searching);
  const Status best =
      algorithms.ok()
          ? algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::OfFreeMemory()).status()
          : algorithms.status();
  const CUstreamCaptureStatus state = CaptureStatus(other.get());
  const Status ended = graph.End();
  EXPECT_TRUE(best.ok()) << best.message();
  EXPECT_EQ(state, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_TRUE(ended.ok()) << ended.message();
}

/// cuDNN's legacy list takes seconds for groups of half, and is not needed for a choice that the
/// heuristics made first.
TEST_F(CudaConvAlgorithms, TheQuickBestDoesNotListAll) {
  Random random("cuda algorithms quick best");
  const Context context(OnGpu());
  const ConvShape shape = {
      .name = "groups",
      .x = {8, 256, 28, 28},
      .w = {256, 8, 3, 3},
      .pads = {1, 1, 1, 1},
      .group = 32};
  const PrimitiveCall call = MakeCall(
      ConvPrimitive::kBackwardFilter, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  const auto seconds = [](const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Result<ConvAlgorithm> best = ConvAlgorithm();
  const auto choose = [&] {
    best = algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::None());
  };
  choose();  // loads libraries and code
  ASSERT_TRUE(best.ok()) << best.status().message();
  if (SourceOf(*best) == "legacy") {
    GTEST_SKIP() << "the legacy list was needed: " << best->name;
  }
  const double choosing = seconds(choose);
  const double listing = seconds([&] { EXPECT_TRUE(algorithms->List().ok()); });
  std::cout << "[ note     ] choosing took " << choosing << " s, listing " << listing << " s\n";
  EXPECT_LT(choosing, 1);
}

/// Winograd in strict float is not exact enough for a quick choice, whatever the context's mode.
TEST_F(CudaConvAlgorithms, ExactnessGoesByTheModeThatIsAsked) {
  Random random("cuda algorithms exactness");
  const ConvShape shape = {
      .name = "winograd", .x = {16, 64, 56, 56}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}};
  std::map<SearchMode, std::string> chosen;
  for (const SearchMode of_context : {SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kForward, shape, DataType::kFloat, Layout::kContiguous, random);
    const Context context(OnGpu(of_context));
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<ConvAlgorithm> best =
        algorithms->Best(SearchMode::kDefault, WorkspaceLimit::None());
    ASSERT_TRUE(best.ok()) << best.status().message();
    chosen[of_context] = best->name;
    RunAndCompare(*algorithms, call, context, best->name);
  }
  EXPECT_EQ(chosen[SearchMode::kHeuristic], chosen[SearchMode::kBenchmark]);
}

TEST_F(CudaConvAlgorithms, TheBestLeavesNoMemoryTaken) {
  Random random("cuda algorithms memory");
  const ConvShape shape = {
      .name = "large", .x = {64, 64, 112, 112}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}};
  const PrimitiveCall call =
      MakeCall(ConvPrimitive::kForward, shape, DataType::kMLFloat16, Layout::kChannelsLast, random);
  const Context context(OnGpu());
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  const auto choose = [&] {
    return algorithms->Best(SearchMode::kHeuristic, WorkspaceLimit::AtMost(64U << 20U)).status();
  };
  ASSERT_TRUE(choose().ok());  // loads code, which stays
  const auto free_bytes = [] {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(Driver().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return static_cast<double>(free);
  };
  const double before = free_bytes();
  ASSERT_TRUE(choose().ok());
  // The copies of x and y take 205 MB.
  EXPECT_NEAR(free_bytes(), before, 32e6);
  const Result<std::size_t> largest =
      gradsmith::LargestWorkspace(context, WorkspaceLimit::OfFreeMemory());
  EXPECT_NEAR(static_cast<double>(*largest), 0.9 * before, 0.9 * 32e6);
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
