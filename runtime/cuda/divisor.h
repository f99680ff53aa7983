#ifndef GRADSMITH_CUDA_DIVISOR_H_
#define GRADSMITH_CUDA_DIVISOR_H_

#include <cstdint>

/// Compiled by kernels as well: plain C++17.
namespace gradsmith::cuda {

/// Divisor is what numbers below 2^31 are divided by in kernels, by a multiplication and a shift.
struct Divisor {
  std::uint32_t divisor;
  std::uint32_t multiplier;
  std::uint32_t shift;
};

/// DivisorOf takes a number from 1 to 2^31.
constexpr Divisor DivisorOf(std::int64_t number) {
  const auto divisor = static_cast<std::uint32_t>(number);
  std::uint32_t shift = 0;
  while ((std::uint64_t{1} << shift) < divisor) {
    ++shift;
  }
  const std::uint64_t excess = (std::uint64_t{1} << shift) - divisor;
  return {divisor, static_cast<std::uint32_t>(((excess << 32U) / divisor) + 1), shift};
}

#ifdef __CUDACC__
__device__ __forceinline__ std::uint32_t Divide(std::uint32_t number, const Divisor& by) {
  return (__umulhi(number, by.multiplier) + number) >> by.shift;
}
#endif

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_DIVISOR_H_
