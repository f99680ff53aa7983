#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "conv/kernels.h"
#include "conv/problem.h"
#include "core/cpu_candidates.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "support/elements.h"
#include "support/test_tensor.h"

namespace gradsmith::conv {
namespace {

using reference::Random;
using support::Layout;
using support::TestTensor;
using Sizes = std::vector<std::int64_t>;
using Values = std::vector<double>;

Context ContextWith(int threads) {
  ContextOptions options;
  options.threads = threads;
  return Context(options);
}

/// A convolution from x to y in plain numbers: y (N, M, O...) from x (N, C, D...) and w (M, C /
/// group, K...). Lists have an entry for each spatial axis.
struct Sums {
  std::int64_t N = 1;
  std::int64_t C = 1;
  std::int64_t M = 1;
  std::int64_t group = 1;
  Sizes D;
  Sizes K;
  Sizes O;
  Sizes strides;
  Sizes dilations;
  Sizes pads_begin;

  [[nodiscard]] Sizes XDims() const { return Shape(N, C, D); }
  [[nodiscard]] Sizes WDims() const { return Shape(M, C / group, K); }
  [[nodiscard]] Sizes YDims() const { return Shape(N, M, O); }

  static Sizes Shape(std::int64_t outer, std::int64_t channels, const Sizes& spatial) {
    Sizes shape = {outer, channels};
    shape.insert(shape.end(), spatial.begin(), spatial.end());
    return shape;
  }
};

std::int64_t Count(const Sizes& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

/// Calls visit(position) for every index of the dims.
void ForEachIndex(const Sizes& dims, const std::function<void(const Sizes&)>& visit) {
  Sizes index(dims.size());
  for (std::int64_t left = Count(dims); left > 0; --left) {
    visit(index);
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) {
        break;
      }
      index[axis] = 0;
    }
  }
}

std::int64_t Flatten(const Sizes& dims, const Sizes& index) {
  std::int64_t flat = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    flat = flat * dims[axis] + index[axis];
  }
  return flat;
}

/// The definition: calls term(y, x, w) with the flattened indices of every product that a
/// convolution sums.
template <typename Term>
void ForEachTerm(const Sums& sums, const Term& term) {
  const std::int64_t channels = sums.C / sums.group;
  const std::int64_t filters = sums.M / sums.group;
  Sizes x_index(sums.D.size());
  ForEachIndex(sums.O, [&](const Sizes& o) {
    ForEachIndex(sums.K, [&](const Sizes& k) {
      for (std::size_t i = 0; i < o.size(); ++i) {
        x_index[i] = o[i] * sums.strides[i] + k[i] * sums.dilations[i] - sums.pads_begin[i];
        if (x_index[i] < 0 || x_index[i] >= sums.D[i]) {
          return;
        }
      }
      const std::int64_t x_position = Flatten(sums.D, x_index);
      const std::int64_t y_position = Flatten(sums.O, o);
      const std::int64_t tap = Flatten(sums.K, k);
      for (std::int64_t n = 0; n < sums.N; ++n) {
        for (std::int64_t m = 0; m < sums.M; ++m) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const std::int64_t x_channel = (m / filters) * channels + c;
            term(
                (n * sums.M + m) * Count(sums.O) + y_position,
                (n * sums.C + x_channel) * Count(sums.D) + x_position,
                (m * channels + c) * Count(sums.K) + tap);
          }
        }
      }
    });
  });
}

Values NaiveForward(const Sums& sums, const Values& x, const Values& w) {
  Values y(Count(sums.YDims()));
  ForEachTerm(sums, [&](auto iy, auto ix, auto iw) { y[iy] += x[ix] * w[iw]; });
  return y;
}

Values NaiveBackwardData(const Sums& sums, const Values& y, const Values& w) {
  Values x(Count(sums.XDims()));
  ForEachTerm(sums, [&](auto iy, auto ix, auto iw) { x[ix] += y[iy] * w[iw]; });
  return x;
}

Values NaiveBackwardFilter(const Sums& sums, const Values& x, const Values& y) {
  Values w(Count(sums.WDims()));
  ForEachTerm(sums, [&](auto iy, auto ix, auto iw) { w[iw] += y[iy] * x[ix]; });
  return w;
}

