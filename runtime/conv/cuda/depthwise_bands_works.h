#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_WORKS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_WORKS_H_

#include <cstdint>

#include "conv/cuda/depthwise_bands_arguments.h"

/// How blocks of conv/cuda/depthwise_bands.h share a channel, for it alone.
namespace gradsmith::conv::depthwise_bands {

/// What there is to share of a channel.
struct Channel {
  std::int64_t images;
  /// Images that a block may take at a time.
  std::int64_t most_planes;
  std::int64_t strips;   // of a class of a plane's rows
  std::int64_t windows;  // of a row, also where it begins before the first result
  std::int64_t channels;
  /// Rows of a strip: which kernel.
  int rows;
  int element_bytes;
  bool is_filter;
  /// How much the warps of a block sum for the filter's gradient, where there are several.
  int items;
  /// The bytes that a block keeps of its filter where it computes results.
  int band_bytes;
};

/// How a block is launched, of which the arguments have the rest.
struct Launch {
  int threads;
  int stage_bytes;
};

/// SetWorks chooses a work: of those that fit the one by which a channel is likely to take the
/// least time. Sets works and rooms; false where none fits. All else in the arguments is set.
bool SetWorks(const Channel& channel, Arguments* arguments, Launch* launch);

/// What a work leaves of its sums in shared memory when a filter's gradient is complete.
int LeftBytes(const Channel& channel, const Arguments& arguments, int threads);

}  // namespace gradsmith::conv::depthwise_bands

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_WORKS_H_
