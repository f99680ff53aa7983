#include <cstdint>
#include <type_traits>

#include "conv/cuda/few_channels_arguments.h"
#include "conv/cuda/kernels/few_channels.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

/// The gradient of x of convolutions of few channels, of 3 by 3 or 3 by 3 by 3 taps; see
/// conv/cuda/few_channels.h. The filter stays in shared memory. A warp multiplies rows of dY with
/// the taps of a column: each row that it loads belongs to three rows of dX. In volumes it keeps
/// its sums while the three planes of dY that they are made of come one after the other.
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
  /// Which of a volume's taps, and which part of y's channels, is summed now.
  int depth_tap = 0;
  int part = 0;
  /// Whether nothing of the tile has been summed before, and nothing will be after.
  bool is_first = true;
  bool is_last = true;

  [[nodiscard]] __device__ __forceinline__ Corner OfY() const {
    return {corner.row - 1, corner.column - 1};
  }
};

template <int kConfig>
using FilterOfPlanes =
    Tile<kConfigAt[kConfig].x_channels, FilterRowsOf(kConfigAt[kConfig]), kFilterColumns>;
template <int kConfig>
using FilterOfVolumes =
    Tile<kConfigAt[kConfig].x_channels, kConfigAt[kConfig].y_channels, kTapsOfVolume,
         kConfigAt[kConfig].x_channels, Odd::kRows>;

/// What a configuration comes to.
template <int kConfig, bool kAreChunks, bool kIsVolume>
struct Data {
  static constexpr KernelConfig kShape = kConfigAt[kConfig];
  static constexpr DataKernel kKernel = {kShape, kAreChunks, kIsVolume};
  static constexpr int kPartChannels = PartChannelsOf(kKernel);
  /// Terms of a product, and half as many that may be left.
  static constexpr int kSixteens = kPartChannels / kTile;
  static constexpr bool kHasEight = kPartChannels % kTile != 0;
  static constexpr int kEights = kShape.x_channels / kVector;
  static constexpr int kRowsOfTile = DataRowsOf(kKernel);
  static constexpr int kRowsOfWarp = RowsOfWarp(kKernel);
  static constexpr int kCopyWarps = DataCopyWarpsOf(kKernel);
  static constexpr int kThreads = DataThreadsOf(kKernel);
  using TileOfY =
      Tile<kPartChannels, kRowsOfTile + kMargin, kDataColumns + kMargin, kShape.y_channels>;
  using TileOfFilter =
      std::conditional_t<kIsVolume, FilterOfVolumes<kConfig>, FilterOfPlanes<kConfig>>;
  /// How far a channel of y is from the next, within the filter.
  static constexpr int kChannelPitch =
      kIsVolume ? TileOfFilter::kRowPitch : kTapsOfPlane * TileOfFilter::kPitch;
  static constexpr int kSharedBytes = DataSharedBytes(kKernel, kRowsOfTile);
  static_assert(TileOfFilter::kBytes == FilterBytesOf(kKernel));
};

/// A tile of y.
template <typename Memory>
struct Tiles {
  using Y = typename Memory::TileOfY;
  static constexpr int kBytes = Y::kBytes;

  /// Calls `use` with every so-many-th row from one on.
  template <typename Use>
  __device__ __forceinline__ static void
  ForEachRow(const Arguments& p, const Work& work, int first, int step, const Use& use) {
#pragma unroll 1
    for (int row = first; row < Y::kCountOfRows; row += step) {
      use(Y(), work.y, work.OfY(), p.columns + kMargin, row, 0, 0);
    }
  }
};

/// A block's works in images: tiles.
template <typename Memory>
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
        PlaneOf(p_, y_, plane, p_.y_channels),
        {band * Memory::kRowsOfTile, strip * kDataColumns},
        plane};
  }

 private:
  const Arguments& p_;
  const unsigned char* y_;
};

