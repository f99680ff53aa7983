#ifndef GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_

#include <cstdint>

#include "patterns/map_task.h"

/// How the kernels of the pattern `map` are launched. Compiled by them as well: plain C++17.
namespace gradsmith::cuda {

inline constexpr int kMapThreads = 256;
/// Vectors that a thread has under way.
inline constexpr int kMapBatch = 1;

/// MapSumLaunch is a pass of sums (cuda/map_sums.cuh). Along x, blocks have places of their own;
/// along y, pieces of the terms, whose sums come together in a pass of their own where there are
/// several.
struct MapSumLaunch {
  internal::MapSumTask sum;
  /// Threads that share the terms of a place, a power of two; a block has kMapThreads / sharers
  /// places, or vectors of them.
  int sharers = kMapThreads;
  /// Terms that a block sums, a multiple of a vector where terms lie in vectors.
  std::int64_t piece = 0;
  int pieces = 1;
  /// [pieces][places] of the type in which sums are.
  void* partial = nullptr;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_
