#include "patterns/named_dims.h"

#include <algorithm>
#include <cstddef>

#include "core/arguments.h"
#include "core/stub.h"

namespace gradsmith::internal {

namespace {

bool Has(unsigned names, int name) {
  return (names >> static_cast<unsigned>(name) & 1U) != 0;
}

/// Cuts a dim in two: places that are neighbours along it are so along the second.
void Split(TensorRef& tensor, const SplitDim& split) {
  const int rank = tensor.dims.size();
  const int at = split.dim < 0 ? split.dim + rank : split.dim;
  const std::int64_t second = tensor.dims[at] / split.first;
  Dims dims;
  Strides strides;
  for (int dim = 0; dim < rank; ++dim) {
    if (dim == at) {
      dims.push_back(split.first);
      strides.push_back(tensor.strides[dim] * second);
    }
    dims.push_back(dim == at ? second : tensor.dims[dim]);
    strides.push_back(tensor.strides[dim]);
  }
  tensor.dims = dims;
  tensor.strides = strides;
}

}  // namespace

SplitArguments::SplitArguments(
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs,
    std::span<const SplitDim> splits)
    : inputs_(inputs.begin(), inputs.end()), outputs_(outputs.begin(), outputs.end()) {
  for (const SplitDim& split : splits) {
    const auto argument = static_cast<std::size_t>(split.argument);
    if (split.is_output && ArgumentAt(outputs, argument) != nullptr) {
      Split(outputs_[argument], split);
    } else if (!split.is_output && ArgumentAt(inputs, argument) != nullptr) {
      TensorRef tensor = Unconst(inputs_[argument]);
      Split(tensor, split);
      inputs_[argument] = tensor;
    }
  }
}

NamedDims::NamedDims(const Dims& dims, std::span<const std::int64_t> lengths) : dims_(dims) {
  std::int64_t rest = dims.size();
  for (const std::int64_t length : lengths) {
    rest -= length == kRest ? 0 : length;
  }
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    lengths_.push_back(length == kRest ? rest : length);
    begins_.push_back(begin);
    begin += lengths_[lengths_.size() - 1];
  }
}

RowsAxes NamedDims::Axes(unsigned names, unsigned whole) const {
  RowsAxes axes;
  int begin = 0;
  for (int name = 0; name < this->names(); ++name) {
    const int length = Has(whole, name) ? static_cast<int>(lengths_[name]) : 0;
    if (Has(names, name)) {
      axes.dims |= AxesFrom(begin, begin + length).dims;
    }
    begin += length;
  }
  return axes;
}

Dims NamedDims::DimsOf(const IntList& names) const {
  Dims dims;
  for (const std::int64_t name : names) {
    for (std::int64_t i = 0; i < lengths_[static_cast<int>(name)]; ++i) {
      dims.push_back(dims_[static_cast<int>(begins_[static_cast<int>(name)] + i)]);
    }
  }
  return dims;
}

std::int64_t NamedDims::Count(unsigned names) const {
  std::int64_t count = 1;
  for (int name = 0; name < this->names(); ++name) {
    for (std::int64_t i = 0; Has(names, name) && i < lengths_[name]; ++i) {
      count *= dims_[static_cast<int>(begins_[name] + i)];
    }
  }
  return count;
}

TensorRef NamedDims::Spread(const TensorRef& tensor, const IntList& own_names, unsigned names)
    const {
  if (!tensor.present) {
    return tensor;
  }
  // Where in the tensor the dims of each name begin, if it has the name.
  IntList own_begins = IntList::Filled(this->names(), kUnnamed);
  std::int64_t begin = 0;
  for (const std::int64_t name : own_names) {
    if (name == kUnnamed) {
      begin += 1;
      continue;
    }
    own_begins[static_cast<int>(name)] = begin;
    begin += lengths_[static_cast<int>(name)];
  }
  TensorRef spread = tensor;
  spread.dims = {};
  spread.strides = {};
  for (int name = 0; name < this->names(); ++name) {
    for (std::int64_t i = 0; Has(names, name) && i < lengths_[name]; ++i) {
      const bool is_own = own_begins[name] != kUnnamed;
      spread.dims.push_back(dims_[static_cast<int>(begins_[name] + i)]);
      spread.strides.push_back(is_own ? tensor.strides[static_cast<int>(own_begins[name] + i)] : 0);
    }
  }
  return spread;
}

}  // namespace gradsmith::internal
