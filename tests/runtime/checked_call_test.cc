#include "core/checked_call.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/validate.h"
#include "gradsmith/gradsmith.h"

/// What has passed its checks once is not checked again, and nothing that differs from it passes.
namespace gradsmith::internal {
namespace {

enum class Mode : std::uint8_t { kFirst, kSecond };

struct JoinAttributes {
  std::int64_t extra = 0;
  std::optional<std::int64_t> limit = {};
  double factor = 1;
  IntList steps = {};
  FloatList scales = {};
  std::optional<IntList> sizes = {};
  Mode mode = Mode::kFirst;
  bool flag = false;
  std::optional<bool> choice = {};
};

constexpr std::array<std::string_view, 2> kModes = {"first", "second"};
constexpr std::array<AttributeSpec, 9> kAttributes = {{
    {.name = "extra", .offset = offsetof(JoinAttributes, extra), .maximum = 9},
    {.name = "limit", .offset = offsetof(JoinAttributes, limit), .optional = true, .maximum = 9},
    {.name = "factor",
     .kind = AttributeKind::kFloat,
     .offset = offsetof(JoinAttributes, factor),
     .maximum = 9},
    {.name = "steps",
     .kind = AttributeKind::kInts,
     .offset = offsetof(JoinAttributes, steps),
     .maximum = 9},
    {.name = "scales",
     .kind = AttributeKind::kFloats,
     .offset = offsetof(JoinAttributes, scales),
     .maximum = 9},
    {.name = "sizes",
     .kind = AttributeKind::kInts,
     .offset = offsetof(JoinAttributes, sizes),
     .optional = true,
     .maximum = 9},
    {.name = "mode",
     .kind = AttributeKind::kEnum,
     .offset = offsetof(JoinAttributes, mode),
     .choices = kModes},
    {.name = "flag", .kind = AttributeKind::kBool, .offset = offsetof(JoinAttributes, flag)},
    {.name = "choice",
     .kind = AttributeKind::kBool,
     .offset = offsetof(JoinAttributes, choice),
     .optional = true},
}};

std::atomic<int> comparisons = 0;

/// The rows of Y: those of A and of B, and `extra`.
Result<Dims> RowsOfBoth(const void* attributes, std::span<const Dims> symbols) {
  ++comparisons;
  const std::int64_t b = symbols[1].empty() ? 0 : symbols[1][0];
  return Dims{symbols[0][0] + b + static_cast<const JoinAttributes*>(attributes)->extra};
}

constexpr std::array<SymbolSpec, 4> kSymbols = {{
    {.name = "N"},
    {.name = "M"},
    {.name = "C"},
    {.name = "R", .rule = &RowsOfBoth, .rule_name = "RowsOfBoth(N, M)"},
}};
constexpr std::array<DimSpec, 2> kShapeOfA = {DimSpec{.symbol = 0}, DimSpec{.symbol = 2}};
constexpr std::array<DimSpec, 2> kShapeOfB = {DimSpec{.symbol = 1}, DimSpec{.symbol = 2}};
constexpr std::array<DimSpec, 2> kShapeOfY = {DimSpec{.symbol = 3}, DimSpec{.symbol = 2}};
constexpr std::array<TensorSpec, 2> kInputs = {{
    {.name = "A", .type_parameter = 0, .shape = kShapeOfA, .shape_text = "[N, C]"},
    {.name = "B", .type_parameter = 0, .shape = kShapeOfB, .shape_text = "[M, C]"},
}};
constexpr std::array<TensorSpec, 2> kOutputs = {{
    {.name = "Y",
     .type_parameter = 0,
     .optional = true,
     .shape = kShapeOfY,
     .shape_text = "[R, C]"},
    {.name = "Z",
     .type_parameter = 0,
     .optional = true,
     .shape = kShapeOfY,
     .shape_text = "[R, C]"},
}};
constexpr std::array<std::string_view, 1> kTypeParameters = {"T"};
constexpr OpSchema kOp = {
    .name = "Join",
    .source_file = "test.yaml",
    .type_parameters = kTypeParameters,
    .symbols = kSymbols,
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAttributes,
};

constexpr std::int32_t kLine = 7;
constexpr std::array<DataType, 1> kFloat = {DataType::kFloat};
constexpr std::array<DataType, 1> kDouble = {DataType::kDouble};

constexpr Row RowOf(std::span<const DataType, 1> types) {
  return {.op = &kOp, .name = "row", .types = types, .entry_line = &kLine};
}

/// A row of which no call has passed yet.
const Row& NewRow(std::span<const DataType, 1> types) {
  static std::deque<Row> rows;
  return rows.emplace_back(RowOf(types));
}

const Row* current_row = nullptr;

/// Calls the function with a new row in current_row.
void WithNewRow(const std::function<void()>& function) {
  current_row = &NewRow(kFloat);
  function();
}

struct JoinCall {
  JoinAttributes attributes = {};
  Dims A = {2, 3};
  Dims B = {4, 3};
  std::optional<Dims> Y = Dims{6, 3};
  std::optional<Dims> Z = {};
  /// What is changed of the tensors, A and Y, and the row.
  std::function<void(ConstTensorRef& A, TensorRef& Y)> change = [](auto&, auto&) {};
  const Row& row = *current_row;

