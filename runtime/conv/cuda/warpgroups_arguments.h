#ifndef GRADSMITH_CONV_CUDA_WARPGROUPS_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_WARPGROUPS_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/warpgroups.cc passes to the kernels of
/// conv/cuda/kernels/conv_warpgroups_filter.cu, by value. All compile this file: plain C++17.
namespace gradsmith::conv::warpgroups {

constexpr int kWarpgroup = 128;
/// Terms of a product, which are pixels of y next to each other.
constexpr int kDepth = 8;
/// Pixels of a tile, in rows of the same length.
constexpr int kPixels = 32;
/// Products of a tile.
constexpr int kProducts = kPixels / kDepth;
/// The pixels by fours: those that a row of an image of y has at least.
constexpr int kQuads = kPixels / 4;
/// Channels of x in a tile: rows of a product.
constexpr int kXChannels = 64;
/// Tiles of y that a block keeps: earlier ones meet what later ones of x are reached by.
constexpr int kRing = 8;
/// Tiles that are on their way, in use, and may still be read by products under way.
constexpr int kAhead = 2;
constexpr int kMostEarlier = kRing - kAhead - 2;
/// Tiles of x: those on their way, and the one in use.
constexpr int kXTiles = kAhead + 1;
/// Pixels of x that a tile has at most.
constexpr int kMostXPixels = 56;
/// Floats of a pixel of x, some of them empty: lanes read four pixels from different banks.
constexpr int kXPitch = kXChannels + 8;
constexpr int kXPixelBytes = kXPitch * 4;
/// Channels are copied by fours.
constexpr int kVector = 4;
/// Groups that the taps along an axis are cut into at most.
constexpr int kMostGroups = 8;

/// KernelConfig is a block's share of the filter: so many taps down and right, and channels of y.
/// Each warpgroup has the taps of one column.
struct KernelConfig {
  int rows;
  int columns;
  int y_channels;
};

constexpr int kConfigs = 2;
constexpr KernelConfig kConfigAt[kConfigs] = {{3, 3, 64}, {2, 2, 128}};

constexpr int TapsOf(KernelConfig config) {
  return config.rows * config.columns;
}

constexpr int ConsumersOf(KernelConfig config) {
  return config.columns * kWarpgroup;
}

/// One warpgroup copies for the others.
constexpr int ThreadsOf(KernelConfig config) {
  return ConsumersOf(config) + kWarpgroup;
}

/// Registers of a thread, of 65,536 in all: a launch gives all threads the same, and those that
/// copy leave some to the others.
constexpr int ConsumerRegistersOf(KernelConfig config) {
  return config.columns == 3 ? 152 : 192;
}
constexpr int CopierRegistersOf(KernelConfig config) {
  return config.columns == 3 ? 56 : 120;
}

constexpr int TileBytesOfY(KernelConfig config) {
  return config.y_channels * kPixels * 4;
}
/// The bytes of the pixels of a product, of which a tile of y is made.
constexpr int SlabBytesOf(KernelConfig config) {
  return config.y_channels * kDepth * 4;
}
constexpr int kTileBytesOfX = kMostXPixels * kXPixelBytes;
/// Tiles of y are copied as they lie in memory first: one that arrives, and one that is turned.
constexpr int kRawTiles = 2;

/// Sums of a block in shared memory: for each channel of y so many floats, 4 of them empty, by
/// which a warp's lanes write to different banks.
constexpr int PitchOfSums(KernelConfig config) {
  return TapsOf(config) * kXChannels + 4;
}
constexpr int SumsBytes(KernelConfig config) {
  return config.y_channels * PitchOfSums(config) * 4;
}
/// The copying warps' sums of channels of y.
constexpr int ChannelSumsBytes(KernelConfig config) {
  return kWarpgroup / 32 * config.y_channels * 4;
}

/// Products read tiles of y from multiples of this.
constexpr int kTileAlignment = 1024;

constexpr int SharedBytes(KernelConfig config) {
  const int tiles = (kRing + kRawTiles) * TileBytesOfY(config) + kXTiles * kTileBytesOfX;
  const int sums = SumsBytes(config) + ChannelSumsBytes(config);
  return kTileAlignment + (tiles > sums ? tiles : sums);
}

/// Taps along an axis that meet the same positions of x, every `step`-th one from `phase` on: the
/// first of them is `first`, each next one `next` taps on, and that of place i meets position o + q
/// + i * spacing of these with position o of y.
struct Taps {
  int first;
  int next;
  int count;
  int phase;
  int q;
};

/// The strides of a tensor whose channels come last, in elements.
struct Pitches {
  std::int64_t image;
  int row;
  int column;
};

struct Arguments {
  int x_channels;
  int y_channels;
  int x_tiles;
  int batch;
  int x_height;
  int x_width;
  int y_height;
  int y_width;
  Pitches x;
  Pitches y;
  int filter_height;
  int filter_width;
  int step_down;
  int step_right;
  int spacing_down;
  int spacing_right;
  /// The slabs from a row of y to that which the next tap down meets at the same row of x.
  int slabs_of_spacing;
  int row_groups;
  int column_groups;
  Taps rows[kMostGroups];
  Taps columns[kMostGroups];
  /// Rows of a tile, their pixels, those of an image in one, and the images.
  int tile_rows;
  int tile_width;
  int image_width;
  int images;
  /// Pixels of x beyond those of y in an image's row of a tile, and all pixels of a tile of x.
  int margin;
  int x_pixels;
  /// The byte in a tile of x at which the first tap meets the first of each four pixels.
  int quad_of_x[kQuads];
  /// The place of each product's first pixel in a tile.
  int row_of_product[kProducts];
  int column_of_product[kProducts];
  /// The works: a strip of a row's width in some images.
  cuda::Divisor strips;
  int works;
  int slices;
};

}  // namespace gradsmith::conv::warpgroups

#endif  // GRADSMITH_CONV_CUDA_WARPGROUPS_ARGUMENTS_H_
