#include "core/decision_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/file_place.h"
#include "core/text.h"
#include "core/warning.h"

namespace gradsmith::internal {

namespace {

constexpr std::size_t kCapacity = 8192;

/// A program that runs for another user than the one who started it hears nothing of that one.
std::string Environment(const char* name) {
  const char* value = secure_getenv(name);  // NOLINT(concurrency-mt-unsafe): read once
  return value == nullptr ? "" : value;
}

constexpr const char* kOff = "off";

/// The file that is meant where none is named; without one, there may be a warning that says why.
struct FileOfUser {
  std::string path;
  std::string warning;
};

/// The file below a folder of the environment, unless that is another user's, as where `sudo` keeps
/// HOME: what would be made there would be in that user's way, and what is there is not trusted.
FileOfUser FileBelow(const char* variable, const std::string& folder, const std::string& name) {
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0 || IsTrusted(found)) {
    return {folder + name, ""};
  }
  return {
      kOff, std::string("choices of kernels are not kept: ") + variable + ", " + Printable(folder) +
                ", belongs to user " + std::to_string(found.st_uid) + ", not to user " +
                std::to_string(geteuid()) + "; GRADSMITH_CACHE may name another file"};
}

FileOfUser FindFileOfUser() {
  if (std::string given = Environment("GRADSMITH_CACHE"); !given.empty()) {
    return {std::move(given), ""};
  }
  if (const std::string folder = Environment("XDG_CACHE_HOME"); !folder.empty()) {
    return FileBelow("XDG_CACHE_HOME", folder, "/gradsmith/decisions.txt");
  }
  const std::string home = Environment("HOME");
  return home.empty() ? FileOfUser{kOff, ""}
                      : FileBelow("HOME", home, "/.cache/gradsmith/decisions.txt");
}

/// The file, wherever the process goes.
std::filesystem::path Absolute(const std::string& file) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(file, error);
  return error ? std::filesystem::path(file) : absolute;
}

bool Serves(const Decision& decision, SearchMode mode) {
  return mode != SearchMode::kBenchmark || decision.mode == SearchMode::kBenchmark;
}

}  // namespace

DecisionCache::DecisionCache(std::unique_ptr<DecisionFile> file, std::string warning)
    : file_(std::move(file)), warning_(std::move(warning)), entries_(kCapacity) {}

DecisionCache& DecisionCache::Named(const std::optional<std::string>& file) {
  // Never destroyed: threads may still call while the program ends.
  struct Caches {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<DecisionCache>> by_file;
  };
  static auto& caches = *new Caches();
  static const auto& of_user = *new FileOfUser(FindFileOfUser());
  const bool is_named = file && !file->empty();
  const std::string& name = is_named ? *file : of_user.path;
  const std::string warning = is_named ? "" : of_user.warning;
  const bool is_off = name == kOff;
  const std::filesystem::path path = is_off ? std::filesystem::path(name) : Absolute(name);
  const std::scoped_lock lock(caches.mutex);
  std::unique_ptr<DecisionCache>& cache =
      caches.by_file[path.lexically_normal().string() + warning];
  if (cache == nullptr) {
    cache = std::make_unique<DecisionCache>(
        is_off ? nullptr : std::make_unique<DecisionFile>(path.string()), warning);
  }
  return *cache;
}

std::uint64_t DecisionCache::NextGeneration() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

void DecisionCache::Load() {
  std::vector<std::string> warnings;
  std::call_once(loaded_, [&] {
    if (!warning_.empty()) {
      warnings.push_back(warning_);
    }
    if (file_ == nullptr) {
      return;
    }
    const std::scoped_lock lock(mutex_);
    for (StoredDecision& stored : file_->Read(&warnings)) {
      entries_.Insert(stored.key, {std::move(stored.decision), std::move(stored.problem)});
    }
  });
  for (const std::string& warning : warnings) {
    Warn(warning);
  }
}

DecisionCache::Entry* DecisionCache::FindLocked(const ProblemKey& key, SearchMode mode) {
  Entry* entry = entries_.Find(key);
  return entry != nullptr && Serves(entry->decision, mode) ? entry : nullptr;
}

