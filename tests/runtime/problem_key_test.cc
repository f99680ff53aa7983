#include "core/problem_key.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

namespace gradsmith::internal {
namespace {

ProblemKey KeyOf(std::initializer_list<std::int64_t> words) {
  ProblemKey key;
  for (const std::int64_t word : words) {
    key.Add(word);
  }
  return key;
}

TEST(ProblemKey, IsRestoredFromItsText) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ProblemKey full;
  for (int i = 0; i < ProblemKey::kCapacity; ++i) {
    full.Add(i % 2 == 0 ? kLeast + i : kMost - i);
  }
  for (const ProblemKey& key :
       {KeyOf({0}), KeyOf({1, 0}), KeyOf({-1, 10, 255}), KeyOf({kLeast, kMost}), full}) {
    const ProblemKey restored = ProblemKey::FromText(key.Text());
    EXPECT_EQ(restored, key) << key.Text();
    EXPECT_EQ(restored.hash(), key.hash());
    EXPECT_EQ(restored.Text(), key.Text());
  }
  EXPECT_EQ(KeyOf({-1, 10, 255}).Text(), "ffffffffffffffff.a.ff");
}

/// The words are kept in files: they must not change from one process to the next.
TEST(ProblemKey, ATextIsOneWord) {
  ProblemKey key;
  key.AddText("");
  key.AddText("a");
  key.AddText(std::string(1000, 'x'));
  EXPECT_EQ(key.Text().substr(0, 34), "cbf29ce484222325.af63dc4c8601ec8c.");
  ProblemKey other;
  other.AddText("");
  other.AddText("a");
  other.AddText(std::string(999, 'x') + "y");
  EXPECT_FALSE(other == key);
}

/// What there is no room for is told apart all the same, and no memory is overrun.
TEST(ProblemKey, MoreWordsThanThereIsRoomForCount) {
  std::vector<ProblemKey> keys;
  for (int more = 0; more < 3; ++more) {
    for (int last = 0; last < 3; ++last) {
      ProblemKey key;
      for (int i = 0; i < ProblemKey::kCapacity + more; ++i) {
        key.Add(i);
      }
      key.Add(-last);
      keys.push_back(key);
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < keys.size(); ++j) {
      EXPECT_EQ(keys[i] == keys[j], i == j) << i << " " << j;
      EXPECT_EQ(keys[i].Text() == keys[j].Text(), i == j) << i << " " << j;
    }
  }
}

TEST(ProblemKey, GarbageGivesAnEmptyKey) {
  std::string too_long = "1";
  for (int i = 0; i < ProblemKey::kCapacity; ++i) {
    too_long += ".1";
  }
  for (const std::string& text :
       {std::string(), std::string("."), std::string("1."), std::string(".1"), std::string("1..2"),
        std::string("1,2"), std::string("-1"), std::string("1 "), std::string(" 1"),
        std::string("0x1"), std::string("g"), std::string("10000000000000000"),
        std::string("1\0", 2), too_long}) {
    EXPECT_TRUE(ProblemKey::FromText(text).empty()) << text;
  }
  EXPECT_FALSE(ProblemKey::FromText(too_long.substr(2)).empty());
}

TEST(ProblemKey, EqualsWhatHasTheSameWordsInTheSameOrder) {
  EXPECT_EQ(KeyOf({1, 2}), KeyOf({1, 2}));
  EXPECT_EQ(KeyOf({1, 2}).hash(), KeyOf({1, 2}).hash());
  for (const ProblemKey& other :
       {KeyOf({}), KeyOf({1}), KeyOf({2, 1}), KeyOf({1, 2, 0}), KeyOf({1, -2}), KeyOf({0, 1, 2})}) {
    EXPECT_FALSE(KeyOf({1, 2}) == other) << other.Text();
    EXPECT_NE(KeyOf({1, 2}).hash(), other.hash()) << other.Text();
  }
}

/// What is kept in files is made of it.
TEST(ProblemKey, HasTheSameHashInEveryProcess) {
  EXPECT_EQ(KeyOf({1, 2}).hash(), 0xB012119E4D2F9DA0U);
  ProblemKey full;
  for (int i = 0; i < ProblemKey::kCapacity + 2; ++i) {
    full.Add(i);
  }
  EXPECT_EQ(full.hash(), 0xA6043D82CC2AC446U);
}

TEST(ProblemKey, ListsThatMeetAreToldApart) {
  ProblemKey first;
  first.Add(IntList{1, 2});
  first.Add(IntList{3});
  ProblemKey second;
  second.Add(IntList{1});
  second.Add(IntList{2, 3});
  EXPECT_EQ(first.Text(), "2.1.2.1.3");
  EXPECT_FALSE(first == second);
}

}  // namespace
}  // namespace gradsmith::internal
