#ifndef GRADSMITH_CORE_BROADCAST_H_
#define GRADSMITH_CORE_BROADCAST_H_

#include <initializer_list>

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

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_BROADCAST_H_
