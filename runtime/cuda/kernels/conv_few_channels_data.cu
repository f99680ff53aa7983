#include <cstdint>

#include "conv/cuda/few_channels_arguments.h"
#include "cuda/kernels/few_channels.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

/// The gradient of x of convolutions of few channels, of 3 by 3 taps; see conv/cuda/few_channels.h.
/// The filter stays in shared memory. A warp multiplies rows of dY with the taps of a column: each
/// row that it loads belongs to three rows of dX.
namespace gradsmith::conv::few_channels {
namespace {

using cuda::Bfloat16;
using cuda::Half;
using cuda::LoadMatrices;
using cuda::LoadTransposed;

/// What a block is at: a tile of dX, whose corner this is, and the plane of y that its taps meet.
struct Work {
  Plane y;
  Corner corner;
  int plane;

  [[nodiscard]] __device__ __forceinline__ Corner OfY() const {
    return {corner.row - 1, corner.column - 1};
  }
};

/// What a form comes to.
template <int kForm, bool kAreChunks>
struct Data {
  static constexpr Form kShape = kFormAt[kForm];
  /// Terms of a product, and half as many that may be left.
  static constexpr int kSixteens = kShape.y_channels / kTile;
  static constexpr bool kHasEight = kShape.y_channels % kTile != 0;
  static constexpr int kEights = kShape.x_channels / kVector;
  static constexpr int kRowsOfTile = DataRowsOf(kShape, kAreChunks);
  static constexpr int kRowsOfWarp = RowsOfWarp(kShape, kAreChunks);
  static constexpr int kCopyWarps = DataCopyWarpsOf(kShape, kAreChunks);
  static constexpr int kThreads = DataThreadsOf(kShape, kAreChunks);
  using TileOfY = Tile<kShape.y_channels, kRowsOfTile + kMargin, kDataColumns + kMargin>;
  using TileOfFilter = Tile<kShape.x_channels, FilterRowsOf(kShape), kFilterColumns>;
  static constexpr int kSharedBytes = DataSharedBytes(kShape, kRowsOfTile, kAreChunks);
};

/// A tile of y.
template <int kForm, bool kAreChunks>
struct Tiles {
  using Y = typename Data<kForm, kAreChunks>::TileOfY;
  static constexpr int kBytes = Y::kBytes;

  /// Calls `use` with every so-many-th row from one on.
  template <typename Use>
  __device__ __forceinline__ static void
  ForEachRow(const Arguments& p, const Work& work, int first, int step, const Use& use) {
#pragma unroll 1
    for (int row = first; row < Y::kCountOfRows; row += step) {
      use(Y(), work.y, work.OfY(), p.margin_columns, row, 0, 0);
    }
  }
};

/// A block's works, of tiles of so many rows.
template <int kRowsOfTile>
class Works {
 public:
  __device__ Works(const Arguments& p, const void* y)
      : p_(p), y_(static_cast<const unsigned char*>(y)) {}

  [[nodiscard]] __device__ __forceinline__ int First() const {
    return static_cast<int>(blockIdx.x);
  }
  [[nodiscard]] __device__ __forceinline__ int After(int number) const {
    const int after = number + static_cast<int>(gridDim.x);
    return number == kNone || after >= p_.works ? kNone : after;
  }
  [[nodiscard]] __device__ __forceinline__ Work At(int number) const {
    int strip = number;
    int band = DivideBy(p_.strips, &strip);
    const int plane = DivideBy(p_.bands, &band);
    return {
        PlaneOf(p_, y_, plane, p_.y_channels), {band * kRowsOfTile, strip * kDataColumns}, plane};
  }

 private:
  const Arguments& p_;
  const unsigned char* y_;
};

/// A warp's part of a tile of dX.
template <typename Math, int kForm, bool kAreChunks>
class DataGradient {
 public:
  using T = typename Math::T;

  __device__ DataGradient(const Arguments& p, unsigned filter, T* to, bool accumulate)
      : p_(p), filter_(filter), to_(to), accumulate_(accumulate) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    column_ = warp % 2 * kTile;
    row_ = warp / 2 * kRowsOfWarp;
  }

