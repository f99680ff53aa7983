// Compiled alone: it has definitions of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conv/cuda/graph.h"
#include "conv/task.h"
#include "core/selection.h"
#include "cuda/cudnn.h"
#include "cuda/descriptor.h"
#include "cuda/graph.h"
#include "support/scratch_folder.h"

/// Graphs that are planned for an H200 which need not be there.
namespace gradsmith::cuda {
namespace {

using internal::Candidate;

EngineNotes Notes(std::vector<std::int64_t> notes) {
  return notes;
}

TEST(EngineNotes, AreTakenOver) {
  const internal::CandidateNotes none = ToNotes(Notes({}), Notes({}), DataType::kFloat);
  EXPECT_TRUE(none.deterministic);
  EXPECT_FALSE(none.tf32 || none.down_converts || none.reduced_precision || none.transforms);
  EXPECT_FALSE(none.runtime_compiled);
  const auto with = [](std::int64_t numerical, DataType type = DataType::kFloat) {
    return ToNotes(Notes({CUDNN_NUMERICAL_NOTE_TYPE_COUNT, numerical}), Notes({}), type);
  };
  EXPECT_FALSE(with(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC).deterministic);
  EXPECT_TRUE(with(CUDNN_NUMERICAL_NOTE_TENSOR_CORE).tf32);
  EXPECT_FALSE(with(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, DataType::kMLFloat16).tf32);
  EXPECT_TRUE(with(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS).down_converts);
  EXPECT_TRUE(with(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION).reduced_precision);
  EXPECT_TRUE(with(CUDNN_NUMERICAL_NOTE_FFT).transforms);
  EXPECT_TRUE(with(CUDNN_NUMERICAL_NOTE_WINOGRAD).transforms);
  EXPECT_TRUE(ToNotes(Notes({}), Notes({CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}), DataType::kFloat)
                  .runtime_compiled);
}

TEST(EngineNotes, WhatCannotBeReadIsTheWorse) {
  const EngineNotes unreadable = Internal("no notes");
  for (const DataType type :
       {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    const internal::CandidateNotes notes = ToNotes(unreadable, unreadable, type);
    EXPECT_FALSE(notes.deterministic);
    EXPECT_EQ(notes.tf32, type == DataType::kFloat);
    Candidate candidate;
    candidate.notes = notes;
    EXPECT_NE(internal::WhyFiltered(candidate, {.deterministic = true}), "");
    EXPECT_EQ(internal::WhyFiltered(candidate, {.allow_tf32 = true}), "");
  }
}

TEST(EngineChoice, IsRestoredFromItsText) {
  const EngineChoice choice{67, {{2, 1}, {5, 0}, {13, -1}}};
  EXPECT_EQ(choice.Text(), "engine 67/2=1,5=0,13=-1");
  EXPECT_EQ((EngineChoice{0, {}}.Text()), "engine 0");
  for (const EngineChoice& each : {choice, EngineChoice{0, {}}, EngineChoice{1000, {{0, 0}}}}) {
    const Result<EngineChoice> parsed = EngineChoice::Parse(each.Text());
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->engine, each.engine);
    EXPECT_EQ(parsed->knobs, each.knobs);
  }
}

TEST(EngineChoice, GarbageIsAnErrorThatNamesIt) {
  for (const std::string text :
       {"", "engine", "engine ", "engine x", "engine  1", "engine 1x", "engine 1/", "engine 1/2",
        "engine 1/2=", "engine 1/=2", "engine 1/2=3,", "engine 1/2=3/4=5", "engine 1,2=3",
        "engine 1/2=3 ", "Engine 1", " engine 1", "engine 99999999999999999999", "engine 1/2=x"}) {
    const Result<EngineChoice> parsed = EngineChoice::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(parsed.status().message(), "'" + text + "' is not an engine with its knobs");
  }
}

/// A 3 x 3 convolution of 64 channels in NHWC.
conv::Task PlainTask(DataType type, conv::Primitive primitive) {
  conv::Task task;
  task.primitive = primitive;
  task.problem.type = type;
  task.problem.batch = 8;
  task.problem.x_channels = 64;
  task.problem.y_channels = 64;
  task.problem.spatial_rank = 2;
  for (int i = 0; i < 2; ++i) {
    task.problem.axes[i] = {.x = 16, .w = 3, .y = 16, .pad_begin = 1, .pad_end = 1};
  }
  for (const conv::Operand operand : {conv::kX, conv::kW, conv::kY}) {
    conv::StridesOf(task.problem, operand) =
        ChannelsLastStrides(conv::DimsOf(task.problem, operand));
  }
  return task;
}

class GraphPlanning : public testing::Test {
 protected:
  void SetUp() override {
    if (!LoadCudnn().ok()) {
      GTEST_SKIP() << LoadCudnn().status().message();
    }
    const std::string json = support::ReadFile(GRADSMITH_TEST_DATA "/h200_deviceprop.json");
    ASSERT_FALSE(json.empty());
    Result<GraphTarget> target = GraphTarget::Described(json);
    ASSERT_TRUE(target.ok()) << target.status().message();
    target_ = *target;
  }

  OperationGraph GraphOf(DataType type, conv::Primitive primitive = conv::Primitive::kForward) {
    Result<OperationGraph> graph = conv::MakeGraph(target_, PlainTask(type, primitive));
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    return std::move(*graph);
  }