std::optional<Decision> DecisionCache::Find(const ProblemKey& key, SearchMode mode) {
  Load();
  const std::scoped_lock lock(mutex_);
  const Entry* entry = FindLocked(key, mode);
  return entry == nullptr ? std::nullopt : std::optional(entry->decision);
}

Result<Decision> DecisionCache::FindOrSearch(
    const ProblemKey& key,
    SearchMode mode,
    const std::function<std::string()>& describe,
    const Search& search,
    std::unique_ptr<Plan>* plan) {
  Load();
  {
    std::unique_lock lock(mutex_);
    searched_.wait(lock, [&] { return !searching_.contains(key); });
    if (const Entry* entry = FindLocked(key, mode); entry != nullptr) {
      return entry->decision;
    }
    searching_.insert(key);
  }
  // Whoever waits is let go on whatever happens.
  struct Done {
    DecisionCache* cache;
    const ProblemKey* key;
    Done(DecisionCache* cache, const ProblemKey* key) : cache(cache), key(key) {}
    Done(const Done&) = delete;
    Done& operator=(const Done&) = delete;
    Done(Done&&) = delete;
    Done& operator=(Done&&) = delete;
    ~Done() {
      const std::scoped_lock lock(cache->mutex_);
      cache->searching_.erase(*key);
      cache->searched_.notify_all();
    }
  };
  const Done done(this, &key);
  Result<Selected> selected = search();
  if (!selected.ok()) {
    return selected.status();
  }
  *plan = std::move(selected->plan);
  Add({{key, selected->decision, describe()}});
  return selected->decision;
}

void DecisionCache::Write(const std::function<Status(const DecisionFile& file)>& write) {
  if (file_ == nullptr || cannot_write_) {
    return;
  }
  // Said once: what is wrong with the file now will be wrong with the next choice.
  if (const Status status = write(*file_); !status.ok() && !cannot_write_.exchange(true)) {
    Warn("the choice of a kernel is not remembered: " + status.message());
  }
}

void DecisionCache::Forget(const ProblemKey& key, const std::string& id, bool in_file) {
  StoredDecision forgotten;
  const auto find = [&] {
    Entry* entry = entries_.Find(key);
    return entry != nullptr && entry->decision.id == id ? entry : nullptr;
  };
  {
    const std::scoped_lock lock(mutex_);
    const Entry* entry = find();
    if (entry == nullptr) {
      return;
    }
    forgotten = {key, entry->decision, entry->problem};
  }
  // In the file first: a choice that was timed would stay there over one that another thread makes
  // as soon as it is gone here.
  if (in_file) {
    Write([&](const DecisionFile& file) { return file.Forget(forgotten); });
  }
  const std::scoped_lock lock(mutex_);
  if (find() != nullptr) {
    entries_.Erase(key);
    generation_ = NextGeneration();
  }
}

std::vector<StoredDecision> DecisionCache::Entries() {
  Load();
  const std::scoped_lock lock(mutex_);
  std::vector<StoredDecision> all;
  for (const auto& [key, entry] : entries_.entries()) {
    all.push_back({key, entry.decision, entry.problem});
  }
  return all;
}

void DecisionCache::Add(const std::vector<StoredDecision>& decisions) {
  Load();
  std::vector<StoredDecision> taken;
  {
    const std::scoped_lock lock(mutex_);
    for (const StoredDecision& stored : decisions) {
      const Entry* earlier = entries_.Find(stored.key);
      if (earlier != nullptr && !Replaces(stored.decision, earlier->decision)) {
        continue;
      }
      if (earlier != nullptr) {
        generation_ = NextGeneration();
      }
      entries_.Insert(stored.key, {stored.decision, stored.problem});
      taken.push_back(stored);
    }
  }
  if (!taken.empty()) {
    Write([&](const DecisionFile& file) { return file.AppendAll(taken); });
  }
}

Status DecisionCache::Clear() {
  std::call_once(loaded_, [] {});  // what the file holds is not wanted any more
  const std::scoped_lock lock(mutex_);
  entries_.Clear();
  generation_ = NextGeneration();
  return file_ == nullptr ? Status() : file_->Replace({});
}

}  // namespace gradsmith::internal
