#include "cuda/pair_dims.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "cuda/alignment.h"

namespace gradsmith::cuda {

void PairDims::Add(const PairDim& dim) {
  if (dim.size == 1) {
    return;
  }
  int at = size_++;
  for (; at > 0 && std::pair(dims_[at - 1].to, dims_[at - 1].from) < std::pair(dim.to, dim.from);
       --at) {
    dims_[at] = dims_[at - 1];
  }
  dims_[at] = dim;
}

void PairDims::Coalesce() {
  int merged = 0;
  for (int i = 0; i < size_; ++i) {
    const PairDim& dim = dims_[i];
    PairDim* outer = merged == 0 ? nullptr : &dims_[merged - 1];
    if (outer != nullptr && outer->to == dim.to * dim.size && outer->from == dim.from * dim.size) {
      *outer = {outer->size * dim.size, dim.to, dim.from};
    } else {
      dims_[merged++] = dim;
    }
  }
  size_ = merged;
}

void PairDims::Remove(int i) {
  std::copy(dims_.begin() + i + 1, dims_.begin() + size_, dims_.begin() + i);
  --size_;
}

std::int64_t PairDims::Count() const {
  std::int64_t count = 1;
  for (int i = 0; i < size_; ++i) {
    count *= dims_[i].size;
  }
  return count;
}

PairGrid PairDims::Grid() const {
  PairGrid grid;
  grid.count = Count();
  grid.rank = size_;
  for (int i = 0; i < size_; ++i) {
    grid.dims[i] = dims_[i].size;
    grid.to_strides[i] = dims_[i].to;
    grid.from_strides[i] = dims_[i].from;
  }
  return grid;
}

PairDims PairUp(const Dims& dims, const Strides& to, const Strides& from) {
  PairDims pair;
  for (int i = 0; i < dims.size(); ++i) {
    pair.Add({dims[i], to[i], from[i]});
  }
  pair.Coalesce();
  return pair;
}

bool IsDense(const PairDims& dims) {
  return dims.size() == 0 || (dims.size() == 1 && dims[0].to == 1 && dims[0].from == 1);
}

std::size_t Widen(std::size_t size, std::uintptr_t addresses, PairDims* dims) {
  if (dims->size() == 0 || dims->last().to != 1 || dims->last().from != 1) {
    return size;
  }
  // All that must be multiples of the unit, in elements; only their trailing zeros matter.
  std::uint64_t bits = static_cast<std::uint64_t>(dims->last().size) | (addresses / size);
  for (int i = 0; i + 1 < dims->size(); ++i) {
    bits |= static_cast<std::uint64_t>((*dims)[i].to) | static_cast<std::uint64_t>((*dims)[i].from);
  }
  std::int64_t factor = 1;
  while (bits % (2 * static_cast<std::uint64_t>(factor)) == 0 &&
         2 * factor * static_cast<std::int64_t>(size) <= kVectorBytes) {
    factor *= 2;
  }
  dims->last().size /= factor;
  for (int i = 0; i + 1 < dims->size(); ++i) {
    (*dims)[i].to /= factor;
    (*dims)[i].from /= factor;
  }
  return size * static_cast<std::size_t>(factor);
}

bool IsEmpty(const Dims& dims) {
  return std::find(dims.begin(), dims.end(), 0) != dims.end();
}

Status CheckRank(int rank) {
  if (rank > kMaxGridRank) {
    return Unsupported(
        "a kernel over whole tensors got " + std::to_string(rank) +
        " dims; expected no more than " + std::to_string(kMaxGridRank));
  }
  return {};
}

}  // namespace gradsmith::cuda
