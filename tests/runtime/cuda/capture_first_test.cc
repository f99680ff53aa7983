#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "runtime/cuda/child_process.h"
#include "runtime/cuda/graph_capture.h"
#include "runtime/cuda/op_problems.h"

/// Calls that are prepared, and captured, before anything else has run.
namespace gradsmith::cuda {
namespace {

using support::DeviceStream;

/// In a process of its own nothing is loaded yet that an earlier test has loaded.
class CudaCaptureChild : public CudaChildTest {
 protected:
  void CaptureFirst(const OpCall& call, Random& random) {
    const DeviceStream stream(device());
    ContextOptions options = OnGpu();
    options.stream = stream.get();
    options.deterministic = true;
    const Context context(options);
    const Status prepared = call.Prepare(context);
    ASSERT_TRUE(prepared.ok()) << prepared.message();
    CudaGraph graph(stream.get());
    graph.Begin();
    const Status called = call.Run(context);
    const Status ended = graph.End();
    ASSERT_TRUE(called.ok()) << called.message();
    ASSERT_TRUE(ended.ok()) << ended.message();
    call.FillInputs(random);
    ASSERT_TRUE(graph.Launch().ok());
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults("captured first of all");
  }
};

TEST_F(CudaCaptureChild, BatchNormGrad) {
  Random random("cuda capture child batch norm");
  CaptureFirst(
      MakeBatchNormGrad({4, 8, 6, 6}, DataType::kFloat, Layout::kContiguous, random), random);
}

TEST_F(CudaCaptureChild, Conv) {
  Random random("cuda capture child conv");
  CaptureFirst(MakeConv(Conv3x3(), DataType::kFloat, Layout::kChannelsLast, random), random);
}

TEST_F(CudaCaptureChild, ConvGrad) {
  Random random("cuda capture child conv grad");
  CaptureFirst(MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kChannelsLast, random), random);
}

class CudaCaptureFirst : public CudaTest {};

TEST_F(CudaCaptureFirst, OfAllInItsProcess) {
  const std::string folder = testing::TempDir() + "gradsmith_capture_" + std::to_string(getpid());
  const std::string file = folder + "/decisions.txt";
  for (const std::string test : {"BatchNormGrad", "Conv", "ConvGrad"}) {
    for (const std::string driver_loading : {"LAZY", "EAGER"}) {
      const std::string name = "CudaCaptureChild." + test;
      const std::string doing = name + ", module loading " + driver_loading;
      const auto run = [&](const std::string& cache) {
        return RunChild(
            name, {{"GRADSMITH_CACHE", cache}, {"CUDA_MODULE_LOADING", driver_loading}});
      };
      ExpectPassed(run("off"), doing);
      // The second finds the choice in the file: it has never run the kernel that it captures.
      ExpectPassed(run(file), doing + ", writing the file");
      ExpectPassed(run(file), doing + ", by the file");
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gradsmith::cuda
