#include <cstdint>

#include "conv/cuda/few_channels_arguments.h"
#include "conv/cuda/kernels/few_channels.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "conv/cuda/kernels/turns.cuh"

/// The filter's gradient of convolutions of few channels, of 3 by 3 taps; see
/// conv/cuda/few_channels.h. dY, transposed, is multiplied with x. A warp has 16 channels of y and
/// a column of taps: going down the rows it multiplies each row of x with the rows of dY that meet
/// it.
namespace gradsmith::conv::few_channels {
namespace {

using cuda::Bfloat16;
using cuda::Half;
using cuda::LoadTransposed;

/// What a block is at: a tile of a plane of y, and the plane of x that its taps meet.
struct Work {
  Plane x;
  Plane y;
  Corner corner;

  /// OfX is the corner of the pixels that the first tap meets.
  [[nodiscard]] __device__ __forceinline__ Corner OfX() const {
    return {corner.row - 1, corner.column - 1};
  }
};

/// What a configuration comes to.
template <int kConfig, bool kAreChunks>
struct Filter {
  static constexpr KernelConfig kShape = kConfigAt[kConfig];
  static constexpr int kSixteens = SixteensOf(kShape);
  static constexpr int kEights = EightsOfWarp(kShape);
  /// Warps share the eights.
  static constexpr int kShares = kShape.x_channels / kVector / kEights;
  static constexpr int kTurns = TurnsOf(kShape);
  static constexpr int kCopyWarps = FilterCopyWarpsOf(kShape);
  static constexpr int kThreads = FilterThreadsOf(kShape);
  static constexpr int kColumns = FilterTilesOf(kShape, kAreChunks) * kTile;
  using TileOfY = Tile<kShape.y_channels, kRows, kColumns>;
  using TileOfX = Tile<kShape.x_channels, kRowsWithMargin, kColumns + kMargin>;
  static constexpr int kBytesOfSums =
      kShape.y_channels * (kTapsOfPlane * kShape.x_channels + 1) * static_cast<int>(sizeof(float));
};

/// A tile of y, and behind it that of x.
template <int kConfig, bool kAreChunks>
struct Tiles {
  using Y = typename Filter<kConfig, kAreChunks>::TileOfY;
  using X = typename Filter<kConfig, kAreChunks>::TileOfX;
  static constexpr int kBytes = Y::kBytes + X::kBytes;

  /// Calls `use` with every so-many-th row from one on.
  template <typename Use>
  __device__ __forceinline__ static void
  ForEachRow(const Arguments& p, const Work& work, int first, int step, const Use& use) {
#pragma unroll 1
    for (int row = first; row < kRows; row += step) {
      use(Y(), work.y, work.corner, p.columns, row, 0, 0);
    }
#pragma unroll 1
    for (int row = first; row < kRowsWithMargin; row += step) {
      use(X(), work.x, work.OfX(), p.columns + kMargin, row, Y::kBytes, Y::kRawBytes);
    }
  }
};

/// A block's works: those for which its tap along the axis before the planes' meets a plane of x.
class Works {
 public:
  __device__ Works(const Arguments& p, const void* x, const void* y)
      : p_(p),
        x_(static_cast<const unsigned char*>(x)),
        y_(static_cast<const unsigned char*>(y)),
        ahead_(static_cast<int>(blockIdx.y) - p.depth_taps / 2) {}

  /// Whether every plane of y is among them.
  [[nodiscard]] __device__ __forceinline__ bool HasAll() const { return ahead_ == 0; }

  [[nodiscard]] __device__ __forceinline__ int First() const {
    return FirstFrom(static_cast<int>(blockIdx.x));
  }
  [[nodiscard]] __device__ __forceinline__ int After(int number) const {
    return number == kNone ? kNone : FirstFrom(number + static_cast<int>(gridDim.x));
  }
  [[nodiscard]] __device__ __forceinline__ Work At(int number) const {
    int strip = number;
    int band = DivideBy(p_.strips, &strip);
    const int plane = DivideBy(p_.bands, &band);
    return {
        PlaneOf(p_, x_, plane + ahead_, p_.x_channels),
        PlaneOf(p_, y_, plane, p_.y_channels),
        {band * kRows, strip * p_.columns}};
  }

 private:
  [[nodiscard]] __device__ __forceinline__ int FirstFrom(int number) const {
    for (; number < p_.works; number += static_cast<int>(gridDim.x)) {
      int plane = number;
      plane = DivideBy(p_.strips, &plane);
      plane = DivideBy(p_.bands, &plane);
      DivideBy(p_.depth, &plane);
      if (IsWithin(plane + ahead_, static_cast<int>(p_.depth.divisor))) {
        return number;
      }
    }
    return kNone;
  }

