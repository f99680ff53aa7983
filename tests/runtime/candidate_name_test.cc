#include "core/candidate_name.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gradsmith::internal {
namespace {

void ExpectRead(const std::string& text, const KernelName& expected, const std::string& engine) {
  SCOPED_TRACE(text);
  const std::optional<KernelName> name = KernelName::Read(text);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->parts, expected.parts);
  EXPECT_EQ(name->form, expected.form);
  EXPECT_EQ(name->source, expected.source);
  EXPECT_EQ(name->variant, expected.variant);
  EXPECT_EQ(name->Engine(), engine);
  EXPECT_EQ(name->Write(), text);
}

TEST(CandidateName, OfAKernelIsRead) {
  ExpectRead("graph/engine 67/2=1,5=0", {1, "", "graph", "engine 67/2=1,5=0"}, "graph/67");
  ExpectRead("graph/engine 0", {1, "", "graph", "engine 0"}, "graph/0");
  ExpectRead("nhwc graph/engine 6/2=1", {1, "nhwc", "graph", "engine 6/2=1"}, "graph/6");
  ExpectRead("parts4 nhwc own/planes", {4, "nhwc", "own", "planes"}, "own/planes");
  ExpectRead("parts12 own/direct", {12, "", "own", "direct"}, "own/direct");
  ExpectRead("legacy/algorithm 1/math 2", {1, "", "legacy", "algorithm 1/math 2"}, "legacy/1");
  ExpectRead(
      "legacy/spatial_persistent", {1, "", "legacy", "spatial_persistent"},
      "legacy/spatial_persistent");
  ExpectRead(
      "padded8 own/tensor-cores/float/128x64", {1, "padded8", "own", "tensor-cores/float/128x64"},
      "own/tensor-cores");
  ExpectRead("onednn/plain/jit:avx2", {1, "", "onednn", "plain/jit:avx2"}, "onednn/plain");
  ExpectRead("own", {1, "", "own", ""}, "own");
}

TEST(CandidateName, OfNoKernelIsNotRead) {
  for (const char* text : {"", " ", " own/direct", "own/", "nhwc own/", "parts4 ", "parts04 own"}) {
    EXPECT_FALSE(KernelName::Read(text)) << text;
  }
}

TEST(CandidateName, IsOfOneEngine) {
  const KernelName kernel = {.form = "nhwc", .source = "graph", .variant = "engine 67/2=1"};
  EXPECT_TRUE(kernel.IsEngine("graph", 67));
  EXPECT_FALSE(kernel.IsEngine("graph", 6));
  EXPECT_FALSE(kernel.IsEngine("legacy", 67));
}

TEST(CandidateName, OfSeveralKernelsIsRead) {
  const KernelName first = {.form = "nhwc", .source = "graph", .variant = "engine 1"};
  const KernelName second = {.form = "nhwc", .source = "graph", .variant = "engine 2"};
  const std::vector<std::pair<std::string, CandidateName>> names = {
      {"nhwc graph/engine 1", {Arrangement::kAlone, {first}}},
      {"in turn: nhwc graph/engine 1 & nhwc graph/engine 2",
       {Arrangement::kInTurn, {first, second}}},
      {"side by side: nhwc graph/engine 2 & nhwc graph/engine 1",
       {Arrangement::kSideBySide, {second, first}}},
      {"in one pass: own/first-layers",
       {Arrangement::kInOnePass, {{.source = "own", .variant = "first-layers"}}}}};
  for (const auto& [text, expected] : names) {
    EXPECT_EQ(CandidateName::Read(text), expected) << text;
    EXPECT_EQ(expected.Write(), text);
  }
  for (const char* text :
       {"in turn: nonsense", "side by side: own/a &", "in one pass: ", "in turn: own/a & "}) {
    EXPECT_FALSE(CandidateName::Read(text)) << text;
  }
}

TEST(CandidateName, SaysInWhatFormOperandsAreTaken) {
  EXPECT_EQ(FormOf("own/direct"), "");
  EXPECT_EQ(FormOf("nhwc own/window"), "nhwc");
  EXPECT_EQ(FormOf("parts4 nhwc own/window"), "parts4 nhwc");
  EXPECT_NE(FormOf("parts4 own/window"), "");
  EXPECT_EQ(FormOf("side by side: nhwc graph/engine 1 & nhwc graph/engine 2"), "");
  EXPECT_EQ(FormOf("in one pass: own/first-layers"), "");
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
