#include "core/file_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gradsmith::internal {

namespace {

/// The most links that are followed, which is what Linux follows.
constexpr int kMostLinks = 40;

FileDescriptor OpenFolder(int folder, const char* name) {
  return FileDescriptor(Uninterrupted(
      [&] { return openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
}

/// The names of a path; the last is "." where it ends with a slash.
std::deque<std::string> NamesOf(std::string_view path) {
  std::deque<std::string> names;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) {
      names.emplace_back(path.substr(begin, end - begin));
    } else if (end == path.size()) {
      names.emplace_back(".");
    }
    begin = end + 1;
  }
  return names;
}

/// A walk along a path, from folder to folder.
class Walk {
 public:
  explicit Walk(bool makes_folders) : makes_folders_(makes_folders) {}

  /// Puts a path before what is left of the way.
  void Lead(const std::string& path) {
    if (path.starts_with('/') || !place_.folder.is_open()) {
      place_.folder = OpenFolder(AT_FDCWD, path.starts_with('/') ? "/" : ".");
    }
    const std::deque<std::string> names = NamesOf(path);
    names_.insert(names_.begin(), names.begin(), names.end());
  }

  /// The reason for which there is no way; empty where there is one.
  std::string Go() {
    while (place_.folder.is_open()) {
      place_.name = names_.front();
      struct stat file {};
      const bool is_there =
          fstatat(place_.folder.get(), place_.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0;
      if (!is_there && errno != ENOENT) {
        return LastError();
      }
      if (is_there && S_ISLNK(file.st_mode)) {
        names_.pop_front();
        if (std::string reason = Follow(file); !reason.empty()) {
          return reason;
        }
        continue;
      }
      if (names_.size() <= 1) {
        return {};
      }
      names_.pop_front();
      if (!is_there && !makes_folders_) {
        place_.folder = {};
        return {};
      }
      if (!is_there && mkdirat(place_.folder.get(), place_.name.c_str(), 0755) != 0 &&
          errno != EEXIST) {
        return LastError();
      }
      place_.folder = OpenFolder(place_.folder.get(), place_.name.c_str());
    }
    return LastError();
  }

  FilePlace Take() { return std::move(place_); }

 private:
  std::string Follow(const struct stat& link) {
    struct stat folder {};
    if (fstat(place_.folder.get(), &folder) != 0) {
      return LastError();
    }
    const std::string what = "'" + place_.name + "' on the way there is a symbolic link ";
    if (!IsTrusted(link)) {
      return what + "of another user, " + std::to_string(link.st_uid);
    }
    if (!IsTrusted(folder) || MayBeWrittenByOthers(folder)) {
      return what + "in a folder to which others may write";
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t size =
        readlinkat(place_.folder.get(), place_.name.c_str(), target.data(), target.size());
    if (size < 0) {
      return LastError();
    }
    if (++links_ > kMostLinks) {
      return std::make_error_code(std::errc::too_many_symbolic_link_levels).message();
    }
    Lead(std::string(target.data(), static_cast<std::size_t>(size)));
    return {};
  }

  bool makes_folders_;
  int links_ = 0;
  FilePlace place_;
  std::deque<std::string> names_;
};

}  // namespace

std::string FindPlace(const std::string& path, bool makes_folders, FilePlace* place) {
  if (path.empty()) {
    return std::make_error_code(std::errc::no_such_file_or_directory).message();
  }
  if (path.find('\0') != std::string::npos) {
    return "the path holds a zero byte";
  }
  Walk walk(makes_folders);
  walk.Lead(path);
  std::string reason = walk.Go();
  *place = walk.Take();
  return reason;
}

bool IsTrusted(const struct stat& file) {
  return file.st_uid == 0 || file.st_uid == geteuid();
}

bool MayBeWrittenByOthers(const struct stat& file) {
  return (file.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

std::string LastError() {
  return std::error_code(errno, std::generic_category()).message();
}

}  // namespace gradsmith::internal
