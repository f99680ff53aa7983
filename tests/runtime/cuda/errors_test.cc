#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "conv/cuda/search_space.h"
#include "conv/kernels.h"
#include "conv/problem.h"
#include "core/selection.h"
#include "gradsmith/cache.h"
#include "gradsmith/conv_algorithms.h"
#include "runtime/cuda/child_process.h"
#include "runtime/cuda/op_problems.h"

/// What is said where a call cannot be done.
namespace gradsmith::cuda {
namespace {

void ExpectSays(const Status& status, StatusCode code, const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << status.message();
  }
}

class CudaErrors : public CudaTest {};

TEST_F(CudaErrors, NoSuchDevice) {
  Random random("cuda errors device");
  constexpr Device kNone = {Backend::kCuda, 99};
  const std::string expected = "there is no CUDA device 99: this process sees ";
  ExpectSays(CheckDevice(kNone), StatusCode::kUnsupported, {expected});
  ExpectSays(CheckDevice({Backend::kCuda, -1}), StatusCode::kUnsupported, {"no CUDA device -1"});
  ExpectSays(DeviceBuffer::Allocate(kNone, 16).status(), StatusCode::kUnsupported, {expected});
  ContextOptions options = OnGpu();
  options.device = kNone;
  const Context context(options);
  ExpectSays(Synchronize(context), StatusCode::kUnsupported, {expected});
  OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  call.device_index = 99;
  ExpectSays(
      call.Run(context), StatusCode::kUnsupported,
      {"ConvGrad[float] on cuda (", "ops.yaml:", expected});
  OpCall norm = MakeBatchNorm({2, 3, 4, 4}, DataType::kFloat, Layout::kContiguous, random);
  norm.device_index = 99;
  ExpectSays(norm.Run(context), StatusCode::kUnsupported, {"BatchNormalization[float]", expected});
}

TEST_F(CudaErrors, TensorsElsewhere) {
  Random random("cuda errors elsewhere");
  const Context context(OnGpu());
  OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  call.device_index = 1;
  ExpectSays(call.Run(context), StatusCode::kInvalidArgument, {"ConvGrad[float] on cuda (", "dY"});
  // A tensor on the host among those on the GPU.
  call.device_index = 0;
  std::vector<ConstTensorRef> inputs = call.InputRefs();
  inputs[2] = call.inputs[2]->HostRef();
  const Result<Kernel> kernel = Kernel::Create(
      AllOps(), call.op, std::span<const DataType>(call.types), Backend::kCuda, call.attributes);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  ExpectSays(
      kernel->Run(context, inputs, call.OutputRefs()), StatusCode::kInvalidArgument,
      {"ConvGrad[float] on cuda (", "W", "cpu"});
}

TEST_F(CudaErrors, NamesOpRowAndWhatCame) {
  Random random("cuda errors shapes");
  const Context context(OnGpu());
  OpCall call = MakeConvGrad(Conv3x3(), DataType::kMLFloat16, Layout::kChannelsLast, random);
  call.outputs[1] = MakeTensor(DataType::kMLFloat16, {24, 16, 3, 2});
  ExpectSays(
      call.Run(context), StatusCode::kInvalidArgument,
      {"ConvGrad[half] on cuda (", "ops.yaml:", "dW", "[24, 16, 3, 2]", "expected 3 ("});
  call.outputs[1] = MakeTensor(DataType::kFloat, {24, 16, 3, 3});
  ExpectSays(call.Run(context), StatusCode::kInvalidArgument, {"ConvGrad[half]", "dW", "float"});
}

/// The ways to compute a problem, without our own kernel, which any policy allows.
class WithoutOwn final : public internal::SearchSpace {
 public:
  explicit WithoutOwn(conv::ConvSearchSpace& space) : space_(space) {}
  [[nodiscard]] std::string Describe() const override { return space_.Describe(); }
  [[nodiscard]] int batches() const override { return space_.batches() - 1; }
  std::vector<internal::Candidate> List(int batch, std::vector<internal::Rejection>* rejections)
      override {
    return space_.List(batch, rejections);
  }
  Result<std::unique_ptr<internal::Plan>> Build(const std::string& id) override {
    return space_.Build(id);
  }
  Result<double> Check(internal::Plan& plan) override { return space_.Check(plan); }
  Result<double> Time(internal::Plan& plan) override { return space_.Time(plan); }

