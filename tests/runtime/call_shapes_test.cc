#include "core/call_shapes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/validate.h"
#include "gradsmith/schema.h"

/// Shapes of ops whose like ops.yaml has none: lists of dims beside each other, and attributes that
/// no check before this one holds to anything.
namespace gradsmith::internal {
namespace {

struct CutAttributes {
  IntList size = {};
  std::int64_t group = 1;
  std::int64_t axis = 0;
};

enum : std::int8_t { kSize, kGroup, kAxis };
enum : std::int16_t { kD, kE, kC, kGiven };

constexpr std::array<AttributeSpec, 3> kAttributes = {{
    {.name = "size",
     .kind = AttributeKind::kInts,
     .offset = offsetof(CutAttributes, size),
     .minimum = -9,
     .maximum = 9},
    {.name = "group", .offset = offsetof(CutAttributes, group), .minimum = 1, .maximum = 9},
    {.name = "axis",
     .offset = offsetof(CutAttributes, axis),
     .minimum = -9,
     .maximum = 9,
     .axis_of = 0},
}};
constexpr std::array<SymbolSpec, 4> kSymbols = {{
    {.name = "D", .is_list = true},
    {.name = "E", .is_list = true},
    {.name = "C"},
    {.name = "G", .is_list = true, .max_length = 3, .given_by = kSize},
}};
constexpr std::array<DimSpec, 2> kBoth = {DimSpec{.symbol = kD}, DimSpec{.symbol = kE}};
constexpr std::array<DimSpec, 2> kTwice = {DimSpec{.symbol = kE}, DimSpec{.symbol = kE}};
constexpr std::array<DimSpec, 1> kOfE = {DimSpec{.symbol = kE}};
constexpr std::array<DimSpec, 1> kOfG = {DimSpec{.symbol = kGiven}};
constexpr std::array<DimSpec, 1> kOfGroup = {
    DimSpec{.kind = DimSpec::Kind::kQuotient, .symbol = kC, .divisor = kGroup}};
constexpr std::array<TensorSpec, 3> kInputs = {{
    {.name = "A", .shape = kBoth, .shape_text = "[*D, *E]"},
    {.name = "B", .optional = true, .shape = kOfE, .shape_text = "[*E]"},
    {.name = "W", .optional = true, .shape = kOfGroup, .shape_text = "[C / group]"},
}};
constexpr std::array<TensorSpec, 2> kOutputs = {{
    {.name = "Y", .shape = kTwice, .shape_text = "[*E, *E]"},
    {.name = "Z", .shape = kOfG, .shape_text = "[*G]"},
}};

std::vector<ConstTensorRef> RefsOf(const std::vector<Dims>& shapes) {
  std::vector<ConstTensorRef> refs;
  for (const Dims& dims : shapes) {
    refs.emplace_back(DataType::kFloat, nullptr, dims);
  }
  return refs;
}

struct Cut {
  CutAttributes attributes = {.size = {1}};
  std::vector<Dims> inputs;
  std::vector<Dims> outputs = {};

  [[nodiscard]] Result<std::vector<Dims>> Shapes() const {
    OpSchema op;
    op.name = "Cut";
    op.symbols = kSymbols;
    op.inputs = kInputs;
    op.outputs = kOutputs;
    op.attributes = kAttributes;
    return InferShapes(op, &attributes, RefsOf(inputs), RefsOf(outputs));
  }
  [[nodiscard]] std::string Error() const { return std::string(Shapes().status().message()); }
};

TEST(CallShapes, ATensorWaitsForTheOneThatTellsWhereItsListsEnd) {
  const Cut cut = {.inputs = {{2, 3, 4}, {3, 4}}};
  EXPECT_EQ(cut.Shapes().value(), (std::vector<Dims>{{3, 4, 3, 4}, {1}}));
  EXPECT_EQ(
      (Cut{.inputs = {{2, 3, 4}, {3, 5}}}.Error()),
      "A has shape [2, 3, 4], 4 at dimension 2; expected 5 (E = [3, 5] from B): [*D, *E]");
}

TEST(CallShapes, WhereListsEndMustBeTold) {
  EXPECT_EQ(
      (Cut{.inputs = {{2, 3, 4}}}.Error()),
      "A has shape [2, 3, 4], and nothing that is given tells how many dims each list of it has; "
      "expected [*D, *E]");
}

TEST(CallShapes, NineDimsAreRefused) {
  const Dims nine = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(
      (Cut{.inputs = {nine, {1}}}.Error()),
      "A has shape [1, 1, 1, 1, 1, 1, 1, 1, ...], rank over 8; expected rank 1 to 8: [*D, *E]");
  EXPECT_EQ(
      (Cut{.inputs = {{1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}}}.Error()),
      "Y would have more than 8 dims; expected at most 8: [*E, *E]");
}

TEST(CallShapes, AQuotientsDimHas63Bits) {
  const std::int64_t half = std::int64_t{1} << 62;
  EXPECT_EQ((Cut{.inputs = {{2}, {2}, {half}}}.Error()), "");
  EXPECT_EQ(
      (Cut{.attributes = {.size = {1}, .group = 2}, .inputs = {{2}, {2}, {half}}}.Error()),
      "W has shape [4611686018427387904], 4611686018427387904 at dimension 0; expected a dim whose "
      "product with group fits 63 bits: [C / group]");
}

TEST(CallShapes, AnAttributeGivesDims) {
  const auto error = [](const IntList& size) {
    return Cut{.attributes = {.size = size}, .inputs = {{2}, {2}}}.Error();
  };
  EXPECT_EQ(error({1, 0, 3}), "");
  EXPECT_EQ(
      error({1, 2, 3, 4}), "attribute size is [1, 2, 3, 4]; expected 0 to 3 dims: those of G");
  EXPECT_EQ(error({1, -2}), "attribute size is [1, -2]; expected dims, each 0 or more");
}

TEST(CallShapes, AnAxisIsOneOfItsInput) {
  const auto error = [](std::int64_t axis) {
    return Cut{.attributes = {.size = {1}, .axis = axis}, .inputs = {{2, 3}, {3}}}.Error();
  };
  EXPECT_EQ(error(-2), "");
  EXPECT_EQ(error(1), "");
  for (const std::int64_t axis : {-3, 2}) {
    EXPECT_EQ(
        error(axis), "attribute axis is " + std::to_string(axis) +
                         ", and A has shape [2, 3]; expected -2 to 1, an axis of it");
  }
}

TEST(CallShapes, OnlyWhatTheOpHasIsGiven) {
  const std::vector<Dims> four(4, Dims{2});
  const std::vector<Dims> three(3, Dims{2});
  EXPECT_EQ((Cut{.inputs = four}.Error()), "4 inputs were given; expected at most 3");
  EXPECT_EQ(
      (Cut{.inputs = three, .outputs = three}.Error()), "3 outputs were given; expected at most 2");
  EXPECT_EQ(Cut().Error(), "input A is absent; it is required");
}

}  // namespace
}  // namespace gradsmith::internal
