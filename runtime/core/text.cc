#include "core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradsmith::internal {

namespace {

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// Control characters, and those that are not seen and change what is: separators of lines, marks
/// of direction, tags.
bool IsPrintable(std::uint32_t character) {
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };
  constexpr Range kHidden[] = {{0x00, 0x1F},     {0x7F, 0x9F},      {0xAD, 0xAD},
                               {0x61C, 0x61C},   {0x200B, 0x200F},  {0x2028, 0x202E},
                               {0x2060, 0x206F}, {0xFEFF, 0xFEFF},  {0xFFF9, 0xFFFB},
                               {0xD800, 0xDFFF}, {0xE0000, 0xE0FFF}};
  return std::ranges::none_of(kHidden, [&](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

/// The bytes of the first character, where it is one of UTF-8 and printable; otherwise 0.
std::size_t SizeOfPrintable(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t size = 1U + static_cast<std::size_t>(first >= 0x80) +
                           static_cast<std::size_t>(first >= 0xE0) +
                           static_cast<std::size_t>(first >= 0xF0);
  if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || size > text.size()) {
    return 0;
  }
  std::uint32_t character = size == 1 ? first : first & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) {
      return 0;
    }
    character = character << 6U | (byte(i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return kLeast[size] <= character && character <= 0x10FFFF && IsPrintable(character) ? size : 0;
}

/// No name is longer.
constexpr std::size_t kLongestName = 200;

}  // namespace

std::string Shortened(std::string_view text) {
  constexpr std::size_t kShown = 60;
  if (text.size() <= kLongestName) {
    return std::string(text);
  }
  std::size_t end = kShown;
  // UTF-8's bytes 10xxxxxx go on with a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return std::string(text.substr(0, end)) + "... (" + std::to_string(text.size()) + " bytes)";
}

std::string Quoted(std::string_view name) {
  return "'" + Shortened(name) + "'";
}

int EditDistance(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) > kLongestName) {
    return static_cast<int>(
        std::min<std::size_t>(std::max(a.size(), b.size()), std::numeric_limits<int>::max()));
  }
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
  int best_distance = static_cast<int>(std::min(name.size(), kLongestName)) / 3 + 2;
  for (const std::string_view candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    // Where two are as near, the shorter is meant: one types a letter too many rather than a wrong
    // one.
    const bool is_shorter = !best.empty() && candidate.size() < best.size();
    if (distance < best_distance || (distance == best_distance && is_shorter)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view closest = Closest(name, candidates);
  return closest.empty() ? std::string() : "; did you mean " + Quoted(closest) + "?";
}

std::string Printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string printable;
  while (!text.empty()) {
    const std::size_t size = SizeOfPrintable(text);
    printable += text.substr(0, size);
    if (size == 0) {
      const auto byte = static_cast<unsigned char>(text.front());
      printable += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return printable;
}

std::string NumberText(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string RealText(double number) {
  const std::string text = NumberText(number);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string Counted(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string Join(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += text.empty() ? "" : ", ";
    text += Shortened(name);
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
