#include "cuda/run_op.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/cudnn.h"
#include "cuda/op_search_space.h"
#include "cuda/tensor_ops.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "runtime/cuda/child_process.h"
#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/graph_capture.h"
#include "support/device_memory.h"

/// The smallest families: Y = X, whose plan copies, and which adds to nothing itself.
namespace gradsmith::cuda {
namespace {

constexpr std::array<std::string_view, 2> kOperands = {"X", "Y"};
constexpr std::array<InPlacePair, 1> kInPlace = {{{0, 1}}};
constexpr std::array<double, 1> kTrialScalars = {0};
constexpr OpInfo kCopy = {
    .name = "Copy",
    .operands = kOperands,
    .inputs = 1,
    .in_place = kInPlace,
    .trial_scalars = kTrialScalars};

/// What plans were made and run since a test began, on the device that it opened.
struct Seen {
  const DeviceInfo* device = nullptr;
  int built = 0;
  int enqueued = 0;
};

Seen& ThisTest() {
  static Seen seen;
  return seen;
}

/// Y = X, or where a scalar is given, Y = the scalar.
class CopyPlan final : public internal::Plan {
 public:
  explicit CopyPlan(const OpTask& task) : X_(task.tensors[0]), Y_(task.tensors[1]) {
    ++ThisTest().built;
    if (X_.strides == Y_.strides) {
      for (TensorRef* tensor : {&X_, &Y_}) {
        *tensor = TensorRef(tensor->type, nullptr, {NumElements(tensor->dims)});
      }
    }
  }
  [[nodiscard]] std::size_t workspace() const override { return 0; }
  Status Run(const internal::Launch& launch) override {
    ++ThisTest().enqueued;
    X_.data = launch.operands[0];
    Y_.data = launch.operands[1];
    CUstream stream = launch.stream;
    return launch.scalars[0] == 0 ? CopyTensor(*ThisTest().device, stream, X_, Y_)
                                  : FillTensor(*ThisTest().device, stream, launch.scalars[0], Y_);
  }

 private:
  TensorRef X_;
  TensorRef Y_;
};

constexpr std::array<Implementation, 1> kTable = {
    {{.name = "own", .takes_all = true, .build = &BuildAs<CopyPlan>}}};
constexpr FamilyOnCuda kFamily = {.table = kTable};

class CudaRunOp : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    ThisTest() = {.device = IsSkipped() ? nullptr : &device()};
  }

  static Context MakeContext(CUstream stream = nullptr) {
    ContextOptions options;
    options.device = {Backend::kCuda, 0};
    options.stream = stream;
    options.first_choice_seconds = 0;
    options.cache = "off";
    return Context(options);
  }

  static OpTask TaskOf(const TensorRef& X, const TensorRef& Y, double scalar = 0) {
    OpTask task = MakeOpTask(kCopy, &X, &Y);
    task.scalars.push_back(scalar);
    return task;
  }

  /// 1, 2, 3...
  static void Count(GpuTensor& tensor) {
    double next = 0;
    tensor.Fill([&] { return ++next; });
  }
  static void ExpectValues(const GpuTensor& tensor, double first, double step) {
    double expected = first;
    for (const double value : tensor.GpuValues()) {
      ASSERT_EQ(value, expected);
      expected += step;
    }
  }
};

TEST_F(CudaRunOp, OneRowRunsWithoutAChoice) {
  const Context context = MakeContext();
  GpuTensor X(DataType::kFloat, {2, 3, 4}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {2, 3, 4}, support::Layout::kStrided);
  Count(X);
  for (int run = 1; run <= 3; ++run) {
    Y.Fill([] { return -1.0; });
    const Status status = RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef()));
    ASSERT_TRUE(status.ok()) << status.message();
    ExpectValues(Y, 1, 1);
  }
  EXPECT_EQ(ThisTest().built, 1);
  // Scalars reach a plan that is there, and a call that was recorded.
  ASSERT_TRUE(RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef(), 5)).ok());
  ExpectValues(Y, 5, 0);
  EXPECT_EQ(ThisTest().built, 1);
}

TEST_F(CudaRunOp, AddsByStagingWhatAnImplementationDoesNotAdd) {
  const Context context = MakeContext();
  const std::vector<Sizes> all = {{7}, {2, 3}, {2, 3, 4, 5}, {1, 2, 1, 2, 1, 2, 3}};
  for (const Sizes& dims : all) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16, DataType::kDouble}) {
      GpuTensor X(type, dims, support::Layout::kContiguous);
      GpuTensor Y(type, dims, support::Layout::kContiguous);
      Count(X);
      Y.Fill([] { return 10.0; });
      for (int run = 1; run <= 3; ++run) {
        const Status status =
            RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef().Accumulating()));
        ASSERT_TRUE(status.ok()) << status.message();
        ExpectValues(Y, 10 + run, run);
      }
    }
  }
}