/// Sums of (N, channels, positions) over all but channels.
Values NaiveBias(const Values& values, std::int64_t channels, std::int64_t positions) {
  Values sums(channels);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[(static_cast<std::int64_t>(i) / positions) % channels] += values[i];
  }
  return sums;
}

void AddBias(const Values& bias, std::int64_t positions, Values* values) {
  for (std::size_t i = 0; i < values->size(); ++i) {
    (*values)[i] +=
        bias[(static_cast<std::int64_t>(i) / positions) % static_cast<std::int64_t>(bias.size())];
  }
}

IntList List(const Sizes& sizes) {
  return support::ToIntList(sizes);
}

/// How tensors lie in memory: what is read, and what is written.
struct Layouts {
  Layout in = Layout::kContiguous;
  Layout out = Layout::kContiguous;
};

/// Attributes of Conv and ConvTranspose alike, and the sums they mean.
struct Problem {
  Sums sums;
  TransposedAttributes attributes;
  bool transposed = false;

  /// X and Y as the op has them.
  [[nodiscard]] Sizes XDims() const { return transposed ? sums.YDims() : sums.XDims(); }
  [[nodiscard]] Sizes YDims() const { return transposed ? sums.XDims() : sums.YDims(); }
  [[nodiscard]] std::int64_t YChannels() const { return transposed ? sums.C : sums.M; }
  [[nodiscard]] std::int64_t YPositions() const { return Count(transposed ? sums.D : sums.O); }

  [[nodiscard]] Values Y(const Values& x, const Values& w) const {
    return transposed ? NaiveBackwardData(sums, x, w) : NaiveForward(sums, x, w);
  }
  [[nodiscard]] Values DX(const Values& dy, const Values& w) const {
    return transposed ? NaiveForward(sums, dy, w) : NaiveBackwardData(sums, dy, w);
  }
  [[nodiscard]] Values DW(const Values& x, const Values& dy) const {
    return transposed ? NaiveBackwardFilter(sums, dy, x) : NaiveBackwardFilter(sums, x, dy);
  }
};

std::string Describe(const Problem& problem, DataType type, const Layouts& layouts) {
  const TransposedAttributes& attributes = problem.attributes;
  std::ostringstream text;
  text << (problem.transposed ? "ConvTranspose " : "Conv ") << ToString(type) << " layouts "
       << static_cast<int>(layouts.in) << ", " << static_cast<int>(layouts.out) << " X "
       << support::ToString(problem.XDims()) << " W " << support::ToString(problem.sums.WDims())
       << " Y " << support::ToString(problem.YDims()) << " group " << attributes.group
       << " strides " << ToString(attributes.strides) << " pads " << ToString(attributes.pads)
       << " dilations " << ToString(attributes.dilations) << " output_padding "
       << ToString(attributes.output_padding);
  return text.str();
}

/// The tensors of a problem and their results.
class OpRun {
 public:
  OpRun(const Problem& problem, DataType type, Layouts layouts)
      : problem_(problem),
        x_(type, problem.XDims(), layouts.in),
        w_(type, problem.sums.WDims(), layouts.in),
        b_(type, {problem.YChannels()}, layouts.in),
        dy_(type, problem.YDims(), layouts.in),
        y_(type, problem.YDims(), layouts.out),
        dx_(type, problem.XDims(), layouts.out),
        dw_(type, problem.sums.WDims(), layouts.out),
        db_(type, {problem.YChannels()}, layouts.out) {}

  /// Fills every input with numbers from `draw`.
  void FillInputs(const std::function<double()>& draw) {
    for (TestTensor* tensor : {&x_, &w_, &b_, &dy_}) {
      Values values(Count(tensor->dims()));
      std::generate(values.begin(), values.end(), draw);
      tensor->Fill(values);
    }
  }

  Status Forward(const Context& context, bool with_bias) {
    const ConstTensorRef x = x_.Ref();
    const ConstTensorRef w = w_.Ref();
    const ConstTensorRef b = with_bias ? b_.Ref() : TensorRef();
    const TensorRef y = y_.Ref();
    const Conv::Inputs inputs{.X = &x, .W = &w, .B = &b};
    const Conv::Outputs outputs{.Y = &y};
    return problem_.transposed
               ? ConvTranspose::RunCpu(context, problem_.attributes, inputs, outputs)
               : Conv::RunCpu(context, problem_.attributes, inputs, outputs);
  }

