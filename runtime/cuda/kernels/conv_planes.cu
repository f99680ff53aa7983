#include <cstdint>

#include "conv/cuda/planes_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// Forward and the filter's gradient in TF32 of few channels of x, where pixels of y lie next to
/// each other; see conv/cuda/planes.h. Rows of products are channels of y. Forward: columns are
/// pixels, terms are taps of channels of x, and the filter stays in registers. The filter's
/// gradient: columns are taps of channels of x, terms are pixels. Sixteen pixels go in an order by
/// which a lane has four that lie next to each other.

namespace gradsmith::conv::planes {
namespace {

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

/// Where a tap of a channel is in a tile of x, from what it meets first.
__device__ __forceinline__ int OffsetOf(const Arguments& p, int term) {
  const int taps = p.lines[0].w * p.lines[1].w;
  const int channel = term / taps;
  const int down = (term - channel * taps) / p.lines[1].w;
  const int right = term - channel * taps - down * p.lines[1].w;
  return (channel * p.tile_rows + down * p.lines[0].dilation) * p.tile_pitch +
         right * p.lines[1].dilation;
}

__device__ __forceinline__ int TermsOf(const Arguments& p) {
  return p.x_channels * p.lines[0].w * p.lines[1].w;
}

/// Fills the tile with what the work's pixels of y meet, rounded: a warp has a row at a time.
__device__ __forceinline__ void
LoadTile(const Arguments& p, const Work& work, const float* __restrict__ x, float* tile) {
  const Line down = p.lines[0];
  const Line right = p.lines[1];
  const int top = work.top * down.step - down.pad;
  const int left = work.left * right.step - right.pad;
  // Zeros for what none of the work's pixels meets.
  const int columns = (work.columns - 1) * right.step + (right.w - 1) * right.dilation + 1;
  const float* image = x + work.image * p.x.image;
  for (int line = static_cast<int>(threadIdx.x) / 32; line < p.x_channels * p.tile_rows;
       line += kWarps) {
    const int channel = line / p.tile_rows;
    const int row = top + line - channel * p.tile_rows;
    const int end = cuda::IsWithin(row, down.x) ? min(columns, right.x - left) : 0;
    const float* from = image + (channel * p.x.channel + row * p.x.row + left * p.x.column);
#pragma unroll 4
    for (int i = cuda::Lane(); i < p.tile_columns; i += 32) {
      const float value = left + i >= 0 && i < end ? from[i * p.x.column] : 0;
      tile[line * p.tile_pitch + i] = cuda::BeforeCutOff(value);
    }
  }
}

/// Four pixels of y of each of a lane's two channels.
struct Pixels {
  float of[2][kVector];

  /// `from` is the first of the first channel; zeros beyond so many pixels, and where a channel is
  /// not there.
  __device__ __forceinline__ void
  Load(const Arguments& p, const float* from, int count, const bool (&exists)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* const pixels = from + i * kChannels / 2 * p.y.channel;
      if (p.has_vectors) {
        const float4 four =
            exists[i] && count > 0 ? *reinterpret_cast<const float4*>(pixels) : float4{0, 0, 0, 0};
        of[i][0] = four.x;
        of[i][1] = four.y;
        of[i][2] = four.z;
        of[i][3] = four.w;
      } else {
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          of[i][j] = exists[i] && j < count ? pixels[j] : 0;
        }
      }
    }
  }

  __device__ __forceinline__ void
  Store(const Arguments& p, float* to, int count, const bool (&exists)[2], bool accumulate) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float* const pixels = to + i * kChannels / 2 * p.y.channel;
      if (!exists[i]) {
        continue;
      }
      if (p.has_vectors) {
        if (count > 0) {
          auto* const four = reinterpret_cast<float4*>(pixels);
          const float4 before = accumulate ? *four : float4{0, 0, 0, 0};
          *four = {
              before.x + of[i][0], before.y + of[i][1], before.z + of[i][2], before.w + of[i][3]};
        }
      } else {
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          if (j < count) {
            pixels[j] = of[i][j] + (accumulate ? pixels[j] : 0);
          }
        }
      }
    }
  }
};

__device__ __forceinline__ std::uint32_t Bits(float value) {
  return __float_as_uint(value);
}

