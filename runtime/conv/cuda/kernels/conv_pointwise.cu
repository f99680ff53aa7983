#include <cstdint>

#include "conv/cuda/pointwise_arguments.h"
#include "conv/cuda/kernels/exchange.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

/// All gradients of a convolution of one tap in one pass over dY; see conv/cuda/pointwise.h. A
/// block keeps the filter, and goes from tile to tile of positions: a tile of dX is its product with
/// dY's, while that of dY and X is added to the block's own sums of dW, which another kernel adds
/// up.
namespace gradsmith::conv::pointwise {
namespace {

using cuda::BeginCopy;
using cuda::Bfloat16;
using cuda::Half;
using cuda::Lane;
using cuda::LoadMatrices;
using cuda::LoadTransposed;

/// How far apart a panel's rows are.
template <int kChannels>
constexpr int kPitchFor = PitchOf(kChannels);

/// What a configuration comes to.
template <int kConfig>
struct Room {
  static constexpr KernelConfig kShape = kConfigAt[kConfig];
  static constexpr int kPitchOfY = kPitchFor<kShape.y_channels>;
  static constexpr int kPitchOfX = kPitchFor<kShape.x_channels>;
  static constexpr int kBytesOfY = kPositions * kPitchOfY;
  static constexpr int kBytesOfStage = StageBytes(kShape);
  static constexpr int kThreads = ThreadsOf(kShape);
};

/// Begins to copy rows of channels, which are dense, to a panel of kRows rows with room for
/// kChannels. Channels are multiplied by sixteens: those that are missing, and rows beyond `end`,
/// become zeros.
template <int kThreads, int kRows, int kChannels, typename T>
__device__ __forceinline__ void
LoadPanel(const T* from, int channels, std::int64_t first, std::int64_t end, unsigned panel) {
  constexpr int kChunks = kChannels / kVector;
  constexpr int kStep = kThreads / kChunks;
  constexpr int kPitch = kPitchFor<kChannels>;
  static_assert(kRows % kStep == 0, "threads share a panel evenly");
  const int channel = static_cast<int>(threadIdx.x) % kChunks * kVector;
  const int row = static_cast<int>(threadIdx.x) / kChunks;
  if (channel >= (channels + 15) / 16 * 16) {
    return;
  }
  const bool exists = channel < channels;
  const T* source = from + (first + row) * channels + channel;
  const unsigned to = panel + row * kPitch + channel * kElementBytes;
#pragma unroll
  for (int i = 0; i < kRows / kStep; ++i) {
    BeginCopy(
        to + i * kStep * kPitch, source + std::int64_t{i} * kStep * channels,
        exists && first + row + i * kStep < end);
  }
}

/// A tile of dX: 32 positions for each pair of warps, of which each has half the columns of a pass.
template <typename Math, int kConfig>
class DataGradient {
 public:
  using T = typename Math::T;

  __device__
  DataGradient(const Arguments& p, int warp, unsigned filter, T* result, bool accumulate)
      : p_(p), filter_(filter), result_(result), accumulate_(accumulate) {
    row_ = warp / 2 * kRows;
    column_ = warp % 2 * kColumns;
  }

  __device__ __forceinline__ void Write(unsigned y, std::int64_t first) const {
#pragma unroll
    for (int pass = 0; pass < kRoom.x_channels; pass += 2 * kColumns) {
      if (pass + column_ < p_.x_channels) {
        WriteColumns(y, first, pass + column_);
      }
    }
  }

 private:
  using Memory = Room<kConfig>;
  static constexpr KernelConfig kRoom = Memory::kShape;
  static constexpr int kRows = 32;
  static constexpr int kColumns = kRoom.x_channels < 128 ? kRoom.x_channels / 2 : 64;
  static constexpr int kBlocks = kColumns / 8;
  static_assert(kBlocks % 4 == 0 && kWarps / 2 * kRows == kPositions, "warps share a tile");

  __device__ __forceinline__ void WriteColumns(unsigned y, std::int64_t first, int column) const {
    float sums[2][kBlocks][4] = {};
    const unsigned rows = y + (row_ + Lane() % 16) * Memory::kPitchOfY + Lane() / 16 * kChunkBytes;
    const unsigned columns = filter_ + Lane() % 16 * Memory::kPitchOfX + column * kElementBytes +
                             Lane() / 16 * kChunkBytes;
#pragma unroll 4
    for (int term = 0; term < p_.y_channels; term += 16) {
      std::uint32_t a[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        LoadMatrices(rows + i * 16 * Memory::kPitchOfY + term * kElementBytes, a[i]);
      }
#pragma unroll
      for (int j = 0; j < kBlocks; j += 2) {
        std::uint32_t read[4];
        LoadTransposed(columns + term * Memory::kPitchOfX + j * 8 * kElementBytes, read);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const std::uint32_t b[2] = {read[2 * k], read[2 * k + 1]};
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            Math::AddProduct(a[i], b, sums[i][j + k]);
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t position = first + row_ + 16 * i + 8 * half + Lane() / 4;
        StoreRow(sums[i], half, position, column);
      }
    }
  }

