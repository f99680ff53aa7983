#ifndef GRADSMITH_CONV_CUDA_KERNELS_FIRST_LAYERS_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_FIRST_LAYERS_CUH_

#include <cstdint>
#include <cstring>

#include "conv/cuda/first_layers_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

/// The filter's gradient of a first layer; see conv/cuda/first_layers.h. A block goes
/// down a strip of an image, with the rows of dY and x that it needs in shared memory, and its warps
/// multiply dY with x.
namespace gradsmith::conv::first_layers {
namespace {

using cuda::BeginCopy;
using cuda::DivideBy;
using cuda::IsWithin;
using cuda::Lane;
using cuda::LoadTransposed;

/// What a configuration comes to, by such steps, for products with so many pairs of taps and with
/// so many threads that copy rows of dY, and as many that copy those of x.
template <
    int kSteps, int kChannelsOfConfig, int kWindowOfConfig, int kRowsOfConfig, int kPairsOfTaps,
    int kCopying>
struct RoomOf {
  static constexpr int kStep = kSteps;
  static constexpr KernelConfig kShape = {kChannelsOfConfig, kWindowOfConfig, kRowsOfConfig};
  static constexpr int kChannels = kChannelsOfConfig;
  static constexpr int kWindow = kWindowOfConfig;
  static constexpr int kRows = kRowsOfConfig;
  static constexpr int kPairs = kPairsOfTaps;
  static constexpr int kCopyingThreads = kCopying;
  static constexpr int kBlocks = kChannels / kTile;
  static constexpr int kRowsAtOnce = RowsAtOnce(kShape);
  static constexpr int kRing = RowsOfRing(kShape);
  static constexpr int kRowBytes = RowBytes(kShape);
  static constexpr int kPositionBytes = kChannels * kElementBytes;
  static constexpr int kChunks = kChannels / kVector;
  static constexpr int kColumns = kRowBytes / kPositionBytes;
  static constexpr int kBytesOfRows = kRing * kRowBytes;
  static constexpr int kBytesOfFilter = FilterBytes(kShape);
  static constexpr int kPixels = PixelsOfRow(kStep);
  static constexpr int kPixelCopies = CopiesOfPixels(kStep);
  static constexpr int kPixelCopyBytes = PixelCopyBytes(kStep);
  static constexpr int kPixelRowBytes = kPixelCopies * kPixelCopyBytes;
  /// In shared memory sums lie by channel of y and row of taps: of each so many, of pairs of taps
  /// with kPixelChannels each. Behind the channels of the first tap of all is the sum of dY's
  /// channel.
  static constexpr int kSums = 2 * kPairs * kPixelChannels;
};

/// Which of those that copy a thread is.
template <typename Memory>
__device__ __forceinline__ int CopyingThread() {
  return cuda::ThreadReadAnew() % Memory::kCopyingThreads;
}

/// Where a chunk of channels is within a row of dY: neighbouring positions' chunks are in different
/// banks.
template <int kChannels>
__device__ __forceinline__ unsigned PlaceOf(int column, int chunk) {
  constexpr int kBytes = kChannels * kElementBytes;
  constexpr int kLine = 128;
  constexpr int kChunks = kBytes / kChunkBytes;
  const int turn = column / (kLine / kBytes) % kChunks;
  return column * kBytes + (chunk ^ turn) * kChunkBytes;
}

/// The work that a block is at.
struct Work {
  int image;
  int first_column;
  int columns;
  int first_row;
  int end_row;
};

__device__ __forceinline__ Work WorkOf(const Arguments& p, int number) {
  const int segments = DivideBy(p.segments, &number);
  const int segment = number;
  number = segments;
  const int image = DivideBy(p.strips, &number);
  const int first_column = number * p.strip;
  const int first_row = segment * p.segment;
  return {
      image, first_column, min(p.strip, p.positions[1] - first_column), first_row,
      min(first_row + p.segment, p.positions[0])};
}

/// The rows of dY in shared memory: those at hand, and the next ones on their way.
template <typename Memory, typename T>
class Rows {
 public:
  /// Rows reads channels of y from `first_channel` on.
  __device__ Rows(const Arguments& p, const T* from, unsigned memory, int first_channel = 0)
      : p_(p), from_(from), memory_(memory), first_channel_(first_channel) {}