  __device__ __forceinline__ void Write(const Work& work, unsigned y) const {
    if (work.corner.row + row_ >= p_.height || work.corner.column + column_ >= p_.width) {
      return;
    }
    float sums[kRowsOfWarp][kEights][4] = {};
    y += row_ * TileOfY::kRowPitch + column_ * TileOfY::kPitch;
    AddSixteens(y, sums);
    if constexpr (Memory::kHasEight) {
#pragma unroll
      for (int right = 0; right < kTaps; ++right) {
        AddEight(
            y + right * TileOfY::kPitch, filter_ + (kTaps - 1 - right) * TileOfFilter::kPitch,
            sums);
      }
    }
    Store(work, sums);
  }

 private:
  using Memory = Data<kForm, kAreChunks>;
  using TileOfY = typename Memory::TileOfY;
  using TileOfFilter = typename Memory::TileOfFilter;
  static constexpr int kEights = Memory::kEights;
  static constexpr int kRowsOfWarp = Memory::kRowsOfWarp;
  /// Rows of y that a warp's rows meet.
  static constexpr int kRowsOfY = kRowsOfWarp + kMargin;
  /// From a channel of y to the next.
  static constexpr int kChannelPitch = kTapsOfPlane * TileOfFilter::kPitch;
  /// A step is a column of taps, and 16 channels of y.
  static constexpr int kSteps = kTaps * Memory::kSixteens;

  /// What a step multiplies is loaded while the one before it is.
  __device__ __forceinline__ void AddSixteens(unsigned y, float (&sums)[kRowsOfWarp][kEights][4])
      const {
    const unsigned rows = y + Lane() % 16 * TileOfY::kPitch + Lane() / 16 * kChunkBytes;
    const unsigned taps = filter_ + Lane() % 16 * kChannelPitch + Lane() / 16 * kChunkBytes;
    std::uint32_t filter[2][kTaps][kEights][2];
    std::uint32_t a[2][4];
#pragma unroll
    for (int down = 0; down < kTaps; ++down) {
      LoadSixteen(taps + TapsOf(0, down), filter[0][down]);
    }
    LoadMatrices(rows, a[0]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kRowsOfY; ++i) {
        if (i + 1 < kRowsOfY) {
          LoadMatrices(rows + RowOf(step, i + 1), a[(i + 1) % 2]);
        } else if (step + 1 < kSteps) {
          LoadMatrices(rows + RowOf(step + 1, 0), a[(i + 1) % 2]);
        }
        if (i < kTaps && step + 1 < kSteps) {
          LoadSixteen(taps + TapsOf(step + 1, i), filter[(step + 1) % 2][i]);
        }
#pragma unroll
        for (int down = 0; down < kTaps; ++down) {
          if (i >= down && i - down < kRowsOfWarp) {
#pragma unroll
            for (int eight = 0; eight < kEights; ++eight) {
              Math::AddProduct(a[i % 2], filter[step % 2][down][eight], sums[i - down][eight]);
            }
          }
        }
      }
    }
  }

  /// Where a step's row of y is, and the taps that it meets `down` rows above.
  __device__ static constexpr int RowOf(int step, int row) {
    return row * TileOfY::kRowPitch + step / Memory::kSixteens * TileOfY::kPitch +
           step % Memory::kSixteens * 2 * kChunkBytes;
  }
  __device__ static constexpr int TapsOf(int step, int down) {
    const int tap = (kTaps - 1 - down) * kTaps + kTaps - 1 - step / Memory::kSixteens;
    return step % Memory::kSixteens * kTile * kChannelPitch + tap * TileOfFilter::kPitch;
  }

  /// The same of the last eight channels.
  __device__ __forceinline__ static void
  AddEight(unsigned y, unsigned taps, float (&sums)[kRowsOfWarp][kEights][4]) {
    constexpr int kFirst = Memory::kSixteens * kTile;
    std::uint32_t filter[kTaps][kEights];
#pragma unroll
    for (int down = 0; down < kTaps; ++down) {
      LoadEight(
          taps + kFirst * kChannelPitch + (kTaps - 1 - down) * kTaps * TileOfFilter::kPitch,
          filter[down]);
    }
    // Two rows at a time.
    const unsigned rows = y + Lane() / 16 * TileOfY::kRowPitch + Lane() % 16 * TileOfY::kPitch +
                          kFirst * kElementBytes;
#pragma unroll
    for (int pair = 0; pair < kRowsOfY; pair += 2) {
      std::uint32_t read[4];
      LoadMatrices(rows + pair * TileOfY::kRowPitch, read);
#pragma unroll
      for (int i = pair; i < pair + 2; ++i) {
        const std::uint32_t a[2] = {read[i % 2 * 2], read[i % 2 * 2 + 1]};
#pragma unroll
        for (int down = 0; down < kTaps; ++down) {
          if (i >= down && i - down < kRowsOfWarp) {
#pragma unroll
            for (int eight = 0; eight < kEights; ++eight) {
              Math::AddHalfProduct(a, filter[down][eight], sums[i - down][eight]);
            }
          }
        }
      }
    }
  }