TEST_F(CudaRunOp, WhatCannotBeAddedToIsSaid) {
  GpuTensor X(DataType::kFloat, {1, 2, 1, 2, 1, 2}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {1, 2, 1, 2, 1, 2}, support::Layout::kStrided);
  const Status status =
      RunOp(MakeContext(), kFamily, TaskOf(X.GpuRef(), Y.GpuRef().Accumulating()));
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_TRUE(status.message().starts_with("Copy, X float [1, 2, 1, 2, 1, 2], Y float "))
      << status.message();
  EXPECT_NE(status.message().find("Y of rank 6 is added to and not dense"), std::string::npos)
      << status.message();
}

TEST_F(CudaRunOp, NothingIsRunWhereNothingIsToBeWritten) {
  const Context context = MakeContext();
  const TensorRef empty(DataType::kFloat, nullptr, {3, 0});
  EXPECT_TRUE(RunOp(context, kFamily, TaskOf(empty, empty)).ok());
  GpuTensor X(DataType::kFloat, {3}, support::Layout::kContiguous);
  EXPECT_TRUE(RunOp(context, kFamily, TaskOf(X.GpuRef(), TensorRef())).ok());
  EXPECT_EQ(ThisTest().built, 0);
  EXPECT_EQ(ThisTest().enqueued, 0);
}

TEST_F(CudaRunOp, OperandsThatAreMissingAreAFault) {
  const TensorRef X(DataType::kFloat, nullptr, {3});
  EXPECT_EQ(
      RunOp(MakeContext(), kFamily, MakeOpTask(kCopy, &X)).message(),
      "Copy has 1 operands; expected 2");
}

TEST_F(CudaRunOp, IsCapturedIntoTheCallersGraph) {
  const support::DeviceStream stream(device());
  const Context context = MakeContext(stream.get());
  GpuTensor X(DataType::kFloat, {5, 7}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {5, 7}, support::Layout::kContiguous);
  GpuTensor sum(DataType::kFloat, {5, 7}, support::Layout::kContiguous);
  Count(X);
  Y.Fill([] { return -1.0; });
  sum.Fill([] { return 1.0; });
  CudaGraph graph(stream.get());
  graph.Begin();
  // No call came before: there is nothing to search for.
  const Status status = RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef()));
  const Status added = RunOp(context, kFamily, TaskOf(X.GpuRef(), sum.GpuRef().Accumulating()));
  ASSERT_TRUE(graph.End().ok());
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(added.ok()) << added.message();
  stream.Wait();
  ExpectValues(Y, -1, 0);
  for (int run = 1; run <= 2; ++run) {
    ASSERT_TRUE(graph.Launch().ok());
    stream.Wait();
    ExpectValues(Y, 1, 1);
    ExpectValues(sum, 1 + run, run);
  }
}

TEST_F(CudaRunOp, PreparingRunsNothing) {
  const Context context = MakeContext();
  GpuTensor X(DataType::kFloat, {4}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {4}, support::Layout::kContiguous);
  Count(X);
  Y.Fill([] { return -1.0; });
  ASSERT_TRUE(RunOp(context.ForPreparing(), kFamily, TaskOf(X.GpuRef(), Y.GpuRef())).ok());
  EXPECT_EQ(ThisTest().built, 1);
  ExpectValues(Y, -1, 0);
  const int before = ThisTest().enqueued;
  ASSERT_TRUE(RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef())).ok());
  EXPECT_EQ(ThisTest().enqueued, before);
  ExpectValues(Y, 1, 1);
}

/// Runs in a process that knows no cuDNN.
class CudaRunOpChild : public CudaRunOp {
 protected:
  void SetUp() override {
    if (std::getenv(kChildVariable) == nullptr) {
      GTEST_SKIP() << "runs in a process that another test starts";
    }
    CudaRunOp::SetUp();
  }
};

TEST_F(CudaRunOpChild, WithoutCudnn) {
  ASSERT_FALSE(LoadCudnn().ok());
  const Context context = MakeContext();
  GpuTensor X(DataType::kFloat, {4}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {4}, support::Layout::kContiguous);
  Count(X);
  Y.Fill([] { return 1.0; });
  ASSERT_TRUE(RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef())).ok());
  ExpectValues(Y, 1, 1);
  ASSERT_TRUE(RunOp(context, kFamily, TaskOf(X.GpuRef(), Y.GpuRef().Accumulating())).ok());
  ExpectValues(Y, 2, 2);
  FamilyOnCuda demanding = kFamily;
  demanding.needs = Needs::kCudnn;
  EXPECT_EQ(
      RunOp(context, demanding, TaskOf(X.GpuRef(), Y.GpuRef())).message(),
      LoadCudnn().status().message());
}

TEST_F(CudaRunOp, AFamilyOfOurOwnKernelsNeedsNoCudnn) {
  ExpectPassed(
      RunChild(
          "CudaRunOpChild.WithoutCudnn", {{"GRADSMITH_CUDNN_LIBRARY", "/nowhere/libcudnn.so.9"}}),
      "without cuDNN");
}

// ---------------------------------------------------------------------------------------------
// A table to choose from
// ---------------------------------------------------------------------------------------------

