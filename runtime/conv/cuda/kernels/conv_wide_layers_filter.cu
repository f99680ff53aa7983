#include <cstdint>

#include "conv/cuda/wide_layers_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// The filter's gradient of wide layers in TF32 by products of warpgroups; see
/// conv/cuda/wide_layers.h. Rows of a product are channels of x, columns channels of y, terms
/// pixels of y. Columns are read from shared memory, where their terms must be next to each other:
/// a kernel turns dY beforehand. Rows come by registers, from wherever a tap meets x.
#ifdef GRADSMITH_HAS_WARPGROUPS

namespace gradsmith::conv::wide_layers {
namespace {

template <int kRun>
constexpr unsigned kRunBytes = RunBytesOf(kRun);
template <int kRun>
constexpr unsigned kStageBytes = StageBytesOf(kRun);

/// What a block does without a break: steps of one tile.
struct Segment {
  __device__ __forceinline__ Segment(const Arguments& p, int begin, int end) {
    tile = begin / p.steps;
    first = begin - tile * p.steps;
    count = min(end - begin, p.steps - first);
    pair = tile % p.pairs;
    y_tile = tile / p.pairs;
  }

  int tile;
  /// The first step, and how many there are.
  int first;
  int count;
  int pair;
  int y_tile;
};

/// Where a block's steps begin, of all tiles' steps one after the other.
__device__ __forceinline__ int BeginOf(const Arguments& p, int block) {
  return static_cast<int>(static_cast<std::int64_t>(p.all_steps) * block / p.blocks);
}

/// The first of the blocks that share a tile.
__device__ __forceinline__ int FirstBlockOf(const Arguments& p, int tile) {
  const std::int64_t next = static_cast<std::int64_t>(tile) * p.steps + 1;
  return static_cast<int>((next * p.blocks + p.all_steps - 1) / p.all_steps) - 1;
}

/// A warpgroup's rows of products.
struct Unit {
  __device__ __forceinline__ Unit(const Arguments& p, int number) {
    exists = number < p.units;
    x_channel = number % p.x_units * kXChannels;
    const int of_taps = number / p.x_units;
    down = of_taps / p.tap_groups;
    right = of_taps % p.tap_groups * kTaps;
  }

  bool exists;
  int x_channel;
  /// The first tap.
  int down;
  int right;
};

/// Where a step's stage and its barriers are, and the parity of their phases.
template <int kRun>
struct Stages {
  [[nodiscard]] __device__ __forceinline__ unsigned At(int step) const {
    return memory + step % kStages * kStageBytes<kRun>;
  }
  [[nodiscard]] __device__ __forceinline__ unsigned Copied(int step) const {
    return memory + kStages * kStageBytes<kRun> + step % kStages * (2 * kBarrierBytes);
  }
  [[nodiscard]] __device__ __forceinline__ unsigned Used(int step) const {
    return Copied(step) + kBarrierBytes;
  }
  __device__ __forceinline__ static int Parity(int step) { return step / kStages % 2; }

  unsigned memory;
};

/// Copies a segment's steps: dY as it was turned, and the pixels of x that units meet. A thread has
/// a place, of both units where they are next to each other, or else of one. A warp begins its
/// copies one by one, so that all warps share them.
template <int kRun>
class Copier {
 public:
  __device__ __forceinline__
  Copier(const Arguments& p, const Segment& segment, const float* x, const float* turned)
      : p_(p) {
    const auto thread = static_cast<int>(threadIdx.x) % kWarpgroup;
    const int copy = thread % 32 * kWarps + thread / 32;
    const int first_unit = segment.pair * kConsumers;
    const bool are_one = first_unit % p.x_units < p.x_units - 1;
    const int consumer = are_one ? 0 : copy % kConsumers;
    place_ = are_one ? copy : copy / kConsumers;
    const Unit unit(p, first_unit + consumer);
    const int channels =
        min(are_one ? kConsumers * kXChannels : kXChannels, p.x_channels - unit.x_channel);
    bytes_ = unit.exists && place_ < p.places ? channels * 4 : 0;
    top_ = unit.down * p.dilation_down - p.pad_top;
    left_ = unit.right - p.pad_left;
    x_ = x + unit.x_channel;
    y_ = turned + (static_cast<std::int64_t>(segment.y_tile) * p.steps + segment.first) *
                      (kTileBytesOfY / 4);
    // Both units' channels may be read from any of them but the last.
    zeros_ = turned + static_cast<std::int64_t>(p.y_tiles) * p.steps * (kTileBytesOfY / 4) +
             (static_cast<int>(blockIdx.x) * kWarpgroup + copy) % (kZeroPixels - 1) * kXChannels;
    to_ = kTileBytesOfY + consumer * kUnitBytes + place_ / kRun * kRunBytes<kRun> +
          place_ % kRun * kPlaceBytes;
    pixel_ = segment.first * kPixels;
    copies_y_ = copy == 0;
  }

