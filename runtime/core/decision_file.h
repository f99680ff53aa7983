#ifndef GRADSMITH_CORE_DECISION_FILE_H_
#define GRADSMITH_CORE_DECISION_FILE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"
#include "core/problem_key.h"
#include "core/selection.h"
#include "core/user_file.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// StoredDecision is a line of a decision file.
struct StoredDecision {
  ProblemKey key;
  Decision decision;
  /// What the problem is, for people.
  std::string problem;
};

/// Replaces returns whether of two decisions for a key the later one counts: it does unless the
/// earlier one was timed in benchmark mode and it was not.
bool Replaces(const Decision& later, const Decision& earlier);

/// What a decision file of this version begins with, and how many fields a line has.
inline constexpr std::string_view kDecisionFileHeader = "gradsmith decisions, format 3\n";
inline constexpr int kDecisionFields = 8;

/// DecisionFile keeps decisions across processes: one line each, with a checksum. Of a key's lines
/// the last counts, where it replaces what is before it. Several processes may use a file at once.
/// A line that is damaged, or a file of another format, is left out with a warning and never harms.
/// What others may have had a hand in is neither read nor written: see UserFile.
class DecisionFile {
 public:
  /// The file holds some ten thousand decisions at most.
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20U;

  /// A file that has grown beyond `most_bytes` is written anew with the newest half of that.
  explicit DecisionFile(std::string path, std::size_t most_bytes = kMostBytes)
      : path_(std::move(path)), most_bytes_(most_bytes) {}

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Read returns what the file holds, in the order of keys' last lines; nothing where there is
  /// none. What could not be read is described in `*warnings`.
  std::vector<StoredDecision> Read(std::vector<std::string>* warnings) const;

  /// ReadAnyones returns what a file holds that the user names to be taken over: whoever wrote it
  /// and may write to it, but a regular file (see internal::ReadAnyones), in which all must be
  /// whole.
  static Result<std::vector<StoredDecision>> ReadAnyones(const std::string& path);

  /// Append adds a line, making the file and its folder where they are not there. A file of another
  /// version is replaced; one that is no decision file is left alone, which is an error. So is that
  /// another process has written for two seconds: it may have been stopped.
  [[nodiscard]] Status Append(const StoredDecision& stored) const;
  /// The same for many, which are written at once.
  [[nodiscard]] Status AppendAll(const std::vector<StoredDecision>& decisions) const;

  /// Forget adds a line after which a key's decision for the same candidate does not count any
  /// more, so that any other may follow. Its errors are Append's.
  [[nodiscard]] Status Forget(const StoredDecision& stored) const;

  /// Replace writes the whole file anew, of decisions whose newest is the last: who reads meanwhile
  /// sees the old one or the new one. It waits for writers as long as Append does.
  [[nodiscard]] Status Replace(const std::vector<StoredDecision>& decisions) const;

 private:
  /// A file that no other process writes meanwhile.
  struct Locked {
    UserFile file;
    FileDescriptor lock;

    [[nodiscard]] Status Replace(std::string_view text) const { return file.Replace(text, lock); }
  };

  /// Calls `write` with the file's text, while no other process writes.
  [[nodiscard]] Status Write(
      const std::function<Status(const Locked& locked, const std::string& text)>& write) const;
  [[nodiscard]] Status AppendLines(const std::string& lines) const;

  std::string path_;
  std::size_t most_bytes_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_DECISION_FILE_H_