  /// A work's first step begins.
  __device__ __forceinline__ void Open() { first_ = 0; }
  /// Begins to copy the rows of that step.
  __device__ __forceinline__ void CopyFirst(const Work& work) {
    Copy<Memory::kRowsAtOnce>(work, work.first_row + p_.begin[0], 0);
  }
  /// Begins to copy what the step after that from `row` on has of its own.
  __device__ __forceinline__ void CopyNext(const Work& work, int row) {
    Copy<Memory::kRows>(work, row + p_.begin[0] + Memory::kRowsAtOnce, SlotOf(Memory::kRowsAtOnce));
  }
  /// Begins to copy the first rows of the work that comes next, where they are no more than those
  /// of each step.
  __device__ __forceinline__ void CopyNextWork(const Work& work) {
    static_assert(Memory::kRowsAtOnce == Memory::kRows);
    Copy<Memory::kRows>(work, work.first_row + p_.begin[0], SlotOf(Memory::kRows));
  }
  __device__ __forceinline__ void Advance() { first_ = SlotOf(Memory::kRows); }

  /// The memory of a step's row.
  [[nodiscard]] __device__ __forceinline__ unsigned At(int row) const {
    return memory_ + SlotOf(row) * Memory::kRowBytes;
  }

 private:
  [[nodiscard]] __device__ __forceinline__ int SlotOf(int row) const {
    const int slot = first_ + row;
    return slot < Memory::kRing ? slot : slot - Memory::kRing;
  }

  template <int kCount>
  __device__ __forceinline__ void Copy(const Work& work, int row, int slot) {
    constexpr int kStepOfColumns = Memory::kCopyingThreads / Memory::kChunks;
    static_assert(kStepOfColumns % 16 == 0, "chunks of a thread's columns have the same turn");
    constexpr int kPasses = (Memory::kColumns + kStepOfColumns - 1) / kStepOfColumns;
    const int chunk = CopyingThread<Memory>() % Memory::kChunks;
    const int first = CopyingThread<Memory>() / Memory::kChunks;
    const bool has_channels = first_channel_ + chunk * kVector < p_.y_channels;
    const int columns = (work.columns + kTile - 1) / kTile * kTile + Memory::kWindow - 1;
    const int first_at = work.first_column + p_.begin[1] + first;
    const std::int64_t pixels = std::int64_t{work.image} * p_.y[0] + row;
    const T* source =
        from_ + (pixels * p_.y[1] + first_at) * p_.y_channels + first_channel_ + chunk * kVector;
    const unsigned place = memory_ + PlaceOf<Memory::kChannels>(first, chunk);
    bool exists[kPasses];
#pragma unroll
    for (int j = 0; j < kPasses; ++j) {
      exists[j] = has_channels && IsWithin(first_at + j * kStepOfColumns, p_.y[1]);
    }
    const int step = kStepOfColumns * p_.y_channels;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool is_row = IsWithin(row + i, p_.y[0]);
      const unsigned to = place + slot * Memory::kRowBytes;
#pragma unroll
      for (int j = 0; j < kPasses; ++j) {
        if (first + j * kStepOfColumns < columns) {
          BeginCopy(
              to + j * kStepOfColumns * Memory::kPositionBytes, source + j * step,
              is_row && exists[j]);
        }
      }
      source += p_.y[1] * p_.y_channels;
      slot = slot + 1 < Memory::kRing ? slot + 1 : 0;
    }
    cuda::EndOfCopies();
  }

  const Arguments& p_;
  const T* from_;
  unsigned memory_;
  int first_channel_;
  int first_ = 0;
};

/// The rows of x in shared memory, where each pixel has room for kMostChannels channels and a one.
/// The next rows are fetched to registers, and stored where the oldest were.
template <typename Memory, typename T>
class Pixels {
 public:
  __device__ Pixels(const Arguments& p, const T* from, unsigned char* memory)
      : p_(p), from_(from), memory_(memory) {
    rows_ = kStep * (Memory::kRows - 1) + p.w[0];
  }

  /// Fetches rows of a work from `row` on, which are stored from `slot` on: each warp one, or a part
  /// of one.
  __device__ __forceinline__ void Fetch(const Work& work, int row, int slot, int count) {
    const int line = CopyingThread<Memory>() / (32 * kWarpsOfRow);
    const int at = slot + line;
    slot_ = line < count ? (at < rows_ ? at : at - rows_) : kNone;
    const int first = kStep * work.first_column - p_.pad[1] + FirstOfLane();
    const bool is_row = line < count && IsWithin(row + line, p_.x[0]);
    const std::int64_t rows = std::int64_t{work.image} * p_.x[0] + row + line;
    const T* source = from_ + (rows * p_.x[1] + first) * p_.x_channels;
    if (p_.x_channels == 3) {
      FetchRow<3>(source, first, is_row);
    } else if (p_.x_channels == 2) {
      FetchRow<2>(source, first, is_row);
    } else {
      FetchRow<1>(source, first, is_row);
    }
  }

