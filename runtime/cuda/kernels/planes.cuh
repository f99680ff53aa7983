#ifndef GRADSMITH_CUDA_KERNELS_PLANES_CUH_
#define GRADSMITH_CUDA_KERNELS_PLANES_CUH_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "conv/cuda/planes_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// Forward and the filter's gradient of few channels of x, where pixels of y lie next to each
/// other; see conv/cuda/planes.h. Rows of products are channels of y. Forward: columns are pixels,
/// terms are taps of channels of x, and the filter stays in registers. The filter's gradient:
/// columns are taps of channels of x, terms are pixels. Sixteen pixels go in an order by which a
/// lane has four that lie next to each other.
///
/// A register has a term of float, or two of half or bf16. In shared memory x is in registers'
/// form, for whatever a lane meets: two of half are an element and the one that is its pair, the
/// next tap (forward) or the next pixel of y (the filter's gradient).

namespace gradsmith::conv::planes {

/// Float in TF32.
struct Tf32 {
  using T = float;
  static constexpr int kEach = 1;

  __device__ static __forceinline__ void
  AddProduct(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&sums)[4]) {
    cuda::AddProductOfTf32(a, b, sums);
  }
  __device__ static __forceinline__ std::uint32_t Rounded(std::uint32_t bits) {
    return __float_as_uint(cuda::BeforeCutOff(__uint_as_float(bits)));
  }
  __device__ static __forceinline__ void AddTo(float* sum, std::uint32_t bits) {
    *sum += __uint_as_float(bits);
  }
};

/// cuda::Half or cuda::Bfloat16.
template <typename Math>
struct Narrow : Math {
  static constexpr int kEach = 2;

  __device__ static __forceinline__ std::uint32_t Rounded(std::uint32_t bits) { return bits; }
  __device__ static __forceinline__ void AddTo(float* sum, std::uint32_t bits) {
    const float2 pair = Math::Unpack(bits);
    *sum += pair.x + pair.y;
  }
};

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

constexpr int kWordBytes = 4;

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

__device__ __forceinline__ std::uint32_t LoadWord(unsigned address) {
  return __float_as_uint(cuda::LoadShared(address));
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
    typename Math::T* const first = y + work.image * p.y.image + place.channel * p.y.channel +
                                    work.top * p.y.row + work.left + place.quad * kVector;
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

/// Of the filter's gradient: registers of four pixels of y of each of a lane's two channels.
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
      : of_lane_(y + place.channel * p.y.channel + place.quad * kVector),
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
        Math::AddTo(&channel_sums_[i], bits);
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

#define GRADSMITH_PLANES_FORWARD(math, name, places)                                              \
  extern "C" __global__ void __launch_bounds__(                                                   \
      gradsmith::conv::planes::kThreads, gradsmith::conv::planes::BlocksOfForward(places))        \
      gradsmith_planes_forward_##name##_##places(                                                 \
          const __grid_constant__ gradsmith::conv::planes::Arguments arguments, const math::T* x, \
          const math::T* filter, math::T* y, bool accumulate) {                                   \
    gradsmith::conv::planes::ComputeForward<math, places>(arguments, x, filter, y, accumulate);   \
  }

#define GRADSMITH_PLANES_FILTER(math, name, places)                                               \
  extern "C" __global__ void __launch_bounds__(                                                   \
      gradsmith::conv::planes::kThreads, gradsmith::conv::planes::BlocksOfFilter(places))         \
      gradsmith_planes_filter_##name##_##places(                                                  \
          const __grid_constant__ gradsmith::conv::planes::Arguments arguments, const math::T* x, \
          const math::T* y, float* partial, float* partial_channels) {                            \
    gradsmith::conv::planes::ComputeFilter<math, places>(                                         \
        arguments, x, y, partial, partial_channels);                                              \
  }

#endif  // GRADSMITH_CUDA_KERNELS_PLANES_CUH_
