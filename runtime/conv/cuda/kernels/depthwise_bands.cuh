#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_CUH_

#include <cstdint>
#include <cstring>

#include "conv/cuda/depthwise_bands_arguments.h"
#include "conv/cuda/kernels/terms.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// What depthwise results (depthwise_bands_result.cuh) and the filter's gradient
/// (depthwise_bands_filter.cuh) on tensor cores share; see conv/cuda/depthwise_bands.h. A block
/// computes a channel's works, one after the other, from what it copies to shared memory; the next
/// one's is copied meanwhile.
namespace gradsmith::conv::depthwise_bands {

/// cuda::Half or cuda::Bfloat16.
template <typename Math>
struct Narrow : NarrowTerms<Math> {
  using T = typename Math::T;

  __device__ static __forceinline__ T RoundedTap(T tap) { return tap; }
  __device__ static __forceinline__ void
  StorePair(T* to, float first, float second, bool accumulate) {
    auto* const pair = reinterpret_cast<std::uint32_t*>(to);
    const float2 before = Math::Unpack(accumulate ? *pair : 0);
    *pair = Math::Pack(before.x + first, before.y + second);
  }
};

/// Float in TF32.
struct Tf32 : Tf32Terms {
  __device__ static __forceinline__ float RoundedTap(float tap) { return cuda::BeforeCutOff(tap); }
  __device__ static __forceinline__ void
  StorePair(float* to, float first, float second, bool accumulate) {
    auto* const pair = reinterpret_cast<float2*>(to);
    const float2 before = accumulate ? *pair : float2{0, 0};
    *pair = {before.x + first, before.y + second};
  }
};

/// Elements of a vector.
template <typename T>
constexpr int kVector = kVectorBytes / static_cast<int>(sizeof(T));

/// A work's first image, row and window.
struct Work {
  template <int kRows>
  __device__ static __forceinline__ Work Of(const Arguments& p, int number) {
    int across = number;
    int down = cuda::DivideBy(p.across, &across);
    int of_rows = cuda::DivideBy(p.down, &down);
    Work work{};
    work.image = cuda::DivideBy(p.classes, &of_rows) * p.planes;
    work.images = min(p.planes, p.images - work.image);
    work.row = down * static_cast<int>(p.strips.divisor) * kRows * p.dilation_down + of_rows;
    work.window = across * static_cast<int>(p.windows.divisor);
    return work;
  }

  int image;
  int images;
  int row;
  int window;
};

/// Place says where one of a work's windows is.
struct Place {
  __device__ __forceinline__ Place(const Arguments& p, int number) : column(number) {
    strip = cuda::DivideBy(p.windows, &column);
    image = cuda::DivideBy(p.strips, &strip);
  }

  int image;
  int strip;
  int column;
};

__device__ __forceinline__ int WindowsOf(const Arguments& p) {
  return p.planes * static_cast<int>(p.strips.divisor * p.windows.divisor);
}

template <typename T>
__device__ __forceinline__ T* PlaneOf(const Planes& planes, T* first, int image) {
  return first + image * planes.image_stride + static_cast<int>(blockIdx.x) * planes.channel_stride;
}

/// RowAt returns where a row of one of a work's images begins.
__device__ __forceinline__ int RowAt(const Planes& planes, int image, int row) {
  return image * static_cast<int>(planes.image_stride) + row * planes.row_stride;
}

/// How far a plane's rows begin after a multiple of the tensor's units.
template <typename T>
__device__ __forceinline__ int OffsetOf(const Planes& planes, const T* plane) {
  const auto element = reinterpret_cast<std::uintptr_t>(plane) / sizeof(T);
  return static_cast<int>(element) & (planes.unit - 1);
}

/// What the windows of a work meet: windows of results begin at multiples of the units in memory,
/// and so do those of the source in shared memory, `shift` before the first result's first tap.
struct Meeting {
  template <typename T, typename S>
  __device__ __forceinline__ Meeting(const Arguments& p, const T* from, const S* to) {
    const int of_from = OffsetOf(p.from, from);
    to_left = -OffsetOf(p.to, to);
    const int ahead = p.first_column + p.step_across * to_left + of_from;
    shift = ahead & (kWindow - 1);
    from_left = ahead - shift - of_from;
  }

