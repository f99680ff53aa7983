#ifndef GRADSMITH_CONV_CUDA_KERNELS_PLANES_FILTER_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_PLANES_FILTER_CUH_

#include <cstdint>
#include <cstring>

#include "conv/cuda/kernels/planes_tile.cuh"
#include "conv/cuda/planes_arguments.h"
#include "cuda/kernels/ptx.cuh"

/// The filter's gradient of few channels of x in planes; see planes_tile.cuh.

namespace gradsmith::conv::planes {

/// Pixels is registers of four pixels of y of each of a lane's two channels, for the filter's
/// gradient.
template <typename Math>
struct Pixels {
  std::uint32_t of[2][kVector / Math::kEach];
};

/// Copies a lane's pixels of y to a ring in shared memory, in the order in which the block
/// multiplies them, sixteen at a time, from one work to the next. What a lane takes it has copied
/// itself.
template <typename Math>
class Reader {
  using T = typename Math::T;

 public:
  __device__ __forceinline__
  Reader(const Arguments& p, const Place& place, const T* y, unsigned ring)
      : of_lane_(y + std::int64_t{place.channel} * p.y.channel + place.quad * kVector),
        exists_{place.channel < p.y_channels, place.channel + kChannels / 2 < p.y_channels},
        quad_(place.quad),
        number_(static_cast<int>(blockIdx.x)),
        ring_(ring + threadIdx.x * kVectorBytes<T>) {
    BeginWork(p);
  }

  /// Begins to copy the next pixels: a group of copies.
  __device__ __forceinline__ void BeginNext(const Arguments& p) {
    const int count = columns_ - column_ - quad_ * kVector;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const T* const from = row_ + column_ + i * kChannels / 2 * p.y.channel;
      const unsigned to = ring_ + begun_ + i * kOfChannel;
      if (p.has_y_vectors) {
        cuda::BeginCopyOfLine<kVectorBytes<T>>(to, from, exists_[i] && count > 0);
      } else {
        CopyAlone(to, from, exists_[i] ? count : 0);
      }
    }
    cuda::EndOfCopies();
    begun_ = (begun_ + kOfStep) % kRingBytes;
    Advance(p);
  }

  /// The pixels that have been copied for longest.
  __device__ __forceinline__ void Take(Pixels<Math>* pixels) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      cuda::LoadShared(ring_ + taken_ + i * kOfChannel, pixels->of[i]);
    }
    taken_ = (taken_ + kOfStep) % kRingBytes;
  }

 private:
  static constexpr unsigned kOfChannel = kThreads * kVectorBytes<T>;
  static constexpr unsigned kOfStep = 2 * kOfChannel;

  /// The first so many of four pixels, and zeros.
  __device__ static __forceinline__ void CopyAlone(unsigned to, const T* from, int count) {
    if constexpr (Math::kEach == 1) {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        cuda::BeginCopyOfLine<kWordBytes>(to + i * kWordBytes, from + i, i < count);
      }
    } else {
      T four[kVector];
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        four[i] = i < count ? from[i] : T(0.0F);
      }
      std::uint32_t registers[kVector / 2];
      memcpy(registers, four, sizeof(registers));
      cuda::StoreShared(to, registers);
    }
  }

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

  const T* of_lane_;
  const bool exists_[2];
  int quad_;
  int number_;
  const T* row_;
  int rows_;
  int columns_;
  int column_ = 0;
  unsigned ring_;
  unsigned begun_ = 0;
  unsigned taken_ = 0;
};

/// A warp's sums: of its channels of y and all terms.
template <typename Math, int kPlaces>
class FilterGradient {
 public:
  __device__ __forceinline__ FilterGradient(const Arguments& p, const Place& place) {
    const int pixel = place.quad * kVector;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      offsets_[i] = p.offsets[i * kDepth + place.group] + pixel * p.lines[1].step * kWordBytes;
    }
  }

  /// Adds products of sixteen pixels so many bytes apart in shared memory, from what the first one
  /// meets.
  __device__ __forceinline__ void Add(unsigned words, unsigned apart, const Pixels<Math>& pixels) {
    constexpr int kProducts = 2 / Math::kEach;
#pragma unroll
    for (int product = 0; product < kProducts; ++product) {
      std::uint32_t rows[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        rows[i] = Math::Rounded(pixels.of[i % 2][2 * product + i / 2]);
      }
      const unsigned first = words + 2 * product * apart;
      const unsigned second = first + Math::kEach * apart;
#pragma unroll
      for (int i = 0; i < kColumns; ++i) {
        Math::AddProduct(
            rows, {LoadWord(offsets_[i] + first), LoadWord(offsets_[i] + second)}, sums_[i]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (const std::uint32_t bits : pixels.of[i]) {
        channel_sums_[i] += Math::SumOf(bits);
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
  static constexpr int kColumns = kPlaces / kDepth;

  unsigned offsets_[kColumns];
  float sums_[kColumns][4] = {};
  float channel_sums_[2] = {};
};

template <typename Math, int kPlaces>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const typename Math::T* x,
    const typename Math::T* y,
    float* partial,
    float* partial_channels) {
  constexpr int kAhead = kRingOf<typename Math::T> - 1;
  const Place place;
  FilterGradient<Math, kPlaces> gradient(p, place);
  Reader<Math> reader(p, place, y, Memory<typename Math::T>(p).ring);
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    reader.BeginNext(p);
  }
  const unsigned apart = p.lines[1].step * kWordBytes;
  const unsigned rows_apart = p.lines[0].step * p.tile_pitch * kWordBytes;
  ForEachWork<Math, kAhead>(p, x, [&](const Work& work, unsigned words) {
    for (int row = 0; row < work.rows; ++row) {
      for (int column = 0; column < work.columns; column += kPixels) {
        reader.BeginNext(p);
        cuda::WaitForCopies<kAhead>();
        Pixels<Math> pixels;
        reader.Take(&pixels);
        gradient.Add(words + row * rows_apart + column * apart, apart, pixels);
      }
    }
  });
  gradient.Leave(p, place, partial);
  if (partial_channels != nullptr) {
    gradient.LeaveChannels(p, place, partial_channels);
  }
}

}  // namespace gradsmith::conv::planes

#define GRADSMITH_PLANES_FILTER(math, name, places)                                               \
  extern "C" __global__ void __launch_bounds__(                                                   \
      gradsmith::conv::planes::kThreads, gradsmith::conv::planes::BlocksOfFilter(places))         \
      gradsmith_planes_filter_##name##_##places(                                                  \
          const __grid_constant__ gradsmith::conv::planes::Arguments arguments, const math::T* x, \
          const math::T* y, float* partial, float* partial_channels) {                            \
    gradsmith::conv::planes::ComputeFilter<math, places>(                                         \
        arguments, x, y, partial, partial_channels);                                              \
  }

#endif  // GRADSMITH_CONV_CUDA_KERNELS_PLANES_FILTER_CUH_