Result<Variants> FitCopy(const Target& /*target*/, const OpTask& /*task*/) {
  return OneWay(0);
}

Result<Variants> FitNothing(const Target& /*target*/, const OpTask& /*task*/) {
  return Unsupported("it takes no copies");
}

/// Leaves what was there.
class IdlePlan final : public internal::Plan {
 public:
  explicit IdlePlan(const OpTask& /*task*/) {}
  [[nodiscard]] std::size_t workspace() const override { return 0; }
  Status Run(const internal::Launch& /*launch*/) override { return {}; }
};

/// Whether the trial's Y is its X, plus what it was where it is added to.
Result<double> CompareCopies(Trial& trial, const OpTask& task, bool /*usual*/) {
  std::vector<float> expected(static_cast<std::size_t>(NumElements(task.tensors[0].dims)));
  std::vector<float> got = expected;
  std::vector<float> before = expected;
  const std::size_t bytes = expected.size() * sizeof(float);
  Status status = CopyAndWait(expected.data(), task.tensors[0].data, bytes, trial.stream());
  if (status.ok()) {
    status = CopyAndWait(got.data(), task.tensors[1].data, bytes, trial.stream());
  }
  if (status.ok() && trial.Before(1) != nullptr) {
    status = CopyAndWait(before.data(), trial.Before(1), bytes, trial.stream());
  }
  for (std::size_t i = 0; i < expected.size() && status.ok(); ++i) {
    status = got[i] == expected[i] + before[i] ? Status() : Internal("Y is wrong");
  }
  return status.ok() ? Result<double>(0.0) : status;
}

constexpr std::array<Implementation, 3> kChoices = {{
    {.name = "idle", .fit = &FitCopy, .build = &BuildAs<IdlePlan>},
    {.name = "none", .fit = &FitNothing, .build = &BuildAs<IdlePlan>},
    {.name = "own", .takes_all = true, .fit = &FitCopy, .build = &BuildAs<CopyPlan>},
}};
constexpr Comparison kComparison = {.compare = &CompareCopies};
constexpr FamilyOnCuda kChoosy = {.table = kChoices, .comparison = &kComparison};

TEST_F(CudaRunOp, OfSeveralRowsTheFirstThatIsRightIsTaken) {
  const Context context = MakeContext();
  GpuTensor X(DataType::kFloat, {64}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {64}, support::Layout::kContiguous);
  Count(X);
  for (const bool adds : {false, true}) {
    Y.Fill([] { return 1.0; });
    const TensorRef output = adds ? Y.GpuRef().Accumulating() : Y.GpuRef();
    const Status status = RunOp(context, kChoosy, TaskOf(X.GpuRef(), output));
    ASSERT_TRUE(status.ok()) << status.message();
    ExpectValues(Y, adds ? 2 : 1, 1);
  }
}

TEST_F(CudaRunOp, WhereNoRowIsRightTheErrorSaysWhyOfEach) {
  FamilyOnCuda wrong = kChoosy;
  wrong.table = std::span(kChoices).first(2);
  GpuTensor X(DataType::kFloat, {65}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {65}, support::Layout::kContiguous);
  const Status status = RunOp(MakeContext(), wrong, TaskOf(X.GpuRef(), Y.GpuRef()));
  EXPECT_FALSE(status.ok());
  for (const char* part :
       {"Copy, X float [65], Y float [65]", "idle", "none", "it takes no copies"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
}

TEST_F(CudaRunOp, NamesOfCandidatesAreBuiltAgain) {
  GpuTensor X(DataType::kFloat, {64}, support::Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {64}, support::Layout::kContiguous);
  OpSearchSpace space(device(), kStream, kChoosy, TaskOf(X.GpuRef(), Y.GpuRef()));
  EXPECT_TRUE(space.Build("own").ok());
  for (const char* name : {"", "ow", "owner", "other"}) {
    EXPECT_EQ(space.Build(name).status().message(), "'" + std::string(name) + "' is no candidate");
  }
}

// ---------------------------------------------------------------------------------------------
// Tasks
// ---------------------------------------------------------------------------------------------

TEST(CudaOpTask, DescribesItself) {
  TensorRef X(DataType::kMLFloat16, reinterpret_cast<void*>(2), {2, 3, 4, 5});
  X.strides = ChannelsLastStrides(X.dims);
  TensorRef Y(DataType::kFloat, reinterpret_cast<void*>(16), {2, 3, 4, 5});
  Y.accumulate = true;
  OpTask task = MakeOpTask(kCopy, &X, &Y);
  EXPECT_EQ(
      Describe(task),
      "Copy, X MLFloat16 [2, 3, 4, 5] channels last aligned to 2 bytes, Y float [2, 3, 4, 5] "
      "accumulating");
  task.tensors[0] = {};
  task.tensors[1] = TensorRef(DataType::kFloat, nullptr, {4}, {2});
  task.choices = {1, 7};
  EXPECT_EQ(Describe(task), "Copy, Y float [4] strides [2], choices [1, 7]");
}

}  // namespace
}  // namespace gradsmith::cuda
