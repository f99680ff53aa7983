#include "core/problem_file.h"

#include <algorithm>
#include <utility>

#include "core/file_descriptor.h"

namespace gradsmith::internal {

namespace {

constexpr std::string_view kHeader =
    "# Problems that calls of Gradsmith met, a line for each (docs/cpp.md).\n";

}  // namespace

Result<std::unique_ptr<ProblemFile>> ProblemFile::Open(const std::string& path) {
  Result<UserFile> file = UserFile::FindToWrite(path);
  if (!file.ok()) {
    return file.status();
  }
  auto opened = std::make_unique<ProblemFile>(std::move(*file));
  if (Status status = opened->ReadOrMake(); !status.ok()) {
    return status;
  }
  return opened;
}

Status ProblemFile::ReadOrMake() {
  const Result<FileDescriptor> lock = file_.Lock();  // lest another process makes it meanwhile
  if (!lock.ok()) {
    return lock.status();
  }
  const Result<std::string> text = file_.Read();
  if (!text.ok()) {
    return text.status();
  }
  if (text->empty()) {
    return file_.Replace(kHeader, *lock);
  }
  for (std::string_view rest = *text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (!line.empty() && line.front() != '#') {
      known_.emplace(line);
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text->back() == '\n' ? Status() : file_.Append("\n");
}

Status ProblemFile::Add(std::string_view line) {
  if (line.size() > kLongestLine) {
    return {};
  }
  const std::scoped_lock lock(mutex_);
  if (known_.contains(std::string(line))) {
    return {};
  }
  if (known_.size() >= kMostLines) {
    return InvalidArgument(
        "the file has " + std::to_string(kMostLines) + " problems, and gets no more");
  }
  if (Status status = file_.Append(std::string(line) + "\n"); !status.ok()) {
    return status;
  }
  known_.emplace(line);
  return {};
}

}  // namespace gradsmith::internal
