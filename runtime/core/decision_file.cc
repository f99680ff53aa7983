#include "core/decision_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "core/text.h"
#include "core/user_file.h"

namespace gradsmith::internal {

namespace {

/// What every version's header begins with.
constexpr std::string_view kMark = "gradsmith decisions";
/// This stands in place of a mode where what the line names does not count any more.
constexpr std::string_view kForgotten = "forgotten";
/// Lines are some hundred bytes long, and files have some ten thousand: whoever made one that has
/// more shall not have what it pleases of this process's memory.
constexpr std::size_t kMostLine = 65536;
constexpr std::size_t kMostDecisions = 65536;

/// Whoever mistypes the path of the cache must not lose what is there.
Status CheckIsOurs(const std::string& path, std::string_view text) {
  return text.starts_with(kMark) || kMark.starts_with(text)
             ? Status()
             : Internal("cannot write " + Printable(path) + ": it is there and no decision file");
}

/// FNV-1a.
std::uint32_t Checksum(std::string_view text) {
  std::uint32_t sum = 2166136261U;
  for (const char character : text) {
    sum = (sum ^ static_cast<unsigned char>(character)) * 16777619U;
  }
  return sum;
}

std::string Sanitized(std::string text) {
  for (char& character : text) {
    character = character == '\t' || character == '\n' ? ' ' : character;
  }
  return text;
}

std::string ToLine(const StoredDecision& stored, std::string_view mode) {
  const Decision& decision = stored.decision;
  std::string line = stored.key.Text() + "\t" + Sanitized(decision.id) + "\t" +
                     std::to_string(decision.workspace) + "\t" + std::string(mode) + "\t" +
                     NumberText(decision.milliseconds) + "\t" + NumberText(decision.error) + "\t" +
                     Sanitized(stored.problem);
  return line + "\t" + std::to_string(Checksum(line)) + "\n";
}

std::string ToLine(const StoredDecision& stored) {
  return ToLine(stored, ToString(stored.decision.mode));
}

/// The fields of a line; one more than there should be where there are more.
std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t tab = line.find('\t');
       tab != std::string_view::npos && fields.size() < kDecisionFields; tab = line.find('\t')) {
    fields.push_back(line.substr(0, tab));
    line.remove_prefix(tab + 1);
  }
  fields.push_back(line);
  return fields;
}

template <typename Number>
bool Parse(std::string_view text, Number* number) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), *number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

bool ParseMode(std::string_view text, SearchMode* mode) {
  constexpr std::array kModes = {
      SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark};
  const auto* const found = std::find_if(
      kModes.begin(), kModes.end(), [&](SearchMode each) { return text == ToString(each); });
  if (found == kModes.end()) {
    return false;
  }
  *mode = *found;
  return true;
}

/// Texts are made printable: they end on terminals, whoever wrote the file.
bool FromLine(std::string_view line, StoredDecision* stored, bool* forgotten) {
  if (line.size() > kMostLine) {
    return false;
  }
  const std::vector<std::string_view> fields = Split(line);
  std::uint32_t checksum = 0;
  if (fields.size() != kDecisionFields || !Parse(fields[7], &checksum) ||
      Checksum(line.substr(0, line.rfind('\t'))) != checksum) {
    return false;
  }
  stored->key = ProblemKey::FromText(fields[0]);
  stored->decision.id = Printable(fields[1]);
  stored->problem = Printable(fields[6]);
  *forgotten = fields[3] == kForgotten;
  return !stored->key.empty() && Parse(fields[2], &stored->decision.workspace) &&
         (*forgotten || ParseMode(fields[3], &stored->decision.mode)) &&
         Parse(fields[4], &stored->decision.milliseconds) &&
         Parse(fields[5], &stored->decision.error);
}

/// What a file's lines leave, in the order of keys' last lines.
class Standing {
 public:
  /// Also where an earlier one stays: the problem is one that is still met.
  void Add(StoredDecision stored) {
    const auto place = places_.find(stored.key);
    if (place == places_.end()) {
      decisions_.push_back(std::move(stored));
      places_.emplace(decisions_.back().key, std::prev(decisions_.end()));
      if (decisions_.size() > kMostDecisions) {
        places_.erase(decisions_.front().key);
        decisions_.pop_front();
      }
      return;
    }
    decisions_.splice(decisions_.end(), decisions_, place->second);
    if (Replaces(stored.decision, place->second->decision)) {
      *place->second = std::move(stored);
    }
  }
  /// What another process has chosen since stays.
  void Forget(const StoredDecision& stored) {
    const auto place = places_.find(stored.key);
    if (place != places_.end() && place->second->decision.id == stored.decision.id) {
      decisions_.erase(place->second);
      places_.erase(place);
    }
  }
  [[nodiscard]] std::vector<StoredDecision> Take() {
    places_.clear();
    return {std::make_move_iterator(decisions_.begin()), std::make_move_iterator(decisions_.end())};
  }

 private:
  std::list<StoredDecision> decisions_;
  std::unordered_map<ProblemKey, std::list<StoredDecision>::iterator, ProblemKeyHash> places_;
};

