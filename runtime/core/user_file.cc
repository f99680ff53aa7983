#include "core/user_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/stopwatch.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

/// A temporary's name is the file's, a dot, so many digits and this.
constexpr std::string_view kTemporary = ".tmp";
constexpr std::size_t kTemporaryDigits = 16;
constexpr mode_t kPermissions = 0777;

/// "0640".
std::string OctalText(mode_t mode) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & kPermissions));
  return text.data();
}

/// The reason for which a kind of file is refused; empty for a regular file.
std::string ReasonOfKind(const struct stat& file) {
  if (S_ISREG(file.st_mode)) {
    return {};
  }
  if (S_ISDIR(file.st_mode)) {
    return std::make_error_code(std::errc::is_a_directory).message();
  }
  std::string kind = "of an unknown kind";
  if (S_ISCHR(file.st_mode) || S_ISBLK(file.st_mode)) {
    kind = "a device";
  } else if (S_ISFIFO(file.st_mode)) {
    kind = "a FIFO";
  } else if (S_ISSOCK(file.st_mode)) {
    kind = "a socket";
  } else if (S_ISLNK(file.st_mode)) {
    kind = "a symbolic link";
  }
  return "it is " + kind + ", and only regular files are opened";
}

std::string ReasonOfSize() {
  return "it has more than the " + std::to_string(UserFile::kMostBytes) +
         " bytes that are read of a file";
}

/// The whole of an open file, however it grows meanwhile.
std::string ReadWhole(const FileDescriptor& file, std::string* text) {
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t count =
        Uninterrupted([&] { return read(file.get(), block.data(), block.size()); });
    if (count < 0) {
      return LastError();
    }
    if (count == 0) {
      return {};
    }
    if (text->size() + static_cast<std::size_t>(count) > UserFile::kMostBytes) {
      return ReasonOfSize();
    }
    text->append(block.data(), static_cast<std::size_t>(count));
  }
}

std::string WriteWhole(const FileDescriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written =
        Uninterrupted([&] { return write(file.get(), text.data(), text.size()); });
    if (written < 0) {
      return LastError();
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

bool IsTemporaryOf(std::string_view name, std::string_view candidate) {
  if (candidate.size() != name.size() + 1 + kTemporaryDigits + kTemporary.size() ||
      !candidate.starts_with(name) || candidate[name.size()] != '.' ||
      !candidate.ends_with(kTemporary)) {
    return false;
  }
  candidate.remove_prefix(name.size() + 1);
  return candidate.substr(0, kTemporaryDigits).find_first_not_of("0123456789abcdef") ==
         std::string_view::npos;
}

/// Gives a new file the group and the permissions of the one that it replaces.
void TakeOver(const struct stat& before, const FileDescriptor& file) {
  mode_t mode = before.st_mode & kPermissions;
  struct stat made {};
  if (fstat(file.get(), &made) == 0 && made.st_gid != before.st_gid &&
      fchown(file.get(), static_cast<uid_t>(-1), before.st_gid) != 0) {
    mode &= ~static_cast<mode_t>(S_IRWXG);  // what was for that group is not for another
  }
  // Where a file system has no permissions, the file stays the user's alone.
  static_cast<void>(fchmod(file.get(), mode));
}

}  // namespace

UserFile::UserFile(std::string shown, FilePlace place)
    : shown_(std::move(shown)), place_(std::move(place)) {
  struct stat folder {};
  is_private_ = place_.folder.is_open() && fstat(place_.folder.get(), &folder) == 0 &&
                IsTrusted(folder) && !MayBeWrittenByOthers(folder);
}

Result<UserFile> UserFile::Find(const std::string& path, Access access) {
  const bool is_to_write = access == Access::kWrite;
  FilePlace place;
  const std::string reason = FindPlace(path, /*makes_folders=*/is_to_write, &place);
  const std::string shown = Printable(path);
  if (!reason.empty()) {
    return Internal(
        (is_to_write ? "cannot make the folder of " : "cannot read ") + shown + ": " + reason);
  }
  return UserFile(shown, std::move(place));
}

Result<UserFile> UserFile::Find(const std::string& path) {
  return Find(path, Access::kRead);
}

Result<UserFile> UserFile::FindToWrite(const std::string& path) {
  return Find(path, Access::kWrite);
}

Status UserFile::CannotWrite(const std::string& reason) const {
  return Internal("cannot write " + shown_ + ": " + reason);
}

std::string UserFile::Reason(const struct stat& file, Access access) const {
  if (std::string reason = ReasonOfKind(file); !reason.empty()) {
    return reason;
  }
  const bool is_fit = access == Access::kWrite ? file.st_uid == geteuid() : IsTrusted(file);
  if (!is_fit) {
    return "it belongs to user " + std::to_string(file.st_uid) + ", not to user " +
           std::to_string(geteuid());
  }
  if (MayBeWrittenByOthers(file)) {
    return "others may write to it: its mode is " + OctalText(file.st_mode);
  }
  if (file.st_nlink > 1 && !is_private_) {
    return "it has another name, a hard link, and others may write to its folder";
  }
  return static_cast<std::uint64_t>(file.st_size) > kMostBytes ? ReasonOfSize() : "";
}

std::string UserFile::ReasonByName(const std::string& name, Access access, struct stat* file)
    const {
  *file = {};
  if (fstatat(place_.folder.get(), name.c_str(), file, AT_SYMLINK_NOFOLLOW) == 0) {
    return Reason(*file, access);
  }
  return errno == ENOENT ? "" : LastError();
}

std::string UserFile::ReasonByName(const std::string& name, Access access) const {
  struct stat file {};
  return ReasonByName(name, access, &file);
}

FileDescriptor
UserFile::Open(const std::string& name, int flags, Access access, std::string* reason) const {
  // Before it is opened, which alone does something to some devices; and after, when it stays.
  *reason = ReasonByName(name, access);
  if (!reason->empty()) {
    return {};
  }
  constexpr int kAlways = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  FileDescriptor file(Uninterrupted(
      [&] { return openat(place_.folder.get(), name.c_str(), flags | kAlways, 0600); }));
  if (!file.is_open()) {
    *reason = errno == ENOENT ? "" : LastError();
    return {};
  }
  struct stat opened {};
  *reason = fstat(file.get(), &opened) == 0 ? Reason(opened, access) : LastError();
  return reason->empty() ? std::move(file) : FileDescriptor();
}

Result<std::string> UserFile::Read() const {
  std::string text;
  std::string reason;
  if (place_.folder.is_open()) {
    const FileDescriptor file = Open(place_.name, O_RDONLY, Access::kRead, &reason);
    if (file.is_open()) {
      reason = ReadWhole(file, &text);
    }
  }
  return reason.empty() ? Result<std::string>(std::move(text))
                        : Internal("cannot read " + shown_ + ": " + reason);
}

Result<FileDescriptor> UserFile::Lock() const {
  constexpr int kMostSeconds = 2;
  constexpr std::chrono::milliseconds kPause(1);
  const std::string name = place_.name + ".lock";
  std::string reason = ReasonByName(place_.name, Access::kWrite);
  if (!reason.empty()) {
    return CannotWrite(reason);  // and leave no lock beside it
  }
  reason = ReasonByName(name, Access::kRead);
  if (!reason.empty()) {
    return CannotWrite("its lock, " + shown_ + ".lock, is refused: " + reason);
  }
  FileDescriptor file = Open(name, O_RDWR | O_CREAT, Access::kRead, &reason);
  // Whoever writes is done in milliseconds, unless it was stopped: then the lock is not to be had.
  const Stopwatch watch;
  while (file.is_open() && flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) {
      continue;
    }
    if (errno != EWOULDBLOCK) {
      return FileDescriptor();
    }
    if (watch.Seconds() >= kMostSeconds) {
      return CannotWrite(
          "another process has held its lock, " + shown_ + ".lock, for " +
          std::to_string(kMostSeconds) + " seconds");
    }
    std::this_thread::sleep_for(kPause);
  }
  return file;
}

