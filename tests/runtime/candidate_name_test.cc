#include "core/candidate_name.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradsmith::internal {
namespace {

void ExpectParsed(
    std::string_view id,
    std::string_view form,
    std::string_view source,
    std::string_view variant,
    const std::string& engine) {
  SCOPED_TRACE(id);
  const CandidateName name = CandidateName::Parse(id);
  EXPECT_EQ(name.form, form);
  EXPECT_EQ(name.source, source);
  EXPECT_EQ(name.variant, variant);
  EXPECT_EQ(name.Engine(), engine);
}

TEST(CandidateName, IsTakenApart) {
  ExpectParsed("graph/engine 67/2=1,5=0", "", "graph", "engine 67/2=1,5=0", "graph/67");
  ExpectParsed("graph/engine 0", "", "graph", "engine 0", "graph/0");
  ExpectParsed("nhwc graph/engine 6/2=1", "nhwc ", "graph", "engine 6/2=1", "graph/6");
  ExpectParsed("parts4 nhwc own/planes", "parts4 nhwc ", "own", "planes", "own/planes");
  ExpectParsed("legacy/algorithm 1/math 2", "", "legacy", "algorithm 1/math 2", "legacy/1");
  ExpectParsed(
      "legacy/spatial_persistent", "", "legacy", "spatial_persistent", "legacy/spatial_persistent");
  ExpectParsed(
      "padded8 own/tensor-cores/float/128x64", "padded8 ", "own", "tensor-cores/float/128x64",
      "own/tensor-cores");
  ExpectParsed("own", "", "own", "", "own");
  ExpectParsed("", "", "", "", "");
}

TEST(CandidateName, OfAVariantIsReadBack) {
  EXPECT_EQ(NameOfVariant("graph", "engine 67"), "graph/engine 67");
  EXPECT_EQ(NameOfVariant("legacy/spatial", ""), "legacy/spatial");
  EXPECT_EQ(VariantOf("graph", "graph/engine 67"), "engine 67");
  EXPECT_EQ(VariantOf("legacy/spatial", "legacy/spatial"), "");
  EXPECT_EQ(VariantOf("legacy/spatial", "legacy/spatial_persistent"), std::nullopt);
  EXPECT_EQ(VariantOf("own", "ow"), std::nullopt);
  EXPECT_EQ(VariantOf("own", "nhwc own"), std::nullopt);
}

TEST(CandidateName, NumbersAreTakenBehindTheirWords) {
  std::string_view text = "algorithm 12/math 3";
  std::int64_t number = 0;
  EXPECT_FALSE(TakeNumber(&text, "math ", &number));
  EXPECT_TRUE(TakeNumber(&text, "algorithm ", &number));
  EXPECT_EQ(number, 12);
  EXPECT_EQ(text, "/math 3");
  EXPECT_TRUE(TakeNumber(&text, "/math ", &number));
  EXPECT_EQ(number, 3);
  EXPECT_TRUE(text.empty());
  for (std::string_view wrong : {"parts", "parts ", "partsx", "parts99999999999999999999"}) {
    const std::string_view before = wrong;
    EXPECT_FALSE(TakeNumber(&wrong, "parts", &number)) << before;
    EXPECT_EQ(wrong, before);
  }
}

}  // namespace
}  // namespace gradsmith::internal
