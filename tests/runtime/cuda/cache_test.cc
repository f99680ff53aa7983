#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "conv/task.h"
#include "core/decision_file.h"
#include "core/problem_key.h"
#include "cuda/selected_run.h"
#include "cuda/thread_state.h"
#include "runtime/cuda/child_process.h"
#include "runtime/cuda/op_problems.h"

/// What is remembered from one process to the next.
namespace gradsmith::cuda {
namespace {

using internal::DecisionFile;
using internal::StoredDecision;

/// One call in a new process; says on standard output how it went.
class CudaCacheChild : public CudaChildTest {};

TEST_F(CudaCacheChild, Call) {
  int warnings = 0;
  SetWarningHandler([&](const std::string& sentence) {
    ++warnings;
    std::cout << "CHILD WARNING " << sentence << "\n";
  });
  int searches = 0;
  ContextOptions options = OnGpu(SearchMode::kHeuristic, 4);
  options.search_mode = std::nullopt;  // GRADSMITH_SEARCH_MODE
  options.on_search_progress = [&](const SearchProgress& progress) {
    searches += progress.tried == 1 ? 1 : 0;
  };
  Random random("cuda cache child");
  const Context context(options);
  const OpCall call = MakeConvGrad(Conv3x3(), DataType::kFloat, Layout::kChannelsLast, random);
  // Loading cuDNN takes its time in any process.
  ASSERT_TRUE(ThreadState::OfThisThread(device()).handle().ok());
  const auto begin = std::chrono::steady_clock::now();
  const Status status = call.Run(context);
  const Status waited = Synchronize(context);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::cout << "CHILD searches=" << searches << "\nCHILD warnings=" << warnings
            << "\nCHILD seconds=" << taken.count() << "\nCHILD choices=" << CachedChoices().size()
            << "\n"
            << RecentChoices() << "\n";
  ASSERT_TRUE(status.ok() && waited.ok()) << status.message() << waited.message();
  call.ExpectResults("child");
  SetWarningHandler(nullptr);
}

/// Needs no GPU: a file name without a folder is in the current one.
TEST(CudaCacheFile, NameWithoutFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(testing::TempDir());
  const std::string name = "gradsmith_decisions_" + std::to_string(getpid()) + ".txt";
  StoredDecision stored;
  stored.key.Add(1);
  stored.decision.id = "own/direct";
  const Status status = DecisionFile(name).Append(stored);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<std::string> warnings;
  EXPECT_EQ(DecisionFile(name).Read(&warnings).size(), 1U);
  EXPECT_TRUE(warnings.empty());
  for (const std::string& file : {name, name + ".lock"}) {
    std::filesystem::remove(file);
  }
  std::filesystem::current_path(before);
}

/// An origin's words, as they are in the text of a key.
std::string Words(const Origin& origin) {
  internal::ProblemKey key;
  for (const std::int64_t word : {origin.device, origin.cudnn, origin.search}) {
    key.Add(word);
  }
  return key.Text();
}

class CudaCache : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    folder_ = testing::TempDir() + "gradsmith_cache_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }

