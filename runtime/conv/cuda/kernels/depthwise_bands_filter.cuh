#ifndef GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_FILTER_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_FILTER_CUH_

#include <cstdint>

#include "conv/cuda/depthwise_bands_arguments.h"
#include "conv/cuda/kernels/depthwise_bands.cuh"

/// The filter's gradient as products of what windows of dY meet in x and these windows: rows are
/// positions of what they meet, columns those of a window, and terms windows. What lies along a
/// diagonal, `step` rows down for each column, is of the same tap.
namespace gradsmith::conv::depthwise_bands {

/// Rows and columns of a product.
constexpr int kPositions = 16;
/// Products of each sum between two foldings into float: tensor cores cut off what they add.
constexpr int kProductsOfFold = 32;

/// Rows of taps, and blocks of what windows meet, that a warp sums.
template <int kRows, int kBlocks>
struct Item {
  __device__ __forceinline__ Item(const Arguments& p, int number) {
    const int sets = (p.blocks + kBlocks - 1) / kBlocks;
    int group = number / sets;
    block = (number - group * sets) * kBlocks;
    taps = 0;  // of a group beyond the last one
    for (phase = 0; phase < p.step_down; ++phase) {
      // Where windows step down, every so manieth tap meets the same rows.
      const int of_phase = (p.taps_down - phase + p.step_down - 1) / p.step_down;
      const int groups = (of_phase + kRows - 1) / kRows;
      if (group < groups) {
        tap = group * kRows;
        taps = min(of_phase - tap, kRows);
        break;
      }
      group -= groups;
    }
  }

  int phase;
  int tap = 0;
  int taps;
  int block;
};

/// Half and bf16: sixteen windows to a product, of which each lane has one.
template <typename Math>
struct Terms {
  static constexpr int kOfLane = 1;
  static constexpr int kWindowsOfProduct = 16;

  __device__ static __forceinline__ int WindowOf(int /*i*/) { return cuda::Lane() % 16; }
  __device__ static __forceinline__ unsigned OffsetOfLane() {
    return cuda::Lane() / 16 * kVectorBytes;
  }
  __device__ static __forceinline__ void
  Load(const unsigned (&windows)[kOfLane], unsigned offset, std::uint32_t (&to)[4]) {
    std::uint32_t bits[4];
    cuda::LoadTransposed(windows[0] + OffsetOfLane() + offset, bits);
    to[0] = bits[0];
    to[1] = bits[2];
    to[2] = bits[1];
    to[3] = bits[3];
  }
  __device__ static __forceinline__ void Load(
      const unsigned (&windows)[kOfLane],
      std::uint32_t (&to)[2]) {
    cuda::LoadTransposed(windows[0], to);
  }
};

/// TF32: eight, of which each lane has two.
template <>
struct Terms<Tf32> {
  static constexpr int kOfLane = 2;
  static constexpr int kWindowsOfProduct = 8;

  __device__ static __forceinline__ int WindowOf(int i) { return cuda::Lane() % 4 + 4 * i; }
  __device__ static __forceinline__ unsigned OffsetOfLane() {
    return cuda::Lane() / 4 * static_cast<int>(sizeof(float));
  }
  __device__ static __forceinline__ void
  Load(const unsigned (&windows)[kOfLane], unsigned offset, std::uint32_t (&to)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      constexpr int kHalf = kPositions / 2 * static_cast<int>(sizeof(float));
      to[i] = Tf32::Rounded(LoadWord(windows[i / 2] + OffsetOfLane() + offset + i % 2 * kHalf));
    }
  }
  /// Not rounded.
  __device__ static __forceinline__ void Load(
      const unsigned (&windows)[kOfLane],
      std::uint32_t (&to)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      to[i] = LoadWord(windows[i] + OffsetOfLane());
    }
  }
};

/// A warp's sums of its item.
template <typename Math, int kRows, int kBlocks>
class Gradient {
  using T = typename Math::T;
  using OfProduct = Terms<Math>;
  static constexpr int kOfLane = OfProduct::kOfLane;

 public:
  __device__ __forceinline__ Gradient(const Arguments& p, const Item<kRows, kBlocks>& item)
      : item_(item),
        offset_(
            (p.step_down * item.tap + item.phase) * p.from_room.pitch +
            item.tap / kRows * p.from_room.skew + item.block * kBlockPitch) {}