  const Arguments& p_;
  const unsigned char* x_;
  const unsigned char* y_;
  int ahead_;
};

/// A warp's sums of dW.
template <typename Math, int kConfig, bool kAreChunks>
class FilterGradient {
 public:
  __device__ explicit FilterGradient(const Arguments& p) : p_(p) {
    int warp = static_cast<int>(threadIdx.x) / 32;
    sixteen_ = warp % Memory::kSixteens;
    warp /= Memory::kSixteens;
    first_eight_ = warp % Memory::kShares * kEights;
    warp /= Memory::kShares;
    right_ = warp % kTaps;
    turn_ = warp / kTaps;
  }

  /// Adds a tile's products.
  template <bool kSumsChannels>
  __device__ __forceinline__ void Add(unsigned y, unsigned x) {
    y += (Lane() % 8 + Lane() / 16 * 8) * TileOfY::kPitch +
         (2 * sixteen_ + Lane() / 8 % 2) * kChunkBytes;
    x += (right_ + Lane() % 16) * TileOfX::kPitch + (first_eight_ + Lane() / 16) * kChunkBytes;
#pragma unroll 1
    for (int column = turn_ * kTile; column < p_.columns; column += Memory::kTurns * kTile) {
      AddColumns<kSumsChannels>(y + column * TileOfY::kPitch, x + column * TileOfX::kPitch);
    }
  }

  /// Whether the warp is one of those that can sum dY's channels.
  [[nodiscard]] __device__ __forceinline__ bool HasChannels() const {
    return right_ == 0 && first_eight_ == 0;
  }

  [[nodiscard]] __device__ __forceinline__ int turn() const { return turn_; }

  /// Leaves the sums in shared memory, as dW has them, and behind them those of dY's channels; or
  /// adds them to those of the turns before.
  __device__ __forceinline__ void Leave(float* to, bool adds) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int channel = sixteen_ * kTile + i / 2 * 8 + Lane() / 4;
      if (channel >= p_.y_channels) {
        continue;
      }
#pragma unroll
      for (int down = 0; down < kTaps; ++down) {
        const int tap = channel * kTapsOfPlane + down * kTaps + right_;
#pragma unroll
        for (int eight = 0; eight < kEights; ++eight) {
          const int x_channel = (first_eight_ + eight) * 8 + Lane() % 4 * 2 + i % 2;
          if (x_channel < p_.x_channels) {
            LeaveOne(to + tap * p_.x_channels + x_channel, sums_[down][eight][i], adds);
          }
        }
      }
      if (HasChannels() && Lane() % 4 == 0 && i % 2 == 0) {
        float* channels = to + p_.y_channels * kTapsOfPlane * p_.x_channels;
        LeaveOne(channels + channel, channel_sums_[i], adds);
      }
    }
  }

 private:
  using Memory = Filter<kConfig, kAreChunks>;
  using TileOfY = typename Memory::TileOfY;
  using TileOfX = typename Memory::TileOfX;
  static constexpr int kEights = Memory::kEights;
  /// Pixels are loaded while others are multiplied where there are registers for them.
  static constexpr int kBuffers = kEights > 4 ? 1 : 2;

  /// Goes down 16 columns. A row of x meets the row of dY in its place with the first tap, that
  /// above with the second.
  template <bool kSumsChannels>
  __device__ __forceinline__ void AddColumns(unsigned y, unsigned x) {
    std::uint32_t rows[kTaps][4];
    std::uint32_t pixels[kBuffers][kEights][2];
    LoadEights(x, pixels[0]);
#pragma unroll
    for (int i = 0; i < kRowsWithMargin; ++i) {
      if (i < kRows) {
        LoadTransposed(y + i * TileOfY::kRowPitch, rows[i % kTaps]);
      }
      if (i + 1 < kRowsWithMargin && kBuffers > 1) {
        LoadEights(x + (i + 1) * TileOfX::kRowPitch, pixels[(i + 1) % kBuffers]);
      }
      // That of the row just loaded comes last.
#pragma unroll
      for (int down = kTaps - 1; down >= 0; --down) {
        if (i >= down && i - down < kRows) {
#pragma unroll
          for (int eight = 0; eight < kEights; ++eight) {
            Math::AddProduct(
                rows[(i - down) % kTaps], pixels[i % kBuffers][eight], sums_[down][eight]);
          }
        }
      }
      if (kSumsChannels && i < kRows) {
        const std::uint32_t ones[2] = {Math::kOnes, Math::kOnes};
        Math::AddProduct(rows[i % kTaps], ones, channel_sums_);
      }
      if (i + 1 < kRowsWithMargin && kBuffers == 1) {
        LoadEights(x + (i + 1) * TileOfX::kRowPitch, pixels[0]);
      }
    }
  }

