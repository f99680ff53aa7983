#include "core/text.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "gradsmith/gradsmith.h"

namespace gradsmith::internal {
namespace {

TEST(Printable, LeavesWhatIsPrintable) {
  for (const std::string text :
       {"", "graph/engine 67/2=1,5=0", "a\\b \"c\"", "caf\xc3\xa9", "\xe5\x90\x8d",
        "\xf0\x9f\x98\x80", "~ !"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, WritesOutWhatATerminalObeysOrHides) {
  EXPECT_EQ(Printable("\x1b]0;t\a\r\n\t\b\x7f"), "\\x1b]0;t\\x07\\x0d\\x0a\\x09\\x08\\x7f");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\x00b");
  // CSI as one character, separator of lines, from right to left, zero width, mark of byte order.
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(Printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
  EXPECT_EQ(Printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");
  EXPECT_EQ(Printable("\xe2\x80\x8b"), "\\xe2\\x80\\x8b");
  EXPECT_EQ(Printable("\xef\xbb\xbf"), "\\xef\\xbb\\xbf");
}

TEST(Printable, WritesOutWhatIsNoUtf8) {
  EXPECT_EQ(Printable("\xff"), "\\xff");
  EXPECT_EQ(Printable("\x80x"), "\\x80x");
  EXPECT_EQ(Printable("a\xc3"), "a\\xc3");
  EXPECT_EQ(Printable("\xc3("), "\\xc3(");
  EXPECT_EQ(Printable("\xe5\x90"), "\\xe5\\x90");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(Printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf");           // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  EXPECT_EQ(Printable("\xf8\x88\x80\x80\x80"), "\\xf8\\x88\\x80\\x80\\x80");
}

TEST(NumberText, IsTheShortestThatReadsBack) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(2), "2");
  EXPECT_EQ(NumberText(-1e-300), "-1e-300");
  EXPECT_EQ(NumberText(-1e300), "-1e+300");
  EXPECT_EQ(NumberText(kInfinity), "inf");
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
}

TEST(RealText, ReadsAsNoInteger) {
  EXPECT_EQ(RealText(0.1), "0.1");
  EXPECT_EQ(RealText(2), "2.0");
  EXPECT_EQ(RealText(-0.0), "-0.0");
  EXPECT_EQ(RealText(-1e300), "-1e+300");
  EXPECT_EQ(RealText(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Shortened, LeavesNamesAsTheyAre) {
  for (const std::string& text : {std::string(), std::string("ConvGrad"), std::string(200, 'x')}) {
    EXPECT_EQ(Shortened(text), text);
  }
}

TEST(Shortened, SaysHowLongATextIs) {
  EXPECT_EQ(Shortened(std::string(201, 'x')), std::string(60, 'x') + "... (201 bytes)");
  EXPECT_EQ(Quoted(std::string(1000, 'x')), "'" + std::string(60, 'x') + "... (1000 bytes)'");
}

TEST(Shortened, CutsNoCharacter) {
  for (const std::string_view character : {"\xc3\xa9", "\xe5\x90\x8d", "\xf0\x9f\x98\x80"}) {
    for (std::size_t before = 0; before < 4; ++before) {
      std::string text(before, 'x');
      while (text.size() <= 200) {
        text += character;
      }
      const std::string shortened = Shortened(text);
      const std::size_t shown = shortened.find("...");
      ASSERT_NE(shown, std::string::npos);
      EXPECT_EQ((shown - before) % character.size(), 0U) << before << ", " << character;
      EXPECT_EQ(Printable(shortened), shortened);
    }
  }
}

/// Names of which a comparison letter by letter would take hours and all memory.
class LongNames : public testing::Test {
 protected:
  LongNames() { EXPECT_TRUE(RegisterAll(registry_).ok()); }

  static constexpr std::size_t kMebibytes16 = std::size_t{16} << 20U;
  static constexpr std::size_t kShort = 2000;

  Registry registry_;
  std::string name_ = std::string(kMebibytes16, 'x');
};

TEST_F(LongNames, OfAnOpAreShortened) {
  const std::string text = registry_.Explain(name_, {DataType::kFloat}, Backend::kCpu);
  EXPECT_LT(text.size(), kShort);
  EXPECT_NE(text.find("There is no op 'xxx"), text.npos) << text;
  const Result<Kernel> kernel = Kernel::Create(registry_, name_, {DataType::kFloat}, Backend::kCpu);
  EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
  EXPECT_LT(kernel.status().message().size(), kShort);
}

TEST_F(LongNames, OfAttributesAreShortened) {
  for (const Attribute& attribute :
       {Attribute{name_, 1}, Attribute{"auto_pad", name_}, Attribute{"group", name_}}) {
    const std::array attributes = {attribute};
    const Status status =
        Kernel::Create(*registry_.Find("Conv", {DataType::kFloat}, Backend::kCpu), attributes)
            .status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_LT(status.message().size(), kShort);
  }
}

TEST_F(LongNames, OfATablesRowsAreShortened) {
  const std::string other_name = name_ + "y";
  const std::array<std::string_view, 1> parameters = {"T"};
  const std::array<DataType, 1> types = {DataType::kFloat};
  const std::int32_t line = 1;
  OpSchema schema;
  schema.name = name_;
  schema.source_file = other_name;
  schema.kernel = other_name;
  schema.type_parameters = parameters;
  const std::array<Row, 1> rows = {
      Row{.op = &schema, .name = other_name, .types = types, .entry_line = &line}};
  const std::array<std::span<const Row>, 1> table = {rows};
  Registry registry;
  ASSERT_TRUE(registry.Add(table).ok());
  EXPECT_LT(registry.Add(table).message().size(), kShort);
  EXPECT_LT(ToString(rows[0]).size(), kShort);
  for (const std::string& op : {name_, other_name, std::string("Conv")}) {
    for (const DataType type : {DataType::kFloat, DataType::kDouble}) {
      EXPECT_LT(registry.Explain(op, {type}, Backend::kCpu).size(), kShort);
    }
  }
}

TEST(Closest, OfTwoAsNearIsTheShorter) {
  const std::vector<std::string_view> names = {"Tanh", "Tan", "Atan"};
  EXPECT_EQ(Closest("Tanx", names), "Tan");
  EXPECT_EQ(Closest("xTan", names), "Tan");
}

TEST(Closest, KnowsSlipsAndNotStrangers) {
  const std::array<std::string_view, 3> names = {"Conv", "ConvGrad", "BatchNormalization"};
  EXPECT_EQ(Closest("ConvGard", names), "ConvGrad");
  EXPECT_EQ(Closest("batchnormalisation", names), "BatchNormalization");
  EXPECT_EQ(Closest("Gemm", names), "");
  const std::string longest(200, 'a');
  const std::array<std::string_view, 1> one = {longest};
  EXPECT_EQ(Closest(longest.substr(1), one), longest);
}

TEST(ToString, HasAWordForWhatIsNone) {
  EXPECT_EQ(gradsmith::ToString(static_cast<SearchMode>(9)), "unknown");
  EXPECT_EQ(gradsmith::ToString(static_cast<DataType>(9)), "unknown type");
  EXPECT_EQ(gradsmith::ToString(static_cast<StatusCode>(9)), "unknown status code");
}

}  // namespace
}  // namespace gradsmith::internal