  /// Adds what a work's windows make, from `first` on and so many apart. `zeros` are where windows
  /// beyond the last one are read of dY.
  __device__ __forceinline__ void Add(
      const Arguments& p,
      unsigned from,
      unsigned to,
      unsigned zeros,
      int first,
      int apart,
      bool sums_channel) {
    const int count = WindowsOf(p);
    for (int number = first; number < count; number += apart) {
      unsigned met[kOfLane];
      unsigned windows[kOfLane];
      int pitches[kOfLane];
#pragma unroll
      for (int i = 0; i < kOfLane; ++i) {
        const int window = number + OfProduct::WindowOf(i);
        const bool is_there = window < count;
        const Place place(p, min(window, count - 1));
        met[i] = from + SourceAt<T, kRows>(p, place) + offset_;
        windows[i] = is_there ? to + WindowAt(p, place) : zeros;
        pitches[i] = is_there ? p.to_room.pitch : 0;
      }
      AddWindows(p, met, windows, pitches, sums_channel);
      if (++products_ >= kProductsOfFold / kRows) {
        Fold();
      }
    }
  }

  /// Leaves the sums of each tap's diagonal, in each block: `diagonals` for each row of taps and
  /// block. The scratch is of the warp's product.
  __device__ __forceinline__ void
  Leave(const Arguments& p, int diagonals, float* scratch, float* to) {
    Fold();
    const int before = (kWindow - 1) * p.step_across;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int position = cuda::Lane() / 4 + i / 2 * kPositions / 2;
          scratch[position * kWindow + cuda::Lane() % 4 * 2 + i % 2] = sums_[row][block][i];
        }
        cuda::SynchronizeWarp();
        for (int i = cuda::Lane(); i < diagonals; i += 32) {
          float sum = 0;
#pragma unroll
          for (int column = 0; column < kWindow; ++column) {
            const int position = i - before + column * p.step_across;
            sum += cuda::IsWithin(position, kPositions) ? scratch[position * kWindow + column] : 0;
          }
          to[(row * kBlocks + block) * diagonals + i] = sum;
        }
        cuda::SynchronizeWarp();
      }
    }
  }

  /// The sum of all of dY that the warp has met, in every lane.
  [[nodiscard]] __device__ __forceinline__ float ChannelSum() const {
    float sum = channel_sum_;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, apart);
    }
    return sum;
  }

 private:
  static constexpr int kBlockPitch = kPositions * static_cast<int>(sizeof(T));

  __device__ static __forceinline__ unsigned WindowAt(const Arguments& p, const Place& place) {
    return place.image * p.to_room.plane_pitch +
           place.strip * (kRows * p.to_room.pitch + p.to_room.skew) +
           place.column * kWindow * static_cast<int>(sizeof(T));
  }

  /// Goes down x; the last rows of dY stay in registers, and meet one row of taps after the other.
  __device__ __forceinline__ void AddWindows(
      const Arguments& p,
      const unsigned (&met)[kOfLane],
      unsigned (&windows)[kOfLane],
      const int (&pitches)[kOfLane],
      bool sums_channel) {
    std::uint32_t factors[kRows][2];
    unsigned offset = 0;
#pragma unroll
    for (int row = 0; row < 2 * kRows - 1; ++row) {
      if (row < kRows) {
        OfProduct::Load(windows, factors[row]);
#pragma unroll
        for (int i = 0; i < kOfLane; ++i) {
          windows[i] += pitches[i];
        }
#pragma unroll
        for (std::uint32_t& bits : factors[row]) {
          channel_sum_ += sums_channel ? Math::SumOf(bits) : 0;
          bits = Math::Rounded(bits);
        }
      }
      if (item_.taps > 0 && row < kRows - 1 + item_.taps) {
#pragma unroll
        for (int block = 0; block < kBlocks; ++block) {
          std::uint32_t positions[4];
          OfProduct::Load(met, offset + block * kBlockPitch, positions);
#pragma unroll
          for (int tap = 0; tap < kRows; ++tap) {
            if (row - tap >= 0 && row - tap < kRows && tap < item_.taps) {
              Math::AddProduct(
                  positions, factors[(row - tap + kRows) % kRows], newest_[tap][block]);
            }
          }
        }
      }
      offset += p.step_down * p.from_room.pitch + (row % kRows == kRows - 1 ? p.from_room.skew : 0);
    }
  }

  __device__ __forceinline__ void Fold() {
    products_ = 0;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sums_[row][block][i] += newest_[row][block][i];
          newest_[row][block][i] = 0;
        }
      }
    }
  }

  Item<kRows, kBlocks> item_;
  unsigned offset_;
  int products_ = 0;
  float newest_[kRows][kBlocks][4] = {};
  float sums_[kRows][kBlocks][4] = {};
  float channel_sum_ = 0;
};

