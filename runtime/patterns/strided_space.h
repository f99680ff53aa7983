#ifndef GRADSMITH_PATTERNS_STRIDED_SPACE_H_
#define GRADSMITH_PATTERNS_STRIDED_SPACE_H_

#include <algorithm>
#include <array>
#include <cstdint>

namespace gradsmith::internal {

/// StridedSpace is an index space that several tensors share, with each one's strides along its
/// dims: zero where the tensor is broadcast or absent.
template <int kTensors, int kRank>
class StridedSpace {
 public:
  struct Dim {
    std::int64_t size = 1;
    std::array<std::int64_t, kTensors> strides{};
  };

  /// Adds a dim behind the others. One of a single element adds nothing.
  void Add(const Dim& dim) {
    if (dim.size != 1) {
      dims_[count_++] = dim;
    }
  }

  /// Writes the dims in the order in which the tensor `lead` lies in memory. Neighbours that one
  /// stride serves in all tensors become one. Returns how many dims are left.
  int WriteTo(int lead, std::int64_t (&sizes)[kRank], std::int64_t (&strides)[kTensors][kRank]) {
    std::stable_sort(dims_.begin(), dims_.begin() + count_, [lead](const Dim& a, const Dim& b) {
      return Magnitude(a.strides[lead]) > Magnitude(b.strides[lead]);
    });
    int rank = 0;
    for (int dim = 0; dim < count_; ++dim) {
      if (rank > 0 && AreOne(dims_[rank - 1], dims_[dim])) {
        dims_[rank - 1].size *= dims_[dim].size;
        dims_[rank - 1].strides = dims_[dim].strides;
      } else {
        dims_[rank++] = dims_[dim];
      }
    }
    for (int dim = 0; dim < rank; ++dim) {
      sizes[dim] = dims_[dim].size;
      for (int t = 0; t < kTensors; ++t) {
        strides[t][dim] = dims_[dim].strides[t];
      }
    }
    return rank;
  }

 private:
  static std::uint64_t Magnitude(std::int64_t stride) {
    const auto bits = static_cast<std::uint64_t>(stride);
    return stride < 0 ? 0 - bits : bits;
  }

  /// Other sizes and strides of a space without elements may be any: products may overflow.
  static bool AreOne(const Dim& outer, const Dim& inner) {
    if (std::int64_t size = 0; __builtin_mul_overflow(outer.size, inner.size, &size)) {
      return false;
    }
    for (int t = 0; t < kTensors; ++t) {
      std::int64_t step = 0;
      if (__builtin_mul_overflow(inner.strides[t], inner.size, &step) || outer.strides[t] != step) {
        return false;
      }
    }
    return true;
  }

  std::array<Dim, kRank> dims_;
  int count_ = 0;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_STRIDED_SPACE_H_
