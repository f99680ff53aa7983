#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_RESULT_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_RESULT_CUH_

#include <cstdint>

#include "conv/cuda/depthwise_bands_arguments.h"
#include "conv/cuda/kernels/depthwise_bands.cuh"

/// Forward, and backward data by single steps, as products of windows of the source and bands: a
/// column of a band is a row of the filter, from where its result's first tap is in a window. In
/// shared memory a row of the filter has zeros around it, so that all of its columns can be read
/// from it; in half and bf16 it is there twice, the second time from the second element on: pairs
/// lie in words then wherever they begin.
namespace gradsmith::conv::depthwise_bands {

template <typename Math>
__device__ __forceinline__ int BandElements(const Arguments& p) {
  return p.taps_down * Math::kEach * p.band_pitch;
}

template <typename Math>
__device__ __forceinline__ void
MakeBands(const Arguments& p, const typename Math::T* filter, typename Math::T* bands) {
  using T = typename Math::T;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  for (int i = thread * kVector<T>; i < BandElements<Math>(p); i += threads * kVector<T>) {
    *reinterpret_cast<uint4*>(bands + i) = {0, 0, 0, 0};
  }
  __syncthreads();
  const int taps = p.taps_down * p.taps_across;
  const T* const first = filter + static_cast<std::int64_t>(blockIdx.x) * taps;
  for (int i = thread; i < taps; i += threads) {
    const int row = i / p.taps_across;
    const int column = (i - row * p.taps_across) * p.dilation_across;
    T* const to = bands + row * Math::kEach * p.band_pitch + p.zeros + column;
    const T tap = Math::RoundedTap(first[p.reversed ? taps - 1 - i : i]);
    to[0] = tap;
    if constexpr (Math::kEach == 2) {
      to[p.band_pitch - 1] = tap;
    }
  }
}

/// BandOf returns where a lane's part of the first block of a band is.
template <typename Math>
__device__ __forceinline__ unsigned BandOf(const Arguments& p, unsigned bands, int shift) {
  const int first =
      cuda::Lane() % 4 * Math::kEach - cuda::Lane() / 4 * p.step_across - shift + p.zeros;
  const int odd = Math::kEach == 2 ? first & 1 : 0;
  return bands + (first - odd + odd * p.band_pitch) * static_cast<int>(sizeof(typename Math::T));
}

/// A warp's sums of tiles of windows, each of so many rows.
template <typename Math, int kRows, int kTiles>
class Results {
 public:
  using T = typename Math::T;

  /// Adds all products. `windows` are where the lane's row of a product is in shared memory for
  /// each tile, `band` its part of the bands.
  __device__ __forceinline__ void
  Add(const Arguments& p, const unsigned (&windows)[kTiles], unsigned band) {
    if constexpr (kRows == 1) {
      for (int block = 0; block < p.blocks; ++block) {
        AddBlock(p, windows, block * kBlockBytes, band + block * kBlockBytes, 0, 1);
      }
      return;
    }
    const int band_row = Math::kEach * p.band_pitch * static_cast<int>(sizeof(T));
    for (int phase = 0; phase < p.step_down; ++phase) {
      // Where windows step down, every so manieth tap meets the same rows.
      const int taps = (p.taps_down - phase + p.step_down - 1) / p.step_down;
      for (int block = 0; block < p.blocks; ++block) {
        AddBlock(
            p, windows, phase * p.from_room.pitch + block * kBlockBytes,
            band + phase * band_row + block * kBlockBytes, p.step_down * band_row, taps);
      }
    }
  }

  __device__ __forceinline__ const float (&Of(int tile, int row) const)[4] {
    return sums_[tile][row];
  }

 private:
  /// Goes down the source; the bands of the last rows of taps stay in registers, and meet one row
  /// of results after the other.
  __device__ __forceinline__ void AddBlock(
      const Arguments& p,
      const unsigned (&windows)[kTiles],
      unsigned offset,
      unsigned band,
      int to_next_band,
      int taps) {
    std::uint32_t bands[kRows][2];
    const int pitch = p.step_down * p.from_room.pitch;
    for (int first = 0; first < taps + kRows - 1; first += kRows) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = first + i;
        if (row < taps) {
          bands[i][0] = LoadWord(band);
          bands[i][1] = LoadWord(band + kBlockBytes / 2);
          band += to_next_band;
        }
        if (row < taps + kRows - 1) {
#pragma unroll
          for (int tile = 0; tile < kTiles; ++tile) {
            std::uint32_t met[4];
            cuda::LoadMatrices(windows[tile] + offset + i * pitch, met);
            if constexpr (Math::kEach == 1) {
#pragma unroll
              for (std::uint32_t& bits : met) {
                bits = Math::Rounded(bits);
              }
            }
#pragma unroll
            for (int of = 0; of < kRows; ++of) {
              const int tap = row - of;
              if (tap >= 0 && tap < taps) {
                Math::AddProduct(met, bands[(i - of + kRows) % kRows], sums_[tile][of]);
              }
            }
          }
        }
      }
      offset += kRows * pitch + p.from_room.skew;
    }
  }

  float sums_[kTiles][kRows][4] = {};
};

/// Where a window of results is written, of a work's first plane: its first row and element. What
/// is not there begins after the end of rows.
struct Target {
  template <int kRows>
  __device__ static __forceinline__ Target
  Of(const Arguments& p, const Work& work, const Place& place, bool is_there, int left) {
    const int row = work.row + place.strip * kRows * p.dilation_down;
    const bool exists = is_there && row < p.to.height;
    const int at = exists ? (work.window + place.column) * kWindow + left : p.to.width;
    return {row, at, RowAt(p.to, place.image, row) + at};
  }

