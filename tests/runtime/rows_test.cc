#include "patterns/rows.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/ops.h"
#include "patterns/named_dims.h"

/// The pattern `rows`: how tensors become rows, and what the CPU makes of them. The generated tests
/// of its operators test both backends.
namespace gradsmith::internal {
namespace {

/// Of each row the sum, times what its row input says, and X times its column plus the sum;
/// of each column the sum of X * row input.
struct SumsRows : RowsFunctor {
  static constexpr int kInputs = 1;        // X
  static constexpr int kColumnInputs = 1;  // column
  static constexpr int kRowInputs = 1;     // factor
  static constexpr int kOutputs = 1;       // Y
  static constexpr int kColumnSums = 1;    // sums
  static constexpr int kRowOutputs = 1;    // means
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;
  static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  static void
  Terms(int /*phase*/, const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * row.inputs[0];
  }
  template <typename A>
  static void Finish(int /*phase*/, const RowValues<A>& row, A* results) {
    results[0] /= row.length;
  }
  template <typename A>
  static void Map(const RowValues<A>& row, const A* in, const A* columns, A* out) {
    out[0] = in[0] * columns[0] + row.results[0];
  }
  template <typename A>
  static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.results[0];
  }
  template <typename A>
  static void ColumnTerms(const RowValues<A>& row, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0] * row.inputs[0];
  }
};

/// Adds up, for each column, X minus its row's mean as well.
struct DeviationsRows : SumsRows {
  static constexpr int kColumnSums = 2;  // sums, deviations
  static constexpr unsigned kSumsOfResults = 0b10;
  template <typename A>
  static void ColumnTerms(const RowValues<A>& row, const A* in, const A* columns, A* terms) {
    SumsRows::ColumnTerms(row, in, columns, terms);
    terms[1] = in[0] - row.results[0];
  }
};

TensorRef Ref(std::vector<float>& data, const Dims& dims, const Strides& strides) {
  return {DataType::kFloat, data.data(), dims, strides, {}};
}
TensorRef Ref(std::vector<float>& data, const Dims& dims) {
  return Ref(data, dims, ContiguousStrides(dims));
}

std::vector<float> Counted(std::size_t count) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>(i);
  }
  return data;
}

constexpr RowsCounts kOneToOne = {.inputs = 1, .outputs = 1};

TEST(RowsTask, DimsThatOneStrideServesAreOne) {
  std::vector<float> data(120);
  const Dims dims = {2, 3, 4, 5};
  const std::array<TensorRef, 2> tensors = {Ref(data, dims), Ref(data, dims)};
  const RowsTask last = RowsTaskOf(tensors, kOneToOne, AxesFrom(2, 4), {});
  EXPECT_EQ(last.rows, 6);
  EXPECT_EQ(last.length, 20);
  EXPECT_EQ(last.row_rank, 1);
  EXPECT_EQ(last.length_rank, 1);
  EXPECT_EQ(last.row_strides[1][0], 20);
  EXPECT_EQ(last.length_strides[1][0], 1);
  const RowsTask channels = RowsTaskOf(tensors, kOneToOne, AxesFrom(1, 2), {});
  EXPECT_EQ(channels.rows, 40);
  EXPECT_EQ(channels.length, 3);
  EXPECT_EQ(channels.row_rank, 2);
  EXPECT_EQ(channels.row_dims[1], 20);
  EXPECT_EQ(channels.length_strides[0][0], 20);
}

/// What formulas know as two dims, whose places are those of one.
TEST(SplitArguments, DimsCountFromEitherEnd) {
  std::vector<float> data(120);
  const TensorRef x = Ref(data, {2, 6, 5}, {60, 10, 2});
  const std::array<ConstTensorRef, 2> inputs = {x, ConstTensorRef()};
  const std::array<TensorRef, 1> outputs = {Ref(data, {6})};
  const std::array<SplitDim, 4> splits = {
      SplitInput(0, -2, 3), SplitInput(1, 0, 3), SplitOutput(0, 0, 3), SplitOutput(1, 0, 3)};
  const SplitArguments split(inputs, outputs, splits);
  EXPECT_EQ(split.inputs()[0].dims, (Dims{2, 3, 2, 5}));
  EXPECT_EQ(split.inputs()[0].strides, (Strides{60, 20, 10, 2}));
  EXPECT_FALSE(split.inputs()[1].present);
  EXPECT_EQ(split.outputs()[0].dims, (Dims{3, 2}));
  EXPECT_EQ(split.outputs()[0].strides, (Strides{2, 1}));
}

