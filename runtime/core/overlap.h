#ifndef GRADSMITH_CORE_OVERLAP_H_
#define GRADSMITH_CORE_OVERLAP_H_

#include <cstdint>

#include "gradsmith/tensor.h"

/// Where tensors lie in memory. All but LastOffset takes what CheckMemory (tensor_memory.h) lets
/// pass.
namespace gradsmith::internal {

/// LastOffset returns the offset of a tensor's last element from its first, in elements, or -1
/// where the offset in bytes does not fit 62 bits. The tensor has elements, and no negative stride.
std::int64_t LastOffset(const ConstTensorRef& tensor);

/// ByteRange is the memory from a tensor's first byte to its last, gaps among them.
struct ByteRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;

  /// Whether two ranges share a byte.
  [[nodiscard]] bool Meets(const ByteRange& other) const {
    return begin < other.end && other.begin < end;
  }
};

/// BytesOf returns a tensor's memory; nothing where it is absent, has no elements or no data.
ByteRange BytesOf(const ConstTensorRef& tensor);

/// Overlap is true where the two tensors share a byte. Interleaved views that share none, such as
/// two slices of one channels-last buffer, do not overlap. Exact but for views so contrived that
/// the search would take more than some thousand steps: those count as overlapping.
bool Overlap(const ConstTensorRef& a, const ConstTensorRef& b);

/// OverlapsItself is true where two indices of the tensor name one element; exact as Overlap is.
bool OverlapsItself(const ConstTensorRef& tensor);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_OVERLAP_H_
