#include "conv/onednn/padding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "conv/onednn/convolution.h"
#include "conv/primitives.h"
#include "core/candidate_name.h"
#include "core/decision_file.h"
#include "gradsmith/context.h"
#include "runtime/onednn/conv_task_data.h"
#include "support/scratch_folder.h"

/// Zero times what is not finite, through each of oneDNN's kernels.
namespace gradsmith::conv {
namespace {

using internal::Candidate;
using internal::DecisionFile;
using internal::Rejection;
using internal::StoredDecision;
using reference::Random;
using support::ScratchFolder;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// What meets the padding of a primitive's other operand.
Operand MultiplierOf(Primitive primitive) {
  return primitive == Primitive::kBackwardFilter ? kY : kW;
}

Status RunWith(const std::string& decisions, TaskData& data, int* searches = nullptr) {
  ContextOptions options;
  options.threads = 1;
  options.first_choice_seconds = 0;
  options.cache = decisions;
  options.on_search_progress = [searches](const SearchProgress&) {
    if (searches != nullptr) {
      ++*searches;
    }
  };
  const std::array<void*, kCpuOperands> operands = data.Operands();
  data.result().Poison();
  return RunPrimitive(
      Context(options), data.task().primitive, data.task().problem,
      {operands[kX], operands[kW], operands[kY]}, nullptr);
}

void ExpectSame(const Values& actual, const Values& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
        << "[" << i << "] is " << actual[i] << "; expected " << expected[i];
  }
}

/// Runs the task with each of oneDNN's kernels for it, chosen by what a file remembers.
void ExpectRightWithEveryKernel(TaskData& data) {
  const ScratchFolder folder;
  const std::string first = folder.path() + "/first.txt";
  ASSERT_TRUE(RunWith(first, data).ok());
  std::vector<std::string> warnings;
  std::vector<StoredDecision> decisions = DecisionFile(first).Read(&warnings);
  ASSERT_EQ(decisions.size(), 1U);
  const Values expected = data.Expected();
  std::vector<Rejection> rejections;
  for (const Candidate& candidate : ListOneDnn(data.task(), 1, &rejections)) {
    SCOPED_TRACE(Describe(data.task()) + ": " + candidate.id);
    std::string path = candidate.id + ".txt";
    std::ranges::replace(path, '/', '_');
    path = folder.path() + "/" + path;
    decisions[0].decision.id = internal::NameOfVariant(kOneDnn, candidate.id);
    ASSERT_TRUE(DecisionFile(path).Replace(decisions).ok());
    int searches = 0;
    ASSERT_TRUE(RunWith(path, data, &searches).ok());
    EXPECT_EQ(searches, 0);
    ExpectSame(data.result().Values(), expected);
  }
}

/// Plants each value at a place of what meets the padding.
void ExpectRightWherePlanted(const ConvShape& shape, Random& random) {
  for (const Primitive primitive : kPrimitives) {
    for (const double value : {kNaN, kInf, -kInf}) {
      const Layout layout = random.Choice<Layout>({Layout::kContiguous, Layout::kChannelsLast});
      TaskData data(primitive, MakeProblem(shape), {layout, layout, layout}, false, random);
      data.Plant(MultiplierOf(primitive), value, random.Chance(0.5) ? 1.0 : random.Real(0, 1));
      ExpectRightWithEveryKernel(data);
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
}

TEST(OneDnnPadding, MeetsNothingThatIsNotFinite) {
  Random random("what is not finite, at oneDNN's borders");
  for (const ConvShape& shape : std::vector<ConvShape>{
           {{2, 16, 9, 9}, {16, 16, 3, 3}, {.pads = {1, 1, 1, 1}}},
           {{1, 16, 9, 9}, {16, 16, 3, 3}},
           {{1, 3, 9, 9}, {16, 3, 3, 3}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}},
           {{1, 8, 11}, {8, 8, 3}, {.strides = {2}, .pads = {2, 2}, .dilations = {3}}},
           {{1, 16, 8, 8}, {16, 1, 3, 3}, {.pads = {2, 1, 0, 1}, .group = 16}},
           {{1, 16, 8, 8}, {16, 16, 1, 1}, {.strides = {2, 2}}},
           {{1, 16, 8, 8}, {16, 16, 2, 2}, {.strides = {2, 2}}},
           {{1, 8, 4, 5, 6}, {8, 8, 2, 3, 2}, {.pads = {1, 1, 1, 1, 1, 1}}}}) {
    for (int draw = 0; draw < 3 && !HasFailure(); ++draw) {
      ExpectRightWherePlanted(shape, random);
    }
  }
}

/// Nothing in the result tells of some of what is multiplied with padding alone.
TEST(OneDnnPadding, MayBeAllThatSomethingMeets) {
  Random random("nothing but padding");
  for (const ConvShape& shape : std::vector<ConvShape>{
           // The only position reads x nowhere.
           {{1, 16, 1}, {16, 16, 1}, {.strides = {3}, .pads = {1, 1}}},
           {{1, 16, 1, 5}, {16, 16, 1, 3}, {.strides = {3, 1}, .pads = {1, 1, 1, 1}}},
           {{1, 1, 1}, {1, 1, 1}, {.strides = {3}, .pads = {1, 1}}},
           // The outer taps read x nowhere.
           {{1, 16, 2}, {16, 16, 3}, {.pads = {4, 4}, .dilations = {4}}},
           {{1, 16, 1, 1}, {16, 16, 3, 3}, {.pads = {1, 1, 1, 1}}},
           {{1, 16, 6, 2}, {16, 16, 2, 3}, {.pads = {0, 4, 0, 4}, .dilations = {1, 4}}},
           // The outer positions read x nowhere.
           {{1, 16, 3}, {16, 16, 1}, {.pads = {2, 2}}},
           {{1, 16, 3, 4}, {16, 16, 1, 2}, {.pads = {2, 3, 2, 3}}}}) {
    for (int draw = 0; draw < 4 && !HasFailure(); ++draw) {
      ExpectRightWherePlanted(shape, random);
    }
  }
}

TEST(OneDnnPadding, IsNotSuspectedWhereThereIsNone) {
  Random random("no padding");
  const auto is_suspect = [&](Primitive primitive, const ConvShape& shape) {
    TaskData data(primitive, MakeProblem(shape), {}, false, random);
    data.Plant(MultiplierOf(primitive), kNaN, 1);
    Values all(data.result().Values().size(), kNaN);
    data.result().Fill(all);
    const std::array<void*, kCpuOperands> operands = data.Operands();
    return MayHaveMultipliedPadding(
        primitive, data.task().problem, {operands[kX], operands[kW], operands[kY]});
  };
  const ConvShape valid = {{1, 4, 9, 9}, {4, 4, 3, 3}};
  EXPECT_FALSE(is_suspect(Primitive::kForward, valid));
  EXPECT_FALSE(is_suspect(Primitive::kBackwardFilter, valid));
  // A gradient's patches reach beyond it: the first position of x is read with one tap.
  EXPECT_TRUE(is_suspect(Primitive::kBackwardData, valid));
  for (const ConvShape& shape : std::vector<ConvShape>{
           {{1, 4, 9, 9}, {4, 4, 1, 1}}, {{1, 4, 8, 9}, {4, 4, 2, 3}, {.strides = {2, 3}}}}) {
    for (const Primitive primitive : kPrimitives) {
      EXPECT_FALSE(is_suspect(primitive, shape));
    }
  }
  const ConvShape padded = {{1, 4, 9, 9}, {4, 4, 3, 3}, {.pads = {0, 1, 0, 0}}};
  for (const Primitive primitive : kPrimitives) {
    EXPECT_TRUE(is_suspect(primitive, padded));
  }
  // No tap reads the positions of x between.
  EXPECT_TRUE(
      is_suspect(Primitive::kBackwardData, {{1, 4, 8, 8}, {4, 4, 1, 1}, {.strides = {2, 2}}}));
}

}  // namespace
}  // namespace gradsmith::conv