  int row;
  int at;
  int offset;
};

/// Writes two neighbours of a row, or adds to them.
template <typename Math>
__device__ __forceinline__ void Store(
    typename Math::T* to,
    bool has_first,
    bool has_second,
    bool is_pair,
    float first,
    float second,
    bool accumulate) {
  using T = typename Math::T;
  if (is_pair) {
    Math::StorePair(to, first, second, accumulate);
    return;
  }
  if (has_first) {
    to[0] = T((accumulate ? static_cast<float>(to[0]) : 0) + first);
  }
  if (has_second) {
    to[1] = T((accumulate ? static_cast<float>(to[1]) : 0) + second);
  }
}

/// Writes a tile, whose lanes have a target each, twice: all of it by pairs where it is whole.
template <typename Math, int kRows, int kTiles>
__device__ __forceinline__ void StoreTile(
    const Arguments& p,
    const Results<Math, kRows, kTiles>& results,
    int tile,
    const Target& target,
    typename Math::T* plane,
    bool accumulate) {
  constexpr unsigned kAll = 0xFFFFFFFFU;
  const int pair = cuda::Lane() % 4 * 2;
  const int to_next = p.dilation_down * p.to.row_stride;
  const bool is_whole = p.to.unit > 1 && target.at >= 0 && target.at <= p.to.width - kWindow &&
                        target.row + (kRows - 1) * p.dilation_down < p.to.height;
  const bool are_whole = __ballot_sync(kAll, is_whole) == kAll;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int window = half * kWindows / 2 + cuda::Lane() / 4;
    typename Math::T* to = plane + (__shfl_sync(kAll, target.offset, window) + pair);
    if (are_whole) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float(&sums)[4] = results.Of(tile, i);
        Math::StorePair(to, sums[2 * half], sums[2 * half + 1], accumulate);
        to += to_next;
      }
      continue;
    }
    const int at = __shfl_sync(kAll, target.at, window) + pair;
    const int row = __shfl_sync(kAll, target.row, window);
    const bool has_first = cuda::IsWithin(at, p.to.width);
    const bool has_second = cuda::IsWithin(at + 1, p.to.width);
    const bool is_pair = has_first && has_second && p.to.unit > 1;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (row + i * p.dilation_down < p.to.height) {
        const float(&sums)[4] = results.Of(tile, i);
        Store<Math>(
            to, has_first, has_second, is_pair, sums[2 * half], sums[2 * half + 1], accumulate);
      }
      to += to_next;
    }
  }
}

template <typename Math, int kRows, int kTiles>
__device__ __forceinline__ void ComputeResults(
    const Arguments& p,
    const typename Math::T* source,
    const typename Math::T* filter,
    typename Math::T* result,
    bool accumulate) {
  using T = typename Math::T;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* const bands = reinterpret_cast<T*>(shared);
  auto* const stages = reinterpret_cast<unsigned char*>(bands + BandElements<Math>(p));
  MakeBands<Math>(p, filter, bands);
  const auto begin = [&](const Work& work, unsigned char* stage) {
    const T* const from = PlaneOf(p.from, source, work.image);
    const Meeting meeting(p, from, PlaneOf(p.to, result, work.image));
    BeginSource(p, work, meeting, from, stage);
  };
  const auto compute = [&](const Work& work, const unsigned char* stage) {
    T* const to = PlaneOf(p.to, result, work.image);
    const Meeting meeting(p, PlaneOf(p.from, source, work.image), to);
    const unsigned band = BandOf<Math>(p, cuda::SharedAddress(bands), meeting.shift);
    const unsigned lane = cuda::SharedAddress(stage) + cuda::Lane() / 16 * kVectorBytes;
    const int count = WindowsOf(p);
    const int step = static_cast<int>(blockDim.x) / 32 * kTiles * kWindows;
    for (int number = static_cast<int>(threadIdx.x) / 32 * kTiles * kWindows; number < count;
         number += step) {
      unsigned windows[kTiles];
      Target targets[kTiles];
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        const int window = number + i * kWindows + cuda::Lane() % kWindows;
        const Place place(p, min(window, count - 1));
        windows[i] = lane + SourceAt<T, kRows>(p, place);
        targets[i] = Target::Of<kRows>(
            p, work, place, window < count && place.image < work.images, meeting.to_left);
      }
      Results<Math, kRows, kTiles> results;
      results.Add(p, windows, band);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        StoreTile(p, results, i, targets[i], to, accumulate);
      }
    }
  };
  ForEachWork<kRows>(p, stages, p.from_room.bytes, begin, compute);
}

}  // namespace gradsmith::conv::depthwise_bands

#define GRADSMITH_DEPTHWISE_BANDS(math, name, rows, tiles, blocks)                          \
  extern "C" __global__ void __launch_bounds__(                                             \
      gradsmith::conv::depthwise_bands::kMostThreads, blocks)                               \
      gradsmith_depthwise_bands_##name##_##rows(                                            \
          const __grid_constant__ gradsmith::conv::depthwise_bands::Arguments arguments,    \
          const math::T* source, const math::T* filter, math::T* result, bool accumulate) { \
    gradsmith::conv::depthwise_bands::ComputeResults<math, rows, tiles>(                    \
        arguments, source, filter, result, accumulate);                                     \
  }

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_RESULT_CUH_
