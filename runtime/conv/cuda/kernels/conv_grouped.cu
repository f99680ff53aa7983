#include <cstdint>

#include "conv/cuda/grouped_arguments.h"
#include "conv/cuda/kernels/exchange.cuh"
#include "cuda/kernels/indices.cuh"
#include "cuda/kernels/narrow_math.cuh"
#include "cuda/kernels/ptx.cuh"

/// All gradients of a convolution of narrow groups in one pass over dY; see conv/cuda/grouped.h. A
/// block goes down strips of images: while it copies a band of dY and of X, it multiplies the ones
/// before. A position of X meets those of dY in the window of 3x3 around it: their products with
/// the filter are dX there, those with X are added to the warp's own sums of dW, which another
/// kernel adds up.
///
/// Matrices are of 8 positions, or 8 channels, by 8 channels. The filter's are zero where channels
/// are of different groups. A product on tensor cores has a pair of them as its rows and a pair as
/// its terms.
namespace gradsmith::conv::grouped {
namespace {

using cuda::BeginCopy;
using cuda::Bfloat16;
using cuda::Half;
using cuda::IsWithin;
using cuda::Lane;

/// Rows of a window at both rows of a band.
constexpr int kWindowRows = kBand + kTaps - 1;
static_assert(kBand == 2 && kWindowRows == 2 * kBand, "a window is a band and the next one");

/// Where in a row of shared memory a chunk of a position is: eight neighbours are in different
/// banks.
__device__ __forceinline__ unsigned PlaceOf(int position, int chunk) {
  return static_cast<unsigned>(position * kPixelBytes + (chunk ^ position % 8) * kChunkBytes);
}

/// Which taps and channels the products are of, of groups of up to 8 channels or of 16. For each
/// of two blocks of 8 channels of x there are kProducts, each with places for two matrices of dY.
template <bool kIsNarrow>
struct Products;

/// The eights of channels do not mix: both places are for taps, of the same channels.
template <>
struct Products<true> {
  static constexpr int kProducts = 5;
  __device__ static int ColumnOf(int product, int place) {
    return product < kTaps ? product : 2 * (product - kTaps) + place;
  }
  __device__ static int RowOf(int product, int place) { return product < kTaps ? 2 * place : 1; }
  __device__ static int EightOf(int block, int /*place*/) { return block; }
};

/// Both places are for one tap.
template <>
struct Products<false> {
  static constexpr int kProducts = kTaps * kTaps;
  __device__ static int ColumnOf(int product, int /*place*/) { return product / kTaps; }
  __device__ static int RowOf(int product, int /*place*/) { return product % kTaps; }
  __device__ static int EightOf(int /*block*/, int place) { return place; }
};

/// The matrices of dY in the windows at 8 columns of a band, loaded in the order in which most
/// products have them side by side. Transposed, a matrix has channels as rows.
template <bool kIsNarrow, bool kIsTransposed>
class Windows {
 public:
  /// Which row of the windows a lane addresses, and which eight of channels: of the first of a
  /// column's two loads. The second is of the other eight, or two rows further.
  __device__ static int RowOfLane() {
    const int matrix = Lane() / 8;
    if (kIsNarrow) {
      return kIsTransposed ? matrix % 2 * 2 + matrix / 2 : matrix;
    }
    return kIsTransposed ? matrix / 2 : matrix % 2;
  }
  __device__ static int EightOfLane() {
    const int matrix = Lane() / 8;
    return kIsNarrow ? 0 : (kIsTransposed ? matrix % 2 : matrix / 2);
  }

  /// `rows` are where the lane's row is, for the two loads; and what it addresses is there, for
  /// each column.
  __device__ __forceinline__ void Load(const unsigned (&rows)[2], const unsigned (&places)[kTaps]) {
#pragma unroll
    for (int column = 0; column < kTaps; ++column) {
      const unsigned address = rows[0] + places[column];
      // Rows begin at even chunks, so that the other eight of channels is the neighbouring chunk.
      LoadFour(address, words_[column][0]);
      LoadFour(kIsNarrow ? address ^ kChunkBytes : rows[1] + places[column], words_[column][1]);
    }
  }

