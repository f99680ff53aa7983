#ifndef GRADSMITH_CONV_CUDA_KERNELS_FEW_CHANNELS_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_FEW_CHANNELS_CUH_

#include <cstddef>
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
  /// Of a position's, that tiles begin with.
  int first_chunk = 0;

  /// The channels from there on.
  [[nodiscard]] __device__ __forceinline__ int Left() const {
    return channels - first_chunk * kVector;
  }
};

__device__ __forceinline__ Plane
PlaneOf(const Arguments& p, const unsigned char* data, std::int64_t plane, int channels) {
  const std::int64_t bytes = std::int64_t{p.height} * p.width * channels * kElementBytes;
  return {data + plane * bytes, p.height, p.width, channels, data + p.planes * bytes};
}

/// The number of no work.
constexpr int kNone = -1;

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
    count = exists ? max(min(columns, plane.width - corner.column) - margin, 0) : 0;
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

/// What makes an odd number of chunks.
enum class Odd : unsigned char { kPositions, kRows };

/// A tile has kCount rows and room for kColumns columns and kRoom channels, of a plane's up to
/// kChannels. What lies outside of the plane, or beyond its channels, is zero. A warp copies a row.
template <int kRoom, int kCount, int kColumns, int kChannels = kRoom, Odd kOdd = Odd::kPositions>
class Tile {
 public:
  static constexpr int kCountOfRows = kCount;
  static constexpr int kPitch =
      kOdd == Odd::kPositions ? PitchBytes(kRoom) : kRoom * kElementBytes;
  static constexpr int kRowPitch =
      kOdd == Odd::kPositions ? kColumns * kPitch : OddChunks(kColumns * kRoom);
  static constexpr int kBytes = kCount * kRowPitch;
  static constexpr int kRawRow = RawRowBytes(kColumns, kChannels);
  static constexpr int kRawBytes = kCount * kRawRow;

  /// Begins to copy a row whose channels fill chunks to its memory.
  __device__ __forceinline__ static void
  BeginCopy(const Plane& plane, Corner corner, int columns, int row, unsigned to) {
    const Row source(plane, corner, columns, row);
    const unsigned char* begin = source.begin + plane.first_chunk * kChunkBytes;
    const int count = columns * kChunks;
#pragma unroll 4
    for (int i = Lane(); i < count; i += 32) {
      const int column = i / kChunks;
      const int chunk = i % kChunks;
      const int place = column - source.margin;
      cuda::BeginCopy(
          to + column * kPitch + chunk * kChunkBytes,
          begin + place * source.pitch + chunk * kChunkBytes,
          IsWithin(place, source.count) && chunk * kVector < plane.Left());
    }
  }

  /// Begins to copy a row as it lies in memory, by whole chunks, of which the first and the last
  /// hold more than the row. What is left where the tensor ends is copied at once.
  __device__ __forceinline__ static void
  BeginRawCopy(const Plane& plane, Corner corner, int columns, int row, unsigned char* to) {
    const Row source(plane, corner, columns, row);
    const unsigned char* from = source.begin - source.lead;
    const int bytes = source.count > 0 ? source.lead + source.count * source.pitch : 0;
    // A row beyond the plane may begin beyond the tensor's end.
    const std::int64_t left = max((plane.end - from) / kChunkBytes, std::ptrdiff_t{0});
    const int whole = left * kChunkBytes < bytes ? static_cast<int>(left) * kChunkBytes : bytes;
    const unsigned address = cuda::SharedAddress(to);
#pragma unroll 4
    for (int i = Lane() * kChunkBytes; i < whole; i += 32 * kChunkBytes) {
      cuda::BeginCopy(address + i, from + i, true);
    }
    if (const int i = whole + Lane() * kElementBytes; i < bytes) {
      *reinterpret_cast<std::uint16_t*>(to + i) = *reinterpret_cast<const std::uint16_t*>(from + i);
    }
  }

