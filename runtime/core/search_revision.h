#ifndef GRADSMITH_CORE_SEARCH_REVISION_H_
#define GRADSMITH_CORE_SEARCH_REVISION_H_

#include <cstdint>
#include <string_view>

/// What tells choices of this Gradsmith from those of others.
namespace gradsmith::internal {

/// kSearchRevision is raised by whoever changes what a remembered choice relies on, within a
/// version: which candidates there are (our own kernels, detours, engines that are left out), what
/// the name of one means, how candidates are compared before they are trusted, and how they are
/// timed. Choices of another revision are not used.
inline constexpr int kSearchRevision = 14;

/// SearchFingerprint is a number made of a version of Gradsmith and a revision of its search; by
/// default of this one's. It is a part of every key by which a choice is remembered.
std::int64_t SearchFingerprint();
std::int64_t SearchFingerprint(std::string_view version, int revision);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_SEARCH_REVISION_H_