  /// Computes the gradients that are asked for.
  Status Backward(const Context& context, bool with_dx, bool with_dw, bool with_db) {
    const ConstTensorRef dy = dy_.Ref();
    const ConstTensorRef x = x_.Ref();
    const ConstTensorRef w = w_.Ref();
    const TensorRef dx = with_dx ? dx_.Ref() : TensorRef();
    const TensorRef dw = with_dw ? dw_.Ref() : TensorRef();
    const TensorRef db = with_db ? db_.Ref() : TensorRef();
    const ConvGrad::Inputs inputs{.dY = &dy, .X = &x, .W = &w};
    const ConvGrad::Outputs outputs{.dX = &dx, .dW = &dw, .dB = &db};
    return problem_.transposed
               ? ConvTransposeGrad::RunCpu(context, problem_.attributes, inputs, outputs)
               : ConvGrad::RunCpu(context, problem_.attributes, inputs, outputs);
  }

  void RunAll(const Context& context, bool with_bias) {
    const Status forward = Forward(context, with_bias);
    ASSERT_TRUE(forward.ok()) << forward.message();
    const Status backward = Backward(context, true, true, true);
    ASSERT_TRUE(backward.ok()) << backward.message();
  }

  [[nodiscard]] Values ExpectedY(bool with_bias) const {
    Values y = problem_.Y(x_.Values(), w_.Values());
    if (with_bias) {
      AddBias(b_.Values(), problem_.YPositions(), &y);
    }
    return y;
  }
  [[nodiscard]] Values ExpectedDX() const { return problem_.DX(dy_.Values(), w_.Values()); }
  [[nodiscard]] Values ExpectedDW() const { return problem_.DW(x_.Values(), dy_.Values()); }
  [[nodiscard]] Values ExpectedDB() const {
    return NaiveBias(dy_.Values(), problem_.YChannels(), problem_.YPositions());
  }

  [[nodiscard]] const TestTensor& y() const { return y_; }
  [[nodiscard]] const TestTensor& dx() const { return dx_; }
  [[nodiscard]] const TestTensor& dw() const { return dw_; }
  [[nodiscard]] const TestTensor& db() const { return db_; }

  void ExpectExact(bool with_bias) const {
    ExpectExact(y_, ExpectedY(with_bias), "Y");
    ExpectExact(dx_, ExpectedDX(), "dX");
    ExpectExact(dw_, ExpectedDW(), "dW");
    ExpectExact(db_, ExpectedDB(), "dB");
  }

 private:
  static void ExpectExact(const TestTensor& tensor, const Values& expected, std::string_view name) {
    EXPECT_EQ(tensor.Values(), support::RoundAll(tensor.type(), expected)) << name;
    EXPECT_TRUE(tensor.SurroundingsIntact()) << name;
  }

  Problem problem_;
  TestTensor x_;
  TestTensor w_;
  TestTensor b_;
  TestTensor dy_;
  TestTensor y_;
  TestTensor dx_;
  TestTensor dw_;
  TestTensor db_;
};

std::function<double()> SmallIntegers(Random& random) {
  return [&random] { return static_cast<double>(random.Integer(-2, 2)); };
}

/// Conv from pads (begins, then ends); every list empty or complete.
Problem ConvProblem(
    std::int64_t N,
    std::int64_t C,
    std::int64_t M,
    const Sizes& D,
    const Sizes& K,
    const Attributes& attributes) {
  const std::size_t rank = D.size();
  Problem problem;
  problem.attributes = {attributes};
  problem.sums = {
      .N = N,
      .C = C,
      .M = M,
      .group = attributes.group,
      .D = D,
      .K = K,
      .O = Sizes(rank),
      .strides = Sizes(rank, 1),
      .dilations = Sizes(rank, 1),
      .pads_begin = Sizes(rank, 0)};
  Sums& sums = problem.sums;
  for (int i = 0; i < static_cast<int>(rank); ++i) {
    sums.strides[i] = attributes.strides.empty() ? 1 : attributes.strides[i];
    sums.dilations[i] = attributes.dilations.empty() ? 1 : attributes.dilations[i];
    sums.pads_begin[i] = attributes.pads.empty() ? 0 : attributes.pads[i];
    const std::int64_t pad_end =
        attributes.pads.empty() ? 0 : attributes.pads[i + static_cast<int>(rank)];
    const std::int64_t span = sums.dilations[i] * (K[i] - 1) + 1;
    const std::int64_t padded = D[i] + sums.pads_begin[i] + pad_end;
    sums.O[i] = padded < span ? 0 : (padded - span) / sums.strides[i] + 1;
  }
  return problem;
}