  /// All lanes exchange, also those whose position does not exist.
  __device__ __forceinline__ void StoreRow(
      const float (&sums)[kBlocks][4],
      int half,
      std::int64_t position,
      int column) const {
    const bool exists = position < p_.positions;
    T* row = result_ + position * p_.x_channels;
#pragma unroll
    for (int j = 0; j < kBlocks; j += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float2 pair = {sums[j + k][2 * half], sums[j + k][2 * half + 1]};
        const int at = column + 8 * (j + k) + Lane() % 4 * 2;
        if (accumulate_ && exists && at < p_.x_channels) {
          const float2 before = Math::Unpack(*reinterpret_cast<const std::uint32_t*>(row + at));
          pair.x += before.x;
          pair.y += before.y;
        }
        words[k] = Math::Pack(pair.x, pair.y);
      }
      // Two columns of each of four blocks become eight of one.
      cuda::TransposeAmongFour(words);
      const int at = column + 8 * (j + Lane() % 4);
      if (exists && at < p_.x_channels) {
        *reinterpret_cast<uint4*>(row + at) = {words[0], words[1], words[2], words[3]};
      }
    }
  }

  const Arguments& p_;
  unsigned filter_;
  T* result_;
  bool accumulate_;
  int row_;
  int column_;
};

/// A warp's sums of dW, and of dY's channels: as products with ones.
template <typename Math, int kConfig>
class FilterGradient {
 public:
  __device__ FilterGradient(const Arguments& p, int warp) : p_(p) {
    place_ = warp % kRoom.warps_of_x;
    row_ = warp / kRoom.warps_of_x * kRows;
    column_ = place_ * kColumns;
  }

  /// Whether this warp has channels of both.
  [[nodiscard]] __device__ bool works() const {
    return row_ < p_.y_channels && column_ < p_.x_channels;
  }

  __device__ __forceinline__ void Add(unsigned y, unsigned x) {
    const unsigned rows = y + (Lane() % 8 + Lane() / 16 * 8) * Memory::kPitchOfY +
                          (row_ + Lane() / 8 % 2 * 8) * kElementBytes;
    const unsigned columns =
        x + Lane() % 16 * Memory::kPitchOfX + (column_ + Lane() / 16 * 8) * kElementBytes;
    const std::uint32_t ones[2] = {Math::kOnes, Math::kOnes};
    int turn = place_;
#pragma unroll 4
    for (int position = 0; position < kPositions; position += 16) {
      std::uint32_t b[kColumnBlocks][2];
#pragma unroll
      for (int j = 0; j < kColumnBlocks; j += 2) {
        std::uint32_t read[4];
        LoadTransposed(columns + position * Memory::kPitchOfX + j * 8 * kElementBytes, read);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          b[j + i / 2][i % 2] = read[i];
        }
      }
      const bool sums_channels = turn == 0;
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i) {
        std::uint32_t a[4];
        LoadTransposed(rows + position * Memory::kPitchOfY + i * 16 * kElementBytes, a);
#pragma unroll
        for (int j = 0; j < kColumnBlocks; ++j) {
          Math::AddProduct(a, b[j], sums_[i][j]);
        }
        if (sums_channels) {
          Math::AddProduct(a, ones, channel_sums_[i]);
        }
      }
      turn = sums_channels ? p_.active_warps_of_x - 1 : turn - 1;
    }
  }

  /// Writes the block's sums; those of channels where there is a place for them.
  __device__ __forceinline__ void Store(float* partial, float* partial_channels) const {
    const std::int64_t block = static_cast<int>(blockIdx.x);
    float* filter = partial + block * p_.y_channels * p_.x_channels;
    float* channels = partial_channels + (block * p_.active_warps_of_x + place_) * p_.y_channels;
#pragma unroll
    for (int i = 0; i < kRowBlocks; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row_ + 16 * i + 8 * half + Lane() / 4;
        if (row >= p_.y_channels) {
          continue;
        }
#pragma unroll
        for (int j = 0; j < kColumnBlocks; ++j) {
          const int column = column_ + 8 * j + Lane() % 4 * 2;
          if (column < p_.x_channels) {
            *reinterpret_cast<float2*>(filter + row * p_.x_channels + column) = {
                sums_[i][j][2 * half], sums_[i][j][2 * half + 1]};
          }
        }
        if (partial_channels != nullptr && Lane() % 4 == 0) {
          channels[row] = channel_sums_[i][2 * half];
        }
      }
    }
  }

 private:
  using Memory = Room<kConfig>;
  static constexpr KernelConfig kRoom = Memory::kShape;
  static constexpr int kRows = kRoom.y_channels / (kWarps / kRoom.warps_of_x);
  static constexpr int kColumns = ColumnsOfWarp(kRoom);
  static constexpr int kRowBlocks = kRows / 16;
  static constexpr int kColumnBlocks = kColumns / 8;

  const Arguments& p_;
  int place_;
  int row_;
  int column_;
  float sums_[kRowBlocks][kColumnBlocks][4] = {};
  float channel_sums_[kRowBlocks][4] = {};
};

