#include "conv/cuda/kernels/tensor_cores.cuh"

/// Backward filter of half and bf16 on tensor cores, of three taps and single steps along the last
/// axis; see conv/cuda/tensor_cores.h. The three meet the same channels of x, moved by some places:
/// these are copied once, line by line, with what is beyond the ends of lines. Columns come in
/// units: some channels of x at the taps of a line. Slices of the positions are summed by different
/// blocks, and added up by another kernel.
namespace gradsmith::conv::tensor_cores {
namespace {

constexpr int kDepth = kDepthBytes / 2;
constexpr int kVector = kChunkBytes / 2;
constexpr int kThreads = ThreadsOf(kFilterLineTile);
constexpr int kChunksOfUnit = kFilterLineChannels / kVector;

/// What a unit has of the columns.
struct Unit {
  __device__ Unit(const FilterArguments& p, int number) {
    const int parts = (p.channels + kFilterLineChannels - 1) / kFilterLineChannels;
    line = number / parts;
    channel = number % parts * kFilterLineChannels;
    exists = line < p.filter_sizes[0] * p.filter_sizes[1];
  }

  int line;     ///< of the filter
  int channel;  ///< the first one
  bool exists;
};

__device__ __forceinline__ int SpanOf(const FilterArguments& p) {
  return (kFilterLineTaps - 1) * p.dilation[kSpatialRank - 1];
}

/// Copies stages: channels of y at some positions, and what these meet of x.
template <typename T, typename YPanel>
class Loader {
 public:
  /// Fills a part of the ring `rows`; the block must synchronize before the first stage.
  __device__ Loader(
      const FilterArguments& p,
      const T* x,
      const T* y,
      int first_row,
      int first_unit,
      int position,
      int end,
      SourceRow* rows)
      : p_(p), x_(Whole(x)), y_(Whole(y)), rows_(rows), position_(position), end_(end) {
    const auto group = static_cast<int>(blockIdx.z);
    const int y_channel = first_row + YElement();
    y_exists_ = y_channel < p.rows;
    y_chunk_ = (group * p.rows + y_channel) / kVector;
#pragma unroll
    for (int i = 0; i < kFilterLineUnits; ++i) {
      const Unit unit(p, first_unit + i);
      const int channel = unit.channel + XElement();
      offset_[i][0] = unit.line / p.filter_sizes[1] * p.dilation[0] - p.pad[0];
      offset_[i][1] = unit.line % p.filter_sizes[1] * p.dilation[1] - p.pad[1];
      exist_[i] = unit.exists && channel < p.channels && XRow() < kFilterLineRows;
      const int offset[kSpatialRank] = {offset_[i][0], offset_[i][1], 0};
      step_[i] =
          (PixelAt(0, offset, p.x_sizes) * p.x_pitch + group * p.channels + channel) / kVector;
    }
    for (int i = static_cast<int>(threadIdx.x); i < kAhead * kFilterLineRows; i += kThreads) {
      rows[i] = RowAt(position + i / kFilterLineRows * kDepth, i % kFilterLineRows);
    }
  }

  __device__ void Load(T* stage) {
    LoadY(stage);
    LoadX(stage + YPanel::kElements);
    FillAhead();
    position_ += kDepth;
  }

 private:
  /// The stages that are copied before the first barrier, and as many while these are in use.
  static constexpr int kAhead = kFilterLineTile.stages - 1;
  static constexpr int kRing = 2 * kAhead;

  __device__ static int YElement() {
    return static_cast<int>(threadIdx.x) % YPanel::kChunks * kVector;
  }
  __device__ static int XElement() {
    return static_cast<int>(threadIdx.x) % kChunksOfUnit * kVector;
  }
  __device__ static int XRow() { return static_cast<int>(threadIdx.x) / kChunksOfUnit; }

  __device__ void LoadY(T* panel) const {
    for (int run = static_cast<int>(threadIdx.x) / YPanel::kChunks; run < kDepth;
         run += kThreads / YPanel::kChunks) {
      const int position = position_ + run;
      CopyChunk(
          panel + YPanel::At(YElement(), run), y_,
          position * (p_.y_pitch / kVector) + y_chunk_, y_exists_ && position < end_);
    }
  }

  /// A thread has the same row of every unit.
  __device__ void LoadX(T* panel) const {
    if (XRow() >= kFilterLineRows) {
      return;
    }
    const SourceRow row = rows_[slot_ * kFilterLineRows + XRow()];
#pragma unroll
    for (int i = 0; i < kFilterLineUnits; ++i) {
      const bool exists = exist_[i] & IsWithin(row.at[0] + offset_[i][0], p_.x_sizes[0]) &
                          IsWithin(row.at[1] + offset_[i][1], p_.x_sizes[1]);
      CopyChunk<true>(
          panel + (i * kFilterLineRows + XRow()) * kFilterLineStride + XElement(), x_,
          row.chunk + step_[i], exists);
    }
  }