TEST(RowsOnCpu, RowsAndColumnsAroundAnAxis) {
  const Dims dims = {2, 3, 4};
  std::vector<float> x = Counted(24);
  std::vector<float> column = {1, 2, 3};
  std::vector<float> factor = Counted(8);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> y(24, nan);
  std::vector<float> sums(3, nan);
  std::vector<float> means(8, nan);
  const TensorRef of_x = Ref(x, dims);
  const TensorRef of_column = Ref(column, {3});
  const TensorRef of_factor = Ref(factor, {2, 4});
  const TensorRef of_y = Ref(y, dims, {1, 2, 6});
  const TensorRef of_sums = Ref(sums, {3});
  const TensorRef of_means = Ref(means, {2, 4});
  const Status status = RowsOnCpu<SumsRows>(
      Context(), AxesFrom(1, 2), {}, &of_x, &of_column, &of_factor, &of_y, &of_sums, &of_means);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> expected_sums(3);
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t d = 0; d < 4; ++d) {
      const float by = factor[n * 4 + d];
      const float mean = (x[n * 12 + d] + x[n * 12 + 4 + d] + x[n * 12 + 8 + d]) * by / 3;
      EXPECT_FLOAT_EQ(means[n * 4 + d], mean);
      for (std::size_t c = 0; c < 3; ++c) {
        const float of = x[n * 12 + c * 4 + d];
        EXPECT_FLOAT_EQ(y[n + c * 2 + d * 6], of * column[c] + mean);
        expected_sums[c] += of * by;
      }
    }
  }
  EXPECT_EQ(sums, expected_sums);
}

TEST(RowsTask, ChannelsOfEitherLayout) {
  std::vector<float> data(120);
  const Dims dims = {2, 3, 4, 5};
  const RowsAxes axes = ChannelsOf(4, 1);
  const std::array<TensorRef, 2> nchw = {Ref(data, dims), Ref(data, dims)};
  const RowsTask first = RowsTaskOf(nchw, kOneToOne, axes, {});
  EXPECT_EQ(first.rows, 3);
  EXPECT_EQ(first.length, 40);
  ASSERT_EQ(first.length_rank, 2);
  EXPECT_EQ(first.length_dims[0], 2);
  EXPECT_EQ(first.length_dims[1], 20);
  EXPECT_EQ(first.length_strides[1][0], 60);
  EXPECT_EQ(first.row_strides[1][0], 20);
  const TensorRef last = Ref(data, dims, {60, 1, 15, 3});
  const std::array<TensorRef, 2> nhwc = {last, last};
  const RowsTask task = RowsTaskOf(nhwc, kOneToOne, axes, {});
  ASSERT_EQ(task.length_rank, 1);
  EXPECT_EQ(task.length_dims[0], 40);
  EXPECT_EQ(task.length_strides[0][0], 3);
  EXPECT_EQ(task.row_strides[0][0], 1);
}

/// Multiplies the element at a row's label by the label's weight, and leaves all others as they
/// are.
struct PickRows : RowsFunctor {
  static constexpr int kInputs = 1;         // X
  static constexpr int kIntegerInputs = 1;  // label
  static constexpr int kTables = 1;         // weight
  static constexpr int kLookups = 1;
  static constexpr int kOutputs = 1;     // Y
  static constexpr int kRowOutputs = 1;  // the weight of the label
  static constexpr int kPhases = 0;
  static constexpr int kResults = 0;
  static constexpr RowsLookup LookupAt(int /*lookup*/) { return {.table = 0, .integer = 0}; }
  static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  static void Terms(
      int /*phase*/,
      const RowValues<A>& /*row*/,
      const A* /*in*/,
      const A* /*columns*/,
      A* /*terms*/) {}
  template <typename A>
  static void Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = row.index == row.integers[0] ? in[0] * row.lookups[0] : in[0];
  }
  template <typename A>
  static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.lookups[0];
  }
};

