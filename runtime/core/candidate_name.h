#ifndef GRADSMITH_CORE_CANDIDATE_NAME_H_
#define GRADSMITH_CORE_CANDIDATE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// How the names of candidates are written and read: Candidate::id, which is shown to users and
/// kept in files. All that takes one apart is here.
namespace gradsmith::internal {

/// KernelName names one way to compute one problem: "parts4 nhwc graph/engine 67/2=1,5=0" computes
/// the batch in four parts, in the form "nhwc", by the source "graph" in its variant "engine
/// 67/2=1,5=0".
struct KernelName {
  std::int64_t parts = 1;
  /// The form in which the operands meet the source; empty where it is as they are.
  std::string form = {};
  std::string source = {};
  /// The way among those that the source has; empty where it has one alone.
  std::string variant = {};

  /// Read returns nothing where Write does not write such a text.
  static std::optional<KernelName> Read(std::string_view text);
  [[nodiscard]] std::string Write() const;

  /// Kernel returns the name without parts and form: "graph/engine 67/2=1,5=0".
  [[nodiscard]] std::string Kernel() const;
  /// Engine returns the source and its engine, without form and knobs, as lists of bad engines have
  /// it: "graph/67", "legacy/1" of "legacy/algorithm 1/math 2", "own".
  [[nodiscard]] std::string Engine() const;
  [[nodiscard]] bool IsEngine(std::string_view of_source, std::int64_t number) const;

  friend bool operator==(const KernelName&, const KernelName&) = default;
};

/// Arrangement is how the kernels for several outputs of a call follow each other.
enum class Arrangement : unsigned char {
  kAlone,       ///< a single problem's kernel: "own/direct"
  kInTurn,      ///< "in turn: nhwc own/window & nhwc graph/engine 1"
  kSideBySide,  ///< "side by side: nhwc own/window & nhwc graph/engine 1"
  kInOnePass    ///< one kernel for all: "in one pass: own/first-layers"
};

/// CandidateName is what the id of any candidate says.
struct CandidateName {
  Arrangement arrangement = Arrangement::kAlone;
  /// There are two in turn and side by side, otherwise one.
  std::vector<KernelName> kernels = {};

  /// Read returns nothing where Write does not write such a text.
  static std::optional<CandidateName> Read(std::string_view text);
  [[nodiscard]] std::string Write() const;

  friend bool operator==(const CandidateName&, const CandidateName&) = default;
};

/// FormOf returns in how many parts and in what form a candidate takes a problem's operands, such
/// as "parts4 nhwc"; nothing where they are taken as they are, or by kernels of several outputs.
std::string FormOf(std::string_view candidate);

/// InForm returns the name of a kernel for operands of a form, and InParts that of one for parts of
/// a batch; the same name where there is no form, or one part.
std::string InForm(std::string_view form, std::string_view name);
std::string InParts(std::int64_t parts, std::string_view name);

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
