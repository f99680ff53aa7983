#include "conv/onednn/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>

#include "cpu/aligned_memory.h"
#include "onednn/library.h"
#include "runtime/onednn/conv_task_data.h"

namespace gradsmith::conv {
namespace {

using internal::Candidate;
using internal::Rejection;
using reference::Random;

std::vector<std::string> Ids(const Task& task, int threads = 1) {
  std::vector<Rejection> rejections;
  std::vector<std::string> ids;
  for (const Candidate& candidate : ListOneDnn(task, threads, &rejections)) {
    ids.push_back(candidate.id);
  }
  return ids;
}

/// Of a float it makes a NaN.
constexpr std::byte kPattern{0xFF};

/// Runs a candidate on the data, and compares exactly.
void ExpectExact(TaskData& data, const std::string& id, int threads) {
  SCOPED_TRACE(Describe(data.task()) + ": " + id + ", threads " + std::to_string(threads));
  const Values expected = data.Expected();
  Result<std::unique_ptr<internal::Plan>> plan = BuildOneDnnPlan(data.task(), threads, id);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::size_t size = (*plan)->workspace();
  const std::array<cpu::AlignedMemory, 2> workspaces = {
      cpu::AlignedMemory(size), cpu::AlignedMemory(size)};
  const std::array<void*, kCpuOperands> operands = data.Operands();
  // Again, as a call that comes back does, in a workspace that has moved.
  for (std::size_t run = 0; run < workspaces.size(); ++run) {
    data.result().Poison();
    for (const cpu::AlignedMemory& workspace : workspaces) {
      std::fill_n(workspace.data(), size, kPattern);
    }
    const Status status =
        (*plan)->Run({.operands = operands, .workspace = workspaces.at(run).data()});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(data.result().Values(), expected);
    EXPECT_TRUE(data.result().SurroundingsIntact());
    const std::byte* other = workspaces.at(1 - run).data();
    EXPECT_TRUE(std::all_of(other, other + size, [](std::byte b) { return b == kPattern; }));
  }
}

Sizes DrawSizes(Random& random, int count, std::int64_t low, std::int64_t high) {
  Sizes sizes;
  for (int i = 0; i < count; ++i) {
    sizes.push_back(random.Integer(low, high));
  }
  return sizes;
}

/// Any convolution with something to sum, of one to three spatial axes.
ConvShape RandomShape(Random& random) {
  const int rank = static_cast<int>(random.Integer(1, 3));
  const std::int64_t group = random.Chance(0.3) ? random.Integer(2, 9) : 1;
  const auto channels = [&] { return random.Integer(1, random.Chance(0.4) ? 17 : 4); };
  ConvShape shape;
  shape.X = {random.Integer(1, 3), group * channels()};
  shape.W = {group * (random.Chance(0.3) ? 1 : channels()), shape.X[1] / group};
  for (int i = 0; i < rank; ++i) {
    shape.X.push_back(random.Integer(5, 9));
    shape.W.push_back(random.Integer(1, 3));
  }
  const auto draw = [&](int count, std::int64_t low, std::int64_t high) {
    return support::ToIntList(DrawSizes(random, count, low, high));
  };
  shape.attributes = {
      .strides = draw(rank, 1, random.Chance(0.5) ? 1 : 3),
      .pads = draw(2 * rank, 0, random.Chance(0.5) ? 0 : 2),
      .dilations = draw(rank, 1, random.Chance(0.5) ? 1 : 2),
      .group = group};
  return shape;
}

TEST(OneDnnConvolution, EveryCandidateIsExact) {
  Random random("oneDNN's candidates");
  std::set<std::string> seen;
  for (int tried = 0; tried < 150; ++tried) {
    const Problem problem = MakeProblem(RandomShape(random));
    const auto layout = [&] {
      return random.Choice<Layout>({Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided});
    };
    for (const Primitive primitive : kPrimitives) {
      const bool bias = primitive != Primitive::kBackwardFilter && random.Chance(0.5);
      TaskData data(primitive, problem, {layout(), layout(), layout()}, bias, random);
      const int threads = 1 + (tried % 2);
      for (const std::string& id : Ids(data.task(), threads)) {
        ExpectExact(data, id, threads);
        seen.insert(std::string(ToString(primitive)) + " " + id);
        if (HasFailure()) {
          return;
        }
      }
    }
  }
  // Of each primitive in either place; which they are depends on the processor.
  for (const Primitive primitive : kPrimitives) {
    for (const char* place : {"blocked", "plain"}) {
      const std::string begin = std::string(ToString(primitive)) + " " + place;
      EXPECT_TRUE(std::ranges::any_of(seen, [&](const std::string& each) {
        return each.starts_with(begin);
      })) << begin;
    }
  }
}

/// The layouts in which activations come, and nothing else.
TEST(OneDnnConvolution, IsOfferedForEitherLayout) {
  Random random("layouts");
  const Problem problem = MakeProblem({{2, 16, 9, 9}, {16, 16, 3, 3}});
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    for (const Primitive primitive : kPrimitives) {
      const TaskData data(primitive, problem, {layout, layout, layout}, false, random);
      const std::vector<std::string> ids = Ids(data.task());
      EXPECT_GE(ids.size(), 2U) << Describe(data.task());
      for (const std::string& id : ids) {
        EXPECT_EQ(id.find("ref"), std::string::npos) << id;
        EXPECT_EQ(id.find("wino"), std::string::npos) << id;
      }
    }
  }
}

TEST(OneDnnConvolution, AnIdThatIsNoneIsAnError) {
  Random random("ids");
  const Problem problem = MakeProblem({{1, 8, 9, 9}, {8, 8, 3, 3}});
  const std::array<Layout, kOperands> layouts = {};
  const TaskData data(Primitive::kForward, problem, layouts, false, random);
  for (const char* id : {"", "blocked/", "blocked/jit:abacus", "elsewhere/jit:avx2"}) {
    const auto plan = BuildOneDnnPlan(data.task(), 1, id);
    ASSERT_FALSE(plan.ok()) << id;
    EXPECT_EQ(plan.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(
        plan.status().message(), onednn::Version() + " has no implementation '" + id + "' of it");
  }
}

TEST(OneDnnLibrary, ErrorsComeBackAsStatus) {
  const Status status =
      onednn::Guarded([] { throw dnnl::error(dnnl_unimplemented, "could not do it"); });
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), onednn::Version() + ": could not do it (unimplemented)");
  const Status memory = onednn::Guarded([] { throw dnnl::error(dnnl_out_of_memory, "none left"); });
  EXPECT_EQ(memory.code(), StatusCode::kOutOfMemory);
  EXPECT_TRUE(onednn::Guarded([] {}).ok());
}

}  // namespace
}  // namespace gradsmith::conv
