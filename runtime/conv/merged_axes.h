#ifndef GRADSMITH_CONV_MERGED_AXES_H_
#define GRADSMITH_CONV_MERGED_AXES_H_

#include "conv/problem.h"

namespace gradsmith::conv {

/// WithMergedAxes returns a convolution of volumes as the same one of images, for which there are
/// more kernels, where a filter does nothing along an axis (one tap, by single steps, without
/// padding) and the strides allow it: two such axes beside each other become one, and images along
/// a first such axis are as good as more images of the batch. Every other problem is returned as it
/// is. Elements lie where they did, also in the filter.
Problem WithMergedAxes(const Problem& problem);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_MERGED_AXES_H_