  /// Zero for columns beyond the filter.
  __device__ __forceinline__ std::uint32_t At(int row, int column, int eight) const {
    if (column >= kTaps) {
      return 0;
    }
    if (kIsNarrow) {
      return words_[column][eight][kIsTransposed ? row % 2 * 2 + row / 2 : row];
    }
    return words_[column][row / 2][kIsTransposed ? row % 2 * 2 + eight : row % 2 + eight * 2];
  }

 private:
  __device__ static void LoadFour(unsigned address, std::uint32_t (&to)[4]) {
    if (kIsTransposed) {
      cuda::LoadTransposed(address, to);
    } else {
      cuda::LoadMatrices(address, to);
    }
  }

  std::uint32_t words_[kTaps][2][4];
};

/// Where a block is: at a band of a strip of an image. A strip's first band of dY is copied by a
/// step of its own, which `leads`; at each other, that of X and the next one of dY.
struct Place {
  int image;
  int strip;
  int band;
  bool leads;
};

/// A block's share of the bands, which go on from one strip to the next.
class Walk {
 public:
  __device__ Walk(const Arguments& p, int block, int blocks) : p_(p) {
    const auto first = static_cast<int>(std::int64_t{p.all_bands} * block / blocks);
    left_ = static_cast<int>(std::int64_t{p.all_bands} * (block + 1) / blocks) - first;
    const int line = first / p.bands;
    place_ = {line / p.strips, line % p.strips, first % p.bands, true};
  }

  [[nodiscard]] __device__ const Place& place() const { return place_; }
  [[nodiscard]] __device__ bool is_done() const { return left_ == 0; }

  __device__ void Advance() {
    if (place_.leads) {
      place_.leads = false;
      return;
    }
    --left_;
    if (++place_.band < p_.bands) {
      return;
    }
    place_.band = 0;
    place_.leads = true;
    if (++place_.strip == p_.strips) {
      place_.strip = 0;
      ++place_.image;
    }
  }

 private:
  const Arguments& p_;
  int left_;
  Place place_;
};

/// Begins to copy bands to shared memory, where what is outside of an image becomes zeros.
template <typename T>
class Copies {
 public:
  __device__ Copies(const Arguments& p, int channel) : p_(p) {
    chunk_ = static_cast<int>(threadIdx.x) % kChunks;
    first_ = static_cast<int>(threadIdx.x) / kChunks;
    channel_ = channel + chunk_ * kVector;
  }

  /// A band whose first row and column are these.
  __device__ __forceinline__ void
  Begin(const T* from, int image, int row, int column, int columns, unsigned to) const {
    if (channel_ >= p_.channels) {
      return;
    }
    to += PlaceOf(first_, chunk_);
    const int first = column + first_;
    const int end = column + columns;
    const std::int64_t position = (std::int64_t{image} * p_.height + row) * p_.width + first;
    const T* source = from + position * p_.channels + channel_;
#pragma unroll
    for (int i = 0; i < kBand; ++i) {
      const bool exists = IsWithin(row + i, p_.height);
      const T* next = source + i * p_.width * p_.channels;
      unsigned place = to + i * columns * kPixelBytes;
      // Registers are short: unrolled, it would keep many addresses.
#pragma unroll 1
      for (int j = first; j < end; j += kStep) {
        BeginCopy(place, next, exists && IsWithin(j, p_.width));
        next += kStep * p_.channels;
        place += kStep * kPixelBytes;
      }
    }
  }

 private:
  static constexpr int kChunks = kPixelBytes / kChunkBytes;
  static constexpr int kStep = kThreads / kChunks;
  static_assert(kStep % 8 == 0, "a thread's positions have their chunk at the same place");

  const Arguments& p_;
  int chunk_;
  int first_;
  int channel_;
};

/// A band where it is multiplied: in shared memory, that of X and those of dY before it and at its
/// end; its first position, and so many rows and columns of a strip that exist.
struct Band {
  unsigned x;
  unsigned y[2];
  int position;
  int rows;
  int columns;
};

/// A warp's slice of the channels: its filter, its columns of dX, and its sums of dW and of dY's
/// channels.
template <typename Math, bool kIsNarrow>
class Slice {
 public:
  using T = typename Math::T;

  __device__ Slice(const Arguments& p, int channel, const T* filter, T* result, bool accumulate)
      : p_(p), channel_(channel), result_(result + channel), accumulate_(accumulate) {
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
#pragma unroll
        for (int place = 0; place < 2; ++place) {
          filter_[i][block][place] = FilterAt(filter, i, block, place);
        }
      }
    }
  }

