#include "core/text.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace gradsmith::internal