  __device__ __forceinline__ void Store() const {
    if (slot_ == kNone) {
      return;
    }
    unsigned char* to = memory_ + slot_ * Memory::kPixelRowBytes + FirstOfLane() * kPixelBytes;
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      T pixel[kPixelChannels];
#pragma unroll
      for (int channel = 0; channel < kMostChannels; ++channel) {
        pixel[channel] = fetched_[i][channel];
      }
      pixel[kMostChannels] = T(1.0F);
      if (kApart * i + FirstOfLane() < Memory::kPixels) {
        uint2 bits;
        memcpy(&bits, pixel, sizeof(bits));
        unsigned char* const place = to + kApart * i * kPixelBytes;
        *reinterpret_cast<uint2*>(place) = bits;
        if (Memory::kPixelCopies > 1 && kApart * i + FirstOfLane() > 0) {
          *reinterpret_cast<uint2*>(place + Memory::kPixelCopyBytes - kPixelBytes) = bits;
        }
      }
    }
  }

  /// A work's first step begins.
  __device__ __forceinline__ void Open() { first_ = 0; }
  /// Fetches the first rows of that step.
  __device__ __forceinline__ void FetchFirst(const Work& work) { FetchOfFirst(work, 0); }
  /// Stores them, and loads the others.
  __device__ __forceinline__ void LoadFirst(const Work& work) {
    Store();
    for (int row = kRowsAtOnce; row < rows_; row += kRowsAtOnce) {
      FetchOfFirst(work, row);
      Store();
    }
  }
  /// Fetches what the step after that from `row` on has of its own.
  __device__ __forceinline__ void FetchNext(const Work& work, int row) {
    Fetch(work, FirstRowOf(row) + rows_, first_, kRowsAtOnce);
  }
  __device__ __forceinline__ void Advance() { first_ = SlotOf(kRowsAtOnce); }

  /// The memory of the row that a step's row of dY meets with a row of taps.
  [[nodiscard]] __device__ __forceinline__ unsigned At(int row, int tap) const {
    return cuda::SharedAddress(memory_) + SlotOf(kStep * row + tap) * Memory::kPixelRowBytes;
  }

 private:
  static constexpr int kStep = Memory::kStep;
  /// A step's own rows.
  static constexpr int kRowsAtOnce = kStep * Memory::kRows;
  static constexpr int kWarpsOfRow = Memory::kCopyingThreads / 32 / kRowsAtOnce;
  static_assert(kWarpsOfRow * kRowsAtOnce * 32 == Memory::kCopyingThreads);
  /// How far a lane's pixel is from its next.
  static constexpr int kApart = 32 * kWarpsOfRow;
  static constexpr int kShare = (Memory::kPixels + kApart - 1) / kApart;
  static constexpr int kNone = -1;

  /// The first pixel of a row that a lane copies.
  [[nodiscard]] __device__ __forceinline__ static int FirstOfLane() {
    return kWarpsOfRow == 1 ? Lane() : CopyingThread<Memory>() % kApart;
  }

  /// FetchRow fetches a lane's pixels of a row; what does not exist is zero.
  template <int kChannels>
  __device__ __forceinline__ void FetchRow(const T* source, int first, bool is_row) {
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      const bool exists = is_row && IsWithin(first + kApart * i, p_.x[1]);
#pragma unroll
      for (int channel = 0; channel < kMostChannels; ++channel) {
        T value = T(0.0F);
        if (channel < kChannels && exists) {
          value = source[kApart * i * kChannels + channel];
        }
        fetched_[i][channel] = value;
      }
    }
  }

  __device__ __forceinline__ void FetchOfFirst(const Work& work, int row) {
    Fetch(work, FirstRowOf(work.first_row) + row, row, min(kRowsAtOnce, rows_ - row));
  }

  [[nodiscard]] __device__ __forceinline__ int FirstRowOf(int row) const {
    return kStep * row - p_.pad[0];
  }
  [[nodiscard]] __device__ __forceinline__ int SlotOf(int row) const {
    int slot = first_ + row;
    while (slot >= rows_) {
      slot -= rows_;
    }
    return slot;
  }

  const Arguments& p_;
  const T* from_;
  unsigned char* memory_;
  int rows_;
  int first_ = 0;
  int slot_ = kNone;
  T fetched_[kShare][kMostChannels];
};