/// ConvTranspose: D is the spatial dims of the op's X, C its channels, M those of Y.
Problem TransposeProblem(
    std::int64_t N,
    std::int64_t C,
    std::int64_t M,
    const Sizes& D,
    const Sizes& K,
    const TransposedAttributes& attributes) {
  const int rank = static_cast<int>(D.size());
  Problem problem = ConvProblem(N, M, C, D, K, attributes);
  problem.attributes = attributes;
  problem.transposed = true;
  Sums& sums = problem.sums;
  sums.O = D;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t pad_end = attributes.pads.empty() ? 0 : attributes.pads[i + rank];
    const std::int64_t extra = attributes.output_padding.empty() ? 0 : attributes.output_padding[i];
    sums.D[i] = D[i] == 0 ? 0
                          : sums.strides[i] * (D[i] - 1) + extra + sums.dilations[i] * (K[i] - 1) +
                                1 - sums.pads_begin[i] - pad_end;
  }
  return problem;
}

Sizes Draw(Random& random, std::size_t count, std::int64_t low, std::int64_t high) {
  Sizes sizes(count);
  std::generate(sizes.begin(), sizes.end(), [&] { return random.Integer(low, high); });
  return sizes;
}

/// Any shapes and attributes that the rules allow.
Problem RandomProblem(Random& random) {
  const std::size_t rank = random.Integer(1, 3);
  const bool transposed = random.Chance(0.5);
  TransposedAttributes attributes;
  attributes.group = random.Chance(0.3) ? random.Integer(2, 3) : 1;
  attributes.strides = List(Draw(random, rank, 1, random.Chance(0.5) ? 1 : 4));
  attributes.dilations = List(Draw(random, rank, 1, random.Chance(0.5) ? 1 : 3));
  attributes.pads = List(Draw(random, 2 * rank, 0, random.Chance(0.5) ? 0 : 3));
  const std::int64_t N = random.Integer(random.Chance(0.1) ? 0 : 1, 3);
  // Sometimes enough channels for the channels-last order.
  const auto channels = [&] {
    return random.Chance(0.2) ? random.Integer(15, 18) : random.Integer(0, 4);
  };
  const std::int64_t C = attributes.group * channels();
  const std::int64_t M = attributes.group * channels();
  const Sizes D = Draw(random, rank, random.Chance(0.1) ? 0 : 1, 7);
  const Sizes K = Draw(random, rank, 1, 3);
  if (!transposed) {
    return ConvProblem(N, C, M, D, K, attributes);
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int>(i);
    const std::int64_t limit = std::max(attributes.strides[axis], attributes.dilations[axis]);
    attributes.output_padding.push_back(random.Integer(0, limit - 1));
  }
  return TransposeProblem(N, C, M, D, K, attributes);
}

bool IsAllowed(const Problem& problem) {
  const Sums& sums = problem.sums;
  for (std::size_t i = 0; i < sums.D.size(); ++i) {
    if (sums.D[i] < 0 || (sums.O[i] == 0 && sums.D[i] > 0)) {
      return false;
    }
  }
  return true;
}

class ConvSweep : public testing::TestWithParam<DataType> {};

TEST_P(ConvSweep, AgreesExactlyWithTheDefinition) {
  Random random("conv sweep");
  const std::vector<Layout> in = {
      Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided, Layout::kBroadcast};
  const std::vector<Layout> out = {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided};
  const std::array<Context, 2> contexts = {ContextWith(1), ContextWith(2)};
  for (int tried = 0; tried < 250;) {
    const Problem problem = RandomProblem(random);
    if (!IsAllowed(problem)) {
      continue;
    }
    const Layouts layouts{.in = random.Choice(in), .out = random.Choice(out)};
    SCOPED_TRACE(Describe(problem, GetParam(), layouts));
    const bool with_bias = random.Chance(0.5);
    OpRun run(problem, GetParam(), layouts);
    run.FillInputs(SmallIntegers(random));
    run.RunAll(contexts[tried % 2], with_bias);
    run.ExpectExact(with_bias);
    if (HasFailure()) {
      return;
    }
    ++tried;
  }
}

