#ifndef GRADSMITH_PATTERNS_CUDA_WINDOWS_LAUNCH_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOWS_LAUNCH_H_

#include <cstdint>

#include "cuda/divisor.h"
#include "patterns/windows_task.h"

/// How the kernels of the pattern `windows` are launched. Compiled by them as well: plain C++17.
namespace gradsmith::cuda {

/// Threads of a block of all kernels but those by tiles.
inline constexpr int kWindowsThreads = 256;
/// Elements of a channel, at most, that kernels number in 32 bits where they go through vectors.
inline constexpr std::int64_t kMostWholeElements = std::int64_t{1} << 30;
/// Threads' numbers and strides below this are divided by Divisor.
inline constexpr std::int64_t kMostDivided = std::int64_t{1} << 31;
/// Kernels count along an axis, with its pads, in 32 bits.
inline constexpr std::int64_t kMostWindowPositions = std::int64_t{1} << 30;

/// WindowsLaunch is a task with what kernels divide by. Threads are numbered along memory: by
/// channels first where `channels_first` is true, and else by the last axis.
struct WindowsLaunch {
  internal::WindowsTask task;
  /// How many threads have work.
  std::int64_t count = 0;
  /// The sizes of the dims, but the batch, in the order of threads, and by what they are divided.
  static constexpr int kSizes = 1 + internal::kWindowAxes;
  std::int64_t sizes[kSizes] = {};
  Divisor by_size[kSizes] = {};
  Divisor by_stride[internal::kWindowAxes] = {};
  bool channels_first = false;
  /// Whether threads' numbers take more than 31 bits.
  bool is_wide = false;
};

/// How many loads a thread has on their way at a time where threads go through a whole channel.
inline constexpr int kWholeBatch = 8;
/// How many vectors a thread writes where each channel's share is spread over contiguous memory.
inline constexpr int kSpreadBatch = 4;

/// WholeLaunch is a task of one window for each channel, which holds all of its elements. They lie
/// `step` apart in the input, in their order. So many threads of a block share a channel that the
/// others of its threads have some more: a power of two.
struct WholeLaunch {
  internal::WindowsTask task;
  /// How many channels there are in all samples.
  std::int64_t channels = 0;
  /// How many elements each has.
  std::int64_t size = 0;
  std::int64_t step = 0;
  /// How far apart the elements of a gather's result lie.
  std::int64_t output_step = 0;
  int sharing = 1;
  /// How many elements a thread reduces at a time before it joins what they give to what it has: of
  /// a sum of all in a row little would be left of the last ones.
  std::int64_t run = 1;
  /// Whether neighbouring threads have neighbouring channels, and not neighbours of one.
  bool channels_first = false;
  /// Whether threads go through vectors of a channel's neighbours; and whether each has a vector of
  /// neighbouring channels, as many of which `channels` counts.
  bool has_vectors = false;
  bool has_channel_vectors = false;
  /// A gather may give all elements of a channel one share, and have channels that follow each
  /// other in memory. Then `by_size` divides positions by the channel's size, and `given_step` is
  /// how far apart the channels' gradients lie.
  Divisor by_size = {};
  std::int64_t given_step = 0;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOWS_LAUNCH_H_
