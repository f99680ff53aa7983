#ifndef GRADSMITH_CONV_CUDA_PLANES_PLACES_H_
#define GRADSMITH_CONV_CUDA_PLANES_PLACES_H_

#include <cstdint>

#include "conv/cuda/planes_arguments.h"
#include "conv/problem.h"

namespace gradsmith::conv::planes {

/// Terms are what each pixel of y sums: taps of all channels of x.
struct Terms {
  bool is_filter = false;
  /// Whether a place is for two taps next to each other.
  bool has_pairs = false;
  std::int64_t channels = 0;
  Axis down;
  Axis right;
  /// How many places the kernel has, which are enough.
  int places = 0;
};

/// PlaceTerms sets which term each place of the kernel has, and where its tap is in a tile, whose
/// shape has been set: so that lanes load from different banks, as far as that goes.
void PlaceTerms(const Terms& terms, Arguments* arguments);

}  // namespace gradsmith::conv::planes

#endif  // GRADSMITH_CONV_CUDA_PLANES_PLACES_H_