  /// Writes a band's dX, and adds to the sums.
  __device__ __forceinline__ void Multiply(const Band& band) {
    // Of four lanes each has both eights of a row, and then of the next.
    const int row = Lane() % 4 / 2;
    const int eight = Lane() % 2;
    const std::int64_t position = band.position + row * p_.width + Lane() / 4;
    T* to = result_ + position * p_.channels + eight * 8;
    Panels panels = PanelsOf(band);
    for (int column = Lane() / 4; column < band.columns + Lane() / 4; column += kColumns) {
      float results[2][4] = {};
      MultiplyEight(panels, results);
      const bool exists = row < band.rows && column < band.columns;
      if (accumulate_) {
        AddTo(to, exists, results);
      }
      Store(results, exists, to);
      Advance(&panels);
      to += kColumns * p_.channels;
    }
  }

  /// Writes the block's sums; those of channels where there is a place for them.
  __device__ __forceinline__ void Store(int block, float* partial, float* partial_channels) const {
    partial += std::int64_t{block} * p_.channels * p_.group_channels * kTaps * kTaps;
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
#pragma unroll
      for (int eight = 0; eight < 2; ++eight) {
#pragma unroll
        for (int place = 0; place < 2; ++place) {
          const int y = Which::EightOf(eight, place) * 8 + Lane() / 4;
          const int x = eight * 8 + Lane() % 4 * 2;
          if (Exists(i, place) && IsOfOneGroup(y, x)) {
            *reinterpret_cast<float2*>(partial + ElementOf(i, place, y, x)) = {
                sums_[i][eight][2 * place], sums_[i][eight][2 * place + 1]};
          }
        }
      }
    }
    if (partial_channels != nullptr && Lane() % 4 == 0) {
      float* to = partial_channels + std::int64_t{block} * p_.channels + channel_ + Lane() / 4;
      to[0] = channel_sums_[0];
      to[8] = channel_sums_[2];
    }
  }

 private:
  using Which = Products<kIsNarrow>;
  static constexpr int kProducts = Which::kProducts;

  __device__ static bool Exists(int product, int place) {
    return Which::ColumnOf(product, place) < kTaps;
  }

  /// Whether two channels of the slice are of one group.
  [[nodiscard]] __device__ bool IsOfOneGroup(int y, int x) const {
    return y / p_.group_channels == x / p_.group_channels;
  }

  /// ElementOf returns where the filter has a product's tap. A window's first row and column meet
  /// the last tap.
  [[nodiscard]] __device__ int ElementOf(int product, int place, int y, int x) const {
    const int tap =
        kTaps * kTaps - 1 - Which::RowOf(product, place) * kTaps - Which::ColumnOf(product, place);
    return ((channel_ + y) * kTaps * kTaps + tap) * p_.group_channels + x % p_.group_channels;
  }

  [[nodiscard]] __device__ std::uint32_t
  FilterAt(const T* filter, int product, int block, int place) const {
    const int x = block * 8 + Lane() / 4;
    std::uint32_t pair = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int y = Which::EightOf(block, place) * 8 + Lane() % 4 * 2 + i;
      if (Exists(product, place) && IsOfOneGroup(y, x)) {
        const T* element = filter + ElementOf(product, place, y, x);
        pair |= std::uint32_t{*reinterpret_cast<const std::uint16_t*>(element)} << (16 * i);
      }
    }
    return pair;
  }

  /// Where the lane's rows of eight columns of a band are in shared memory: for both loads of dY's
  /// windows, as they are and transposed, and of X.
  struct Panels {
    unsigned y[2];
    unsigned transposed[2];
    unsigned x;
  };

  [[nodiscard]] __device__ Panels PanelsOf(const Band& band) const {
    Panels panels;
    PlaceRows<Windows<kIsNarrow, false>>(band, panels.y);
    PlaceRows<Windows<kIsNarrow, true>>(band, panels.transposed);
    const int matrix = Lane() / 8;
    panels.x = band.x + matrix % 2 * p_.row_bytes_of_x + PlaceOf(Lane() % 8, ChunkOf(matrix / 2));
    return panels;
  }

  template <typename Loaded>
  __device__ void PlaceRows(const Band& band, unsigned (&rows)[2]) const {
    const int row = Loaded::RowOfLane();
    const unsigned in_band = row % kBand * p_.row_bytes_of_y;
    rows[0] = (row < kBand ? band.y[0] : band.y[1]) + in_band;
    rows[1] = band.y[1] + in_band;
  }

  __device__ static void Advance(Panels* panels) {
    constexpr unsigned kStep = kColumns * kPixelBytes;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      panels->y[i] += kStep;
      panels->transposed[i] += kStep;
    }
    panels->x += kStep;
  }

  __device__ __forceinline__ void MultiplyEight(const Panels& panels, float (&results)[2][4]) {
    Windows<kIsNarrow, false> windows;
    Load(panels.y, &windows);
    Windows<kIsNarrow, true> transposed;
    Load(panels.transposed, &transposed);
    // Both rows of an eight of channels, and then of the other.
    std::uint32_t x[4];
    cuda::LoadTransposed(panels.x, x);
#pragma unroll
    for (int i = 0; i < kProducts; ++i) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        AddToResults(windows, i, block, results[block]);
        AddToSums(transposed, i, block, {x[2 * block], x[2 * block + 1]});
      }
    }
    AddToChannelSums(transposed);
  }

  /// The chunk of a position that has an eight of the slice's channels.
  [[nodiscard]] __device__ int ChunkOf(int eight) const {
    return channel_ % kChannels / kVector + eight;
  }

  template <typename Loaded>
  __device__ __forceinline__ void Load(const unsigned (&rows)[2], Loaded* windows) const {
    unsigned places[kTaps];
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      places[i] = PlaceOf(Lane() % 8 + i, ChunkOf(Loaded::EightOfLane()));
    }
    windows->Load(rows, places);
  }

  __device__ __forceinline__ void AddToResults(
      const Windows<kIsNarrow, false>& windows,
      int product,
      int block,
      float (&results)[4]) const {
    std::uint32_t a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = i / 2;
      a[i] = windows.At(
          Which::RowOf(product, place) + i % 2, Which::ColumnOf(product, place),
          Which::EightOf(block, place));
    }
    Math::AddProduct(a, filter_[product][block], results);
  }

  __device__ __forceinline__ void AddToSums(
      const Windows<kIsNarrow, true>& windows,
      int product,
      int block,
      const std::uint32_t (&x)[2]) {
    std::uint32_t a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int place = i % 2;
      a[i] = windows.At(
          Which::RowOf(product, place) + i / 2, Which::ColumnOf(product, place),
          Which::EightOf(block, place));
    }
    Math::AddProduct(a, x, sums_[product][block]);
  }

  /// The windows' middles are all positions of dY.
  __device__ __forceinline__ void AddToChannelSums(const Windows<kIsNarrow, true>& windows) {
    const std::uint32_t a[4] = {
        windows.At(1, 1, 0), windows.At(1, 1, 1), windows.At(2, 1, 0), windows.At(2, 1, 1)};
    const std::uint32_t ones[2] = {Math::kOnes, Math::kOnes};
    Math::AddProduct(a, ones, channel_sums_);
  }

  /// Adds what is there; all lanes exchange, also those whose position does not exist.
  __device__ __forceinline__ static void AddTo(const T* from, bool exists, float (&results)[2][4]) {
    const uint4 bits = exists ? *reinterpret_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
    std::uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
    cuda::TransposeAmongFour(words);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = Math::Unpack(words[i]);
      results[i % 2][i / 2 * 2] += pair.x;
      results[i % 2][i / 2 * 2 + 1] += pair.y;
    }
  }

  __device__ __forceinline__ static void Store(const float (&results)[2][4], bool exists, T* to) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = Math::Pack(results[i % 2][i / 2 * 2], results[i % 2][i / 2 * 2 + 1]);
    }
    // Two channels of each row and eight become eight of one.
    cuda::TransposeAmongFour(words);
    if (exists) {
      *reinterpret_cast<uint4*>(to) = {words[0], words[1], words[2], words[3]};
    }
  }

  const Arguments& p_;
  int channel_;
  T* result_;
  bool accumulate_;
  std::uint32_t filter_[kProducts][2][2];
  float sums_[kProducts][2][4] = {};
  float channel_sums_[4] = {};
};

