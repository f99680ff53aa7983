#include <cstdint>
#include <cstring>

#include "conv/cuda/first_layers_arguments.h"
#include "conv/cuda/kernels/first_layers.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"
#include "conv/cuda/kernels/turns.cuh"

/// All gradients of a first layer, in one pass over dY; see conv/cuda/first_layers.h.
/// A block goes down a strip of an image, with the rows of dY and x that it needs in shared memory:
/// half of its warps multiply dY with the filter, for dX, the others with x, for dW.
namespace gradsmith::conv::first_layers {
namespace {

using cuda::Bfloat16;
using cuda::Half;
using cuda::LoadMatrices;

/// The warps that multiply for dW copy rows of dY, the others those of x.
template <int kConfig>
using Room =
    RoomOf<kStep, kConfigAt[kConfig].channels, kConfigAt[kConfig].window, kRows, kPairs,
           kThreads / 2>;

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
template <int kConfig, typename T>
__device__ __forceinline__ void StoreFilter(const Arguments& p, const T* filter, uint4* memory) {
  using Memory = Room<kConfig>;
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
template <typename Math, int kConfig>
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

  __device__ __forceinline__ void Write(const Work& work, int row, const Rows<Room<kConfig>, T>& rows)
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
  using Memory = Room<kConfig>;

  template <int kCount>
  __device__ __forceinline__ void WriteRows(const Work& work, int row, const Rows<Room<kConfig>, T>& rows)
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

/// What the warps of dX do: they store the pixels of the next step, which the others multiply as
/// well, between a step's products.
template <typename Data, typename Rows, typename Pixels>
__device__ __forceinline__ void WriteDataGradient(
    const Arguments& p, const Data& data, Rows& rows, Pixels& pixels) {
  bool has_begun = true;
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
}

/// What the warps of dW do: they copy the rows of dY of the next step while they multiply.
template <typename Sums, typename Rows, typename Pixels>
__device__ __forceinline__ void SumFilterGradient(
    const Arguments& p, Sums& sums, Rows& rows, Pixels& pixels) {
  bool has_begun = true;
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
}

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
  auto* memory = reinterpret_cast<unsigned char*>(shared);
  auto* filter_memory = reinterpret_cast<uint4*>(memory + Memory::kBytesOfRows);
  static_assert(Memory::kChannels * kMostTaps * Memory::kSums * sizeof(float) <=
      Memory::kBytesOfRows);
  Rows<Memory, typename Math::T> rows(p, y, cuda::SharedAddress(shared));
  Pixels<Memory, typename Math::T> pixels(p, x, memory + Memory::kBytesOfRows + Memory::kBytesOfFilter);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  // What the first work begins with is on its way while the filter is stored.
  const Work first = WorkOf(p, static_cast<int>(blockIdx.x));
  Prefetch<kStep>(p, x, y, first);
  if (warp < kWarps) {
    pixels.FetchFirst(first);
  } else {
    rows.CopyFirst(first);
  }
  StoreFilter<kConfig>(p, filter, filter_memory);
  if (warp < kWarps) {
    const DataGradient<Math, kConfig> data(p, warp, filter_memory, x_gradient, accumulate);
    WriteDataGradient(p, data, rows, pixels);
    cuda::TakeTurns<kThreads>(p.turns, [](int /*turn*/) {});
    StoreSums<Memory, kThreads>(
        p, reinterpret_cast<const float*>(memory), 0, p.y_channels, partial, partial_channels);
    return;
  }
  FilterGradient<Math, Memory> sums(p, warp - kWarps);
  SumFilterGradient(p, sums, rows, pixels);
  cuda::TakeTurns<kThreads>(p.turns, [&](int turn) {
    if (sums.turn() == turn) {
      sums.Leave(reinterpret_cast<float2*>(memory), turn > 0);  // rows have been read
    }
  });
  StoreSums<Memory, kThreads>(
        p, reinterpret_cast<const float*>(memory), 0, p.y_channels, partial, partial_channels);
}

}  // namespace
}  // namespace gradsmith::conv::first_layers

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FIRST_LAYERS(name, math, config)                                         \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::first_layers::kThreads, 1) \
      gradsmith_first_layers_##config##_##name(                                            \
          const __grid_constant__ gradsmith::conv::first_layers::Arguments arguments,      \
          const gradsmith::cuda::math::T* x, const gradsmith::cuda::math::T* filter,       \
          const gradsmith::cuda::math::T* y, gradsmith::cuda::math::T* x_gradient,         \
          bool accumulate, float* partial, float* partial_channels) {                      \
    gradsmith::conv::first_layers::ComputeGradients<gradsmith::cuda::math, config>(        \
        arguments, x, filter, y, x_gradient, accumulate, partial, partial_channels);       \
  }
#define GRADSMITH_FIRST_LAYERS_FORMS(name, math) \
  GRADSMITH_FIRST_LAYERS(name, math, 0)          \
  GRADSMITH_FIRST_LAYERS(name, math, 1)          \
  GRADSMITH_FIRST_LAYERS(name, math, 2)          \
  GRADSMITH_FIRST_LAYERS(name, math, 3)          \
  GRADSMITH_FIRST_LAYERS(name, math, 4)          \
  GRADSMITH_FIRST_LAYERS(name, math, 5)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_FIRST_LAYERS_FORMS(f16, Half)
GRADSMITH_FIRST_LAYERS_FORMS(bf16, Bfloat16)
