#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_ROWS_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_ROWS_CUH_

#include "conv/cuda/depthwise_rows_arguments.h"
#include "conv/cuda/kernels/depthwise_piece.cuh"
#include "conv/cuda/kernels/depthwise_tile.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/indices.cuh"

/// Tiles of tensors whose rows are dense, in registers: how they are read, converted and written.
namespace gradsmith::conv::depthwise_rows {

using cuda::Accumulator;
using cuda::Convert;
using cuda::Divide;
using cuda::IsWithin;
using depthwise::Geometry;
using depthwise::Pack;
using depthwise::Unpack;
using depthwise::WithPiece;

/// Place says where a thread's tile is.
struct Place {
  std::uint32_t plane;
  int strip;
  int run;
};

__device__ __forceinline__ Place PlaceOf(const Arguments& p, std::uint32_t tile) {
  const std::uint32_t line = Divide(tile, p.runs);
  const std::uint32_t plane = Divide(line, p.strips);
  return {
      plane, static_cast<int>(line - plane * p.strips.divisor),
      static_cast<int>(tile - line * p.runs.divisor)};
}

template <int kSide, int kStep, bool kSpreads, int kBytes>
using RowGeometry = Geometry<
    kSide,
    kStep,
    kSpreads,
    TileOf({kSide, kStep, kSpreads}, kBytes).rows,
    TileOf({kSide, kStep, kSpreads}, kBytes).columns>;

/// Part of a row as it is in memory. 16-bit elements remain in pairs, which takes half of the
/// registers.
template <typename T, int kMain, int kBefore, int kAfter>
struct Row {
  static constexpr int kWords = kMain * static_cast<int>(sizeof(T)) / 4;
  unsigned int words[kWords];
  T before[kBefore > 0 ? kBefore : 1];
  T after[kAfter > 0 ? kAfter : 1];
};

template <typename T, int kMain, int kBefore, int kAfter>
__device__ __forceinline__ void Unpack(
    const Row<T, kMain, kBefore, kAfter>& row,
    Accumulator<T>* to) {
#pragma unroll
  for (int i = 0; i < kBefore; ++i) {
    to[i] = Convert<Accumulator<T>>(row.before[i]);
  }
  Unpack(row.words, to + kBefore, T());
#pragma unroll
  for (int i = 0; i < kAfter; ++i) {
    to[kBefore + kMain + i] = Convert<Accumulator<T>>(row.after[i]);
  }
}

/// Reads kMain elements from `line` on by pieces; zeros where there is no column.
template <int kPiece, int kMain, typename T, int kWords>
__device__ __forceinline__ void
LoadPieces(const T* line, bool is_row, int column, int width, unsigned int (&words)[kWords]) {
  constexpr int kBytes = kPiece * static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < kMain / kPiece; ++i) {
    const bool is_inside = is_row && IsWithin(column + i * kPiece, width);
    if constexpr (kBytes == 2) {
      unsigned int bits = 0;
      if (is_inside) {
        bits = *(reinterpret_cast<const unsigned short*>(line) + i);  // NOLINT(google-runtime-int)
      }
      words[i / 2] = i % 2 == 0 ? bits : words[i / 2] | bits << 16;
    } else {
      constexpr int kCount = kBytes / 4;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        words[i * kCount + j] = 0;
      }
      if (is_inside) {
        cuda::LoadAtOnce<kCount>(
            reinterpret_cast<const unsigned int*>(line + i * kPiece), words + i * kCount);
      }
    }
  }
}

/// Memory is what a tile is written to.
enum class Memory { kGlobal, kShared };

template <Memory kMemory, int kPiece, int kMain, typename T, int kWords>
__device__ __forceinline__ void
StorePieces(T* line, int column, int width, const unsigned int (&words)[kWords]) {
  constexpr int kBytes = kPiece * static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < kMain / kPiece; ++i) {
    if (IsWithin(column + i * kPiece, width)) {
      if constexpr (kBytes == 2) {
        *(reinterpret_cast<unsigned short*>(line) + i) =  // NOLINT(google-runtime-int)
            static_cast<unsigned short>(
                words[i / 2] >> (i % 2 * 16));  // NOLINT(google-runtime-int)
      } else {
        constexpr int kCount = kBytes / 4;
        auto* to = reinterpret_cast<unsigned int*>(line + i * kPiece);
        if constexpr (kMemory == Memory::kGlobal) {
          cuda::StoreAtOnce<kCount>(words + i * kCount, to);
        } else {
          using Word = typename cuda::WordOf<kBytes>::Type;
          Word word;
          memcpy(&word, words + i * kCount, sizeof(word));
          *reinterpret_cast<Word*>(to) = word;
        }
      }
    }
  }
}

/// Reads rows of a plane, the main part of the first at (row, column). Zeros are read from outside.
template <int kRows, typename T, int kMain, int kBefore, int kAfter>
__device__ __forceinline__ void LoadRows(
    const Planes& planes,
    const T* plane,
    int row,
    int column,
    Row<T, kMain, kBefore, kAfter> (&rows)[kRows]) {
  const T* line = plane + (row * planes.row_stride + column);
  WithPiece<kMain>(planes.piece, [&](auto piece) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      LoadPieces<decltype(piece)::kValue, kMain>(
          line + i * planes.row_stride, IsWithin(row + i, planes.height), column, planes.width,
          rows[i].words);
    }
  });
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const T* at = line + i * planes.row_stride;
    const bool is_row = IsWithin(row + i, planes.height);
#pragma unroll
    for (int j = 0; j < kBefore; ++j) {
      const int offset = j - kBefore;
      rows[i].before[j] = is_row && IsWithin(column + offset, planes.width) ? at[offset] : T(0.0F);
    }
#pragma unroll
    for (int j = 0; j < kAfter; ++j) {
      const int offset = kMain + j;
      rows[i].after[j] = is_row && IsWithin(column + offset, planes.width) ? at[offset] : T(0.0F);
    }
  }
}

/// Writes, or adds, sums to a row of the result.
template <Memory kMemory, typename T, int kMain>
__device__ __forceinline__ void StoreRow(
    const Planes& planes,
    T* line,
    int column,
    Accumulator<T> (&sums)[kMain],
    bool accumulate) {
  Row<T, kMain, 0, 0> row;
  WithPiece<kMain>(planes.piece, [&](auto piece) {
    constexpr int kPiece = decltype(piece)::kValue;
    if (accumulate) {
      LoadPieces<kPiece, kMain>(line, true, column, planes.width, row.words);
      Accumulator<T> existing[kMain];
      Unpack(row, existing);
#pragma unroll
      for (int i = 0; i < kMain; ++i) {
        sums[i] += existing[i];
      }
    }
    Pack(sums, row.words, T());
    StorePieces<kMemory, kPiece, kMain>(line, column, planes.width, row.words);
  });
}

}  // namespace gradsmith::conv::depthwise_rows

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_ROWS_CUH_
