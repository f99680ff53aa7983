#ifndef GRADSMITH_CONV_CUDA_PLANES_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_PLANES_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/planes.cc passes to the kernels of conv/cuda/kernels/conv_planes.cu, by value.
/// Both compile this file: plain C++17.
namespace gradsmith::conv::planes {

constexpr int kRank = 2;
/// Channels of y that a warp multiplies, and those of a block.
constexpr int kChannels = 16;
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kBlockChannels = kWarps * kChannels;
/// Pixels of y next to each other, of which a warp multiplies so many at a time: four lanes have
/// four of them each.
constexpr int kPixels = 16;
constexpr int kVector = 4;
/// A register's, which shared memory has for each element of x.
constexpr int kWordBytes = 4;
/// Places of a product, for terms of a pixel of y, which are taps of all channels of x.
constexpr int kDepth = 8;

/// The places that kernels have: for a term each, but for two taps next to each other in forward of
/// half and bf16.
constexpr int kPlacesAt[] = {32, 48, 80, 152};
constexpr int kPlacesOfPairsAt[] = {24, 48, 88};
constexpr int kMostPlaces = 152;

/// The bytes in which threads keep what they have read of y.
constexpr int kRingBytes = 16 * 1024;
/// What a block may have on every GPU with tensor cores.
constexpr int kMostSharedBytes = 76 * 1024;
/// What so many blocks, which run at once on a multiprocessor of Hopper, may have each: beside 1
/// KiB for each, of 228.
constexpr int SharedBytesOf(int blocks) {
  const int bytes = 228 * 1024 / blocks - 1024;
  return bytes < kMostSharedBytes ? bytes : kMostSharedBytes;
}
/// Rows and columns of y that a block takes at a time.
constexpr int kMostRows = 8;
constexpr int kMostColumns = 128;

/// Blocks that a multiprocessor has registers for, of kernels with so many places: the filter takes
/// more of them than its gradient.
constexpr int BlocksOfFilter(int places) {
  return places > 80 ? 3 : 4;
}
constexpr int BlocksOfForward(int places) {
  if (places > 88) {
    return 2;
  }
  return places > 48 ? 3 : 4;
}

/// The strides of a tensor, in elements.
struct Pitches {
  std::int64_t image;
  int channel;
  int row;
  int column;
};

/// A convolution along an axis, as conv::Axis; dilations and pads are in the places of terms.
struct Line {
  int x;
  int w;
  int y;
  int step;
};

struct Arguments {
  int x_channels;
  int y_channels;
  /// The convolution along the rows of a plane and along its columns.
  Line lines[kRank];
  Pitches x;
  Pitches y;
  /// Whether four pixels next to each other, from every fourth on, are copied and written as one.
  bool has_x_vectors;
  bool has_y_vectors;
  /// Rows and columns of y that a block takes at a time.
  int rows;
  int columns;
  /// What they meet, of each channel of x, from these on for the first of them.
  int tile_top;
  int tile_left;
  int tile_rows;
  int tile_columns;
  /// How far apart rows are in shared memory: a multiple of four.
  int tile_pitch;
  /// How far an element of half or bf16 is from the other one of its register.
  int to_pair;
  /// Of each place: where its term is in a tile from what the first one meets, in bytes, and the
  /// term that is there; -1 for none.
  int offsets[kMostPlaces];
  std::int16_t terms[kMostPlaces];
  /// The works: so many bands of rows of each of so many strips of columns of each image.
  cuda::Divisor bands;
  cuda::Divisor strips;
  int works;
};

}  // namespace gradsmith::conv::planes

#endif  // GRADSMITH_CONV_CUDA_PLANES_ARGUMENTS_H_
