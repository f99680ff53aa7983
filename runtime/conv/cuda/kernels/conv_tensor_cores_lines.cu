#include "conv/cuda/kernels/tensor_cores_correlate.cuh"

/// Forward and backward data of half and bf16 on tensor cores, by single steps; see
/// conv/cuda/tensor_cores.h. Taps along the last axis meet the same rows of the source, moved by
/// some places: a panel of it serves all of them, and is copied once. It has a tile's positions
/// line by line, and with each line those beyond its ends that a tap reaches.
namespace gradsmith::conv::tensor_cores {
namespace {

/// How a tile's positions lie in a panel.
struct Lines {
  /// `first_row`: of the tile, among the part's positions.
  __device__ Lines(const CorrelateArguments& p, const Part& part, int first_row)
      : size(part.sizes[kSpatialRank - 1]), span(p.line_span) {
    begin = first_row;
    line = DivideBy(size, &begin);
  }

  /// Where a tile's row is in a panel, for the tap of the smallest offset.
  __device__ int PlaceOf(int row) const {
    int at = begin + row;
    return row + DivideBy(size, &at) * span;
  }

  /// The line of a panel's row; `*row` becomes its place in that, from the smallest offset on.
  __device__ int LineOf(int* row) const {
    const int length = static_cast<int>(size.divisor) + span;
    const int at = begin + *row;
    *row = at % length;
    return line + at / length;
  }

  const cuda::Divisor& size;
  int span;
  int line;   ///< the first one
  int begin;  ///< where the tile begins in that
};

/// Copies the source's panels: the channels of a line's taps, then those of the next line.
template <typename T, typename Panel, int kThreads>
class LineLoader {
 public:
  /// Fills `rows`; the block must synchronize before the first panel.
  __device__ LineLoader(
      const CorrelateArguments& p,
      const Part& part,
      const T* source,
      const Lines& lines,
      SourceRow* rows)
      : p_(p), tap_(p.taps + part.first_tap), source_(Whole(source)), rows_(rows) {
    for (int i = static_cast<int>(threadIdx.x); i < Panel::kRuns; i += kThreads) {
      int place = i;
      const int line = lines.LineOf(&place);
      rows[i] = RowAt(part, line, place + p.line_offset);
    }
  }

  __device__ void Load(T* panel) {
    const int channel = channel_ + share_.element;
    const int offset[kSpatialRank] = {tap_->offset[0], tap_->offset[1], 0};
    const int from_row =
        (PixelAt(0, offset, p_.source_sizes) * p_.source_pitch + channel) / Panel::kVector;
#pragma unroll
    for (int first = 0; first < kCount; first += kBatch) {
      // Reads of the rows go before the copies, which the compiler does not move them across.
      int chunks[kBatch];
      bool exist[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const SourceRow row = rows_[share_.Run(first + i)];
        chunks[i] = row.chunk + from_row;
        exist[i] = (channel < p_.depth) & IsWithin(row.at[0] + offset[0], p_.source_sizes[0]) &
                   IsWithin(row.at[1] + offset[1], p_.source_sizes[1]);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        CopyChunk<true>(
            panel + Panel::At(share_.Run(first + i), share_.element), source_, chunks[i], exist[i]);
      }
    }
    channel_ += Panel::kDepth;
    if (channel_ >= p_.depth) {
      channel_ = 0;
      tap_ += p_.line_taps;
    }
  }

 private:
  static constexpr int kCount = Share<Panel, kThreads>::kCount;
  static constexpr int kBatch = 3;
  static_assert(kCount % kBatch == 0, "a thread's copies are whole batches");

  /// `place` is along the last axis of the source.
  __device__ SourceRow RowAt(const Part& part, int line, int place) const {
    constexpr int kLast = kSpatialRank - 1;
    const int position = line * static_cast<int>(part.sizes[kLast].divisor);
    if (position >= part.rows || !IsWithin(place, p_.source_sizes[kLast])) {
      return RowOfNone();
    }
    SourceRow row = RowOf(
        PositionOf(part.sizes, position), p_.source_step, p_.source_sizes,
        p_.source_pitch / Panel::kVector);
    row.chunk += place * (p_.source_pitch / Panel::kVector);
    return row;
  }