TEST(RowsOnCpu, TablesAreLookedUpByIntegersOfAnyType) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  // Every second is the table's own, but for the first and the last, which lie outside.
  std::vector<double> memory = {7, -1, 10, -1, 20, -1, 30, -1, 7};
  const std::vector<std::int64_t> wide = {2, 0, -1, std::int64_t{1} << 40U};
  const std::vector<std::int32_t> narrow = {2, 0, -1, 3};
  const std::vector<float> expected = {1, 2, 90, 40, 5, 6, 7, 8, 9, 10, 11, 12};
  const TensorRef of_x = Ref(x, {4, 3});
  const TensorRef of_table = {DataType::kDouble, memory.data() + 2, {3}, {2}, {}};
  const auto expect = [&](DataType type, const void* labels) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> y(12, nan);
    std::vector<float> weights(4, nan);
    const TensorRef of_label = {type, const_cast<void*>(labels), {4}, {1}, {}};
    const TensorRef of_y = Ref(y, {4, 3});
    const TensorRef of_weights = Ref(weights, {4});
    const Status status = RowsOnCpu<PickRows>(
        Context(), AxesFrom(1, 2), {}, &of_x, &of_label, &of_table, &of_y, &of_weights);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(y, expected);
    EXPECT_EQ(weights, (std::vector<float>{30, 10, 0, 0}));
  };
  expect(DataType::kInt64, wide.data());
  expect(DataType::kInt32, narrow.data());
}

TEST(RowsOnCpu, AnIntegerInputIsNoFloat) {
  std::vector<float> x(6);
  std::vector<float> other(3);
  const TensorRef of_x = Ref(x, {2, 3});
  const TensorRef of_two = Ref(other, {2});
  const TensorRef of_three = Ref(other, {3});
  const Status status =
      RowsOnCpu<PickRows>(Context(), AxesFrom(1, 2), {}, &of_x, &of_two, &of_three, &of_x, &of_two);
  EXPECT_EQ(status.message(), "input 1 has type float; expected an integer type");
}

/// A row of the first and the last dim: columns have both, and rows the one between them.
TEST(RowsOnCpu, RowsOfDimsThatAreNoNeighbours) {
  const Dims dims = {2, 3, 4};
  std::vector<float> x = Counted(24);
  std::vector<float> column = Counted(8);
  std::vector<float> factor = {1, 10, 100};
  std::vector<float> y(24, -1);
  std::vector<float> sums(8, -1);
  std::vector<float> means(3, -1);
  const TensorRef of_x = Ref(x, dims);
  const TensorRef of_column = Ref(column, {2, 4}, {1, 2});
  const TensorRef of_factor = Ref(factor, {3});
  const TensorRef of_y = Ref(y, dims);
  const TensorRef of_sums = Ref(sums, {2, 4});
  const TensorRef of_means = Ref(means, {3});
  const Status status = RowsOnCpu<SumsRows>(
      Context(), ChannelsOf(3, 1), {}, &of_x, &of_column, &of_factor, &of_y, &of_sums, &of_means);
  ASSERT_TRUE(status.ok()) << status.message();
  // The means of 0 to 3 and 12 to 15, of 4 to 7 and 16 to 19, of 8 to 11 and 20 to 23.
  EXPECT_EQ(means, (std::vector<float>{7.5, 115, 1550}));
  for (std::size_t n = 0; n < 2; ++n) {
    for (std::size_t d = 0; d < 4; ++d) {
      const std::size_t at = n * 12 + d;
      EXPECT_EQ(sums[n * 4 + d], x[at] + 10 * x[at + 4] + 100 * x[at + 8]);
      EXPECT_EQ(y[at + 4], x[at + 4] * column[n + 2 * d] + 115);
    }
  }
}

TEST(RowsOnCpu, WhatIsAbsentIsNotComputedAndCountsAsZero) {
  std::vector<float> x = {1, 2, 3, 4};
  std::vector<float> sums = {-1, -1};
  std::vector<float> factor = {10, 100};
  const TensorRef of_x = Ref(x, {2, 2});
  const TensorRef of_factor = Ref(factor, {2});
  const TensorRef of_sums = Ref(sums, {2});
  const TensorRef* const none = nullptr;
  Status status = RowsOnCpu<SumsRows>(
      Context(), AxesFrom(1, 2), {}, &of_x, none, &of_factor, none, &of_sums, none);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sums, (std::vector<float>{310, 420}));
  status =
      RowsOnCpu<SumsRows>(Context(), AxesFrom(1, 2), {}, &of_x, none, none, none, &of_sums, none);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sums, (std::vector<float>{0, 0}));
}

