#include "core/problem_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/scratch_folder.h"

namespace gradsmith::internal {
namespace {

class ProblemFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string Path() const { return folder_.path() + "/below/problems.txt"; }

  [[nodiscard]] std::unique_ptr<ProblemFile> Open() const {
    Result<std::unique_ptr<ProblemFile>> file = ProblemFile::Open(Path());
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(*file) : nullptr;
  }

  void Write(const std::string& text) const {
    std::filesystem::create_directories(folder_.path() + "/below");
    std::ofstream(Path()) << text;
  }

  /// The lines but for comments.
  [[nodiscard]] std::vector<std::string> Lines() const {
    std::ifstream file(Path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("#")) {
        lines.push_back(line);
      }
    }
    return lines;
  }

 private:
  support::ScratchFolder folder_;
};

using Texts = std::vector<std::string>;

TEST_F(ProblemFileTest, HasEachLineOnce) {
  const auto file = Open();
  for (const char* line : {"a", "b", "a", "b", "c"}) {
    EXPECT_TRUE(file->Add(line).ok());
  }
  EXPECT_EQ(Lines(), (Texts{"a", "b", "c"}));
}

TEST_F(ProblemFileTest, KnowsWhatIsThere) {
  EXPECT_TRUE(Open()->Add("a").ok());
  const auto again = Open();
  EXPECT_TRUE(again->Add("a").ok());
  EXPECT_TRUE(again->Add("b").ok());
  EXPECT_EQ(Lines(), (Texts{"a", "b"}));
}

TEST_F(ProblemFileTest, WhatAPersonWroteStays) {
  Write("# mine\n\na\nb");  // whose last line has no end
  const auto file = Open();
  EXPECT_TRUE(file->Add("c").ok());
  EXPECT_TRUE(file->Add("b").ok());
  std::ifstream written(Path());
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  EXPECT_EQ(text, "# mine\n\na\nb\nc\n");
}

TEST_F(ProblemFileTest, LinesThatAreTooLongAreLeftOut) {
  const auto file = Open();
  EXPECT_TRUE(file->Add(std::string(ProblemFile::kLongestLine, 'x')).ok());
  EXPECT_TRUE(file->Add(std::string(ProblemFile::kLongestLine + 1, 'y')).ok());
  EXPECT_EQ(Lines(), Texts{std::string(ProblemFile::kLongestLine, 'x')});
}

TEST_F(ProblemFileTest, IsBounded) {
  std::string text;
  for (std::size_t i = 0; i + 1 < ProblemFile::kMostLines; ++i) {
    text += std::to_string(i) + "\n";
  }
  Write(text);
  const auto file = Open();
  EXPECT_TRUE(file->Add("last").ok());
  EXPECT_TRUE(file->Add("7").ok());  // is there
  EXPECT_EQ(file->Add("one more").message(), "the file has 10000 problems, and gets no more");
  EXPECT_EQ(Lines().size(), ProblemFile::kMostLines);
  EXPECT_EQ(Lines().back(), "last");
}

TEST_F(ProblemFileTest, SaysWhatIsWrong) {
  const auto file = Open();
  EXPECT_TRUE(file->Add("a").ok());
  std::filesystem::remove(Path());
  EXPECT_EQ(file->Add("b").message(), "cannot write " + Path() + ": it is gone");
  std::filesystem::create_directory(Path());
  const Result<std::unique_ptr<ProblemFile>> folder = ProblemFile::Open(Path());
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.status().message().find(Path()), std::string::npos) << folder.status().message();
}

TEST_F(ProblemFileTest, ThreadsAndProcessesWriteWholeLines) {
  constexpr int kThreads = 4;
  constexpr int kLines = 50;
  const auto shared = Open();
  const auto other = Open();  // as that of another process
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kLines; ++i) {
          ProblemFile& file = thread % 2 == 0 ? *shared : *other;
          EXPECT_TRUE(file.Add("line " + std::to_string(i)).ok());
        }
      });
    }
  }
  const Texts lines = Lines();
  const std::set<std::string> different(lines.begin(), lines.end());
  EXPECT_EQ(different.size(), kLines);
  EXPECT_LE(lines.size(), 2 * kLines);
  for (const std::string& line : different) {
    EXPECT_EQ(line.substr(0, 5), "line ");
  }
}

}  // namespace
}  // namespace gradsmith::internal
