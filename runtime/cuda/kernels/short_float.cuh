#ifndef GRADSMITH_CUDA_KERNELS_SHORT_FLOAT_CUH_
#define GRADSMITH_CUDA_KERNELS_SHORT_FLOAT_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

/// Kernels that serve half and bf16 both: they compute in float, and differ in conversions alone.
namespace gradsmith::cuda {

/// ShortFloat is an element of 16 bits as it lies in memory. Whether it is a half or a bf16 is said
/// by a launch: only what is given its format (WithFormat) knows which number it is.
struct ShortFloat {
  std::uint16_t bits;
};

template <typename T>
inline constexpr bool kIsShortFloat = std::is_same_v<T, ShortFloat>;

/// Calls visit with an element of the type, or in the place of ShortFloat with one of its format.
/// All threads of a launch go the same way.
template <typename T, typename Visit>
__device__ __forceinline__ void WithFormat(bool is_bf16, const Visit& visit) {
  if constexpr (!kIsShortFloat<T>) {
    visit(T{});
  } else if (is_bf16) {
    visit(__nv_bfloat16{});
  } else {
    visit(__half{});
  }
}

/// BitsAs returns an element of a type that has the same bits.
template <typename To, typename From>
__device__ __forceinline__ To BitsAs(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_SHORT_FLOAT_CUH_
