#ifndef GRADSMITH_CONV_CUDA_KERNELS_PLANES_TILE_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_PLANES_TILE_CUH_

#include <cstdint>

#include "conv/cuda/kernels/terms.cuh"
#include "conv/cuda/planes_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

/// What forward (planes_forward.cuh) and the filter's gradient (planes_filter.cuh) of few channels
/// of x share, where pixels of y lie next to each other; see conv/cuda/planes.h. Rows of products
/// are channels of y. Forward: columns are pixels, terms are taps of channels of x, and the filter
/// stays in registers. The filter's gradient: columns are taps of channels of x, terms are pixels.
/// Sixteen pixels go in an order by which a lane has four that lie next to each other.
///
/// A register has a term of float, or two of half or bf16. In shared memory x is in registers'
/// form, for whatever a lane meets: two of half are an element and the one that is its pair, the
/// next tap (forward) or the next pixel of y (the filter's gradient).

namespace gradsmith::conv::planes {

using Tf32 = Tf32Terms;
template <typename Math>
using Narrow = NarrowTerms<Math>;

/// A lane's place in products.
struct Place {
  __device__ __forceinline__ Place()
      : group(cuda::Lane() / 4),
        quad(cuda::Lane() % 4),
        channel(
            static_cast<int>(blockIdx.y) * kBlockChannels +
            static_cast<int>(threadIdx.x) / 32 * kChannels + group) {}

  /// Of eight groups of four lanes.
  int group;
  int quad;
  /// The first of the lane's two of y, the other is eight on.
  int channel;
};

/// Rows and columns of an image that a block takes at a time.
struct Work {
  __device__ __forceinline__ Work(const Arguments& p, int number) {
    int band = number;
    int strip = cuda::DivideBy(p.bands, &band);
    image = cuda::DivideBy(p.strips, &strip);
    top = band * p.rows;
    left = strip * p.columns;
    rows = min(p.rows, p.lines[0].y - top);
    columns = min(p.columns, p.lines[1].y - left);
  }

  int image;
  int top;
  int left;
  int rows;
  int columns;
};

__device__ __forceinline__ int TermsOf(const Arguments& p) {
  return p.x_channels * p.lines[0].w * p.lines[1].w;
}

template <typename T>
constexpr int kVectorBytes = kVector * static_cast<int>(sizeof(T));

/// Steps that a thread's part of the ring has room for.
template <typename T>
constexpr int kRingOf = kRingBytes / (kThreads * 2 * kVectorBytes<T>);

__device__ __forceinline__ int TileElements(const Arguments& p) {
  return p.x_channels * p.tile_rows * p.tile_pitch;
}

/// Copies an element; of float that is begun.
template <typename T>
__device__ __forceinline__ void CopyElement(T* to, const T* from, bool exists) {
  if constexpr (sizeof(T) == sizeof(float)) {
    cuda::BeginCopyOfLine<sizeof(T)>(cuda::SharedAddress(to), from, exists);
  } else {
    *to = exists ? *from : T(0.0F);
  }
}

/// Begins to copy what the work's pixels of y meet: a warp has a row at a time.
template <typename T>
__device__ __forceinline__ void
BeginTile(const Arguments& p, const Work& work, const T* x, T* tile) {
  const int top = work.top * p.lines[0].step + p.tile_top;
  const int left = work.left * p.lines[1].step + p.tile_left;
  const int width = p.lines[1].x;
  for (int channel = 0; channel < p.x_channels; ++channel) {
    for (int line = static_cast<int>(threadIdx.x) / 32; line < p.tile_rows; line += kWarps) {
      const int row = top + line;
      const bool is_there = cuda::IsWithin(row, p.lines[0].x);
      const T* const from = x + work.image * p.x.image + (channel * p.x.channel + row * p.x.row);
      T* const to = tile + (channel * p.tile_rows + line) * p.tile_pitch;
      if (p.has_x_vectors) {
#pragma unroll 1
        for (int i = cuda::Lane() * kVector; i < p.tile_columns; i += 32 * kVector) {
          cuda::BeginCopyOfLine<kVectorBytes<T>>(
              cuda::SharedAddress(to + i), from + left + i,
              is_there && cuda::IsWithin(left + i, width));
        }
      } else {
#pragma unroll 1
        for (int i = cuda::Lane(); i < p.tile_columns; i += 32) {
          CopyElement(
              to + i, from + (left + i) * p.x.column, is_there && cuda::IsWithin(left + i, width));
        }
      }
    }
  }
}

/// Makes registers of a tile's elements.
template <typename Math>
__device__ __forceinline__ void
MakeWords(const Arguments& p, const typename Math::T* tile, std::uint32_t* words) {
  if constexpr (Math::kEach == 1) {
    const auto* const from = reinterpret_cast<const uint4*>(tile);
    auto* const to = reinterpret_cast<uint4*>(words);
    for (int i = static_cast<int>(threadIdx.x); i < TileElements(p) / kVector; i += kThreads) {
      const uint4 four = from[i];
      to[i] = {
          Math::Rounded(four.x), Math::Rounded(four.y), Math::Rounded(four.z),
          Math::Rounded(four.w)};
    }
  } else {
    // Two elements at a time, and those of their pairs, which may lie in two words.
    const auto* const from = reinterpret_cast<const std::uint32_t*>(tile);
    auto* const to = reinterpret_cast<uint2*>(words);
    const int count = TileElements(p) / 2;
    const bool is_odd = p.to_pair % 2 != 0;
    constexpr std::uint32_t kLow = 0xFFFF;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
      const int pair = i + p.to_pair / 2;
      const std::uint32_t both = from[i];
      const std::uint32_t first = pair < count ? from[pair] : 0;
      const std::uint32_t next = is_odd && pair + 1 < count ? from[pair + 1] : 0;
      const std::uint32_t of_low = is_odd ? first >> 16U : first & kLow;
      const std::uint32_t of_high = is_odd ? next & kLow : first >> 16U;
      to[i] = {(both & kLow) | of_low << 16U, both >> 16U | of_high << 16U};
    }
  }
}

