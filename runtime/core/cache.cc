#include "gradsmith/cache.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/decision_cache.h"
#include "core/decision_file.h"
#include "core/exceptions.h"

namespace gradsmith {

using internal::CallOr;
using internal::CatchExceptions;
using internal::DecisionCache;
using internal::DecisionFile;
using internal::StoredDecision;

namespace {

std::vector<CachedChoice> ChoicesOf(DecisionCache& cache) {
  std::vector<CachedChoice> choices;
  for (const StoredDecision& stored : cache.Entries()) {
    choices.push_back(
        {.problem = stored.problem,
         .kernel = stored.decision.id,
         .mode = stored.decision.mode,
         .milliseconds = stored.decision.milliseconds,
         .workspace = stored.decision.workspace,
         .error = stored.decision.error});
  }
  return choices;
}

Status Import(const std::string& path, const std::optional<std::string>& cache) {
  const Result<std::vector<StoredDecision>> decisions = DecisionFile::ReadAnyones(path);
  if (!decisions.ok()) {
    return decisions.status();
  }
  DecisionCache::Named(cache).Add(*decisions);
  return {};
}

}  // namespace

std::vector<CachedChoice> CachedChoices(const std::optional<std::string>& cache) {
  return CallOr([&] { return ChoicesOf(DecisionCache::Named(cache)); }, {});
}

std::string CacheFile(const std::optional<std::string>& cache) {
  return CallOr([&] { return DecisionCache::Named(cache).path(); }, {});
}

Status ClearCache(const std::optional<std::string>& cache) {
  return CatchExceptions([&] { return DecisionCache::Named(cache).Clear(); });
}

Status ExportCache(const std::string& path, const std::optional<std::string>& cache) {
  return CatchExceptions([&] {
    std::vector<StoredDecision> decisions = DecisionCache::Named(cache).Entries();
    std::ranges::reverse(decisions);  // files have the newest last
    return DecisionFile(path).Replace(decisions);
  });
}

Status ImportCache(const std::string& path, const std::optional<std::string>& cache) {
  return CatchExceptions([&] { return Import(path, cache); });
}

}  // namespace gradsmith