  __device__ __forceinline__ void Begin(unsigned stage, unsigned barrier) {
    int column = pixel_;
    int row = cuda::DivideBy(p_.y_width, &column);
    column += place_;
    row += cuda::DivideBy(p_.reach, &column);
    const int bytes = column < p_.reached ? bytes_ : 0;
    cuda::ArriveBeforeCopies(barrier, bytes + (copies_y_ ? kTileBytesOfY : 0));
    if (copies_y_) {
      cuda::BeginBulkCopy(stage, y_, kTileBytesOfY, barrier);
    }
    if (bytes > 0) {
      cuda::BeginBulkCopy(stage + to_, PixelAt(row, column), bytes, barrier);
    }
    y_ += kTileBytesOfY / 4;
    pixel_ += kPixels;
  }

 private:
  static constexpr int kWarps = kWarpgroup / 32;
  static_assert(kMostPlaces * kConsumers <= kWarpgroup);

  /// The pixel of x that a place of a row of y is for, or zeros.
  [[nodiscard]] __device__ __forceinline__ const float* PixelAt(int row, int column) const {
    int in_image = row;
    const int image = cuda::DivideBy(p_.y_height, &in_image);
    const int x_row = in_image + top_;
    const int x_column = column + left_;
    const bool exists =
        (row < p_.rows) & cuda::IsWithin(x_row, p_.x_height) & cuda::IsWithin(x_column, p_.x_width);
    // Offsets that do not exist may be too many to count.
    const int offset = exists ? x_row * p_.x_row + x_column * p_.x_column : 0;
    return exists ? x_ + image * p_.x_image + offset : zeros_;
  }

  const Arguments& p_;
  const float* y_;
  const float* zeros_;
  const float* x_;
  int bytes_;
  int top_;
  int left_;
  int place_;
  int pixel_;
  unsigned to_;
  bool copies_y_;
};

/// The first of the two rows of a thread's sums; the other is eight on.
__device__ __forceinline__ int RowOf(int thread) {
  return thread % kWarpgroup / 32 * 16 + thread % 32 / 4;
}

/// Where a thread's sums lie in the filter's gradient.
struct PlaceOfSums {
  __device__ __forceinline__ PlaceOfSums(const Arguments& p, const Segment& segment) {
    const int thread = cuda::ThreadReadAnew();
    const Unit unit(p, segment.pair * kConsumers + thread / kWarpgroup);
    const int y_channel = segment.y_tile * kYChannels + thread % 4 * 2;
    const int x_channel = unit.x_channel + RowOf(thread);
    taps = unit.exists ? min(kTaps, p.filter_width - unit.right) : 0;
    y_channels = p.y_channels - y_channel;
    x_channels = p.x_channels - x_channel;
    of_tap = p.x_channels;
    of_y_channel = static_cast<std::int64_t>(p.filter_height) * p.filter_width * of_tap;
    first =
        y_channel * of_y_channel + (unit.down * p.filter_width + unit.right) * of_tap + x_channel;
  }

  [[nodiscard]] __device__ __forceinline__ bool HasTap(int tap) const { return tap < taps; }
  [[nodiscard]] __device__ __forceinline__ bool Has(int i) const {
    return DownOf(i) < y_channels && RightOf(i) < x_channels;
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t At(int tap, int i) const {
    return first + DownOf(i) * of_y_channel + tap * of_tap + RightOf(i);
  }
  __device__ __forceinline__ static int DownOf(int i) { return i / 4 * 8 + i % 2; }
  __device__ __forceinline__ static int RightOf(int i) { return i / 2 % 2 * 8; }

  int taps;
  int y_channels;
  int x_channels;
  std::int64_t of_tap;
  std::int64_t of_y_channel;
  std::int64_t first;
};

/// A warpgroup's sums: those of a unit and a tile of y.
template <int kRun>
class FilterGradient {
 public:
  __device__ __forceinline__ explicit FilterGradient(const Arguments& p) : p_(p) {
    const auto thread = static_cast<int>(threadIdx.x);
    terms_at_ = kTileBytesOfY + thread / kWarpgroup * kUnitBytes + RowOf(thread) * 4;
  }

