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

__device__ __forceinline__ int TermsOf(const Arguments& p) {
  return p.x_channels * p.lines[0].w * p.lines[1].w;
}

constexpr int kFloatBytes = static_cast<int>(sizeof(float));
constexpr int kVectorBytes = kVector * kFloatBytes;

__device__ __forceinline__ int TileElements(const Arguments& p) {
  return p.x_channels * p.tile_rows * p.tile_pitch;
}

/// Begins to copy what the work's pixels of y meet: a warp has a row at a time.
__device__ __forceinline__ void
BeginTile(const Arguments& p, const Work& work, const float* x, unsigned tile) {
  const int top = work.top * p.lines[0].step + p.tile_top;
  const int left = work.left * p.lines[1].step + p.tile_left;
  const int width = p.lines[1].x;
  for (int channel = 0; channel < p.x_channels; ++channel) {
    for (int line = static_cast<int>(threadIdx.x) / 32; line < p.tile_rows; line += kWarps) {
      const int row = top + line;
      const bool is_there = cuda::IsWithin(row, p.lines[0].x);
      const float* const from =
          x + work.image * p.x.image + (channel * p.x.channel + row * p.x.row);
      const unsigned to =
          tile + (channel * p.tile_rows + line) * p.tile_pitch * unsigned{kFloatBytes};
      if (p.has_x_vectors) {
#pragma unroll 1
        for (int i = cuda::Lane() * kVector; i < p.tile_columns; i += 32 * kVector) {
          cuda::BeginCopy(
              to + i * kFloatBytes, from + left + i, is_there && cuda::IsWithin(left + i, width));
        }
      } else {
#pragma unroll 1
        for (int i = cuda::Lane(); i < p.tile_columns; i += 32) {
          cuda::BeginCopyOfFloat(
              to + i * kFloatBytes, from + (left + i) * p.x.column,
              is_there && cuda::IsWithin(left + i, width));
        }
      }
    }
  }
}

__device__ __forceinline__ void RoundTile(const Arguments& p, float* tile) {
  auto* const vectors = reinterpret_cast<float4*>(tile);
  for (int i = static_cast<int>(threadIdx.x); i < TileElements(p) / kVector; i += kThreads) {
    const float4 four = vectors[i];
    vectors[i] = {
        cuda::BeforeCutOff(four.x), cuda::BeforeCutOff(four.y), cuda::BeforeCutOff(four.z),
        cuda::BeforeCutOff(four.w)};
  }
}

/// Has the block compute its works, each from where its tile is in shared memory; the next one's is
/// copied meanwhile. Computing begins a group of copies for each step, of which so many may be
/// under way when it ends.
template <int kUnderWay, typename Compute>
__device__ __forceinline__ void
ForEachWork(const Arguments& p, const float* x, const Compute& compute) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* tile = reinterpret_cast<float*>(shared);
  float* next = tile + TileElements(p);
  int number = static_cast<int>(blockIdx.x);
  BeginTile(p, Work(p, number), x, cuda::SharedAddress(tile));
  cuda::EndOfCopies();
  int steps = 0;  // of the work before: the tile was in the first one's group of copies
  while (number < p.works) {
    const Work work(p, number);
    if (steps > kUnderWay) {
      cuda::WaitForCopies<kUnderWay>();
    } else {
      cuda::WaitForCopies<0>();
    }
    __syncthreads();  // all have copied the tile, and read the other
    RoundTile(p, tile);
    number += static_cast<int>(gridDim.x);
    if (number < p.works) {
      BeginTile(p, Work(p, number), x, cuda::SharedAddress(next));
    }
    if constexpr (kUnderWay == 0) {
      cuda::EndOfCopies();
    }
    __syncthreads();  // all have rounded
    compute(work, cuda::SharedAddress(tile));
    steps = work.rows * ((work.columns + kPixels - 1) / kPixels);
    float* const read = tile;
    tile = next;
    next = read;
  }
}

/// Four pixels of y of each of a lane's two channels.
struct Pixels {
  float of[2][kVector];