template <typename Math, int kConfig>
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
  using Memory = Room<kConfig>;
  constexpr KernelConfig kRoom = Memory::kShape;
  const unsigned stages = cuda::SharedAddress(shared);
  const unsigned filter_panel = stages + kStages * Memory::kBytesOfStage;
  const std::int64_t step = std::int64_t{kPositions} * static_cast<int>(gridDim.x);
  std::int64_t first = std::int64_t{kPositions} * static_cast<int>(blockIdx.x);
  const auto load = [&](std::int64_t position, unsigned stage) {
    if (position < p.positions) {
      LoadPanel<Memory::kThreads, kPositions, kRoom.y_channels>(
          y, p.y_channels, position, p.positions, stage);
      LoadPanel<Memory::kThreads, kPositions, kRoom.x_channels>(
          x, p.x_channels, position, p.positions, stage + Memory::kBytesOfY);
    }
    cuda::EndOfCopies();
  };
  LoadPanel<Memory::kThreads, kRoom.y_channels, kRoom.x_channels>(
      filter, p.x_channels, 0, p.y_channels, filter_panel);
  load(first, stages);
  unsigned stage = 0;
  // Every warp copies; then `use` is given the panel of a tile that has come.
  const auto for_each_tile = [&](const auto& use) {
    for (; first < p.positions; first += step) {
      cuda::WaitForCopies<0>();
      // The copies of all threads are there, and the other stage has been read.
      cuda::SynchronizeBlock<Memory::kThreads>();
      load(first + step, stages + (stage ^ 1U) * Memory::kBytesOfStage);
      use(stages + stage * Memory::kBytesOfStage);
      stage ^= 1U;
    }
  };
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const DataGradient<Math, kConfig> data(p, warp % kWarps, filter_panel, x_gradient, accumulate);
  if (kRoom.is_apart && warp < kWarps) {
    for_each_tile([&](unsigned panel) { data.Write(panel, first); });
    return;
  }
  FilterGradient<Math, kConfig> sums(p, warp % kWarps);
  for_each_tile([&](unsigned panel) {
    if (!kRoom.is_apart) {
      data.Write(panel, first);
    }
    if (sums.works()) {
      sums.Add(panel, panel + Memory::kBytesOfY);
    }
  });
  if (sums.works()) {
    sums.Store(partial, partial_channels);
  }
}

}  // namespace
}  // namespace gradsmith::conv::pointwise

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_POINTWISE(name, math, config)                                             \
  extern "C" __global__ void __launch_bounds__(                                             \
      gradsmith::conv::pointwise::ThreadsOf(gradsmith::conv::pointwise::kConfigAt[config]), \
      gradsmith::conv::pointwise::kConfigAt[config].blocks)                                 \
      gradsmith_pointwise_##config##_##name(                                                \
          const __grid_constant__ gradsmith::conv::pointwise::Arguments arguments,          \
          const gradsmith::conv::pointwise::math::T* x,                                     \
          const gradsmith::conv::pointwise::math::T* filter,                                \
          const gradsmith::conv::pointwise::math::T* y,                                     \
          gradsmith::conv::pointwise::math::T* x_gradient, bool accumulate, float* partial, \
          float* partial_channels) {                                                        \
    gradsmith::conv::pointwise::ComputeGradients<gradsmith::conv::pointwise::math, config>( \
        arguments, x, filter, y, x_gradient, accumulate, partial, partial_channels);        \
  }
#define GRADSMITH_POINTWISE_FORMS(name, math) \
  GRADSMITH_POINTWISE(name, math, 0)          \
  GRADSMITH_POINTWISE(name, math, 1)          \
  GRADSMITH_POINTWISE(name, math, 2)          \
  GRADSMITH_POINTWISE(name, math, 3)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_POINTWISE_FORMS(f16, Half)
GRADSMITH_POINTWISE_FORMS(bf16, Bfloat16)
