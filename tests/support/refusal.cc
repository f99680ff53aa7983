#include "support/refusal.h"

#include <algorithm>
#include <cctype>

namespace gradsmith::support {

namespace {

bool GoesOn(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_' ||
         character == '-';
}

}  // namespace

bool Mentions(std::string_view text, std::string_view phrase) {
  for (std::size_t at = text.find(phrase); at != std::string_view::npos;
       at = text.find(phrase, at + 1)) {
    const std::size_t end = at + phrase.size();
    const bool starts = at == 0 || !GoesOn(text[at - 1]) || !GoesOn(phrase.front());
    const bool ends = end == text.size() || !GoesOn(text[end]) || !GoesOn(phrase.back());
    if (starts && ends) {
      return true;
    }
  }
  return false;
}

void VerifyPhrases(
    const std::string& what,
    const Status& status,
    StatusCode code,
    const std::vector<std::string>& phrases,
    Report& report) {
  if (status.code() != code) {
    report.Fail(
        what + ": the status is " + std::string(ToString(status.code())) + " '" + status.message() +
        "'; expected " + std::string(ToString(code)));
    return;
  }
  const auto check = [&](const std::string& phrase) {
    if (!Mentions(status.message(), phrase)) {
      report.Fail(what + ": the error does not mention '" + phrase + "': " + status.message());
    }
  };
  std::for_each(phrases.begin(), phrases.end(), check);
}

void VerifyRefusal(
    const Subject& subject,
    const std::string& what,
    const Status& status,
    const std::vector<std::string>& phrases,
    Report& report) {
  VerifyPhrases(what, status, StatusCode::kInvalidArgument, phrases, report);
  const std::string prefix = std::string(subject.op().name) + "[" + std::string(subject.row->name) +
                             "] on " + std::string(ToString(subject.row->backend)) + " (" +
                             std::string(subject.op().source_file) + ":" +
                             std::to_string(subject.row->source_line()) + "): ";
  if (!status.ok() && !status.message().starts_with(prefix)) {
    report.Fail(what + ": the error does not begin with '" + prefix + "': " + status.message());
  }
}

}  // namespace gradsmith::support
