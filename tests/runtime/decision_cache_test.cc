#include "core/decision_cache.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu_candidates.h"
#include "core/decision_file.h"
#include "gradsmith/cache.h"
#include "gradsmith/context.h"
#include "support/scratch_folder.h"

namespace gradsmith::internal {
namespace {

using support::ReadFile;
using support::ScratchFolder;
using support::WriteFile;

class FakePlan final : public Plan {
 public:
  [[nodiscard]] std::size_t workspace() const override { return 0; }
  Status Run(const Launch& /*launch*/) override { return {}; }
};

ProblemKey KeyOf(std::int64_t number) {
  ProblemKey key;
  key.Add(number);
  return key;
}

Selected Chosen(const std::string& id, SearchMode mode = SearchMode::kHeuristic) {
  return {{id, 100, mode, 0.5}, std::make_unique<FakePlan>(), {}};
}

StoredDecision
Stored(std::int64_t number, const std::string& id, SearchMode mode = SearchMode::kHeuristic) {
  return {KeyOf(number), {id, 100, mode, 0.5}, "a problem"};
}

/// Collects warnings while it lives.
class Warnings {
 public:
  Warnings() {
    SetWarningHandler([this](const std::string& sentence) { sentences.push_back(sentence); });
  }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  Warnings(Warnings&&) = delete;
  Warnings& operator=(Warnings&&) = delete;
  ~Warnings() { SetWarningHandler({}); }

  std::vector<std::string> sentences;
};

/// A cache, and how often it was searched.
class Subject {
 public:
  explicit Subject(const std::string& path = "")
      : cache(path.empty() ? nullptr : std::make_unique<DecisionFile>(path)) {}

  /// The id that is found or chosen, or the error.
  std::string Ask(
      std::int64_t number,
      const DecisionCache::Search& search,
      SearchMode mode = SearchMode::kHeuristic) {
    std::unique_ptr<Plan> plan;
    const Result<Decision> decision = cache.FindOrSearch(
        KeyOf(number), mode, [] { return "a problem"; },
        [&] {
          ++searches;
          return search();
        },
        &plan);
    return decision.ok() ? decision->id : decision.status().message();
  }
  /// The same, where there must be no search.
  std::string AskWithoutSearch(std::int64_t number, SearchMode mode = SearchMode::kHeuristic) {
    return Ask(number, []() -> Result<Selected> { return Internal("searched"); }, mode);
  }

  DecisionCache cache;
  std::atomic<int> searches = 0;
};

/// Calls `function` from eight threads at once.
void FromThreads(const std::function<void()>& function) {
  constexpr int kThreads = 8;
  std::latch start(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      function();
    });
  }
}

TEST(DecisionCache, HandsThePlanToWhoeverSearched) {
  Subject subject;
  std::unique_ptr<Plan> plan;
  const auto find = [&](const std::string& id) {
    return subject.cache.FindOrSearch(
        KeyOf(1), SearchMode::kHeuristic, [] { return "a problem"; },
        [&]() -> Result<Selected> { return Chosen(id); }, &plan);
  };
  ASSERT_TRUE(find("first").ok());
  EXPECT_NE(plan, nullptr);
  plan = nullptr;
  const Result<Decision> again = find("second");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->id, "first");
  EXPECT_EQ(plan, nullptr);
  const std::vector<StoredDecision> entries = subject.cache.Entries();
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].problem, "a problem");
  EXPECT_EQ(entries[0].decision.workspace, 100U);
}

TEST(DecisionCache, ThreadsSearchAProblemOnce) {
  Subject subject;
  FromThreads([&] {
    for (int key = 0; key < 3; ++key) {
      EXPECT_EQ(
          subject.Ask(
              key,
              [&]() -> Result<Selected> {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
                return Chosen("chosen");
              }),
          "chosen");
    }
  });
  EXPECT_EQ(subject.searches, 3);
}

