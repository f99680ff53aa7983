#include <cstdint>

#include "conv/cuda/warpgroups_arguments.h"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/ptx.cuh"
#include "cuda/kernels/tf32.cuh"

/// The filter's gradient in TF32 by products of warpgroups; see conv/cuda/warpgroups.h. Rows of a
/// product are channels of x, columns channels of y, terms pixels of y: columns are read from
/// shared memory, where their terms must be next to each other from a multiple of 16 bytes on, rows
/// come by registers, from wherever a tap meets x. A tile of x is multiplied with the tile of y
/// that the first tap down meets it with, and with earlier ones, which the next taps do: a ring of
/// tiles, in which rows of zeros part images.
#ifdef GRADSMITH_HAS_WARPGROUPS

namespace gradsmith::conv::warpgroups {
namespace {

template <int kConfig>
struct Block {
  static constexpr int kRows = kConfigAt[kConfig].rows;
  static constexpr int kColumns = kConfigAt[kConfig].columns;
  static constexpr int kYChannels = kConfigAt[kConfig].y_channels;
  static constexpr int kTaps = TapsOf(kConfigAt[kConfig]);
  static constexpr int kThreads = ThreadsOf(kConfigAt[kConfig]);
  static constexpr int kConsumerRegisters = ConsumerRegistersOf(kConfigAt[kConfig]);
  static constexpr int kCopierRegisters = CopierRegistersOf(kConfigAt[kConfig]);
  static constexpr int kTileBytesOfY = TileBytesOfY(kConfigAt[kConfig]);
  static constexpr unsigned kSlabBytes = SlabBytesOf(kConfigAt[kConfig]);
  static constexpr int kPitchOfSums = PitchOfSums(kConfigAt[kConfig]);
  static constexpr int kSumsBytes = SumsBytes(kConfigAt[kConfig]);
};

/// Goes through a block's steps: works, and in each of them tiles from the top down.
class Steps {
 public:
  /// So many rows are gone through in a work.
  __device__ __forceinline__ Steps(const Arguments& p, int rows) : p_(p), rows_(rows) {
    const auto slice = static_cast<std::int64_t>(blockIdx.x);
    work_ = static_cast<int>(p.works * slice / p.slices);
    const auto end = static_cast<int>(p.works * (slice + 1) / p.slices);
    count_ = (end - work_) * ((rows + p.tile_rows - 1) / p.tile_rows);
    Find();
  }

  [[nodiscard]] __device__ __forceinline__ int count() const { return count_; }
  /// The position of y at the top of the tile.
  [[nodiscard]] __device__ __forceinline__ int row() const { return row_; }
  [[nodiscard]] __device__ __forceinline__ int column() const { return column_; }
  [[nodiscard]] __device__ __forceinline__ int image() const { return image_; }

  __device__ __forceinline__ void Advance() {
    row_ += p_.tile_rows;
    if (row_ >= rows_) {
      row_ = 0;
      ++work_;
      Find();
    }
  }

 private:
  __device__ __forceinline__ void Find() {
    int strip = work_;
    image_ = cuda::DivideBy(p_.strips, &strip) * p_.images;
    column_ = strip * p_.tile_width;
  }

  const Arguments& p_;
  int rows_;
  int work_;
  int count_;
  int row_ = 0;
  int column_ = 0;
  int image_ = 0;
};

/// What a block computes.
struct Share {
  Taps down;
  Taps right;
  int x_channel;
  int y_channel;
  /// Rows that a work goes through: those of y, and rows of zeros, which what the next work meets
  /// above its first row are.
  int rows;
  /// The first of them that meets x, and how many do.
  int first_met;
  int met;
  /// Whether it sums the channels of y.
  bool has_sums;
};

template <int kConfig>
__device__ __forceinline__ Share ShareOf(const Arguments& p) {
  using B = Block<kConfig>;
  Share share;
  const auto tile = static_cast<int>(blockIdx.y);
  const auto group = static_cast<int>(blockIdx.z);
  share.down = p.rows[group / p.column_groups];
  share.right = p.columns[group % p.column_groups];
  share.x_channel = tile % p.x_tiles * kXChannels;
  share.y_channel = tile / p.x_tiles * B::kYChannels;
  const int rows_of_x = (p.x_height - share.down.phase + p.step_down - 1) / p.step_down;
  share.rows = p.y_height + (B::kRows - 1) * p.spacing_down;
  share.first_met = max(-share.down.q, 0);
  share.met = max(min(rows_of_x - share.down.q, share.rows) - share.first_met, 0);
  share.has_sums = group == 0 && share.x_channel == 0;
  return share;
}

/// A pixel of a tile, as steps see it, and how many elements it is from the first.
struct Pixel {
  Pixel() = default;
  __device__ __forceinline__ Pixel(const Pitches& pitches, int of_down, int of_right, int of_image)
      : down(of_down),
        right(of_right),
        image(of_image),
        offset(static_cast<int>(of_image * pitches.image) + of_down * pitches.row +
               of_right * pitches.column) {}

