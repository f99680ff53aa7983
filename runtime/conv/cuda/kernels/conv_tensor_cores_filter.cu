#include "conv/cuda/kernels/tensor_cores.cuh"

/// Backward filter on tensor cores; see conv/cuda/tensor_cores.h. A row of the product is a channel
/// of y, a column a tap and a channel of x, its terms are the positions of y. Slices of these are
/// summed by different blocks, and added up by another kernel.
namespace gradsmith::conv::tensor_cores {
namespace {

/// Copies the panel of y: the channels of some positions.
template <typename T, typename Panel, int kThreads>
class YLoader {
 public:
  __device__ YLoader(const FilterArguments& p, const T* y, int first_row, int position, int end)
      : p_(p), channel_(first_row + share_.element), position_(position), end_(end) {
    const auto group = static_cast<int>(blockIdx.z);
    y_ = Whole(y + (std::int64_t{group} * p.rows + channel_));
    chunks_of_position_ = p.y_pitch / Panel::kVector;
  }

  __device__ void Load(T* panel) {
#pragma unroll
    for (int i = 0; i < Share<Panel, kThreads>::kCount; ++i) {
      const int run = share_.Run(i);
      const int position = position_ + run;
      const bool exists = position < end_ && channel_ < p_.rows;
      CopyChunk(panel + Panel::At(share_.element, run), y_, position * chunks_of_position_, exists);
    }
    position_ += Panel::kDepth;
  }

 private:
  const FilterArguments& p_;
  Share<Panel, kThreads> share_;
  const T* y_;
  int channel_;
  int chunks_of_position_;
  int position_;
  int end_;
};

/// Copies the panel of x: what some positions of y meet with a tap, which is a thread's own. Where
/// the positions are is found once for all threads, and some stages ahead.
template <typename T, typename Panel, int kThreads, int kStages>
class XLoader {
 public:
  /// Fills a part of the ring `rows`; the block must synchronize before the first stage.
  __device__ XLoader(
      const FilterArguments& p,
      const T* x,
      int first_column,
      int position,
      int end,
      SourceRow* rows)
      : p_(p), rows_(rows), position_(position), end_(end) {
    const int column = first_column + share_.element;
    exists_ = column < p.columns;
    int tap = column / p.channels;
    const auto group = static_cast<int>(blockIdx.z);
    x_ = Whole(x + (std::int64_t{group} * p.channels + (column - tap * p.channels)));
    chunks_of_pixel_ = p.x_pitch / Panel::kVector;
#pragma unroll
    for (int axis = kSpatialRank - 1; axis >= 0; --axis) {
      const int along = tap % p.filter_sizes[axis];
      tap /= p.filter_sizes[axis];
      offset_[axis] = along * p.dilation[axis] - p.pad[axis];
    }
    step_ = PixelAt(0, offset_, p.x_sizes) * chunks_of_pixel_;
    for (int i = static_cast<int>(threadIdx.x); i < kAhead && !p.is_pointwise; i += kThreads) {
      rows[i] = RowAt(position + i);
    }
  }

  __device__ void Load(T* panel) {
    if (p_.is_pointwise) {
      LoadPointwise(panel);
    } else {
      LoadGathered(panel);
      FillAhead();
    }
    position_ += Panel::kDepth;
  }

 private:
  /// The stages that are copied before the first barrier, and as many while these are in use.
  static constexpr int kAhead = (kStages - 1) * Panel::kDepth;
  static constexpr int kRing = 2 * kAhead;
  static constexpr int kCount = Share<Panel, kThreads>::kCount;
  static constexpr int kBatch = kCount % 4 == 0 ? 4 : 1;

  __device__ SourceRow RowAt(int position) const {
    return position < end_
               ? RowOf(PositionOf(p_.y_sizes, position), p_.stride, p_.x_sizes, chunks_of_pixel_)
               : RowOfNone();
  }

  __device__ void LoadPointwise(T* panel) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int run = share_.Run(i);
      const int position = position_ + run;
      const bool exists = exists_ && position < end_;
      CopyChunk(panel + Panel::At(share_.element, run), x_, position * chunks_of_pixel_, exists);
    }
  }

  /// Reads of the ring go before the copies, which the compiler does not move them across. All is
  /// compared: branches take longer.
  __device__ void LoadGathered(T* panel) const {
#pragma unroll
    for (int first = 0; first < kCount; first += kBatch) {
      int chunks[kBatch];
      bool exist[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const SourceRow row = rows_[slot_ + share_.Run(first + i)];
        chunks[i] = row.chunk + step_;
        exist[i] = exists_;
#pragma unroll
        for (int axis = 0; axis < kSpatialRank; ++axis) {
          exist[i] = exist[i] & IsWithin(row.at[axis] + offset_[axis], p_.x_sizes[axis]);
        }
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        CopyChunk<true>(
            panel + Panel::At(share_.element, share_.Run(first + i)), x_, chunks[i], exist[i]);
      }
    }
  }

