#ifndef GRADSMITH_CONV_LOWERING_H_
#define GRADSMITH_CONV_LOWERING_H_

#include <cstdint>

#include "conv/grid_matrix.h"
#include "conv/patches.h"
#include "conv/problem.h"

namespace gradsmith::conv {

/// LoweredProblem is a Problem as the CPU kernels run it: always kMaxSpatialRank axes. Axes of size
/// 1 come first, whichever the op had and those added to fill up, so that the last one is long.
struct LoweredProblem {
  PerAxis<Axis> axes;
  TensorSteps x;
  TensorSteps w;
  TensorSteps y;
};

LoweredProblem Lower(const Problem& problem);

/// ForwardTaps are what each position of y reads of x.
PerAxis<AxisTaps> ForwardTaps(const LoweredProblem& lowered);

/// SizesOf returns one size of all axes: SizesOf(lowered, &Axis::y).
PerAxis<std::int64_t> SizesOf(const LoweredProblem& lowered, std::int64_t Axis::*size);

bool HasZero(const PerAxis<std::int64_t>& sizes);

/// ImageGrid is the index space of a tensor's images and their positions.
Grid ImageGrid(std::int64_t images, const PerAxis<std::int64_t>& sizes, const TensorSteps& steps);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_LOWERING_H_
