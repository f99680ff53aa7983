#ifndef GRADSMITH_CORE_FILE_PLACE_H_
#define GRADSMITH_CORE_FILE_PLACE_H_

#include <sys/stat.h>

#include <string>

#include "core/file_descriptor.h"

namespace gradsmith::internal {

/// FilePlace is where a path leads: a folder, which is held open, and a name in it. Whoever renames
/// folders or plants links afterwards does not change it.
struct FilePlace {
  /// Is not open where the folder is not there.
  FileDescriptor folder;
  /// Has no link behind it, and need not be there; "." or ".." where the path names a folder.
  std::string name;
};

/// FindPlace walks a path. A symbolic link is followed only where it and the folder in which it
/// lies belong to the user of the process or to root, and nobody else may write to that folder:
/// what others planted leads nowhere. With `makes_folders`, folders that are not there are made;
/// nobody but the user may write to them. Returns the reason for which there is no place; empty
/// where there is one.
std::string FindPlace(const std::string& path, bool makes_folders, FilePlace* place);

/// IsTrusted returns whether a file belongs to the user of the process or to root.
bool IsTrusted(const struct stat& file);

/// MayBeWrittenByOthers returns whether the group or all others may write to a file or a folder.
bool MayBeWrittenByOthers(const struct stat& file);

/// LastError returns the system's words for what errno says.
std::string LastError();

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_FILE_PLACE_H_
