#ifndef GRADSMITH_CORE_BROADCAST_H_
#define GRADSMITH_CORE_BROADCAST_H_

#include <cstddef>
#include <initializer_list>
#include <span>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Broadcasting as ONNX and NumPy have it: dims are aligned at the last one, and a dim of 1, or one
/// that is lacking, takes any size.
namespace gradsmith::internal {

/// BroadcastsTo returns whether `whole` has at least as many dims, and each of `dims` is 1 or that
/// of `whole`.
bool BroadcastsTo(const Dims& dims, const Dims& whole);

/// BroadcastOf returns the dims to which both broadcast, where they do.
Dims BroadcastOf(const Dims& a, const Dims& b);

/// BroadcastDims is the shape rule `broadcast` of schemas: it returns the dims to which all lists
/// broadcast together, or an error that names two dims that do not fit.
Result<Dims> BroadcastDims(std::initializer_list<Dims> lists);

/// BroadcastDimsOfEach is the same of a symbol of each tensor of a list: of `symbols` the one at
/// `first` and each `step` symbols further on.
Result<Dims>
BroadcastDimsOfEach(std::span<const Dims> symbols, std::size_t first, std::size_t step);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_BROADCAST_H_
