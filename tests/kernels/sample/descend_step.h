#ifndef GRADSMITH_TESTS_KERNELS_SAMPLE_DESCEND_STEP_H_
#define GRADSMITH_TESTS_KERNELS_SAMPLE_DESCEND_STEP_H_

#include <cstdint>

/// What the kernel of Descend is given. Compiled by it as well: plain C++17.
namespace gradsmith::sample {

/// DescendStep is a step of one parameter. Strides are in elements, those of W, dW, V, new_W and
/// new_V.
struct DescendStep {
  static constexpr int kMaxRank = 8;
  std::int64_t count = 0;
  int rank = 0;
  std::int64_t dims[kMaxRank] = {};
  std::int64_t strides[5][kMaxRank] = {};
  const void* W = nullptr;
  const void* dW = nullptr;
  const float* V = nullptr;
  void* new_W = nullptr;
  /// Null where it is not wanted.
  float* new_V = nullptr;
  /// Null for 1.
  const float* scale = nullptr;
  /// The rate's address on the device; null where it is rate_on_host.
  const float* rate = nullptr;
  float rate_on_host = 0;
  float momentum = 0;
};

inline constexpr int kDescendThreads = 128;

}  // namespace gradsmith::sample

#endif  // GRADSMITH_TESTS_KERNELS_SAMPLE_DESCEND_STEP_H_
