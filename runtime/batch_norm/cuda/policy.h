#ifndef GRADSMITH_BATCH_NORM_CUDA_POLICY_H_
#define GRADSMITH_BATCH_NORM_CUDA_POLICY_H_

#include <array>
#include <cstdint>

#include "batch_norm/cuda/arguments.h"
#include "cuda/device.h"
#include "cuda/policy.h"

/// How our own kernels of batch normalization cut their work, as data. What is compiled into
/// kernels stands in arguments.h.
namespace gradsmith::batch_norm::own {

/// RowOrder is how rows are cut, which lie along the samples of a channel.
struct RowOrder {
  /// Blocks that keep a GPU busy.
  std::int64_t blocks = 1024;
  /// The fewest samples of a slice, unless slices would be longer than a thread's longest sum.
  std::int64_t shortest_slice = 2048;

  friend constexpr bool operator==(const RowOrder&, const RowOrder&) = default;
};

/// ColumnOrder is how columns are cut: into tiles of some columns side by side, and those into
/// slices of the steps. Widths count threads side by side, each with an element or a vector.
struct ColumnOrder {
  /// Blocks that keep a GPU busy. These are all resident at once: no last few leave it half empty.
  std::int64_t blocks = 512;
  /// A tile is as wide as this, or a little less so that tiles are even.
  std::int64_t width = 64;
  /// Parts of rows are at least as wide where channels are first: less makes bad use of memory.
  std::int64_t least_width = 32;
  /// The fewest steps of a thread in a slice.
  std::int64_t shortest_sum = 8;
  /// Where there are `least_tiles` tiles or more, of `short_tile` vectors each at most, no tile is
  /// cut into slices, so that one launch does it all.
  std::int64_t least_tiles = 128;
  std::int64_t short_tile = 8192;
  /// Fewer tiles are narrow ones instead where these are so short that they need not be cut, in
  /// vectors.
  std::int64_t short_narrow_tile = 4096;
  /// Narrow tiles are as wide as leaves at least `narrow_tiles` of them, from `narrow_width` on
  /// down by halves; the narrowest ones may be as few as `fewest_narrow_tiles`.
  int narrow_width = 8;
  int narrowest_width = 2;
  std::int64_t narrow_tiles = 32;
  std::int64_t fewest_narrow_tiles = 8;

  friend constexpr bool operator==(const ColumnOrder&, const ColumnOrder&) = default;
};

/// ShortOrder says where a thread for each channel is quickest.
struct ShortOrder {
  /// The most samples of a channel.
  std::int64_t most_samples = 20;
  /// The most elements of a tensor.
  std::int64_t most_elements = 1 << 19;

  friend constexpr bool operator==(const ShortOrder&, const ShortOrder&) = default;
};

/// HeldOrder is how elements are shared out where blocks hold them in shared memory (held.h).
struct HeldOrder {
  /// The most elements of a tensor. From here on memory is the limit, which whole vectors use
  /// better.
  std::int64_t most_elements = std::int64_t{1} << 24U;
  /// Blocks that keep a GPU busy. Where they are as many, a block takes more channels than a sector
  /// of memory has.
  std::int64_t many_blocks = 128;
  /// With fewer blocks than this, one takes fewer channels.
  std::int64_t few_blocks = 64;
  /// The fewest neighbouring channels of a block, where they lie side by side.
  std::int64_t least_channels = 4;
  /// Elements of a thread where there are `many_blocks`, and where there are fewer.
  std::int64_t elements_of_thread = 4;
  std::int64_t elements_of_thread_of_few = 2;
  /// The fewest threads of a block, a power of two.
  int least_threads = 32;

  friend constexpr bool operator==(const HeldOrder&, const HeldOrder&) = default;
};

/// Order is what the order of sums depends on. It is the same for all devices, so that sums are.
struct Order {
  RowOrder rows;
  ColumnOrder columns;
  /// The most terms of a thread's sum while slices are fewer than `most_slices`: of more it gets
  /// coarse.
  std::int64_t longest_sum = 1024;
  /// The most slices, which are blocks along y: 65535 at most.
  std::int64_t most_slices = 1 << 15;
  ShortOrder of_short;
  HeldOrder held;

  friend constexpr bool operator==(const Order&, const Order&) = default;
};

/// Policy is how tasks are cut. What is quickest depends on the GPU.
struct Policy {
  /// The least compute capability that it is for.
  int compute_capability = 0;
  Order order;
  /// A map whose slices are not interleaved and which has `long_map` steps for each thread of
  /// `map_blocks` blocks is cut into so many blocks: they do not all go through memory in step
  /// then.
  std::int64_t map_blocks = 2048;
  std::int64_t long_map = 32;
};

inline constexpr std::array<Policy, 1> kPolicies = {{{}}};

static_assert(cuda::HaveOneOrder(kPolicies), "sums have one order on all devices");

/// PolicyOf returns the policy of the latest compute capability that a device has.
inline const Policy& PolicyOf(const cuda::DeviceInfo& device) {
  return cuda::LatestPolicy(kPolicies, device);
}

}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_POLICY_H_
