#ifndef GRADSMITH_CORE_DECISION_CACHE_H_
#define GRADSMITH_CORE_DECISION_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/decision_file.h"
#include "core/lru_map.h"
#include "core/problem_key.h"
#include "core/selection.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// DecisionCache remembers which candidate each problem is computed with: for all threads of the
/// process and, in a file, for later processes. It is bounded. Threads that meet a new problem at
/// once search it once.
class DecisionCache {
 public:
  /// `file` is null where nothing is kept across processes; `warning`, where it is not empty, is
  /// given when the cache is used first.
  explicit DecisionCache(std::unique_ptr<DecisionFile> file, std::string warning = "");

  /// Named is the one cache of the process for a file ("off": for none), or for what is meant where
  /// none is named: the file of the environment variable GRADSMITH_CACHE, otherwise
  /// gradsmith/decisions.txt in the user's cache folder, unless that is another user's. Calls use
  /// that of their context.
  static DecisionCache& Named(const std::optional<std::string>& file);

  using Search = std::function<Result<Selected>()>;

  /// Find returns the decision for a key, where there is one that serves the mode: kBenchmark asks
  /// for one that was timed.
  std::optional<Decision> Find(const ProblemKey& key, SearchMode mode);

  /// FindOrSearch returns the decision for a key and calls `search` where there is none that serves
  /// the mode. Where this thread searched, `*plan` is the chosen candidate's plan.
  Result<Decision> FindOrSearch(
      const ProblemKey& key,
      SearchMode mode,
      const std::function<std::string()>& describe,
      const Search& search,
      std::unique_ptr<Plan>* plan);

  /// Forget drops the decision for a key, where it still is for the candidate `id`: one that cannot
  /// be built any more, and is dropped in the file as well, or one that just now cannot.
  void Forget(const ProblemKey& key, const std::string& id, bool in_file = true);

  /// All decisions, the last used first.
  std::vector<StoredDecision> Entries();
  /// Add takes decisions over, as from another machine's file, the last as the last used; but
  /// none that was not timed for one that was.
  void Add(const std::vector<StoredDecision>& decisions);
  /// Clear drops all decisions, those in the file as well. Plans that threads hold are not used any
  /// more: see generation.
  Status Clear();

  /// Grows whenever decisions are dropped or replaced: plans from before are stale. No two caches
  /// have the same, so that a plan of another cache is stale as well.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

  /// The file's path; empty where there is none.
  [[nodiscard]] std::string path() const { return file_ == nullptr ? "" : file_->path(); }

 private:
  struct Entry {
    Decision decision;
    std::string problem;
  };

  static std::uint64_t NextGeneration();

  /// Reads the file once. Whoever holds the mutex must not call it: warnings are given.
  void Load();
  Entry* FindLocked(const ProblemKey& key, SearchMode mode);
  /// Writes to the file, where there is one, and warns once where that fails.
  void Write(const std::function<Status(const DecisionFile& file)>& write);

  std::unique_ptr<DecisionFile> file_;
  std::string warning_;
  std::once_flag loaded_;
  std::mutex mutex_;
  std::condition_variable searched_;
  LruMap<ProblemKey, Entry, ProblemKeyHash> entries_;
  std::unordered_set<ProblemKey, ProblemKeyHash> searching_;
  std::atomic<std::uint64_t> generation_ = NextGeneration();
  std::atomic<bool> cannot_write_ = false;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_DECISION_CACHE_H_
