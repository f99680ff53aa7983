#ifndef GRADSMITH_CORE_CANDIDATE_NAME_H_
#define GRADSMITH_CORE_CANDIDATE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// How the names of candidates are written and read: Candidate::id, which is shown to users and
/// kept in files. All that takes one apart is here.
namespace gradsmith::internal {

/// CandidateName is a name taken apart: "nhwc graph/engine 67/2=1,5=0" is of the form "nhwc ", from
/// the source "graph", in its variant "engine 67/2=1,5=0". The parts are views of the name.
struct CandidateName {
  /// In what form the operands meet the source, with the blank behind it; empty where it is as they
  /// are.
  std::string_view form;
  std::string_view source;
  /// Empty where the source has one way alone.
  std::string_view variant;

  static CandidateName Parse(std::string_view id);

  /// Engine returns the source and its engine, without form and knobs, as lists of bad engines have
  /// it: "graph/67", "legacy/1" of "legacy/algorithm 1/math 2", "own".
  [[nodiscard]] std::string Engine() const;
};

/// NameOfVariant returns the name of an implementation's variant: "graph/engine 67"; the
/// implementation's own where the variant is empty.
std::string NameOfVariant(std::string_view implementation, std::string_view variant);

/// VariantOf reads such a name: it returns the variant, none where the name is another
/// implementation's.
std::optional<std::string> VariantOf(std::string_view implementation, std::string_view name);

/// TakeNumber removes a word and the number behind it from the front of a text, such as "slices"
/// and 12; false, and nothing removed, where the text does not begin so.
bool TakeNumber(std::string_view* text, std::string_view word, std::int64_t* number);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CANDIDATE_NAME_H_
