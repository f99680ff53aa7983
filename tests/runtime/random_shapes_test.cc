#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "reference/batch_norm.h"
#include "reference/conv.h"
#include "reference/random.h"
#include "support/checks.h"
#include "support/turns.h"

/// Hundreds of problems that are in no schema, drawn at random and the same in each run: exact
/// against the oracle, through the dynamic door, for every row of each op.
namespace gradsmith {
namespace {

using reference::Oracle;
using reference::Random;
using reference::Shape;
using reference::Shapes;
using support::Case;
using support::Layout;

constexpr int kProblems = 300;
constexpr int kLargeProblems = 5;

/// The sum of many equal numbers fits no 16-bit type, so large problems broadcast nothing.
Layout DrawLayout(Random& random, bool large) {
  return random.Choice<Layout>(
      {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided,
       large ? Layout::kStrided : Layout::kBroadcast});
}

/// Mostly small and sometimes 0.
std::int64_t DrawCount(Random& random, std::int64_t largest) {
  return random.Chance(0.05) ? 0 : random.Integer(1, largest);
}

Shape DrawList(Random& random, int length, std::int64_t low, std::int64_t high) {
  Shape list;
  for (int i = 0; i < length; ++i) {
    list.push_back(random.Integer(low, high));
  }
  return list;
}

/// The case with the shapes that an op's schema asks for, taken from `shapes` by name.
Case MakeCase(const OpSchema& op, const Shapes& inputs, const Shapes& outputs) {
  Case problem;
  for (const TensorSpec& spec : op.inputs) {
    problem.inputs.push_back({std::string(spec.name), inputs.find(spec.name)->second});
  }
  for (const TensorSpec& spec : op.outputs) {
    problem.outputs.push_back({std::string(spec.name), outputs.at(std::string(spec.name))});
  }
  return problem;
}

/// An op's oracle, and its forward's where it is a gradient.
struct Oracles {
  const Oracle& op;
  const Oracle& forward;
};

std::vector<Attribute> DrawConvAttributes(Random& random, int rank, bool transposed) {
  const Shape strides = DrawList(random, rank, 1, 4);
  const Shape dilations = DrawList(random, rank, 1, 3);
  std::vector<Attribute> attributes{
      {"strides", support::ToIntList(strides)}, {"dilations", support::ToIntList(dilations)}};
  const std::string auto_pad =
      random.Choice<std::string>({"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  attributes.push_back({"auto_pad", auto_pad});
  const bool to_shape = transposed && auto_pad != "VALID" && random.Chance(0.25);
  if (to_shape) {
    attributes.push_back({"output_shape", support::ToIntList(DrawList(random, rank, 0, 12))});
  } else if (auto_pad == "NOTSET") {
    attributes.push_back({"pads", support::ToIntList(DrawList(random, 2 * rank, 0, 4))});
  }
  if (transposed && random.Chance(0.5)) {
    Shape padding;
    for (int i = 0; i < rank; ++i) {
      padding.push_back(random.Integer(0, std::max(strides[i], dilations[i]) - 1));
    }
    attributes.push_back({"output_padding", support::ToIntList(padding)});
  }
  return attributes;
}

/// The dims of one convolution, or transposed convolution.
struct ConvDims {
  std::int64_t batch = 0;
  std::int64_t group = 1;
  std::int64_t read_channels = 0;
  std::int64_t written_channels = 0;
  Shape spatial = {};
  Shape filter = {};
};

ConvDims DrawSmallConv(int /*i*/, Random& random) {
  const int rank = static_cast<int>(random.Integer(1, 3));
  ConvDims dims{.batch = DrawCount(random, 3), .group = random.Choice<std::int64_t>({1, 1, 2, 3})};
  dims.read_channels = dims.group * DrawCount(random, 4);
  dims.written_channels = dims.group * DrawCount(random, 4);
  for (int i = 0; i < rank; ++i) {
    dims.spatial.push_back(DrawCount(random, rank == 3 ? 5 : 10));
  }
  dims.filter = DrawList(random, rank, 1, 4);
  return dims;
}

/// More channels of either kind, positions or images than kernels take at a time.
ConvDims DrawLargeConv(int i, Random& random) {
  const std::int64_t group = random.Integer(1, 2);
  const std::vector<ConvDims> large = {
      {1, group, group * 5, group * 290, {4, 3}, {2, 1}},
      {1, group, group * 290, group * 5, {4, 3}, {2, 1}},
      {1, group, group * 130, group * 130, {5}, {3}},
      {1, group, group * 2, group * 3, {83, 61}, {2, 2}},
      {700, group, group * 2, group * 3, {3, 4}, {2, 2}}};
  return large[i % large.size()];
}

/// Draws until the oracle says that the problem can be.
Case DrawConv(
    const OpSchema& op,
    const Oracles& oracles,
    bool transposed,
    ConvDims (*draw_dims)(int i, Random& random),
    int i,
    Random& random) {
  for (;;) {
    const ConvDims dims = draw_dims(i, random);
    const std::int64_t read = dims.read_channels;
    const std::int64_t written = dims.written_channels;
    Shape X{dims.batch, read};
    Shape W{transposed ? read : written, (transposed ? written : read) / dims.group};
    X.insert(X.end(), dims.spatial.begin(), dims.spatial.end());
    W.insert(W.end(), dims.filter.begin(), dims.filter.end());
    std::vector<Attribute> attributes =
        DrawConvAttributes(random, static_cast<int>(dims.spatial.size()), transposed);
    attributes.push_back({"group", dims.group});
    const auto oracle_attributes = support::OracleAttributes({}, attributes);
    Shapes inputs{{"X", X}, {"W", W}, {"B", {written}}};
    if (const auto forward = oracles.forward.OutputShapes(inputs, oracle_attributes)) {
      inputs["dY"] = forward->at("Y");
      const Shapes outputs = oracles.op.OutputShapes(inputs, oracle_attributes).value_or(Shapes());
      Case problem = MakeCase(op, inputs, outputs);
      problem.attributes = attributes;
      return problem;
    }
  }
}

Shape DrawSmallBatch(int /*i*/, Random& random) {
  Shape X{DrawCount(random, 8), DrawCount(random, 5)};
  const int rank = static_cast<int>(random.Integer(0, 3));
  for (int i = 0; i < rank; ++i) {
    X.push_back(DrawCount(random, 6));
  }
  return X;
}

/// More elements or channels than kernels take at a time.
Shape DrawLargeBatch(int i, Random& /*random*/) {
  const std::vector<Shape> large = {{2, 3, 9000}, {4100, 3}, {3, 600, 7}, {16, 2, 33, 31}};
  return large[i % large.size()];
}

Case DrawBatchNorm(
    const OpSchema& op,
    const Oracle& oracle,
    bool gradient,
    const Shape& X,
    Random& random) {
  const Shape per_channel{X[1]};
  const Shapes inputs{
      {"X", X},
      {"dY", X},
      {"scale", per_channel},
      {"B", per_channel},
      {"running_mean", per_channel},
      {"running_var", per_channel},
      {"saved_mean", per_channel},
      {"saved_inv_std", per_channel}};
  Case problem = MakeCase(op, inputs, oracle.OutputShapes(inputs, {}).value_or(Shapes()));
  problem.attributes = {{"epsilon", random.Choice<double>({0.25, 1, 1e-5})}};
  if (!gradient) {
    problem.attributes.push_back({"momentum", random.Choice<double>({0, 0.5, 0.9, 1})});
  }
  return problem;
}

std::string Describe(const Case& problem) {
  std::string text;
  for (const support::NamedShape& input : problem.inputs) {
    text += input.name + support::ToString(input.dims) + " ";
  }
  for (const auto& [name, value] : support::OracleAttributes({}, problem.attributes)) {
    text += name + " = ";
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      text += support::ToString(*list);
    } else if (const auto* word = std::get_if<std::string>(&value)) {
      text += *word;
    } else if (const auto* real = std::get_if<double>(&value)) {
      text += std::to_string(*real);
    } else {
      text += std::to_string(std::get<std::int64_t>(value));
    }
    text += " ";
  }
  return text + "layout " + std::to_string(static_cast<int>(problem.layout));
}

class RandomShapesTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (const std::string why = support::WhyUnavailable(GetParam()); !why.empty()) {
      GTEST_SKIP() << why;
    }
    ASSERT_TRUE(RegisterAll(registry_).ok());
  }

