#include "patterns/rows_cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "gradsmith/context.h"
#include "patterns/rows.h"

/// What the CPU gives the functors of rows, and what it makes of long rows and of large sums.
namespace gradsmith::internal {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TensorRef Of(std::vector<float>& data, const Dims& dims) {
  return {DataType::kFloat, data.data(), dims, ContiguousStrides(dims), {}};
}

/// Rows of X of which nothing is reduced.
struct UnreducedRows : RowsFunctor {
  static constexpr int kInputs = 1;
  static constexpr int kOutputs = 0;
  static constexpr int kPhases = 0;
  static constexpr int kResults = 0;
  static constexpr int PhaseOf(int /*result*/) { return 0; }
  template <typename A>
  static void
  Terms(int /*phase*/, const RowValues<A>&, const A* /*in*/, const A* /*columns*/, A* /*terms*/) {}
  template <typename A>
  static void Map(const RowValues<A>&, const A* /*in*/, const A* /*columns*/, A* /*out*/) {}
};

struct PivotRows : UnreducedRows {
  static constexpr int kPivot = 0;
  static constexpr int kRowOutputs = 1;
  template <typename A>
  static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.pivot;
  }
};

TEST(CpuRows, APivotIsFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {5, 1, kInfinity, 1, -kInfinity, 1, kNan, 1, 7, kNan};
  std::vector<float> pivots(5, kNan);
  const TensorRef of_x = Of(x, {5, 2});
  const TensorRef of_pivots = Of(pivots, {5});
  ASSERT_TRUE(RowsOnCpu<PivotRows>(Context(), AlongAxis(1), {}, &of_x, &of_pivots).ok());
  EXPECT_EQ(pivots, (std::vector<float>{5, 0, 0, 0, 7}));
}

struct PlacesRows : UnreducedRows {
  static constexpr int kOutputs = 1;
  template <typename A>
  static void Map(const RowValues<A>& row, const A* /*in*/, const A* /*columns*/, A* out) {
    out[0] = static_cast<A>(row.index);
  }
};

/// Long rows are cut into pieces.
TEST(CpuRows, PlacesAreThoseInTheWholeRow) {
  constexpr std::size_t kLength = 3 * kRowsGrain + 5;
  const Dims dims = {2, kLength};
  std::vector<float> x(2 * kLength);
  std::vector<float> y(2 * kLength, kNan);
  const TensorRef of_x = Of(x, dims);
  const TensorRef of_y = Of(y, dims);
  ASSERT_TRUE(RowsOnCpu<PlacesRows>(Context(), AlongAxis(1), {}, &of_x, &of_y).ok());
  std::vector<float> expected(2 * kLength);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<float>(i % kLength);
  }
  EXPECT_EQ(y, expected);
}

/// Multiplies each row by its factor, and leaves twice that.
struct ScaledRows : UnreducedRows {
  static constexpr int kRowInputs = 1;
  static constexpr int kOutputs = 1;
  static constexpr int kRowOutputs = 1;
  template <typename A>
  static void Map(const RowValues<A>& row, const A* in, const A* /*columns*/, A* out) {
    out[0] = in[0] * row.inputs[0];
  }
  template <typename A>
  static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = 2 * row.inputs[0];
  }
};

/// All of a long row reads its factor, in whose place another comes.
TEST(CpuRows, ARowOutputTakesTheRowInputsPlace) {
  constexpr std::size_t kLength = 3 * kRowsGrain;
  const Dims dims = {2, kLength};
  std::vector<float> x(2 * kLength, 1);
  std::vector<float> factors = {3, 5};
  const TensorRef of_x = Of(x, dims);
  const TensorRef of_factors = Of(factors, {2});
  const Context context({.threads = 1});  // the first piece comes first
  ASSERT_TRUE(
      RowsOnCpu<ScaledRows>(context, AlongAxis(1), {}, &of_x, &of_factors, &of_x, &of_factors)
          .ok());
  std::vector<float> expected(2 * kLength, 3);
  std::fill(expected.begin() + kLength, expected.end(), 5.F);
  EXPECT_EQ(x, expected);
  EXPECT_EQ(factors, (std::vector<float>{6, 10}));
}

/// The sums of rows and of columns.
struct TotalsRows : UnreducedRows {
  static constexpr int kColumnSums = 1;
  static constexpr int kRowOutputs = 1;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 1;
  template <typename A>
  static void
  Terms(int /*phase*/, const RowValues<A>&, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0];
  }
  template <typename A>
  static void ColumnTerms(const RowValues<A>&, const A* in, const A* /*columns*/, A* terms) {
    terms[0] = in[0];
  }
  template <typename A>
  static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.results[0];
  }
};

