#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_LINES_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_LINES_CUH_

#include "conv/cuda/depthwise_lines_arguments.h"
#include "conv/cuda/kernels/depthwise_piece.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"

/// Lines of planes in shared memory: how they are copied there, and how a run slides over them.
namespace gradsmith::conv::depthwise_lines {

using cuda::Accumulator;
using cuda::Convert;
using cuda::DivideBy;
using cuda::IsWithin;
using depthwise::WithPiece;

/// A run's length and how far it is from the next one, for sums of type A.
template <typename A, int kVectors>
struct Run {
  static constexpr int kOfVector = cuda::kVectorLength<A>;
  static constexpr int kLength = kVectors * kOfVector;
  static constexpr int kPitch = kLength + kOfVector;

  /// At returns where a position of a line is.
  static __device__ __forceinline__ int At(int position) {
    return position + position / kLength * kOfVector;
  }
};

/// To shared memory; `to` is aligned to kCount elements. Written as assignments, vectors are taken
/// apart.
template <int kCount, typename A>
__device__ __forceinline__ void Put(const A (&from)[kCount], A* to) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(A));
  if constexpr (kBytes == kVectorBytes) {
    float words[4];
    memcpy(words, from, sizeof(words));
    cuda::StoreShared(cuda::SharedAddress(to), words);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      to[i] = from[i];
    }
  }
}

/// A run's sums.
template <int kVectors, typename A>
__device__ __forceinline__ void PutRun(const A (&sums)[Run<A, kVectors>::kLength], A* to) {
  constexpr int kOfVector = Run<A, kVectors>::kOfVector;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    A vector[kOfVector];
#pragma unroll
    for (int j = 0; j < kOfVector; ++j) {
      vector[j] = sums[i * kOfVector + j];
    }
    Put(vector, to + i * kOfVector);
  }
}

/// Which planes a block has: plane i is image i / channels and channel i % channels.
struct Block {
  int image;
  int channel;
  int images;
  int channels;
};

/// Calls with (line of shared memory, row of the tensor, lane) for each row that a thread has a
/// part in. `first` is the row of the tensor that is the first in shared memory.
template <typename T, typename A, typename Call>
__device__ __forceinline__ void ForEachRow(
    const Lines& lines,
    const Block& block,
    T* data,
    int first,
    A* shared,
    const Call& call) {
  const int rows = static_cast<int>(lines.rows.divisor);
  const int all = block.images * block.channels * rows;
  int lane = static_cast<int>(threadIdx.x);
  const int first_row = DivideBy(lines.lanes, &lane);
  const int end = first_row < lines.rows_at_once ? all : 0;
  for (int i = first_row; i < end; i += lines.rows_at_once) {
    int row = i;
    const int plane = DivideBy(lines.rows, &row);
    if (IsWithin(first + row, lines.planes.height)) {
      const int image = block.channels == 1 ? plane : plane / block.channels;
      const int channel = plane - image * block.channels;
      T* line = data + (block.image + image) * lines.planes.batch_stride +
                (block.channel + channel) * lines.planes.channel_stride +
                (first + row) * lines.planes.row_stride;
      call(shared + (plane * lines.plane_pitch + row * lines.row_pitch), line, lane);
    }
  }
}

/// Whether lines are of the tensor's type, so that copies need no registers.
template <typename T, typename A>
inline constexpr bool kAreAlike = sizeof(T) == sizeof(A);