/// A block's shared memory: x in registers' form, as it was copied, and the ring of y.
template <typename T>
struct Memory {
  __device__ __forceinline__ explicit Memory(const Arguments& p) {
    GRADSMITH_DYNAMIC_SHARED(shared);
    words = reinterpret_cast<std::uint32_t*>(shared);
    tile = reinterpret_cast<T*>(words + TileElements(p));
    ring = cuda::SharedAddress(tile + TileElements(p));
  }

  std::uint32_t* words;
  T* tile;
  unsigned ring;
};

/// Has the block compute its works, each from where x is in shared memory; the next one's is copied
/// meanwhile. Computing begins a group of copies for each step, of which so many may be under way
/// when it ends.
template <typename Math, int kUnderWay, typename Compute>
__device__ __forceinline__ void
ForEachWork(const Arguments& p, const typename Math::T* x, const Compute& compute) {
  const Memory<typename Math::T> memory(p);
  const unsigned words = cuda::SharedAddress(memory.words);
  int number = static_cast<int>(blockIdx.x);
  BeginTile(p, Work(p, number), x, memory.tile);
  cuda::EndOfCopies();
  int steps = 0;  // of the work before: the tile was in the first one's group of copies
  while (number < p.works) {
    const Work work(p, number);
    if (steps > kUnderWay) {
      cuda::WaitForCopies<kUnderWay>();
    } else {
      cuda::WaitForCopies<0>();
    }
    __syncthreads();  // all have copied, and read the words before
    MakeWords<Math>(p, memory.tile, memory.words);
    __syncthreads();
    number += static_cast<int>(gridDim.x);
    if (number < p.works) {
      BeginTile(p, Work(p, number), x, memory.tile);
    }
    if constexpr (kUnderWay == 0) {
      cuda::EndOfCopies();
    }
    compute(work, words);
    steps = work.rows * ((work.columns + kPixels - 1) / kPixels);
  }
}

__device__ __forceinline__ std::uint32_t LoadWord(unsigned address) {
  return __float_as_uint(cuda::LoadShared(address));
}

}  // namespace gradsmith::conv::planes

#endif  // GRADSMITH_CONV_CUDA_KERNELS_PLANES_TILE_CUH_
