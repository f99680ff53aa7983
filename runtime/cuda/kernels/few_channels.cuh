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

__device__ __forceinline__ Plane
PlaneOf(const Arguments& p, const unsigned char* data, std::int64_t plane, int channels) {
  const std::int64_t bytes = std::int64_t{p.height} * p.width * channels * kElementBytes;
  return {data + plane * bytes, p.height, p.width, channels, data + p.planes * bytes};
}

/// Where a tile begins in a plane: before the plane's begin where there is a margin.
struct Corner {
  int row;
  int column;
};

/// The part of a tile's row that lies within the plane.
struct Row {
  __device__ __forceinline__ Row(const Plane& plane, Corner corner, int columns, int row) {
    const int y = corner.row + row;
    const bool exists = IsWithin(y, plane.height);
    pitch = plane.channels * kElementBytes;
    margin = max(-corner.column, 0);
    count = exists ? min(columns, plane.width - corner.column) - margin : 0;
    const int pixel = exists ? y * plane.width + corner.column + margin : 0;
    begin = plane.data + std::int64_t{pixel} * pitch;
    lead = static_cast<int>(reinterpret_cast<std::uintptr_t>(begin) % kChunkBytes);
  }

  /// The bytes of a position.
  int pitch;
  /// Positions before the plane's begin, and within the plane.
  int margin;
  int count;
  const unsigned char* begin;
  /// The bytes before `begin` in its chunk.
  int lead;
};

/// A tile has kCount rows and room for kColumns columns and kRoom channels. What lies outside of
/// the plane, or beyond its channels, is zero. A warp copies a row.
template <int kRoom, int kCount, int kColumns>
class Tile {
 public:
  static constexpr int kCountOfRows = kCount;
  static constexpr int kPitch = PitchBytes(kRoom);
  static constexpr int kRowPitch = kColumns * kPitch;
  static constexpr int kBytes = TileBytes(kCount, kColumns, kRoom);
  static constexpr int kRawRow = RawRowBytes(kColumns, kRoom);
  static constexpr int kRawBytes = kCount * kRawRow;

  /// Begins to copy a row whose channels fill chunks to its memory.
  __device__ __forceinline__ static void
  BeginCopy(const Plane& plane, Corner corner, const cuda::Divisor& columns, int row, unsigned to) {
    const Row source(plane, corner, static_cast<int>(columns.divisor), row);
    const int count = static_cast<int>(columns.divisor) * kChunks;
#pragma unroll 4
    for (int i = Lane(); i < count; i += 32) {
      const int column = i / kChunks;
      const int chunk = i % kChunks;
      const int place = column - source.margin;
      cuda::BeginCopy(
          to + column * kPitch + chunk * kChunkBytes,
          source.begin + place * source.pitch + chunk * kChunkBytes,
          IsWithin(place, source.count) && chunk * kVector < plane.channels);
    }
  }

  /// Begins to copy a row as it lies in memory.
  __device__ __forceinline__ static void BeginRawCopy(
      const Plane& plane,
      Corner corner,
      const cuda::Divisor& columns,
      int row,
      unsigned to) {
    const Row source(plane, corner, static_cast<int>(columns.divisor), row);
    const unsigned char* from = source.begin - source.lead;
    const int bytes = source.count > 0 ? source.lead + source.count * source.pitch : 0;
    const std::int64_t left = plane.end - from;
#pragma unroll 4
    for (int i = Lane() * kChunkBytes; i < bytes; i += 32 * kChunkBytes) {
      cuda::BeginPartialCopy(
          to + i, from + i, i + kChunkBytes <= left ? kChunkBytes : static_cast<int>(left - i));
    }
  }

  /// Makes of that the row of a tile: a lane its position, and of a few that are left a chunk.
  __device__ __forceinline__ static void Unpack(
      const Plane& plane,
      Corner corner,
      const cuda::Divisor& columns,
      int row,
      const unsigned char* raw,
      unsigned char* to) {
    const auto count = static_cast<int>(columns.divisor);
    const Row source(plane, corner, count, row);
    int first = 0;
#pragma unroll 1
    for (; count - first > kMargin; first += 32) {
      const int column = first + Lane();
      if (column < count) {
        const Packed packed(source, raw, column, 0);
        auto* const chunks = reinterpret_cast<uint4*>(to + column * kPitch);
        packed.template Unpack<kChunks>(chunks);
        for (int chunk = plane.channels / kVector; chunk < kChunks; ++chunk) {
          chunks[chunk] = FirstOf(chunks[chunk], plane.channels - chunk * kVector);
        }
      }
    }
    static_assert(kMargin * kChunks <= 32, "each lane has a chunk of what is left");
    const int column = first + Lane() % kMargin;
    const int chunk = Lane() / kMargin;
    if (column < count && chunk < kChunks) {
      auto* const chunks = reinterpret_cast<uint4*>(to + column * kPitch) + chunk;
      Packed(source, raw, column, chunk).template Unpack<1>(chunks);
      *chunks = FirstOf(*chunks, plane.channels - chunk * kVector);
    }
  }

 private:
  static constexpr int kChunks = kRoom / kVector;

  /// What follows a chunk of a position's, which begins at an even byte.
  struct Packed {
    __device__ __forceinline__
    Packed(const Row& source, const unsigned char* raw, int column, int chunk) {
      const int place = column - source.margin;
      const bool exists = IsWithin(place, source.count);
      const int at = source.lead + (exists ? place * source.pitch : 0);
      words = reinterpret_cast<const std::uint32_t*>(raw) + at / 4 + chunk * (kChunkBytes / 4);
      shift = at % 4 * 8;
      mask = exists ? ~0U : 0U;
    }

