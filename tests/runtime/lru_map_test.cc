#include "core/lru_map.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gradsmith::internal {
namespace {

using Map = LruMap<int, std::string, std::hash<int>>;

std::vector<int> KeysOf(const Map& map) {
  std::vector<int> keys;
  for (const auto& [key, value] : map.entries()) {
    keys.push_back(key);
  }
  return keys;
}

TEST(LruMap, TheLongestUnusedMakesRoom) {
  Map map(3);
  for (const int key : {1, 2, 3}) {
    EXPECT_EQ(map.Insert(key, std::to_string(key)), std::to_string(key));
  }
  ASSERT_NE(map.Find(1), nullptr);
  map.Insert(4, "4");
  EXPECT_EQ(KeysOf(map), (std::vector<int>{4, 1, 3}));
  EXPECT_EQ(map.Find(2), nullptr);
  EXPECT_EQ(KeysOf(map), (std::vector<int>{4, 1, 3}));  // asking for what is not there is no use
  EXPECT_EQ(*map.Find(1), "1");
}

TEST(LruMap, InsertingAgainReplacesAndCountsAsAUse) {
  Map map(2);
  map.Insert(1, "old");
  map.Insert(2, "2");
  EXPECT_EQ(map.Insert(1, "new"), "new");
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(KeysOf(map), (std::vector<int>{1, 2}));
  EXPECT_EQ(*map.Find(1), "new");
}

TEST(LruMap, StaysWithinItsCapacity) {
  Map map(5);
  for (int key = 0; key < 1000; ++key) {
    map.Insert(key, "");
    EXPECT_LE(map.size(), 5U);
  }
  EXPECT_EQ(KeysOf(map), (std::vector<int>{999, 998, 997, 996, 995}));
}

TEST(LruMap, ErasesOneOrAll) {
  Map map(3);
  map.Insert(1, "1");
  map.Insert(2, "2");
  map.Erase(1);
  map.Erase(7);
  EXPECT_EQ(KeysOf(map), std::vector<int>{2});
  EXPECT_EQ(map.Find(1), nullptr);
  map.Insert(1, "again");
  EXPECT_EQ(*map.Find(1), "again");
  map.Clear();
  EXPECT_EQ(map.size(), 0U);
  EXPECT_EQ(map.Find(2), nullptr);
}

TEST(LruMap, HoldsValuesThatOnlyMoveAndDestroysThem) {
  const auto token = std::make_shared<int>(0);
  struct Owner {
    std::shared_ptr<int> token;
    std::unique_ptr<int> only_moves;
  };
  LruMap<int, Owner, std::hash<int>> map(2);
  for (int key = 0; key < 4; ++key) {
    map.Insert(key, {token, nullptr});
  }
  EXPECT_EQ(token.use_count(), 3);
  map.Erase(3);
  EXPECT_EQ(token.use_count(), 2);
  map.Clear();
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace gradsmith::internal