  /// A tap's terms of 16 channels of y.
  __device__ __forceinline__ static void LoadSixteen(
      unsigned channels,
      std::uint32_t (&to)[kEights][2]) {
#pragma unroll
    for (int i = 0; i + 1 < kEights; i += 2) {
      std::uint32_t read[4];
      LoadTransposed(channels + i * kChunkBytes, read);
      to[i][0] = read[0];
      to[i][1] = read[1];
      to[i + 1][0] = read[2];
      to[i + 1][1] = read[3];
    }
    if constexpr (kEights % 2 != 0) {
      LoadTransposed(channels + (kEights - 1) * kChunkBytes, to[kEights - 1]);
    }
  }

  /// Of 8 channels of y.
  __device__ __forceinline__ static void LoadEight(unsigned taps, std::uint32_t (&to)[kEights]) {
    const unsigned channels = taps + Lane() % 8 * kChannelPitch;
#pragma unroll
    for (int i = 0; i < kEights; i += 4) {
      // What is beyond the last eight is read again.
      const int eight = min(i + Lane() / 8, kEights - 1);
      std::uint32_t read[4];
      LoadTransposed(channels + eight * kChunkBytes, read);
#pragma unroll
      for (int j = 0; j < 4 && i + j < kEights; ++j) {
        to[i + j] = read[j];
      }
    }
  }

  __device__ __forceinline__ void Store(
      const Work& work,
      const float (&sums)[kRowsOfWarp][kEights][4]) const {
    const bool are_pairs = p_.x_channels % 2 == 0;
    if (accumulate_) {
      are_pairs ? StoreRows<true, true>(work, sums) : StoreRows<false, true>(work, sums);
    } else {
      are_pairs ? StoreRows<true, false>(work, sums) : StoreRows<false, false>(work, sums);
    }
  }

  /// A lane has two neighbouring channels of two positions of each row. Without questions that all
  /// stores share: they take as long as the stores.
  template <bool kArePairs, bool kAdds>
  __device__ __forceinline__ void StoreRows(
      const Work& work,
      const float (&sums)[kRowsOfWarp][kEights][4]) const {
    const int rows = min(kRowsOfWarp, p_.height - work.corner.row - row_);
    const int left = p_.x_channels - Lane() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = work.corner.column + column_ + half * 8 + Lane() / 4;
      const std::int64_t line = std::int64_t{work.plane} * p_.height + work.corner.row + row_;
      T* to = to_ + (line * p_.width + column) * p_.x_channels + Lane() % 4 * 2;
#pragma unroll
      for (int row = 0; row < kRowsOfWarp; ++row) {
        if (row < rows && column < p_.width) {
#pragma unroll
          for (int eight = 0; eight < kEights; ++eight) {
            const float(&of_eight)[4] = sums[row][eight];
            StorePair<kArePairs, kAdds>(
                to + eight * 8, left - eight * 8, of_eight[2 * half], of_eight[2 * half + 1]);
          }
        }
        to += p_.width * p_.x_channels;
      }
    }
  }

  /// So many channels are `left`.
  template <bool kArePairs, bool kAdds>
  __device__ __forceinline__ static void StorePair(T* to, int left, float first, float second) {
    if constexpr (kArePairs) {
      if (left > 0) {
        auto* pair = reinterpret_cast<std::uint32_t*>(to);
        const float2 before = kAdds ? Math::Unpack(*pair) : float2{0, 0};
        *pair = Math::Pack(before.x + first, before.y + second);
      }
    } else {
      if (left > 0) {
        to[0] = T((kAdds ? static_cast<float>(to[0]) : 0.0F) + first);
      }
      if (left > 1) {
        to[1] = T((kAdds ? static_cast<float>(to[1]) : 0.0F) + second);
      }
    }
  }

  const Arguments& p_;
  unsigned filter_;
  T* to_;
  bool accumulate_;
  int row_;
  int column_;
};

