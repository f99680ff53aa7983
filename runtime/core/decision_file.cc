#include "core/decision_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gradsmith::internal {

namespace {

constexpr std::string_view kHeader = "gradsmith decisions, format 2\n";
/// What every version's header begins with.
constexpr std::string_view kMark = "gradsmith decisions";
constexpr int kFields = 7;
/// In place of a mode: what the line names does not count any more.
constexpr std::string_view kForgotten = "forgotten";

/// Calls until no signal interrupts.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

/// An open file; closed at the end.
class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(Uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, 0644); })) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&&) = delete;
  File& operator=(File&&) = delete;
  ~File() {
    if (is_open()) {
      close(descriptor_);
    }
  }

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// A lock on the file beside the decisions, held while they are written. Where there can be none,
/// as on some network's file systems, writers take their chance.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : path_(path), file_(path + ".lock", O_RDWR | O_CREAT) {}

  /// Whoever writes is done in milliseconds, unless it was stopped: then the lock is not to be had.
  Status Take() {
    constexpr std::chrono::milliseconds kPause(1);
    const auto give_up = std::chrono::steady_clock::now() + kMostSeconds;
    while (file_.is_open() && flock(file_.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) {
        continue;
      }
      if (errno != EWOULDBLOCK) {
        return {};
      }
      if (std::chrono::steady_clock::now() >= give_up) {
        return Internal(
            "cannot write " + path_ + ": another process has held its lock, " + path_ +
            ".lock, for " + std::to_string(kMostSeconds.count()) + " seconds");
      }
      std::this_thread::sleep_for(kPause);
    }
    return {};
  }

 private:
  static constexpr std::chrono::seconds kMostSeconds{2};

  std::string path_;
  File file_;
};

Status SystemError(const std::string& what) {
  const std::error_code error(errno, std::generic_category());
  return Internal(what + ": " + error.message());
}

