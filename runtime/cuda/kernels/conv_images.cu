#include <cstdint>
#include <cstring>

#include "conv/cuda/images_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/turns.cuh"

/// All gradients of a convolution that takes images, in one pass over dY; see conv/cuda/images.h.
/// A block goes down a strip of an image, with the rows of dY and x that it needs in shared memory:
/// half of its warps multiply dY with the filter, for dX, the others with x, for dW.
namespace gradsmith::conv::images {
namespace {

using cuda::BeginCopy;
using cuda::Bfloat16;
using cuda::DivideBy;
using cuda::Half;
using cuda::IsWithin;
using cuda::Lane;
using cuda::LoadMatrices;
using cuda::LoadTransposed;

/// What a form comes to.
template <int kForm>
struct Room {
  static constexpr Form kShape = kFormAt[kForm];
  static constexpr int kChannels = kShape.channels;
  static constexpr int kWindow = kShape.window;
  static constexpr int kBlocks = kChannels / kTile;
  static constexpr int kRowsAtOnce = RowsAtOnce(kShape);
  static constexpr int kRing = RowsOfRing(kShape);
  static constexpr int kRowBytes = RowBytes(kShape);
  static constexpr int kPositionBytes = kChannels * kElementBytes;
  static constexpr int kChunks = kChannels / kVector;
  static constexpr int kColumns = kRowBytes / kPositionBytes;
  static constexpr int kBytesOfRows = kRing * kRowBytes;
  static constexpr int kBytesOfFilter = FilterBytes(kShape);
};

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

/// The warps that multiply for dW copy rows of dY, the others those of x.
constexpr int kCopyingThreads = kThreads / 2;
__device__ __forceinline__ int CopyingThread() {
  return cuda::ThreadReadAnew() % kCopyingThreads;
}

/// The rows of dY in shared memory: those at hand, and the next ones on their way.
template <int kForm, typename T>
class Rows {
 public:
  __device__ Rows(const Arguments& p, const T* from, unsigned memory)
      : p_(p), from_(from), memory_(memory) {}

  /// A work's first step begins.
  __device__ __forceinline__ void Open() { first_ = 0; }
  /// Begins to copy the rows of that step.
  __device__ __forceinline__ void CopyFirst(const Work& work) {
    Copy<Memory::kRowsAtOnce>(work, work.first_row + p_.begin[0], 0);
  }
  /// Begins to copy what the step after that from `row` on has of its own.
  __device__ __forceinline__ void CopyNext(const Work& work, int row) {
    Copy<kRows>(work, row + p_.begin[0] + Memory::kRowsAtOnce, SlotOf(Memory::kRowsAtOnce));
  }
  __device__ __forceinline__ void Advance() { first_ = SlotOf(kRows); }

  /// The memory of a step's row.
  [[nodiscard]] __device__ __forceinline__ unsigned At(int row) const {
    return memory_ + SlotOf(row) * Memory::kRowBytes;
  }

 private:
  using Memory = Room<kForm>;

  [[nodiscard]] __device__ __forceinline__ int SlotOf(int row) const {
    const int slot = first_ + row;
    return slot < Memory::kRing ? slot : slot - Memory::kRing;
  }

  template <int kCount>
  __device__ __forceinline__ void Copy(const Work& work, int row, int slot) {
    constexpr int kStepOfColumns = kCopyingThreads / Memory::kChunks;
    static_assert(kStepOfColumns % 16 == 0, "chunks of a thread's columns have the same turn");
    constexpr int kPasses = (Memory::kColumns + kStepOfColumns - 1) / kStepOfColumns;
    const int chunk = CopyingThread() % Memory::kChunks;
    const int first = CopyingThread() / Memory::kChunks;
    const bool has_channels = chunk * kVector < p_.y_channels;
    const int columns = (work.columns + kTile - 1) / kTile * kTile + Memory::kWindow - 1;
    const int first_at = work.first_column + p_.begin[1] + first;
    const std::int64_t pixels = std::int64_t{work.image} * p_.y[0] + row;
    const T* source = from_ + (pixels * p_.y[1] + first_at) * p_.y_channels + chunk * kVector;
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
  int first_ = 0;
};

/// The rows of x in shared memory, where each pixel has room for kMostChannels channels and a one.
/// The next rows are fetched to registers, and stored where the oldest were.
template <typename T>
class Pixels {
 public:
  __device__ Pixels(const Arguments& p, const T* from, unsigned char* memory)
      : p_(p), from_(from), memory_(memory) {
    rows_ = kStep * (kRows - 1) + p.w[0];
  }