/// A warp's channels of the filter, and what it makes of pixels.
template <int kTerms>
class Forward {
 public:
  __device__ __forceinline__ Forward(const Arguments& p, const Place& place, const float* filter) {
    const int terms = TermsOf(p);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int term = step * kDepth + i * kDepth / 2 + place.quad;
        const bool exists = term < terms;
        offsets_[step][i] = exists ? OffsetOf(p, term) : 0;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int channel = place.channel + j * kChannels / 2;
          const bool is_there = exists && channel < p.y_channels;
          const float value =
              is_there ? filter[static_cast<std::int64_t>(channel) * terms + term] : 0;
          filter_[step][2 * i + j] = Bits(cuda::BeforeCutOff(value));
        }
      }
    }
  }

  /// Of sixteen pixels by steps, from where the first one's first tap is.
  __device__ __forceinline__ void
  Compute(const float* tile, int step_right, const Place& place, Pixels* pixels) const {
    float sums[2][4] = {};
    const int pixel = place.group / 2 * kVector + place.group % 2;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const met = tile + (pixel + 2 * half) * step_right;
        cuda::AddProductOfTf32(
            filter_[step], {Bits(met[offsets_[step][0]]), Bits(met[offsets_[step][1]])},
            sums[half]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        pixels->of[i][j] = sums[j / 2][2 * i + j % 2];
      }
    }
  }

 private:
  static constexpr int kSteps = kTerms / kDepth;

  std::uint32_t filter_[kSteps][4];
  int offsets_[kSteps][2];
};

template <int kTerms>
__device__ __forceinline__ void
ComputeForward(const Arguments& p, const float* x, const float* filter, float* y, bool accumulate) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* const tile = reinterpret_cast<float*>(shared);
  const Place place;
  const Forward<kTerms> forward(p, place, filter);
  const bool exists[2] = {
      place.channel < p.y_channels, place.channel + kChannels / 2 < p.y_channels};
  for (int number = static_cast<int>(blockIdx.x); number < p.works;
       number += static_cast<int>(gridDim.x)) {
    const Work work(p, number);
    LoadTile(p, work, x, tile);
    __syncthreads();
    float* const first = y + work.image * p.y.image + place.channel * p.y.channel +
                         work.top * p.y.row + work.left + place.quad * kVector;
    for (int row = 0; row < work.rows; ++row) {
      const float* const row_of_tile = tile + row * p.lines[0].step * p.tile_pitch;
      for (int column = 0; column < work.columns; column += kPixels) {
        Pixels pixels;
        forward.Compute(row_of_tile + column * p.lines[1].step, p.lines[1].step, place, &pixels);
        pixels.Store(
            p, first + row * p.y.row + column, work.columns - column - place.quad * kVector, exists,
            accumulate);
      }
    }
    __syncthreads();  // the tile has been read
  }
}

/// Goes through a work's pixels of y, sixteen at a time.
struct Walk {
  int row = 0;
  int column = 0;

  __device__ __forceinline__ void Advance(const Work& work) {
    column += kPixels;
    if (column >= work.columns) {
      column = 0;
      ++row;
    }
  }
};

