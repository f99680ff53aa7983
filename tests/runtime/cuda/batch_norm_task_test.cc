// Compiled alone: it has definitions of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "batch_norm/cuda/form.h"
#include "batch_norm/cuda/graph.h"
#include "batch_norm/cuda/task.h"
#include "core/selection.h"
#include "cuda/cudnn.h"
#include "cuda/dynamic_library.h"
#include "cuda/graph.h"
#include "gradsmith/tensor.h"
#include "runtime/cuda/batch_norm_data.h"

/// What tasks of batch normalization are known by, and which engines cuDNN has for them.
namespace gradsmith::batch_norm {
namespace {

using cuda::OpTask;
using internal::Candidate;

/// A task of dense tensors that need no memory: for keys and graphs.
OpTask DenseTask(
    const Types& types,
    const Dims& dims,
    bool channels_last,
    Activation activation = Activation::kNone) {
  OpTask task;
  task.op = &OpOf(Direction::kBackward, activation);
  task.tensors.resize(backward::kOperands);
  if (activation != Activation::kNone) {
    task.tensors[backward::kB] = TensorRef(types.T1, nullptr, {dims[1]});
  }
  const Strides strides = channels_last ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
  for (const int operand : {backward::kDY, backward::kX, backward::kDX}) {
    task.tensors[operand] = TensorRef(types.T, nullptr, dims, strides);
  }
  for (const int operand : {backward::kScale, backward::kDScale, backward::kDBias}) {
    task.tensors[operand] = TensorRef(types.T1, nullptr, {dims[1]});
  }
  for (const int operand : {backward::kSavedMean, backward::kSavedInvStd}) {
    task.tensors[operand] = TensorRef(types.T2, nullptr, {dims[1]});
  }
  return task;
}

TEST(BatchNormTaskTest, TheKeyTellsTasksApart) {
  constexpr Activation kRelu = Activation::kRelu;
  const OpTask base = DenseTask({kH, kH, kF}, {4, 16, 6, 5}, false, kRelu);
  std::vector<OpTask> tasks = {
      base,
      DenseTask({kH, kH, kF}, {4, 16, 6, 5}, true, kRelu),
      DenseTask({kH, kH, kF}, {4, 16, 5, 6}, false, kRelu),
      DenseTask({kH, kH, kF}, {4, 16, 30}, false, kRelu),
      DenseTask({kB, kH, kF}, {4, 16, 6, 5}, false, kRelu),
      DenseTask({kH, kF, kF}, {4, 16, 6, 5}, false, kRelu),
      DenseTask({kH, kH, kH}, {4, 16, 6, 5}, false, kRelu),
      DenseTask({kH, kH, kF}, {4, 16, 6, 5}, false)};
  for (int i = 0; i < backward::kOperands; ++i) {
    OpTask strided = base;
    strided.tensors[i].strides[0] *= 2;
    OpTask unaligned = base;
    unaligned.tensors[i].data = reinterpret_cast<void*>(8);
    tasks.insert(tasks.end(), {strided, unaligned});
  }
  for (int subset = 1; subset < 8; ++subset) {
    OpTask absent = base;
    OpTask adding = base;
    for (int i = 0; i < 3; ++i) {
      if ((subset >> i & 1) != 0) {
        absent.tensors[backward::kInputs + i] = {};
        adding.tensors[backward::kInputs + i].accumulate = true;
      }
    }
    tasks.insert(tasks.end(), {absent, adding});
  }
  OpTask forward;
  forward.op = &OpOf(Direction::kForward, Activation::kNone);
  forward.tensors.resize(forward::kOperands);
  for (int i = 0; i < forward::kOperands; ++i) {
    const bool large = i == forward::kX || i == forward::kY;
    const Dims dims = large ? Dims{4, 16, 6, 5} : Dims{16};
    forward.tensors[i] = TensorRef(kF, reinterpret_cast<void*>(16 * (i + 1L)), dims);
  }
  OpTask in_place = forward;
  in_place.tensors[forward::kNewRunningMean].data = in_place.tensors[forward::kRunningMean].data;
  OpTask with_relu = forward;
  with_relu.op = &OpOf(Direction::kForward, kRelu);
  tasks.insert(tasks.end(), {forward, in_place, with_relu});
  std::set<std::string> keys;
  for (const OpTask& task : tasks) {
    internal::ProblemKey key;
    AddTo(task, &key);
    EXPECT_TRUE(keys.insert(key.Text()).second) << Describe(task);
  }
}

TEST(BatchNormTaskTest, WhatMayOverflowIsTakenByBenchmarksOnly) {
  const Candidate candidate{.id = "a", .engine = "a", .notes = {.may_overflow = true}};
  for (const SearchMode mode : {SearchMode::kDefault, SearchMode::kHeuristic}) {
    EXPECT_NE(internal::WhyFiltered(candidate, {.mode = mode}), "");
  }
  EXPECT_EQ(internal::WhyFiltered(candidate, {.mode = SearchMode::kBenchmark}), "");
}

/// Plans for a GPU that is only described.
class BatchNormGraphTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::LoadCudnn().ok()) {
      GTEST_SKIP() << cuda::LoadCudnn().status().message();
    }
    if (!cuda::DynamicLibrary::Open({"libcuda.so.1"}).ok()) {
      GTEST_SKIP() << "cuDNN lists no engines that are compiled at run time without libcuda.so.1";
    }
    std::ifstream file(GRADSMITH_TEST_DATA "/h200_deviceprop.json");
    const std::string json{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Result<cuda::GraphTarget> target = cuda::GraphTarget::Described(json);
    ASSERT_TRUE(target.ok()) << target.status().message();
    target_.emplace(std::move(*target));
  }

