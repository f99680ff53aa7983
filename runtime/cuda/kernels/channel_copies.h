#ifndef GRADSMITH_CUDA_KERNELS_CHANNEL_COPIES_H_
#define GRADSMITH_CUDA_KERNELS_CHANNEL_COPIES_H_

#include <cstdint>

#include "cuda/kernels/tensor_ops.h"

/// What channel_copies.cc passes to its kernels, by value.
namespace gradsmith::cuda {

inline constexpr int kChannelThreads = 256;

/// Channels of a vector where a thread moves positions' channels: 8 bytes or 16.
inline constexpr int kChannelsAtOnce = 4;
/// Positions that a thread moves where it can.
inline constexpr int kPositionsAtOnce = 4;

/// ChannelCopy: dense tensors of `images` times `positions`, with different numbers of channels.
struct ChannelCopy {
  std::int64_t images = 0;
  std::int64_t positions = 0;
  int from_channels = 0;
  int to_channels = 0;
};

/// ChannelRepeats: each element of the tensor of fewer channels has `times` in the other, `step`
/// elements apart; the grid has the offsets of the first.
struct ChannelRepeats {
  PairGrid grid;
  std::int64_t times = 0;
  std::int64_t step = 0;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_KERNELS_CHANNEL_COPIES_H_