TEST(DecisionCache, AfterASearchThatFailsTheNextTries) {
  Subject subject;
  std::atomic<int> errors = 0;
  FromThreads([&] {
    const std::string id = subject.Ask(1, [&]() -> Result<Selected> {
      if (subject.searches <= 3) {
        return Internal("failed");
      }
      return Chosen("chosen");
    });
    errors += id == "failed" ? 1 : 0;
  });
  EXPECT_EQ(errors, 3);
  EXPECT_EQ(subject.searches, 4);
}

TEST(DecisionCache, AfterASearchThatThrowsTheNextTries) {
  Subject subject;
  std::atomic<int> thrown = 0;
  FromThreads([&] {
    try {
      subject.Ask(1, [&]() -> Result<Selected> {
        if (subject.searches <= 3) {
          throw std::runtime_error("thrown");
        }
        return Chosen("chosen");
      });
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  });
  EXPECT_EQ(thrown, 3);
  EXPECT_EQ(subject.searches, 4);
  EXPECT_EQ(subject.AskWithoutSearch(1), "chosen");
}

TEST(DecisionCache, BenchmarkSearchesAgainWhatWasNotTimed) {
  Subject subject;
  EXPECT_EQ(subject.Ask(1, [] { return Chosen("first"); }), "first");
  const std::uint64_t generation = subject.cache.generation();
  EXPECT_EQ(subject.cache.Find(KeyOf(1), SearchMode::kBenchmark), std::nullopt);
  const auto timed = [] { return Chosen("timed", SearchMode::kBenchmark); };
  EXPECT_EQ(subject.Ask(1, timed, SearchMode::kBenchmark), "timed");
  EXPECT_GT(subject.cache.generation(), generation);
  for (const SearchMode mode :
       {SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark}) {
    EXPECT_EQ(subject.AskWithoutSearch(1, mode), "timed");
    EXPECT_EQ(subject.cache.Find(KeyOf(1), mode)->id, "timed");
  }
}

TEST(DecisionCache, WhatIsNewLeavesPlansAlone) {
  Subject subject;
  const std::uint64_t generation = subject.cache.generation();
  subject.Ask(1, [] { return Chosen("a"); });
  subject.Ask(2, [] { return Chosen("b"); });
  EXPECT_EQ(subject.cache.generation(), generation);
}

TEST(DecisionCache, LaterProcessesRemember) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/folder/decisions.txt";
  Subject first(path);
  EXPECT_EQ(first.cache.path(), path);
  first.Ask(1, [] { return Chosen("heuristic"); });
  first.Ask(2, [] { return Chosen("timed", SearchMode::kBenchmark); });
  Subject second(path);
  EXPECT_EQ(second.AskWithoutSearch(1), "heuristic");
  EXPECT_EQ(second.AskWithoutSearch(2, SearchMode::kBenchmark), "timed");
  EXPECT_EQ(second.AskWithoutSearch(1, SearchMode::kBenchmark), "searched");
}

TEST(DecisionCache, ADamagedFileIsWarnedOfAndDoesNoHarm) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject(path).Ask(1, [] { return Chosen("whole"); });
  WriteFile(path, ReadFile(path) + "5.6\tdamaged");
  const Warnings warnings;
  Subject subject(path);
  EXPECT_EQ(subject.AskWithoutSearch(1), "whole");
  EXPECT_EQ(warnings.sentences, std::vector<std::string>{path + ": 1 damaged line is ignored"});
  EXPECT_EQ(subject.Ask(2, [] { return Chosen("new"); }), "new");
  EXPECT_EQ(Subject(path).AskWithoutSearch(2), "new");
}

TEST(DecisionCache, AFileThatCannotBeReadOrWrittenIsWarnedOfAndDoesNoHarm) {
  const ScratchFolder folder;
  Warnings warnings;
  Subject subject(folder.path());  // a folder
  EXPECT_EQ(subject.Ask(1, [] { return Chosen("chosen"); }), "chosen");
  EXPECT_EQ(subject.AskWithoutSearch(1), "chosen");
  ASSERT_EQ(warnings.sentences.size(), 2U);
  EXPECT_TRUE(warnings.sentences[0].starts_with("cannot read " + folder.path()))
      << warnings.sentences[0];
  EXPECT_TRUE(
      warnings.sentences[1].starts_with("the choice of a kernel is not remembered: cannot "))
      << warnings.sentences[1];
}