  /// How many engines cuDNN lists.
  [[nodiscard]] std::size_t Count(const StagedForm& form) const {
    const Result<cuda::OperationGraph> graph = MakeGraph(*target_, form);
    if (!graph.ok()) {
      return 0;
    }
    std::size_t count = 0;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      const auto listed = cuda::ListEngines(*target_, *graph, mode, XOf(form.inner).type);
      count += listed.ok() ? listed->size() : 0;
    }
    return count;
  }

  std::optional<cuda::GraphTarget> target_;
};

TEST_F(BatchNormGraphTest, ListsEnginesForEveryTypeThatAFormIsOffered) {
  for (const Types& types : kRows) {
    for (const Dims& dims : {Dims{64, 64}, Dims{8, 64, 16, 16}, Dims{2, 64, 4, 8, 8}}) {
      for (const bool channels_last : {false, true}) {
        for (const auto& [activation, adds] :
             {std::pair(Activation::kNone, false), std::pair(Activation::kNone, true),
              std::pair(Activation::kRelu, false), std::pair(Activation::kRelu, true)}) {
          OpTask task = DenseTask(types, dims, channels_last, activation);
          task.tensors[backward::kDX].accumulate = adds;
          task.tensors[backward::kDBias].accumulate = adds;
          const Result<StagedForm> form = GraphForm(task);
          const bool has_double = types.T == kD || types.T1 == kD || types.T2 == kD;
          EXPECT_EQ(form.ok(), !has_double && (channels_last || dims.size() == 2))
              << Describe(task);
          EXPECT_TRUE(!form.ok() || Count(*form) > 0) << Describe(task);
        }
      }
    }
  }
}

/// What GraphForm refuses, cuDNN refuses as well.
TEST_F(BatchNormGraphTest, ListsNoneForOddChannelsOrDouble) {
  for (const auto& [types, channels] :
       {std::pair(Types{kH, kH, kF}, 63), std::pair(Types{kB, kF, kF}, 60),
        std::pair(Types{kF, kF, kF}, 63), std::pair(Types{kD, kD, kD}, 64)}) {
    const OpTask task = DenseTask(types, {8, channels, 16, 16}, true);
    EXPECT_FALSE(GraphForm(task).ok());
    StagedForm form;
    form.inner = task;
    form.channels_last = true;
    EXPECT_EQ(Count(form), 0) << Describe(task);
  }
}

}  // namespace
}  // namespace gradsmith::batch_norm