  int down;
  int right;
  int image;
  int offset;
};

/// Copies tiles of x: those who multiply do, each the same four channels of some pixels.
template <int kConfig>
class CopierOfX {
 public:
  __device__ __forceinline__
  CopierOfX(const Arguments& p, const Share& share, const float* x, unsigned memory)
      : p_(p) {
    const auto thread = static_cast<int>(threadIdx.x);
    const int first = thread % kVectors * kVector;
    const int first_pixel = thread / kVectors;
    count_ = (p.x_pixels - first_pixel + kStep - 1) / kStep;
    has_channels_ = share.x_channel + first < p.x_channels;
    top_ = share.down.q * p.step_down + share.down.phase;
    left_ = share.right.q * p.step_right + share.right.phase;
    x_ = x + share.x_channel + first;
    to_ = memory + kRing * Block<kConfig>::kTileBytesOfY + first_pixel * kXPixelBytes + first * 4;
    const int image_row = p.image_width + p.margin;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int pixel = first_pixel + i * kStep;
      const int down = pixel / (p.images * image_row);
      const int in_row = pixel - down * p.images * image_row;
      const int image = in_row / image_row;
      pixels_[i] = Pixel(
          p.x, down * p.step_down, (in_row - image * image_row) * p.step_right, image);
    }
  }

  __device__ __forceinline__ void Begin(const Steps& step, int number) const {
    const unsigned to = to_ + number % kXTiles * kTileBytesOfX;
    const int top = top_ + step.row() * p_.step_down;
    const int left = left_ + step.column() * p_.step_right;
    const int images = has_channels_ ? p_.batch - step.image() : 0;
    const float* first = x_ + step.image() * p_.x.image + (top * p_.x.row + left * p_.x.column);
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      if (i < count_) {
        const Pixel& pixel = pixels_[i];
        const bool exists = cuda::IsWithin(top + pixel.down, p_.x_height) &
                            cuda::IsWithin(left + pixel.right, p_.x_width) &
                            (pixel.image < images);
        cuda::BeginCopy(to + i * kStep * kXPixelBytes, first + pixel.offset, exists);
      }
    }
  }

 private:
  static constexpr int kVectors = kXChannels / kVector;
  static constexpr int kStep = Block<kConfig>::kColumns * kWarpgroup / kVectors;
  static constexpr int kMine = (kMostXPixels + kStep - 1) / kStep;

  const Arguments& p_;
  const float* x_;
  unsigned to_;
  int count_;
  int top_;
  int left_;
  bool has_channels_;
  Pixel pixels_[kMine];
};