/// In volumes: of each tile the planes of y that its taps meet, and of each of these the parts of
/// its channels. A number is kSteps times that of the tile, and that of the step.
template <typename Memory>
class WorksOfVolumes {
 public:
  __device__ WorksOfVolumes(const Arguments& p, const void* y)
      : p_(p), y_(static_cast<const unsigned char*>(y)) {}

  [[nodiscard]] __device__ __forceinline__ int First() const {
    return FirstFrom(static_cast<int>(blockIdx.x) * kSteps);
  }
  [[nodiscard]] __device__ __forceinline__ int After(int number) const {
    return number == kNone ? kNone : FirstFrom(Next(number));
  }
  [[nodiscard]] __device__ __forceinline__ Work At(int number) const {
    const int step = number % kSteps;
    const int part = step % kParts;
    const int depth_tap = kTaps - 1 - step / kParts;
    const Place place = PlaceOf(number);
    Plane y = PlaneOf(p_, y_, place.plane + 1 - depth_tap, p_.y_channels);
    y.first_chunk = part * kPartChunks;
    const int first_tap = place.depth == 0 ? 1 : kTaps - 1;
    const int last_tap = place.depth + 1 == Depth() ? 1 : 0;
    return {
        y,
        {place.band * Memory::kRowsOfTile, place.strip * kDataColumns},
        place.plane,
        depth_tap,
        part,
        depth_tap == first_tap && part == 0,
        depth_tap == last_tap && !HasPart(part + 1)};
  }

 private:
  static constexpr int kSteps = StepsOf(Memory::kKernel);
  static constexpr int kParts = PartsOf(Memory::kKernel);
  static constexpr int kPartChunks = Memory::kPartChannels / kVector;

  struct Place {
    int strip;
    int band;
    /// The plane is counted among all, the depth among those of its image.
    int plane;
    int depth;
  };

  [[nodiscard]] __device__ __forceinline__ int Depth() const {
    return static_cast<int>(p_.depth.divisor);
  }

  [[nodiscard]] __device__ __forceinline__ Place PlaceOf(int number) const {
    Place place{};
    place.strip = number / kSteps;
    place.band = DivideBy(p_.strips, &place.strip);
    place.plane = DivideBy(p_.bands, &place.band);
    place.depth = place.plane;
    DivideBy(p_.depth, &place.depth);
    return place;
  }

  [[nodiscard]] __device__ __forceinline__ bool HasPart(int part) const {
    return part < kParts && part * Memory::kPartChannels < p_.y_channels;
  }

  /// The next step, or the first of the next tile.
  [[nodiscard]] __device__ __forceinline__ static int Next(int number) {
    ++number;
    return number % kSteps == 0 ? number + (static_cast<int>(gridDim.x) - 1) * kSteps : number;
  }

  /// That there is, from one on: beyond an image's first and last plane there are none.
  [[nodiscard]] __device__ __forceinline__ int FirstFrom(int number) const {
    for (; number < p_.works * kSteps; number = Next(number)) {
      const int step = number % kSteps;
      const int depth = PlaceOf(number).depth + step / kParts - 1;
      if (IsWithin(depth, Depth()) && HasPart(step % kParts)) {
        return number;
      }
    }
    return kNone;
  }

  const Arguments& p_;
  const unsigned char* y_;
};

/// A warp's part of a tile of dX.
template <typename Math, typename Memory>
class DataGradient {
 public:
  using T = typename Math::T;
  using Sums = float[Memory::kRowsOfWarp][Memory::kEights][4];

