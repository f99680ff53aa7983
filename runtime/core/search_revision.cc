#include "core/search_revision.h"

#include <cstdint>
#include <string_view>

#include "core/problem_key.h"

namespace gradsmith::internal {

std::int64_t SearchFingerprint(std::string_view version, int revision) {
  ProblemKey key;
  key.AddText(version);
  key.Add(revision);
  return static_cast<std::int64_t>(key.hash());
}

std::int64_t SearchFingerprint() {
  // Asked for by every call.
  static const std::int64_t fingerprint = SearchFingerprint(GRADSMITH_VERSION, kSearchRevision);
  return fingerprint;
}

}  // namespace gradsmith::internal
