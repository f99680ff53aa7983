#ifndef GRADSMITH_CUDA_KERNELS_FEW_CHANNELS_CUH_
#define GRADSMITH_CUDA_KERNELS_FEW_CHANNELS_CUH_

#include <cstdint>

#include "conv/cuda/few_channels_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"

/// Tiles of planes in shared memory: of few channels, which need not fill chunks of 16 bytes.
namespace gradsmith::conv::few_channels {

using cuda::DivideBy;
using cuda::IsWithin;
using cuda::Lane;

/// A plane of a tensor whose channels are innermost.
struct Plane {
  const unsigned char* data;
  int height;
  int width;
  int channels;
  /// The tensor's end: nothing is read beyond it.
  const unsigned char* end;
};

/// Where a tile begins in a plane: before the plane's begin where there is a margin.
struct Corner {
  int row;
  int column;
};

/// A tile has kRows rows and room for kColumns columns and kRoom channels. What lies outside of the
/// plane, or beyond its channels, is zero.
template <int kRoom, int kRows, int kColumns, int kThreads>
class Tile {
 public:
  static constexpr int kPitch = PitchBytes(kRoom);
  static constexpr int kRowPitch = kColumns * kPitch;
  static constexpr int kBytes = TileBytes(kRows, kColumns, kRoom);
  static constexpr int kRawBytes = RawBytes(kRows, kColumns, kRoom);

  /// Begins to copy a tile, `columns` of each row, whose channels fill chunks.
  __device__ __forceinline__ static void
  BeginCopy(const Plane& plane, Corner corner, const cuda::Divisor& columns, unsigned to) {
    const int count = kRows * static_cast<int>(columns.divisor) * kChunks;
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
      const int chunk = i % kChunks;
      int column = i / kChunks;
      const int row = DivideBy(columns, &column);
      const unsigned place = to + row * kRowPitch + column * kPitch + chunk * kChunkBytes;
      const int y = corner.row + row;
      const int x = corner.column + column;
      const bool exists =
          IsWithin(y, plane.height) && IsWithin(x, plane.width) && chunk * kVector < plane.channels;
      const int pixel = y * plane.width + x;
      cuda::BeginCopy(
          place,
          plane.data + std::int64_t{pixel} * (plane.channels * kElementBytes) + chunk * kChunkBytes,
          exists);
    }
  }

  /// Begins to copy the rows of a tile as they lie in memory.
  __device__ __forceinline__ static void
  BeginRawCopy(const Plane& plane, Corner corner, const cuda::Divisor& columns, unsigned to) {
    constexpr int kChunksOfRow = kRawRow / kChunkBytes;
    const RawRows rows(plane, corner, static_cast<int>(columns.divisor));
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunksOfRow; i += kThreads) {
      const int row = i / kChunksOfRow;
      const int chunk = i % kChunksOfRow;
      if (!IsWithin(corner.row + row, plane.height)) {
        continue;
      }
      const unsigned char* begin = rows.Begin(row);
      const int lead = LeadOf(begin);
      const unsigned char* from = begin - lead + chunk * kChunkBytes;
      if (chunk * kChunkBytes < lead + rows.bytes) {
        const std::int64_t left = plane.end - from;
        cuda::BeginPartialCopy(
            to + i * kChunkBytes, from, static_cast<int>(left < kChunkBytes ? left : kChunkBytes));
      }
    }
  }

  /// Makes a tile of such rows.
  __device__ __forceinline__ static void Unpack(
      const Plane& plane,
      Corner corner,
      const cuda::Divisor& columns,
      const unsigned char* raw,
      unsigned char* to) {
    const RawRows rows(plane, corner, static_cast<int>(columns.divisor));
    const int positions = kRows * static_cast<int>(columns.divisor);
    for (int i = static_cast<int>(threadIdx.x); i < positions; i += kThreads) {
      int column = i;
      const int row = DivideBy(columns, &column);
      const int x = corner.column + column;
      const bool exists = IsWithin(corner.row + row, plane.height) && IsWithin(x, plane.width);
      const int place = exists ? row * kRawRow + LeadOf(rows.Begin(row)) +
                                     (x - rows.first) * plane.channels * kElementBytes
                               : 0;
      UnpackPosition(
          reinterpret_cast<const std::uint32_t*>(raw) + place / 4, place % 4 * 8,
          exists ? plane.channels : 0,
          reinterpret_cast<uint4*>(to + row * kRowPitch + column * kPitch));
    }
  }

 private:
  static constexpr int kChunks = kRoom / kVector;
  static constexpr int kRawRow = RawRowBytes(kColumns, kRoom);

  /// The part of a tile's rows that lies within the plane.
  struct RawRows {
    __device__ RawRows(const Plane& plane, Corner corner, int columns) {
      first = max(corner.column, 0);
      pitch = plane.width * plane.channels * kElementBytes;
      bytes = (min(corner.column + columns, plane.width) - first) * plane.channels * kElementBytes;
      data = plane.data + std::int64_t{corner.row} * pitch +
             std::int64_t{first} * plane.channels * kElementBytes;
    }
    [[nodiscard]] __device__ __forceinline__ const unsigned char* Begin(int row) const {
      return data + std::int64_t{row} * pitch;
    }

    int first;
    int pitch;
    int bytes;
    const unsigned char* data;
  };

  /// The bytes before an address in its chunk.
  __device__ __forceinline__ static int LeadOf(const unsigned char* address) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % kChunkBytes);
  }

  /// The channels of a position, which begin `shift` bits after `from`.
  __device__ __forceinline__ static void
  UnpackPosition(const std::uint32_t* from, int shift, int channels, uint4* to) {
    std::uint32_t low = from[0];
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int channel = chunk * kVector + 2 * i;
        std::uint32_t word = 0;
        if (channel < channels) {
          const std::uint32_t high = from[4 * chunk + i + 1];
          const std::uint64_t both = (std::uint64_t{high} << 32U) | low;
          word = static_cast<std::uint32_t>(both >> static_cast<unsigned>(shift));
          low = high;
        }
        words[i] = channel + 1 < channels ? word : word & 0xFFFFU;
      }
      to[chunk] = {words[0], words[1], words[2], words[3]};
    }
  }
};

