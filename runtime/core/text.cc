#include "core/text.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradsmith::internal {

namespace {

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

}  // namespace

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    cost[i][0] = static_cast<int>(i);
  }
  for (std::size_t j = 0; j <= b.size(); ++j) {
    cost[0][j] = static_cast<int>(j);
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = SameLetter(a[i - 1], b[j - 1]) ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && SameLetter(a[i - 1], b[j - 2]) && SameLetter(a[i - 2], b[j - 1])) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string_view Closest(std::string_view name, std::span<const std::string_view> candidates) {
  std::string_view best;
  int best_distance = static_cast<int>(name.size()) / 3 + 2;
  for (const std::string_view candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view closest = Closest(name, candidates);
  return closest.empty() ? std::string() : "; did you mean '" + std::string(closest) + "'?";
}

std::string Counted(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string Join(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

std::string TypesText(std::span<const DataType> types) {
  std::vector<std::string_view> names;
  names.reserve(types.size());
  for (const DataType type : types) {
    names.push_back(ToString(type));
  }
  return "(" + Join(names) + ")";
}

}  // namespace gradsmith::internal
