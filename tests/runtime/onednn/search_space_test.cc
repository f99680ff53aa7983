#include "conv/onednn/search_space.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "core/candidate_name.h"
#include "core/plan.h"
#include "cpu/selected_run.h"
#include "runtime/onednn/conv_task_data.h"

namespace gradsmith::conv {
namespace {

using internal::Candidate;
using internal::Decision;
using internal::Launch;
using internal::Plan;
using internal::Rejection;
using internal::SearchPolicy;
using internal::Selected;
using reference::Random;

/// What is done to the result of a plan after it has run.
using Damage = std::function<void(float* result, const Task& task)>;

/// A plan whose result is damaged.
class DamagedPlan final : public Plan {
 public:
  DamagedPlan(std::unique_ptr<Plan> plan, const Task& task, Damage damage)
      : plan_(std::move(plan)), task_(task), damage_(std::move(damage)) {}

  [[nodiscard]] std::size_t workspace() const override { return plan_->workspace(); }
  Status Run(const Launch& launch) override {
    Status status = plan_->Run(launch);
    damage_(static_cast<float*>(launch.operands[ResultOf(task_.primitive)]), task_);
    return status;
  }

 private:
  std::unique_ptr<Plan> plan_;
  Task task_;
  Damage damage_;
};

/// A search space in which oneDNN's plans are damaged.
class DamagedSpace final : public CpuSearchSpace {
 public:
  DamagedSpace(const Context& context, const Task& task, SearchPolicy policy, Damage damage)
      : CpuSearchSpace(context, task, 1, policy), task_(task), damage_(std::move(damage)) {}

  Result<std::unique_ptr<Plan>> Build(const std::string& id) override {
    Result<std::unique_ptr<Plan>> plan = CpuSearchSpace::Build(id);
    if (!plan.ok() || id.starts_with("own/")) {
      return plan;
    }
    return std::unique_ptr<Plan>(std::make_unique<DamagedPlan>(std::move(*plan), task_, damage_));
  }

