#ifndef GRADSMITH_CONV_CUDA_TENSOR_CORES_ARGUMENTS_H_
#define GRADSMITH_CONV_CUDA_TENSOR_CORES_ARGUMENTS_H_

#include <cstdint>

#include "cuda/divisor.h"

/// What conv/cuda/tensor_cores.cc passes to the kernels of conv/cuda/kernels/conv_tensor_cores*.cu,
/// by value. All compile this file: plain C++17.
namespace gradsmith::conv::tensor_cores {

constexpr int kSpatialRank = 3;
constexpr int kMostTaps = 128;
constexpr int kMostParts = 16;
/// Elements are copied by so many bytes.
constexpr int kChunkBytes = 16;
/// What a stage holds of a line of an operand.
constexpr int kDepthBytes = 128;

enum class Math : unsigned char {
  kFloat,  ///< as sums of two numbers in TF32
  kTf32,   ///< float, rounded
  kDouble,
  kHalf,  ///< summed in float, as is bf16
  kBfloat16
};

/// Terms of one product.
constexpr int TermsOfProduct(int element_bytes) {
  return element_bytes == 2 ? 16 : 8;
}

/// A block's share of the result, and a warp's of that. All are powers of two, but in
/// kFilterLineTile.
struct Tile {
  int rows;
  int columns;
  int warp_rows;
  int warp_columns;
  /// Blocks that a multiprocessor is to have room for.
  int blocks;
  /// Stages that there is shared memory for.
  int stages;
};

constexpr int ThreadsOf(Tile tile) {
  return (tile.rows / tile.warp_rows) * (tile.columns / tile.warp_columns) * 32;
}

/// The tiles that there are kernels for, by their place here.
constexpr int kTiles = 4;
constexpr Tile kFloatTiles[kTiles] = {
    {128, 128, 64, 64, 2, 3},
    {128, 64, 64, 32, 2, 3},
    {64, 64, 32, 32, 3, 3},
    {128, 32, 32, 32, 3, 3}};
constexpr Tile kDoubleTiles[kTiles] = {
    {128, 128, 64, 32, 1, 3},
    {128, 64, 64, 32, 2, 3},
    {64, 64, 32, 32, 3, 3},
    {128, 32, 32, 32, 3, 3}};
/// One product for each term leaves less time to read operands: tiles are long where the result is.
/// There are many positions, and of the filter many taps' channels.
constexpr Tile kTf32Tiles[kTiles] = {
    {256, 128, 64, 64, 1, 3},
    {256, 64, 64, 64, 2, 2},
    {128, 128, 64, 64, 2, 3},
    {128, 64, 64, 32, 3, 2}};
constexpr Tile kTf32FilterTiles[kTiles] = {
    {128, 256, 64, 64, 1, 3},
    {64, 256, 64, 64, 2, 2},
    {128, 128, 64, 64, 2, 3},
    {64, 128, 32, 64, 3, 2}};
/// A stage has twice as many terms as in TF32, and takes as long.
constexpr Tile kHalfTiles[kTiles] = {
    {256, 128, 64, 64, 1, 3},
    {256, 64, 64, 64, 2, 2},
    {128, 64, 64, 32, 3, 2},
    {256, 32, 64, 32, 2, 2}};

/// Of correlations in half and bf16 by lines: taps along the last axis share a panel of the source,
/// which is copied once for all of them. For each of its rows there are so many in shared memory,
/// to have room for what is beyond the ends of lines.
constexpr int kLineTiles = 3;
constexpr Tile kLineTilesOfHalf[kLineTiles] = {
    {256, 128, 64, 64, 1, 3},
    {256, 64, 64, 64, 2, 3},
    {256, 32, 64, 32, 2, 3}};
constexpr int LineRowsOf(int rows) {
  return rows + rows / 8;
}
/// Panels of the source: one that is multiplied, and the next.
constexpr int kLinePanels = 2;

/// The tile of a place; `of_filter` for its gradient.
constexpr Tile TileAt(Math math, bool of_filter, int place) {
  switch (math) {
    case Math::kFloat:
      return kFloatTiles[place];
    case Math::kTf32:
      return of_filter ? kTf32FilterTiles[place] : kTf32Tiles[place];
    case Math::kHalf:
    case Math::kBfloat16:
      return of_filter ? kTf32FilterTiles[place] : kHalfTiles[place];
    case Math::kDouble:
      break;
  }
  return kDoubleTiles[place];
}

/// An operand's part of a stage: `lines` of the result's rows or columns, by the terms that are
/// summed. Elements that follow each other in memory do so here: terms of one line where `deep`,
/// otherwise lines of one term. The padding spreads a warp's reads over all banks.
constexpr int PaddingOf(bool deep, int element_bytes) {
  if (element_bytes == 2) {
    return kChunkBytes / element_bytes;
  }
  return deep ? 4 : 32 / element_bytes;
}
constexpr int StrideOf(int lines, bool deep, int element_bytes) {
  return (deep ? kDepthBytes / element_bytes : lines) + PaddingOf(deep, element_bytes);
}
constexpr int PanelElements(int lines, bool deep, int element_bytes) {
  return StrideOf(lines, deep, element_bytes) * (deep ? lines : kDepthBytes / element_bytes);
}

/// Where a position meets the source, before any tap: the pixel's first chunk and its place.
struct alignas(16) SourceRow {
  int chunk;
  int at[kSpatialRank];
};

/// The positions that blocks keep: of a correlation those of all rows, of a filter's gradient those
/// of the stages that are copied without waiting for each other, and of as many after these.
constexpr int SourceRowsOf(Tile tile, bool of_filter, int element_bytes) {
  return of_filter ? 2 * (tile.stages - 1) * (kDepthBytes / element_bytes) : tile.rows;
}

constexpr int SharedBytes(Tile tile, bool of_filter, bool columns_deep, int element_bytes) {
  const int stage = PanelElements(tile.rows, !of_filter, element_bytes) +
                    PanelElements(tile.columns, columns_deep, element_bytes);
  return tile.stages * stage * element_bytes +
         SourceRowsOf(tile, of_filter, element_bytes) * static_cast<int>(sizeof(SourceRow));
}

constexpr int LineSharedBytes(Tile tile, bool columns_deep, int element_bytes) {
  const int rows = LineRowsOf(tile.rows);
  return kLinePanels * PanelElements(rows, true, element_bytes) * element_bytes +
         tile.stages * PanelElements(tile.columns, columns_deep, element_bytes) * element_bytes +
         rows * static_cast<int>(sizeof(SourceRow));
}

/// Of the filter's gradient by lines, of three taps along the last axis: so many units of some
/// channels of x at the taps of a line, and rows of x for the positions of a stage.
constexpr int kFilterLineTaps = 3;
constexpr int kFilterLineChannels = 32;
constexpr int kFilterLineUnits = 3;
constexpr int kFilterLineRows = 72;
constexpr Tile kFilterLineTile = {
    64, kFilterLineUnits* kFilterLineTaps* kFilterLineChannels, 32, 48, 1, 4};
constexpr int kFilterLineStride = kFilterLineChannels + PaddingOf(false, 2);
/// Rows that are known ahead, and those in use.
constexpr int kFilterLineRing = 2 * (kFilterLineTile.stages - 1) * kFilterLineRows;

constexpr int FilterLineSharedBytes() {
  const int stage = PanelElements(kFilterLineTile.rows, false, 2) +
                    kFilterLineUnits * kFilterLineRows * kFilterLineStride;
  return kFilterLineTile.stages * stage * 2 + kFilterLineRing * static_cast<int>(sizeof(SourceRow));
}

/// How far from a result's place its source is, and which of the filter's taps joins them.
struct Tap {
  std::int16_t offset[kSpatialRank];
  std::int16_t filter;
};

/// Results that the same taps reach: all of them forward; backward, by steps of two, every other
/// one along an axis.
struct Part {
  int first[kSpatialRank];
  /// Positions along each axis, and of all images together.
  cuda::Divisor sizes[kSpatialRank];
  int rows;
  int first_tap;
  int taps;
};

/// Forward (source x, result y) and backward data (source y, result x). Channels are innermost in
/// all tensors: `*_pitch` of a pixel, `depth` of a group of the source, `columns` of the result.
struct CorrelateArguments {
  int source_sizes[kSpatialRank];
  int source_pitch;
  int depth;
  int result_sizes[kSpatialRank];
  int result_pitch;
  int columns;
  int column_tiles;
  int filter_taps;
  /// How far the source moves from one position of a part to the next.
  int source_step[kSpatialRank];
  int result_step[kSpatialRank];
  Part parts[kMostParts];
  Tap taps[kMostTaps];
  /// By lines: how many taps follow each other along the last axis, the smallest of their offsets,
  /// and how much larger the largest is.
  int line_taps;
  int line_offset;
  int line_span;
};

/// Backward filter. Rows are a group's channels of y, columns its taps and channels of x.
struct FilterArguments {
  int rows;
  int columns;
  int column_tiles;
  int channels;  ///< of x, of a group
  int x_sizes[kSpatialRank];
  int x_pitch;
  int y_pitch;
  cuda::Divisor y_sizes[kSpatialRank];
  int positions;  ///< of y, of all images
  int positions_of_slice;
  int filter_sizes[kSpatialRank];
  int stride[kSpatialRank];
  int pad[kSpatialRank];
  int dilation[kSpatialRank];
  /// Every position of y meets the same position of x, and that one alone.
  bool is_pointwise;
  /// The only slice's sums are the gradient, which they replace or are added to.
  bool is_whole;
  bool accumulate;
};

}  // namespace gradsmith::conv::tensor_cores

#endif  // GRADSMITH_CONV_CUDA_TENSOR_CORES_ARGUMENTS_H_
