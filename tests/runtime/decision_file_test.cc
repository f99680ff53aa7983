#include "core/decision_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/test_clock.h"
#include "support/scratch_folder.h"

namespace gradsmith::internal {
namespace {

using support::ReadFile;
using support::WriteFile;

constexpr const char* kHeader = "gradsmith decisions, format 3\n";

StoredDecision Stored(int key, const std::string& id, double milliseconds = 0.25) {
  StoredDecision stored;
  stored.key.Add(key);
  stored.key.Add(-key);
  stored.decision = {
      id, static_cast<std::size_t>(key) * 1000, SearchMode::kBenchmark, milliseconds, 3.1e-7};
  stored.problem = "forward of problem " + std::to_string(key);
  return stored;
}

StoredDecision NotTimed(int key, const std::string& id) {
  StoredDecision stored = Stored(key, id);
  stored.decision.mode = SearchMode::kHeuristic;
  return stored;
}

void ExpectSame(const StoredDecision& a, const StoredDecision& b) {
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.decision.id, b.decision.id);
  EXPECT_EQ(a.decision.workspace, b.decision.workspace);
  EXPECT_EQ(a.decision.mode, b.decision.mode);
  EXPECT_EQ(a.decision.milliseconds, b.decision.milliseconds);
  EXPECT_EQ(a.decision.error, b.decision.error);
  EXPECT_EQ(a.problem, b.problem);
}

void ExpectSame(const std::vector<StoredDecision>& a, const std::vector<StoredDecision>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ExpectSame(a[i], b[i]);
  }
}

class DecisionFileTest : public testing::Test {
 protected:
  /// What the file holds, and the warnings.
  [[nodiscard]] std::pair<std::vector<StoredDecision>, std::vector<std::string>> Read() const {
    std::vector<std::string> warnings;
    std::vector<StoredDecision> decisions = DecisionFile(path_).Read(&warnings);
    return {std::move(decisions), std::move(warnings)};
  }
  void ExpectHolds(const std::vector<StoredDecision>& expected) const {
    const auto [decisions, warnings] = Read();
    EXPECT_EQ(warnings, std::vector<std::string>());
    ExpectSame(decisions, expected);
  }
  void Append(const StoredDecision& stored) const {
    const Status status = DecisionFile(path_).Append(stored);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  TestClock clock_;  // who writes waits for others as long as they take
  support::ScratchFolder folder_;
  std::string path_ = folder_.path() + "/decisions.txt";
};

TEST_F(DecisionFileTest, GivesBackWhatWasAppended) {
  std::vector<StoredDecision> all = {
      Stored(1, "graph/engine 67/2=1,5=0"), Stored(2, "packed legacy/1", 1.0 / 3),
      Stored(3, "own/direct", 0), Stored(4, "", 1e-300)};
  all[1].decision.mode = SearchMode::kHeuristic;
  all[2].decision.mode = SearchMode::kDefault;
  all[2].decision.workspace = static_cast<std::size_t>(-1);
  all[3].problem = "";
  for (const StoredDecision& stored : all) {
    Append(stored);
  }
  ExpectHolds(all);
  EXPECT_TRUE(ReadFile(path_).starts_with(kHeader));
}

TEST_F(DecisionFileTest, OfTwoThatWereMadeAlikeTheLaterCounts) {
  for (const bool timed : {true, false}) {
    const auto stored = [&](int key, const std::string& id) {
      return timed ? Stored(key, id) : NotTimed(key, id);
    };
    Append(stored(1, "old"));
    Append(stored(2, "other"));
    Append(stored(1, "new"));
    ExpectHolds({stored(2, "other"), stored(1, "new")});
    std::filesystem::remove(path_);
  }
}

TEST_F(DecisionFileTest, WhatWasTimedStaysOverWhatWasNot) {
  Append(NotTimed(1, "first"));
  Append(Stored(1, "timed"));
  Append(Stored(2, "other"));
  Append(NotTimed(1, "of a process that had read the file before"));
  // Whose line has shown that the problem is still met.
  ExpectHolds({Stored(2, "other"), Stored(1, "timed")});
}

TEST_F(DecisionFileTest, WhatWasTimedStaysWhereAFileIsWrittenAnew) {
  Append(Stored(1, "timed"));
  Append(Stored(2, "other"));
  const DecisionFile file(path_, ReadFile(path_).size() - 1);  // whose half is one line
  const Status status = file.Append(NotTimed(1, "not timed"));
  ASSERT_TRUE(status.ok()) << status.message();
  ExpectHolds({Stored(1, "timed")});
}

TEST_F(DecisionFileTest, WhatIsForgottenIsGoneAndCanBeReplaced) {
  const DecisionFile file(path_);
  Append(Stored(1, "timed"));
  Append(Stored(2, "other"));
  ASSERT_TRUE(file.Forget(Stored(1, "timed")).ok());
  ExpectHolds({Stored(2, "other")});
  Append(NotTimed(1, "not timed"));
  ExpectHolds({Stored(2, "other"), NotTimed(1, "not timed")});
}

/// What another process has chosen since is not what cannot be built.
TEST_F(DecisionFileTest, OnlyTheKernelThatIsNamedIsForgotten) {
  Append(Stored(1, "old"));
  Append(Stored(1, "new"));
  ASSERT_TRUE(DecisionFile(path_).Forget(Stored(1, "old")).ok());
  ExpectHolds({Stored(1, "new")});
  ASSERT_TRUE(DecisionFile(path_).Forget(Stored(2, "new")).ok());
  ExpectHolds({Stored(1, "new")});
}

TEST_F(DecisionFileTest, AFileThatGrewTooLongKeepsTheNewest) {
  constexpr std::size_t kMostBytes = 2000;
  const DecisionFile file(path_, kMostBytes);
  const auto append = [&](const StoredDecision& stored) {
    const Status status = file.Append(stored);
    ASSERT_TRUE(status.ok()) << status.message();
  };
  std::size_t largest = 0;
  for (int i = 1; i <= 100; ++i) {
    append(Stored(i, "kernel"));
    append(Stored(i, "quicker", 0.125));
    largest = std::max<std::size_t>(largest, ReadFile(path_).size());
  }
  const std::size_t line =
      ReadFile(path_).size() - ReadFile(path_).rfind("\n", ReadFile(path_).size() - 2);
  EXPECT_GT(largest, kMostBytes);
  EXPECT_LE(largest, kMostBytes + line);
  const auto [decisions, warnings] = Read();
  EXPECT_EQ(warnings, std::vector<std::string>());
  ASSERT_GE(decisions.size(), 3);
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    ExpectSame(
        decisions[i], Stored(static_cast<int>(100 - decisions.size() + 1 + i), "quicker", 0.125));
  }
}