/// Copies tiles of y, and turns them: a warp has eight pixels.
template <int kConfig>
class CopierOfY {
 public:
  __device__ __forceinline__
  CopierOfY(const Arguments& p, const Share& share, const float* y, unsigned memory)
      : p_(p), turned_(memory) {
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
    const int lane = cuda::Lane();
    const int first = lane % kVectors * kVector;
    has_channels_ = share.y_channel + first < p.y_channels;
    y_ = y + share.y_channel + first;
    raw_ = memory + kRing * B::kTileBytesOfY + kXTiles * kTileBytesOfX +
           warp * kPixelsOfWarp * kPixelBytes;
    const int pixel = warp * kPixelsOfWarp + lane / kVectors;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const int in_row = (pixel + i * kStep) % p.tile_width;
      pixels_[i] = Pixel(
          p.y, (pixel + i * kStep) / p.tile_width, in_row % p.image_width, in_row / p.image_width);
    }
  }

  __device__ __forceinline__ void Begin(const Steps& step, int number) const {
    const int lane = cuda::Lane();
    const unsigned to = raw_ + number % kRawTiles * B::kTileBytesOfY +
                        lane / kVectors * kPixelBytes + lane % kVectors * kChunkBytes;
    const int rows = p_.y_height - step.row();
    const int columns = p_.y_width - step.column();
    const int images = has_channels_ ? p_.batch - step.image() : 0;
    const float* first =
        y_ + step.image() * p_.y.image + (step.row() * p_.y.row + step.column() * p_.y.column);
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      const Pixel& pixel = pixels_[i];
      const bool exists =
          (pixel.down < rows) & (pixel.right < columns) & (pixel.image < images);
      cuda::BeginCopy(to + i * kStep * kPixelBytes, first + pixel.offset, exists);
    }
  }

  /// What is above the first work's first row.
  __device__ __forceinline__ void ClearRing() const {
    constexpr float kZeros[4] = {};
    for (int i = static_cast<int>(threadIdx.x) % kWarpgroup * kChunkBytes;
         i < kRing * B::kTileBytesOfY; i += kWarpgroup * kChunkBytes) {
      cuda::StoreShared(turned_ + i, kZeros);
    }
    cuda::ShowToProducts();
  }

  /// Rounds what the warp has copied, which has arrived, and writes the pixels of a channel next to
  /// each other: a warp's are a slab.
  template <bool kSums>
  __device__ __forceinline__ void Turn(int number) {
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
    const unsigned from = raw_ + number % kRawTiles * B::kTileBytesOfY;
    const unsigned to = turned_ + number % kRing * B::kTileBytesOfY + warp * B::kSlabBytes;
    cuda::SynchronizeWarp();
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      const int channel = i * 32 + cuda::Lane();
#pragma unroll
      for (int quad = 0; quad < kPixelsOfWarp / 4; ++quad) {
        float values[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          values[j] = cuda::LoadShared(from + (quad * 4 + j) * kPixelBytes + channel * 4);
          if constexpr (kSums) {
            sums_[i] += values[j];
          }
          values[j] = cuda::BeforeCutOff(values[j]);
        }
        const int chunk = quad ^ (channel / 4 % 2);
        cuda::StoreShared(to + channel * kSlabRow + chunk * kChunkBytes, values);
      }
    }
    cuda::ShowToProducts();
    cuda::SynchronizeWarp();
  }

  /// Leaves the warp's sums of channels.
  __device__ __forceinline__ void Leave(float* sums) const {
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      sums[warp * B::kYChannels + i * 32 + cuda::Lane()] = sums_[i];
    }
  }

 private:
  using B = Block<kConfig>;
  static constexpr int kChunkBytes = kVector * 4;
  static constexpr int kSlabRow = kDepth * 4;
  static constexpr int kPixelBytes = B::kYChannels * 4;
  static constexpr int kVectors = B::kYChannels / kVector;
  static constexpr int kPixelsOfWarp = kPixels / (kWarpgroup / 32);
  static_assert(kPixelsOfWarp == kDepth);
  static constexpr int kStep = 32 / kVectors;
  static constexpr int kMine = kPixelsOfWarp / kStep;
  /// How many channels a lane has.
  static constexpr int kChannels = B::kYChannels / 32;

  const Arguments& p_;
  const float* y_;
  unsigned raw_;
  unsigned turned_;
  bool has_channels_;
  Pixel pixels_[kMine];
  float sums_[kChannels] = {};
};

/// A warpgroup's sums: those of the taps of a column.
template <int kConfig>
class FilterGradient {
 public:
  __device__ __forceinline__
  FilterGradient(const Arguments& p, const Share& share, int right, unsigned memory)
      : p_(p), share_(share), right_(right), columns_(memory) {
    const int lane = cuda::Lane();
    row_ = static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + lane / 4;
    rows_ = memory + kRing * B::kTileBytesOfY + row_ * 4 +
            (lane % 4 + right_ * p.spacing_right) * kXPixelBytes;
  }

