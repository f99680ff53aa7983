#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/decision_file.h"
#include "runtime/test_clock.h"
#include "support/scratch_folder.h"

/// What may stand at a decision file's path, and beside it, that is not what the user put there.
namespace gradsmith::internal {
namespace {

using support::ReadFile;
using support::WriteFile;

constexpr const char* kHeader = "gradsmith decisions, format 3\n";
constexpr uid_t kOther = 65534;

StoredDecision Stored(int key, const std::string& id = "engine") {
  StoredDecision stored;
  stored.key.Add(key);
  stored.decision = {id, 7, SearchMode::kBenchmark, 0.5};
  stored.problem = "a problem";
  return stored;
}

struct stat StatOf(const std::string& path) {
  struct stat file {};
  EXPECT_EQ(lstat(path.c_str(), &file), 0) << path;
  return file;
}

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

class HostileDecisionFile : public testing::Test {
 protected:
  HostileDecisionFile() { std::filesystem::create_directory(home_); }

  [[nodiscard]] std::pair<std::size_t, std::vector<std::string>> Read() const {
    std::vector<std::string> warnings;
    const std::size_t count = DecisionFile(path_).Read(&warnings).size();
    return {count, std::move(warnings)};
  }
  void ExpectHolds(std::size_t count) const {
    const auto [held, warnings] = Read();
    EXPECT_EQ(held, count);
    EXPECT_EQ(warnings, std::vector<std::string>());
  }
  void ExpectAppends(int key) const {
    const Status status = DecisionFile(path_).Append(Stored(key));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  /// Every way to write fails with a sentence that has the path and the reason in it.
  void ExpectNotWritten(const std::string& reason) const {
    const DecisionFile file(path_);
    for (const Status& status :
         {file.Append(Stored(1)), file.Forget(Stored(1)), file.Replace({Stored(1)}),
          file.AppendAll({Stored(1), Stored(2)})}) {
      EXPECT_FALSE(status.ok());
      EXPECT_EQ(status.message(), "cannot write " + path_ + ": " + reason);
    }
  }
  /// Nor is it read; it stays as it is, and so does its folder.
  void ExpectRefused(const std::string& reason) const {
    const struct stat before = StatOf(path_);
    const std::set<std::string> names = NamesIn(home_);
    const auto [held, warnings] = Read();
    EXPECT_EQ(held, 0U);
    EXPECT_EQ(warnings, std::vector<std::string>{"cannot read " + path_ + ": " + reason});
    ExpectNotWritten(reason);
    const struct stat after = StatOf(path_);
    EXPECT_EQ(after.st_ino, before.st_ino);
    EXPECT_EQ(after.st_mode, before.st_mode);
    EXPECT_EQ(after.st_uid, before.st_uid);
    EXPECT_EQ(after.st_size, before.st_size);
    EXPECT_EQ(NamesIn(home_), names);
  }

  TestClock clock_;  // who writes waits for others as long as they take
  support::ScratchFolder folder_;
  std::string home_ = folder_.path() + "/home";
  std::string path_ = home_ + "/decisions.txt";
};

/// Some tests make what only the administrator can make.
class HostileDecisionFileOfRoot : public HostileDecisionFile {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only the administrator makes devices and files of others";
    }
  }
};

TEST_F(HostileDecisionFile, AFifoIsNeitherReadNorReplaced) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ExpectRefused("it is a FIFO, and only regular files are opened");
}