TEST_F(DecisionFileTest, TextsKeepToTheirField) {
  StoredDecision stored = Stored(1, "a\tb\nc");
  stored.problem = "\td\r\n\te\n";
  Append(stored);
  stored.decision.id = "a b c";
  stored.problem = " d\\x0d  e ";
  ExpectHolds({stored});
}

TEST_F(DecisionFileTest, NoFileAndAnEmptyFileHoldNothing) {
  ExpectHolds({});
  WriteFile(path_, "");
  ExpectHolds({});
  Append(Stored(1, "a"));
  ExpectHolds({Stored(1, "a")});
}

TEST_F(DecisionFileTest, MakesFolders) {
  path_ = folder_.path() + "/a/b/decisions.txt";
  Append(Stored(1, "a"));
  ExpectHolds({Stored(1, "a")});
}

TEST_F(DecisionFileTest, SaysWhereItCannotWrite) {
  WriteFile(folder_.path() + "/file", "");
  path_ = folder_.path() + "/file/decisions.txt";
  for (const Status& status :
       {DecisionFile(path_).Append(Stored(1, "a")), DecisionFile(path_).Replace({})}) {
    EXPECT_EQ(status.code(), StatusCode::kInternal);
    EXPECT_NE(status.message().find("cannot make the folder of " + path_), std::string::npos)
        << status.message();
  }
}

