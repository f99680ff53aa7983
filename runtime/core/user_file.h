#ifndef GRADSMITH_CORE_USER_FILE_H_
#define GRADSMITH_CORE_USER_FILE_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/file_descriptor.h"
#include "core/file_place.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// UserFile is a file in which nobody but the user of this process, or root, can have had a hand.
/// Its folder is found once and held open, so that all that is done to the file is done there. What
/// follows is refused, with a sentence that names the path and the reason:
///
/// - what is no regular file, or has more than kMostBytes;
/// - a file that belongs to another user, or to which its group or others may write. Root's file is
///   read and not written;
/// - a symbolic link as the file or on the way to it, unless it and the folder in which it lies
///   belong to the user or to root and nobody else may write to that folder. Such a link is
///   followed, and stays: what is written anew is its target;
/// - a file with a second name (a hard link) in a folder to which others may write.
class UserFile {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20U;

  /// Find finds the folder of a file that need not be there; nor need the folder be.
  static Result<UserFile> Find(const std::string& path);
  /// FindToWrite makes the folder where it is not there. Nobody but the user may write to what is
  /// made.
  static Result<UserFile> FindToWrite(const std::string& path);

  /// Read returns what the file holds; nothing where there is none.
  [[nodiscard]] Result<std::string> Read() const;

  /// Lock takes the lock on the file beside this one, named with ".lock" behind it, and holds it
  /// until the descriptor is closed. Where there can be none, as on some network's file systems or
  /// in a folder that may not be written to, no file is open and writers take their chance. That
  /// another process has held it for two seconds is an error: it may have been stopped.
  [[nodiscard]] Result<FileDescriptor> Lock() const;

  /// Append writes behind what is in the file, which must be there.
  [[nodiscard]] Status Append(std::string_view text) const;

  /// Replace writes the file anew, with the permissions and the group of the one before: whoever
  /// reads meanwhile sees the old one or the new one. The caller should hold the lock, which is
  /// what Lock returned. With it, Replace also removes what processes left that were killed within.
  [[nodiscard]] Status Replace(std::string_view text, const FileDescriptor& lock) const;

 private:
  enum class Access : std::uint8_t { kRead, kWrite };

  UserFile(std::string shown, FilePlace place);

  static Result<UserFile> Find(const std::string& path, Access access);

  /// The reason for which a file in the folder is refused; empty where it is not.
  [[nodiscard]] std::string Reason(const struct stat& file, Access access) const;
  [[nodiscard]] std::string ReasonByName(const std::string& name, Access access) const;
  /// `*file` is what was looked at; all zeros where there is none of that name.
  [[nodiscard]] std::string ReasonByName(const std::string& name, Access access, struct stat* file)
      const;
  /// Opens a file in the folder, unless Reason refuses it. With a reason in `*reason`, or where the
  /// file is not there, none is open.
  [[nodiscard]] FileDescriptor
  Open(const std::string& name, int flags, Access access, std::string* reason) const;
  /// Makes a file that was not there and whose name nobody can guess.
  [[nodiscard]] FileDescriptor MakeTemporary(mode_t mode, std::string* name) const;
  void RemoveTemporaries() const;
  [[nodiscard]] Status CannotWrite(const std::string& reason) const;

  std::string shown_;  ///< the path, printable
  FilePlace place_;
  bool is_private_ = false;  ///< nobody but the user and root may write to the folder
};

/// ReadAnyones returns what a regular file of kMostBytes at most holds, whomever it belongs to and
/// by whatever links it is reached: for files that the user names to be read once. Errors: it is
/// not there, another kind of file, or longer.
Result<std::string> ReadAnyones(const std::string& path);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_USER_FILE_H_