  [[nodiscard]] std::string File() const { return folder_ + "/decisions.txt"; }
  [[nodiscard]] ChildResult Child(SearchMode mode, const std::string& doing) const {
    ChildResult child = RunChild(
        "CudaCacheChild.Call",
        {{"GRADSMITH_CACHE", File()}, {"GRADSMITH_SEARCH_MODE", std::string(ToString(mode))}});
    ExpectPassed(child, doing);
    return child;
  }
  [[nodiscard]] std::string Read() const {
    std::ifstream file(File(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& text) const {
    std::ofstream(File(), std::ios::binary | std::ios::trunc) << text;
  }
  [[nodiscard]] std::vector<StoredDecision> Decisions() const {
    std::vector<std::string> warnings;
    std::vector<StoredDecision> decisions = DecisionFile(File()).Read(&warnings);
    EXPECT_TRUE(warnings.empty()) << warnings.front();
    return decisions;
  }

 private:
  std::string folder_;
};

TEST_F(CudaCache, SecondProcessDoesNotSearch) {
  const ChildResult first = Child(SearchMode::kBenchmark, "first");
  // There is a search for each gradient, and one for both together.
  EXPECT_EQ(first.Number("searches"), 3) << first.output;
  EXPECT_EQ(first.Number("warnings"), 0) << first.output;
  EXPECT_EQ(Decisions().size(), 3U) << Read();
  const std::string written = Read();
  const ChildResult second = Child(SearchMode::kBenchmark, "second");
  EXPECT_EQ(second.Number("searches"), 0) << second.output;
  EXPECT_EQ(second.Number("warnings"), 0) << second.output;
  // Both load cuDNN, and the second may compile what the first chose.
  EXPECT_EQ(Read(), written);
  // What was timed serves the heuristic mode as well.
  const ChildResult third = Child(SearchMode::kHeuristic, "third");
  EXPECT_EQ(third.Number("choices"), 3) << third.output;
  EXPECT_EQ(Read(), written) << third.output;
  std::cout << "[ note     ] first call " << first.Number("seconds") << " s, by the file "
            << second.Number("seconds") << " s\n";
}

TEST_F(CudaCache, DamagedFilesAreIgnoredWithAWarning) {
  const ChildResult first = Child(SearchMode::kHeuristic, "first");
  EXPECT_EQ(first.Number("warnings"), 0) << first.output;
  const std::string good = Read();
  ASSERT_GT(good.size(), 100U);

  const std::size_t second_line = good.find('\n') + 1;
  std::string corrupt = good;
  corrupt[second_line + 20] = corrupt[second_line + 20] == 'x' ? 'y' : 'x';
  Write(corrupt);
  ChildResult child = Child(SearchMode::kHeuristic, "a corrupt line");
  EXPECT_EQ(child.Number("warnings"), 1) << child.output;
  EXPECT_TRUE(child.Says("1 damaged line is ignored")) << child.output;

  Write(good.substr(0, good.size() - 20));
  child = Child(SearchMode::kHeuristic, "a truncated file");
  EXPECT_EQ(child.Number("warnings"), 1) << child.output;
  EXPECT_TRUE(child.Says("1 damaged line is ignored")) << child.output;

  Write("gradsmith decisions, format 99\nwhat a later version writes\n");
  child = Child(SearchMode::kHeuristic, "another version");
  EXPECT_EQ(child.Number("warnings"), 1) << child.output;
  EXPECT_TRUE(child.Says("it is not a decision file of this version")) << child.output;

  // Whatever it is, it is not ours to overwrite.
  const std::string garbage("\0\x01\xff\xfe garbage \n\n\t\t", 18);
  Write(garbage);
  child = Child(SearchMode::kHeuristic, "garbage");
  EXPECT_EQ(child.Number("warnings"), 2) << child.output;
  EXPECT_TRUE(child.Says("is ignored")) << child.output;
  EXPECT_TRUE(child.Says("it is there and no decision file")) << child.output;
  EXPECT_EQ(Read(), garbage);
}

TEST_F(CudaCache, TwoProcessesAtOnce) {
  ChildResult one;
  ChildResult two;
  std::thread other([&] { one = Child(SearchMode::kHeuristic, "one of two"); });
  two = Child(SearchMode::kHeuristic, "the other of two");
  other.join();
  EXPECT_EQ(one.Number("warnings"), 0) << one.output;
  EXPECT_EQ(two.Number("warnings"), 0) << two.output;
  EXPECT_EQ(Decisions().size(), 2U) << Read();
  const ChildResult later = Child(SearchMode::kHeuristic, "later");
  EXPECT_EQ(later.Number("warnings"), 0) << later.output;
}

TEST_F(CudaCache, AKernelThatCannotBeBuiltIsSearchedAnew) {
  EXPECT_EQ(Child(SearchMode::kHeuristic, "first").Number("warnings"), 0);
  for (const std::string id : {"graph/engine 9999/2=1", "legacy/algorithm 99/math 0", "nonsense"}) {
    std::vector<StoredDecision> decisions = Decisions();
    ASSERT_EQ(decisions.size(), 2U) << Read();
    decisions[0].decision.id = id;
    ASSERT_TRUE(DecisionFile(File()).Replace(decisions).ok());
    const ChildResult child = Child(SearchMode::kHeuristic, id);
    EXPECT_EQ(child.Number("warnings"), 1) << child.output;
    EXPECT_TRUE(child.Says("the remembered kernel " + id + " is not used: ")) << child.output;
    const ChildResult after = Child(SearchMode::kHeuristic, "after " + id);
    EXPECT_EQ(after.Number("warnings"), 0) << after.output << "\nfile:\n" << Read();
  }
}

/// Choices of another card or driver, of another cuDNN, and of another Gradsmith.
TEST_F(CudaCache, ChoicesOfOtherOriginsAreLeftAlone) {
  EXPECT_EQ(Child(SearchMode::kHeuristic, "first").Number("warnings"), 0);
  const std::vector<StoredDecision> mine = Decisions();
  ASSERT_EQ(mine.size(), 2U) << Read();
  const Origin origin = OriginOf(device(), conv::kRevision);
  for (std::int64_t Origin::*part : {&Origin::device, &Origin::cudnn, &Origin::search}) {
    Origin other = origin;
    other.*part += 1;
    std::vector<StoredDecision> others = mine;
    for (StoredDecision& stored : others) {
      std::string key = stored.key.Text();
      const std::size_t place = key.find(Words(origin));
      ASSERT_NE(place, std::string::npos) << key << " is without " << Words(origin);
      key.replace(place, Words(origin).size(), Words(other));
      stored.key = internal::ProblemKey::FromText(key);
      stored.decision.id = "nonsense";
    }
    ASSERT_TRUE(DecisionFile(File()).Replace(others).ok());
    const ChildResult child = Child(SearchMode::kHeuristic, "choices of " + Words(other));
    EXPECT_EQ(child.Number("warnings"), 0) << child.output;
    EXPECT_GT(child.Number("searches"), 0) << child.output;
    const std::vector<StoredDecision> all = Decisions();
    ASSERT_EQ(all.size(), 4U) << Read();
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(all[i].decision.id, "nonsense");
      EXPECT_NE(all[2 + i].decision.id, "nonsense");
    }
  }
}

TEST_F(CudaCache, WhereNothingCanBeWrittenCallsWork) {
  const ChildResult child =
      RunChild("CudaCacheChild.Call", {{"GRADSMITH_CACHE", "/proc/no/such/folder/decisions.txt"}});
  ExpectPassed(child, "no folder");
  EXPECT_TRUE(child.Says("is not remembered: ")) << child.output;
}

/// Export and import move choices between processes, or machines.
TEST_F(CudaCache, ExportedChoicesServe) {
  int searches = 0;
  ContextOptions options = OnGpu(SearchMode::kBenchmark, 1);
  options.on_search_progress = [&](const SearchProgress&) { ++searches; };
  const Context context(options);
  Random random("cuda cache export");
  const OpCall call = MakeConvGrad(Conv1x1(), DataType::kFloat, Layout::kContiguous, random);
  ASSERT_TRUE(call.Run(context).ok());
  constexpr std::size_t kChoices = 3;  // for each gradient, and for both together
  ASSERT_EQ(CachedChoices().size(), kChoices) << RecentChoices(8);
  ASSERT_TRUE(ExportCache(File()).ok());
  ASSERT_TRUE(ClearCache().ok());
  EXPECT_TRUE(CachedChoices().empty()) << RecentChoices(8);
  ASSERT_TRUE(ImportCache(File()).ok());
  EXPECT_EQ(CachedChoices().size(), kChoices) << RecentChoices(8);
  const int before = searches;
  EXPECT_GT(before, 0);
  call.ResetOutputs();
  ASSERT_TRUE(call.Run(context).ok());
  ASSERT_TRUE(Synchronize(context).ok());
  call.ExpectResults("by imported choices");
  EXPECT_EQ(searches, before) << "searched again" << RecentChoices();
}

}  // namespace
}  // namespace gradsmith::cuda
