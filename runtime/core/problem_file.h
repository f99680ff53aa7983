#ifndef GRADSMITH_CORE_PROBLEM_FILE_H_
#define GRADSMITH_CORE_PROBLEM_FILE_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

#include "core/user_file.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// ProblemFile is a file of lines, each of which it has once. Any thread may add to it; processes
/// may share it, and then a line that two meet at once may be there twice.
class ProblemFile {
 public:
  /// The most lines that the file gets, with those that were there already.
  static constexpr std::size_t kMostLines = 10'000;
  /// The most characters of a line, which is what readers of problems take.
  static constexpr std::size_t kLongestLine = 1024;

  /// Open reads what is there, and makes the file where it is not. Errors are those of UserFile.
  static Result<std::unique_ptr<ProblemFile>> Open(const std::string& path);

  explicit ProblemFile(UserFile file) : file_(std::move(file)) {}

  /// Add writes the line unless it is there, or is too long. Errors: the file has kMostLines lines;
  /// those of UserFile.
  Status Add(std::string_view line);

 private:
  Status ReadOrMake();

  UserFile file_;
  std::mutex mutex_;
  std::unordered_set<std::string> known_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_PROBLEM_FILE_H_