/// Reads and converts pieces of a row, several at a time so that their latencies overlap.
template <typename R, int kPiece, typename T, typename A>
__device__ __forceinline__ void
ConvertPieces(const Lines& lines, const T* line, int column, int lane, A* to) {
  constexpr int kAtOnce = 4;
  const int step = static_cast<int>(lines.lanes.divisor) * kPiece;
  for (int first = lane * kPiece; first < lines.positions; first += kAtOnce * step) {
    T values[kAtOnce][kPiece];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * step;
      if (at < lines.positions && IsWithin(column + at, lines.planes.width)) {
        cuda::LoadAtOnce<kPiece>(line + (column + at), values[i]);
      } else {
#pragma unroll
        for (int j = 0; j < kPiece; ++j) {
          values[i][j] = T(0.0F);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * step;
      if (at < lines.positions) {
        constexpr int kStored = kPiece < R::kOfVector ? kPiece : R::kOfVector;
#pragma unroll
        for (int j = 0; j < kPiece; j += kStored) {
          A converted[kStored];
#pragma unroll
          for (int k = 0; k < kStored; ++k) {
            converted[k] = Convert<A>(values[i][j + k]);
          }
          Put(converted, to + (R::At(at) + j));
        }
      }
    }
  }
}

/// Copies pieces of a row of one phase; zeros where the row has no column.
template <typename R, int kPiece, typename T, typename A>
__device__ __forceinline__ void
CopyPieces(const Lines& lines, const T* line, int column, int lane, A* to) {
  if constexpr (kAreAlike<T, A>) {
    constexpr int kBytes = kPiece * static_cast<int>(sizeof(T));
    const int step = static_cast<int>(lines.lanes.divisor) * kPiece;
#pragma unroll 4
    for (int at = lane * kPiece; at < lines.positions; at += step) {
      cuda::BeginCopyOfLine<kBytes>(
          cuda::SharedAddress(to + R::At(at)), line + (column + at),
          IsWithin(column + at, lines.planes.width));
    }
  } else {
    ConvertPieces<R, kPiece>(lines, line, column, lane, to);
  }
}

/// Copies the phases of a row one element at a time: neighbours in memory go to other lines.
template <typename R, typename T, typename A>
__device__ __forceinline__ void
CopyPhases(const Lines& lines, const T* line, int column, int lane, A* to) {
  const int lanes = static_cast<int>(lines.lanes.divisor);
  const int phases = static_cast<int>(lines.phases.divisor);
#pragma unroll 4
  for (int i = lane; i < lines.positions * phases; i += lanes) {
    int phase = i;
    const int position = DivideBy(lines.phases, &phase);
    const int from = column + position * lines.phase_step + phase;
    const bool exists = IsWithin(from, lines.planes.width);
    A* at = to + (phase * lines.phase_pitch + R::At(position));
    if constexpr (kAreAlike<T, A>) {
      cuda::BeginCopyOfLine<static_cast<int>(sizeof(T))>(
          cuda::SharedAddress(at), line + from, exists);
    } else {
      *at = exists ? Convert<A>(line[from]) : A(0);
    }
  }
}

/// Begins to copy a block's rows, the first position of the first phase at `column`; rows from
/// outside are left as they are.
template <typename R, typename T, typename A>
__device__ __forceinline__ void BeginToCopyLines(
    const Lines& lines,
    const Block& block,
    const T* data,
    int row,
    int column,
    A* shared) {
  if (lines.phase_step > 1) {
    ForEachRow(lines, block, data, row, shared, [&](A* to, const T* line, int lane) {
      CopyPhases<R>(lines, line, column, lane, to);
    });
    return;
  }
  WithPiece<cuda::kVectorLength<T>>(lines.planes.piece, [&](auto piece) {
    ForEachRow(lines, block, data, row, shared, [&](A* to, const T* line, int lane) {
      CopyPieces<R, decltype(piece)::kValue>(lines, line, column, lane, to);
    });
  });
}

/// Waits for what the whole block copies.
__device__ __forceinline__ void WaitForLines() {
  cuda::EndOfCopies();
  cuda::WaitForCopies<0>();
  __syncthreads();
}

/// The first of the rows of a plane that are in shared memory, where `row` is the first that is
/// read: no more are there than the plane has.
__device__ __forceinline__ int FirstRow(const Lines& lines, int row) {
  return max(0, min(row, lines.planes.height - static_cast<int>(lines.rows.divisor)));
}

/// The plane of the source, or of x, that a plane and a tap plane meet; -1 where there is none.
__device__ __forceinline__ int MetDepth(const Depths& p, const Planes& from, int depth, int tap) {
  int met = tap * p.dilation - p.pad;
  if (p.is_data) {
    int rest = depth - met;
    met = rest < 0 ? -1 : DivideBy(p.step, &rest);
    met = rest > 0 ? -1 : met;
  } else {
    met += depth * static_cast<int>(p.step.divisor);
  }
  return IsWithin(met, from.depth) ? met : -1;
}

/// [begin, end).
struct Range {
  int begin;
  int end;
};

/// The places of a line of taps that have one.
__device__ __forceinline__ Range RangeOf(const Taps& taps, int phase) {
  const int phases = static_cast<int>(taps.phases.divisor);
  // The last line may lack the last tap.
  const bool is_last = phase + (taps.most - 1) * phases >= static_cast<int>(taps.columns.divisor);
  const int count = taps.most - (is_last ? 1 : 0);
  const int begin = taps.shift + (taps.reversed ? taps.most - count : 0);
  return {begin, begin + count};
}

/// Adds the products of a factor.
template <int kLength, typename A>
__device__ __forceinline__ void AddProductsOf(A factor, const A* window, A (&sums)[kLength]) {
#pragma unroll
  for (int i = 0; i < kLength; ++i) {
    sums[i] += window[i] * factor;
  }
}

/// Adds the products of a run's factors, those of [begin, end) or, where it is whole, of all:
/// `window` has one run of the source, the next is loaded.
template <bool kIsWhole, int kVectors, typename A>
__device__ __forceinline__ void AddProducts(
    const A* next,
    const A* factors,
    int begin,
    int end,
    A (&window)[2 * Run<A, kVectors>::kLength],
    A (&sums)[Run<A, kVectors>::kLength]) {
  using R = Run<A, kVectors>;
#pragma unroll
  for (int at = 0; at < R::kLength; at += R::kOfVector) {
    if (kIsWhole || at < end) {
      A chunk[R::kOfVector];
      cuda::LoadAtOnce<R::kOfVector>(factors + at, chunk);
      cuda::LoadAtOnce<R::kOfVector>(next + at, window + R::kLength + at);
      if (kIsWhole || (at >= begin && at + R::kOfVector <= end)) {
#pragma unroll
        for (int i = 0; i < R::kOfVector; ++i) {
          AddProductsOf(chunk[i], window + at + i, sums);
        }
      } else {
#pragma unroll
        for (int i = 0; i < R::kOfVector; ++i) {
          if (at + i >= begin && at + i < end) {
            AddProductsOf(chunk[i], window + at + i, sums);
          }
        }
      }
    }
  }
}

/// sums[j] += source[j + i] * factors[i] for i in [begin, end). Both are where a run of a line
/// begins; factors before `begin` and from `end` on are multiplied with nothing. Where kSkips, runs
/// of factors that are outside of `met` are left out.
template <int kVectors, bool kSkips, typename A>
__device__ __forceinline__ void Slide(
    const A* source,
    const A* factors,
    Range range,
    Range met,
    A (&sums)[Run<A, kVectors>::kLength]) {
  using R = Run<A, kVectors>;
  A window[2 * R::kLength];
  bool is_loaded = false;
#pragma unroll 1
  while (range.end > 0) {
    if (!kSkips || (met.begin < R::kLength && met.end > 0)) {
      if (!is_loaded) {
#pragma unroll
        for (int i = 0; i < R::kLength; i += R::kOfVector) {
          cuda::LoadAtOnce<R::kOfVector>(source + i, window + i);
        }
        is_loaded = true;
      }
      const A* next = source + R::kPitch;
      if (range.begin <= 0 && range.end >= R::kLength) {
        AddProducts<true, kVectors>(next, factors, range.begin, range.end, window, sums);
      } else {
        AddProducts<false, kVectors>(next, factors, range.begin, range.end, window, sums);
      }
#pragma unroll
      for (int i = 0; i < R::kLength; ++i) {
        window[i] = window[R::kLength + i];
      }
    }
    source += R::kPitch;
    factors += R::kPitch;
    range.begin -= R::kLength;
    range.end -= R::kLength;
    met.begin -= R::kLength;
    met.end -= R::kLength;
  }
}

}  // namespace gradsmith::conv::depthwise_lines

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_LINES_CUH_