/// Large enough for several blocks of every kind: of positions, of channels on either side, of
/// terms.
TEST_P(ConvSweep, AgreesAcrossBlocks) {
  const std::vector<Problem> problems = {
      ConvProblem(1, 2, 3, {75, 71}, {3, 2}, {.strides = {}, .pads = {1, 1, 1, 0}}),
      ConvProblem(2, 3, 300, {6, 5}, {2, 2}, {}),
      ConvProblem(1, 290, 5, {4, 5}, {3, 3}, {.pads = {1, 1, 1, 1}}),
      ConvProblem(40, 20, 20, {3, 2}, {2, 2}, {.pads = {1, 0, 0, 1}}),
      ConvProblem(
          3, 6, 12, {40, 33}, {3, 3}, {.strides = {2, 3}, .pads = {1, 1, 1, 1}, .group = 6}),
      ConvProblem(2, 1, 1, {9000}, {5}, {.strides = {3}, .pads = {2, 2}, .dilations = {2}}),
      TransposeProblem(2, 40, 7, {20, 21}, {4, 3}, {{.strides = {2, 3}, .pads = {1, 0, 1, 1}}}),
      TransposeProblem(1, 300, 290, {4}, {2}, {}),
  };
  const Context context = ContextWith(2);
  Random random("conv blocks");
  for (const Problem& problem : problems) {
    for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
      const Layouts layouts{.in = layout, .out = layout};
      SCOPED_TRACE(Describe(problem, GetParam(), layouts));
      OpRun run(problem, GetParam(), layouts);
      // Few are not zero, so that sums stay exact in every type.
      run.FillInputs(
          [&] { return random.Chance(0.05) ? static_cast<double>(random.Integer(-2, 2)) : 0.0; });
      run.RunAll(context, true);
      run.ExpectExact(true);
    }
  }
}

TEST_P(ConvSweep, SumsAreNotRoundedOnTheWay) {
  // 4096 ones: neither half nor bf16 can count so far one by one.
  const Problem problem = ConvProblem(64, 64, 1, {8, 8}, {8, 8}, {});
  OpRun run(problem, GetParam(), {});
  run.FillInputs([] { return 1.0; });
  run.RunAll(ContextWith(1), false);
  run.ExpectExact(false);
  EXPECT_EQ(run.y().Values(), Values(64, 4096.0));

  const Problem many_images = ConvProblem(64, 1, 2, {8, 8}, {1, 1}, {});
  OpRun sums(many_images, GetParam(), {});
  sums.FillInputs([] { return 1.0; });
  sums.RunAll(ContextWith(1), false);
  EXPECT_EQ(sums.dw().Values(), Values(2, 4096.0));
  EXPECT_EQ(sums.db().Values(), Values(2, 4096.0));
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    ConvSweep,
    testing::Values(DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16),
    [](const auto& test) { return std::string(ToString(test.param)); });

