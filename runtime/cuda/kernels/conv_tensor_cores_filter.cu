#include "cuda/kernels/tensor_cores.cuh"

/// Backward filter on tensor cores; see conv/cuda/tensor_cores.h. A row of the product is a channel
/// of y, a column a tap and a channel of x, its terms are the positions of y. Slices of these are
/// summed by different blocks, and added up by another kernel.
namespace gradsmith::conv::tensor_cores {
namespace {

/// Copies the panel of y: the channels of some positions.
template <typename T, typename Panel, int kThreads>
class YLoader {
 public:
  __device__ YLoader(const FilterArguments& p, const T* y, int first_row, int position)
      : p_(p), channel_(first_row + share_.element), position_(position) {
    const auto group = static_cast<int>(blockIdx.z);
    y_ = y + std::int64_t{group} * p.rows;
    first_chunk_ = channel_ / Panel::kVector;
  }

  __device__ void Load(T* panel, int end) {
#pragma unroll
    for (int i = 0; i < Share<Panel, kThreads>::kCount; ++i) {
      const int run = share_.Run(i);
      const int position = position_ + run;
      const bool exists = position < end && channel_ < p_.rows;
      const int chunk = (position * (p_.y_pitch / Panel::kVector)) + first_chunk_;
      CopyChunk(panel + Panel::At(share_.element, run), ChunkAt(y_, exists ? chunk : 0), exists);
    }
    position_ += Panel::kDepth;
  }

 private:
  const FilterArguments& p_;
  Share<Panel, kThreads> share_;
  const T* y_;
  int channel_;
  int first_chunk_;
  int position_;
};

/// Copies the panel of x: what some positions of y meet with a tap, which is a thread's own.
template <typename T, typename Panel, int kThreads>
class XLoader {
 public:
  __device__ XLoader(const FilterArguments& p, const T* x, int first_column, int position)
      : p_(p), position_(position) {
    const int column = first_column + share_.element;
    exists_ = column < p.columns;
    int tap = column / p.channels;
    const auto group = static_cast<int>(blockIdx.z);
    x_ = x + (std::int64_t{group} * p.channels + (column - tap * p.channels));
#pragma unroll
    for (int axis = kSpatialRank - 1; axis >= 0; --axis) {
      const int along = tap % p.filter_sizes[axis];
      tap /= p.filter_sizes[axis];
      offset_[axis] = along * p.dilation[axis] - p.pad[axis];
    }
  }

  __device__ void Load(T* panel, int end) {
#pragma unroll
    for (int i = 0; i < Share<Panel, kThreads>::kCount; ++i) {
      const int run = share_.Run(i);
      const int position = position_ + run;
      bool exists = exists_ && position < end;
      const int pixel = p_.is_pointwise ? position : PixelOf(position, &exists);
      const int chunk = pixel * (p_.x_pitch / Panel::kVector);
      CopyChunk(panel + Panel::At(share_.element, run), ChunkAt(x_, exists ? chunk : 0), exists);
    }
    position_ += Panel::kDepth;
  }

 private:
  __device__ int PixelOf(int position, bool* exists) const {
    int at[kSpatialRank];
#pragma unroll
    for (int axis = kSpatialRank - 1; axis >= 0; --axis) {
      const int quotient = DivideBy(p_.y_sizes[axis], &position);
      at[axis] = position * p_.stride[axis] + offset_[axis];
      *exists = *exists && IsWithin(at[axis], p_.x_sizes[axis]);
      position = quotient;
    }
    int pixel = position;
#pragma unroll
    for (int axis = 0; axis < kSpatialRank; ++axis) {
      pixel = pixel * p_.x_sizes[axis] + at[axis];
    }
    return pixel;
  }

  const FilterArguments& p_;
  Share<Panel, kThreads> share_;
  const T* x_;
  int offset_[kSpatialRank];
  bool exists_;
  int position_;
};

template <Math kMath, int kTile>
__device__ __forceinline__ void SumFilter(
    const FilterArguments& p,
    const Element<kMath>* x,
    const Element<kMath>* y,
    Element<kMath>* partial) {
  using T = Element<kMath>;
  using Total = Sums<kMath, kTile, false, false>;
  extern __shared__ uint4 shared[];
  auto* memory = reinterpret_cast<T*>(shared);
  const auto block = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<int>(blockIdx.y);
  const int first_row = block / p.column_tiles * Total::kShape.rows;
  const int first_column = block % p.column_tiles * Total::kShape.columns;
  const int begin = slice * p.positions_of_slice;
  const int end = min(begin + p.positions_of_slice, p.positions);
  YLoader<T, typename Total::RowPanel, Total::kThreads> y_loader(p, y, first_row, begin);
  XLoader<T, typename Total::ColumnPanel, Total::kThreads> x_loader(p, x, first_column, begin);
  Total sums;
  const int stages = (end - begin + Total::RowPanel::kDepth - 1) / Total::RowPanel::kDepth;
  AddStages(
      stages, memory,
      [&](T* stage) {
        y_loader.Load(stage, end);
        x_loader.Load(stage + Total::RowPanel::kElements, end);
      },
      &sums);
  const std::int64_t share = std::int64_t{slice} * gridDim.z + blockIdx.z;
  T* first = partial + share * p.rows * p.columns;
  sums.Store(first_column, p.columns, false, [&](int row) -> T* {
    return first_row + row < p.rows ? first + std::int64_t{first_row + row} * p.columns : nullptr;
  });
}

}  // namespace
}  // namespace gradsmith::conv::tensor_cores

// NOLINTBEGIN(bugprone-macro-parentheses): types, in declarations
#define GRADSMITH_FILTER(name, math, tile)                                                  \
  extern "C" __global__ void __launch_bounds__(                                             \
      gradsmith::conv::tensor_cores::ThreadsOf(                                             \
          gradsmith::conv::tensor_cores::TileOf<math, tile>()),                             \
      gradsmith::conv::tensor_cores::TileOf<math, tile>().blocks)                           \
      name(                                                                                 \
          const __grid_constant__ gradsmith::conv::tensor_cores::FilterArguments arguments, \
          const gradsmith::conv::tensor_cores::Element<math>* x,                            \
          const gradsmith::conv::tensor_cores::Element<math>* y,                            \
          gradsmith::conv::tensor_cores::Element<math>* partial) {                          \
    gradsmith::conv::tensor_cores::SumFilter<math, tile>(arguments, x, y, partial);         \
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
    gradsmith_tensor_cores_filter_double,
    gradsmith::conv::tensor_cores::Math::kDouble)
