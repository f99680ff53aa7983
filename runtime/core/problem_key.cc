#include "core/problem_key.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradsmith::internal {

std::string ProblemKey::Text() const {
  std::string text;
  std::array<char, 17> digits{};
  for (int i = 0; i < size_; ++i) {
    const auto end = std::to_chars(
        digits.data(), digits.data() + digits.size(), static_cast<std::uint64_t>(words_[i]), 16);
    text += i == 0 ? "" : ".";
    text.append(digits.data(), end.ptr);
  }
  return text;
}

ProblemKey ProblemKey::FromText(std::string_view text) {
  ProblemKey key;
  for (bool more = !text.empty(); more;) {
    std::uint64_t word = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), word, 16);
    if (end.ec != std::errc() || key.size_ == kCapacity) {
      return {};
    }
    key.Add(static_cast<std::int64_t>(word));
    text.remove_prefix(end.ptr - text.data());
    more = !text.empty();
    if (more && text.front() != '.') {
      return {};
    }
    text.remove_prefix(more ? 1 : 0);
  }
  return key;
}

}  // namespace gradsmith::internal