double NormOfDifference(const Values& actual, const Values& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(actual[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(difference / norm);
}

TEST(ConvAccuracy, FloatAgreesToAMillionthOfTheNorm) {
  const TransposedAttributes attributes{{.pads = {1, 1, 1, 1}}};
  // The second draws positive numbers, whose partial sums are large.
  for (const double low : {-1.0, 0.5}) {
    for (const Problem& problem :
         {ConvProblem(4, 32, 16, {16, 16}, {3, 3}, attributes),
          TransposeProblem(4, 32, 16, {16, 16}, {3, 3}, attributes)}) {
      Random random("conv accuracy");
      OpRun run(problem, DataType::kFloat, {});
      run.FillInputs([&] { return random.Real(low, 1); });
      run.RunAll(ContextWith(2), true);
      EXPECT_LT(NormOfDifference(run.y().Values(), run.ExpectedY(true)), 1e-6);
      EXPECT_LT(NormOfDifference(run.dx().Values(), run.ExpectedDX()), 1e-6);
      EXPECT_LT(NormOfDifference(run.dw().Values(), run.ExpectedDW()), 1e-6);
      EXPECT_LT(NormOfDifference(run.db().Values(), run.ExpectedDB()), 1e-7);
    }
  }
}

TEST(ConvAccuracy, DoubleAgreesToItsRounding) {
  const Problem problem = ConvProblem(4, 16, 8, {12, 12}, {3, 3}, {.strides = {2, 1}});
  Random random("conv accuracy in double");
  OpRun run(problem, DataType::kDouble, {});
  run.FillInputs([&] { return random.Real(-1, 1); });
  run.RunAll(ContextWith(2), true);
  EXPECT_LT(NormOfDifference(run.y().Values(), run.ExpectedY(true)), 2e-15);
  EXPECT_LT(NormOfDifference(run.dx().Values(), run.ExpectedDX()), 2e-15);
  EXPECT_LT(NormOfDifference(run.dw().Values(), run.ExpectedDW()), 2e-15);
  EXPECT_LT(NormOfDifference(run.db().Values(), run.ExpectedDB()), 2e-15);
}

TEST(ConvRepeatability, BitsDoNotDependOnThreads) {
  const std::vector<Problem> problems = {
      ConvProblem(9, 24, 20, {15, 13}, {3, 3}, {.strides = {2, 1}, .pads = {1, 1, 1, 1}}),
      ConvProblem(5, 6, 6, {31, 29}, {3, 3}, {.pads = {0, 1, 2, 1}, .group = 6}),
      ConvProblem(70, 33, 65, {4, 4}, {1, 1}, {}),
      TransposeProblem(6, 30, 7, {9, 11}, {3, 4}, {{.strides = {2, 3}}})};
  for (const Problem& problem : problems) {
    for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
      if (type == DataType::kFloat && internal::CpuHasCandidates()) {
        continue;  // oneDNN's kernels promise less
      }
      Random random("conv repeatability");
      OpRun run(problem, type, {});
      run.FillInputs([&] { return random.Real(-1, 1); });
      std::vector<std::vector<std::byte>> first;
      for (const int threads : {1, 2, 5, 5}) {
        run.RunAll(ContextWith(threads), true);
        const std::vector<std::vector<std::byte>> bytes = {
            run.y().ElementBytes(), run.dx().ElementBytes(), run.dw().ElementBytes(),
            run.db().ElementBytes()};
        first = first.empty() ? bytes : first;
        EXPECT_EQ(bytes, first) << Describe(problem, type, {}) << ", " << threads << " threads";
      }
    }
  }
}

TEST(ConvOutputs, AreComputedOnlyIfAskedFor) {
  const Problem conv = ConvProblem(2, 4, 6, {5, 4}, {2, 3}, {.pads = {1, 0, 0, 1}, .group = 2});
  const Problem transpose =
      TransposeProblem(2, 4, 6, {5, 4}, {2, 3}, {{.strides = {2, 1}, .group = 2}});
  const Context context = ContextWith(1);
  for (const Problem& problem : {conv, transpose}) {
    for (int subset = 0; subset < 8; ++subset) {
      const bool with_dx = (subset & 1) != 0;
      const bool with_dw = (subset & 2) != 0;
      const bool with_db = (subset & 4) != 0;
      Random random("conv outputs");
      OpRun run(problem, DataType::kFloat, {});
      run.FillInputs(SmallIntegers(random));
      ASSERT_TRUE(run.Backward(context, with_dx, with_dw, with_db).ok());
      const auto untouched = [](const TestTensor& tensor) {
        const Values values = tensor.Values();
        return std::all_of(
            values.begin(), values.end(), [](double value) { return std::isnan(value); });
      };
      EXPECT_EQ(untouched(run.dx()), !with_dx);
      EXPECT_EQ(untouched(run.dw()), !with_dw);
      EXPECT_EQ(untouched(run.db()), !with_db);
      EXPECT_TRUE(!with_dx || run.dx().Values() == run.ExpectedDX());
      EXPECT_TRUE(!with_dw || run.dw().Values() == run.ExpectedDW());
      EXPECT_TRUE(!with_db || run.db().Values() == run.ExpectedDB());
    }
  }
}

}  // namespace
}  // namespace gradsmith::conv