  std::vector<Candidate> List(const OperationGraph& graph, DataType type) {
    Result<std::vector<Candidate>> candidates =
        ListEngines(target_, graph, CUDNN_HEUR_MODE_A, type);
    EXPECT_TRUE(candidates.ok()) << candidates.status().message();
    return *candidates;
  }

  /// What cuDNN says of an engine, asked for by another way.
  std::vector<std::int64_t> NumericalNotes(const OperationGraph& graph, std::int64_t engine) {
    const Result<Descriptor> descriptor =
        DescriptorBuilder(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine")
            .Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.graph)
            .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine)
            .Set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target_.properties())
            .Finalize();
    EXPECT_TRUE(descriptor.ok()) << descriptor.status().message();
    const Result<std::vector<std::int64_t>> notes =
        descriptor->Integers(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
    EXPECT_TRUE(notes.ok()) << notes.status().message();
    return *notes;
  }

  static std::int64_t EngineOf(const Candidate& candidate) {
    return EngineChoice::Parse(candidate.id)->engine;
  }

  GraphTarget target_{nullptr};
};

TEST_F(GraphPlanning, ADescriptionThatIsNoneIsAnError) {
  const Result<GraphTarget> target = GraphTarget::Described("{not a device}");
  ASSERT_FALSE(target.ok());
  EXPECT_NE(target.status().message().find("the device's description"), std::string::npos)
      << target.status().message();
}

TEST_F(GraphPlanning, ListsEnginesForAPlainConvolution) {
  for (const auto primitive :
       {conv::Primitive::kForward, conv::Primitive::kBackwardData,
        conv::Primitive::kBackwardFilter}) {
    const OperationGraph graph = GraphOf(DataType::kMLFloat16, primitive);
    const std::vector<Candidate> candidates = List(graph, DataType::kMLFloat16);
    ASSERT_FALSE(candidates.empty());
    for (const Candidate& candidate : candidates) {
      EXPECT_TRUE(candidate.id.starts_with("engine ")) << candidate.id;
      const Result<EngineChoice> choice = EngineChoice::Parse(candidate.id);
      ASSERT_TRUE(choice.ok()) << choice.status().message();
      EXPECT_EQ(candidate.engine, std::to_string(choice->engine));
      EXPECT_FALSE(candidate.notes.tf32) << candidate.id;
    }
    EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [](const Candidate& candidate) {
      return internal::WhyFiltered(candidate, {.deterministic = true}).empty();
    }));
  }
}

TEST_F(GraphPlanning, StrictFloatLeavesNoTensorCores) {
  const OperationGraph graph = GraphOf(DataType::kFloat);
  int allowed = 0;
  int excluded = 0;
  for (const Candidate& candidate : List(graph, DataType::kFloat)) {
    const std::vector<std::int64_t> notes = NumericalNotes(graph, EngineOf(candidate));
    const bool tensor_cores =
        std::find(notes.begin(), notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
    if (internal::WhyFiltered(candidate, {}).empty()) {
      ++allowed;
      EXPECT_FALSE(tensor_cores) << candidate.id;
    } else {
      excluded += tensor_cores ? 1 : 0;
    }
  }
  EXPECT_GT(allowed, 0);
  EXPECT_GT(excluded, 0);
}

TEST_F(GraphPlanning, APlanOfADescribedDeviceIsBuiltAndRefusesToRun) {
  const OperationGraph graph = GraphOf(DataType::kMLFloat16);
  for (const Candidate& candidate : List(graph, DataType::kMLFloat16)) {
    if (candidate.notes.runtime_compiled) {
      continue;
    }
    const Result<std::unique_ptr<internal::Plan>> plan =
        BuildGraphPlan(target_, graph, *EngineChoice::Parse(candidate.id));
    ASSERT_TRUE(plan.ok()) << candidate.id << ": " << plan.status().message();
    EXPECT_EQ((*plan)->workspace(), candidate.workspace);
    const std::array<void*, conv::kOperands> operands{};
    const Status status = (*plan)->Run({nullptr, operands, nullptr});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(status.message(), "the plan is for a device that is only described");
    return;
  }
  FAIL() << "every engine is compiled at run time";
}

TEST_F(GraphPlanning, AnEngineThatDoesNotExistIsAnErrorThatNamesIt) {
  const OperationGraph graph = GraphOf(DataType::kMLFloat16);
  const std::int64_t engine = EngineOf(List(graph, DataType::kMLFloat16).front());
  const auto error = [&](const EngineChoice& choice) {
    const Result<std::unique_ptr<internal::Plan>> plan = BuildGraphPlan(target_, graph, choice);
    return plan.ok() ? "no error" : plan.status().message();
  };
  EXPECT_NE(error({12345, {}}).find("engine 12345"), std::string::npos) << error({12345, {}});
  EXPECT_NE(error({-5, {}}).find("engine -5"), std::string::npos) << error({-5, {}});
  const EngineChoice bad_knob{engine, {{2, 987654}}};
  EXPECT_NE(error(bad_knob).find("2=987654"), std::string::npos) << error(bad_knob);
}

}  // namespace
}  // namespace gradsmith::cuda
