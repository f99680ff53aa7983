#include "gradsmith/cache.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "core/decision_cache.h"
#include "core/decision_file.h"

namespace gradsmith {

using internal::DecisionCache;
using internal::DecisionFile;
using internal::StoredDecision;

std::vector<CachedChoice> CachedChoices() {
  std::vector<CachedChoice> choices;
  for (const StoredDecision& stored : DecisionCache::OfProcess().Entries()) {
    choices.push_back(
        {.problem = stored.problem,
         .kernel = stored.decision.id,
         .mode = stored.decision.mode,
         .milliseconds = stored.decision.milliseconds,
         .workspace = stored.decision.workspace});
  }
  return choices;
}

std::string CacheFile() {
  return DecisionCache::OfProcess().path();
}

Status ClearCache() {
  return DecisionCache::OfProcess().Clear();
}

Status ExportCache(const std::string& path) {
  return DecisionFile(path).Replace(DecisionCache::OfProcess().Entries());
}

Status ImportCache(const std::string& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    error = error ? error : std::make_error_code(std::errc::no_such_file_or_directory);
    return InvalidArgument("cannot read " + path + ": " + error.message());
  }
  std::vector<std::string> warnings;
  const std::vector<StoredDecision> decisions = DecisionFile(path).Read(&warnings);
  if (!warnings.empty()) {
    return InvalidArgument(warnings.front() + "; nothing is taken over");
  }
  DecisionCache::OfProcess().Add(decisions);
  return {};
}

}  // namespace gradsmith
