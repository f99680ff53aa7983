#include "core/candidate_name.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace gradsmith::internal {

CandidateName CandidateName::Parse(std::string_view id) {
  CandidateName name;
  const std::size_t first_slash = std::min(id.find('/'), id.size());
  if (const std::size_t blank = id.rfind(' ', first_slash); blank < first_slash) {
    name.form = id.substr(0, blank + 1);
    id.remove_prefix(blank + 1);
  }
  const std::size_t slash = std::min(id.find('/'), id.size());
  name.source = id.substr(0, slash);
  name.variant = id.substr(std::min(slash + 1, id.size()));
  return name;
}

std::string CandidateName::Engine() const {
  const std::string_view first = variant.substr(0, variant.find('/'));
  return NameOfVariant(source, first.substr(first.rfind(' ') + 1));
}

std::string NameOfVariant(std::string_view implementation, std::string_view variant) {
  std::string name(implementation);
  if (!variant.empty()) {
    name += '/';
    name += variant;
  }
  return name;
}

std::optional<std::string> VariantOf(std::string_view implementation, std::string_view name) {
  if (!name.starts_with(implementation)) {
    return std::nullopt;
  }
  name.remove_prefix(implementation.size());
  if (!name.empty() && name.front() != '/') {
    return std::nullopt;
  }
  return std::string(name.substr(name.empty() ? 0 : 1));
}

bool TakeNumber(std::string_view* text, std::string_view word, std::int64_t* number) {
  if (!text->starts_with(word)) {
    return false;
  }
  const std::string_view digits = text->substr(word.size());
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *number);
  if (error != std::errc()) {
    return false;
  }
  text->remove_prefix(static_cast<std::size_t>(rest - text->data()));
  return true;
}

}  // namespace gradsmith::internal