  const CorrelateArguments& p_;
  const Tap* tap_;
  const T* source_;
  const SourceRow* rows_;
  Share<Panel, kThreads> share_;
  int channel_ = 0;
};

/// Adds the products of so many stages, which load_next copies ahead of them: of a tap each, whose
/// elements of the source lie in the panel of its line.
template <typename Total, typename T, typename LoadNext>
__device__ __forceinline__ void AddLines(
    const CorrelateArguments& p,
    const Part& part,
    int stages,
    const T* panels,
    const T* filters,
    const LoadNext& load_next,
    Total& sums) {
  using RowPanel = typename Total::RowPanel;
  constexpr int kStages = Total::kShape.stages;
  int of_line = 0;
  int panel = 0;
  int left = p.depth;
  for (int stage = 0; stage < stages; ++stage) {
    cuda::WaitForCopies<kStages - 2>();
    __syncthreads();  // the copies of all threads are there, and the oldest stage has been read
    const int moved = p.taps[part.first_tap + of_line].offset[kSpatialRank - 1] - p.line_offset;
    sums.Add(
        panels + panel * RowPanel::kElements + moved * RowPanel::kStride,
        filters + stage % kStages * Total::ColumnPanel::kElements, left, load_next);
    if (++of_line == p.line_taps) {
      of_line = 0;
      panel = 1 - panel;
      left -= RowPanel::kDepth;
      left = left > 0 ? left : p.depth;
    }
  }
}

template <Math kMath, int kTile, bool kBackward>
__device__ __forceinline__ void CorrelateLines(
    const CorrelateArguments& p,
    const Element<kMath>* source,
    const Element<kMath>* filter,
    Element<kMath>* result,
    bool accumulate) {
  using T = Element<kMath>;
  using Total = Sums<kMath, kTile, true, !kBackward, true>;
  using RowPanel = typename Total::RowPanel;
  using ColumnPanel = typename Total::ColumnPanel;
  constexpr int kStages = Total::kShape.stages;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* rows = reinterpret_cast<SourceRow*>(shared);
  auto* panels = reinterpret_cast<T*>(rows + RowPanel::kRuns);
  T* filters = panels + kLinePanels * RowPanel::kElements;
  const Part& part = p.parts[0];
  const auto block = static_cast<int>(blockIdx.x);
  const int first_row = block / p.column_tiles * Total::kShape.rows;
  const int first_column = block % p.column_tiles * Total::kShape.columns;
  const Lines lines(p, part, first_row);
  LineLoader<T, RowPanel, Total::kThreads> source_loader(
      p, part, source + std::int64_t{p.depth} * static_cast<int>(blockIdx.z), lines, rows);
  FilterLoader<T, ColumnPanel, Total::kThreads, kBackward, true> filter_loader(
      p, part, filter, first_column);
  __syncthreads();
  Total sums;
  sums.PlaceRows([&](int row) { return lines.PlaceOf(row); });
  const int count = part.taps * ((p.depth + RowPanel::kDepth - 1) / RowPanel::kDepth);
  int loaded = 0;
  int loaded_of_line = 0;
  int next_panel = 0;
  const auto load_next = [&] {
    if (loaded < count) {
      if (loaded_of_line == 0) {
        source_loader.Load(panels + next_panel * RowPanel::kElements);
        next_panel = 1 - next_panel;
      }
      loaded_of_line = loaded_of_line + 1 == p.line_taps ? 0 : loaded_of_line + 1;
      filter_loader.Load(filters + loaded % kStages * ColumnPanel::kElements);
    }
    ++loaded;
    EndOfCopies();
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) {
    load_next();
  }
  AddLines(p, part, count, panels, filters, load_next, sums);
  StoreTile(p, part, sums, first_row, first_column, result, accumulate);
}

}  // namespace
}  // namespace gradsmith::conv::tensor_cores

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_LINES(name, math, tile, backward)                                            \
  extern "C" __global__ void __launch_bounds__(                                                \
      gradsmith::conv::tensor_cores::ThreadsOf(                                                \
          gradsmith::conv::tensor_cores::kLineTilesOfHalf[tile]),                              \
      gradsmith::conv::tensor_cores::kLineTilesOfHalf[tile].blocks)                            \
      name(                                                                                    \
          const __grid_constant__ gradsmith::conv::tensor_cores::CorrelateArguments arguments, \
          const gradsmith::conv::tensor_cores::Element<math>* source,                          \
          const gradsmith::conv::tensor_cores::Element<math>* filter,                          \
          gradsmith::conv::tensor_cores::Element<math>* result, bool accumulate) {             \
    gradsmith::conv::tensor_cores::CorrelateLines<math, tile, backward>(                       \
        arguments, source, filter, result, accumulate);                                        \
  }

#define GRADSMITH_LINES_TILES(name, math, backward) \
  GRADSMITH_LINES(name##_0, math, 0, backward)      \
  GRADSMITH_LINES(name##_1, math, 1, backward)      \
  GRADSMITH_LINES(name##_2, math, 2, backward)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_LINES_TILES(
    gradsmith_tensor_cores_lines_forward_half,
    gradsmith::conv::tensor_cores::Math::kHalf,
    false)
GRADSMITH_LINES_TILES(
    gradsmith_tensor_cores_lines_forward_bf16,
    gradsmith::conv::tensor_cores::Math::kBfloat16,
    false)
GRADSMITH_LINES_TILES(
    gradsmith_tensor_cores_lines_data_half,
    gradsmith::conv::tensor_cores::Math::kHalf,
    true)
GRADSMITH_LINES_TILES(
    gradsmith_tensor_cores_lines_data_bf16,
    gradsmith::conv::tensor_cores::Math::kBfloat16,
    true)
