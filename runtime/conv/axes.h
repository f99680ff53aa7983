#ifndef GRADSMITH_CONV_AXES_H_
#define GRADSMITH_CONV_AXES_H_

#include <array>

#include "conv/kernels.h"
#include "conv/problem.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

namespace gradsmith::conv {

/// Axes are a problem's; the first `spatial_rank` count.
using Axes = std::array<Axis, kMaxSpatialRank>;

/// ResolveAxes returns what the attributes make of X's spatial dims D and W's, K, as Conv or
/// ConvTranspose has it: pads that auto_pad or output_shape sets are worked out. The error names
/// the attribute or the axis that does not fit.
Result<Axes> ResolveAxes(const Attributes& attributes, const Dims& D, const Dims& K);
Result<Axes> ResolveAxes(const TransposedAttributes& attributes, const Dims& D, const Dims& K);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_AXES_H_