/// A warp's sums of dW: all channels of y, of one row of taps. What a pixel has beyond its channels
/// is one, so that the products with it are the sums of dY's channels.
template <typename Math, typename Memory>
class FilterGradient {
 public:
  using T = typename Math::T;

  __device__ FilterGradient(const Arguments& p, int warp) : p_(p) {
    turn_ = warp / p.w[0];
    tap_ = warp - turn_ * p.w[0];
  }

  __device__ __forceinline__ void
  Add(const Work& work, int row, const Rows<Memory, T>& rows, const Pixels<Memory, T>& pixels) {
    if (turn_ >= p_.turns) {
      return;
    }
    const int count = min(Memory::kRows, min(work.end_row, p_.y[0]) - row);
    const int tiles = (min(work.columns, p_.y[1] - work.first_column) + kTile - 1) / kTile;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      AddRow(rows.At(i - p_.begin[0]), pixels.At(i, tap_), tiles);
    }
  }

  /// The same, where warps take turns with the tiles of all rows: of few tiles in a row each warp
  /// has as many as the others.
  __device__ __forceinline__ void AddInTurns(
      const Work& work,
      int row,
      const Rows<Memory, T>& rows,
      const Pixels<Memory, T>& pixels) {
    if (turn_ >= p_.turns) {
      return;
    }
    const int count = min(Memory::kRows, work.end_row - row);
    const int tiles = (work.columns + kTile - 1) / kTile;
    int tile = turn_;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const unsigned y = rows.At(i) + PlaceInRow();
      const unsigned x = pixels.At(i, tap_) + PlaceOfTaps();
#pragma unroll 1
      for (; tile < tiles; tile += p_.turns) {
        std::uint32_t a[Memory::kBlocks][4];
        LoadPositions(y + tile * kTileBytes, a);
        std::uint32_t taps[kPairs / 2][4];
        LoadTaps(x + tile * kTileOfTapsBytes, taps);
        std::uint32_t b[kPairs][2];
        TakeTaps(taps, b);
        AddProducts(a, b);
      }
      tile -= tiles;
    }
  }

  /// Which of the warps that take turns this one is; from p.turns on none of them.
  [[nodiscard]] __device__ __forceinline__ int turn() const { return turn_; }

  /// Leaves the sums in shared memory, as kSums says, or adds them to those of the turns before.
  __device__ __forceinline__ void Leave(float2* to, bool adds) const {
    to += (Lane() / 4 * p_.w[0] + tap_) * (kSums / 2) + Lane() % 4;
#pragma unroll
    for (int i = 0; i < Memory::kBlocks; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2* const row = to + (i * kTile + half * 8) * p_.w[0] * (kSums / 2);
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          const float(&sums)[4] = sums_[i][j];
          const float2 before = adds ? row[j * kPixelChannels] : float2{0, 0};
          row[j * kPixelChannels] = {before.x + sums[2 * half], before.y + sums[2 * half + 1]};
        }
      }
    }
  }

 private:
  static constexpr int kPairs = Memory::kPairs;
  static constexpr int kSums = Memory::kSums;
  static constexpr int kTileBytes = kTile * Memory::kPositionBytes;
  static constexpr int kTileOfTapsBytes = kTile * Memory::kStep * kPixelBytes;

  /// Where a lane's row of dY is, of which a tile's 16 positions by 16 channels are loaded
  /// transposed, within a row's memory. The next channels' chunks differ in two bits.
  [[nodiscard]] __device__ __forceinline__ unsigned PlaceInRow() const {
    const int column = Lane() % 8 + Lane() / 16 * 8 - p_.begin[1];
    return PlaceOf<Memory::kChannels>(column, Lane() / 8 % 2);
  }

  /// PlaceOfTaps returns where the pixels of a lane's position are within a row of x; the upper
  /// lanes have the next pair.
  [[nodiscard]] __device__ __forceinline__ static unsigned PlaceOfTaps() {
    const int position = Lane() % kTile;
    const int pair = Lane() / kTile;
    if constexpr (Memory::kStep == 1) {
      return position % 2 * Memory::kPixelCopyBytes + (position / 2 + pair) * kChunkBytes;
    } else {
      return (position + pair) * kChunkBytes;
    }
  }

  __device__ __forceinline__ void AddRow(unsigned y, unsigned x, int tiles) {
    y += PlaceInRow();
    x += PlaceOfTaps();
    std::uint32_t next[kPairs / 2][4];
    LoadTaps(x + turn_ * kTile * kChunkBytes, next);
#pragma unroll 1
    for (int tile = turn_; tile < tiles; tile += p_.turns) {
      std::uint32_t a[Memory::kBlocks][4];
      LoadPositions(y + tile * kTileBytes, a);
      std::uint32_t b[kPairs][2];
      TakeTaps(next, b);
      // While these are multiplied; those of the last tile come again.
      LoadTaps(x + min(tile + p_.turns, kMostTiles - 1) * kTile * kChunkBytes, next);
      AddProducts(a, b);
    }
  }

  /// LoadPositions loads a tile's positions by channels of y.
  __device__ __forceinline__ static void LoadPositions(
      unsigned from,
      std::uint32_t (&to)[Memory::kBlocks][4]) {
#pragma unroll
    for (int i = 0; i < Memory::kBlocks; ++i) {
      LoadTransposed(from ^ (i * 2 * kChunkBytes), to[i]);
    }
  }

  __device__ __forceinline__ static void TakeTaps(
      const std::uint32_t (&from)[kPairs / 2][4],
      std::uint32_t (&to)[kPairs][2]) {
#pragma unroll
    for (int j = 0; j < kPairs * 2; ++j) {
      to[j / 2][j % 2] = from[j / 4][j % 4];
    }
  }

  __device__ __forceinline__ void AddProducts(
      const std::uint32_t (&a)[Memory::kBlocks][4],
      const std::uint32_t (&b)[kPairs][2]) {
#pragma unroll
    for (int i = 0; i < Memory::kBlocks; ++i) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        Math::AddProduct(a[i], b[j], sums_[i][j]);
      }
    }
  }

  /// LoadTaps loads the pixels of a row of taps for 16 positions.
  __device__ __forceinline__ static void LoadTaps(
      unsigned from,
      std::uint32_t (&to)[kPairs / 2][4]) {
#pragma unroll
    for (int j = 0; j < kPairs / 2; ++j) {
      LoadTransposed(from + 2 * j * kChunkBytes, to[j]);
    }
  }

  const Arguments& p_;
  int turn_;
  int tap_;
  float sums_[Memory::kBlocks][kPairs][4] = {};
};

