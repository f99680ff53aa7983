#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision_file.h"
#include "fuzz.h"
#include "support/scratch_folder.h"

/// Whatever stands in the file of the cache: what is read is bounded and printable, what is no
/// decision file stays as it is, and what is appended is there afterwards.
namespace gradsmith::fuzz {
namespace {

using internal::DecisionFile;
using internal::StoredDecision;

constexpr std::string_view kMark = "gradsmith decisions";

/// How many decisions came of all inputs.
std::size_t decisions_read = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

/// The text with the right checksum (FNV-1a) behind every line that has a tab, so that fields are
/// read and not the checksum alone.
std::string WithChecksums(std::string_view text) {
  std::string whole;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (const std::size_t tab = line.rfind('\t'); tab != std::string_view::npos) {
      std::uint32_t sum = 2166136261U;
      for (const char character : line.substr(0, tab)) {
        sum = (sum ^ static_cast<unsigned char>(character)) * 16777619U;
      }
      whole += std::string(line.substr(0, tab)) + "\t" + std::to_string(sum);
    } else {
      whole += line;
    }
    whole += text.substr(end, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return whole;
}

bool IsShown(const std::string& text) {
  return std::ranges::none_of(text, [](char character) {
    return static_cast<unsigned char>(character) < 0x20 || character == 0x7F;
  });
}

bool AreSame(const StoredDecision& a, const StoredDecision& b) {
  return a.key == b.key && a.decision.id == b.decision.id &&
         a.decision.workspace == b.decision.workspace && a.decision.mode == b.decision.mode &&
         a.problem == b.problem;
}

std::vector<StoredDecision> ReadAndCheck(const DecisionFile& file) {
  std::vector<std::string> warnings;
  std::vector<StoredDecision> decisions = file.Read(&warnings);
  for (const StoredDecision& stored : decisions) {
    Expect(IsShown(stored.decision.id) && IsShown(stored.problem), "a text is not printable");
    Expect(!stored.key.empty(), "a decision is for nothing");
  }
  Expect(warnings.size() <= 1, "more than one warning");
  const auto given = DecisionFile::ReadAnyones(file.path());
  Expect(given.ok() == warnings.empty(), "import does not see what reading warns of");
  Expect(!given.ok() || given->size() == decisions.size(), "import reads something else");
  return decisions;
}

void CheckAppends(const DecisionFile& file, const std::string& text) {
  StoredDecision added;
  added.key.Add(0x1234567);
  added.decision = {"appended", 1, SearchMode::kBenchmark, 0.5};
  added.problem = "a problem";
  const Status status = file.Append(added);
  const bool is_ours = text.starts_with(kMark) || kMark.starts_with(text);
  Expect(status.ok() == is_ours, "what is no decision file is written, or one is not");
  if (!is_ours) {
    Expect(support::ReadFile(file.path()) == text, "a file that is not ours has changed");
    return;
  }
  const std::vector<StoredDecision> decisions = ReadAndCheck(file);
  Expect(!decisions.empty() && AreSame(decisions.back(), added), "what was appended is not there");
  // What is read and written anew is read as it was.
  Expect(file.Replace(decisions).ok(), "a decision file cannot be written anew");
  const std::vector<StoredDecision> again = ReadAndCheck(file);
  Expect(std::ranges::equal(decisions, again, &AreSame), "written anew it holds something else");
  Expect(file.Forget(added).ok(), "nothing can be forgotten");
  Expect(ReadAndCheck(file).size() + 1 == decisions.size(), "what was forgotten is there");
}

void Check(const std::string& text) {
  static const support::ScratchFolder folder;
  const DecisionFile file(folder.path() + "/decisions.txt");
  support::WriteFile(file.path(), text);
  decisions_read += ReadAndCheck(file).size();
  Expect(support::ReadFile(file.path()) == text, "reading has changed the file");
  CheckAppends(file, text);
}

}  // namespace
}  // namespace gradsmith::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  gradsmith::fuzz::Check(text);
  gradsmith::fuzz::Check(
      std::string(gradsmith::internal::kDecisionFileHeader) + gradsmith::fuzz::WithChecksums(text));
  return 0;
}

/// Where lines look different from those of the corpus, nothing behind their fields is reached.
extern "C" void FuzzTargetHasRunCorpus() {
  gradsmith::fuzz::Expect(
      gradsmith::fuzz::decisions_read > 0,
      "no input of the corpus holds a decision: a line has " +
          std::to_string(gradsmith::internal::kDecisionFields) + " fields now");
}