  /// Finds the rows of a later stage, each time by other warps.
  __device__ void FillAhead() {
    const int ahead = (slot_ + kAhead) % kRing;
    const int i = (static_cast<int>(threadIdx.x) + slot_ * 96) % kThreads;
    if (i < kFilterLineRows) {
      rows_[ahead * kFilterLineRows + i] = RowAt(position_ + kAhead * kDepth, i);
    }
    slot_ = (slot_ + 1) % kRing;
  }

  /// Row `number` of the stage that begins at a position.
  __device__ SourceRow RowAt(int position, int number) const {
    constexpr int kLast = kSpatialRank - 1;
    const cuda::Divisor& size = p_.y_sizes[kLast];
    const int length = static_cast<int>(size.divisor) + SpanOf(p_);
    int begin = position;
    const int line = DivideBy(size, &begin) + (begin + number) / length;
    const int place = (begin + number) % length - p_.pad[kLast];
    const int first = line * static_cast<int>(size.divisor);
    if (position >= end_ || first >= p_.positions || !IsWithin(place, p_.x_sizes[kLast])) {
      return RowOfNone();
    }
    const int chunks_of_pixel = p_.x_pitch / kVector;
    SourceRow row = RowOf(PositionOf(p_.y_sizes, first), p_.stride, p_.x_sizes, chunks_of_pixel);
    row.chunk += place * chunks_of_pixel;
    return row;
  }

  const FilterArguments& p_;
  const T* x_;
  const T* y_;
  SourceRow* rows_;
  int y_chunk_;
  bool y_exists_;
  int offset_[kFilterLineUnits][2];
  int step_[kFilterLineUnits];  // in chunks
  bool exist_[kFilterLineUnits];
  int position_;
  int end_;
  int slot_ = 0;
};

/// A warp's sums of its part of a tile: 32 channels of y by half a unit.
template <Math kMath>
class LineSums {
 public:
  using T = Element<kMath>;
  static constexpr Tile kShape = kFilterLineTile;
  using RowPanel = Panel<T, kShape.rows, false>;
  static constexpr int kStageElements =
      RowPanel::kElements + kFilterLineUnits * kFilterLineRows * kFilterLineStride;

  __device__ LineSums(const FilterArguments& p, int position)
      : p_(p), first_row_(Warp() % kWarpsOfColumn * kShape.warp_rows), begin_(position) {
    DivideBy(Size(), &begin_);
#pragma unroll
    for (int pair = 0; pair < kColumnBlocks / 2; ++pair) {
      const int block = FirstBlock() + 2 * pair;
      const int moved = block / kChunksOfUnit * p.dilation[kSpatialRank - 1];
      const int row = OwnUnit() * kFilterLineRows + moved;
      from_[pair] = row * kFilterLineStride + (block % kChunksOfUnit + Lane() / 16) * kVector;
    }
  }

  template <typename Meanwhile>
  __device__ __forceinline__ void
  Add(const T* rows, const T* columns, int /*terms*/, Meanwhile meanwhile) {
    const bool is_later = Warp() >= 4;
#pragma unroll
    for (int term = 0; term < kDepth; term += kTerms) {
      AddProducts(rows, columns, term);
      if ((term == 0 && !is_later) || (term == kDepth / 2 && is_later)) {
        meanwhile();
      }
    }
    begin_ += kDepth;
    DivideBy(Size(), &begin_);
  }

  /// `first_unit` and `first_row` are the tile's.
  __device__ __forceinline__ void Store(int first_row, int first_unit, float* partial) const {
    const Unit unit(p_, first_unit + OwnUnit());
#pragma unroll
    for (int i = 0; i < 2 * kRowBlocks; ++i) {
      const int row = first_row + first_row_ + i * 8 + Lane() / 4;
#pragma unroll
      for (int j = 0; j < kColumnBlocks; ++j) {
        const int block = FirstBlock() + j;
        const int tap = unit.line * kFilterLineTaps + block / kChunksOfUnit;
        const int channel = unit.channel + block % kChunksOfUnit * kVector + Lane() % 4 * 2;
        if (unit.exists && row < p_.rows && channel < p_.channels) {
          const float* sums = sums_[i / 2][j] + i % 2 * 2;
          *reinterpret_cast<float2*>(
              partial + std::int64_t{row} * p_.columns + (tap * p_.channels + channel)) = {
              sums[0], sums[1]};
        }
      }
    }
  }

