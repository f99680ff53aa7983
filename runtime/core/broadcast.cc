#include "core/broadcast.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/stub.h"

namespace gradsmith::internal {

bool BroadcastsTo(const Dims& dims, const Dims& whole) {
  const int ahead = whole.size() - dims.size();
  for (int dim = 0; dim < dims.size(); ++dim) {
    if (ahead < 0 || (dims[dim] != 1 && dims[dim] != whole[ahead + dim])) {
      return false;
    }
  }
  return true;
}

Dims BroadcastOf(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() < b.size() ? b : a;
  const Dims& shorter = a.size() < b.size() ? a : b;
  Dims dims = longer;
  for (int dim = 0; dim < shorter.size(); ++dim) {
    std::int64_t& size = dims[longer.size() - shorter.size() + dim];
    size = size == 1 ? shorter[dim] : size;
  }
  return dims;
}

namespace {

/// Makes `whole` what it and `dims` broadcast to.
Status JoinDims(Dims& whole, const Dims& dims) {
  const Dims next = BroadcastOf(whole, dims);
  for (int back = 1; back <= std::min(whole.size(), dims.size()); ++back) {
    const std::int64_t known = whole[whole.size() - back];
    const std::int64_t given = dims[dims.size() - back];
    if (known != given && known != 1 && given != 1) {
      return InvalidArgument(
          "dimension " + std::to_string(next.size() - back) + " would be both " +
          std::to_string(known) + " and " + std::to_string(given) +
          "; expected equal dims, or 1, counted from the last");
    }
  }
  whole = next;
  return {};
}

}  // namespace

Result<Dims> BroadcastDims(std::initializer_list<Dims> lists) {
  return BroadcastDimsOfEach(std::span(lists.begin(), lists.size()), 0, 1);
}

Result<Dims>
BroadcastDimsOfEach(std::span<const Dims> symbols, std::size_t first, std::size_t step) {
  Dims whole;
  for (std::size_t i = first; i < symbols.size(); i += step) {
    if (Status status = JoinDims(whole, symbols[i]); !status.ok()) {
      return status;
    }
  }
  return whole;
}

}  // namespace gradsmith::internal
