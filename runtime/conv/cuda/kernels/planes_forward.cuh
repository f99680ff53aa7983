#ifndef GRADSMITH_CONV_CUDA_KERNELS_PLANES_FORWARD_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_PLANES_FORWARD_CUH_

#include <cstdint>
#include <cstring>

#include "conv/cuda/planes_arguments.h"
#include "conv/cuda/kernels/planes_tile.cuh"
#include "cuda/kernels/ptx.cuh"

/// Forward of few channels of x in planes; see planes_tile.cuh.

namespace gradsmith::conv::planes {

/// Writes four pixels, or adds to them.
template <typename Math>
__device__ __forceinline__ void
StoreVector(typename Math::T* to, const float (&sums)[kVector], bool accumulate) {
  if constexpr (Math::kEach == 1) {
    auto* const four = reinterpret_cast<float4*>(to);
    const float4 before = accumulate ? *four : float4{0, 0, 0, 0};
    *four = {before.x + sums[0], before.y + sums[1], before.z + sums[2], before.w + sums[3]};
  } else {
    auto* const two = reinterpret_cast<uint2*>(to);
    const uint2 before = accumulate ? *two : uint2{0, 0};
    const float2 first = Math::Unpack(before.x);
    const float2 second = Math::Unpack(before.y);
    *two = {
        Math::Pack(first.x + sums[0], first.y + sums[1]),
        Math::Pack(second.x + sums[2], second.y + sums[3])};
  }
}

/// Writes the first so many of four pixels, or adds to them.
template <typename Math>
__device__ __forceinline__ void Store(
    const Arguments& p,
    typename Math::T* to,
    const float (&sums)[kVector],
    int count,
    bool accumulate) {
  if (p.has_y_vectors) {
    if (count > 0) {
      StoreVector<Math>(to, sums, accumulate);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    if (i < count) {
      to[i] = typename Math::T(sums[i] + (accumulate ? static_cast<float>(to[i]) : 0));
    }
  }
}

/// A warp's channels of the filter, and what it makes of pixels.
template <typename Math, int kPlaces>
class Forward {
  using T = typename Math::T;

 public:
  __device__ __forceinline__ Forward(const Arguments& p, const Place& place, const T* filter) {
    const int pixel = place.group / 2 * kVector + place.group % 2;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int at = step * kDepth + i * kDepth / 2 + place.quad;
        offsets_[step][i] = p.offsets[at] + pixel * p.lines[1].step * kWordBytes;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          filter_[step][2 * i + j] =
              TermsAt(p, place.channel + j * kChannels / 2, p.terms[at], filter);
        }
      }
    }
  }

  /// Four pixels for each of a lane's channels, of sixteen so many bytes apart in shared memory,
  /// from what the first one meets.
  __device__ __forceinline__ void
  Compute(unsigned words, unsigned apart, float (&pixels)[2][kVector]) const {
    float sums[2][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned met = words + 2 * half * apart;
        Math::AddProduct(
            filter_[step], {LoadWord(offsets_[step][0] + met), LoadWord(offsets_[step][1] + met)},
            sums[half]);
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        pixels[i][j] = sums[j / 2][2 * i + j % 2];
      }
    }
  }

 private:
  static constexpr int kSteps = kPlaces / kDepth;

  /// A register of the filter: a term, and the next tap's where there is one.
  __device__ static __forceinline__ std::uint32_t
  TermsAt(const Arguments& p, int channel, int term, const T* filter) {
    const bool is_there = term >= 0 && channel < p.y_channels;
    const T* const from = filter + static_cast<std::int64_t>(channel) * TermsOf(p) + term;
    T terms[Math::kEach];
    terms[0] = is_there ? *from : T(0.0F);
    if constexpr (Math::kEach == 2) {
      const bool has_next = term % p.lines[1].w + 1 < p.lines[1].w;
      terms[1] = is_there && has_next ? from[1] : T(0.0F);
    }
    std::uint32_t bits = 0;
    memcpy(&bits, terms, sizeof(bits));
    return Math::Rounded(bits);
  }

  std::uint32_t filter_[kSteps][4];
  unsigned offsets_[kSteps][2];
};

template <typename Math, int kPlaces>
__device__ __forceinline__ void ComputeForward(
    const Arguments& p,
    const typename Math::T* x,
    const typename Math::T* filter,
    typename Math::T* y,
    bool accumulate) {
  const Place place;
  const Forward<Math, kPlaces> forward(p, place, filter);
  const unsigned apart = p.lines[1].step * kWordBytes;
  const unsigned rows_apart = p.lines[0].step * p.tile_pitch * kWordBytes;
  ForEachWork<Math, 0>(p, x, [&](const Work& work, unsigned words) {
    typename Math::T* const first = y + work.image * p.y.image +
                                    std::int64_t{place.channel} * p.y.channel + work.top * p.y.row +
                                    work.left + place.quad * kVector;
    for (int row = 0; row < work.rows; ++row) {
      for (int column = 0; column < work.columns; column += kPixels) {
        float pixels[2][kVector];
        forward.Compute(words + row * rows_apart + column * apart, apart, pixels);
        const int count = work.columns - column - place.quad * kVector;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int further = i * kChannels / 2;
          if (place.channel + further < p.y_channels) {
            Store<Math>(
                p, first + row * p.y.row + column + further * p.y.channel, pixels[i], count,
                accumulate);
          }
        }
      }
    }
  });
}

}  // namespace gradsmith::conv::planes

#define GRADSMITH_PLANES_FORWARD(math, name, places)                                              \
  extern "C" __global__ void __launch_bounds__(                                                   \
      gradsmith::conv::planes::kThreads, gradsmith::conv::planes::BlocksOfForward(places))        \
      gradsmith_planes_forward_##name##_##places(                                                 \
          const __grid_constant__ gradsmith::conv::planes::Arguments arguments, const math::T* x, \
          const math::T* filter, math::T* y, bool accumulate) {                                   \
    gradsmith::conv::planes::ComputeForward<math, places>(arguments, x, filter, y, accumulate);   \
  }

#endif  // GRADSMITH_CONV_CUDA_KERNELS_PLANES_FORWARD_CUH_