/// The file's text; empty where there is none.
Result<std::string> ReadText(const std::string& path) {
  const File file(path, O_RDONLY);
  if (!file.is_open()) {
    return errno == ENOENT ? Result<std::string>("") : SystemError("cannot read " + path);
  }
  std::string text;
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t count =
        Uninterrupted([&] { return read(file.descriptor(), block.data(), block.size()); });
    if (count < 0) {
      return SystemError("cannot read " + path);
    }
    if (count == 0) {
      return text;
    }
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

Status WriteAll(const std::string& path, int flags, std::string_view text) {
  const File file(path, flags | O_WRONLY | O_CREAT);
  if (!file.is_open()) {
    return SystemError("cannot write " + path);
  }
  while (!text.empty()) {
    const ssize_t written =
        Uninterrupted([&] { return write(file.descriptor(), text.data(), text.size()); });
    if (written < 0) {
      return SystemError("cannot write " + path);
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

/// Whoever mistypes the path of the cache must not lose what is there.
Status CheckIsOurs(const std::string& path, std::string_view text) {
  return text.starts_with(kMark) || kMark.starts_with(text)
             ? Status()
             : Internal("cannot write " + path + ": it is there and no decision file");
}

Status MakeFolder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) {
    return {};  // the current one
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? Internal("cannot make the folder of " + path + ": " + error.message()) : Status();
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
  // Not printf, which writes what the program's locale has for a point.
  std::array<char, 32> milliseconds{};
  const auto end = std::to_chars(
      milliseconds.data(), milliseconds.data() + milliseconds.size(), decision.milliseconds);
  std::string line = stored.key.Text() + "\t" + Sanitized(decision.id) + "\t" +
                     std::to_string(decision.workspace) + "\t" + std::string(mode) + "\t" +
                     std::string(milliseconds.data(), end.ptr) + "\t" + Sanitized(stored.problem);
  return line + "\t" + std::to_string(Checksum(line)) + "\n";
}

std::string ToLine(const StoredDecision& stored) {
  return ToLine(stored, ToString(stored.decision.mode));
}

std::vector<std::string_view> Split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t tab = line.find('\t'); tab != std::string_view::npos; tab = line.find('\t')) {
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

bool FromLine(std::string_view line, StoredDecision* stored, bool* forgotten) {
  const std::vector<std::string_view> fields = Split(line);
  std::uint32_t checksum = 0;
  if (fields.size() != kFields || !Parse(fields[6], &checksum) ||
      Checksum(line.substr(0, line.rfind('\t'))) != checksum) {
    return false;
  }
  stored->key = ProblemKey::FromText(fields[0]);
  stored->decision.id = fields[1];
  stored->problem = fields[5];
  *forgotten = fields[3] == kForgotten;
  return !stored->key.empty() && Parse(fields[2], &stored->decision.workspace) &&
         (*forgotten || ParseMode(fields[3], &stored->decision.mode)) &&
         Parse(fields[4], &stored->decision.milliseconds);
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
  text.remove_prefix(kHeader.size());
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

/// Writes the whole file anew, at once; the caller holds the lock.
Status ReplaceLocked(const std::string& path, const std::string& lines) {
  const std::string text = std::string(kHeader) + lines;
  const std::string temporary = path + "." + std::to_string(getpid());
  Status status = WriteAll(temporary, O_TRUNC, text);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = SystemError("cannot write " + path);
  }
  if (!status.ok()) {
    std::remove(temporary.c_str());
  }
  return status;
}

}  // namespace

bool Replaces(const Decision& later, const Decision& earlier) {
  return later.mode == SearchMode::kBenchmark || earlier.mode != SearchMode::kBenchmark;
}

std::vector<StoredDecision> DecisionFile::Read(std::vector<std::string>* warnings) const {
  std::vector<StoredDecision> decisions;
  const Result<std::string> text = ReadText(path_);
  if (!text.ok()) {
    warnings->push_back(text.status().message());
    return decisions;
  }
  if (text->empty()) {
    return decisions;
  }
  if (!text->starts_with(kHeader)) {
    warnings->push_back(path_ + " is ignored: it is not a decision file of this version");
    return decisions;
  }
  int damaged = 0;
  decisions = FromText(*text, &damaged);
  if (damaged > 0) {
    warnings->push_back(
        path_ + ": " + std::to_string(damaged) + " damaged " +
        (damaged == 1 ? "line is" : "lines are") + " ignored");
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

Status DecisionFile::AppendLines(const std::string& lines) const {
  if (Status status = MakeFolder(path_); !status.ok()) {
    return status;
  }
  FileLock lock(path_);
  if (Status status = lock.Take(); !status.ok()) {
    return status;
  }
  const Result<std::string> text = ReadText(path_);
  if (!text.ok()) {
    return text.status();
  }
  if (text->starts_with(kHeader)) {
    // A file that was cut short ends in the middle of a line: begin a new one.
    const std::string added = (text->back() == '\n' ? "" : "\n") + lines;
    if (text->size() <= most_bytes_) {
      return WriteAll(path_, O_APPEND, added);
    }
    int damaged = 0;
    return ReplaceLocked(
        path_, ToLines(Newest(FromText(*text + added, &damaged), most_bytes_ / 2)));
  }
  // New, cut short within the header, or of another version.
  Status status = CheckIsOurs(path_, *text);
  return status.ok() ? ReplaceLocked(path_, lines) : status;
}

Status DecisionFile::Replace(const std::vector<StoredDecision>& decisions) const {
  if (Status status = MakeFolder(path_); !status.ok()) {
    return status;
  }
  FileLock lock(path_);
  if (Status status = lock.Take(); !status.ok()) {
    return status;
  }
  const Result<std::string> text = ReadText(path_);
  Status status = text.ok() ? CheckIsOurs(path_, *text) : text.status();
  return status.ok() ? ReplaceLocked(path_, ToLines(decisions)) : status;
}

}  // namespace gradsmith::internal
