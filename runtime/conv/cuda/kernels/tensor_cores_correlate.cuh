#ifndef GRADSMITH_CONV_CUDA_KERNELS_TENSOR_CORES_CORRELATE_CUH_
#define GRADSMITH_CONV_CUDA_KERNELS_TENSOR_CORES_CORRELATE_CUH_

#include "conv/cuda/kernels/tensor_cores.cuh"

/// Forward and backward data: a row of the product is a position of the result, its terms are the
/// source's channels at each tap, its columns the result's channels.
namespace gradsmith::conv::tensor_cores {

/// Copies the source's panel, stage by stage: a tap's channels, then the next tap's.
template <typename T, typename Panel, int kThreads>
class SourceLoader {
 public:
  /// Fills `rows`; the block must synchronize before the first stage.
  __device__ SourceLoader(
      const CorrelateArguments& p,
      const Part& part,
      const T* source,
      int first_row,
      SourceRow* rows)
      : p_(p), tap_(p.taps + part.first_tap), source_(Whole(source)), rows_(rows) {
    for (int i = static_cast<int>(threadIdx.x); i < Panel::kRuns; i += kThreads) {
      rows[i] = first_row + i < part.rows
                    ? RowOf(
                          PositionOf(part.sizes, first_row + i), p.source_step, p.source_sizes,
                          ChunksOf(p.source_pitch))
                    : RowOfNone();
    }
  }

  __device__ void Load(T* panel) {
    if (channel_ == 0) {
      StartTap();
    }
    const int channel = channel_ + share_.element;
    const int from_row = step_ + ChunksOf(channel);
    const unsigned reached = channel < p_.depth ? reached_ : 0;
#pragma unroll
    for (int first = 0; first < kCount; first += kBatch) {
      // Reads of the rows go before the copies, which the compiler does not move them across.
      int chunks[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        chunks[i] = rows_[share_.Run(first + i)].chunk + from_row;
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const bool exists = (reached >> (first + i) & 1U) != 0;
        CopyChunk<kShared>(
            panel + Panel::At(share_.Run(first + i), share_.element), source_, chunks[i], exists);
      }
    }
    channel_ += Panel::kDepth;
    if (channel_ >= p_.depth) {
      channel_ = 0;
      ++tap_;
    }
  }

 private:
  static constexpr int kCount = Share<Panel, kThreads>::kCount;
  static constexpr int kBatch = kCount % 4 == 0 ? 4 : 1;
  /// Taps that follow each other meet mostly the same. Products of 16-bit terms are so quick that
  /// the L2 cache alone does not keep up.
  static constexpr bool kShared = sizeof(T) == 2;

  __device__ static int ChunksOf(int elements) { return elements / Panel::kVector; }

  __device__ void StartTap() {
    const Tap tap = *tap_;
    step_ = 0;
#pragma unroll
    for (int axis = 0; axis < kSpatialRank; ++axis) {
      step_ = step_ * p_.source_sizes[axis] + tap.offset[axis];
    }
    step_ *= ChunksOf(p_.source_pitch);
    reached_ = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const SourceRow row = rows_[share_.Run(i)];
      bool reached = true;
#pragma unroll
      for (int axis = 0; axis < kSpatialRank; ++axis) {
        reached = reached & IsWithin(row.at[axis] + tap.offset[axis], p_.source_sizes[axis]);
      }
      reached_ |= static_cast<unsigned>(reached) << i;
    }
  }

  const CorrelateArguments& p_;
  const Tap* tap_;
  const T* source_;
  const SourceRow* rows_;
  Share<Panel, kThreads> share_;
  int channel_ = 0;
  int step_ = 0;  // in chunks
  unsigned reached_ = 0;
};

/// Copies the filter's panel. The filter is dense as (y channel, tap, x channel of its group):
/// forward its terms are neighbours, backward its columns. By lines the taps of a line come before
/// further channels.
template <typename T, typename Panel, int kThreads, bool kBackward, bool kByLines = false>
class FilterLoader {
 public:
  __device__
  FilterLoader(const CorrelateArguments& p, const Part& part, const T* filter, int first_column)
      : p_(p),
        tap_(p.taps + part.first_tap),
        filter_(Whole(
            filter +
            std::int64_t{p.depth} * p.columns * p.filter_taps * static_cast<int>(blockIdx.z))),
        first_column_(first_column) {}

  __device__ void Load(T* panel) {
    const int inner_size = kBackward ? p_.columns : p_.depth;
    const int outer_size = kBackward ? p_.depth : p_.columns;
    const int inner = (kBackward ? first_column_ : channel_) + share_.element;
    const int outer = kBackward ? channel_ : first_column_;
    const int pitch = p_.filter_taps * inner_size / Panel::kVector;
    const int first = (tap_->filter * inner_size + inner) / Panel::kVector + outer * pitch;
#pragma unroll
    for (int i = 0; i < Share<Panel, kThreads>::kCount; ++i) {
      const int run = share_.Run(i);
      const bool exists = inner < inner_size && outer + run < outer_size;
      const int at = kBackward ? Panel::At(share_.element, run) : Panel::At(run, share_.element);
      CopyChunk(panel + at, filter_, first + run * pitch, exists);
    }
    GoOn();
  }