TEST(DecisionCache, AWarningHandlerMayAskTheCache) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  WriteFile(path, "damaged\n");
  Subject subject(path);
  std::size_t entries = 7;
  SetWarningHandler(
      [&](const std::string& /*sentence*/) { entries = subject.cache.Entries().size(); });
  EXPECT_EQ(subject.cache.Find(KeyOf(1), SearchMode::kHeuristic), std::nullopt);
  SetWarningHandler({});
  EXPECT_EQ(entries, 0U);
}

TEST(DecisionCache, IsBounded) {
  Subject subject;
  for (int key = 0; key < 20000; ++key) {
    subject.Ask(key, [] { return Chosen("chosen"); });
    subject.AskWithoutSearch(0);
  }
  EXPECT_LE(subject.cache.Entries().size(), 10000U);
  EXPECT_EQ(subject.AskWithoutSearch(19999), "chosen");
  EXPECT_EQ(subject.AskWithoutSearch(0), "chosen");  // was used throughout
  EXPECT_EQ(subject.AskWithoutSearch(1), "searched");
}

TEST(DecisionCache, ForgottenDecisionsAreSearchedAgainAndPlansAreStale) {
  Subject subject;
  subject.Ask(1, [] { return Chosen("old"); });
  subject.Ask(2, [] { return Chosen("other"); });
  const std::uint64_t generation = subject.cache.generation();
  subject.cache.Forget(KeyOf(1), "old");
  EXPECT_GT(subject.cache.generation(), generation);
  EXPECT_EQ(subject.cache.Find(KeyOf(1), SearchMode::kHeuristic), std::nullopt);
  EXPECT_EQ(subject.Ask(1, [] { return Chosen("new"); }), "new");
  EXPECT_EQ(subject.AskWithoutSearch(2), "other");
}

TEST(DecisionCache, WhatWasReplacedSinceIsNotForgotten) {
  Subject subject;
  subject.Ask(1, [] { return Chosen("old"); });
  subject.cache.Add({Stored(1, "new")});
  const std::uint64_t generation = subject.cache.generation();
  subject.cache.Forget(KeyOf(1), "old");
  EXPECT_EQ(subject.cache.generation(), generation);
  EXPECT_EQ(subject.AskWithoutSearch(1), "new");
}

/// A kernel that was timed, but cannot be built any more.
TEST(DecisionCache, LaterProcessesForgetToo) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject(path).Ask(1, [] { return Chosen("gone", SearchMode::kBenchmark); });
  Subject second(path);
  EXPECT_EQ(second.AskWithoutSearch(1), "gone");
  second.cache.Forget(KeyOf(1), "gone");
  EXPECT_EQ(Subject(path).AskWithoutSearch(1), "searched");
  EXPECT_EQ(second.Ask(1, [] { return Chosen("new"); }), "new");
  EXPECT_EQ(Subject(path).AskWithoutSearch(1), "new");
}

/// A kernel for which there was no memory.
TEST(DecisionCache, WhatIsForgottenForNowStaysInTheFile) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject(path).Ask(1, [] { return Chosen("large", SearchMode::kBenchmark); });
  Subject second(path);
  EXPECT_EQ(second.AskWithoutSearch(1), "large");
  second.cache.Forget(KeyOf(1), "large", /*in_file=*/false);
  EXPECT_EQ(second.Ask(1, [] { return Chosen("small"); }), "small");
  EXPECT_EQ(Subject(path).AskWithoutSearch(1), "large");
}