  __device__ __forceinline__ void Add(const Steps& step, int number) {
    const unsigned rows = rows_ + number % kXTiles * kTileBytesOfX;
    const int slab = number * kProducts;
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
      const int row = step.row() + p_.row_of_product[i];
      // Those of the same terms of the step before, which are to be written anew, are done.
      cuda::WaitForProducts<kProducts - 1>();
      // Without questions between products: each would wait for those before it.
      if (cuda::IsWithin(row - share_.first_met, share_.met) &&
          step.column() + p_.column_of_product[i] < p_.y_width) {
        Load(rows, i, terms_[i]);
        cuda::BeginProducts();
#pragma unroll
        for (int tap = 0; tap < B::kRows; ++tap) {
          cuda::AddWarpgroupProduct(
              terms_[i], ColumnsAt(slab + i - tap * p_.slabs_of_spacing), sums_[tap]);
        }
        cuda::EndOfProducts();
      } else {
        // Here as well: a group that may be empty is filled with a product of nothing.
        cuda::EndOfProducts();
      }
    }
  }

  /// Writes the sums as they lie in the filter.
  __device__ __forceinline__ void Leave(float* to) const {
#pragma unroll
    for (int tap = 0; tap < B::kRows; ++tap) {
      const int of_block = tap * B::kColumns + right_;
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        const int x_channel = row_ + i / 2 % 2 * 8;
        const int y_channel = i / 4 * 8 + cuda::Lane() % 4 * 2 + i % 2;
        to[y_channel * B::kPitchOfSums + of_block * kXChannels + x_channel] = sums_[tap][i];
      }
    }
  }

 private:
  using B = Block<kConfig>;
  static constexpr int kSums = B::kYChannels / 2;

  __device__ __forceinline__ void Load(unsigned rows, int i, std::uint32_t (&to)[4]) const {
    constexpr unsigned kEightRows = 8 * 4;
    const unsigned first = rows + p_.quad_of_x[2 * i];
    const unsigned second = rows + p_.quad_of_x[2 * i + 1];
    to[0] = TermAt(first);
    to[1] = TermAt(first + kEightRows);
    to[2] = TermAt(second);
    to[3] = TermAt(second + kEightRows);
  }

  __device__ __forceinline__ static std::uint32_t TermAt(unsigned place) {
    return __float_as_uint(cuda::BeforeCutOff(cuda::LoadShared(place)));
  }

  [[nodiscard]] __device__ __forceinline__ std::uint64_t ColumnsAt(int slab) const {
    return cuda::ColumnsAt(columns_ + (slab & (kRing * kProducts - 1)) * B::kSlabBytes);
  }

  const Arguments& p_;
  const Share& share_;
  int right_;
  int row_;
  unsigned columns_;
  unsigned rows_;
  std::uint32_t terms_[kProducts][4];
  float sums_[B::kRows][kSums] = {};
};

/// Writes the block's sums to its slice of the filter's gradient, whose channels of x come last.
template <int kConfig>
__device__ __forceinline__ void
Store(const Arguments& p, const Share& share, const float* sums, float* partial) {
  using B = Block<kConfig>;
  constexpr int kThreadsOfRow = kXChannels;
  constexpr int kRowsAtATime = B::kThreads / kThreadsOfRow;
  const int x_channel = static_cast<int>(threadIdx.x) % kThreadsOfRow;
  if (x_channel >= p.x_channels - share.x_channel) {
    return;
  }
  const std::int64_t taps = static_cast<std::int64_t>(p.filter_height) * p.filter_width;
  float* const to = partial + blockIdx.x * (p.y_channels * taps * p.x_channels) +
                    share.x_channel + x_channel;
  const int y_channels = min(B::kYChannels, p.y_channels - share.y_channel);
#pragma unroll 4
  for (int row = static_cast<int>(threadIdx.x) / kThreadsOfRow; row < y_channels * B::kTaps;
       row += kRowsAtATime) {
    const int y_channel = row / B::kTaps;
    const int down = row % B::kTaps / B::kColumns;
    const int right = row % B::kTaps % B::kColumns;
    if (down < share.down.count && right < share.right.count) {
      const int tap = (share.down.first + down * share.down.next) * p.filter_width +
                      share.right.first + right * share.right.next;
      to[((share.y_channel + y_channel) * taps + tap) * p.x_channels] =
          sums[y_channel * B::kPitchOfSums + row % B::kTaps * kXChannels + x_channel];
    }
  }
}

/// Adds up what the copying warps have of each channel of y.
template <int kConfig>
__device__ __forceinline__ void
StoreChannels(const Arguments& p, const Share& share, const float* sums, float* partial) {
  using B = Block<kConfig>;
  const auto channel = static_cast<int>(threadIdx.x);
  if (channel < min(B::kYChannels, p.y_channels - share.y_channel)) {
    float sum = 0;
    for (int warp = 0; warp < kWarpgroup / 32; ++warp) {
      sum += sums[warp * B::kYChannels + channel];
    }
    partial[static_cast<std::int64_t>(blockIdx.x) * p.y_channels + share.y_channel + channel] = sum;
  }
}

