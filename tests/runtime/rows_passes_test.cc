#include "patterns/rows_passes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "patterns/run_rows.h"

/// Operators that several passes of the pattern `rows` compute.
namespace gradsmith::internal {
namespace {

/// X [2, 3], of whose rows a first pass leaves a number each in a temporary and in the output
/// `of_row`; a second makes Y of X and the temporary, a third Z of X.
constexpr RowsCounts kFirst = {.inputs = 1, .row_outputs = 2};
constexpr RowsCounts kSecond = {.inputs = 1, .row_inputs = 1, .outputs = 1};
constexpr RowsCounts kThird = {.inputs = 1, .outputs = 1};
constexpr std::array<NamedOperand, 3> kOfFirst = {
    {{.argument = 0, .names = {0, 1}},
     {.argument = 2, .names = {0}},
     {.argument = 3, .names = {0}}}};
constexpr std::array<NamedOperand, 3> kOfSecond = {
    {{.argument = 0, .names = {0, 1}},
     {.argument = 1, .names = {0}},
     {.argument = 0, .names = {0, 1}}}};
constexpr std::array<NamedOperand, 2> kOfThird = {
    {{.argument = 0, .names = {0, 1}}, {.argument = 1, .names = {0, 1}}}};
constexpr std::array<IntList, 1> kTemporaries = {IntList{0}};

class RowsPassesTest : public testing::Test {
 protected:
  RowsPassesTest() {
    for (RowsPass& pass : passes_) {
      pass.whole = 0b11;
      pass.of_row = 0b10;
    }
  }

  [[nodiscard]] RowsPasses Passes() const {
    return {.inputs = 1, .outputs = 3, .passes = passes_, .temporaries = kTemporaries};
  }
  /// The operands where Y, Z and the row's output are wanted.
  [[nodiscard]] PassOperands Operands(std::array<bool, 3> wanted) {
    return {Passes(), NamedDimsOfX(), Inputs(), Outputs(wanted)};
  }
  [[nodiscard]] static NamedDims NamedDimsOfX() {
    constexpr std::array<std::int64_t, 2> kLengths = {1, 1};
    return {{2, 3}, kLengths};
  }
  [[nodiscard]] std::span<const ConstTensorRef> Inputs() {
    inputs_[0] = ConstTensorRef(type_, memory_.data(), {2, 3}, {3, 1});
    return inputs_;
  }
  [[nodiscard]] std::span<const TensorRef> Outputs(std::array<bool, 3> wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      outputs_[i] = TensorRef();
      if (wanted[i]) {
        const Dims dims = i < 2 ? Dims{2, 3} : Dims{2};
        outputs_[i] = TensorRef(type_, memory_.data(), dims, ContiguousStrides(dims));
      }
    }
    return outputs_;
  }

  DataType type_ = DataType::kFloat;
  std::array<RowsPass, 3> passes_ = {
      {{.counts = kFirst, .operands = kOfFirst},
       {.counts = kSecond, .operands = kOfSecond},
       {.counts = kThird, .operands = kOfThird}}};
  std::array<double, 8> memory_{};
  std::array<ConstTensorRef, 1> inputs_;
  std::array<TensorRef, 3> outputs_;
};

std::vector<bool> WantedOf(const PassOperands& operands) {
  return {operands.IsWanted(0), operands.IsWanted(1), operands.IsWanted(2)};
}

TEST_F(RowsPassesTest, RunWhatIsWantedAndWhatThatNeeds) {
  EXPECT_EQ(WantedOf(Operands({true, false, false})), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(WantedOf(Operands({false, true, false})), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(WantedOf(Operands({false, false, true})), (std::vector<bool>{true, false, false}));
  EXPECT_EQ(WantedOf(Operands({false, false, false})), (std::vector<bool>{false, false, false}));
}

TEST_F(RowsPassesTest, ATemporaryThatNothingNeedsIsAbsent) {
  EXPECT_FALSE(Operands({false, false, true}).Spread(0)[2].present);
  EXPECT_TRUE(Operands({true, false, false}).Spread(0)[2].present);
}

TEST_F(RowsPassesTest, TemporariesAreDoublesWhereTensorsAre) {
  EXPECT_EQ(Operands({true, false, false}).Spread(0)[2].type, DataType::kFloat);
  type_ = DataType::kMLFloat16;
  EXPECT_EQ(Operands({true, false, false}).Spread(0)[2].type, DataType::kFloat);
  type_ = DataType::kDouble;
  EXPECT_EQ(Operands({true, false, false}).Spread(0)[2].type, DataType::kDouble);
}

int calls = 0;

TEST_F(RowsPassesTest, NoneFollowsOneThatFails) {
  calls = 0;
  for (RowsPass& pass : passes_) {
    pass.run = [](const Context&, std::span<const TensorRef>, const RowsAxes&,
                  std::span<const double>) {
      return ++calls == 2 ? Status(StatusCode::kInternal, "the second fails") : Status();
    };
  }
  const RowsCall call = {.dims = NamedDimsOfX(), .passes = Passes(), .scalars = {}};
  const Status status = RunRowsOnCpu(Context(), call, Inputs(), Outputs({true, true, true}));
  EXPECT_EQ(status.message(), "the second fails");
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace gradsmith::internal
