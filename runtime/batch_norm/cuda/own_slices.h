#ifndef GRADSMITH_BATCH_NORM_CUDA_OWN_SLICES_H_
#define GRADSMITH_BATCH_NORM_CUDA_OWN_SLICES_H_

#include <cstdint>

#include "batch_norm/cuda/policy.h"
#include "gradsmith/types.h"

/// Into how many slices a policy cuts the samples of a channel, and how wide tiles of columns are.
/// These are numbers alone: of the tensors that own_plan.h goes through nothing else counts.
namespace gradsmith::batch_norm::own {

/// PerVector returns how many elements a vector has.
std::int64_t PerVector(DataType type);

/// RowSlices returns the slices of each channel where threads lie along its samples.
std::int64_t RowSlices(const Order& order, std::int64_t channels, std::int64_t samples);

/// ColumnWidth returns the width of tiles in vectors: they are as even as they can be.
int ColumnWidth(const ColumnOrder& order, std::int64_t vectors);

/// NarrowWidth returns the width of narrow tiles none of which need be cut; 0 where there are none,
/// or where wide ones are many.
int NarrowWidth(const ColumnOrder& order, std::int64_t vectors, std::int64_t steps);

/// ColumnSlices returns the slices of so many tiles of a width, each of so many steps.
std::int64_t ColumnSlices(const Order& order, std::int64_t tiles, std::int64_t steps, int width);

/// MostPartials is a bound on the partial sums of one kind, whatever the strides.
std::int64_t
MostPartials(const Policy& policy, std::int64_t channels, std::int64_t samples, DataType type);

}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_OWN_SLICES_H_