  __device__ __forceinline__ void
  Store(const Arguments& p, float* to, int count, const bool (&exists)[2], bool accumulate) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float* const pixels = to + i * kChannels / 2 * p.y.channel;
      if (!exists[i]) {
        continue;
      }
      if (p.has_y_vectors) {
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
    const int pixel = place.group / 2 * kVector + place.group % 2;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = step * kDepth + i * kDepth / 2 + place.quad;
        const int term = p.terms[at];
        offsets_[step][i] = p.offsets[at] + pixel * p.lines[1].step * kFloatBytes;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int channel = place.channel + j * kChannels / 2;
          const bool is_there = term >= 0 && channel < p.y_channels;
          const float value =
              is_there ? filter[static_cast<std::int64_t>(channel) * terms + term] : 0;
          filter_[step][2 * i + j] = Bits(cuda::BeforeCutOff(value));
        }
      }
    }
  }

  /// Of sixteen pixels so many bytes apart in the tile, from what the first one meets.
  __device__ __forceinline__ void Compute(unsigned tile, unsigned apart, Pixels* pixels) const {
    float sums[2][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned met = tile + 2 * half * apart;
        cuda::AddProductOfTf32(
            filter_[step],
            {Bits(cuda::LoadShared(offsets_[step][0] + met)),
             Bits(cuda::LoadShared(offsets_[step][1] + met))},
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
  unsigned offsets_[kSteps][2];
};

template <int kTerms>
__device__ __forceinline__ void
ComputeForward(const Arguments& p, const float* x, const float* filter, float* y, bool accumulate) {
  const Place place;
  const Forward<kTerms> forward(p, place, filter);
  const bool exists[2] = {
      place.channel < p.y_channels, place.channel + kChannels / 2 < p.y_channels};
  const unsigned apart = p.lines[1].step * kFloatBytes;
  const unsigned rows_apart = p.lines[0].step * p.tile_pitch * kFloatBytes;
  ForEachWork<0>(p, x, [&](const Work& work, unsigned tile) {
    float* const first = y + work.image * p.y.image + place.channel * p.y.channel +
                         work.top * p.y.row + work.left + place.quad * kVector;
    for (int row = 0; row < work.rows; ++row) {
      for (int column = 0; column < work.columns; column += kPixels) {
        Pixels pixels;
        forward.Compute(tile + row * rows_apart + column * apart, apart, &pixels);
        pixels.Store(
            p, first + row * p.y.row + column, work.columns - column - place.quad * kVector, exists,
            accumulate);
      }
    }
  });
}

/// Copies a lane's pixels of y to a ring in shared memory, in the order in which the block
/// multiplies them, sixteen at a time, from one work to the next. What a lane takes it has copied
/// itself.
class Reader {
 public:
  __device__ __forceinline__
  Reader(const Arguments& p, const Place& place, const float* y, unsigned ring)
      : of_lane_(y + place.channel * p.y.channel + place.quad * kVector),
        exists_{place.channel < p.y_channels, place.channel + kChannels / 2 < p.y_channels},
        quad_(place.quad),
        number_(static_cast<int>(blockIdx.x)),
        ring_(ring + threadIdx.x * kVectorBytes) {
    BeginWork(p);
  }

  /// Begins to copy the next pixels: a group of copies.
  __device__ __forceinline__ void BeginNext(const Arguments& p) {
    const int count = columns_ - column_ - quad_ * kVector;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* const from = row_ + column_ + i * kChannels / 2 * p.y.channel;
      const unsigned to = ring_ + begun_ + i * kOfChannel;
      if (p.has_y_vectors) {
        cuda::BeginCopy(to, from, exists_[i] && count > 0);
      } else {
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          cuda::BeginCopyOfFloat(to + j * kFloatBytes, from + j, exists_[i] && j < count);
        }
      }
    }
    cuda::EndOfCopies();
    begun_ = (begun_ + kOfStep) % kRingBytes;
    Advance(p);
  }

  /// The pixels that have been copied for longest.
  __device__ __forceinline__ void Take(Pixels* pixels) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      cuda::LoadShared(ring_ + taken_ + i * kOfChannel, pixels->of[i]);
    }
    taken_ = (taken_ + kOfStep) % kRingBytes;
  }

 private:
  static constexpr unsigned kOfChannel = kThreads * kVectorBytes;
  static constexpr unsigned kOfStep = 2 * kOfChannel;

  __device__ __forceinline__ void Advance(const Arguments& p) {
    column_ += kPixels;
    if (column_ >= columns_) {
      column_ = 0;
      row_ += p.y.row;
      if (--rows_ == 0) {
        number_ += static_cast<int>(gridDim.x);
        BeginWork(p);
      }
    }
  }

  /// No columns after the last work.
  __device__ __forceinline__ void BeginWork(const Arguments& p) {
    if (number_ < p.works) {
      const Work work(p, number_);
      row_ = of_lane_ + work.image * p.y.image + work.top * p.y.row + work.left;
      rows_ = work.rows;
      columns_ = work.columns;
    } else {
      columns_ = 0;
    }
  }

  const float* of_lane_;
  const bool exists_[2];
  int quad_;
  int number_;
  const float* row_;
  int rows_;
  int columns_;
  int column_ = 0;
  unsigned ring_;
  unsigned begun_ = 0;
  unsigned taken_ = 0;
};

/// A warp's sums: of its channels of y and all terms.
template <int kTerms>
class FilterGradient {
 public:
  __device__ __forceinline__ FilterGradient(const Arguments& p, const Place& place) {
    const int pixel = place.quad * kVector;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      offsets_[i] = p.offsets[i * kDepth + place.group] + pixel * p.lines[1].step * kFloatBytes;
    }
  }

  /// Adds products of sixteen pixels so many bytes apart in the tile, from what the first one
  /// meets.
  __device__ __forceinline__ void Add(unsigned tile, unsigned apart, const Pixels& pixels) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t rows[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        rows[i] = Bits(cuda::BeforeCutOff(pixels.of[i % 2][2 * half + i / 2]));
      }
      const unsigned first = tile + 2 * half * apart;
      const unsigned second = first + apart;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        cuda::AddProductOfTf32(
            rows,
            {Bits(cuda::LoadShared(offsets_[i] + first)),
             Bits(cuda::LoadShared(offsets_[i] + second))},
            sums_[i]);
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
        const int term = p.terms[i * kDepth + place.quad * 2 + j % 2];
        if (channel < p.y_channels && term >= 0) {
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

  unsigned offsets_[kColumns];
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
  constexpr int kAhead = kRing - 1;
  const Place place;
  FilterGradient<kTerms> gradient(p, place);
  const auto* const ring = reinterpret_cast<const float*>(shared) + kTiles * TileElements(p);
  Reader reader(p, place, y, cuda::SharedAddress(ring));
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    reader.BeginNext(p);
  }
  const unsigned apart = p.lines[1].step * kFloatBytes;
  const unsigned rows_apart = p.lines[0].step * p.tile_pitch * kFloatBytes;
  ForEachWork<kAhead>(p, x, [&](const Work& work, unsigned tile) {
    for (int row = 0; row < work.rows; ++row) {
      for (int column = 0; column < work.columns; column += kPixels) {
        reader.BeginNext(p);
        cuda::WaitForCopies<kAhead>();
        Pixels pixels;
        reader.Take(&pixels);
        gradient.Add(tile + row * rows_apart + column * apart, apart, pixels);
      }
    }
  });
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