/// The decisions of a file's text; how many lines are damaged.
std::vector<StoredDecision> FromText(std::string_view text, int* damaged) {
  Standing standing;
  text.remove_prefix(kDecisionFileHeader.size());
  while (!text.empty()) {
    // The last line may lack its end: the checksum tells whether it is whole.
    const std::size_t end = std::min(text.find('\n'), text.size());
    StoredDecision stored;
    bool forgotten = false;
    if (!FromLine(text.substr(0, end), &stored, &forgotten)) {
      ++*damaged;
    } else if (forgotten) {
      standing.Forget(stored);
    } else {
      standing.Add(std::move(stored));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return standing.Take();
}

/// The last of them, whose lines are so many bytes at most.
std::vector<StoredDecision> Newest(std::vector<StoredDecision> decisions, std::size_t bytes) {
  std::size_t used = 0;
  auto first = decisions.end();
  while (first != decisions.begin()) {
    used += ToLine(*(first - 1)).size();
    if (used > bytes) {
      break;
    }
    --first;
  }
  decisions.erase(decisions.begin(), first);
  return decisions;
}

std::string ToLines(const std::vector<StoredDecision>& decisions) {
  std::string lines;
  for (const StoredDecision& stored : decisions) {
    lines += ToLine(stored);
  }
  return lines;
}

std::string ToText(const std::vector<StoredDecision>& decisions) {
  return std::string(kDecisionFileHeader) + ToLines(decisions);
}

/// The decisions of a file, and in `*warnings` what is odd of it.
std::vector<StoredDecision>
FromFile(const std::string& path, std::string_view text, std::vector<std::string>* warnings) {
  if (text.empty()) {
    return {};
  }
  if (!text.starts_with(kDecisionFileHeader)) {
    warnings->push_back(Printable(path) + " is ignored: it is not a decision file of this version");
    return {};
  }
  int damaged = 0;
  std::vector<StoredDecision> decisions = FromText(text, &damaged);
  if (damaged > 0) {
    warnings->push_back(
        Printable(path) + ": " + std::to_string(damaged) + " damaged " +
        (damaged == 1 ? "line is" : "lines are") + " ignored");
  }
  return decisions;
}

}  // namespace

bool Replaces(const Decision& later, const Decision& earlier) {
  return later.mode == SearchMode::kBenchmark || earlier.mode != SearchMode::kBenchmark;
}

std::vector<StoredDecision> DecisionFile::Read(std::vector<std::string>* warnings) const {
  const Result<UserFile> file = UserFile::Find(path_);
  const Result<std::string> text = file.ok() ? file->Read() : file.status();
  if (!text.ok()) {
    warnings->push_back(text.status().message());
    return {};
  }
  return FromFile(path_, *text, warnings);
}

Result<std::vector<StoredDecision>> DecisionFile::ReadAnyones(const std::string& path) {
  const Result<std::string> text = internal::ReadAnyones(path);
  if (!text.ok()) {
    return InvalidArgument(text.status().message());
  }
  std::vector<std::string> warnings;
  std::vector<StoredDecision> decisions = FromFile(path, *text, &warnings);
  if (!warnings.empty()) {
    return InvalidArgument(warnings.front() + "; nothing is taken over");
  }
  return decisions;
}

Status DecisionFile::Append(const StoredDecision& stored) const {
  return AppendLines(ToLine(stored));
}

Status DecisionFile::AppendAll(const std::vector<StoredDecision>& decisions) const {
  return AppendLines(ToLines(decisions));
}

Status DecisionFile::Forget(const StoredDecision& stored) const {
  return AppendLines(ToLine(stored, kForgotten));
}

Status DecisionFile::Write(
    const std::function<Status(const Locked& locked, const std::string& text)>& write) const {
  Result<UserFile> file = UserFile::FindToWrite(path_);
  if (!file.ok()) {
    return file.status();
  }
  Result<FileDescriptor> lock = file->Lock();
  if (!lock.ok()) {
    return lock.status();
  }
  const Result<std::string> text = file->Read();
  return text.ok() ? write({std::move(file).value(), std::move(lock).value()}, *text)
                   : text.status();
}

Status DecisionFile::AppendLines(const std::string& lines) const {
  return Write([&](const Locked& locked, const std::string& text) {
    if (!text.starts_with(kDecisionFileHeader)) {
      // New, cut short within the header, or of another version.
      Status status = CheckIsOurs(path_, text);
      return status.ok() ? locked.Replace(std::string(kDecisionFileHeader) + lines) : status;
    }
    // A file that was cut short ends in the middle of a line: begin a new one.
    const std::string added = (text.back() == '\n' ? "" : "\n") + lines;
    if (text.size() <= most_bytes_ && text.size() + added.size() <= UserFile::kMostBytes) {
      return locked.file.Append(added);
    }
    int damaged = 0;
    return locked.Replace(ToText(Newest(FromText(text + added, &damaged), most_bytes_ / 2)));
  });
}

Status DecisionFile::Replace(const std::vector<StoredDecision>& decisions) const {
  return Write([&](const Locked& locked, const std::string& text) {
    Status status = CheckIsOurs(path_, text);
    return status.ok() ? locked.Replace(ToText(Newest(decisions, UserFile::kMostBytes / 2)))
                       : status;
  });
}

}  // namespace gradsmith::internal