  __device__ DataGradient(const Arguments& p, unsigned filter, T* to, bool accumulate)
      : p_(p), filter_(filter), to_(to), accumulate_(accumulate) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    column_ = warp % 2 * kTile;
    row_ = warp / 2 * kRowsOfWarp;
  }

  /// Adds a tile's products to the sums, and writes these where they are whole.
  __device__ __forceinline__ void Add(const Work& work, unsigned y, Sums& sums) const {
    if (work.corner.row + row_ >= p_.height || work.corner.column + column_ >= p_.width) {
      return;
    }
    if (work.is_first) {
      Clear(sums);
    }
    y += row_ * TileOfY::kRowPitch + column_ * TileOfY::kPitch;
    const unsigned filter = filter_ + work.part * Memory::kPartChannels * kChannelPitch +
                            work.depth_tap * kTapsOfPlane * TileOfFilter::kPitch;
    AddSixteens(y, filter, sums);
    if constexpr (Memory::kHasEight) {
#pragma unroll
      for (int right = 0; right < kTaps; ++right) {
        AddEight(
            y + right * TileOfY::kPitch, filter + (kTaps - 1 - right) * TileOfFilter::kPitch, sums);
      }
    }
    if (work.is_last) {
      Store(work, sums);
    }
  }

 private:
  using TileOfY = typename Memory::TileOfY;
  using TileOfFilter = typename Memory::TileOfFilter;
  static constexpr int kEights = Memory::kEights;
  static constexpr int kRowsOfWarp = Memory::kRowsOfWarp;
  /// Rows of y that a warp's rows meet.
  static constexpr int kRowsOfY = kRowsOfWarp + kMargin;
  static constexpr int kChannelPitch = Memory::kChannelPitch;
  /// A step is a column of taps, and 16 channels of y.
  static constexpr int kSteps = kTaps * Memory::kSixteens;

  __device__ __forceinline__ static void Clear(Sums& sums) {
#pragma unroll
    for (int row = 0; row < kRowsOfWarp; ++row) {
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
#pragma unroll
        for (float& sum : sums[row][eight]) {
          sum = 0;
        }
      }
    }
  }

  /// What a step multiplies is loaded while the one before it is.
  __device__ __forceinline__ static void AddSixteens(unsigned y, unsigned filter, Sums& sums) {
    const unsigned rows = y + Lane() % 16 * TileOfY::kPitch + Lane() / 16 * kChunkBytes;
    const unsigned from = filter + Lane() % 16 * kChannelPitch + Lane() / 16 * kChunkBytes;
    std::uint32_t taps[2][kTaps][kEights][2];
    std::uint32_t a[2][4];
#pragma unroll
    for (int down = 0; down < kTaps; ++down) {
      LoadEights(from + TapsOf(0, down), taps[0][down]);
    }
    LoadMatrices(rows, a[0]);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kRowsOfY; ++i) {
        const int place = (step * kRowsOfY + i) % 2;
        if (i + 1 < kRowsOfY) {
          LoadMatrices(rows + RowOf(step, i + 1), a[1 - place]);
        } else if (step + 1 < kSteps) {
          LoadMatrices(rows + RowOf(step + 1, 0), a[1 - place]);
        }
        if (i < kTaps && step + 1 < kSteps) {
          LoadEights(from + TapsOf(step + 1, i), taps[(step + 1) % 2][i]);
        }
#pragma unroll
        for (int down = 0; down < kTaps; ++down) {
          if (i >= down && i - down < kRowsOfWarp) {
#pragma unroll
            for (int eight = 0; eight < kEights; ++eight) {
              Math::AddProduct(a[place], taps[step % 2][down][eight], sums[i - down][eight]);
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
  __device__ __forceinline__ static void AddEight(unsigned y, unsigned taps, Sums& sums) {
    constexpr int kFirst = Memory::kSixteens * kTile;
    std::uint32_t filter[kTaps][kEights];
#pragma unroll
    for (int down = 0; down < kTaps; ++down) {
      LoadEight(
          taps + kFirst * kChannelPitch + (kTaps - 1 - down) * kTaps * TileOfFilter::kPitch,
          filter[down]);
    }
    // Two rows at a time.
    const unsigned rows = y + Lane() % 16 * TileOfY::kPitch + kFirst * kElementBytes;
    const unsigned second = Lane() / 16 * TileOfY::kRowPitch;
#pragma unroll
    for (int pair = 0; pair < kRowsOfY; pair += 2) {
      std::uint32_t read[4];
      LoadMatrices(rows + pair * TileOfY::kRowPitch + (pair + 1 < kRowsOfY ? second : 0), read);
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

  /// A tap's terms of 8 channels of y.
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

  __device__ __forceinline__ void Store(const Work& work, const Sums& sums) const {
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
  __device__ __forceinline__ void StoreRows(const Work& work, const Sums& sums) const {
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

/// The filter as a line of positions, with all taps of a channel of y side by side.
template <int kTapsOfChannel>
__device__ __forceinline__ Plane PlaneOfFilter(const Arguments& p, const void* filter) {
  const int positions = p.y_channels * kTapsOfChannel;
  const auto* data = static_cast<const unsigned char*>(filter);
  const std::int64_t bytes = std::int64_t{positions} * p.x_channels * kElementBytes;
  return {data, 1, positions, p.x_channels, data + bytes};
}

/// Copies the filter of planes to shared memory. What is behind it is free.
template <typename Memory, bool kAreChunks>
__device__ __forceinline__ void
LoadFilterOfPlanes(const Arguments& p, const void* filter, unsigned char* memory) {
  using TileOfFilter = typename Memory::TileOfFilter;
  static_assert(TileOfFilter::kBytes + TileOfFilter::kRawBytes <= Memory::kSharedBytes);
  constexpr int kWarps = Memory::kThreads / 32;
  const Plane plane = PlaneOfFilter<kTapsOfPlane>(p, filter);
  unsigned char* raw = memory + TileOfFilter::kBytes;
  const int first = static_cast<int>(threadIdx.x) / 32;
#pragma unroll 1
  for (int part = first; part < TileOfFilter::kCountOfRows; part += kWarps) {
    const Corner corner = {0, part * kFilterColumns};
    if constexpr (kAreChunks) {
      TileOfFilter::BeginCopy(
          plane, corner, kFilterColumns, 0,
          cuda::SharedAddress(memory) + part * TileOfFilter::kRowPitch);
    } else {
      TileOfFilter::BeginRawCopy(
          plane, corner, kFilterColumns, 0, raw + part * TileOfFilter::kRawRow);
    }
  }
  cuda::EndOfCopies();
  cuda::WaitForCopies<0>();
  if constexpr (!kAreChunks) {
    cuda::SynchronizeWarp();
#pragma unroll 1
    for (int part = first; part < TileOfFilter::kCountOfRows; part += kWarps) {
      TileOfFilter::Unpack(
          plane, {0, part * kFilterColumns}, kFilterColumns, 0, raw + part * TileOfFilter::kRawRow,
          memory + part * TileOfFilter::kRowPitch);
    }
  }
  __syncthreads();
}

/// The same of volumes, of which there is no room for all as it lies in memory: each warp has room
/// for the taps of one channel of y.
template <typename Memory, bool kAreChunks>
__device__ __forceinline__ void
LoadFilterOfVolumes(const Arguments& p, const void* filter, unsigned char* memory) {
  using TileOfFilter = typename Memory::TileOfFilter;
  constexpr int kWarps = Memory::kThreads / 32;
  static_assert(TileOfFilter::kBytes + kWarps * TileOfFilter::kRawRow <= Memory::kSharedBytes);
  const Plane plane = PlaneOfFilter<kTapsOfVolume>(p, filter);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  unsigned char* raw = memory + TileOfFilter::kBytes + warp * TileOfFilter::kRawRow;
#pragma unroll 1
  for (int channel = warp; channel < TileOfFilter::kCountOfRows; channel += kWarps) {
    const Corner corner = {0, channel * kTapsOfVolume};
    unsigned char* to = memory + channel * TileOfFilter::kRowPitch;
    if constexpr (kAreChunks) {
      TileOfFilter::BeginCopy(plane, corner, kTapsOfVolume, 0, cuda::SharedAddress(to));
    } else {
      TileOfFilter::BeginRawCopy(plane, corner, kTapsOfVolume, 0, raw);
      cuda::EndOfCopies();
      cuda::WaitForCopies<0>();
      cuda::SynchronizeWarp();
      TileOfFilter::Unpack(plane, corner, kTapsOfVolume, 0, raw, to);
      cuda::SynchronizeWarp();  // the channel's taps have been read
    }
  }
  cuda::EndOfCopies();
  cuda::WaitForCopies<0>();
  __syncthreads();
}

template <typename Math, int kConfig, bool kAreChunks, bool kIsVolume>
__device__ __forceinline__ void ComputeData(
    const Arguments& p,
    const void* y,
    const void* filter,
    typename Math::T* x,
    bool accumulate) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using Memory = Data<kConfig, kAreChunks, kIsVolume>;
  using WorksOfBlock = std::conditional_t<kIsVolume, WorksOfVolumes<Memory>, Works<Memory>>;
  using Gradient = DataGradient<Math, Memory>;
  auto* memory = reinterpret_cast<unsigned char*>(shared);
  if constexpr (kIsVolume) {
    LoadFilterOfVolumes<Memory, kAreChunks>(p, filter, memory);
  } else {
    LoadFilterOfPlanes<Memory, kAreChunks>(p, filter, memory);
  }
  const WorksOfBlock works(p, y);
  const Pipeline<Tiles<Memory>, WorksOfBlock, kAreChunks, Memory::kThreads, Memory::kCopyWarps>
      pipeline(p, works, memory + Memory::TileOfFilter::kBytes);
  pipeline.Open();
  if (pipeline.Copies()) {
    pipeline.CopyEach();
    return;
  }
  const Gradient gradient(p, cuda::SharedAddress(memory), x, accumulate);
  typename Gradient::Sums sums = {};
  pipeline.UseEach([&](const Work& work, unsigned tile) { gradient.Add(work, tile, sums); });
}

}  // namespace
}  // namespace gradsmith::conv::few_channels

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FEW_CHANNELS_DATA(rank, name, math, copies, are_chunks, config, is_volume) \
  extern "C" __global__ void __launch_bounds__(                                              \
      gradsmith::conv::few_channels::DataThreadsOf(                                          \
          {gradsmith::conv::few_channels::kConfigAt[config], are_chunks, is_volume}),        \
      1)                                                                                     \
      gradsmith_few_channels_##rank##_##copies##_##config##_##name(                          \
          const __grid_constant__ gradsmith::conv::few_channels::Arguments arguments,        \
          const void* y, const void* filter, gradsmith::cuda::math::T* x, bool accumulate) { \
    gradsmith::conv::few_channels::ComputeData<                                              \
        gradsmith::cuda::math, config, are_chunks, is_volume>(                               \
        arguments, y, filter, x, accumulate);                                                \
  }
// NOLINTEND(bugprone-macro-parentheses)
#define GRADSMITH_FEW_CHANNELS_OF_PLANES(name, math, copies, are_chunks, config) \
  GRADSMITH_FEW_CHANNELS_DATA(data, name, math, copies, are_chunks, config, false)
#define GRADSMITH_FEW_CHANNELS_OF_VOLUMES(name, math, copies, are_chunks, config) \
  GRADSMITH_FEW_CHANNELS_DATA(volumes, name, math, copies, are_chunks, config, true)

GRADSMITH_FEW_CHANNELS_FORMS(GRADSMITH_FEW_CHANNELS_OF_PLANES)
GRADSMITH_FEW_CHANNELS_FORMS(GRADSMITH_FEW_CHANNELS_OF_VOLUMES)
