#ifndef GRADSMITH_CONV_CUDA_GROUPED_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_GROUPED_ARGUMENTS_H_

/// What conv/cuda/grouped.cc passes to the kernels of conv/cuda/kernels/conv_grouped.cu, by value.
/// Both compile this file: plain C++17.
namespace gradsmith::conv::grouped {

constexpr int kElementBytes = 2;
constexpr int kChunkBytes = 16;
constexpr int kVector = kChunkBytes / kElementBytes;
/// The taps of a filter along each axis.
constexpr int kTaps = 3;
/// Each warp of a block has a slice of its channels, of whole groups.
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kSlice = 16;
constexpr int kChannels = kWarps * kSlice;
constexpr int kPixelBytes = kChannels * kElementBytes;
/// A block goes down a strip of an image by bands of rows, eight columns at a time.
constexpr int kBand = 2;
constexpr int kColumns = 8;
/// The most eights of columns that a strip has.
constexpr int kMostEights = 7;
/// The bands in shared memory: those that are multiplied, and the one that is copied meanwhile.
constexpr int kBandsOfY = 3;
constexpr int kBandsOfX = 2;

/// Blocks that a multiprocessor has room for.
constexpr int BlocksOfGroups(bool is_narrow) {
  return is_narrow ? 3 : 2;
}

/// Rows of dY have what the filter reaches on both sides as well.
constexpr int RowBytesOfY(int eights) {
  return (eights * kColumns + kTaps - 1) * kPixelBytes;
}
constexpr int RowBytesOfX(int eights) {
  return eights * kColumns * kPixelBytes;
}

constexpr int SharedBytes(int eights) {
  return kBand * (kBandsOfY * RowBytesOfY(eights) + kBandsOfX * RowBytesOfX(eights));
}

struct Arguments {
  int height;
  int width;
  int channels;
  int group_channels;
  /// The strips of an image, and the eights of columns in each strip.
  int strips;
  int eights;
  /// The bands of each strip, and those of all strips of all images.
  int bands;
  int all_bands;
  /// The bytes of a row of dY and of x in shared memory.
  int row_bytes_of_y;
  int row_bytes_of_x;
};

}  // namespace gradsmith::conv::grouped

#endif  // GRADSMITH_CONV_CUDA_GROUPED_ARGUMENTS_H_