/// Copies the filter to shared memory, as a line of positions. What is behind it is free.
template <int kForm, bool kAreChunks>
__device__ __forceinline__ void
LoadFilter(const Arguments& p, const void* filter, unsigned char* memory) {
  using TileOfFilter = typename Data<kForm, kAreChunks>::TileOfFilter;
  static_assert(
      TileOfFilter::kBytes + TileOfFilter::kRawBytes <= Data<kForm, kAreChunks>::kSharedBytes);
  constexpr int kWarps = Data<kForm, kAreChunks>::kThreads / 32;
  const int positions = p.y_channels * kTapsOfPlane;
  const auto* data = static_cast<const unsigned char*>(filter);
  const std::int64_t bytes = std::int64_t{positions} * p.x_channels * kElementBytes;
  const Plane plane = {data, 1, positions, p.x_channels, data + bytes};
  unsigned char* raw = memory + TileOfFilter::kBytes;
  const int first = static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (int part = first; part < TileOfFilter::kCountOfRows; part += kWarps) {
    const Corner corner = {0, part * kFilterColumns};
    if constexpr (kAreChunks) {
      TileOfFilter::BeginCopy(
          plane, corner, p.filter_columns, 0,
          cuda::SharedAddress(memory) + part * TileOfFilter::kRowPitch);
    } else {
      TileOfFilter::BeginRawCopy(
          plane, corner, p.filter_columns, 0, raw + part * TileOfFilter::kRawRow);
    }
  }
  cuda::EndOfCopies();
  cuda::WaitForCopies<0>();
  if constexpr (!kAreChunks) {
    cuda::SynchronizeWarp();
#pragma unroll 1
    for (int part = first; part < TileOfFilter::kCountOfRows; part += kWarps) {
      TileOfFilter::Unpack(
          plane, {0, part * kFilterColumns}, p.filter_columns, 0,
          raw + part * TileOfFilter::kRawRow, memory + part * TileOfFilter::kRowPitch);
    }
  }
  __syncthreads();
}

template <typename Math, int kForm, bool kAreChunks>
__device__ __forceinline__ void ComputeData(
    const Arguments& p,
    const void* filter,
    const void* y,
    typename Math::T* x,
    bool accumulate) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using Memory = Data<kForm, kAreChunks>;
  auto* memory = reinterpret_cast<unsigned char*>(shared);
  LoadFilter<kForm, kAreChunks>(p, filter, memory);
  const Works<Memory::kRowsOfTile> works(p, y);
  const Pipeline<
      Tiles<kForm, kAreChunks>, Works<Memory::kRowsOfTile>, kAreChunks, Memory::kThreads,
      Memory::kCopyWarps>
      pipeline(p, works, memory + Memory::TileOfFilter::kBytes);
  pipeline.Open();
  if (pipeline.Copies()) {
    pipeline.CopyEach();
    return;
  }
  const DataGradient<Math, kForm, kAreChunks> gradient(
      p, cuda::SharedAddress(memory), x, accumulate);
  pipeline.UseEach([&](const Work& work, unsigned tile) { gradient.Write(work, tile); });
}

}  // namespace
}  // namespace gradsmith::conv::few_channels

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FEW_CHANNELS(name, math, copies, are_chunks, form)                         \
  extern "C" __global__ void __launch_bounds__(                                              \
      gradsmith::conv::few_channels::DataThreadsOf(                                          \
          gradsmith::conv::few_channels::kFormAt[form], are_chunks),                         \
      1)                                                                                     \
      gradsmith_few_channels_data_##copies##_##form##_##name(                                \
          const __grid_constant__ gradsmith::conv::few_channels::Arguments arguments,        \
          const void* filter, const void* y, gradsmith::cuda::math::T* x, bool accumulate) { \
    gradsmith::conv::few_channels::ComputeData<gradsmith::cuda::math, form, are_chunks>(     \
        arguments, filter, y, x, accumulate);                                                \
  }
#define GRADSMITH_FEW_CHANNELS_FORM(form)                    \
  GRADSMITH_FEW_CHANNELS(f16, Half, chunks, true, form)      \
  GRADSMITH_FEW_CHANNELS(f16, Half, rows, false, form)       \
  GRADSMITH_FEW_CHANNELS(bf16, Bfloat16, chunks, true, form) \
  GRADSMITH_FEW_CHANNELS(bf16, Bfloat16, rows, false, form)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_FEW_CHANNELS_FORM(0)
GRADSMITH_FEW_CHANNELS_FORM(1)
GRADSMITH_FEW_CHANNELS_FORM(2)
GRADSMITH_FEW_CHANNELS_FORM(3)
GRADSMITH_FEW_CHANNELS_FORM(4)