TEST(DecisionCache, AProcessThatDoesNotTimeLeavesWhatAnotherTimed) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject early(path);
  EXPECT_EQ(early.cache.Find(KeyOf(1), SearchMode::kHeuristic), std::nullopt);
  const auto timed = [] { return Chosen("timed", SearchMode::kBenchmark); };
  EXPECT_EQ(Subject(path).Ask(1, timed, SearchMode::kBenchmark), "timed");
  EXPECT_EQ(early.Ask(1, [] { return Chosen("not timed"); }), "not timed");
  EXPECT_EQ(Subject(path).AskWithoutSearch(1, SearchMode::kBenchmark), "timed");
}

TEST(DecisionCache, ClearForgetsTheFileToo) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject(path).Ask(1, [] { return Chosen("old"); });
  for (const bool loaded : {false, true}) {
    Subject(path).Ask(1, [] { return Chosen("old"); });
    Subject subject(path);
    if (loaded) {
      EXPECT_EQ(subject.AskWithoutSearch(1), "old");
    }
    const std::uint64_t generation = subject.cache.generation();
    ASSERT_TRUE(subject.cache.Clear().ok());
    EXPECT_GT(subject.cache.generation(), generation);
    EXPECT_TRUE(subject.cache.Entries().empty());
    EXPECT_EQ(subject.AskWithoutSearch(1), "searched");
    EXPECT_TRUE(Subject(path).cache.Entries().empty());
  }
}

TEST(DecisionCache, AddTakesOverAndReplaces) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject(path).Ask(1, [] { return Chosen("old"); });
  Subject subject(path);
  const std::uint64_t generation = subject.cache.generation();
  subject.cache.Add({Stored(1, "new"), Stored(2, "added")});
  EXPECT_GT(subject.cache.generation(), generation);
  Subject later(path);
  for (Subject* each : {&subject, &later}) {
    EXPECT_EQ(each->AskWithoutSearch(1), "new");
    EXPECT_EQ(each->AskWithoutSearch(2), "added");
  }
}

TEST(DecisionCache, AddLeavesWhatWasTimed) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject subject(path);
  subject.cache.Add({Stored(1, "timed", SearchMode::kBenchmark), Stored(2, "not timed")});
  const std::uint64_t generation = subject.cache.generation();
  subject.cache.Add({Stored(1, "later")});
  EXPECT_EQ(subject.cache.generation(), generation);
  EXPECT_EQ(subject.AskWithoutSearch(1, SearchMode::kBenchmark), "timed");
  subject.cache.Add(
      {Stored(1, "timed later", SearchMode::kBenchmark),
       Stored(2, "timed now", SearchMode::kBenchmark)});
  Subject later(path);
  for (Subject* each : {&subject, &later}) {
    EXPECT_EQ(each->AskWithoutSearch(1, SearchMode::kBenchmark), "timed later");
    EXPECT_EQ(each->AskWithoutSearch(2, SearchMode::kBenchmark), "timed now");
  }
}

TEST(DecisionCache, OfAFileThereIsOneInAProcess) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  DecisionCache& cache = DecisionCache::Named(path);
  EXPECT_EQ(cache.path(), path);
  EXPECT_EQ(&DecisionCache::Named(folder.path() + "/./decisions.txt"), &cache);
  EXPECT_NE(&DecisionCache::Named(folder.path() + "/others.txt"), &cache);
  EXPECT_EQ(DecisionCache::Named("off").path(), "");
  EXPECT_EQ(&DecisionCache::Named("off"), &DecisionCache::Named("off"));
  EXPECT_EQ(&DecisionCache::Named(""), &DecisionCache::Named(std::nullopt));
}

