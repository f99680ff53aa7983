#ifndef GRADSMITH_PATTERNS_CUDA_WINDOWS_POLICY_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOWS_POLICY_H_

#include <array>
#include <cstdint>

#include "cuda/device.h"
#include "cuda/policy.h"
#include "patterns/cuda/window_tiles_launch.h"
#include "patterns/cuda/windows_launch.h"

namespace gradsmith::cuda {

/// SharingRange is how many threads may share a channel, in powers of two.
struct SharingRange {
  /// Threads of each channel, however few elements it has and however many channels there are.
  int least = 1;
  /// Threads of each channel where there are many channels, as long as each thread has as many
  /// elements or vectors as it loads at a time (kWholeBatch).
  int usual = 1;
  /// Threads of each channel where there are few channels.
  int most = 1;

  friend constexpr bool operator==(const SharingRange&, const SharingRange&) = default;
};

/// WholeOrder is how the threads that share a channel split the sum of all of its elements, on
/// which the order of that sum depends. It is the same for all devices, so that such sums are.
struct WholeOrder {
  /// The threads of a channel whose neighbours are loaded in vectors, or one by one. A warp is
  /// usual, which needs no barriers.
  SharingRange of_vectors = {4, 32, kWindowsThreads};
  SharingRange of_elements = {32, 32, kWindowsThreads};
  /// The threads of a channel where channels are neighbours, loaded one by one or in vectors. At
  /// most as many as leave 32 bytes of neighbouring channels, a sector of memory, in a block.
  SharingRange of_channels = {1, 8, 32};
  SharingRange of_channel_vectors = {1, 8, 128};
  /// Channels are shared by more threads than usual while there are fewer threads than this in
  /// all. What these load at a time, 16 MiB, keeps memory busy.
  std::int64_t enough_threads = std::int64_t{1} << 17;
  /// The fewest elements or vectors that a thread reduces before it joins what they give to what
  /// it has.
  std::int64_t least_run = 1024;
  /// Elements of a channel up to which other kernels are quicker than threads that share it: of a
  /// reduction of single elements, of one that tiles could compute, of a gather of single
  /// elements, and of any where threads load vectors.
  std::int64_t most_unshared = 32;
  std::int64_t most_unshared_of_tiles = 1024;
  std::int64_t most_unshared_of_gather = 64;
  std::int64_t most_unshared_of_vectors = 8;

  friend constexpr bool operator==(const WholeOrder&, const WholeOrder&) = default;
};

/// WindowsPolicy is how tasks of the pattern `windows` are cut. What is quickest depends on the
/// GPU.
struct WindowsPolicy {
  /// The least compute capability that it is for.
  int compute_capability = 0;
  WholeOrder order;
  /// Bytes of shared memory that a tile takes at most, which leave room for several blocks beside
  /// each other; the second number is for tiles of gathers that keep several planes of a volume.
  std::int64_t tile_bytes = 32 << 10;
  std::int64_t volume_bytes = 44 << 10;
  /// Bytes of shared memory that a tile of one row may take instead where the row is too long for
  /// `tile_bytes`. It is kMostTileBytes at most.
  std::int64_t most_tile_bytes = kMostTileBytes;
  /// Blocks that keep the GPU busy. Tiles take several channels, or whole volumes, where as many
  /// are left.
  std::int64_t many_blocks = 1024;
  /// Reductions of volumes are cut into tiles of some planes until there are so many times
  /// `many_blocks`, since so many blocks are done at nearly the same time.
  std::int64_t waves = 4;
  /// The fewest planes of a reduction's tile for each that it has in common with the next tile.
  std::int64_t planes_for_shared = 4;
  /// The fewest planes of a gather's tile, in spans of a window, where volumes are cut.
  std::int64_t spans_of_volume = 2;
  /// The most elements of a window among which one thread of a tile looks for an element.
  std::int64_t most_taps = 64;
  /// The channels of a tile whose channels lie side by side, in vectors of sums.
  std::int64_t channel_vectors = 4;
  /// The most tiles along a row that are tried where channels lie side by side.
  std::int64_t most_cuts = 64;
};

inline constexpr std::array<WindowsPolicy, 1> kWindowsPolicies = {{{}}};

static_assert(HaveOneOrder(kWindowsPolicies), "windows are summed in one order on all devices");

/// WindowsPolicyOf returns the policy of the latest compute capability that a device has.
inline const WindowsPolicy& WindowsPolicyOf(const DeviceInfo& device) {
  return LatestPolicy(kWindowsPolicies, device);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOWS_POLICY_H_