TEST(CpuRows, SumsAreOfDoubles) {
  constexpr float kLarge = 1 << 24;  // one more is no float
  std::vector<float> x = {kLarge, 1, 1, -kLarge, 1, 0, 0, 0, 1, 0, 0, 0, -kLarge, 0, 0, 0};
  std::vector<float> columns(4, kNan);
  std::vector<float> rows(4, kNan);
  const TensorRef of_x = Of(x, {4, 4});
  const TensorRef of_columns = Of(columns, {4});
  const TensorRef of_rows = Of(rows, {4});
  ASSERT_TRUE(
      RowsOnCpu<TotalsRows>(Context(), AlongAxis(1), {}, &of_x, &of_columns, &of_rows).ok());
  EXPECT_EQ(rows[0], 2);
  EXPECT_EQ(columns[0], 2);
}

/// Pieces of long rows, and of many columns, begin and end among neighbours.
TEST(CpuRows, PiecesOfRowsOfTwoDims) {
  constexpr std::size_t kSize = kRowsGrain - 100;
  constexpr std::size_t kApart = kSize + 1;
  constexpr std::size_t kLength = 3 * kSize;
  const Dims dims = {1, 3, kSize};
  std::vector<float> x(3 * kApart, kNan);
  for (std::size_t i = 0; i < kLength; ++i) {
    x[i / kSize * kApart + i % kSize] = static_cast<float>(i);
  }
  const TensorRef of_x(DataType::kFloat, x.data(), dims, {3 * kApart, kApart, 1}, {});
  const TensorRef* const none = nullptr;
  std::vector<float> factor = {1};
  const TensorRef of_factor = Of(factor, {1});
  std::vector<float> y(kLength, kNan);
  const TensorRef of_y = Of(y, dims);
  const RowsAxes axes = AxesFrom(1, 3);
  ASSERT_TRUE(RowsOnCpu<ScaledRows>(Context(), axes, {}, &of_x, &of_factor, &of_y, none).ok());
  std::vector<float> sums(kLength, kNan);
  const TensorRef of_sums = Of(sums, {3, kSize});
  ASSERT_TRUE(RowsOnCpu<TotalsRows>(Context(), axes, {}, &of_x, &of_sums, none).ok());
  std::vector<float> counted(kLength);
  std::iota(counted.begin(), counted.end(), 0.F);
  EXPECT_EQ(y, counted);
  EXPECT_EQ(sums, counted);
}

/// What a table has at a row's label, where one outside is 0, and where it is refused.
struct LookedUpRows : UnreducedRows {
  static constexpr int kIntegerInputs = 1;
  static constexpr int kTables = 1;
  static constexpr int kLookups = 2;
  static constexpr int kRowOutputs = 2;
  static constexpr RowsLookup LookupAt(int lookup) {
    return {.table = 0, .integer = 0, .refuses_outside = lookup == 1};
  }
  template <typename A>
  static void RowOutputs(const RowValues<A>& row, A* outputs) {
    outputs[0] = row.lookups[0];
    outputs[1] = row.lookups[1];
  }
};

TEST(CpuRows, AnAbsentTableRefusesNothing) {
  std::vector<float> x(12);
  std::vector<float> table = {3, 5, 7};
  std::vector<std::int64_t> labels = {-1, 0, 2, 3};
  std::vector<float> ignoring(4);
  std::vector<float> refusing(4);
  const TensorRef of_x = Of(x, {4, 3});
  const TensorRef of_labels(DataType::kInt64, labels.data(), Dims{4});
  const TensorRef of_table = Of(table, {3});
  const TensorRef of_ignoring = Of(ignoring, {4});
  const TensorRef of_refusing = Of(refusing, {4});
  const auto run = [&](const TensorRef* given) {
    return RowsOnCpu<LookedUpRows>(
               Context(), AlongAxis(1), {}, &of_x, &of_labels, given, &of_ignoring, &of_refusing)
        .ok();
  };
  ASSERT_TRUE(run(&of_table));
  EXPECT_EQ(ignoring, (std::vector<float>{0, 3, 7, 0}));
  EXPECT_TRUE(std::isnan(refusing[0]) && std::isnan(refusing[3]));
  EXPECT_EQ((std::vector<float>{refusing[1], refusing[2]}), (std::vector<float>{3, 7}));
  ASSERT_TRUE(run(nullptr));
  EXPECT_EQ(ignoring, std::vector<float>(4));
  EXPECT_EQ(refusing, std::vector<float>(4));
}

}  // namespace
}  // namespace gradsmith::internal