/// A warp's sums: of its channels of y and all terms.
template <int kTerms>
class FilterGradient {
 public:
  __device__ __forceinline__ FilterGradient(const Arguments& p, const Place& place) {
    const int terms = TermsOf(p);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int term = i * kDepth + place.group;
      offsets_[i] = term < terms ? OffsetOf(p, term) : 0;
    }
  }

  /// Adds products of sixteen pixels by steps, from where the lane's first one's first tap is.
  __device__ __forceinline__ void Add(const float* tile, int step_right, const Pixels& pixels) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t rows[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        rows[i] = Bits(cuda::BeforeCutOff(pixels.of[i % 2][2 * half + i / 2]));
      }
      const float* const first = tile + 2 * half * step_right;
      const float* const second = first + step_right;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        cuda::AddProductOfTf32(
            rows, {Bits(first[offsets_[i]]), Bits(second[offsets_[i]])}, sums_[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        channel_sums_[i] += pixels.of[i][j];
      }
    }
  }

  /// Writes the block's slice of the filter's gradient.
  __device__ __forceinline__ void Leave(const Arguments& p, const Place& place, float* partial)
      const {
    const int terms = TermsOf(p);
    float* const slice = partial + static_cast<std::int64_t>(blockIdx.x) * p.y_channels * terms;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int channel = place.channel + j / 2 * kChannels / 2;
        const int term = i * kDepth + place.quad * 2 + j % 2;
        if (channel < p.y_channels && term < terms) {
          slice[static_cast<std::int64_t>(channel) * terms + term] = sums_[i][j];
        }
      }
    }
  }

  /// Writes its row of the partial sums of y's channels.
  __device__ __forceinline__ void
  LeaveChannels(const Arguments& p, const Place& place, float* partial) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float sum = channel_sums_[i];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const int channel = place.channel + i * kChannels / 2;
      if (place.quad == 0 && channel < p.y_channels) {
        partial[static_cast<std::int64_t>(blockIdx.x) * p.y_channels + channel] = sum;
      }
    }
  }

 private:
  static constexpr int kColumns = kTerms / kDepth;

  int offsets_[kColumns];
  float sums_[kColumns][4] = {};
  float channel_sums_[2] = {};
};

template <int kTerms>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const float* x,
    const float* y,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* const tile = reinterpret_cast<float*>(shared);
  const Place place;
  const bool exists[2] = {
      place.channel < p.y_channels, place.channel + kChannels / 2 < p.y_channels};
  FilterGradient<kTerms> gradient(p, place);
  for (int number = static_cast<int>(blockIdx.x); number < p.works;
       number += static_cast<int>(gridDim.x)) {
    const Work work(p, number);
    const float* const first = y + work.image * p.y.image + place.channel * p.y.channel +
                               work.top * p.y.row + work.left + place.quad * kVector;
    const auto load = [&](const Walk& walk, Pixels* pixels) {
      const int count = walk.row < work.rows ? work.columns - walk.column : 0;
      pixels->Load(
          p, first + walk.row * p.y.row + walk.column, count - place.quad * kVector, exists);
    };
    Walk ahead;
    Pixels next[2];
    load(ahead, &next[0]);
    ahead.Advance(work);
    load(ahead, &next[1]);
    LoadTile(p, work, x, tile);
    __syncthreads();
    for (Walk walk; walk.row < work.rows; walk.Advance(work)) {
      const Pixels pixels = next[0];
      next[0] = next[1];
      ahead.Advance(work);
      load(ahead, &next[1]);
      const int column = walk.column + place.quad * kVector;
      gradient.Add(
          tile + walk.row * p.lines[0].step * p.tile_pitch + column * p.lines[1].step,
          p.lines[1].step, pixels);
    }
    __syncthreads();  // the tile has been read
  }
  gradient.Leave(p, place, partial);
  if (partial_channels != nullptr) {
    gradient.LeaveChannels(p, place, partial_channels);
  }
}

}  // namespace
}  // namespace gradsmith::conv::planes

#define GRADSMITH_PLANES(terms)                                                                 \
  extern "C" __global__ void __launch_bounds__(                                                 \
      gradsmith::conv::planes::kThreads, gradsmith::conv::planes::BlocksOfForward(terms))       \
      gradsmith_planes_forward_##terms(                                                         \
          const __grid_constant__ gradsmith::conv::planes::Arguments arguments, const float* x, \
          const float* filter, float* y, bool accumulate) {                                     \
    gradsmith::conv::planes::ComputeForward<terms>(arguments, x, filter, y, accumulate);        \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(                                                 \
      gradsmith::conv::planes::kThreads, gradsmith::conv::planes::BlocksOfFilter(terms))        \
      gradsmith_planes_filter_##terms(                                                          \
          const __grid_constant__ gradsmith::conv::planes::Arguments arguments, const float* x, \
          const float* y, float* partial, float* partial_channels) {                            \
    gradsmith::conv::planes::ComputeFilter<terms>(arguments, x, y, partial, partial_channels);  \
  }

GRADSMITH_PLANES(32)
GRADSMITH_PLANES(48)
GRADSMITH_PLANES(80)
GRADSMITH_PLANES(152)