  /// Checks each row of the op on problems that `draw` makes.
  template <typename Draw>
  void CheckRows(const std::string& op, const Oracle& oracle, int problems, Draw draw) {
    const support::OpTests tests{.op = op, .oracle = &oracle};
    std::vector<const Row*> rows = registry_.rows();
    std::erase_if(
        rows, [&](const Row* row) { return row->op->name != op || row->backend != GetParam(); });
    if (rows.empty()) {
      GTEST_SKIP() << "the schema has no " << op;
    }
    const int period = PeriodOfRows(rows.size());
    int turn = 0;
    for (int i = 0; i < problems && !HasFailure(); ++i) {
      const std::string seed = op + "/" + std::to_string(problems) + "/" + std::to_string(i);
      Random random(seed);
      Case problem = draw(*rows[0]->op, i, random);
      problem.layout = DrawLayout(random, problems == kLargeProblems);
      for (const Row* row : rows) {
        if (turn++ % period == 0) {
          CheckRow({&registry_, row, &tests}, problem, seed);
        }
      }
    }
  }

  void CheckConv(const std::string& op, const Oracles& oracles, bool transposed) {
    CheckRows(op, oracles.op, kProblems, [&](const OpSchema& schema, int i, Random& random) {
      return DrawConv(schema, oracles, transposed, &DrawSmallConv, i, random);
    });
    CheckRows(op, oracles.op, kLargeProblems, [&](const OpSchema& schema, int i, Random& random) {
      return DrawConv(schema, oracles, transposed, &DrawLargeConv, i, random);
    });
  }