 private:
  Task task_;
  Damage damage_;
};

Task MakeTask(Primitive primitive, const ConvShape& shape, Layout layout = Layout::kContiguous) {
  Random random("search space");
  return TaskData(primitive, MakeProblem(shape), {layout, layout, layout}, false, random).task();
}

/// Large enough for oneDNN's to come first.
const ConvShape kShape = {{2, 16, 9, 9}, {16, 16, 3, 3}, {.pads = {1, 1, 1, 1}}};

Selected Choose(internal::SearchSpace& space, const SearchPolicy& policy) {
  Result<Selected> selected = internal::Select(space, policy);
  EXPECT_TRUE(selected.ok()) << selected.status().message();
  return selected.ok() ? std::move(*selected) : Selected();
}

void ExpectDropped(const Damage& damage, const std::string& why, Layout layout = Layout::kStrided) {
  const Context context({.threads = 1});
  for (const Primitive primitive : kPrimitives) {
    for (const SearchMode mode :
         {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
      const SearchPolicy policy = {.mode = mode};
      DamagedSpace space(context, MakeTask(primitive, kShape, layout), policy, damage);
      const Selected selected = Choose(space, policy);
      EXPECT_EQ(selected.decision.id, "own/gemm");
      ASSERT_FALSE(selected.rejections.empty());
      for (const Rejection& rejection : selected.rejections) {
        EXPECT_NE(rejection.reason.find(why), std::string::npos) << rejection.reason;
      }
    }
  }
}

TEST(CpuSearchSpace, DropsWhatIsWrongInOneElement) {
  ExpectDropped([](float* result, const Task&) { result[0] += 0.5F; }, "disagrees with our own");
}

TEST(CpuSearchSpace, DropsWhatIsNotWritten) {
  ExpectDropped(
      [](float* result, const Task&) { result[0] = std::numeric_limits<float>::quiet_NaN(); },
      "1 elements are not written, or not finite");
}

TEST(CpuSearchSpace, DropsWhatWritesIntoGaps) {
  // Elements of the strided layout have gaps between them.
  ExpectDropped([](float* result, const Task&) { result[1] = 0; }, "writes between");
}

TEST(CpuSearchSpace, DropsWhatWritesBesideTheResult) {
  ExpectDropped(
      [](float* result, const Task&) { result[-1] = 0; }, "writes between", Layout::kContiguous);
}

TEST(CpuSearchSpace, DropsWhatIsNotDeterministicWhereThatIsAsked) {
  const Context context({.threads = 1});
  int runs = 0;
  const Damage jitter = [&](float* result, const Task&) {
    result[0] *= (++runs % 2 == 0) ? 1 : (1 + std::numeric_limits<float>::epsilon());
  };
  const Task task = MakeTask(Primitive::kForward, kShape);
  for (const SearchPolicy& policy :
       {SearchPolicy{
            .mode = SearchMode::kHeuristic, .deterministic = true, .first_choice_seconds = 0},
        SearchPolicy{.mode = SearchMode::kDefault}}) {
    DamagedSpace space(context, task, policy, jitter);
    EXPECT_EQ(Choose(space, policy).decision.id, "own/gemm");
  }
  const SearchPolicy any = {.mode = SearchMode::kHeuristic, .first_choice_seconds = 0};
  DamagedSpace space(context, task, any, jitter);
  EXPECT_NE(Choose(space, any).decision.id, "own/gemm");
}

TEST(CpuSearchSpace, OneDnnsGoFirstButForWhatIsTiny) {
  const Context context({.threads = 1});
  const SearchPolicy policy = {.mode = SearchMode::kDefault};
  for (const Primitive primitive : kPrimitives) {
    CpuSearchSpace large(context, MakeTask(primitive, kShape), 1, policy);
    EXPECT_TRUE(Choose(large, policy).decision.id.starts_with("onednn/"));
    CpuSearchSpace tiny(context, MakeTask(primitive, {{1, 2, 5}, {2, 2, 3}}), 1, policy);
    EXPECT_EQ(Choose(tiny, policy).decision.id, "own/gemm");
  }
}

TEST(CpuSearchSpace, ALimitOfWorkspaceLeavesOurOwn) {
  const Context context({.threads = 1});
  const SearchPolicy policy = {
      .mode = SearchMode::kHeuristic, .workspace_limit = 0, .first_choice_seconds = 0};
  CpuSearchSpace space(context, MakeTask(Primitive::kForward, kShape), 1, policy);
  const Selected selected = Choose(space, policy);
  EXPECT_EQ(selected.decision.workspace, 0U);
  EXPECT_EQ(selected.decision.id, "own/gemm");
}

TEST(CpuSearchSpace, TimesAllInABenchmark) {
  const Context context({.threads = 1});
  int timed = 0;
  const SearchPolicy policy = {
      .mode = SearchMode::kBenchmark, .on_progress = [&](const SearchProgress& progress) {
        timed += progress.milliseconds > 0 ? 1 : 0;
        EXPECT_EQ(progress.rejection, "");
        EXPECT_TRUE(internal::CandidateName::Read(progress.candidate)) << progress.candidate;
        EXPECT_NE(progress.problem.find("on the CPU with 1 thread"), std::string::npos);
      }};
  CpuSearchSpace space(context, MakeTask(Primitive::kForward, kShape), 1, policy);
  std::vector<Rejection> rejections;
  const auto candidates = space.List(0, &rejections).size() + space.List(1, &rejections).size();
  const Selected selected = Choose(space, policy);
  EXPECT_EQ(static_cast<std::size_t>(timed), candidates);
  EXPECT_GE(candidates, 3U);
  EXPECT_GT(selected.decision.milliseconds, 0);
}

TEST(CpuSearchSpace, SaysOfAnIdThatItIsNoCandidate) {
  const Context context({.threads = 1});
  CpuSearchSpace space(context, MakeTask(Primitive::kForward, kShape), 1, {});
  EXPECT_EQ(space.Build("graph/1").status().message(), "'graph/1' is no candidate on the CPU");
}

}  // namespace
}  // namespace gradsmith::conv