  /// The error; nothing where the call is right.
  [[nodiscard]] std::string Error() const {
    static std::vector<double> memory(100'000);
    const auto at = [](std::size_t place, const std::optional<Dims>& dims) {
      return dims ? TensorRef(DataType::kFloat, &memory[place * 20'000], *dims) : TensorRef();
    };
    std::vector<ConstTensorRef> inputs = {at(0, A), at(1, B)};
    std::vector<TensorRef> outputs = {at(2, Y), at(3, Z)};
    change(inputs[0], outputs[0]);
    return ValidateCall(row, Context(), &attributes, inputs, outputs).message();
  }

  /// How often the shapes are compared in two calls, which are right.
  [[nodiscard]] int Comparisons() const {
    const int before = comparisons;
    EXPECT_EQ(Error(), "");
    EXPECT_EQ(Error(), "");
    return comparisons - before;
  }
};

TEST(CheckedCall, ShapesAreComparedOnceForARow) {
  for (int row = 0; row < 2; ++row) {
    WithNewRow([] {
      EXPECT_EQ(JoinCall().Comparisons(), 1);
      EXPECT_EQ(JoinCall().Comparisons(), 0);
    });
  }
}

TEST(CheckedCall, ThreadsMayMakeCallsAtOnce) {
  WithNewRow([] {
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (std::int64_t n = 1; n < 400; ++n) {
          wrong += JoinCall{.A = {n, 3}, .Y = Dims{n + 4, 3}}.Error().empty() ? 0 : 1;
          wrong += JoinCall{.A = {n, 3}, .Y = Dims{n + 5, 3}}.Error().empty() ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(wrong, 0);
  });
}

TEST(CheckedCall, EveryAttributeCounts) {
  const std::vector<JoinAttributes> all = {
      {.limit = 0},
      {.limit = 1},
      {.factor = 0},
      {.factor = -0.0},
      {.steps = {1}},
      {.steps = {1, 2}},
      {.steps = {2, 1}},
      {.scales = {1}},
      {.scales = {1, 1}},
      {.sizes = IntList{}},
      {.sizes = IntList{1}},
      {.sizes = IntList{2}},
      {.mode = Mode::kSecond},
      {.flag = true},
      {.choice = false},
      {.choice = true},
  };
  WithNewRow([&] {
    EXPECT_EQ(JoinCall().Comparisons(), 1);
    for (const JoinAttributes& attributes : all) {
      EXPECT_EQ(JoinCall{.attributes = attributes}.Comparisons(), 1);
    }
  });
}

TEST(CheckedCall, WhatDiffersFromARightCallIsRefusedEachTime) {
  WithNewRow([] {
    EXPECT_EQ(JoinCall().Error(), "");
    EXPECT_EQ(
        JoinCall{.attributes = {.factor = 10}}.Error(),
        "attribute factor is 10.0; expected 0 to 9");
    for (int call = 0; call < 2; ++call) {
      EXPECT_EQ(
          JoinCall{.attributes = {.extra = 1}}.Error(),
          "Y has shape [6, 3], 6 at dimension 0; expected 7 (R = 7 from RowsOfBoth(N, M)): [R, C]");
      EXPECT_EQ(
          (JoinCall{.A = {4, 3}, .B = {4, 3}}.Error()),
          "Y has shape [6, 3], 6 at dimension 0; expected 8 (R = 8 from RowsOfBoth(N, M)): [R, C]");
      EXPECT_EQ(
          (JoinCall{.B = {4, 2}}.Error()),
          "B has shape [4, 2], 2 at dimension 1; expected 3 (C = 3 from A): [M, C]");
      EXPECT_EQ(JoinCall{.Y = Dims{6}}.Error(), "Y has shape [6], rank 1; expected rank 2: [R, C]");
      EXPECT_NE((JoinCall{.Y = {}, .Z = Dims{5, 3}}.Error()), "");
      EXPECT_NE((JoinCall{.Z = Dims{5, 3}}.Error()), "");
    }
    EXPECT_EQ((JoinCall{.Y = {}, .Z = Dims{6, 3}}.Comparisons()), 1);
  });
}

TEST(CheckedCall, WhateverIsChangedOfATensorIsSeen) {
  const std::vector<std::function<void(ConstTensorRef&, TensorRef&)>> changes = {
      [](auto& A, auto&) { A.data = nullptr; },
      [](auto& A, auto&) { A.data = static_cast<const char*>(A.data) + 1; },
      [](auto& A, auto&) { A.type = DataType::kInt32; },
      [](auto& A, auto&) { A.device = {Backend::kCuda, 0}; },
      [](auto& A, auto&) { A.device.index = 1; },
      [](auto& A, auto&) { A.present = false; },
      [](auto& A, auto&) { A.strides[0] = -3; },
      [](auto& A, auto&) { A.strides = {1}; },
      [](auto& A, auto&) { A.dims = IntList::Filled(9, 1); },
      [](auto&, auto& Y) { Y.data = nullptr; },
      [](auto&, auto& Y) { Y.data = static_cast<char*>(Y.data) + 2; },
      [](auto&, auto& Y) { Y.strides[0] = 1; },  // elements share memory
      [](auto&, auto& Y) { Y.accumulate = true; },
      [](auto&, auto& Y) { Y.present = false; },                     // no output is left
      [](auto& A, auto& Y) { Y.data = const_cast<void*>(A.data); },  // NOLINT(*-const-cast)
  };
  WithNewRow([&] {
    EXPECT_EQ(JoinCall().Error(), "");
    for (std::size_t i = 0; i < changes.size(); ++i) {
      EXPECT_NE(JoinCall{.change = changes[i]}.Error(), "") << "change " << i;
      EXPECT_NE(JoinCall{.change = changes[i]}.Error(), "") << "change " << i << " again";
    }
    EXPECT_EQ(JoinCall().Error(), "");
  });
}

TEST(CheckedCall, ARowOfOtherTypesIsAnother) {
  WithNewRow([] {
    EXPECT_EQ(JoinCall().Error(), "");
    EXPECT_EQ(JoinCall{.row = NewRow(kDouble)}.Error(), "A has type float; expected double (T)");
  });
}

TEST(CheckedCall, MoreThanAreRememberedAreComparedAgainAndRight) {
  WithNewRow([] {
    for (int round = 0; round < 2; ++round) {
      for (std::int64_t n = 1; n < 1000; ++n) {
        EXPECT_EQ((JoinCall{.A = {n, 3}, .Y = Dims{n + 4, 3}}.Error()), "");
        EXPECT_NE((JoinCall{.A = {n, 3}, .Y = Dims{n + 5, 3}}.Error()), "");
      }
    }
  });
}

TEST(CheckedCall, AShapeThatAnInputHoldsIsReadEachTime) {
  const std::array<float, 4> dY = {1, 2, 3, 4};
  const std::array<std::int64_t, 4> indices = {0, 1, 3, 4};
  std::array<std::int64_t, 4> shape = {1, 1, 3, 3};
  std::array<float, 9> dX = {};
  const Dims dims = {1, 1, 2, 2};
  const auto run = [&] {
    const MaxPoolGradAttributes attributes = {.kernel_shape = {2, 2}};
    return MaxPoolGrad<float>(
               Context(), attributes,
               {.dY = {dY.data(), dims},
                .Indices = {indices.data(), dims},
                .shape = {shape.data(), {4}}},
               {.dX = {dX.data(), {1, 1, 3, 3}}})
        .message();
  };
  EXPECT_EQ(run(), "");
  shape[3] = 4;
  EXPECT_NE(run(), "");
}

}  // namespace
}  // namespace gradsmith::internal