  void CheckBatchNorm(const std::string& op, const Oracle& oracle, bool gradient) {
    CheckRows(op, oracle, kProblems, [&](const OpSchema& schema, int i, Random& random) {
      return DrawBatchNorm(schema, oracle, gradient, DrawSmallBatch(i, random), random);
    });
    CheckRows(op, oracle, kLargeProblems, [&](const OpSchema& schema, int i, Random& random) {
      return DrawBatchNorm(schema, oracle, gradient, DrawLargeBatch(i, random), random);
    });
  }

 private:
  /// Rows share their kernels' code and take turns: how many problems one of them waits, with no
  /// divisor in common with their number. On a GPU they have time for all.
  [[nodiscard]] static int PeriodOfRows(std::size_t rows) {
    const int on_gpu = support::IsEmulated() ? 23 : 1;
    int period = GetParam() == Backend::kCpu ? 3 : on_gpu;
    while (std::gcd(period, static_cast<int>(rows)) != 1) {
      ++period;
    }
    return period;
  }

  static void
  CheckRow(const support::Subject& subject, const Case& problem, const std::string& seed) {
    std::vector checks = {&support::CheckExact, &support::CheckRandom};
    if (subject.row->backend == Backend::kCpu) {
      checks.push_back(&support::CheckNotFinite);
    }
    for (const auto check : checks) {
      for (const std::string& failure : check(subject, problem, seed).failures) {
        ADD_FAILURE() << ToString(*subject.row) << ", " << Describe(problem) << ": " << failure;
      }
    }
  }

  Registry registry_;
};

TEST_P(RandomShapesTest, Conv) {
  const Oracle& oracle = reference::conv::Conv();
  CheckConv("Conv", {oracle, oracle}, /*transposed=*/false);
}

TEST_P(RandomShapesTest, ConvGrad) {
  CheckConv(
      "ConvGrad", {reference::conv::ConvGrad(), reference::conv::Conv()}, /*transposed=*/false);
}

TEST_P(RandomShapesTest, ConvTranspose) {
  const Oracle& oracle = reference::conv::ConvTranspose();
  CheckConv("ConvTranspose", {oracle, oracle}, /*transposed=*/true);
}

TEST_P(RandomShapesTest, ConvTransposeGrad) {
  CheckConv(
      "ConvTransposeGrad", {reference::conv::ConvTransposeGrad(), reference::conv::ConvTranspose()},
      /*transposed=*/true);
}

TEST_P(RandomShapesTest, BatchNormalization) {
  CheckBatchNorm(
      "BatchNormalization", reference::batch_norm::BatchNormalization(), /*gradient=*/false);
}

TEST_P(RandomShapesTest, BatchNormalizationGrad) {
  CheckBatchNorm(
      "BatchNormalizationGrad", reference::batch_norm::BatchNormalizationGrad(),
      /*gradient=*/true);
}

TEST_P(RandomShapesTest, BatchNormalizationRelu) {
  CheckBatchNorm(
      "BatchNormalizationRelu", reference::batch_norm::BatchNormalizationRelu(),
      /*gradient=*/false);
}

TEST_P(RandomShapesTest, BatchNormalizationReluGrad) {
  CheckBatchNorm(
      "BatchNormalizationReluGrad", reference::batch_norm::BatchNormalizationReluGrad(),
      /*gradient=*/true);
}

INSTANTIATE_TEST_SUITE_P(
    Backends,
    RandomShapesTest,
    testing::Values(Backend::kCpu, Backend::kCuda),
    [](const auto& backend) { return std::string(ToString(backend.param)); });

}  // namespace
}  // namespace gradsmith
