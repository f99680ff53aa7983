#ifndef GRADSMITH_CORE_TEXT_H_
#define GRADSMITH_CORE_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradsmith/types.h"

/// Pieces of error sentences.
namespace gradsmith::internal {

/// Shortened returns a text of the caller's as it is, or, where it is so long that it would hide
/// the sentence, its beginning and how long it is, cut between UTF-8's characters.
std::string Shortened(std::string_view text);

/// Quoted returns "'name'", shortened.
std::string Quoted(std::string_view name);

/// EditDistance counts the insertions, deletions, changes and swaps of neighbours that turn `a`
/// into `b`; case does not count. Texts longer than names are count as different in every letter:
/// it would take time by the product of their lengths.
int EditDistance(std::string_view a, std::string_view b);

/// Closest returns the candidate that `name` was most likely meant to be, or an empty view where
/// none is near.
std::string_view Closest(std::string_view name, std::span<const std::string_view> candidates);

/// DidYouMean returns "; did you mean 'X'?" or nothing.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates);

/// Printable returns a text in which nothing moves a terminal's cursor or turns its direction, and
/// which is UTF-8: other bytes, and control and format characters, stand there as "\\x1b", byte by
/// byte.
std::string Printable(std::string_view text);

/// NumberText returns the shortest text that reads back as the number, the same in every locale:
/// "0.5", "2", "-1e-300", "inf".
std::string NumberText(double number);

/// RealText returns the same, with a point where it would read as an integer: "2.0".
std::string RealText(double number);

/// ValueInError returns a number as errors show it: an integer, or by RealText.
inline std::string ValueInError(std::int64_t number) {
  return std::to_string(number);
}
inline std::string ValueInError(double number) {
  return RealText(number);
}

/// Counted returns "1 type" or "2 types".
std::string Counted(std::int64_t count, std::string_view noun);

/// Join returns the names, shortened, separated by ", ".
std::string Join(std::span<const std::string_view> names);

/// TypesText returns "(float, MLFloat16)".
std::string TypesText(std::span<const DataType> types);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_TEXT_H_