/// Sums of columns that are made of what was found of each row, alone and beside all others.
TEST(RowsOnCpu, SumsOfResults) {
  std::vector<float> x = {1, 2, 3, 4, 5, 9};
  std::vector<float> factor = {1, 1};
  std::vector<float> column = {1, 1, 1};
  std::vector<float> y(6);
  std::vector<float> sums(3);
  std::vector<float> deviations = {-1, -1, -1};
  std::vector<float> means(2);
  const TensorRef of_x = Ref(x, {2, 3});
  const TensorRef of_factor = Ref(factor, {2});
  const TensorRef of_column = Ref(column, {3});
  const TensorRef of_y = Ref(y, {2, 3});
  const TensorRef of_sums = Ref(sums, {3});
  const TensorRef of_deviations = Ref(deviations, {3});
  const TensorRef of_means = Ref(means, {2});
  const TensorRef* const none = nullptr;
  const RowsAxes axes = AxesFrom(1, 2);
  Status status = RowsOnCpu<DeviationsRows>(
      Context(), axes, {}, &of_x, none, &of_factor, none, none, &of_deviations, none);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(deviations, (std::vector<float>{-3, -1, 4}));
  deviations = {-1, -1, -1};
  status = RowsOnCpu<DeviationsRows>(
      Context(), axes, {}, &of_x, &of_column, &of_factor, &of_y, &of_sums, &of_deviations,
      &of_means);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(deviations, (std::vector<float>{-3, -1, 4}));
  EXPECT_EQ(sums, (std::vector<float>{5, 7, 12}));
  EXPECT_EQ(means, (std::vector<float>{2, 6}));
  EXPECT_EQ(y, (std::vector<float>{3, 4, 5, 10, 11, 15}));
}

TEST(RowsOnCpu, RefusesWhatDoesNotFit) {
  std::vector<float> data(12);
  std::vector<double> doubles(12);
  const TensorRef x = Ref(data, {3, 4});
  const TensorRef other = Ref(data, {4, 3});
  const TensorRef column = Ref(data, {4});
  const TensorRef factor = Ref(data, {3});
  const TensorRef double_column(DataType::kDouble, doubles.data(), Dims{4});
  const TensorRef* const none = nullptr;
  const auto told = [&](const TensorRef& c, const TensorRef& f, const TensorRef& y) {
    return std::string(
        RowsOnCpu<SumsRows>(Context(), AxesFrom(1, 2), {}, &x, &c, &f, &y, none, none).message());
  };
  EXPECT_EQ(told(column, factor, x), "");
  EXPECT_NE(told(factor, factor, x).find("input 1 has shape [3]; expected [4]"), std::string::npos);
  EXPECT_NE(told(column, column, x).find("input 2 has shape [4]; expected [3]"), std::string::npos);
  EXPECT_NE(
      told(column, factor, other).find("output 0 has shape [4, 3]; expected [3, 4]"),
      std::string::npos);
  EXPECT_NE(
      told(double_column, factor, x).find("input 1 has type double; expected float"),
      std::string::npos);
  for (const DataType type : {DataType::kInt32, DataType::kBool}) {
    const TensorRef integers(type, doubles.data(), Dims{3});
    EXPECT_EQ(
        told(column, integers, x),
        "input 2 has type " + std::string(ToString(type)) + "; expected a floating type");
  }
  const Status status =
      RowsOnCpu<SumsRows>(Context(), AxesFrom(1, 3), {}, &x, none, none, &x, none, none);
  EXPECT_EQ(status.message(), "rows are made of dim 2 and others; input 0 has 2 dims");
}

/// What softmax makes of a row that is not finite, or as large as its type allows.
TEST(Softmax, HurtfulRows) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kMost = std::numeric_limits<float>::max();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {-kInfinity, 1,     1,      -kInfinity, -kInfinity, -kInfinity,
                          kInfinity,  0,     1,      nan,        0,          1,
                          kMost,      kMost, -kMost, -kMost,     -kMost,     -kMost};
  std::vector<float> y(18);
  const Dims dims = {6, 3};
  ASSERT_TRUE(Softmax<float>(Context(), {}, {.X = {x.data(), dims}}, {.Y = {y.data(), dims}}).ok());
  EXPECT_EQ(y[0], 0);
  EXPECT_EQ(y[1], 0.5F);
  for (std::size_t i = 3; i < 12; ++i) {
    EXPECT_TRUE(std::isnan(y[i])) << i;
  }
  EXPECT_EQ(y[12], 0.5F);
  EXPECT_EQ(y[14], 0);
  EXPECT_FLOAT_EQ(y[15], 1 / 3.F);
  ASSERT_TRUE(
      LogSoftmax<float>(Context(), {}, {.X = {x.data(), dims}}, {.Y = {y.data(), dims}}).ok());
  EXPECT_EQ(y[0], -kInfinity);
  EXPECT_FLOAT_EQ(y[1], -std::log(2.F));
  EXPECT_EQ(y[14], -kInfinity);
}

}  // namespace
}  // namespace gradsmith::internal