 private:
  conv::ConvSearchSpace& space_;
};

TEST_F(CudaErrors, EmptiedListSaysWhatEmptiedIt) {
  Random random("cuda errors emptied");
  // A gradient with zero strides must be copied, for which there is no workspace.
  OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, Layout::kBroadcast);
  call.FillInputs(random);
  conv::Attributes attributes;
  attributes.pads = {1, 1, 1, 1};
  const ConstTensorRef x = call.inputs[1]->GpuRef();
  const ConstTensorRef w = call.inputs[2]->GpuRef();
  const ConstTensorRef dy = call.inputs[0]->GpuRef();
  const Result<conv::Problem> problem = conv::ConvolutionProblem(attributes, x, w);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  conv::Task task;
  task.primitive = conv::Primitive::kBackwardData;
  task.problem = conv::WithStrides(*problem, x.strides, w.strides, dy.strides);
  task.alignment = {16, 16, 16};
  const std::array<void*, conv::kOperands> operands = {
      call.outputs[0]->GpuRef().data, const_cast<void*>(w.data), const_cast<void*>(dy.data)};
  for (const SearchMode mode : kAllModes) {
    conv::ConvSearchSpace space(device(), nullptr, task, operands, {});
    WithoutOwn without(space);
    internal::SearchPolicy policy;
    policy.mode = mode;
    policy.deterministic = true;
    policy.workspace_limit = 0;
    policy.budget_seconds = 1;
    const Result<internal::Selected> selected = internal::Select(without, policy);
    ASSERT_FALSE(selected.ok()) << selected->decision.id;
    ExpectSays(
        selected.status(), StatusCode::kUnsupported,
        {"backward-data of float, x [2, 16, 14, 14]", "no candidate is left",
         "needs more workspace than the limit of 0 bytes"});
    // With our own it works.
    const Result<internal::Selected> own = internal::Select(space, policy);
    ASSERT_TRUE(own.ok()) << own.status().message();
    EXPECT_EQ(own->decision.id, "own/direct");
  }
}

/// Without cuDNN, in a process of its own: nothing is skipped here.
class CudaErrorsChild : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv(kChildVariable) == nullptr) {
      GTEST_SKIP() << "runs in a process that another test starts";
    }
  }
};

TEST_F(CudaErrorsChild, WithoutCudnn) {
  ExpectSays(
      CheckDevice({Backend::kCuda, 0}), StatusCode::kUnsupported,
      {"there is no cuDNN 9: ", "/nonexistent/libcudnn.so.9"});
  const Result<const DeviceInfo*> gpu = DeviceInfo::Open(0);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  const CurrentDevice current(**gpu);
  Random random("cuda errors child");
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  EXPECT_FALSE(call.Expected().empty()) << "the CPU backend";
  const Context context(OnGpu());
  ExpectSays(
      call.Run(context), StatusCode::kUnsupported,
      {"ConvGrad[float] on cuda (", "there is no cuDNN 9: ", "/nonexistent/libcudnn.so.9"});
  ExpectSays(call.Prepare(context), StatusCode::kUnsupported, {"there is no cuDNN 9: "});
}

TEST_F(CudaErrorsChild, BadEnginesAreLeftOut) {
  const Result<const DeviceInfo*> gpu = DeviceInfo::Open(0);
  ASSERT_TRUE(gpu.ok()) << gpu.status().message();
  const CurrentDevice current(**gpu);
  std::string warnings;
  SetWarningHandler([&](const std::string& sentence) { warnings += sentence + "\n"; });
  Random random("cuda errors bad engines");
  const Context context(OnGpu());
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  const Status status = call.Run(context);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  call.ExpectResults("without graph engines");
  for (const CachedChoice& choice : CachedChoices()) {
    EXPECT_EQ(choice.kernel.find("graph/"), std::string::npos) << RecentChoices();
  }
  EXPECT_NE(warnings.find(":1: expected <operation>"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("is known to be bad in cuDNN") == std::string::npos, CacheFile().empty())
      << warnings;
  SetWarningHandler(nullptr);
}

TEST_F(CudaErrors, WithoutCudnn) {
  ExpectPassed(
      RunChild(
          "CudaErrorsChild.WithoutCudnn",
          {{"GRADSMITH_CUDNN_LIBRARY", "/nonexistent/libcudnn.so.9"}, {"GRADSMITH_CACHE", "off"}}),
      "without cuDNN");
}

TEST_F(CudaErrors, BadEnginesAreLeftOut) {
  const std::string file =
      testing::TempDir() + "gradsmith_bad_engines_" + std::to_string(getpid()) + ".txt";
  {
    std::ofstream text(file);
    text << "backward-data  # too short\n";
    for (int engine = 0; engine < 4096; ++engine) {
      for (const std::string operation : {"backward-data", "backward-filter"}) {
        text << operation << " graph/" << engine << " * 0 999999\n";
      }
    }
  }
  ExpectPassed(
      RunChild(
          "CudaErrorsChild.BadEnginesAreLeftOut",
          {{"GRADSMITH_BAD_ENGINES", file}, {"GRADSMITH_CACHE", "off"}}),
      "bad engines");
  // Nor are those used that were chosen before they were known.
  ContextOptions options = OnGpu();
  options.cache = file + ".cache";
  Random random("cuda errors remembered");
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kContiguous, random);
  ASSERT_TRUE(call.Run(Context(options)).ok());
  ASSERT_TRUE(std::ranges::any_of(CachedChoices(options.cache), [](const CachedChoice& choice) {
    return choice.kernel.starts_with("graph/");
  })) << "no choice to be forgotten";
  const ChildResult child = RunChild(
      "CudaErrorsChild.BadEnginesAreLeftOut",
      {{"GRADSMITH_BAD_ENGINES", file}, {"GRADSMITH_CACHE", *options.cache}});
  ExpectPassed(child, "remembered bad engines");
  for (const std::string& name : {file, *options.cache, *options.cache + ".lock"}) {
    std::filesystem::remove(name);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
