#include "core/candidate_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace gradsmith::internal {

namespace {

constexpr std::string_view kParts = "parts";
constexpr std::string_view kAnd = " & ";

/// What the names of arrangements begin with, in their order.
constexpr std::array<std::string_view, 4> kArrangements = {
    "", "in turn: ", "side by side: ", "in one pass: "};

bool AreTwo(Arrangement arrangement) {
  return arrangement == Arrangement::kInTurn || arrangement == Arrangement::kSideBySide;
}

std::string_view BeginningOf(Arrangement arrangement) {
  return kArrangements.at(static_cast<std::size_t>(arrangement));
}

Arrangement ArrangementOf(std::string_view text) {
  for (const Arrangement arrangement :
       {Arrangement::kInTurn, Arrangement::kSideBySide, Arrangement::kInOnePass}) {
    if (text.starts_with(BeginningOf(arrangement))) {
      return arrangement;
    }
  }
  return Arrangement::kAlone;
}

/// Removes what InParts writes before a name; 1 where that is nothing.
std::int64_t TakeParts(std::string_view* text) {
  std::string_view rest = *text;
  std::int64_t parts = 0;
  if (!TakeNumber(&rest, kParts, &parts) || !rest.starts_with(' ') || parts < 2) {
    return 1;
  }
  *text = rest.substr(1);
  return parts;
}

}  // namespace

std::optional<KernelName> KernelName::Read(std::string_view text) {
  std::string_view rest = text;
  KernelName name{.parts = TakeParts(&rest)};
  const std::size_t first_slash = std::min(rest.find('/'), rest.size());
  if (const std::size_t blank = rest.rfind(' ', first_slash); blank < first_slash) {
    name.form = rest.substr(0, blank);
    rest.remove_prefix(blank + 1);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  name.source = rest.substr(0, slash);
  name.variant = rest.substr(std::min(slash + 1, rest.size()));
  return !name.source.empty() && name.Write() == text ? std::optional(std::move(name))
                                                      : std::nullopt;
}

std::string KernelName::Write() const {
  return InParts(parts, InForm(form, Kernel()));
}

std::string KernelName::Kernel() const {
  return NameOfVariant(source, variant);
}

std::string KernelName::Engine() const {
  const std::string_view first = std::string_view(variant).substr(0, variant.find('/'));
  return NameOfVariant(source, first.substr(first.rfind(' ') + 1));
}

bool KernelName::IsEngine(std::string_view of_source, std::int64_t number) const {
  return source == of_source && Engine() == NameOfVariant(of_source, std::to_string(number));
}

std::optional<CandidateName> CandidateName::Read(std::string_view text) {
  CandidateName name{.arrangement = ArrangementOf(text)};
  std::string_view rest = text.substr(BeginningOf(name.arrangement).size());
  std::vector<std::string_view> kernels = {rest};
  if (AreTwo(name.arrangement)) {
    const std::size_t middle = rest.find(kAnd);
    if (middle == std::string_view::npos) {
      return std::nullopt;
    }
    kernels = {rest.substr(0, middle), rest.substr(middle + kAnd.size())};
  }
  for (const std::string_view kernel : kernels) {
    std::optional<KernelName> read = KernelName::Read(kernel);
    if (!read) {
      return std::nullopt;
    }
    name.kernels.push_back(std::move(*read));
  }
  return name;
}

std::string CandidateName::Write() const {
  std::string text(BeginningOf(arrangement));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    text.append(i == 0 ? "" : kAnd).append(kernels[i].Write());
  }
  return text;
}

std::string FormOf(std::string_view candidate) {
  const std::optional<CandidateName> name = CandidateName::Read(candidate);
  if (!name || name->arrangement != Arrangement::kAlone) {
    return {};
  }
  const KernelName& kernel = name->kernels.front();
  return kernel.parts > 1 ? InParts(kernel.parts, kernel.form) : kernel.form;
}

std::string InForm(std::string_view form, std::string_view name) {
  return form.empty() ? std::string(name) : std::string(form).append(" ").append(name);
}

std::string InParts(std::int64_t parts, std::string_view name) {
  return parts == 1 ? std::string(name)
                    : std::string(kParts).append(std::to_string(parts)).append(" ").append(name);
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