  int to_left;
  int from_left;
  int shift;
};

/// Begins to copy a unit of a row of so many elements, of which the first is at `at`; zeros where
/// there are none.
template <typename T>
__device__ __forceinline__ void CopyUnit(int unit, T* to, const T* from, int at, int width) {
  if (at < 0 && at + unit > 0) {
#pragma unroll
    for (int i = 0; i < kVector<T>; ++i) {
      if (i < unit) {
        to[i] = cuda::IsWithin(at + i, width) ? from[i] : T(0.0F);
      }
    }
    return;
  }
  const int count = at < 0 ? 0 : max(min(width - at, unit), 0);
  const int bytes = count * static_cast<int>(sizeof(T));
  const unsigned address = cuda::SharedAddress(to);
  if (unit == kVector<T>) {
    cuda::BeginCopyOfPart<kVectorBytes>(address, from, bytes);
  } else if (unit == kVector<T> / 2) {
    cuda::BeginCopyOfPart<kVectorBytes / 2>(address, from, bytes);
  } else {
    cuda::BeginCopyOfPart<kVectorBytes / 4>(address, from, bytes);
  }
}

/// Copies an element at a time, in rows that begin anywhere: to zeros, so that no time is spent on
/// what is around planes.
template <typename T>
__device__ __forceinline__ void CopyElements(
    const Planes& planes,
    const Room& room,
    const T* plane,
    int images,
    int top,
    int apart,
    int left,
    unsigned char* tile) {
  constexpr int kAtOnce = 6;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  for (int i = thread; i < room.bytes / kVectorBytes; i += threads) {
    reinterpret_cast<uint4*>(tile)[i] = {0, 0, 0, 0};
  }
  __syncthreads();
  const int end = min(planes.width - left, static_cast<int>(room.units.divisor));
  // Of a row so many at a time as is a power of two.
  const int first_column = max(-left, 0);
  const int bits = room.bits;
  const int count = images * static_cast<int>(room.rows.divisor) << bits;
  for (int begin = first_column; begin < end; begin += 1 << bits) {
    for (int first = thread; first < count; first += kAtOnce * threads) {
      T elements[kAtOnce];
      int places[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int number = first + i * threads;
        const int column = begin + (number & ((1 << bits) - 1));
        int line = number >> bits;
        const int image = cuda::DivideBy(room.rows, &line);
        const int row = top + line * apart;
        places[i] = -1;
        if (number < count && column < end && cuda::IsWithin(row, planes.height)) {
          places[i] = image * room.plane_pitch + line * room.pitch +
                      (line >> room.shift) * room.skew + column * static_cast<int>(sizeof(T));
          elements[i] = plane[RowAt(planes, image, row) + left + column];
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (places[i] >= 0) {
          *reinterpret_cast<T*>(tile + places[i]) = elements[i];
        }
      }
    }
  }
}

/// Begins to copy the rows from `top` on that are so far apart, and in them the elements from
/// `left` on, of so many images.
template <typename T>
__device__ __forceinline__ void BeginTile(
    const Planes& planes,
    const Room& room,
    const T* plane,
    int images,
    int top,
    int apart,
    int left,
    unsigned char* tile) {
  if constexpr (sizeof(T) < kVectorBytes / 4) {
    if (room.unit == 1) {
      CopyElements(planes, room, plane, images, top, apart, left, tile);
      return;
    }
  }
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < room.copies; i += static_cast<int>(blockDim.x)) {
    int column = i;
    int line = cuda::DivideBy(room.units, &column);
    const int image = cuda::DivideBy(room.rows, &line);
    const int row = top + line * apart;
    const int at = left + column * room.unit;
    const bool is_there = image < images && cuda::IsWithin(row, planes.height);
    unsigned char* const to = tile + image * room.plane_pitch + line * room.pitch +
                              (line >> room.shift) * room.skew +
                              column * room.unit * static_cast<int>(sizeof(T));
    CopyUnit(
        room.unit, reinterpret_cast<T*>(to), plane + (RowAt(planes, image, row) + at),
        is_there ? at : planes.width, planes.width);
  }
}

/// Begins to copy what a work's windows meet in the source.
template <typename T>
__device__ __forceinline__ void BeginSource(
    const Arguments& p,
    const Work& work,
    const Meeting& meeting,
    const T* plane,
    unsigned char* tile) {
  const int left = meeting.from_left + work.window * kWindow * p.step_across;
  BeginTile(
      p.from, p.from_room, plane, work.images, work.row * p.step_down + p.first_row,
      p.dilation_down, left, tile);
}

/// How far one strip of so many rows of results is from the next in the source.
template <int kRows>
__device__ __forceinline__ int StripPitch(const Arguments& p) {
  return kRows * p.step_down * p.from_room.pitch + p.from_room.skew;
}

template <typename T, int kRows>
__device__ __forceinline__ unsigned SourceAt(const Arguments& p, const Place& place) {
  return place.image * p.from_room.plane_pitch + place.strip * StripPitch<kRows>(p) +
         place.column * kWindow * p.step_across * static_cast<int>(sizeof(T));
}

/// Has the block compute its works: `begin` begins to copy what one needs to one of two stages of
/// shared memory.
template <int kRows, typename Begin, typename Compute>
__device__ __forceinline__ void ForEachWork(
    const Arguments& p,
    unsigned char* stages,
    int stage_bytes,
    const Begin& begin,
    const Compute& compute) {
  int copied = -1;
  int next = static_cast<int>(blockIdx.y);
  int stage = 0;
  while (true) {
    if (next < p.works) {
      begin(Work::Of<kRows>(p, next), stages + stage * stage_bytes);
    }
    cuda::EndOfCopies();
    stage ^= 1;
    if (copied >= 0) {
      cuda::WaitForCopies<1>();
      __syncthreads();  // all have copied
      compute(Work::Of<kRows>(p, copied), stages + stage * stage_bytes);
      __syncthreads();  // all have read
    }
    if (next >= p.works) {
      break;
    }
    copied = next;
    next += static_cast<int>(gridDim.y);
  }
}

__device__ __forceinline__ std::uint32_t LoadWord(unsigned address) {
  return __float_as_uint(cuda::LoadShared(address));
}

}  // namespace gradsmith::conv::depthwise_bands

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_CUH_