TEST_F(DecisionFileTest, AFolderInItsPlaceIsSaidAndDoesNoHarm) {
  std::filesystem::create_directories(path_ + "/full");
  const auto [decisions, warnings] = Read();
  EXPECT_TRUE(decisions.empty());
  EXPECT_EQ(warnings, std::vector<std::string>{"cannot read " + path_ + ": Is a directory"});
  EXPECT_FALSE(DecisionFile(path_).Append(Stored(1, "a")).ok());
  EXPECT_FALSE(DecisionFile(path_).Replace({Stored(1, "a")}).ok());
  // Nothing is left of the attempt.
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names, std::set<std::string>{"decisions.txt"});
}

TEST_F(DecisionFileTest, AFolderThatForbidsWritingIsSaid) {
  if (geteuid() == 0) {
    GTEST_SKIP() << "nothing is forbidden to the administrator";
  }
  chmod(folder_.path().c_str(), 0555);
  EXPECT_FALSE(DecisionFile(path_).Append(Stored(1, "a")).ok());
  chmod(folder_.path().c_str(), 0755);
}

TEST_F(DecisionFileTest, CutShortAnywhereItHoldsWhatIsWhole) {
  const std::vector<StoredDecision> all = {Stored(1, "a"), Stored(2, "b"), Stored(3, "c")};
  for (const StoredDecision& stored : all) {
    Append(stored);
  }
  const std::string whole = ReadFile(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE("cut to " + std::to_string(size) + " bytes");
    WriteFile(path_, whole.substr(0, size));
    auto [decisions, warnings] = Read();
    const bool ends_with_a_line = size == 0 || whole[size - 1] == '\n' ||
                                  (whole[size] == '\n' && size > std::string(kHeader).size());
    EXPECT_EQ(warnings.size(), ends_with_a_line ? 0U : 1U);
    ASSERT_LE(decisions.size(), all.size());
    ExpectSame(
        decisions, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(decisions.size())});
    // What is appended is not lost in the damaged line.
    Append(Stored(4, "d"));
    decisions.push_back(Stored(4, "d"));
    ExpectSame(Read().first, decisions);
  }
}

TEST_F(DecisionFileTest, AFlippedByteCostsNoMoreThanItsLines) {
  const std::vector<StoredDecision> all = {Stored(1, "a"), Stored(2, "b"), Stored(3, "c")};
  for (const StoredDecision& stored : all) {
    Append(stored);
  }
  const std::string whole = ReadFile(path_);
  for (std::size_t place = 0; place < whole.size(); ++place) {
    for (const int flip : {1, 0x20, 0x80}) {
      SCOPED_TRACE("byte " + std::to_string(place) + " ^ " + std::to_string(flip));
      std::string damaged = whole;
      damaged[place] = static_cast<char>(damaged[place] ^ flip);
      WriteFile(path_, damaged);
      const auto [decisions, warnings] = Read();
      EXPECT_EQ(warnings.size(), 1U);
      // A line that became two, or two that became one: at most two are lost.
      const std::size_t least = place < std::string(kHeader).size() ? 0 : 1;
      EXPECT_GE(decisions.size(), least);
      EXPECT_LT(decisions.size(), all.size());
      for (const StoredDecision& decision : decisions) {
        const auto number = static_cast<std::size_t>(decision.decision.workspace / 1000);
        ExpectSame(decision, all.at(number - 1));
      }
    }
  }
}

TEST_F(DecisionFileTest, AnotherFormatIsIgnoredAndReplaced) {
  WriteFile(path_, "gradsmith decisions, format 1\nwhatever\n");
  const auto [decisions, warnings] = Read();
  EXPECT_TRUE(decisions.empty());
  EXPECT_EQ(
      warnings,
      std::vector<std::string>{path_ + " is ignored: it is not a decision file of this version"});
  Append(Stored(1, "a"));
  ExpectHolds({Stored(1, "a")});
}

TEST_F(DecisionFileTest, AFileOfSomethingElseIsLeftAlone) {
  WriteFile(path_, "my thesis\n");
  EXPECT_EQ(Read().second.size(), 1U);
  const Status status = DecisionFile(path_).Append(Stored(1, "a"));
  EXPECT_EQ(status.message(), "cannot write " + path_ + ": it is there and no decision file");
  EXPECT_EQ(ReadFile(path_), "my thesis\n");
}