TEST(DecisionCache, ThoseOfTwoFilesShareNothing) {
  const ScratchFolder folder;
  DecisionCache& first = DecisionCache::Named(folder.path() + "/first.txt");
  DecisionCache& second = DecisionCache::Named(folder.path() + "/second.txt");
  first.Add({Stored(1, "of the first")});
  EXPECT_EQ(second.Find(KeyOf(1), SearchMode::kHeuristic), std::nullopt);
  second.Add({Stored(1, "of the second")});
  EXPECT_EQ(first.Find(KeyOf(1), SearchMode::kHeuristic)->id, "of the first");
  EXPECT_EQ(Subject(second.path()).AskWithoutSearch(1), "of the second");
  // A thread that has built the plan of one asks whether it is that of the other.
  EXPECT_NE(first.generation(), second.generation());
  first.Forget(KeyOf(1), "of the first");
  second.Forget(KeyOf(1), "of the second");
  EXPECT_NE(first.generation(), second.generation());
}

TEST(DecisionCache, ARelativeNameStaysWhereItWas) {
  const ScratchFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  DecisionCache& cache = DecisionCache::Named("decisions.txt");
  std::filesystem::current_path(before);
  cache.Add({Stored(1, "chosen")});
  EXPECT_EQ(Subject(folder.path() + "/decisions.txt").AskWithoutSearch(1), "chosen");
}

TEST(DecisionCache, AContextNamesItsOwn) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  const Device device = {Backend::kCuda, 0};
  const Context context({.device = device, .cache = path});
  ASSERT_NE(context.decisions(), nullptr);
  EXPECT_EQ(context.decisions()->path(), path);
  EXPECT_EQ(Context({.device = device, .cache = "off"}).decisions()->path(), "");
  EXPECT_EQ(Context({.device = device}).decisions(), &DecisionCache::Named(std::nullopt));
  // On the CPU nothing is chosen, but in a build with oneDNN.
  EXPECT_EQ(Context({.cache = path}).decisions() != nullptr, CpuHasCandidates());
}

TEST(DecisionCache, ThePublicFunctionsAreOfTheCacheThatIsNamed) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  const std::string exported = folder.path() + "/exported.txt";
  DecisionCache::Named(path).Add({Stored(1, "mine")});
  EXPECT_EQ(CacheFile(path), path);
  EXPECT_EQ(CacheFile("off"), "");
  ASSERT_EQ(CachedChoices(path).size(), 1U);
  EXPECT_EQ(CachedChoices(path).front().kernel, "mine");
  ASSERT_TRUE(ExportCache(exported, path).ok());
  ASSERT_TRUE(ClearCache(path).ok());
  EXPECT_TRUE(CachedChoices(path).empty());
  const std::string other = folder.path() + "/other.txt";
  ASSERT_TRUE(ImportCache(exported, other).ok());
  EXPECT_EQ(CachedChoices(other).size(), 1U);
  EXPECT_TRUE(CachedChoices(path).empty());
}

std::vector<std::string> KernelsOf(const std::vector<CachedChoice>& choices) {
  std::vector<std::string> kernels;
  for (const CachedChoice& choice : choices) {
    kernels.push_back(choice.kernel);
  }
  return kernels;
}

/// Where there is no room for all, the last used are those that stay.
TEST(DecisionCache, ExportAndImportKeepTheOrderOfUse) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  const std::string exported = folder.path() + "/exported.txt";
  DecisionCache& cache = DecisionCache::Named(path);
  cache.Add({Stored(1, "first"), Stored(2, "second"), Stored(3, "third"), Stored(4, "fourth")});
  EXPECT_EQ(cache.Find(KeyOf(1), SearchMode::kHeuristic)->id, "first");
  const std::vector<std::string> expected = {"first", "fourth", "third", "second"};
  EXPECT_EQ(KernelsOf(CachedChoices(path)), expected);
  ASSERT_TRUE(ExportCache(exported, path).ok());
  const std::string other = folder.path() + "/other.txt";
  ASSERT_TRUE(ImportCache(exported, other).ok());
  EXPECT_EQ(KernelsOf(CachedChoices(other)), expected);
  // In files as well, which keep what is last.
  for (const std::string& file : {exported, other}) {
    std::vector<std::string> warnings;
    const std::vector<StoredDecision> stored = DecisionFile(file).Read(&warnings);
    ASSERT_EQ(stored.size(), 4U);
    EXPECT_EQ(stored.back().decision.id, "first");
    const DecisionFile short_one(file, ReadFile(file).size() - 1);
    ASSERT_TRUE(short_one.Append(Stored(5, "new")).ok());
    EXPECT_EQ(short_one.Read(&warnings).front().decision.id, "first");
  }
}

