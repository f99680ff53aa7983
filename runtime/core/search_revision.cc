#include "core/search_revision.h"

#include <cstdint>
#include <string_view>

#include "core/problem_key.h"

namespace gradsmith::internal {

namespace {

std::int64_t OfSearch(std::string_view version, int revision) {
  ProblemKey key;
  key.AddText(version);
  key.Add(revision);
  return static_cast<std::int64_t>(key.hash());
}

std::int64_t OfFamily(std::int64_t of_search, int family_revision) {
  ProblemKey key;
  key.Add(of_search);
  key.Add(family_revision);
  return static_cast<std::int64_t>(key.hash());
}

}  // namespace

std::int64_t SearchFingerprint(std::string_view version, int revision, int family_revision) {
  return OfFamily(OfSearch(version, revision), family_revision);
}

std::int64_t SearchFingerprint(int family_revision) {
  // Asked for by every call.
  static const std::int64_t of_search = OfSearch(GRADSMITH_VERSION, kSearchRevision);
  return OfFamily(of_search, family_revision);
}

}  // namespace gradsmith::internal