TEST_F(HostileDecisionFile, ASocketIsNeitherReadNorReplaced) {
  const int socket_of_test = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path_.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  ASSERT_EQ(bind(socket_of_test, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ExpectRefused("it is a socket, and only regular files are opened");
  close(socket_of_test);
}

TEST_F(HostileDecisionFileOfRoot, ADeviceIsNeitherReadNorReplaced) {
  struct Device {
    mode_t kind;
    unsigned major;
    unsigned minor;
  };
  // null, zero, full, random, loop0
  for (const Device& device :
       {Device{S_IFCHR, 1, 3},
        {S_IFCHR, 1, 5},
        {S_IFCHR, 1, 7},
        {S_IFCHR, 1, 9},
        {S_IFBLK, 7, 0}}) {
    SCOPED_TRACE(std::to_string(device.major) + ":" + std::to_string(device.minor));
    ASSERT_EQ(mknod(path_.c_str(), device.kind | 0600, makedev(device.major, device.minor)), 0);
    ExpectRefused("it is a device, and only regular files are opened");
    std::filesystem::remove(path_);
  }
}

TEST_F(HostileDecisionFile, AFolderIsNeitherReadNorReplaced) {
  std::filesystem::create_directory(path_);
  ExpectRefused("Is a directory");
  path_ += "/";
  ExpectRefused("Is a directory");
}

TEST_F(HostileDecisionFile, AFileThatIsTooLongIsNotRead) {
  WriteFile(path_, kHeader);
  ASSERT_EQ(truncate(path_.c_str(), off_t{3} << 30U), 0);
  ExpectRefused("it has more than the 33554432 bytes that are read of a file");
}

TEST_F(HostileDecisionFile, AFileToWhichOthersMayWriteIsNotTrusted) {
  ExpectAppends(1);
  std::filesystem::remove(path_ + ".lock");
  for (const auto& [mode, text] :
       {std::pair{0666U, "0666"}, {0664U, "0664"}, {0602U, "0602"}, {0777U, "0777"}}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    ExpectRefused(std::string("others may write to it: its mode is ") + text);
  }
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  ExpectHolds(1);
}

TEST_F(HostileDecisionFileOfRoot, AFileOfAnotherUserIsNotTrusted) {
  ExpectAppends(1);
  std::filesystem::remove(path_ + ".lock");
  for (const mode_t mode : {0644U, 0640U, 0600U, 0666U}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    ASSERT_EQ(chown(path_.c_str(), kOther, kOther), 0);
    ExpectRefused("it belongs to user 65534, not to user 0");
  }
}

/// Runs a function as another user; 0 where its expectations hold.
int AsOther(const std::function<void()>& function) {
  const pid_t child = fork();
  if (child == 0) {
    const bool is_other = setgid(kOther) == 0 && setuid(kOther) == 0;
    if (is_other) {
      function();
    }
    _exit(is_other && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/// Whoever cannot trust root has nothing to trust; what root wrote stays root's.
TEST_F(HostileDecisionFileOfRoot, WhatRootWroteIsReadByOthersAndNotWritten) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ExpectAppends(1);
  ASSERT_EQ(chown(home_.c_str(), kOther, kOther), 0);
  EXPECT_EQ(
      AsOther([&] {
        ExpectHolds(1);
        ExpectNotWritten("it belongs to user 0, not to user 65534");
      }),
      0);
  EXPECT_EQ(StatOf(path_).st_uid, 0U);
}

TEST_F(HostileDecisionFile, PlantedLinksBesideTheFileAreNotFollowed) {
  const std::string victim = folder_.path() + "/victim";
  for (const std::string& name :
       {path_ + ".lock", path_ + "." + std::to_string(getpid()), path_ + ".tmp"}) {
    SCOPED_TRACE(name);
    for (const bool is_there : {true, false}) {
      if (is_there) {
        WriteFile(victim, "precious");
      }
      std::filesystem::create_symlink(victim, name);
      const DecisionFile file(path_);
      const bool is_lock = name.ends_with(".lock");
      for (const Status& status : {file.Append(Stored(1)), file.Replace({Stored(1)})}) {
        EXPECT_EQ(status.ok(), !is_lock);
        EXPECT_EQ(
            status.message(),
            !is_lock ? ""
                     : "cannot write " + path_ + ": its lock, " + path_ +
                           ".lock, is refused: it is a symbolic link, and only regular files are "
                           "opened");
      }
      EXPECT_EQ(std::filesystem::exists(victim), is_there);
      EXPECT_EQ(ReadFile(victim), is_there ? "precious" : "");
      EXPECT_FALSE(std::filesystem::is_symlink(path_));
      EXPECT_EQ(std::filesystem::exists(path_), !is_lock);
      for (const std::string& each : {victim, name, path_, path_ + ".lock"}) {
        std::filesystem::remove(each);
      }
    }
  }
}

TEST_F(HostileDecisionFile, ALockThatIsNoFileIsRefused) {
  ASSERT_EQ(mkfifo((path_ + ".lock").c_str(), 0600), 0);
  ExpectNotWritten(
      "its lock, " + path_ + ".lock, is refused: it is a FIFO, and only regular files are opened");
}

TEST_F(HostileDecisionFileOfRoot, ALockOfAnotherUserIsRefused) {
  WriteFile(path_ + ".lock", "");
  ASSERT_EQ(chown((path_ + ".lock").c_str(), kOther, kOther), 0);
  ExpectNotWritten(
      "its lock, " + path_ + ".lock, is refused: it belongs to user 65534, not to user 0");
}

/// A user's own link stays one, and what it leads to is written anew.
TEST_F(HostileDecisionFile, ALinkOfTheUsersOwnIsFollowedAndKept) {
  const std::string kept = folder_.path() + "/kept";
  std::filesystem::create_directory(kept);
  for (const std::string& target : {kept + "/a.txt", std::string("../kept/b.txt")}) {
    std::filesystem::create_symlink(target, path_);
    ExpectAppends(1);  // makes it
    ASSERT_TRUE(DecisionFile(path_).Replace({Stored(1), Stored(2)}).ok());
    ExpectAppends(3);
    ExpectHolds(3);
    EXPECT_EQ(std::filesystem::read_symlink(path_), target);
    std::filesystem::remove(path_);
  }
  EXPECT_EQ(NamesIn(home_), std::set<std::string>());
  EXPECT_EQ(NamesIn(kept), (std::set<std::string>{"a.txt", "a.txt.lock", "b.txt", "b.txt.lock"}));
}

TEST_F(HostileDecisionFile, ALinkOfAFolderOfTheUsersOwnIsFollowed) {
  const std::string kept = folder_.path() + "/kept";
  std::filesystem::create_directory(kept);
  std::filesystem::create_symlink("../kept", home_ + "/linked");
  path_ = home_ + "/linked/new/decisions.txt";
  ExpectAppends(1);
  ExpectHolds(1);
  EXPECT_TRUE(std::filesystem::exists(kept + "/new/decisions.txt"));
}

TEST_F(HostileDecisionFile, LinksInFoldersToWhichOthersMayWriteAreNotFollowed) {
  const std::string victim = folder_.path() + "/victim";
  const std::string name = "'decisions.txt' on the way there is a symbolic link ";
  WriteFile(victim, kHeader);
  std::filesystem::create_symlink(victim, path_);
  for (const mode_t mode : {0777U, 01777U, 0775U}) {
    ASSERT_EQ(chmod(home_.c_str(), mode), 0);
    const auto [held, warnings] = Read();
    EXPECT_EQ(
        warnings,
        std::vector<std::string>{
            "cannot read " + path_ + ": " + name + "in a folder to which others may write"});
    EXPECT_FALSE(DecisionFile(path_).Append(Stored(1)).ok());
    EXPECT_FALSE(DecisionFile(path_).Replace({}).ok());
    EXPECT_EQ(ReadFile(victim), kHeader);
    EXPECT_TRUE(std::filesystem::is_symlink(path_));
    EXPECT_EQ(NamesIn(home_), std::set<std::string>{"decisions.txt"});
  }
}

TEST_F(HostileDecisionFileOfRoot, LinksOfOtherUsersAreNotFollowed) {
  const std::string victim = folder_.path() + "/victim";
  std::filesystem::create_directory(victim);
  std::filesystem::create_symlink(victim, home_ + "/linked");
  ASSERT_EQ(lchown((home_ + "/linked").c_str(), kOther, kOther), 0);
  path_ = home_ + "/linked/decisions.txt";
  const std::string reason =
      path_ + ": 'linked' on the way there is a symbolic link of another user, 65534";
  EXPECT_EQ(Read().second, std::vector<std::string>{"cannot read " + reason});
  EXPECT_EQ(DecisionFile(path_).Append(Stored(1)).message(), "cannot make the folder of " + reason);
  EXPECT_EQ(NamesIn(victim), std::set<std::string>());
}

TEST_F(HostileDecisionFile, LinksInACircleAreSaid) {
  std::filesystem::create_symlink("decisions.txt", path_);
  EXPECT_EQ(
      Read().second,
      std::vector<std::string>{"cannot read " + path_ + ": Too many levels of symbolic links"});
  EXPECT_FALSE(DecisionFile(path_).Append(Stored(1)).ok());
  EXPECT_EQ(NamesIn(home_), std::set<std::string>{"decisions.txt"});
}

/// Of what only its owner may link where others may write, such as in /tmp.
TEST_F(HostileDecisionFile, ASecondNameIsRefusedWhereOthersMayWrite) {
  const std::string first = folder_.path() + "/first.txt";
  WriteFile(first, kHeader);
  std::filesystem::create_hard_link(first, path_);
  ExpectAppends(1);
  ExpectHolds(1);
  std::filesystem::remove(path_ + ".lock");
  ASSERT_EQ(chmod(home_.c_str(), 01777), 0);
  ExpectRefused("it has another name, a hard link, and others may write to its folder");
}

TEST_F(HostileDecisionFile, WhereOthersMayWriteOnesOwnFilesServe) {
  ASSERT_EQ(chmod(home_.c_str(), 01777), 0);
  ExpectAppends(1);
  ASSERT_TRUE(DecisionFile(path_).Replace({Stored(1), Stored(2)}).ok());
  ExpectHolds(2);
}

TEST_F(HostileDecisionFile, AFileWrittenAnewKeepsItsMode) {
  constexpr std::size_t kMostBytes = 100;
  ExpectAppends(1);
  for (const mode_t mode : {0640U, 0600U, 0755U, 0644U}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    ASSERT_TRUE(DecisionFile(path_).Replace({Stored(1), Stored(2), Stored(3)}).ok());
    EXPECT_EQ(StatOf(path_).st_mode & 07777U, mode);
    ASSERT_TRUE(DecisionFile(path_, kMostBytes).Append(Stored(4)).ok());  // grown too long
    EXPECT_EQ(StatOf(path_).st_mode & 07777U, mode);
    ASSERT_EQ(truncate(path_.c_str(), 5), 0);  // cut short
    ExpectAppends(1);
    EXPECT_EQ(StatOf(path_).st_mode & 07777U, mode);
  }
}

TEST_F(HostileDecisionFileOfRoot, AFileWrittenAnewKeepsItsGroup) {
  ExpectAppends(1);
  ASSERT_EQ(chown(path_.c_str(), 0, kOther), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  ASSERT_TRUE(DecisionFile(path_).Replace({}).ok());
  EXPECT_EQ(StatOf(path_).st_gid, kOther);
  EXPECT_EQ(StatOf(path_).st_uid, 0U);
  EXPECT_EQ(StatOf(path_).st_mode & 07777U, 0640U);
}

TEST_F(HostileDecisionFile, NobodyElseMayWriteToWhatIsMade) {
  path_ = home_ + "/new/newer/decisions.txt";
  const mode_t before = umask(0);
  ExpectAppends(1);
  umask(before);
  ExpectHolds(1);
  for (const std::string& made : {home_ + "/new", home_ + "/new/newer", path_, path_ + ".lock"}) {
    EXPECT_EQ(StatOf(made).st_mode & 0022U, 0U) << made;
  }
}

TEST_F(HostileDecisionFile, AMaskThatTakesAllTakesAllOfAFile) {
  const mode_t before = umask(0077);
  ExpectAppends(1);
  umask(before);
  EXPECT_EQ(StatOf(path_).st_mode & 07777U, 0600U);
}

/// Ends the process where it writes to a file beyond so many bytes.
void LetWritesBeyondKill(rlim_t bytes) {
  constexpr rlimit kNoCore = {0, 0};
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_CORE, &kNoCore) != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0 ||
      signal(SIGXFSZ, SIG_DFL) == SIG_ERR) {
    _exit(2);
  }
}

TEST_F(HostileDecisionFile, WhatKilledProcessesLeftIsRemoved) {
  std::vector<StoredDecision> many;
  for (int key = 1; key <= 2000; ++key) {
    many.push_back(Stored(key));
  }
  ASSERT_TRUE(DecisionFile(path_).Replace(many).ok());
  const pid_t child = fork();
  if (child == 0) {
    LetWritesBeyondKill(1000);
    static_cast<void>(DecisionFile(path_).Replace(many));
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  EXPECT_EQ(NamesIn(home_).size(), 3U);
  ExpectHolds(many.size());
  ExpectAppends(3000);
  EXPECT_EQ(NamesIn(home_).size(), 3U) << "an append looks through the folder";
  ASSERT_TRUE(DecisionFile(path_).Replace(many).ok());
  ExpectHolds(many.size());
  EXPECT_EQ(NamesIn(home_), (std::set<std::string>{"decisions.txt", "decisions.txt.lock"}));
}

TEST_F(HostileDecisionFile, OnlyTemporariesAreRemoved) {
  const std::string temporary = home_ + "/decisions.txt.0123456789abcdef.tmp";
  const std::set<std::string> kept = {
      "decisions.txt.0123456789abcde.tmp",
      "decisions.txt.0123456789abcdeg.tmp",
      "decisions.txt.1",
      "decisions.txt.tmp",
      "decisions2txt.0123456789abcdef.tmp",
      "decisions.txt.0123456789abcdef"};
  for (const std::string& name : kept) {
    WriteFile(home_ + "/" + name, "precious");
  }
  WriteFile(temporary, "half of a fi");
  ExpectAppends(1);
  std::set<std::string> expected = kept;
  expected.insert({"decisions.txt", "decisions.txt.lock"});
  EXPECT_EQ(NamesIn(home_), expected);
  std::filesystem::create_symlink("decisions.txt.1", temporary);
  ASSERT_TRUE(DecisionFile(path_).Replace({Stored(2)}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(temporary));
}

TEST_F(HostileDecisionFile, TextsArePrintable) {
  StoredDecision stored = Stored(1, "\x1b[31mred\a\x7f");
  stored.problem = "\xff caf\xc3\xa9 \xc2\x9b \xe2\x80\xae \xed\xa0\x80 \xc0\xaf\r";
  ASSERT_TRUE(DecisionFile(path_).Append(stored).ok());
  std::vector<std::string> warnings;
  const std::vector<StoredDecision> all = DecisionFile(path_).Read(&warnings);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].decision.id, "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(
      all[0].problem,
      "\\xff caf\xc3\xa9 \\xc2\\x9b \\xe2\\x80\\xae \\xed\\xa0\\x80 \\xc0\\xaf\\x0d");
  // Whoever cannot build it drops it by the name that was read.
  ASSERT_TRUE(DecisionFile(path_).Forget(all[0]).ok());
  ExpectHolds(0);
}

TEST_F(HostileDecisionFile, APathIsPrintableInSentences) {
  const DecisionFile file(folder_.path() + "/\x1b[2J\xff");
  std::filesystem::create_directory(file.path());
  std::vector<std::string> warnings;
  static_cast<void>(file.Read(&warnings));
  EXPECT_EQ(
      warnings,
      std::vector<std::string>{"cannot read " + folder_.path() + "/\\x1b[2J\\xff: Is a directory"});
  EXPECT_EQ(
      file.Append(Stored(1)).message(),
      "cannot write " + folder_.path() + "/\\x1b[2J\\xff: Is a directory");
}

TEST_F(HostileDecisionFile, AZeroByteEndsNoPath) {
  ExpectAppends(1);
  path_ += std::string("\0x", 2);
  const auto [held, warnings] = Read();
  EXPECT_EQ(held, 0U);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].ends_with("/decisions.txt\\x00x: the path holds a zero byte"));
  EXPECT_FALSE(DecisionFile(path_).Replace({}).ok());
  path_.resize(path_.size() - 2);
  ExpectHolds(1);
}

TEST_F(HostileDecisionFile, OddLinesAreDamagedLines) {
  ExpectAppends(1);
  const std::string whole = ReadFile(path_);
  for (const std::string& odd :
       {std::string(1 << 20, '\t'), std::string(20 << 20, 'a'), std::string(1000, '\0'),
        std::string("\r"), std::string("\xff\xfe\t\t\t\t\t\t7")}) {
    WriteFile(path_, whole + odd + "\n");
    const auto [held, warnings] = Read();
    EXPECT_EQ(held, 1U);
    EXPECT_EQ(warnings, std::vector<std::string>{path_ + ": 1 damaged line is ignored"});
    ExpectAppends(2);
    EXPECT_EQ(Read().first, 2U);
  }
}

/// Whoever wrote a file does not have what it pleases of the reader's memory.
TEST_F(HostileDecisionFile, OfVeryManyDecisionsTheNewestCount) {
  std::vector<StoredDecision> many;
  for (int key = 1; key <= 70000; ++key) {
    many.push_back(Stored(key, ""));
    many.back().problem = "";
  }
  ASSERT_TRUE(DecisionFile(path_).AppendAll(many).ok());
  std::vector<std::string> warnings;
  const std::vector<StoredDecision> held = DecisionFile(path_).Read(&warnings);
  ASSERT_EQ(held.size(), 65536U);
  EXPECT_EQ(held.back().key, many.back().key);
  EXPECT_EQ(held.front().key, many[70000 - 65536].key);
}

TEST_F(HostileDecisionFile, MuchThatIsAddedLeavesAFileThatIsRead) {
  std::vector<StoredDecision> many;
  for (int key = 1; key <= 700; ++key) {
    many.push_back(Stored(key));
    many.back().problem.assign(60000, 'p');
  }
  ExpectAppends(1);
  ASSERT_TRUE(DecisionFile(path_).AppendAll(many).ok());
  const auto [held, warnings] = Read();
  EXPECT_EQ(warnings, std::vector<std::string>());
  EXPECT_GT(held, 50U);
  EXPECT_TRUE(DecisionFile(path_).Replace(many).ok());
  EXPECT_EQ(Read().second, std::vector<std::string>());
  EXPECT_GT(Read().first, 50U);
}

class GivenDecisionFile : public HostileDecisionFile {};

/// The user names a file of another machine: what matters is that it is one, and whole.
TEST_F(GivenDecisionFile, IsReadWhomeverItBelongsTo) {
  ExpectAppends(1);
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  ASSERT_EQ(chmod(home_.c_str(), 0777), 0);
  std::filesystem::create_symlink("decisions.txt", home_ + "/linked");
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path_.c_str(), kOther, kOther), 0);
  }
  for (const std::string& path : {path_, home_ + "/linked"}) {
    const auto decisions = DecisionFile::ReadAnyones(path);
    ASSERT_TRUE(decisions.ok()) << decisions.status().message();
    EXPECT_EQ(decisions->size(), 1U);
  }
}

TEST_F(GivenDecisionFile, IsARegularFileOfAFewBytes) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  WriteFile(home_ + "/long", kHeader);
  ASSERT_EQ(truncate((home_ + "/long").c_str(), off_t{3} << 30U), 0);
  const std::pair<std::string, std::string> refused[] = {
      {path_, "it is a FIFO, and only regular files are opened"},
      {home_, "Is a directory"},
      {home_ + "/long", "it has more than the 33554432 bytes that are read of a file"},
      {"/dev/zero", "it is a device, and only regular files are opened"},
      {home_ + "/none", "No such file or directory"}};
  for (const auto& [path, reason] : refused) {
    const auto decisions = DecisionFile::ReadAnyones(path);
    EXPECT_EQ(decisions.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(decisions.status().message(), "cannot read " + path + ": " + reason);
  }
}

}  // namespace
}  // namespace gradsmith::internal