/// How often a file of a folder was closed after it had been open for writing.
class Writes {
 public:
  /// Events that are alike become one, but for another between them.
  explicit Writes(const std::string& folder)
      : notifier_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
        watched_(inotify_add_watch(notifier_, folder.c_str(), IN_OPEN | IN_CLOSE_WRITE) >= 0) {}
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;
  Writes(Writes&&) = delete;
  Writes& operator=(Writes&&) = delete;
  ~Writes() { close(notifier_); }

  [[nodiscard]] bool watched() const { return watched_; }
  [[nodiscard]] int Of(const std::string& name) const {
    int writes = 0;
    alignas(inotify_event) std::array<char, 65536> events{};
    for (ssize_t size = 0; (size = read(notifier_, events.data(), events.size())) > 0;) {
      for (ssize_t at = 0; at < size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(&events.at(at));
        writes += (event->mask & IN_CLOSE_WRITE) != 0 && event->name == name ? 1 : 0;
        at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      }
    }
    return writes;
  }

 private:
  int notifier_;
  bool watched_;
};

TEST(DecisionCache, ManyAreWrittenAtOnce) {
  constexpr int kMany = 4000;
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Subject subject(path);
  subject.Ask(0, [] { return Chosen("here before"); });
  std::vector<StoredDecision> many;
  for (int i = 1; i <= kMany; ++i) {
    many.push_back(Stored(i, "kernel"));
  }
  const Writes writes(folder.path());
  subject.cache.Add(many);
  EXPECT_EQ(Subject(path).cache.Entries().size(), kMany + 1U);
  if (!writes.watched()) {
    GTEST_SKIP() << "the system does not tell of writes";
  }
  EXPECT_EQ(writes.Of("decisions.txt"), 1);
  subject.cache.Add({});
  EXPECT_EQ(writes.Of("decisions.txt"), 0);
}