/// Adds up what warps have left of each tap, in their order, and writes the block's slice.
template <int kRows, int kBlocks>
__device__ __forceinline__ void
AddUpTaps(const Arguments& p, int shift, int diagonals, const float* left, float* partial) {
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int sets = (p.blocks + kBlocks - 1) / kBlocks;
  const int taps = p.taps_down * p.taps_across;
  const int first_item = static_cast<int>(blockIdx.z) * p.items;
  float* const slice =
      partial + (static_cast<std::int64_t>(blockIdx.y) * p.channels + blockIdx.x) * taps;
  for (int i = static_cast<int>(threadIdx.x); i < taps; i += static_cast<int>(blockDim.x)) {
    const int row = i / p.taps_across;
    const int diagonal =
        (i - row * p.taps_across) * p.dilation_across + shift + (kWindow - 1) * p.step_across;
    const int phase = row % p.step_down;
    const int of_phase = row / p.step_down;
    int group = of_phase / kRows;
    for (int before = 0; before < phase; ++before) {
      group += ((p.taps_down - before + p.step_down - 1) / p.step_down + kRows - 1) / kRows;
    }
    const int item = group * sets - first_item;
    if (!cuda::IsWithin(item, p.items)) {
      continue;
    }
    float sum = 0;
    for (int warp = item; warp < warps; warp += p.items) {
      for (int block = 0; block < p.blocks; ++block) {
        const int at = diagonal - block * kPositions;
        if (cuda::IsWithin(at, diagonals)) {
          const int of_warp = of_phase % kRows * kBlocks + block % kBlocks;
          sum += left[((warp + block / kBlocks) * kRows * kBlocks + of_warp) * diagonals + at];
        }
      }
    }
    slice[i] = sum;
  }
}

template <typename Math, int kRows, int kBlocks>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const typename Math::T* x,
    const typename Math::T* y,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  // Zeros for windows that are not there; the stages, which become what warps leave.
  constexpr int kZeros = 2;
  if (threadIdx.x < kZeros) {
    shared[threadIdx.x] = {0, 0, 0, 0};
  }
  auto* const stages = reinterpret_cast<unsigned char*>(shared + kZeros);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int copies = static_cast<int>(blockDim.x) / 32 / p.items;
  const int number = static_cast<int>(blockIdx.z) * p.items + warp % p.items;
  const Item<kRows, kBlocks> item(p, number);
  Gradient<Math, kRows, kBlocks> gradient(p, item);
  const Meeting meeting(p, PlaneOf(p.from, x, 0), PlaneOf(p.to, y, 0));
  const bool sums_channel = number == 0 && partial_channels != nullptr;
  const auto begin = [&](const Work& work, unsigned char* stage) {
    BeginSource(p, work, meeting, PlaneOf(p.from, x, work.image), stage);
    BeginTile(
        p.to, p.to_room, PlaneOf(p.to, y, work.image), work.images, work.row, p.dilation_down,
        meeting.to_left + work.window * kWindow, stage + p.from_room.bytes);
  };
  const auto compute = [&](const Work& /*work*/, const unsigned char* stage) {
    constexpr int kAtOnce = Terms<Math>::kWindowsOfProduct;
    const unsigned from = cuda::SharedAddress(stage);
    gradient.Add(
        p, from, from + p.from_room.bytes, cuda::SharedAddress(shared), warp / p.items * kAtOnce,
        copies * kAtOnce, sums_channel);
  };
  ForEachWork<kRows>(p, stages, p.from_room.bytes + p.to_room.bytes, begin, compute);
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int diagonals = kPositions + (kWindow - 1) * p.step_across;
  auto* const scratch = reinterpret_cast<float*>(stages);
  float* const left = scratch + warps * kPositions * kWindow;
  gradient.Leave(
      p, diagonals, scratch + warp * kPositions * kWindow,
      left + warp * kRows * kBlocks * diagonals);
  __shared__ float channel_sums[kMostFilterThreads / 32];
  if (sums_channel) {
    channel_sums[warp] = gradient.ChannelSum();
  }
  __syncthreads();
  AddUpTaps<kRows, kBlocks>(p, meeting.shift, diagonals, left, partial);
  if (sums_channel && threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < warps; i += p.items) {
      sum += channel_sums[i];
    }
    partial_channels[static_cast<std::int64_t>(blockIdx.y) * p.channels + blockIdx.x] = sum;
  }
}

}  // namespace gradsmith::conv::depthwise_bands

#define GRADSMITH_DEPTHWISE_BANDS_FILTER(math, name, rows, of_window)                    \
  extern "C" __global__ void __launch_bounds__(                                          \
      gradsmith::conv::depthwise_bands::kMostFilterThreads)                              \
      gradsmith_depthwise_bands_filter_##name##_##rows(                                  \
          const __grid_constant__ gradsmith::conv::depthwise_bands::Arguments arguments, \
          const math::T* x, const math::T* y, float* partial, float* partial_channels) { \
    gradsmith::conv::depthwise_bands::ComputeFilter<math, rows, of_window>(              \
        arguments, x, y, partial, partial_channels);                                     \
  }

#endif  // GRADSMITH_CONV_CUDA_KERNELS_DEPTHWISE_BANDS_FILTER_CUH_