  /// Finds the positions of a later stage, each time by another warp.
  __device__ void FillAhead() {
    const int ahead = (slot_ + kAhead) % kRing;
    const int i = (static_cast<int>(threadIdx.x) + slot_) % kThreads;
    if (i < Panel::kDepth) {
      rows_[ahead + i] = RowAt(position_ + kAhead + i);
    }
    slot_ = (slot_ + Panel::kDepth) % kRing;
  }

  const FilterArguments& p_;
  Share<Panel, kThreads> share_;
  SourceRow* rows_;
  const T* x_;
  int chunks_of_pixel_;
  int offset_[kSpatialRank];
  int step_;  // in chunks
  bool exists_;
  int position_;
  int end_;
  int slot_ = 0;
};

template <Math kMath, int kTile>
__device__ __forceinline__ void SumFilter(
    const FilterArguments& p,
    const Element<kMath>* x,
    const Element<kMath>* y,
    void* result) {
  using T = Element<kMath>;
  using Total = Sums<kMath, kTile, false, false>;
  GRADSMITH_DYNAMIC_SHARED(shared);
  auto* rows = reinterpret_cast<SourceRow*>(shared);
  auto* memory = reinterpret_cast<T*>(rows + Total::kSourceRows);
  const auto block = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<int>(blockIdx.y);
  const int first_row = block / p.column_tiles * Total::kShape.rows;
  const int first_column = block % p.column_tiles * Total::kShape.columns;
  const int begin = slice * p.positions_of_slice;
  const int end = min(begin + p.positions_of_slice, p.positions);
  YLoader<T, typename Total::RowPanel, Total::kThreads> y_loader(p, y, first_row, begin, end);
  XLoader<T, typename Total::ColumnPanel, Total::kThreads, Total::kShape.stages> x_loader(
      p, x, first_column, begin, end, rows);
  __syncthreads();
  Total sums;
  const int stages = (end - begin + Total::RowPanel::kDepth - 1) / Total::RowPanel::kDepth;
  AddStages(
      stages, end - begin, memory,
      [&](T* stage) {
        y_loader.Load(stage);
        x_loader.Load(stage + Total::RowPanel::kElements);
      },
      &sums);
  const std::int64_t share = std::int64_t{slice} * gridDim.z + blockIdx.z;
  const auto store = [&](auto* results, bool accumulate) {
    auto* const first = results + share * p.rows * p.columns;
    sums.Store(first_column, p.columns, accumulate, [&](int row) {
      return first_row + row < p.rows ? first + std::int64_t{first_row + row} * p.columns : nullptr;
    });
  };
  if (p.is_whole) {
    store(static_cast<T*>(result), p.accumulate);
  } else {
    store(static_cast<Sum<kMath>*>(result), false);
  }
}

}  // namespace
}  // namespace gradsmith::conv::tensor_cores

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FILTER(name, math, tile)                                                  \
  extern "C" __global__ void __launch_bounds__(                                             \
      gradsmith::conv::tensor_cores::ThreadsOf(                                             \
          gradsmith::conv::tensor_cores::TileAt(math, true, tile)),                         \
      gradsmith::conv::tensor_cores::TileAt(math, true, tile).blocks)                       \
      name(                                                                                 \
          const __grid_constant__ gradsmith::conv::tensor_cores::FilterArguments arguments, \
          const gradsmith::conv::tensor_cores::Element<math>* x,                            \
          const gradsmith::conv::tensor_cores::Element<math>* y,                            \
          void* result) {                                                                   \
    gradsmith::conv::tensor_cores::SumFilter<math, tile>(arguments, x, y, result);          \
  }

#define GRADSMITH_FILTER_TILES(name, math) \
  GRADSMITH_FILTER(name##_0, math, 0)      \
  GRADSMITH_FILTER(name##_1, math, 1)      \
  GRADSMITH_FILTER(name##_2, math, 2)      \
  GRADSMITH_FILTER(name##_3, math, 3)
// NOLINTEND(bugprone-macro-parentheses)

GRADSMITH_FILTER_TILES(
    gradsmith_tensor_cores_filter_float,
    gradsmith::conv::tensor_cores::Math::kFloat)
GRADSMITH_FILTER_TILES(
    gradsmith_tensor_cores_filter_tf32,
    gradsmith::conv::tensor_cores::Math::kTf32)
GRADSMITH_FILTER_TILES(
    gradsmith_tensor_cores_filter_double,
    gradsmith::conv::tensor_cores::Math::kDouble)
GRADSMITH_FILTER_TILES(
    gradsmith_tensor_cores_filter_half,
    gradsmith::conv::tensor_cores::Math::kHalf)
GRADSMITH_FILTER_TILES(
    gradsmith_tensor_cores_filter_bf16,
    gradsmith::conv::tensor_cores::Math::kBfloat16)