/// Writes a block's sums, of so many channels of y from `first_channel` on, to its slice; those of
/// the channels alone where there is a place for them.
template <typename Memory, int kThreads>
__device__ __forceinline__ void StoreSums(
    const Arguments& p,
    const float* from,
    int first_channel,
    int channels,
    float* partial,
    float* partial_channels) {
  constexpr int kSums = Memory::kSums;
  const std::int64_t before = static_cast<std::int64_t>(blockIdx.x) * p.y_channels + first_channel;
  const int rows = channels * p.w[0];
  const int count = p.w[1] * p.x_channels;
  if (const int tap = Lane() / p.x_channels; tap < p.w[1]) {
    const float* row = from + tap * kPixelChannels + Lane() - tap * p.x_channels;
    float* const to = partial + before * p.w[0] * count + Lane();
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) / 32; i < rows; i += kThreads / 32) {
      to[i * count] = row[i * kSums];
    }
  }
  const auto channel = static_cast<int>(threadIdx.x);
  if (partial_channels != nullptr && channel < channels) {
    partial_channels[before + channel] = from[channel * p.w[0] * kSums + kMostChannels];
  }
}

/// Asks the L2 cache for what a work begins with, a line for each thread: small images wait for
/// memory at every step otherwise.
template <int kStep, typename T>
__device__ __forceinline__ void
Prefetch(const Arguments& p, const T* x, const T* y, const Work& work) {
  constexpr int kLine = 128 / kElementBytes;
  const std::int64_t ahead = std::int64_t{kLine} * threadIdx.x;
  const auto from_row = [&](const T* from, int row, int rows, int width, int channels) {
    const std::int64_t elements = std::int64_t{rows} * width * channels;
    const std::int64_t at = std::int64_t{max(row, 0)} * width * channels + ahead;
    if (at < elements) {
      cuda::PrefetchToL2(from + work.image * elements + at);
    }
  };
  from_row(y, work.first_row + p.begin[0], p.y[0], p.y[1], p.y_channels);
  from_row(x, kStep * work.first_row - p.pad[0], p.x[0], p.x[1], p.x_channels);
}

}  // namespace
}  // namespace gradsmith::conv::first_layers

#endif  // GRADSMITH_CONV_CUDA_KERNELS_FIRST_LAYERS_CUH_