Status UserFile::Append(std::string_view text) const {
  std::string reason;
  const FileDescriptor file = Open(place_.name, O_WRONLY | O_APPEND, Access::kWrite, &reason);
  if (!file.is_open()) {
    return CannotWrite(reason.empty() ? "it is gone" : reason);
  }
  reason = WriteWhole(file, text);
  return reason.empty() ? Status() : CannotWrite(reason);
}

FileDescriptor UserFile::MakeTemporary(mode_t mode, std::string* name) const {
  std::array<unsigned char, kTemporaryDigits / 2> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    return {};
  }
  *name = place_.name + ".";
  for (const unsigned byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    *name += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  *name += kTemporary;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return FileDescriptor(
      Uninterrupted([&] { return openat(place_.folder.get(), name->c_str(), kFlags, mode); }));
}

Status UserFile::Replace(std::string_view text, const FileDescriptor& lock) const {
  // What is taken over is of the file that was looked at: its name may mean another one by then.
  struct stat before {};
  std::string reason = ReasonByName(place_.name, Access::kWrite, &before);
  if (!reason.empty()) {
    return CannotWrite(reason);
  }
  if (lock.is_open()) {
    RemoveTemporaries();
  }
  const bool is_there = S_ISREG(before.st_mode);
  const int folder = place_.folder.get();
  std::string name;
  const FileDescriptor file = MakeTemporary(is_there ? 0600 : 0644, &name);
  if (!file.is_open()) {
    return CannotWrite(LastError());
  }
  if (is_there) {
    TakeOver(before, file);
  }
  reason = WriteWhole(file, text);
  if (reason.empty() && renameat(folder, name.c_str(), folder, place_.name.c_str()) != 0) {
    reason = LastError();
  }
  if (!reason.empty()) {
    unlinkat(folder, name.c_str(), 0);
    return CannotWrite(reason);
  }
  return {};
}

void UserFile::RemoveTemporaries() const {
  // What was opened for its path alone lists nothing.
  const int listed = openat(place_.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(
      listed < 0 ? nullptr : fdopendir(listed), &closedir);
  if (folder == nullptr) {
    return;
  }
  while (const dirent* entry = readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): own DIR
    struct stat file {};
    if (IsTemporaryOf(place_.name, entry->d_name) &&
        fstatat(place_.folder.get(), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(file.st_mode) && file.st_uid == geteuid()) {
      unlinkat(place_.folder.get(), entry->d_name, 0);
    }
  }
}

Result<std::string> ReadAnyones(const std::string& path) {
  std::string reason;
  std::string text;
  struct stat found {};
  if (path.find('\0') != std::string::npos) {
    reason = "the path holds a zero byte";
  } else if (stat(path.c_str(), &found) != 0) {
    reason = LastError();
  } else {
    reason = ReasonOfKind(found);
  }
  if (reason.empty()) {
    const FileDescriptor file(Uninterrupted(
        [&] { return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
    reason = !file.is_open() || fstat(file.get(), &found) != 0 ? LastError() : ReasonOfKind(found);
    reason = reason.empty() ? ReadWhole(file, &text) : reason;
  }
  return reason.empty() ? Result<std::string>(std::move(text))
                        : Internal("cannot read " + Printable(path) + ": " + reason);
}

}  // namespace gradsmith::internal
