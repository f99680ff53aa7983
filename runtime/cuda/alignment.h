#ifndef GRADSMITH_CUDA_ALIGNMENT_H_
#define GRADSMITH_CUDA_ALIGNMENT_H_

#include <cstdint>

#include "gradsmith/types.h"

namespace gradsmith::cuda {

/// kVectorBytes is what a thread loads or stores at once where an address is a multiple of it.
inline constexpr int kVectorBytes = 16;

/// ElementsOfVector returns how many elements kVectorBytes hold.
inline int ElementsOfVector(DataType type) {
  return kVectorBytes / static_cast<int>(SizeOf(type));
}

/// AlignmentClass is kVectorBytes where an address is a multiple of it, otherwise an element's
/// size.
inline int AlignmentClass(const void* address, DataType type) {
  return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0
             ? kVectorBytes
             : static_cast<int>(SizeOf(type));
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_ALIGNMENT_H_
