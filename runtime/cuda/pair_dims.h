#ifndef GRADSMITH_CUDA_PAIR_DIMS_H_
#define GRADSMITH_CUDA_PAIR_DIMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "cuda/kernels/tensor_ops.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::cuda {

/// PairDim is one dim of an index space with the strides of two tensors.
struct PairDim {
  std::int64_t size;
  std::int64_t to;
  std::int64_t from;
};

/// PairDims is the index space of two tensors, outermost dim first, as few dims as say the same.
class PairDims {
 public:
  /// Add puts a dim where it belongs in the order of `to` in memory.
  void Add(const PairDim& dim);

  /// Coalesce merges the dims that both tensors step through evenly.
  void Coalesce();

  [[nodiscard]] int size() const { return size_; }
  PairDim& operator[](int i) { return dims_[i]; }
  const PairDim& operator[](int i) const { return dims_[i]; }
  [[nodiscard]] const PairDim& last() const { return dims_[size_ - 1]; }
  PairDim& last() { return dims_[size_ - 1]; }

  /// Remove takes a dim out, so that the rest is the index space of one of its indices.
  void Remove(int i);

  /// Count returns how many elements the index space has.
  [[nodiscard]] std::int64_t Count() const;

  /// Grid returns the index space as kernels are given it.
  [[nodiscard]] PairGrid Grid() const;

 private:
  std::array<PairDim, kMaxGridRank> dims_{};
  int size_ = 0;
};

/// PairUp returns the coalesced index space of `to`, with the strides of another tensor beside it.
PairDims PairUp(const Dims& dims, const Strides& to, const Strides& from);

/// IsDense is true where both tensors are one dense run of elements, in the same order.
bool IsDense(const PairDims& dims);

/// Widen makes units of several elements out of elements, up to 16 bytes, where both tensors are
/// dense along the innermost dim and every run begins at a multiple of the unit. Returns a unit's
/// size.
std::size_t Widen(std::size_t size, std::uintptr_t addresses, PairDims* dims);

/// IsEmpty is true of the dims of a tensor without elements.
bool IsEmpty(const Dims& dims);

/// CheckRank refuses tensors of more dims than kernels are given.
Status CheckRank(int rank);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_PAIR_DIMS_H_
