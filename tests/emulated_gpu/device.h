#ifndef GRADSMITH_TESTS_EMULATED_GPU_DEVICE_H_
#define GRADSMITH_TESTS_EMULATED_GPU_DEVICE_H_

#include <cstddef>

/// What the emulated GPUs of a process are: like H200s, but for their memory and their cache.
namespace emulated_gpu {

inline constexpr int kDevices = 2;
inline constexpr int kMultiprocessors = 132;
/// Little: whoever times a kernel writes twice as much to empty it.
inline constexpr int kL2Bytes = 1 << 20;
/// Of a multiprocessor.
inline constexpr int kSharedBytes = 228 << 10;
inline constexpr std::size_t kMemoryBytes = std::size_t{16} << 30U;

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_DEVICE_H_