  /// Fetches rows of a work from `row` on, which are stored from `slot` on: each warp one.
  __device__ __forceinline__ void Fetch(const Work& work, int row, int slot, int count) {
    const int line = CopyingThread() / 32;
    const int at = slot + line;
    slot_ = line < count ? (at < rows_ ? at : at - rows_) : kNone;
    const int first = kStep * work.first_column - p_.pad[1] + Lane();
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
    unsigned char* to = memory_ + slot_ * kPixelRowBytes + Lane() * kPixelBytes;
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      T pixel[kPixelChannels];
#pragma unroll
      for (int channel = 0; channel < kMostChannels; ++channel) {
        pixel[channel] = fetched_[i][channel];
      }
      pixel[kMostChannels] = T(1.0F);
      if (32 * i + Lane() < kPixels) {
        uint2 bits;
        memcpy(&bits, pixel, sizeof(bits));
        *reinterpret_cast<uint2*>(to + 32 * i * kPixelBytes) = bits;
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
    return cuda::SharedAddress(memory_) + SlotOf(kStep * row + tap) * kPixelRowBytes;
  }

 private:
  /// A step's own rows.
  static constexpr int kRowsAtOnce = kStep * kRows;
  static_assert(kRowsAtOnce * 32 == kCopyingThreads, "each warp fetches a row");
  static constexpr int kShare = (kPixels + 31) / 32;
  static constexpr int kNone = -1;

  /// Of a row, a lane's pixels; what does not exist is zero.
  template <int kChannels>
  __device__ __forceinline__ void FetchRow(const T* source, int first, bool is_row) {
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      const bool exists = is_row && IsWithin(first + 32 * i, p_.x[1]);
#pragma unroll
      for (int channel = 0; channel < kMostChannels; ++channel) {
        T value = T(0.0F);
        if (channel < kChannels && exists) {
          value = source[32 * i * kChannels + channel];
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

/// The filter's element that a position of dY, `down` and `right` within the window, is multiplied
/// with for an element of 2 by 2 pixels: row `row`, and `element` of its two pixels' channels.
template <typename T>
__device__ __forceinline__ T FilterAt(
    const Arguments& p,
    const T* filter,
    int channel,
    int down,
    int right,
    int row,
    int element) {
  const int pixel = (element >= p.x_channels ? 1 : 0) + (element >= kStep * p.x_channels ? 1 : 0);
  const int tap_down = row + p.pad[0] - kStep * (p.begin[0] + down);
  const int tap_right = pixel + p.pad[1] - kStep * (p.begin[1] + right);
  if (channel >= p.y_channels || pixel >= kStep || !IsWithin(tap_down, p.w[0]) ||
      !IsWithin(tap_right, p.w[1])) {
    return T(0.0F);
  }
  const int tap = (channel * p.w[0] + tap_down) * p.w[1] + tap_right;
  return filter[tap * p.x_channels + element - pixel * p.x_channels];
}

/// Stores the filter in the order in which lanes take it: for each position of the window and 16
/// channels, each lane's terms of both rows of pixels.
template <int kForm, typename T>
__device__ __forceinline__ void StoreFilter(const Arguments& p, const T* filter, uint4* memory) {
  using Memory = Room<kForm>;
  constexpr int kCount = Memory::kWindow * Memory::kWindow * Memory::kBlocks * 32;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += kThreads) {
    const int block = i / 32 % Memory::kBlocks;
    const int place = i / 32 / Memory::kBlocks;
    const int channel = block * kTile + i % 4 * 2;
    T terms[kVector];
#pragma unroll
    for (int j = 0; j < kVector; ++j) {
      terms[j] = FilterAt(
          p, filter, channel + j % 2 + j / 2 % 2 * 8, place / Memory::kWindow,
          place % Memory::kWindow, j / 4, i % 32 / 4);
    }
    memcpy(memory + i, terms, sizeof(terms));
  }
}

/// A warp's tile of dX: of 16 positions in a step's rows, 2 by 2 pixels. Where strips are narrow
/// warps share the rows.
template <typename Math, int kForm>
class DataGradient {
 public:
  using T = typename Math::T;

  __device__ DataGradient(const Arguments& p, int warp, const uint4* filter, T* to, bool accumulate)
      : p_(p),
        filter_(filter),
        to_(to),
        accumulate_(accumulate),
        pairs_are_aligned_(p.x[1] * p.x_channels % 2 == 0) {
    const int tiles = p.strip / kTile;
    const int across = tiles > kWarps / 2 ? kWarps : tiles > kWarps / 4 ? kWarps / 2 : kWarps / 4;
    rows_ = kRows * across / kWarps;
    first_ = warp % across * kTile;
    first_row_ = warp / across * rows_;
  }

  __device__ __forceinline__ void Write(const Work& work, int row, const Rows<kForm, T>& rows)
      const {
    if (first_ >= work.columns) {
      return;
    }
    if (rows_ == kRows) {
      WriteRows<kRows>(work, row, rows);
    } else if (rows_ == kRows / 2) {
      WriteRows<kRows / 2>(work, row, rows);
    } else {
      WriteRows<kRows / 4>(work, row, rows);
    }
  }

 private:
  using Memory = Room<kForm>;

  template <int kCount>
  __device__ __forceinline__ void WriteRows(const Work& work, int row, const Rows<kForm, T>& rows)
      const {
    float sums[kCount][kStep][4] = {};
    unsigned memory[kCount + Memory::kWindow - 1];
#pragma unroll
    for (int i = 0; i < kCount + Memory::kWindow - 1; ++i) {
      memory[i] = rows.At(first_row_ + i);
    }
#pragma unroll 1
    for (int right = 0; right < Memory::kWindow; ++right) {
#pragma unroll
      for (int block = 0; block < Memory::kBlocks; ++block) {
        Add<kCount>(memory, right, block, sums);
      }
    }
    Store<kCount>(work, kStep * (row + first_row_), sums);
  }

  template <int kCount>
  __device__ __forceinline__ void Add(
      const unsigned (&memory)[kCount + Memory::kWindow - 1],
      int right,
      int block,
      float (&sums)[kCount][kStep][4]) const {
    uint4 filter[Memory::kWindow];
#pragma unroll
    for (int down = 0; down < Memory::kWindow; ++down) {
      filter[down] =
          filter_[((down * Memory::kWindow + right) * Memory::kBlocks + block) * 32 + Lane()];
    }
    const unsigned place =
        PlaceOf<Memory::kChannels>(first_ + Lane() % 16 + right, block * 2 + Lane() / 16);
#pragma unroll
    for (int i = 0; i < kCount + Memory::kWindow - 1; ++i) {
      std::uint32_t a[4];
      LoadMatrices(memory[i] + place, a);
#pragma unroll
      for (int down = 0; down < Memory::kWindow; ++down) {
        if (i >= down && i - down < kCount) {
          const uint4 b = filter[down];
          const std::uint32_t upper[2] = {b.x, b.y};
          const std::uint32_t lower[2] = {b.z, b.w};
          Math::AddProduct(a, upper, sums[i - down][0]);
          Math::AddProduct(a, lower, sums[i - down][1]);
        }
      }
    }
  }

  /// A lane has two neighbouring elements of the two pixels of two positions.
  template <int kCount>
  __device__ __forceinline__ void
  Store(const Work& work, int row, const float (&sums)[kCount][kStep][4]) const {
    const int element = Lane() % 4 * 2;
    if (element >= kStep * p_.x_channels) {
      return;
    }
    const int elements = p_.x[1] * p_.x_channels;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = first_ + Lane() / 4 + 8 * half;
      const int at = (work.first_column + column) * kStep * p_.x_channels + element;
      if (column < work.columns && at < elements) {
        T* to = to_ + (std::int64_t{work.image} * p_.x[0] + row) * elements + at;
#pragma unroll
        for (int i = 0; i < kStep * kCount; ++i) {
          if (row + i < p_.x[0]) {
            const float(&of_row)[4] = sums[i / kStep][i % kStep];
            StorePair(to, at + 1 < elements, of_row[2 * half], of_row[2 * half + 1]);
          }
          to += elements;
        }
      }
    }
  }

  __device__ __forceinline__ void StorePair(T* to, bool has_second, float first, float second)
      const {
    if (pairs_are_aligned_) {
      auto* pair = reinterpret_cast<std::uint32_t*>(to);
      const float2 before = accumulate_ ? Math::Unpack(*pair) : float2{0, 0};
      *pair = Math::Pack(before.x + first, before.y + second);
      return;
    }
    to[0] = T((accumulate_ ? static_cast<float>(to[0]) : 0.0F) + first);
    if (has_second) {
      to[1] = T((accumulate_ ? static_cast<float>(to[1]) : 0.0F) + second);
    }
  }

  const Arguments& p_;
  const uint4* filter_;
  T* to_;
  bool accumulate_;
  bool pairs_are_aligned_;
  /// Its first column within a strip, its first row within a step, and how many rows it has.
  int first_;
  int first_row_;
  int rows_;
};

/// In shared memory sums lie by channel of y and row of taps: of each so many, of pairs of taps
/// with kPixelChannels each. Behind the channels of the first tap of all is the sum of dY's
/// channel.
constexpr int kSums = 2 * kPairs * kPixelChannels;

/// A warp's sums of dW: all channels of y, of one row of taps. What a pixel has beyond its channels
/// is one, so that the products with it are the sums of dY's channels.
template <typename Math, int kForm>
class FilterGradient {
 public:
  using T = typename Math::T;

  __device__ FilterGradient(const Arguments& p, int warp) : p_(p) {
    turn_ = warp / p.w[0];
    tap_ = warp - turn_ * p.w[0];
  }

  __device__ __forceinline__ void
  Add(const Work& work, int row, const Rows<kForm, T>& rows, const Pixels<T>& pixels) {
    if (turn_ >= p_.turns) {
      return;
    }
    const int count = min(kRows, min(work.end_row, p_.y[0]) - row);
    const int tiles = (min(work.columns, p_.y[1] - work.first_column) + kTile - 1) / kTile;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      AddRow(rows.At(i - p_.begin[0]), pixels.At(i, tap_), tiles);
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
  using Memory = Room<kForm>;

  /// Where a lane's row of dY is, of which a tile's 16 positions by 16 channels are loaded
  /// transposed, within a row's memory. The next channels' chunks differ in two bits.
  [[nodiscard]] __device__ __forceinline__ unsigned PlaceInRow() const {
    const int column = Lane() % 8 + Lane() / 16 * 8 - p_.begin[1];
    return PlaceOf<Memory::kChannels>(column, Lane() / 8 % 2);
  }

  __device__ __forceinline__ void AddRow(unsigned y, unsigned x, int tiles) {
    constexpr int kTileBytes = kTile * Memory::kPositionBytes;
    y += PlaceInRow();
    x += (Lane() % 16 + Lane() / 16) * kChunkBytes;
    std::uint32_t next[kPairs / 2][4];
    LoadTaps(x + turn_ * kTile * kChunkBytes, next);
#pragma unroll 1
    for (int tile = turn_; tile < tiles; tile += p_.turns) {
      std::uint32_t a[Memory::kBlocks][4];
#pragma unroll
      for (int i = 0; i < Memory::kBlocks; ++i) {
        LoadTransposed((y + tile * kTileBytes) ^ (i * 2 * kChunkBytes), a[i]);
      }
      std::uint32_t b[kPairs][2];
#pragma unroll
      for (int j = 0; j < kPairs * 2; ++j) {
        b[j / 2][j % 2] = next[j / 4][j % 4];
      }
      // While these are multiplied; those of the last tile come again.
      LoadTaps(x + min(tile + p_.turns, kMostTiles - 1) * kTile * kChunkBytes, next);
#pragma unroll
      for (int i = 0; i < Memory::kBlocks; ++i) {
#pragma unroll
        for (int j = 0; j < kPairs; ++j) {
          Math::AddProduct(a[i], b[j], sums_[i][j]);
        }
      }
    }
  }

  /// Of 16 positions, the pixels of a row of taps.
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

/// Calls `use` with each of a block's works, and with the first row of each of its steps.
template <typename Use>
__device__ __forceinline__ void ForEachStep(const Arguments& p, const Use& use) {
#pragma unroll 1
  for (int number = static_cast<int>(blockIdx.x); number < p.works;
       number += static_cast<int>(gridDim.x)) {
    const Work work = WorkOf(p, number);
#pragma unroll 1
    for (int row = work.first_row; row < work.end_row; row += kRows) {
      use(work, row);
    }
  }
}

/// Writes a block's sums to its slice; those of channels where there is a place for them.
__device__ __forceinline__ void
StoreSums(const Arguments& p, const float* from, float* partial, float* partial_channels) {
  const auto slice = static_cast<std::int64_t>(blockIdx.x);
  const int rows = p.y_channels * p.w[0];
  const int count = p.w[1] * p.x_channels;
  if (const int tap = Lane() / p.x_channels; tap < p.w[1]) {
    const float* row = from + tap * kPixelChannels + Lane() - tap * p.x_channels;
    float* const to = partial + slice * rows * count + Lane();
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) / 32; i < rows; i += kThreads / 32) {
      to[i * count] = row[i * kSums];
    }
  }
  const auto channel = static_cast<int>(threadIdx.x);
  if (partial_channels != nullptr && channel < p.y_channels) {
    partial_channels[slice * p.y_channels + channel] =
        from[channel * p.w[0] * kSums + kMostChannels];
  }
}

/// Asks the L2 cache for what a work begins with, a line for each thread: small images wait for
/// memory at every step otherwise.
template <typename T>
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

template <typename Math, int kForm>
__device__ __forceinline__ void ComputeGradients(
    const Arguments& p,
    const typename Math::T* x,
    const typename Math::T* filter,
    const typename Math::T* y,
    typename Math::T* x_gradient,
    bool accumulate,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using Memory = Room<kForm>;
  static_assert(Memory::kChannels * kMostTaps * kSums * sizeof(float) <= Memory::kBytesOfRows);
  auto* memory = reinterpret_cast<unsigned char*>(shared);
  auto* filter_memory = reinterpret_cast<uint4*>(memory + Memory::kBytesOfRows);
  Rows<kForm, typename Math::T> rows(p, y, cuda::SharedAddress(shared));
  Pixels<typename Math::T> pixels(p, x, memory + Memory::kBytesOfRows + Memory::kBytesOfFilter);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  // What the first work begins with is on its way while the filter is stored.
  const Work first = WorkOf(p, static_cast<int>(blockIdx.x));
  Prefetch(p, x, y, first);
  if (warp < kWarps) {
    pixels.FetchFirst(first);
  } else {
    rows.CopyFirst(first);
  }
  bool has_begun = true;
  StoreFilter<kForm>(p, filter, filter_memory);
  if (warp < kWarps) {
    const DataGradient<Math, kForm> data(p, warp, filter_memory, x_gradient, accumulate);
    ForEachStep(p, [&](const Work& work, int row) {
      if (row == work.first_row) {
        rows.Open();
        pixels.Open();
        if (!has_begun) {
          pixels.FetchFirst(work);
        }
        has_begun = false;
        pixels.LoadFirst(work);
      }
      cuda::SynchronizeBlock<kThreads>();  // what all threads copied is there
      const bool has_next = row + kRows < work.end_row;
      if (has_next) {
        pixels.FetchNext(work, row);
      }
      data.Write(work, row, rows);
      cuda::SynchronizeBlock<kThreads>();  // the oldest rows of x have been read
      if (has_next) {
        pixels.Store();
      }
      rows.Advance();
      pixels.Advance();
    });
    cuda::TakeTurns<kThreads>(p.turns, [](int /*turn*/) {});
    StoreSums(p, reinterpret_cast<const float*>(memory), partial, partial_channels);
    return;
  }
  FilterGradient<Math, kForm> sums(p, warp - kWarps);
  ForEachStep(p, [&](const Work& work, int row) {
    if (row == work.first_row) {
      rows.Open();
      pixels.Open();
      if (!has_begun) {
        rows.CopyFirst(work);
      }
      has_begun = false;
    }
    cuda::WaitForCopies<0>();
    cuda::SynchronizeBlock<kThreads>();
    if (row + kRows < work.end_row) {
      rows.CopyNext(work, row);
    }
    sums.Add(work, row, rows, pixels);
    cuda::SynchronizeBlock<kThreads>();  // what the next step overwrites has been read
    rows.Advance();
    pixels.Advance();
  });
  cuda::TakeTurns<kThreads>(p.turns, [&](int turn) {
    if (sums.turn() == turn) {
      sums.Leave(reinterpret_cast<float2*>(memory), turn > 0);  // rows have been read
    }
  });
  StoreSums(p, reinterpret_cast<const float*>(memory), partial, partial_channels);
}

}  // namespace
}  // namespace gradsmith::conv::images

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_IMAGES(name, math, form)                                           \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::images::kThreads, 1) \
      gradsmith_images_##form##_##name(                                              \
          const __grid_constant__ gradsmith::conv::images::Arguments arguments,      \
          const gradsmith::cuda::math::T* x, const gradsmith::cuda::math::T* filter, \
          const gradsmith::cuda::math::T* y, gradsmith::cuda::math::T* x_gradient,   \
          bool accumulate, float* partial, float* partial_channels) {                \
    gradsmith::conv::images::ComputeGradients<gradsmith::cuda::math, form>(          \
        arguments, x, filter, y, x_gradient, accumulate, partial, partial_channels); \
  }
#define GRADSMITH_IMAGES_FORMS(name, math) \
  GRADSMITH_IMAGES(name, math, 0)          \
  GRADSMITH_IMAGES(name, math, 1)          \
  GRADSMITH_IMAGES(name, math, 2)          \
  GRADSMITH_IMAGES(name, math, 3)          \
  GRADSMITH_IMAGES(name, math, 4)          \
  GRADSMITH_IMAGES(name, math, 5)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_IMAGES_FORMS(f16, Half)
GRADSMITH_IMAGES_FORMS(bf16, Bfloat16)
