#include "gradsmith/registry.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "support/allocations.h"

namespace gradsmith {
namespace {

Status DoNothing(
    const Context& /*context*/,
    const void* /*attributes*/,
    std::span<const ConstTensorRef> /*inputs*/,
    std::span<const TensorRef> /*outputs*/) {
  return {};
}

/// A table of one op with one row.
struct OneRow {
  OpSchema schema;
  std::array<std::string_view, 1> type_parameters = {"T"};
  std::array<DataType, 1> types = {DataType::kFloat};
  std::int32_t line;
  std::array<Row, 1> rows;
  std::array<std::span<const Row>, 1> table;

  OneRow(std::string_view op, std::int32_t line) : line(line) {
    schema.name = op;
    schema.source_file = "my_ops.yaml";
    schema.type_parameters = type_parameters;
    rows[0] = {
        .op = &schema,
        .name = "float",
        .types = types,
        .run = &DoNothing,
        .entry_line = &this->line,
        .line_offset = 3};
    table = {std::span<const Row>(rows)};
  }
  OneRow(const OneRow&) = delete;
};

Registry Builtin() {
  Registry registry;
  EXPECT_TRUE(RegisterAll(registry).ok());
  return registry;
}

TEST(Registry, FindsEveryBuiltinRowAndNoOther) {
  const Registry registry = Builtin();
  EXPECT_GE(registry.rows().size(), 32U);
  for (const Row* row : registry.rows()) {
    EXPECT_EQ(registry.Find(row->op->name, row->types, row->backend), row) << ToString(*row);
  }
  EXPECT_EQ(
      registry.Find("ConvGrad", {DataType::kFloat, DataType::kFloat}, Backend::kCpu), nullptr);
  EXPECT_EQ(registry.Find("ConvGrad", {}, Backend::kCpu), nullptr);
  EXPECT_EQ(registry.Find("convgrad", {DataType::kFloat}, Backend::kCpu), nullptr);
  EXPECT_EQ(Registry().Find("ConvGrad", {DataType::kFloat}, Backend::kCpu), nullptr);
}

TEST(Registry, FindsRowsOfManyTables) {
  Registry registry;
  std::vector<std::string> names(500);
  std::vector<std::unique_ptr<OneRow>> tables;
  for (int i = 0; i < 500; ++i) {
    names[i] = "Op" + std::to_string(i);
    tables.push_back(std::make_unique<OneRow>(names[i], i));
    ASSERT_TRUE(registry.Add(tables.back()->table).ok());
  }
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(registry.Find(names[i], {DataType::kFloat}, Backend::kCpu), tables[i]->rows.data());
    EXPECT_EQ(registry.Find(names[i], {DataType::kDouble}, Backend::kCpu), nullptr);
  }
}

TEST(Registry, TellsLongNamesApartWhateverLetterDiffers) {
  const std::string name = "GradientOfAnOperatorWithAVeryLongNameIndeed";
  const OneRow row(name, 10);
  Registry registry;
  ASSERT_TRUE(registry.Add(row.table).ok());
  EXPECT_EQ(registry.Find(name, {DataType::kFloat}, Backend::kCpu), row.rows.data());
  for (std::size_t i = 0; i < name.size(); ++i) {
    std::string other = name;
    other[i] = '_';
    EXPECT_EQ(registry.Find(other, {DataType::kFloat}, Backend::kCpu), nullptr) << other;
  }
}

TEST(Registry, FindsDuplicatesWithinATable) {
  const OneRow row("MyGrad", 10);
  const std::array<std::span<const Row>, 2> twice = {row.table[0], row.table[0]};
  Registry registry;
  EXPECT_EQ(registry.Add(twice).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(registry.rows().empty());
}

TEST(Registry, NamesBothPlacesOfADuplicateAndAddsNothing) {
  const OneRow first("MyGrad", 10);
  const OneRow second("MyGrad", 20);
  Registry registry;
  ASSERT_TRUE(registry.Add(first.table).ok());
  const Status status = registry.Add(second.table);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "MyGrad[float] on cpu (my_ops.yaml:23) is registered already: "
      "MyGrad[float] on cpu (my_ops.yaml:13)");
  EXPECT_EQ(registry.rows().size(), 1U);
  EXPECT_EQ(registry.Find("MyGrad", {DataType::kFloat}, Backend::kCpu), first.rows.data());
}

TEST(Registry, LookingUpAndCallingAllocatesNothing) {
  const Registry registry = Builtin();
  const OneRow op("MyGrad", 10);
  Registry with_mine = registry;
  ASSERT_TRUE(with_mine.Add(op.table).ok());
  const Context context({.threads = 1});
  const auto [ok, count] = [&] {
    const support::Allocations allocations;
    const Row* row = with_mine.Find("MyGrad", {DataType::kFloat}, Backend::kCpu);
    const bool ok = row != nullptr && row->run(context, nullptr, {}, {}).ok();
    return std::pair(ok, allocations.count());
  }();
  EXPECT_TRUE(ok);
  EXPECT_EQ(count, 0);
}

TEST(Explain, SaysWhereARowIs) {
  const std::string text = Builtin().Explain("ConvGrad", {DataType::kFloat}, Backend::kCpu);
  EXPECT_NE(
      text.find("ConvGrad(float) on cpu is there: ConvGrad[float] on cpu (ops.yaml:"), text.npos)
      << text;
  EXPECT_NE(text.find("kernel conv::ConvGrad"), text.npos) << text;
}

TEST(Explain, SaysWhatTheBuildLacks) {
  constexpr std::string_view kLacking = "; but this gradsmith was built without CUDA";
  const bool has_cuda =
      CheckDevice({Backend::kCuda, 0}).message().find("built without CUDA") == std::string::npos;
  const Registry registry = Builtin();
  const std::string text = registry.Explain("ConvGrad", {DataType::kFloat}, Backend::kCuda);
  const std::string expected = has_cuda ? "is there: " : "is declared: ";
  EXPECT_TRUE(text.starts_with(
      "ConvGrad(float) on cuda " + expected + "ConvGrad[float] on cuda (ops.yaml:"))
      << text;
  EXPECT_EQ(text.find(kLacking) == std::string::npos, has_cuda) << text;
  const Result<Kernel> kernel =
      Kernel::Create(registry, "ConvGrad", {DataType::kFloat}, Backend::kCuda);
  ASSERT_EQ(kernel.ok(), has_cuda);
  if (!has_cuda) {
    EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
    EXPECT_EQ(kernel.status().message(), text);
  }
}

TEST(Explain, NamesTheNearestRowsAndTheFirstDifference) {
  const std::string text = Builtin().Explain(
      "BatchNormalizationGrad", {DataType::kMLFloat16, DataType::kFloat, DataType::kDouble},
      Backend::kCpu);
  EXPECT_EQ(
      text.find("No row is BatchNormalizationGrad(MLFloat16, float, double) on cpu.\n"
                "  nearest: BatchNormalizationGrad[half_float_params] on cpu (ops.yaml:"),
      0U)
      << text;
  EXPECT_NE(text.find("with (MLFloat16, float, float): T2 is float, not double"), text.npos)
      << text;
}

TEST(Explain, NamesTheBackend) {
  const OneRow row("MyGrad", 5);
  Registry registry;
  ASSERT_TRUE(registry.Add(row.table).ok());
  const std::string text = registry.Explain("MyGrad", {DataType::kFloat}, Backend::kCuda);
  EXPECT_NE(text.find("MyGrad[float] on cpu"), text.npos) << text;
  EXPECT_NE(text.find("the backend is cpu, not cuda"), text.npos) << text;
}

TEST(Explain, PrefersAnotherTypeToAnotherBackend) {
  OneRow cuda("MyGrad", 10);
  OneRow cpu("MyGrad", 20);
  cuda.rows[0].backend = Backend::kCuda;
  const std::array<std::string_view, 1> parameters = {"T"};
  cuda.schema.type_parameters = cpu.schema.type_parameters = parameters;
  cuda.types = {DataType::kDouble};
  Registry registry;
  ASSERT_TRUE(registry.Add(cuda.table).ok());
  ASSERT_TRUE(registry.Add(cpu.table).ok());
  const std::string text = registry.Explain("MyGrad", {DataType::kDouble}, Backend::kCpu);
  EXPECT_LT(text.find("my_ops.yaml:23"), text.find("my_ops.yaml:13")) << text;
}

TEST(Explain, NamesTheFirstOfSeveralDifferencesAndThreeRows) {
  const std::string text = Builtin().Explain(
      "BatchNormalization", {DataType::kBFloat16, DataType::kDouble, DataType::kDouble},
      Backend::kCpu);
  EXPECT_NE(text.find("with (BFloat16, BFloat16, BFloat16): T1 is BFloat16, not double"), text.npos)
      << text;
  std::size_t shown = 0;
  for (std::size_t at = text.find("nearest: "); at != text.npos;
       at = text.find("nearest: ", at + 1)) {
    ++shown;
  }
  EXPECT_EQ(shown, 3U) << text;
}

TEST(Explain, SuggestsTheOpThatWasMeant) {
  const std::string text = Builtin().Explain("ConvGard", {DataType::kFloat}, Backend::kCpu);
  EXPECT_EQ(text.find("There is no op 'ConvGard'; did you mean 'ConvGrad'? The ops are: "), 0U)
      << text;
  EXPECT_NE(text.find(", BatchNormalization, "), text.npos) << text;
  EXPECT_EQ(text.substr(text.size() - 8), " others.") << text;
}

TEST(Explain, CountsTypeParameters) {
  EXPECT_EQ(
      Builtin().Explain("BatchNormalizationGrad", {DataType::kFloat}, Backend::kCpu),
      "BatchNormalizationGrad has 3 type parameters (T, T1, T2); got 1 type.");
  EXPECT_EQ(
      Builtin().Explain("ConvGrad", {DataType::kFloat, DataType::kFloat}, Backend::kCpu),
      "ConvGrad has 1 type parameter (T); got 2 types.");
}

TEST(Explain, OfAnEmptyRegistrySaysWhatToDo) {
  EXPECT_EQ(
      Registry().Explain("ConvGrad", {DataType::kFloat}, Backend::kCpu),
      "There is no op 'ConvGrad'. The ops are: none; call RegisterAll.");
}

}  // namespace
}  // namespace gradsmith
