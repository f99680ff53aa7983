#ifndef GRADSMITH_CORE_SEARCH_REVISION_H_
#define GRADSMITH_CORE_SEARCH_REVISION_H_

#include <cstdint>
#include <string_view>

/// What tells choices of this Gradsmith from those of others.
namespace gradsmith::internal {

/// kSearchRevision is raised by whoever changes what the remembered choices of all families rely
/// on, within a version: how candidates are compared before they are trusted, and how they are
/// timed. What candidates a family has, and what the name of one means, is a matter of the family's
/// own revision. Choices of another revision are not used.
inline constexpr int kSearchRevision = 16;

/// SearchFingerprint is a number made of a version of Gradsmith, a revision of its search (by
/// default this one's) and a family's revision. It is a part of every key by which a choice is
/// remembered.
std::int64_t SearchFingerprint(int family_revision);
std::int64_t SearchFingerprint(std::string_view version, int revision, int family_revision);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SEARCH_REVISION_H_
