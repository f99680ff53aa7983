#ifndef GRADSMITH_TESTS_EMULATED_GPU_DEVICE_H_
#define GRADSMITH_TESTS_EMULATED_GPU_DEVICE_H_

#include <cstddef>
#include <cstdlib>
#include <string_view>

/// What the emulated GPUs of a process are: like H200s, but for their memory and their cache. Where
/// EMULATED_GPU_MODEL is t4, they have that one's compute capability and shared memory; where it is
/// slice, they are parts of an H200 with few of its multiprocessors.
namespace emulated_gpu {

inline constexpr int kDevices = 2;
/// Little: whoever times a kernel writes twice as much to empty it.
inline constexpr int kL2Bytes = 1 << 20;

/// Model is what kernels are chosen and cut by.
struct Model {
  int major = 9;
  int minor = 0;
  int multiprocessors = 132;
  /// Shared memory of a multiprocessor, and what a block of it may have in launches that say so.
  int shared_bytes = 228 << 10;
  int most_dynamic_shared = 227 << 10;
};

inline const Model& ModelOfThisProcess() {
  static const Model model = [] {
    const char* value = std::getenv("EMULATED_GPU_MODEL");  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = value == nullptr ? "" : value;
    if (name == "t4") {
      return Model{
          .major = 7, .minor = 5, .shared_bytes = 64 << 10, .most_dynamic_shared = 64 << 10};
    }
    return name == "slice" ? Model{.multiprocessors = 16} : Model();
  }();
  return model;
}

inline constexpr std::size_t kMemoryBytes = std::size_t{16} << 30U;

}  // namespace emulated_gpu

#endif  // GRADSMITH_TESTS_EMULATED_GPU_DEVICE_H_