    /// Without questions, so that all is read at once.
    template <int kUnpacked>
    __device__ __forceinline__ void Unpack(uint4* to) const {
      std::uint32_t low = words[0];
#pragma unroll
      for (int chunk = 0; chunk < kUnpacked; ++chunk) {
        std::uint32_t found[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t high = words[4 * chunk + i + 1];
          const std::uint64_t both = (std::uint64_t{high} << 32U) | low;
          found[i] = static_cast<std::uint32_t>(both >> shift) & mask;
          low = high;
        }
        to[chunk] = {found[0], found[1], found[2], found[3]};
      }
    }

    /// These begin so many bits after a word's begin. The mask is zero where there is no position.
    const std::uint32_t* words;
    unsigned shift;
    std::uint32_t mask;
  };

  /// A chunk without what is not of its first so many channels.
  __device__ __forceinline__ static uint4 FirstOf(uint4 chunk, int channels) {
    const auto first_of = [&](std::uint32_t word, int first) {
      return word & ((first < channels ? 0xFFFFU : 0U) | (first + 1 < channels ? 0xFFFF0000U : 0U));
    };
    return {first_of(chunk.x, 0), first_of(chunk.y, 2), first_of(chunk.z, 4), first_of(chunk.w, 6)};
  }
};

/// How tiles come to shared memory while others are multiplied. `Tiles` says of which rows a work's
/// tiles are, and where these are within kBytes, and before that within kRawBytes.
template <typename Tiles, bool kAreChunks, int kThreads>
class Pipeline {
 public:
  __device__ Pipeline(const Arguments& p, unsigned char* memory)
      : p_(p), memory_(memory), first_warp_(kThreads / 32 - kCopyWarps) {}

  /// Whether a thread's warp copies tiles, or multiplies them.
  [[nodiscard]] __device__ __forceinline__ bool Copies() const { return Warp() >= first_warp_; }

  /// Copies the tiles of a block's works: `next` is the number of the first one from another number
  /// on, and `work_of` the work.
  template <typename Next, typename WorkOf>
  __device__ __forceinline__ void CopyEach(const Next& next, const WorkOf& work_of) const {
    int number = next(static_cast<int>(blockIdx.x));
    Begin(number, work_of);
    int place = 0;
#pragma unroll 1
    while (number < p_.works) {
      cuda::WaitForCopies<0>();
      const int after = next(number + static_cast<int>(gridDim.x));
      if constexpr (kAreChunks) {
        cuda::SynchronizeBlock<kThreads>();  // the tile is there, and the other one has been read
        place = 1 - place;
        Begin(after, work_of, place);
      } else {
        cuda::SynchronizeWarp();
        Unpack(work_of(number), place);
        cuda::SynchronizeWarp();  // the rows have been read
        Begin(after, work_of);
        cuda::SynchronizeBlock<kThreads>();
        place = 1 - place;
      }
      number = after;
    }
  }

  /// Calls `use` with each of the works, and where its tiles are.
  template <typename Next, typename WorkOf, typename Use>
  __device__ __forceinline__ void UseEach(const Next& next, const WorkOf& work_of, const Use& use)
      const {
    int number = next(static_cast<int>(blockIdx.x));
    int place = 0;
#pragma unroll 1
    while (number < p_.works) {
      cuda::SynchronizeBlock<kThreads>();
      use(work_of(number), cuda::SharedAddress(memory_) + place * Tiles::kBytes);
      number = next(number + static_cast<int>(gridDim.x));
      place = 1 - place;
    }
  }

 private:
  __device__ __forceinline__ static int Warp() { return static_cast<int>(threadIdx.x) / 32; }

  /// Begins to copy a warp's rows of a work, if there is one.
  template <typename WorkOf>
  __device__ __forceinline__ void Begin(int number, const WorkOf& work_of, int place = 0) const {
    if (number < p_.works) {
      const unsigned memory = cuda::SharedAddress(memory_);
      Tiles::ForEachRow(
          p_, work_of(number), Warp() - first_warp_,
          [&](auto tile, const Plane& plane, Corner corner, const cuda::Divisor& columns, int row,
              int at, int raw_at) {
            using T = decltype(tile);
            if constexpr (kAreChunks) {
              T::BeginCopy(
                  plane, corner, columns, row,
                  memory + place * Tiles::kBytes + at + row * T::kRowPitch);
            } else {
              T::BeginRawCopy(
                  plane, corner, columns, row,
                  memory + 2 * Tiles::kBytes + raw_at + row * T::kRawRow);
            }
          });
    }
    cuda::EndOfCopies();
  }

  template <typename Work>
  __device__ __forceinline__ void Unpack(const Work& work, int place) const {
    Tiles::ForEachRow(
        p_, work, Warp() - first_warp_,
        [&](auto tile, const Plane& plane, Corner corner, const cuda::Divisor& columns, int row,
            int at, int raw_at) {
          using T = decltype(tile);
          T::Unpack(
              plane, corner, columns, row, memory_ + 2 * Tiles::kBytes + raw_at + row * T::kRawRow,
              memory_ + place * Tiles::kBytes + at + row * T::kRowPitch);
        });
  }

  const Arguments& p_;
  unsigned char* memory_;
  int first_warp_;
};

}  // namespace gradsmith::conv::few_channels

#endif  // GRADSMITH_CUDA_KERNELS_FEW_CHANNELS_CUH_
