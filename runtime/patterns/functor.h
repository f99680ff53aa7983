#ifndef GRADSMITH_PATTERNS_FUNCTOR_H_
#define GRADSMITH_PATTERNS_FUNCTOR_H_

#include <cstdint>
#include <type_traits>

/// What functors of the kernel patterns are written with. A functor is a plain struct that CPU and
/// CUDA share: kernels compile it as well, in C++17.

#ifdef __CUDACC__
#define GRADSMITH_FUNCTOR __host__ __device__ __forceinline__
#else
#define GRADSMITH_FUNCTOR inline
#endif

namespace gradsmith {

/// kMasksOf is a functor's kMasks, whose bit i is set where input i of a map is a mask: of bool,
/// and read as 1 where it is not zero. A functor without it has no masks.
template <typename Functor, typename = void>
inline constexpr unsigned kMasksOf = 0;
template <typename Functor>
inline constexpr unsigned kMasksOf<Functor, std::void_t<decltype(Functor::kMasks)>> =
    Functor::kMasks;

template <typename Functor>
GRADSMITH_FUNCTOR constexpr bool IsMask(int input) {
  return (kMasksOf<Functor> >> input & 1U) != 0;
}

/// kOptionalOf is a functor's kOptional, whose bit i is set where input i of a map may be absent,
/// and is 0 then.
template <typename Functor, typename = void>
inline constexpr unsigned kOptionalOf = 0;
template <typename Functor>
inline constexpr unsigned kOptionalOf<Functor, std::void_t<decltype(Functor::kOptional)>> =
    Functor::kOptional;

template <typename Functor>
GRADSMITH_FUNCTOR constexpr bool IsOptional(int input) {
  return (kOptionalOf<Functor> >> input & 1U) != 0;
}

/// kBitsOfWord is how many bits a word has of an input of which single bits are read.
inline constexpr std::int64_t kBitsOfWord = 32;

/// kBitsOf is a functor's kBits, whose bit i is set where input i of a map is of bits: words, of
/// which an element has the bit at its place in row-major order, from the least on, read as 1 or
/// 0. One input is so at most, and of a map without sums.
template <typename Functor, typename = void>
inline constexpr unsigned kBitsOf = 0;
template <typename Functor>
inline constexpr unsigned kBitsOf<Functor, std::void_t<decltype(Functor::kBits)>> = Functor::kBits;

template <typename Functor>
GRADSMITH_FUNCTOR constexpr bool IsOfBits(int input) {
  return (kBitsOf<Functor> >> input & 1U) != 0;
}

}  // namespace gradsmith

#endif  // GRADSMITH_PATTERNS_FUNCTOR_H_