/// What a program sees of a cache in a file, in a process of its own; 0 where it is as it must be.
int UsePublicInterface() {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  const std::string exported = folder.path() + "/exported.txt";
  setenv("GRADSMITH_CACHE", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_TRUE(DecisionFile(path).Append(Stored(1, "first")).ok());
  EXPECT_TRUE(DecisionFile(path).Append(Stored(2, "second")).ok());

  EXPECT_EQ(CacheFile(), path);
  std::vector<CachedChoice> choices = CachedChoices();
  EXPECT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices.at(1).problem, "a problem");
  EXPECT_EQ(choices.at(1).kernel, "first");
  EXPECT_EQ(choices.at(1).mode, SearchMode::kHeuristic);
  EXPECT_EQ(choices.at(1).milliseconds, 0.5);
  EXPECT_EQ(choices.at(1).workspace, 100U);

  EXPECT_TRUE(ExportCache(exported).ok());
  EXPECT_TRUE(ClearCache().ok());
  EXPECT_TRUE(CachedChoices().empty());
  EXPECT_TRUE(ImportCache(exported).ok());
  EXPECT_EQ(CachedChoices().size(), 2U);
  EXPECT_EQ(Subject(path).cache.Entries().size(), 2U);

  WriteFile(exported, ReadFile(exported) + "damaged\n");
  EXPECT_TRUE(ClearCache().ok());
  const Status damaged = ImportCache(exported);
  EXPECT_EQ(damaged.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(damaged.message(), exported + ": 1 damaged line is ignored; nothing is taken over");
  EXPECT_TRUE(CachedChoices().empty());
  // Whoever may write to it: the user has named it.
  EXPECT_EQ(chmod(exported.c_str(), 0666), 0);
  EXPECT_EQ(ImportCache(exported).message(), damaged.message());
  EXPECT_EQ(
      ExportCache(exported).message(),
      "cannot write " + exported + ": others may write to it: its mode is 0666");
  const Status missing = ImportCache(exported + "x");
  EXPECT_EQ(missing.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(missing.message(), "cannot read " + exported + "x: No such file or directory");
  EXPECT_FALSE(ExportCache(folder.path()).ok());
  return testing::Test::HasFailure() ? 1 : 0;
}

/// What is meant where none is named and the folder of the cache is another user's, as where `sudo`
/// keeps HOME; in a process of its own.
int UseFolderOfAnother(const char* variable) {
  const ScratchFolder folder;
  for (const char* each : {"GRADSMITH_CACHE", "XDG_CACHE_HOME"}) {
    unsetenv(each);  // NOLINT(concurrency-mt-unsafe)
  }
  setenv(variable, folder.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(chown(folder.path().c_str(), 65534, 65534), 0);
  const Warnings warnings;
  EXPECT_EQ(CacheFile(), "");
  DecisionCache::Named(std::nullopt).Add({Stored(1, "chosen")});
  EXPECT_EQ(CachedChoices().size(), 1U);
  EXPECT_EQ(
      warnings.sentences,
      std::vector<std::string>{
          std::string("choices of kernels are not kept: ") + variable + ", " + folder.path() +
          ", belongs to user 65534, not to user 0; GRADSMITH_CACHE may name another file"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  // A file that is named is another matter.
  const std::string path = folder.path() + "/named.txt";
  DecisionCache::Named(path).Add({Stored(1, "chosen")});
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(warnings.sentences.size(), 1U);
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(Cache, InTheFolderOfAnotherUserNothingIsMade) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only the administrator makes folders of others";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(UseFolderOfAnother("HOME")), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(UseFolderOfAnother("XDG_CACHE_HOME")), testing::ExitedWithCode(0), "");
}

/// Each file has a line that is whole and one that is damaged, of which the first call warns.
std::string DamagedFile(const ScratchFolder& folder, const std::string& name) {
  std::string path = folder.path() + "/" + name;
  EXPECT_TRUE(DecisionFile(path).Append(Stored(1, "whole")).ok());
  WriteFile(path, ReadFile(path) + "damaged");
  return path;
}

TEST(Cache, WhatAWarningHandlerThrowsEndsAtTheCall) {
  const ScratchFolder folder;
  const std::string listed = DamagedFile(folder, "listed");
  const std::string exported = DamagedFile(folder, "exported");
  SetWarningHandler([](const std::string&) { throw std::runtime_error("thrown by the handler"); });
  EXPECT_NO_THROW(EXPECT_TRUE(CachedChoices(listed).empty()));
  EXPECT_NO_THROW(EXPECT_EQ(CachedChoices(listed).size(), 1U));  // said once
  EXPECT_EQ(CacheFile(listed), listed);
  Status status;
  EXPECT_NO_THROW(status = ExportCache(folder.path() + "/out", exported));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "thrown by the handler");
  SetWarningHandler([](const std::string&) { throw 7; });
  EXPECT_NO_THROW(EXPECT_TRUE(CachedChoices(DamagedFile(folder, "number")).empty()));
  SetWarningHandler({});
}

TEST(Cache, AWarningHandlerMayEndItsThread) {
  const ScratchFolder folder;
  const std::string path = DamagedFile(folder, "decisions.txt");
  SetWarningHandler([](const std::string&) { pthread_exit(nullptr); });
  bool is_back = false;
  std::thread([&] {
    static_cast<void>(CachedChoices(path));
    is_back = true;
  }).join();
  SetWarningHandler({});
  EXPECT_FALSE(is_back);
  EXPECT_EQ(CachedChoices(path).size(), 1U);
}

TEST(Cache, IsSeenExportedImportedAndCleared) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has not opened its cache
  EXPECT_EXIT(_exit(UsePublicInterface()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradsmith::internal