  /// Makes of that the row of a tile: a lane its position, and of a few that are left a chunk.
  __device__ __forceinline__ static void Unpack(
      const Plane& plane,
      Corner corner,
      int columns,
      int row,
      const unsigned char* raw,
      unsigned char* to) {
    const Row source(plane, corner, columns, row);
    int first = 0;
#pragma unroll 1
    for (; columns - first > kMargin; first += 32) {
      const int column = first + Lane();
      if (column < columns) {
        const Packed packed(source, raw, column, plane.first_chunk);
        auto* const chunks = reinterpret_cast<uint4*>(to + column * kPitch);
        packed.template Unpack<kChunks>(chunks);
        for (int chunk = plane.Left() / kVector; chunk < kChunks; ++chunk) {
          chunks[chunk] = FirstOf(chunks[chunk], plane.Left() - chunk * kVector);
        }
      }
    }
    static_assert(kMargin * kChunks <= 32, "each lane has a chunk of what is left");
    const int column = first + Lane() % kMargin;
    const int chunk = Lane() / kMargin;
    if (column < columns && chunk < kChunks) {
      auto* const chunks = reinterpret_cast<uint4*>(to + column * kPitch) + chunk;
      Packed(source, raw, column, plane.first_chunk + chunk).template Unpack<1>(chunks);
      *chunks = FirstOf(*chunks, plane.Left() - chunk * kVector);
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

    /// Unpack asks nothing on the way, so that all is read at once.
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

/// Loads a row of 16 terms by kEights times eight columns.
template <int kEights>
__device__ __forceinline__ void LoadEights(unsigned from, std::uint32_t (&to)[kEights][2]) {
#pragma unroll
  for (int i = 0; i + 1 < kEights; i += 2) {
    std::uint32_t read[4];
    cuda::LoadTransposed(from + i * kChunkBytes, read);
    to[i][0] = read[0];
    to[i][1] = read[1];
    to[i + 1][0] = read[2];
    to[i + 1][1] = read[3];
  }
  if constexpr (kEights % 2 != 0) {
    cuda::LoadTransposed(from + (kEights - 1) * kChunkBytes, to[kEights - 1]);
  }
}

/// How tiles come to shared memory while others are multiplied. `Tiles` says of which rows a work's
/// tiles are, and where these are within kBytes, and before that within kRawBytes. `Works` gives a
/// block's works: `First`, and the next one after a number, are numbers of them, or kNone.
template <typename Tiles, typename Works, bool kAreChunks, int kThreads, int kCopyWarps>
class Pipeline {
 public:
  __device__ Pipeline(const Arguments& p, const Works& works, unsigned char* memory)
      : p_(p), works_(works), memory_(memory) {}

  /// Whether a thread's warp copies tiles, or multiplies them.
  [[nodiscard]] __device__ __forceinline__ static bool Copies() { return Warp() >= kOtherWarps; }

  /// Copies the first work's tiles: all threads do, before what follows.
  __device__ __forceinline__ void Open() const {
    const int number = works_.First();
    Begin(number, 0, kAllWarps);
    cuda::WaitForCopies<0>();
    if constexpr (!kAreChunks) {
      cuda::SynchronizeWarp();
      Unpack(number, 0, kAllWarps);
    }
    cuda::SynchronizeBlock<kThreads>();
  }

  /// Copies those of the others.
  __device__ __forceinline__ void CopyEach() const {
    int number = works_.First();
    int after = works_.After(number);
    if constexpr (!kAreChunks) {
      Begin(after, 0, kCopyWarps);
    }
    int place = 0;
#pragma unroll 1
    while (number != kNone) {
      place = 1 - place;
      number = after;
      after = works_.After(number);
      if constexpr (kAreChunks) {
        Begin(number, place, kCopyWarps);
        cuda::WaitForCopies<0>();
      } else {
        cuda::WaitForCopies<0>();
        cuda::SynchronizeWarp();
        Unpack(number, place, kCopyWarps);
        cuda::SynchronizeWarp();  // the rows have been read
        Begin(after, 0, kCopyWarps);
      }
      cuda::SynchronizeBlock<kThreads>();  // tiles are there, and those before have been read
    }
  }

  /// Calls `use` with each of the works, and where its tiles are.
  template <typename Use>
  __device__ __forceinline__ void UseEach(const Use& use) const {
    int place = 0;
#pragma unroll 1
    for (int number = works_.First(); number != kNone; number = works_.After(number)) {
      use(works_.At(number), cuda::SharedAddress(memory_) + place * Tiles::kBytes);
      cuda::SynchronizeBlock<kThreads>();
      place = 1 - place;
    }
  }

 private:
  static constexpr int kAllWarps = kThreads / 32;
  static constexpr int kOtherWarps = kAllWarps - kCopyWarps;

  __device__ __forceinline__ static int Warp() { return static_cast<int>(threadIdx.x) / 32; }

  /// Calls `use` with a warp's rows of a work, of which there may be none: so many warps share it.
  template <typename Use>
  __device__ __forceinline__ void ForEachRow(int number, int warps, const Use& use) const {
    if (number != kNone) {
      Tiles::ForEachRow(p_, works_.At(number), Warp() - (kAllWarps - warps), warps, use);
    }
  }

  __device__ __forceinline__ void Begin(int number, int place, int warps) const {
    const unsigned memory = cuda::SharedAddress(memory_);
    ForEachRow(
        number, warps,
        [&](auto tile, const Plane& plane, Corner corner, int columns, int row, int at,
            int raw_at) {
          using T = decltype(tile);
          if constexpr (kAreChunks) {
            T::BeginCopy(
                plane, corner, columns, row,
                memory + place * Tiles::kBytes + at + row * T::kRowPitch);
          } else {
            T::BeginRawCopy(
                plane, corner, columns, row,
                memory_ + 2 * Tiles::kBytes + raw_at + row * T::kRawRow);
          }
        });
    cuda::EndOfCopies();
  }

  __device__ __forceinline__ void Unpack(int number, int place, int warps) const {
    ForEachRow(
        number, warps,
        [&](auto tile, const Plane& plane, Corner corner, int columns, int row, int at,
            int raw_at) {
          using T = decltype(tile);
          T::Unpack(
              plane, corner, columns, row, memory_ + 2 * Tiles::kBytes + raw_at + row * T::kRawRow,
              memory_ + place * Tiles::kBytes + at + row * T::kRowPitch);
        });
  }

  const Arguments& p_;
  const Works& works_;
  unsigned char* memory_;
};

}  // namespace gradsmith::conv::few_channels

// Each configuration of a kernel: kernel(name of the type, its math, name of the copies, whether
// channels fill chunks, configuration).
#define GRADSMITH_FEW_CHANNELS_CONFIG(kernel, config)                            \
  kernel(f16, Half, chunks, true, config) kernel(f16, Half, rows, false, config) \
      kernel(bf16, Bfloat16, chunks, true, config) kernel(bf16, Bfloat16, rows, false, config)
#define GRADSMITH_FEW_CHANNELS_FORMS(kernel) \
  GRADSMITH_FEW_CHANNELS_CONFIG(kernel, 0)     \
  GRADSMITH_FEW_CHANNELS_CONFIG(kernel, 1)     \
  GRADSMITH_FEW_CHANNELS_CONFIG(kernel, 2)     \
  GRADSMITH_FEW_CHANNELS_CONFIG(kernel, 3)     \
  GRADSMITH_FEW_CHANNELS_CONFIG(kernel, 4)
static_assert(gradsmith::conv::few_channels::kConfigs == 5, "each config has kernels");

#endif  // GRADSMITH_CONV_CUDA_KERNELS_FEW_CHANNELS_CUH_
