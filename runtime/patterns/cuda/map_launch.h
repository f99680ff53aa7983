#ifndef GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_

#include <cstdint>

#include "patterns/map_task.h"

/// How the kernels of the pattern `map` are launched. Compiled by them as well: plain C++17.
namespace gradsmith::cuda {

/// The most threads of a block; how many there are says a policy (cuda/map_policy.h).
inline constexpr int kMostMapThreads = 256;

/// Blocks of the most threads that a multiprocessor can hold at once, at least, of those that sum.
inline constexpr int kSummingBlocks = 3;

/// Terms of a thread that are on their way to shared memory while it computes another.
inline constexpr int kMapSumStages = 4;

/// MapSumLaunch is a pass of sums (cuda/map_sums.cuh), or that in which pieces come together. Along
/// x, blocks have places of their own; along y, pieces of the terms.
struct MapSumLaunch {
  internal::MapSumTask sum;
  /// The output that is summed, if any, as a bit.
  unsigned summed = 0;
  /// Bit t is set where input t has one element for all terms of a place.
  unsigned fixed = 0;
  /// Bit t is set where input t is loaded in vectors for each term, which wait in shared memory;
  /// and how many inputs those are.
  unsigned queued = 0;
  int queue_length = 0;
  /// The places of a row, where sum.places are those of several rows beside each other, so that
  /// vectors may begin in one and end in the next; otherwise zero.
  std::int64_t places_of_row = 0;
  /// Threads that share the terms of a place, a power of two; a block has as many places, or
  /// vectors of them, as it has threads for each sharer.
  int sharers = 1;
  /// The terms are those from first_term on. A block sums `piece` of them, a multiple of a vector
  /// where terms lie in vectors.
  std::int64_t first_term = 0;
  std::int64_t piece = 0;
  int pieces = 1;
  /// The sums of pieces, [pieces][places] of the type in which sums are, from the first_partial-th
  /// on; null where there is one piece, whose sums are the output's.
  std::int64_t first_partial = 0;
  void* partial = nullptr;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_