 private:
  __device__ void GoOn() {
    if (kByLines && ++of_line_ < p_.line_taps) {
      ++tap_;
      return;
    }
    channel_ += Panel::kDepth;
    ++tap_;
    if (channel_ >= p_.depth) {
      channel_ = 0;
    } else {
      tap_ -= kByLines ? p_.line_taps : 1;
    }
    of_line_ = 0;
  }

  const CorrelateArguments& p_;
  const Tap* tap_;
  const T* filter_;
  int first_column_;
  Share<Panel, kThreads> share_;
  int channel_ = 0;
  int of_line_ = 0;
};

/// Writes a block's sums, or adds them to what is there.
template <typename Total>
__device__ __forceinline__ void StoreTile(
    const CorrelateArguments& p,
    const Part& part,
    const Total& sums,
    int first_row,
    int first_column,
    typename Total::T* result,
    bool accumulate) {
  using T = typename Total::T;
  T* first = result + std::int64_t{p.columns} * static_cast<int>(blockIdx.z);
  sums.Store(first_column, p.columns, accumulate, [&](int row) -> T* {
    if (first_row + row >= part.rows) {
      return nullptr;
    }
    Position position = PositionOf(part.sizes, first_row + row);
#pragma unroll
    for (int axis = 0; axis < kSpatialRank; ++axis) {
      position.at[axis] = part.first[axis] + position.at[axis] * p.result_step[axis];
    }
    return first +
           std::int64_t{PixelAt(position.image, position.at, p.result_sizes)} * p.result_pitch;
  });
}

template <Math kMath, int kTile, bool kBackward>
__device__ __forceinline__ void Correlate(
    const CorrelateArguments& p,
    const Element<kMath>* source,
    const Element<kMath>* filter,
    Element<kMath>* result,
    bool accumulate) {
  using T = Element<kMath>;
  using Total = Sums<kMath, kTile, true, !kBackward>;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* rows = reinterpret_cast<SourceRow*>(shared);
  auto* memory = reinterpret_cast<T*>(rows + Total::kSourceRows);
  const Part& part = p.parts[blockIdx.y];
  const auto block = static_cast<int>(blockIdx.x);
  const auto group = static_cast<int>(blockIdx.z);
  const int first_row = block / p.column_tiles * Total::kShape.rows;
  const int first_column = block % p.column_tiles * Total::kShape.columns;
  if (first_row >= part.rows) {
    return;
  }
  SourceLoader<T, typename Total::RowPanel, Total::kThreads> source_loader(
      p, part, source + std::int64_t{group} * p.depth, first_row, rows);
  FilterLoader<T, typename Total::ColumnPanel, Total::kThreads, kBackward> filter_loader(
      p, part, filter, first_column);
  __syncthreads();
  Total sums;
  const int stages =
      part.taps * ((p.depth + Total::RowPanel::kDepth - 1) / Total::RowPanel::kDepth);
  AddStages(
      stages, p.depth, memory,
      [&](T* stage) {
        source_loader.Load(stage);
        filter_loader.Load(stage + Total::RowPanel::kElements);
      },
      &sums);
  StoreTile(p, part, sums, first_row, first_column, result, accumulate);
}

}  // namespace gradsmith::conv::tensor_cores

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type, in declarations
#define GRADSMITH_CORRELATE(name, math, tile, backward)                                        \
  extern "C" __global__ void __launch_bounds__(                                                \
      gradsmith::conv::tensor_cores::ThreadsOf(                                                \
          gradsmith::conv::tensor_cores::TileAt(math, false, tile)),                           \
      gradsmith::conv::tensor_cores::TileAt(math, false, tile).blocks)                         \
      name(                                                                                    \
          const __grid_constant__ gradsmith::conv::tensor_cores::CorrelateArguments arguments, \
          const gradsmith::conv::tensor_cores::Element<math>* source,                          \
          const gradsmith::conv::tensor_cores::Element<math>* filter,                          \
          gradsmith::conv::tensor_cores::Element<math>* result, bool accumulate) {             \
    gradsmith::conv::tensor_cores::Correlate<math, tile, backward>(                            \
        arguments, source, filter, result, accumulate);                                        \
  }

#define GRADSMITH_CORRELATE_TILES(name, math, backward) \
  GRADSMITH_CORRELATE(name##_0, math, 0, backward)      \
  GRADSMITH_CORRELATE(name##_1, math, 1, backward)      \
  GRADSMITH_CORRELATE(name##_2, math, 2, backward)      \
  GRADSMITH_CORRELATE(name##_3, math, 3, backward)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // GRADSMITH_CONV_CUDA_KERNELS_TENSOR_CORES_CORRELATE_CUH_
