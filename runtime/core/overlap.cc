#include "core/overlap.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace gradsmith::internal {

namespace {

/// Searches for integers x_k in [low_k, high_k] whose sum of coefficient_k * x_k lies in [first,
/// last]. Terms are tried from the largest coefficient down; what the smaller ones can still add
/// prunes the search.
class BoundedSum {
 public:
  void Add(std::int64_t coefficient, std::int64_t low, std::int64_t high) {
    for (int k = 0; k < count_; ++k) {
      if (terms_[k].coefficient == coefficient) {
        terms_[k].low += low;
        terms_[k].high += high;
        return;
      }
    }
    terms_[count_++] = {coefficient, low, high};
  }

  bool Reaches(std::int64_t first, std::int64_t last) {
    std::sort(terms_.begin(), terms_.begin() + count_, [](const Term& a, const Term& b) {
      return a.coefficient > b.coefficient;
    });
    minimum_[count_] = maximum_[count_] = 0;
    for (int k = count_ - 1; k >= 0; --k) {
      minimum_[k] = minimum_[k + 1] + static_cast<Wide>(terms_[k].coefficient) * terms_[k].low;
      maximum_[k] = maximum_[k + 1] + static_cast<Wide>(terms_[k].coefficient) * terms_[k].high;
    }
    steps_ = 0;
    return Search(0, first, last);
  }

 private:
  __extension__ using Wide = __int128;  // sums of offsets of two tensors may pass 63 bits
  struct Term {
    std::int64_t coefficient;
    std::int64_t low;
    std::int64_t high;
  };
  static constexpr int kStepLimit = 10000;
  static constexpr std::size_t kMaxTerms = 2 * std::size_t{kMaxRank};

  static Wide FloorDivide(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

  bool Search(int k, Wide first, Wide last) {
    if (minimum_[k] > last || maximum_[k] < first) {
      return false;
    }
    if (k == count_ || ++steps_ > kStepLimit) {
      return true;
    }
    const Wide coefficient = terms_[k].coefficient;
    const Wide low =
        std::max<Wide>(terms_[k].low, -FloorDivide(-(first - maximum_[k + 1]), coefficient));
    const Wide high =
        std::min<Wide>(terms_[k].high, FloorDivide(last - minimum_[k + 1], coefficient));
    for (Wide x = low; x <= high; ++x) {
      if (Search(k + 1, first - coefficient * x, last - coefficient * x)) {
        return true;
      }
    }
    return false;
  }

  std::array<Term, kMaxTerms> terms_{};
  std::array<Wide, kMaxTerms + 1> minimum_{};
  std::array<Wide, kMaxTerms + 1> maximum_{};
  int count_ = 0;
  int steps_ = 0;
};

/// Whether each stride steps past all that the smaller ones reach, as in every dense layout: then
/// no two elements meet.
bool IsNested(const ConstTensorRef& tensor) {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxRank> axes;  // stride, steps
  int count = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    if (tensor.dims[i] > 1) {
      int at = count++;
      for (; at > 0 && axes[at - 1].first > tensor.strides[i]; --at) {
        axes[at] = axes[at - 1];
      }
      axes[at] = {tensor.strides[i], tensor.dims[i] - 1};
    }
  }
  std::int64_t reached = 0;
  for (int i = 0; i < count; ++i) {
    if (axes[i].first <= reached) {
      return false;
    }
    reached += axes[i].first * axes[i].second;
  }
  return true;
}

/// Whether a tensor is there and has elements. No dim is negative: CheckMemory has seen to that.
bool HasElements(const ConstTensorRef& tensor) {
  return tensor.present &&
         std::find(tensor.dims.begin(), tensor.dims.end(), 0) == tensor.dims.end();
}

}  // namespace

std::int64_t LastOffset(const ConstTensorRef& tensor) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 59;
  std::int64_t last = 0;
  for (int i = 0; i < tensor.rank(); ++i) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(tensor.dims[i] - 1, tensor.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last) || last > kLimit) {
      return -1;
    }
  }
  return last;
}

ByteRange BytesOf(const ConstTensorRef& tensor) {
  if (tensor.data == nullptr || !HasElements(tensor)) {
    return {};
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data);
  return {begin, begin + static_cast<std::uintptr_t>(LastOffset(tensor) + 1) * SizeOf(tensor.type)};
}

bool Overlap(const ConstTensorRef& a, const ConstTensorRef& b) {
  const ByteRange in_a = BytesOf(a);
  const ByteRange in_b = BytesOf(b);
  if (!in_a.Meets(in_b)) {
    return false;
  }
  const auto size_a = static_cast<std::int64_t>(SizeOf(a.type));
  const auto size_b = static_cast<std::int64_t>(SizeOf(b.type));
  // Is there an element of a whose start, less that of an element of b, lies in (-size_a, size_b)?
  // The terms of b are mirrored, so that equal strides of a and b fold into one term.
  BoundedSum difference;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dims[i] > 1 && a.strides[i] > 0) {  // the stride of a single element may be anything
      difference.Add(a.strides[i] * size_a, 0, a.dims[i] - 1);
    }
  }
  for (int i = 0; i < b.rank(); ++i) {
    if (b.dims[i] > 1 && b.strides[i] > 0) {
      difference.Add(b.strides[i] * size_b, 1 - b.dims[i], 0);
    }
  }
  const auto start = static_cast<std::int64_t>(in_a.begin - in_b.begin);
  return difference.Reaches(1 - size_a - start, size_b - 1 - start);
}

bool OverlapsItself(const ConstTensorRef& tensor) {
  if (!HasElements(tensor) || IsNested(tensor)) {
    return false;
  }
  // Two different indices with one offset differ first in some dim i, by 1 or more; the dims before
  // agree.
  for (int i = 0; i < tensor.rank(); ++i) {
    if (tensor.dims[i] == 1) {
      continue;
    }
    if (tensor.strides[i] == 0) {
      return true;
    }
    BoundedSum difference;
    difference.Add(tensor.strides[i], 1, tensor.dims[i] - 1);
    for (int j = i + 1; j < tensor.rank(); ++j) {
      if (tensor.dims[j] > 1 && tensor.strides[j] > 0) {
        difference.Add(tensor.strides[j], 1 - tensor.dims[j], tensor.dims[j] - 1);
      }
    }
    if (difference.Reaches(0, 0)) {
      return true;
    }
  }
  return false;
}

}  // namespace gradsmith::internal