/// Begins to copy the bands of dY and, unless the place leads to a strip, of x that are for a place.
template <typename T>
__device__ __forceinline__ void CopyBands(
    const Copies<T>& copies,
    const Place& place,
    const T* x,
    const T* y,
    int columns_of_x,
    unsigned to_x,
    unsigned to_y) {
  const int column = place.strip * columns_of_x;
  const int row = place.band * kBand;
  copies.Begin(
      y, place.image, row - 1 + (place.leads ? 0 : kBand), column - 1, columns_of_x + kTaps - 1,
      to_y);
  if (!place.leads) {
    copies.Begin(x, place.image, row, column, columns_of_x, to_x);
  }
}

template <typename Math, bool kIsNarrow>
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
  const int channel = static_cast<int>(blockIdx.x) * kChannels;
  const int columns_of_x = p.eights * kColumns;
  const unsigned bytes_of_y = kBand * p.row_bytes_of_y;
  const unsigned bytes_of_x = kBand * p.row_bytes_of_x;
  const unsigned bands_of_y = cuda::SharedAddress(shared);
  const unsigned bands_of_x = bands_of_y + kBandsOfY * bytes_of_y;
  const Copies<typename Math::T> copies(p, channel);
  // The band of dY before, and those that come, or are there, with this step.
  unsigned before = bands_of_y + 2 * bytes_of_y;
  unsigned to_y = bands_of_y;
  unsigned to_x = bands_of_x;
  Walk walk(p, static_cast<int>(blockIdx.y), static_cast<int>(gridDim.y));
  CopyBands(copies, walk.place(), x, y, columns_of_x, to_x, to_y);
  cuda::EndOfCopies();
  const int warps_channel = channel + static_cast<int>(threadIdx.x) / 32 * kSlice;
  const bool works = warps_channel < p.channels;
  Slice<Math, kIsNarrow> slice(p, works ? warps_channel : channel, filter, x_gradient, accumulate);
  while (!walk.is_done()) {
    const Place place = walk.place();
    Band band = {to_x, {before, to_y}, 0, 0, 0};
    before = to_y;
    to_y = to_y + bytes_of_y == bands_of_x ? bands_of_y : to_y + bytes_of_y;
    to_x = to_x == bands_of_x ? bands_of_x + bytes_of_x : bands_of_x;
    walk.Advance();
    cuda::WaitForCopies<0>();
    // The copies of all threads are there, and what the next ones replace has been read.
    cuda::SynchronizeBlock<kThreads>();
    if (!walk.is_done()) {
      CopyBands(copies, walk.place(), x, y, columns_of_x, to_x, to_y);
    }
    cuda::EndOfCopies();
    if (!place.leads && works) {
      const int row = place.band * kBand;
      const int column = place.strip * columns_of_x;
      band.position = (place.image * p.height + row) * p.width + column;
      band.rows = p.height - row;
      band.columns = min(columns_of_x, p.width - column);
      slice.Multiply(band);
    }
  }
  if (works) {
    slice.Store(static_cast<int>(blockIdx.y), partial, partial_channels);
  }
}

}  // namespace
}  // namespace gradsmith::conv::grouped

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_GROUPED(name, math, is_narrow)                                               \
  extern "C" __global__ void __launch_bounds__(                                                \
      gradsmith::conv::grouped::kThreads, gradsmith::conv::grouped::BlocksOfGroups(is_narrow)) \
      gradsmith_grouped_##name(                                                                \
          const __grid_constant__ gradsmith::conv::grouped::Arguments arguments,               \
          const gradsmith::conv::grouped::math::T* x,                                          \
          const gradsmith::conv::grouped::math::T* filter,                                     \
          const gradsmith::conv::grouped::math::T* y,                                          \
          gradsmith::conv::grouped::math::T* x_gradient, bool accumulate, float* partial,      \
          float* partial_channels) {                                                           \
    gradsmith::conv::grouped::ComputeGradients<gradsmith::conv::grouped::math, is_narrow>(     \
        arguments, x, filter, y, x_gradient, accumulate, partial, partial_channels);           \
  }
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_GROUPED(narrow_f16, Half, true)
GRADSMITH_GROUPED(narrow_bf16, Bfloat16, true)
GRADSMITH_GROUPED(wide_f16, Half, false)
GRADSMITH_GROUPED(wide_bf16, Bfloat16, false)
