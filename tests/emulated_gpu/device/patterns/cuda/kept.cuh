#ifndef GRADSMITH_PATTERNS_CUDA_KEPT_CUH_
#define GRADSMITH_PATTERNS_CUDA_KEPT_CUH_

#include <cstdint>

namespace gradsmith::cuda {

inline std::int64_t Kept(std::int64_t number) {
  return number;
}
inline unsigned Kept(unsigned number) {
  return number;
}
inline int Kept(int number) {
  return number;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_KEPT_CUH_