TEST_F(DecisionFileTest, ReplaceLeavesOnlyWhatItIsGiven) {
  Append(Stored(1, "a"));
  ASSERT_TRUE(DecisionFile(path_).Replace({Stored(2, "b"), Stored(3, "c")}).ok());
  ExpectHolds({Stored(2, "b"), Stored(3, "c")});
  ASSERT_TRUE(DecisionFile(path_).Replace({}).ok());
  ExpectHolds({});
}

/// Runs a function in a process of its own; its result is the exit status.
pid_t Fork(const std::function<int()>& function) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(function());
  }
  return child;
}

int ExitStatus(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(DecisionFileTest, ProcessesAppendAtOnce) {
  constexpr int kLines = 200;
  std::vector<pid_t> children;
  for (int process = 0; process < 2; ++process) {
    children.push_back(Fork([&] {
      for (int i = 0; i < kLines; ++i) {
        if (!DecisionFile(path_).Append(Stored(process * kLines + i + 1, "engine")).ok()) {
          return 1;
        }
      }
      return 0;
    }));
  }
  for (const pid_t child : children) {
    EXPECT_EQ(ExitStatus(child), 0);
  }
  const auto [decisions, warnings] = Read();
  EXPECT_EQ(warnings, std::vector<std::string>());
  EXPECT_EQ(decisions.size(), 2U * kLines);
}

TEST_F(DecisionFileTest, ReadersSeeAFileFromBeforeOrAfterItIsReplaced) {
  std::vector<StoredDecision> all;
  for (int i = 1; i <= 300; ++i) {
    all.push_back(Stored(i, "engine"));
  }
  ASSERT_TRUE(DecisionFile(path_).Replace(all).ok());
  const pid_t writer = Fork([&] {
    for (int i = 0; i < 200; ++i) {
      if (!DecisionFile(path_).Replace(all).ok()) {
        return 1;
      }
    }
    return 0;
  });
  int reads = 0;
  int status = 0;
  for (; waitpid(writer, &status, WNOHANG) == 0; ++reads) {
    const auto [decisions, warnings] = Read();
    ASSERT_EQ(warnings, std::vector<std::string>());
    ASSERT_EQ(decisions.size(), all.size());
  }
  EXPECT_EQ(status, 0);
  EXPECT_GT(reads, 0);
}

TEST_F(DecisionFileTest, ThreadsReplaceAtOnce) {
  std::atomic<int> failures = 0;
  std::vector<std::jthread> threads;
  for (int thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      const std::vector<StoredDecision> mine(static_cast<std::size_t>(thread) * 50, Stored(1, "a"));
      for (int i = 0; i < 100; ++i) {
        failures += DecisionFile(path_).Replace(mine).ok() && Read().second.empty() ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(failures, 0);
  ExpectHolds({Stored(1, "a")});
}

TEST_F(DecisionFileTest, WritersWaitForTheLock) {
  const DecisionFile file(path_);
  const std::function<Status()> writers[] = {
      [&] { return file.Append(Stored(1, "a")); }, [&] { return file.Replace({Stored(1, "a")}); }};
  for (const auto& write : writers) {
    const int lock = open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ASSERT_EQ(flock(lock, LOCK_EX), 0);
    std::future<Status> written = std::async(std::launch::async, write);
    EXPECT_EQ(written.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    ExpectHolds({});
    close(lock);
    EXPECT_TRUE(written.get().ok());
    ExpectHolds({Stored(1, "a")});
    std::filesystem::remove(path_);
  }
}

/// A process that was stopped while it wrote must not stop all others.
TEST_F(DecisionFileTest, WritersDoNotWaitForEver) {
  Append(Stored(1, "a"));
  const int lock = open((path_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  const DecisionFile file(path_);
  const std::function<Status()> writers[] = {
      [&] { return file.Append(Stored(2, "b")); }, [&] { return file.Replace({}); }};
  for (const auto& write : writers) {
    std::future<Status> written = std::async(std::launch::async, write);
    while (written.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      TestClock::Advance(1);  // until it has begun to wait and 2 seconds more
    }
    EXPECT_EQ(
        written.get().message(), "cannot write " + path_ + ": another process has held its lock, " +
                                     path_ + ".lock, for 2 seconds");
    flock(lock, LOCK_EX);
  }
  close(lock);
  ExpectHolds({Stored(1, "a")});
}

}  // namespace
}  // namespace gradsmith::internal
