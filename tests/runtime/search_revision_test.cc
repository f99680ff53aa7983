// Compiled alone: it has definitions of its own.
#include "core/search_revision.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace gradsmith::internal {
namespace {

TEST(SearchFingerprint, TellsVersionsAndRevisionsApart) {
  const std::set<std::int64_t> fingerprints = {
      SearchFingerprint("0.1.0", 1, 1),  SearchFingerprint("0.1.0", 2, 1),
      SearchFingerprint("0.1.0", 1, 2),  SearchFingerprint("0.1.1", 1, 1),
      SearchFingerprint("0.1.01", 1, 1), SearchFingerprint("0.1.1", 2, 1)};
  EXPECT_EQ(fingerprints.size(), 6U);
  // It is kept in files: it must not change from one process to the next.
  EXPECT_EQ(SearchFingerprint("0.1.0", 1, 1), SearchFingerprint("0.1.0", 1, 1));
}

TEST(SearchFingerprint, IsOfThisVersionAndRevision) {
  EXPECT_EQ(SearchFingerprint(7), SearchFingerprint(GRADSMITH_VERSION, kSearchRevision, 7));
}

}  // namespace
}  // namespace gradsmith::internal
