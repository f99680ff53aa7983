#ifndef GRADSMITH_PATTERNS_CUDA_WINDOW_AXES_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOW_AXES_H_

#include <cstdint>

#include "patterns/cuda/window_tiles_launch.h"
#include "patterns/windows_task.h"

/// What tiles of gathers and of reductions have in common: how an axis is cut.
namespace gradsmith::cuda {

/// Cut sets how many positions a tile has along an axis.
void Cut(std::int64_t tile, TileAxis* axis);

/// AxisOf returns an axis that is in one tile.
TileAxis AxisOf(const internal::WindowAxis& windows);

/// FillDivisorsOf fills in what kernels divide by, of an axis that is cut.
void FillDivisorsOf(TileAxis* axis);

/// HasAll returns whether there are elements and windows, and few enough in a channel.
bool HasAll(const internal::WindowsTask& windows);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOW_AXES_H_
