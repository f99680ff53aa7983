#ifndef GRADSMITH_CORE_WINDOW_AXIS_H_
#define GRADSMITH_CORE_WINDOW_AXIS_H_

#include <cstdint>

/// Compiled by kernels as well: plain C++17.
namespace gradsmith::internal {

/// WindowAxis is the windows along one axis of an input. Window o takes `size` positions of the
/// input, `dilation` apart, from position o * stride - pad_begin on; those outside of the input are
/// padding.
struct WindowAxis {
  std::int64_t input = 1;
  /// How many windows there are.
  std::int64_t output = 1;
  std::int64_t size = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_WINDOW_AXIS_H_