 private:
  static constexpr int kTerms = TermsOfProduct(2);
  static constexpr int kRowBlocks = kShape.warp_rows / 16;
  static constexpr int kColumnBlocks = kShape.warp_columns / 8;
  static constexpr int kWarpsOfColumn = kShape.rows / kShape.warp_rows;
  static constexpr int kWarpsOfUnit = kFilterLineTaps * kChunksOfUnit / kColumnBlocks;

  __device__ static int Warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int OwnUnit() { return Warp() / kWarpsOfColumn / kWarpsOfUnit; }
  __device__ static int FirstBlock() {
    return Warp() / kWarpsOfColumn % kWarpsOfUnit * kColumnBlocks;
  }
  __device__ const cuda::Divisor& Size() const { return p_.y_sizes[kSpatialRank - 1]; }

  __device__ __forceinline__ void AddProducts(const T* rows, const T* columns, int term) {
    const int number = term + Lane() % 16;
    int at = begin_ + number;
    const int place = number + DivideBy(Size(), &at) * SpanOf(p_);
    Fragment<kMath, 2> b[kColumnBlocks];
#pragma unroll
    for (int pair = 0; pair < kColumnBlocks / 2; ++pair) {
      std::uint32_t words[4];
      cuda::LoadTransposed(
          cuda::SharedAddress(columns + place * kFilterLineStride + from_[pair]), words);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        b[2 * pair + i / 2].Set(i % 2, words[i]);
      }
    }
    std::uint32_t read[kRowBlocks][4];
    ReadRows<RowPanel>(rows, first_row_, term, read);
#pragma unroll
    for (int block = 0; block < kRowBlocks; ++block) {
      Fragment<kMath, 4> a;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a.Set(i, read[block][i]);
      }
      Multiply(a, b, sums_[block]);
    }
  }

  const FilterArguments& p_;
  int first_row_;
  int begin_;  ///< where the next stage begins in its line
  int from_[kColumnBlocks / 2];
  float sums_[kRowBlocks][kColumnBlocks][4] = {};
};

template <Math kMath>
__device__ __forceinline__ void SumFilterLines(
    const FilterArguments& p,
    const Element<kMath>* x,
    const Element<kMath>* y,
    float* partial) {
  using T = Element<kMath>;
  using Total = LineSums<kMath>;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* rows = reinterpret_cast<SourceRow*>(shared);
  auto* memory = reinterpret_cast<T*>(rows + kFilterLineRing);
  const auto block = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<int>(blockIdx.y);
  const int first_row = block / p.column_tiles * Total::kShape.rows;
  const int first_unit = block % p.column_tiles * kFilterLineUnits;
  const int begin = slice * p.positions_of_slice;
  const int end = min(begin + p.positions_of_slice, p.positions);
  Loader<T, typename Total::RowPanel> loader(p, x, y, first_row, first_unit, begin, end, rows);
  __syncthreads();
  Total sums(p, begin);
  AddStages(
      (end - begin + kDepth - 1) / kDepth, end - begin, memory,
      [&](T* stage) { loader.Load(stage); }, &sums);
  const std::int64_t share = std::int64_t{slice} * gridDim.z + blockIdx.z;
  sums.Store(first_row, first_unit, partial + share * p.rows * p.columns);
}

}  // namespace
}  // namespace gradsmith::conv::tensor_cores

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FILTER_LINES(name, math)                                                    \
  extern "C" __global__ void __launch_bounds__(                                               \
      gradsmith::conv::tensor_cores::ThreadsOf(gradsmith::conv::tensor_cores::kFilterLineTile), \
      gradsmith::conv::tensor_cores::kFilterLineTile.blocks)                                  \
      name(                                                                                   \
          const __grid_constant__ gradsmith::conv::tensor_cores::FilterArguments arguments,   \
          const gradsmith::conv::tensor_cores::Element<math>* x,                              \
          const gradsmith::conv::tensor_cores::Element<math>* y, float* partial) {            \
    gradsmith::conv::tensor_cores::SumFilterLines<math>(arguments, x, y, partial);            \
  }
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_FILTER_LINES(
    gradsmith_tensor_cores_lines_filter_half_0,
    gradsmith::conv::tensor_cores::Math::kHalf)
GRADSMITH_FILTER_LINES(
    gradsmith_tensor_cores_lines_filter_bf16_0,
    gradsmith::conv::tensor_cores::Math::kBfloat16)