  __device__ __forceinline__ void Clear() {
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        sums_[tap][i] = 0;
      }
    }
  }

  /// Adds a step's products; `pixel` is its first one. Those of the step before are done then.
  __device__ __forceinline__ void Add(unsigned stage, int pixel) {
    int column = pixel;
    cuda::DivideBy(p_.y_width, &column);
#pragma unroll
    for (int group = 0; group < kProducts / kProductsOfGroup; ++group) {
      // A run and what taps reach beyond it are in two runs of places.
      const int run = RunAt(column, group * kRunsOfGroup + cuda::Lane() % kRunsOfGroup);
      const unsigned first = stage + terms_at_ + run * kRunBytes<kRun>;
      float pixels[kRun + kTaps - 1][2];
#pragma unroll
      for (int j = 0; j < kRun + kTaps - 1; ++j) {
        Load(first + j / kRun * kRunBytes<kRun> + j % kRun * kPlaceBytes, pixels[j]);
      }
#pragma unroll
      for (int i = 0; i < kProductsOfGroup; ++i) {
        Multiply(stage + (group * kProductsOfGroup + i) * kSlabBytes, &pixels[2 * i]);
      }
    }
  }

  /// Writes the sums to a piece of the filter's gradient, whose channels of x come last.
  __device__ __forceinline__ void Leave(const Segment& segment, float* to) const {
    const PlaceOfSums place(p_, segment);
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      if (place.HasTap(tap)) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          if (place.Has(i)) {
            to[place.At(tap, i)] = sums_[tap][i];
          }
        }
      }
    }
  }

  /// Writes zeros instead.
  __device__ __forceinline__ void LeaveZeros(const Segment& segment, float* to) const {
    const PlaceOfSums place(p_, segment);
#pragma unroll 1
    for (int tap = 0; place.HasTap(tap); ++tap) {
#pragma unroll 1
      for (int i = 0; i < kSums; ++i) {
        if (place.Has(i)) {
          to[place.At(tap, i)] = 0;
        }
      }
    }
  }

 private:
  static constexpr int kSums = kYChannels / 2;
  static constexpr int kProductsOfGroup = kRunsOfGroup * kRun / kDepth;

  /// The run of places where that of a run of the step's pixels begins: each row has one more.
  [[nodiscard]] __device__ __forceinline__ int RunAt(int column, int run) const {
    int in_row = column + kRun * run;
    return run + cuda::DivideBy(p_.y_width, &in_row);
  }

  /// Two rows' terms.
  __device__ __forceinline__ static void Load(unsigned place, float (&to)[2]) {
    constexpr unsigned kEightRows = 8 * 4;
    to[0] = cuda::BeforeCutOff(cuda::LoadShared(place));
    to[1] = cuda::BeforeCutOff(cuda::LoadShared(place + kEightRows));
  }

  /// Begins the products of two pixels of each run, and of those that taps meet beside them.
  __device__ __forceinline__ void Multiply(unsigned slab, const float (*pixels)[2]) {
    const std::uint64_t columns = cuda::ColumnsAt(slab);
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      // The registers of the tap's product before are free then, while others are under way.
      cuda::WaitForProducts<kTaps - 1>();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        terms_[tap][i] = __float_as_uint(pixels[tap + i / 2][i % 2]);
      }
      cuda::BeginProducts();
      cuda::AddWarpgroupProduct(terms_[tap], columns, sums_[tap]);
      cuda::EndOfProducts();
    }
  }

  const Arguments& p_;
  unsigned terms_at_;
  std::uint32_t terms_[kTaps][4];
  float sums_[kTaps][kSums];
};

/// Copies each step ahead of those who multiply it.
template <int kRun>
__device__ __forceinline__ void CopyEach(
    const Arguments& p,
    const float* x,
    const float* turned,
    const Stages<kRun>& stages,
    int begin,
    int end) {
  int number = 0;
  while (begin < end) {
    const Segment segment(p, begin, end);
    Copier<kRun> copier(p, segment, x, turned);
    for (int i = 0; i < segment.count; ++i) {
      if (number >= kStages) {
        cuda::WaitForPhase(stages.Used(number), Stages<kRun>::Parity(number) ^ 1);
      }
      copier.Begin(stages.At(number), stages.Copied(number));
      ++number;
    }
    begin += segment.count;
  }
}