/// How tiles whose channels fill chunks come to shared memory: a work's are copied while those of
/// the one before it are multiplied. `Tiles` says what a work's tiles are.
template <typename Tiles>
struct ByChunks {
  const Arguments& p;
  unsigned memory;
  unsigned place = 0;

  /// Begins to copy the tiles of a work.
  template <typename Work>
  __device__ __forceinline__ void Begin(const Work& work) {
    Tiles::BeginCopy(p, work, memory + place * Tiles::kBytes);
    cuda::EndOfCopies();
  }
  /// Returns where all threads can read the tiles that were begun, after `begin_next`.
  template <typename Work, typename BeginNext>
  __device__ __forceinline__ unsigned Get(const Work& /*work*/, const BeginNext& begin_next) {
    cuda::WaitForCopies<0>();
    __syncthreads();  // what is overwritten has been read
    const unsigned got = memory + place * Tiles::kBytes;
    place = 1 - place;
    begin_next();
    return got;
  }
};

/// The same of other tiles: their rows are copied as they lie in memory, and unpacked.
template <typename Tiles>
struct ByRows {
  const Arguments& p;
  unsigned char* memory;

  template <typename Work>
  __device__ __forceinline__ void Begin(const Work& work) {
    Tiles::BeginRawCopy(p, work, cuda::SharedAddress(memory) + Tiles::kBytes);
    cuda::EndOfCopies();
  }
  template <typename Work, typename BeginNext>
  __device__ __forceinline__ unsigned Get(const Work& work, const BeginNext& begin_next) {
    cuda::WaitForCopies<0>();
    __syncthreads();
    Tiles::Unpack(p, work, memory + Tiles::kBytes, memory);
    __syncthreads();
    begin_next();
    return cuda::SharedAddress(memory);
  }
};

/// Calls `use` with each of a block's works, of which `work_of` gives the one with a number and
/// `next` the first number from another one on, and where its tiles are.
template <typename Copies, typename Next, typename WorkOf, typename Use>
__device__ __forceinline__ void ForEachWork(
    const Arguments& p,
    Copies copies,
    const Next& next,
    const WorkOf& work_of,
    const Use& use) {
  int number = next(static_cast<int>(blockIdx.x));
  if (number < p.works) {
    copies.Begin(work_of(number));
  }
#pragma unroll 1
  while (number < p.works) {
    const auto work = work_of(number);
    number = next(number + static_cast<int>(gridDim.x));
    const unsigned tiles = copies.Get(work, [&] {
      if (number < p.works) {
        copies.Begin(work_of(number));
      }
    });
    use(work, tiles);
  }
}

__device__ __forceinline__ Plane
PlaneOf(const Arguments& p, const unsigned char* data, std::int64_t plane, int channels) {
  const std::int64_t bytes = std::int64_t{p.height} * p.width * channels * kElementBytes;
  return {data + plane * bytes, p.height, p.width, channels, data + p.planes * bytes};
}

}  // namespace gradsmith::conv::few_channels

#endif  // GRADSMITH_CUDA_KERNELS_FEW_CHANNELS_CUH_
