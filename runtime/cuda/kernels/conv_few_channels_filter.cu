#include <cstdint>

#include "conv/cuda/few_channels_arguments.h"
#include "cuda/kernels/few_channels.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

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

  /// Of the pixels that the first tap meets.
  [[nodiscard]] __device__ __forceinline__ Corner OfX() const {
    return {corner.row - 1, corner.column - 1};
  }
};

/// What a form comes to.
template <int kForm>
struct Filter {
  static constexpr Form kShape = kFilterFormAt[kForm];
  static constexpr int kSixteens = SixteensOf(kShape);
  static constexpr int kEights = kShape.x_channels / kVector;
  static constexpr int kTurns = TurnsOf(kShape);
  static constexpr int kThreads = FilterThreadsOf(kShape);
  static constexpr int kColumns = FilterTilesOf(kShape) * kTile;
  using TileOfY = Tile<kShape.y_channels, kFilterRows, kColumns, kThreads>;
  using TileOfX = Tile<kShape.x_channels, kFilterRows + kMargin, kColumns + kMargin, kThreads>;
};

/// A tile of y, and behind it that of x.
template <int kForm>
struct Tiles {
  using Y = typename Filter<kForm>::TileOfY;
  using X = typename Filter<kForm>::TileOfX;
  static constexpr int kBytes = Y::kBytes + X::kBytes;

  __device__ __forceinline__ static void
  BeginCopy(const Arguments& p, const Work& work, unsigned to) {
    Y::BeginCopy(work.y, work.corner, p.plain_columns, to);
    X::BeginCopy(work.x, work.OfX(), p.margin_columns, to + Y::kBytes);
  }
  __device__ __forceinline__ static void
  BeginRawCopy(const Arguments& p, const Work& work, unsigned to) {
    Y::BeginRawCopy(work.y, work.corner, p.plain_columns, to);
    X::BeginRawCopy(work.x, work.OfX(), p.margin_columns, to + Y::kRawBytes);
  }
  __device__ __forceinline__ static void
  Unpack(const Arguments& p, const Work& work, const unsigned char* raw, unsigned char* to) {
    Y::Unpack(work.y, work.corner, p.plain_columns, raw, to);
    X::Unpack(work.x, work.OfX(), p.margin_columns, raw + Y::kRawBytes, to + Y::kBytes);
  }
};

/// The tensors, and a block's taps along the axis before the planes'.
struct Operands {
  const unsigned char* x;
  const unsigned char* y;
  int depth_tap;
};

/// The first of a block's works from `number` on for which there is a plane of x, or p.works.
__device__ __forceinline__ int NextWork(const Arguments& p, int depth_tap, int number) {
  for (; number < p.works; number += static_cast<int>(gridDim.x)) {
    int plane = number;
    plane = DivideBy(p.strips, &plane);
    plane = DivideBy(p.bands, &plane);
    DivideBy(p.depth, &plane);
    if (IsWithin(plane + depth_tap - p.depth_taps / 2, static_cast<int>(p.depth.divisor))) {
      return number;
    }
  }
  return p.works;
}

__device__ __forceinline__ Work WorkOf(const Arguments& p, const Operands& operands, int number) {
  int strip = number;
  int band = DivideBy(p.strips, &strip);
  const int plane = DivideBy(p.bands, &band);
  return {
      PlaneOf(p, operands.x, plane + operands.depth_tap - p.depth_taps / 2, p.x_channels),
      PlaneOf(p, operands.y, plane, p.y_channels),
      {band * kFilterRows, strip * p.columns}};
}

/// A warp's sums of dW.
template <typename Math, int kForm>
class FilterGradient {
 public:
  __device__ explicit FilterGradient(const Arguments& p) : p_(p) {
    int warp = static_cast<int>(threadIdx.x) / 32;
    sixteen_ = warp % Memory::kSixteens;
    warp /= Memory::kSixteens;
    right_ = warp % kTaps;
    turn_ = warp / kTaps;
  }

  /// Adds a tile's products.
  template <bool kSumsChannels>
  __device__ __forceinline__ void Add(unsigned y, unsigned x) {
    y += (Lane() % 8 + Lane() / 16 * 8) * TileOfY::kPitch +
         (2 * sixteen_ + Lane() / 8 % 2) * kChunkBytes;
    x += (right_ + Lane() % 16) * TileOfX::kPitch + Lane() / 16 * kChunkBytes;
#pragma unroll 1
    for (int column = turn_ * kTile; column < p_.columns; column += Memory::kTurns * kTile) {
      AddColumns<kSumsChannels>(y + column * TileOfY::kPitch, x + column * TileOfX::kPitch);
    }
  }

  /// Whether the warp is one of those that can sum dY's channels.
  [[nodiscard]] __device__ __forceinline__ bool HasChannels() const { return right_ == 0; }