/// Multiplies each step, and writes what each tile comes to.
template <int kRun>
__device__ __forceinline__ void
UseEach(const Arguments& p, float* partial, const Stages<kRun>& stages, int begin, int end) {
  const std::int64_t elements =
      static_cast<std::int64_t>(p.filter_height) * p.filter_width * p.y_channels * p.x_channels;
  FilterGradient<kRun> gradient(p);
  int number = 0;
  while (begin < end) {
    const Segment segment(p, begin, end);
    gradient.Clear();
    for (int i = 0; i < segment.count; ++i) {
      cuda::WaitForPhase(stages.Copied(number), Stages<kRun>::Parity(number));
      gradient.Add(stages.At(number), (segment.first + i) * kPixels);
      if (i > 0 && cuda::Lane() == 0) {
        cuda::Arrive(stages.Used(number - 1));
      }
      ++number;
    }
    cuda::WaitForProducts<0>();
    if (cuda::Lane() == 0) {
      cuda::Arrive(stages.Used(number - 1));
    }
    int piece = static_cast<int>(blockIdx.x) - FirstBlockOf(p, segment.tile);
    gradient.Leave(segment, partial + piece * elements);
    const bool is_last = segment.first + segment.count == p.steps;
    while (is_last && ++piece < p.pieces) {
      gradient.LeaveZeros(segment, partial + piece * elements);
    }
    begin += segment.count;
  }
}

template <int kRun>
__device__ __forceinline__ void
ComputeFilter(const Arguments& p, const float* x, const float* turned, float* partial) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  const Stages<kRun> stages = {
      (cuda::SharedAddress(shared) + kAlignment - 1) / kAlignment * kAlignment};
  const int begin = BeginOf(p, static_cast<int>(blockIdx.x));
  const int end = BeginOf(p, static_cast<int>(blockIdx.x) + 1);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      cuda::InitBarrier(stages.Copied(i), kWarpgroup);
      cuda::InitBarrier(stages.Used(i), kConsumers * kWarpgroup / 32);
    }
    cuda::ShowBarriers();
  }
  __syncthreads();
  if (cuda::SameInWarp(static_cast<int>(threadIdx.x) / kWarpgroup) == kConsumers) {
    cuda::LeaveRegisters<kCopierRegisters>();
    CopyEach(p, x, turned, stages, begin, end);
  } else {
    cuda::TakeRegisters<kConsumerRegisters>();
    UseEach(p, partial, stages, begin, end);
  }
}

/// Pixels of a step of dY, as they lie and as products find them. A thread has the same four
/// channels of some pixels.
template <int kRun>
class Turner {
 public:
  __device__ __forceinline__ Turner(const Arguments& p, const float* y, float* turned) : p_(p) {
    const auto thread = static_cast<int>(threadIdx.x);
    channel_ = thread % kVectors * kVector;
    first_pixel_ = thread / kVectors;
    const int of_all = static_cast<int>(blockIdx.y) * kYChannels + channel_;
    has_channels_ = of_all < p.y_channels;
    y_ = y + of_all;
    turned_ = reinterpret_cast<float4*>(turned) +
              static_cast<std::int64_t>(blockIdx.y) * p.steps * (kTileBytesOfY / 16);
  }