  __device__ __forceinline__ static void LeaveOne(float* to, float sum, bool adds) {
    *to = adds ? *to + sum : sum;
  }

  const Arguments& p_;
  int sixteen_;
  int first_eight_;
  int right_;
  int turn_;
  float sums_[kTaps][kEights][4] = {};
  float channel_sums_[4] = {};
};

/// Writes a block's sums, which are in shared memory, to its slice.
template <int kThreads>
__device__ __forceinline__ void
Store(const Arguments& p, const float* from, float* partial, float* partial_channels) {
  const auto slice = static_cast<std::int64_t>(blockIdx.x);
  const int count = kTapsOfPlane * p.x_channels;
  const int pitch = count * p.depth_taps;
  float* to =
      partial + slice * p.y_channels * pitch + static_cast<std::int64_t>(blockIdx.y) * count;
  for (int channel = static_cast<int>(threadIdx.x) / 32; channel < p.y_channels;
       channel += kThreads / 32) {
    for (int i = Lane(); i < count; i += 32) {
      to[static_cast<std::int64_t>(channel) * pitch + i] = from[channel * count + i];
    }
  }
  if (partial_channels != nullptr) {
    for (int i = static_cast<int>(threadIdx.x); i < p.y_channels; i += kThreads) {
      partial_channels[slice * p.y_channels + i] = from[p.y_channels * count + i];
    }
  }
}

template <typename Math, int kConfig, bool kAreChunks>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const void* x,
    const void* y,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using Memory = Filter<kConfig, kAreChunks>;
  using BothTiles = Tiles<kConfig, kAreChunks>;
  static_assert(Memory::kBytesOfSums <= 2 * BothTiles::kBytes);
  const Works works(p, x, y);
  const Pipeline<BothTiles, Works, kAreChunks, Memory::kThreads, Memory::kCopyWarps> pipeline(
      p, works, reinterpret_cast<unsigned char*>(shared));
  float* channels = works.HasAll() ? partial_channels : nullptr;
  auto* sums_of_block = reinterpret_cast<float*>(shared);
  pipeline.Open();
  if (pipeline.Copies()) {
    pipeline.CopyEach();
    cuda::TakeTurns<Memory::kThreads>(Memory::kTurns, [](int /*turn*/) {});
  } else {
    FilterGradient<Math, kConfig, kAreChunks> sums(p);
    if (channels != nullptr && sums.HasChannels()) {
      pipeline.UseEach([&](const Work& /*work*/, unsigned tiles) {
        sums.template Add<true>(tiles, tiles + BothTiles::Y::kBytes);
      });
    } else {
      pipeline.UseEach([&](const Work& /*work*/, unsigned tiles) {
        sums.template Add<false>(tiles, tiles + BothTiles::Y::kBytes);
      });
    }
    cuda::TakeTurns<Memory::kThreads>(Memory::kTurns, [&](int turn) {
      if (sums.turn() == turn) {
        sums.Leave(sums_of_block, turn > 0);  // tiles have been read
      }
    });
  }
  Store<Memory::kThreads>(p, sums_of_block, partial, channels);
}

}  // namespace
}  // namespace gradsmith::conv::few_channels

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FEW_CHANNELS(name, math, copies, are_chunks, config)                       \
  extern "C" __global__ void __launch_bounds__(                                              \
      gradsmith::conv::few_channels::FilterThreadsOf(                                        \
          gradsmith::conv::few_channels::kConfigAt[config]),                                 \
      1)                                                                                     \
      gradsmith_few_channels_filter_##copies##_##config##_##name(                            \
          const __grid_constant__ gradsmith::conv::few_channels::Arguments arguments,        \
          const void* x, const void* y, float* partial, float* partial_channels) {           \
    gradsmith::conv::few_channels::ComputeFilter<gradsmith::cuda::math, config, are_chunks>( \
        arguments, x, y, partial, partial_channels);                                         \
  }
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_FEW_CHANNELS_FORMS(GRADSMITH_FEW_CHANNELS)