  __device__ __forceinline__ void Store(int depth_tap, float* partial, float* partial_channels)
      const {
    const int slice = static_cast<int>(blockIdx.x) * Memory::kTurns + turn_;
    const int taps = p_.depth_taps * kTaps * kTaps;
    float* to = partial + std::int64_t{slice} * p_.y_channels * taps * p_.x_channels;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int channel = sixteen_ * kTile + i / 2 * 8 + Lane() / 4;
      if (channel >= p_.y_channels) {
        continue;
      }
#pragma unroll
      for (int down = 0; down < kTaps; ++down) {
        const int tap = (depth_tap * kTaps + down) * kTaps + right_;
#pragma unroll
        for (int eight = 0; eight < Memory::kEights; ++eight) {
          const int x_channel = eight * 8 + Lane() % 4 * 2 + i % 2;
          if (x_channel < p_.x_channels) {
            to[(channel * taps + tap) * p_.x_channels + x_channel] = sums_[down][eight][i];
          }
        }
      }
      if (partial_channels != nullptr && HasChannels() && Lane() % 4 == 0 && i % 2 == 0) {
        partial_channels[std::int64_t{slice} * p_.y_channels + channel] = channel_sums_[i];
      }
    }
  }

 private:
  using Memory = Filter<kForm>;
  using TileOfY = typename Memory::TileOfY;
  using TileOfX = typename Memory::TileOfX;
  static constexpr int kEights = Memory::kEights;

  /// Goes down 16 columns. A row of x meets the row of dY in its place with the first tap, that
  /// above with the second.
  template <bool kSumsChannels>
  __device__ __forceinline__ void AddColumns(unsigned y, unsigned x) {
    std::uint32_t rows[kTaps + 1][4];
    std::uint32_t pixels[2][kEights][2];
    LoadTransposed(y, rows[0]);
    LoadPixels(x, pixels[0]);
#pragma unroll
    for (int i = 0; i < kFilterRows + kMargin; ++i) {
      if (i + 1 < kFilterRows) {
        LoadTransposed(y + (i + 1) * TileOfY::kRowPitch, rows[(i + 1) % (kTaps + 1)]);
      }
      if (i + 1 < kFilterRows + kMargin) {
        LoadPixels(x + (i + 1) * TileOfX::kRowPitch, pixels[(i + 1) % 2]);
      }
#pragma unroll
      for (int down = 0; down < kTaps; ++down) {
        if (i >= down && i - down < kFilterRows) {
#pragma unroll
          for (int eight = 0; eight < kEights; ++eight) {
            Math::AddProduct(
                rows[(i - down) % (kTaps + 1)], pixels[i % 2][eight], sums_[down][eight]);
          }
        }
      }
      if (kSumsChannels && i < kFilterRows) {
        const std::uint32_t ones[2] = {Math::kOnes, Math::kOnes};
        Math::AddProduct(rows[i % (kTaps + 1)], ones, channel_sums_);
      }
    }
  }

  __device__ __forceinline__ static void LoadPixels(unsigned x, std::uint32_t (&to)[kEights][2]) {
#pragma unroll
    for (int i = 0; i + 1 < kEights; i += 2) {
      std::uint32_t read[4];
      LoadTransposed(x + i * kChunkBytes, read);
      to[i][0] = read[0];
      to[i][1] = read[1];
      to[i + 1][0] = read[2];
      to[i + 1][1] = read[3];
    }
    if constexpr (kEights % 2 != 0) {
      LoadTransposed(x + (kEights - 1) * kChunkBytes, to[kEights - 1]);
    }
  }

  const Arguments& p_;
  int sixteen_;
  int right_;
  int turn_;
  float sums_[kTaps][kEights][4] = {};
  float channel_sums_[4] = {};
};

template <typename Math, int kForm, typename Copies>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const Copies& copies,
    const void* x,
    const void* y,
    float* partial,
    float* partial_channels) {
  const auto depth_tap = static_cast<int>(blockIdx.y);
  const Operands operands = {
      static_cast<const unsigned char*>(x), static_cast<const unsigned char*>(y), depth_tap};
  // The middle one meets every plane of y.
  float* channels = depth_tap == p.depth_taps / 2 ? partial_channels : nullptr;
  FilterGradient<Math, kForm> sums(p);
  const bool sums_channels = channels != nullptr && sums.HasChannels();
  ForEachWork(
      p, copies, [&](int number) { return NextWork(p, depth_tap, number); },
      [&](int number) { return WorkOf(p, operands, number); },
      [&](const Work& /*work*/, unsigned tiles) {
        const unsigned x_tile = tiles + Tiles<kForm>::Y::kBytes;
        if (sums_channels) {
          sums.template Add<true>(tiles, x_tile);
        } else {
          sums.template Add<false>(tiles, x_tile);
        }
      });
  sums.Store(depth_tap, partial, channels);
}

template <typename Math, int kForm, bool kAreChunks>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const void* x,
    const void* y,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  if constexpr (kAreChunks) {
    const ByChunks<Tiles<kForm>> copies = {p, cuda::SharedAddress(shared)};
    ComputeFilter<Math, kForm>(p, copies, x, y, partial, partial_channels);
  } else {
    const ByRows<Tiles<kForm>> copies = {p, reinterpret_cast<unsigned char*>(shared)};
    ComputeFilter<Math, kForm>(p, copies, x, y, partial, partial_channels);
  }
}

}  // namespace
}  // namespace gradsmith::conv::few_channels

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FEW_CHANNELS(name, math, copies, are_chunks, form)                       \
  extern "C" __global__ void __launch_bounds__(                                            \
      gradsmith::conv::few_channels::FilterThreadsOf(                                      \
          gradsmith::conv::few_channels::kFilterFormAt[form]),                             \
      1)                                                                                   \
      gradsmith_few_channels_filter_##copies##_##form##_##name(                            \
          const __grid_constant__ gradsmith::conv::few_channels::Arguments arguments,      \
          const void* x, const void* y, float* partial, float* partial_channels) {         \
    gradsmith::conv::few_channels::ComputeFilter<gradsmith::cuda::math, form, are_chunks>( \
        arguments, x, y, partial, partial_channels);                                       \
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
GRADSMITH_FEW_CHANNELS_FORM(5)