  /// Loads a step's pixels; zeros beyond the last ones.
  __device__ __forceinline__ void Load(int step) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      values_[i] = {0, 0, 0, 0};
      int column = step * kPixels + first_pixel_ + i * kPixelsAtATime;
      int row = cuda::DivideBy(p_.y_width, &column);
      if (has_channels_ && row < p_.rows && column < p_.y_columns) {
        const int image = cuda::DivideBy(p_.y_height, &row);
        values_[i] = *reinterpret_cast<const float4*>(
            y_ + image * p_.y_image + (row * p_.y_row + column * p_.y_column));
      }
    }
  }

  /// Adds them to the sums of channels, and shows them to the block.
  __device__ __forceinline__ void Show(float4* raw) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      sums_.x += values_[i].x;
      sums_.y += values_[i].y;
      sums_.z += values_[i].z;
      sums_.w += values_[i].w;
      raw[((first_pixel_ + i * kPixelsAtATime) * kPitch + channel_) / kVector] = values_[i];
    }
  }

  /// Rounds what is shown and writes the terms of a channel next to each other. Its two chunks of a
  /// product are exchanged in every second four channels.
  __device__ __forceinline__ void Store(int step, const float4* raw) const {
    const auto* const from = reinterpret_cast<const float*>(raw);
    float4* const to = turned_ + static_cast<std::int64_t>(step) * (kTileBytesOfY / 16);
#pragma unroll
    for (int i = static_cast<int>(threadIdx.x); i < kTileBytesOfY / 16; i += kTurnThreads) {
      const int channel = i / 2 % kYChannels;
      const int half = i % 2 ^ (channel / 4 % 2);
      const int product = i / (2 * kYChannels);
      const int first = product / kProductsOfGroup * (kRunsOfGroup * kRun) +
                        product % kProductsOfGroup * 2 + half;
      const float* const term = from + first * kPitch + channel;
      to[i] = {
          cuda::BeforeCutOff(term[0]), cuda::BeforeCutOff(term[kRun * kPitch]),
          cuda::BeforeCutOff(term[2 * kRun * kPitch]), cuda::BeforeCutOff(term[3 * kRun * kPitch])};
    }
  }

  /// Adds up what threads have of the same channels, once all are done with `raw`.
  __device__ __forceinline__ void LeaveSums(float4* raw, float* partial_channels) const {
    raw[first_pixel_ * kVectors + channel_ / kVector] = sums_;
    __syncthreads();
    const auto channel = static_cast<int>(threadIdx.x);
    const int of_all = static_cast<int>(blockIdx.y) * kYChannels + channel;
    if (channel < kYChannels && of_all < p_.y_channels) {
      float sum = 0;
      for (int i = 0; i < kPixelsAtATime; ++i) {
        sum += reinterpret_cast<const float*>(raw)[i * kYChannels + channel];
      }
      partial_channels[static_cast<std::int64_t>(blockIdx.x) * p_.y_channels + of_all] = sum;
    }
  }

  /// Empty places let lanes that have the two chunks of a channel read from different banks.
  static constexpr int kPitch = kYChannels + 16;

 private:
  static constexpr int kVectors = kYChannels / kVector;
  static constexpr int kPixelsAtATime = kTurnThreads / kVectors;
  static constexpr int kMine = kPixels / kPixelsAtATime;
  static constexpr int kProductsOfGroup = kRunsOfGroup * kRun / kDepth;

  const Arguments& p_;
  const float* y_;
  float4* turned_;
  int channel_;
  int first_pixel_;
  bool has_channels_;
  float4 values_[kMine];
  float4 sums_ = {0, 0, 0, 0};
};

template <int kRun>
__device__ __forceinline__ void
Turn(const Arguments& p, const float* y, float* turned, float* partial_channels) {
  __shared__ float4 raw[kPixels * Turner<kRun>::kPitch / kVector];
  Turner<kRun> turner(p, y, turned);
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const auto end = static_cast<int>(p.steps * (row + 1) / p.turn_rows);
  auto step = static_cast<int>(p.steps * row / p.turn_rows);
  turner.Load(step);
  for (; step < end; ++step) {
    turner.Show(raw);
    __syncthreads();
    if (step + 1 < end) {
      turner.Load(step + 1);
    }
    turner.Store(step, raw);
    __syncthreads();
  }
  if (partial_channels != nullptr) {
    turner.LeaveSums(raw, partial_channels);
  }
  float* const zeros =
      turned + static_cast<std::int64_t>(p.y_tiles) * p.steps * (kTileBytesOfY / 4);
  const auto block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x);
  const auto threads = static_cast<int>(gridDim.x * gridDim.y) * kTurnThreads;
  for (int i = block * kTurnThreads + static_cast<int>(threadIdx.x); i < kZeros; i += threads) {
    zeros[i] = 0;
  }
}

}  // namespace
}  // namespace gradsmith::conv::wide_layers

#define GRADSMITH_WIDE_LAYERS(run)                                                         \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::wide_layers::kThreads, 1)  \
      gradsmith_wide_layers_filter_##run(                                                  \
          const __grid_constant__ gradsmith::conv::wide_layers::Arguments arguments,       \
          const float* x, const float* turned, float* partial) {                           \
    gradsmith::conv::wide_layers::ComputeFilter<run>(arguments, x, turned, partial);       \
  }                                                                                        \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::wide_layers::kTurnThreads) \
      gradsmith_wide_layers_turn_##run(                                                    \
          const __grid_constant__ gradsmith::conv::wide_layers::Arguments arguments,       \
          const float* y, float* turned, float* partial_channels) {                        \
    gradsmith::conv::wide_layers::Turn<run>(arguments, y, turned, partial_channels);       \
  }

GRADSMITH_WIDE_LAYERS(4)
GRADSMITH_WIDE_LAYERS(2)

#endif
