#include "gradsmith/cache.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/decision_cache.h"
#include "core/decision_file.h"

namespace gradsmith {

using internal::DecisionCache;
using internal::DecisionFile;
using internal::StoredDecision;

std::vector<CachedChoice> CachedChoices(const std::optional<std::string>& cache) {
  std::vector<CachedChoice> choices;
  for (const StoredDecision& stored : DecisionCache::Named(cache).Entries()) {
    choices.push_back(
        {.problem = stored.problem,
         .kernel = stored.decision.id,
         .mode = stored.decision.mode,
         .milliseconds = stored.decision.milliseconds,
         .workspace = stored.decision.workspace});
  }
  return choices;
}

std::string CacheFile(const std::optional<std::string>& cache) {
  return DecisionCache::Named(cache).path();
}

Status ClearCache(const std::optional<std::string>& cache) {
  return DecisionCache::Named(cache).Clear();
}

Status ExportCache(const std::string& path, const std::optional<std::string>& cache) {
  std::vector<StoredDecision> decisions = DecisionCache::Named(cache).Entries();
  std::ranges::reverse(decisions);  // files have the newest last
  return DecisionFile(path).Replace(decisions);
}

Status ImportCache(const std::string& path, const std::optional<std::string>& cache) {
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    error = error ? error : std::make_error_code(std::errc::no_such_file_or_directory);
    return InvalidArgument("cannot read " + path + ": " + error.message());
  }
  std::vector<std::string> warnings;
  const std::vector<StoredDecision> decisions = DecisionFile(path).Read(&warnings);
  if (!warnings.empty()) {
    return InvalidArgument(warnings.front() + "; nothing is taken over");
  }
  DecisionCache::Named(cache).Add(decisions);
  return {};
}

}  // namespace gradsmith
