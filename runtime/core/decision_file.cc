#include "core/decision_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gradsmith::internal {

namespace {

constexpr std::string_view kHeader = "gradsmith decisions, format 1\n";
constexpr int kFields = 7;

/// A lock on the file beside the decisions, held while they are written.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : descriptor_(open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ >= 0) {
      flock(descriptor_, LOCK_EX);
    }
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock() {
    if (descriptor_ >= 0) {
      close(descriptor_);
    }
  }

 private:
  int descriptor_;
};

std::string SystemError(int code) {
  return std::error_code(code, std::generic_category()).message();
}

Status WriteAll(const std::string& path, int flags, std::string_view text) {
  const int descriptor = open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return Internal("cannot write " + path + ": " + SystemError(errno));
  }
  Status status;
  while (!text.empty() && status.ok()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0) {
      status = Internal("cannot write " + path + ": " + SystemError(errno));
    } else {
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  close(descriptor);
  return status;
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

std::string ToLine(const StoredDecision& stored) {
  const Decision& decision = stored.decision;
  std::array<char, 32> milliseconds{};
  std::snprintf(milliseconds.data(), milliseconds.size(), "%.6g", decision.milliseconds);
  std::string line = stored.key.Text() + "\t" + Sanitized(decision.id) + "\t" +
                     std::to_string(decision.workspace) + "\t" +
                     std::string(ToString(decision.mode)) + "\t" + milliseconds.data() + "\t" +
                     Sanitized(stored.problem);
  return line + "\t" + std::to_string(Checksum(line)) + "\n";
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
  for (const SearchMode candidate :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    if (text == ToString(candidate)) {
      *mode = candidate;
      return true;
    }
  }
  return false;
}

bool FromLine(std::string_view line, StoredDecision* stored) {
  const std::vector<std::string_view> fields = Split(line);
  std::uint32_t checksum = 0;
  if (fields.size() != kFields || !Parse(fields[6], &checksum) ||
      Checksum(line.substr(0, line.rfind('\t'))) != checksum) {
    return false;
  }
  stored->key = ProblemKey::FromText(fields[0]);
  stored->decision.id = fields[1];
  stored->problem = fields[5];
  return !stored->key.empty() && Parse(fields[2], &stored->decision.workspace) &&
         ParseMode(fields[3], &stored->decision.mode) &&
         Parse(fields[4], &stored->decision.milliseconds);
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<StoredDecision> DecisionFile::Read(std::vector<std::string>* warnings) const {
  const std::string text = ReadText(path_);
  std::vector<StoredDecision> decisions;
  if (text.empty()) {
    return decisions;
  }
  std::string_view rest = text;
  if (!rest.starts_with(kHeader)) {
    warnings->push_back(path_ + " is ignored: it is not a decision file of this version");
    return decisions;
  }
  rest.remove_prefix(kHeader.size());
  std::unordered_map<ProblemKey, std::size_t, ProblemKeyHash> places;
  int damaged = 0;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    StoredDecision stored;
    if (end == std::string_view::npos || !FromLine(rest.substr(0, end), &stored)) {
      ++damaged;
    } else if (const auto [place, added] = places.emplace(stored.key, decisions.size()); added) {
      decisions.push_back(std::move(stored));
    } else {
      decisions[place->second] = std::move(stored);
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (damaged > 0) {
    warnings->push_back(
        path_ + ": " + std::to_string(damaged) + " damaged " + (damaged == 1 ? "line is" : "lines are") +
        " ignored");
  }
  return decisions;
}

Status DecisionFile::Append(const StoredDecision& stored) const {
  if (Status status = MakeFolder(path_); !status.ok()) {
    return status;
  }
  const FileLock lock(path_);
  std::error_code error;
  const bool is_new = !std::filesystem::exists(path_, error);
  // A file that was cut short ends in the middle of a line: begin a new one.
  const std::string text = ReadText(path_);
  std::string line = is_new || text.empty() ? std::string(kHeader)
                     : text.back() != '\n'  ? "\n"
                                            : "";
  line += ToLine(stored);
  return text.empty() || text.starts_with(kHeader) ? WriteAll(path_, O_APPEND, line)
                                                   : Replace({stored});
}

Status DecisionFile::Replace(const std::vector<StoredDecision>& decisions) const {
  if (Status status = MakeFolder(path_); !status.ok()) {
    return status;
  }
  std::string text(kHeader);
  for (const StoredDecision& stored : decisions) {
    text += ToLine(stored);
  }
  const std::string temporary = path_ + "." + std::to_string(getpid());
  if (Status status = WriteAll(temporary, O_TRUNC, text); !status.ok()) {
    return status;
  }
  std::error_code error;
  std::filesystem::rename(temporary, path_, error);
  return error ? Internal("cannot write " + path_ + ": " + error.message()) : Status();
}

}  // namespace gradsmith::internal
