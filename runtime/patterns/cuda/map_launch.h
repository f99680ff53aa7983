#ifndef GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_

/// How the kernels of the pattern `map` are launched. Compiled by them as well: plain C++17.
namespace gradsmith::cuda {

inline constexpr int kMapThreads = 256;
/// Vectors that a thread has under way.
inline constexpr int kMapBatch = 1;

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_MAP_LAUNCH_H_