/// Copies and turns each step's tile of y, ahead of those who multiply it.
template <bool kSums, int kConfig>
__device__ __forceinline__ void CopyEach(CopierOfY<kConfig>* y, Steps step) {
  const int steps = step.count();
  for (int i = 0; i < steps + kAhead; ++i) {
    if (i < steps) {
      y->Begin(step, i);
      step.Advance();
    }
    cuda::EndOfCopies();
    if (const int arrived = i + 1 - kAhead; arrived >= 0) {
      cuda::WaitForCopies<kAhead - 1>();
      if (arrived < steps) {
        y->template Turn<kSums>(arrived);
      }
      cuda::SynchronizeBlock<Block<kConfig>::kThreads>();
    }
  }
}

/// Multiplies each step's tiles, and copies those of x ahead.
template <int kConfig>
__device__ __forceinline__ void
UseEach(const CopierOfX<kConfig>& x, FilterGradient<kConfig>* gradient, Steps step) {
  const int steps = step.count();
  Steps ahead = step;
  for (int i = -kAhead; i < steps; ++i) {
    if (i >= 0) {
      gradient->Add(step, i);
      step.Advance();
    }
    // While products are under way.
    if (i + kAhead < steps) {
      x.Begin(ahead, i + kAhead);
      ahead.Advance();
    }
    cuda::EndOfCopies();
    if (i >= -1) {
      cuda::WaitForCopies<kAhead - 1>();
      cuda::SynchronizeBlock<Block<kConfig>::kThreads>();
    }
  }
}

template <int kConfig>
__device__ __forceinline__ void ComputeFilter(
    const Arguments& p,
    const float* x,
    const float* y,
    float* partial,
    float* partial_channels) {
  GRADSMITH_DYNAMIC_SHARED(shared);
  using B = Block<kConfig>;
  const unsigned begin = cuda::SharedAddress(shared);
  const unsigned memory = (begin + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
  auto* const sums = reinterpret_cast<float*>(
      reinterpret_cast<unsigned char*>(shared) + (memory - begin));
  float* const channel_sums = sums + B::kSumsBytes / 4;
  const Share share = ShareOf<kConfig>(p);
  const Steps steps(p, share.rows);
  const int warpgroup = cuda::SameInWarp(static_cast<int>(threadIdx.x) / kWarpgroup);
  if (warpgroup == B::kColumns) {
    cuda::LeaveRegisters<B::kCopierRegisters>();
    CopierOfY<kConfig> of_y(p, share, y, memory);
    of_y.ClearRing();
    cuda::SynchronizeBlock<B::kThreads>();  // it is clear
    if (share.has_sums && partial_channels != nullptr) {
      CopyEach<true>(&of_y, steps);
    } else {
      CopyEach<false>(&of_y, steps);
    }
    cuda::SynchronizeBlock<B::kThreads>();  // tiles have been read
    of_y.Leave(channel_sums);
  } else {
    cuda::TakeRegisters<B::kConsumerRegisters>();
    const CopierOfX<kConfig> of_x(p, share, x, memory);
    FilterGradient<kConfig> gradient(p, share, warpgroup, memory);
    cuda::SynchronizeBlock<B::kThreads>();
    UseEach(of_x, &gradient, steps);
    cuda::WaitForProducts<0>();
    cuda::SynchronizeBlock<B::kThreads>();
    gradient.Leave(sums);
  }
  cuda::SynchronizeBlock<B::kThreads>();
  Store<kConfig>(p, share, sums, partial);
  if (share.has_sums && partial_channels != nullptr) {
    StoreChannels<kConfig>(p, share, channel_sums, partial_channels);
  }
}

}  // namespace
}  // namespace gradsmith::conv::warpgroups

#define GRADSMITH_WARPGROUPS(config)                                                             \
  extern "C" __global__ void __launch_bounds__(                                                  \
      gradsmith::conv::warpgroups::ThreadsOf(gradsmith::conv::warpgroups::kConfigAt[config]), 1) \
      gradsmith_warpgroups_filter_##config(                                                      \
          const __grid_constant__ gradsmith::conv::warpgroups::Arguments arguments,              \
          const float* x, const float* y, float* partial, float* partial_channels) {             \
    gradsmith::conv::warpgroups::ComputeFilter<config>(arguments, x, y, partial,                 \
                                                     partial_channels);                          \
  }

GRADSMITH_WARPGROUPS(0)
GRADSMITH_WARPGROUPS(1)

#endif
