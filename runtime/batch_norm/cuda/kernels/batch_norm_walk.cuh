#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_WALK_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_WALK_CUH_

#include "batch_norm/cuda/kernels/batch_norm_elements.cuh"

/// How threads go through the tensors: along the rows of a channel, or down columns of vectors.
namespace gradsmith::batch_norm::own {
namespace {

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

__device__ Range SliceOf(std::int64_t count, std::int64_t slices, std::int64_t slice) {
  const std::int64_t length = (count + slices - 1) / slices;
  const std::int64_t begin = Min(slice * length, count);
  return {begin, Min(begin + length, count)};
}

/// 32 bits divide many times faster than 64.
__device__ std::int64_t Divide(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) == 0) {
    return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  }
  return a / b;
}

/// RowOffset returns where a row of channel 0 begins.
__device__ std::int64_t RowOffset(const Walk& walk, const Operand& operand, std::int64_t row) {
  if (row == 0 || (walk.counts[0] == 1 && walk.counts[1] == 1)) {
    return row * operand.strides[2];
  }
  const std::int64_t middle = Divide(row, walk.counts[2]);
  const std::int64_t outer = Divide(middle, walk.counts[1]);
  return (row - middle * walk.counts[2]) * operand.strides[2] +
         (middle - outer * walk.counts[1]) * operand.strides[1] + outer * operand.strides[0];
}

__device__ std::int64_t ChannelOf(const Walk& walk, std::int64_t column) {
  if (walk.columns == walk.channels) {
    return column;
  }
  const std::int64_t place = Divide(column, walk.run);
  return place - Divide(place, walk.channels) * walk.channels;
}

/// ColumnOffset returns where a column lies in each step.
__device__ std::int64_t
ColumnOffset(const Walk& walk, const Operand& operand, std::int64_t column) {
  if (walk.run == 1) {
    return column * operand.channel_stride;
  }
  const std::int64_t place = Divide(column, walk.run);
  return place * operand.channel_stride + column - place * walk.run;
}

template <typename T>
__device__ T* At(const Operand& operand, std::int64_t offset) {
  return static_cast<T*>(operand.data) + offset;
}

__device__ int LaneX(const Walk& walk) {
  return static_cast<int>(threadIdx.x) % walk.width;
}
/// Not below LanesY of threads that are left over.
__device__ int LaneY(const Walk& walk) {
  return static_cast<int>(threadIdx.x) / walk.width;
}
__device__ int LanesY(const Walk& walk) {
  return kThreads / walk.width;
}

/// Where a tile has a number of type A for column `i` of the V that the thread `lane` has: what
/// neighbouring threads load at once lies side by side.
template <typename A, int V>
__device__ __forceinline__ int PlaceInTile(int lane, int i) {
  constexpr int kLoaded = kVectorBytes / static_cast<int>(sizeof(A));
  constexpr int kChunk = V < kLoaded ? V : kLoaded;
  return (i / kChunk * kMaxWidth + lane) * kChunk + i % kChunk;
}

/// Calls fill(place, channel) for every column of the block's tile, side by side: one after the
/// other, each thread's own would be most of a small problem's time. Waits for all.
template <typename A, int V, typename Fill>
__device__ __forceinline__ void FillPlaces(const Walk& walk, const Fill& fill) {
  const int width = walk.width * V;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) {
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * width + i;
    if (column < walk.columns) {
      fill(PlaceInTile<A, V>(i / V, i % V), ChannelOf(walk, column));
    }
  }
  __syncthreads();
}

/// Some of V neighbours of each tensor; `count` may be below one. Absent tensors have zeros.
struct Place {
  std::int64_t dY;
  std::int64_t X;
  std::int64_t output;
  int count;
};

/// The rows of the block's slice of a channel, one after the other, as a thread has them with those
/// beside it; long ones in pieces. In each are whole vectors, which begin where `leader` has
/// offsets that are multiples of V, whatever its address (the order of sums depends on strides
/// only), and edges, the elements before and after them.
template <int V>
class Rows {
 public:
  __device__ Rows(
      const Walk& walk,
      const Operands& operands,
      const Operand& leader,
      std::int64_t channel,
      std::int64_t slice)
      : walk_(walk), operands_(operands), leader_(leader), channel_(channel) {
    const std::int64_t rows = walk.counts[0] * walk.counts[1] * walk.counts[2];
    items_ = SliceOf(rows * walk.pieces, walk.slices, slice);
    items_.begin += LaneY(walk);
  }

  /// Goes on to the next, if there is one.
  __device__ bool Next() {
    if (items_.begin >= items_.end) {
      return false;
    }
    const std::int64_t row = walk_.pieces == 1 ? items_.begin : Divide(items_.begin, walk_.pieces);
    const std::int64_t inner = (items_.begin - row * walk_.pieces) * kPieceElements;
    const auto offset = [&](const Operand& operand) {
      return channel_ * operand.channel_stride + RowOffset(walk_, operand, row) +
             inner * operand.strides[kInner];
    };
    begin_ = {offset(operands_.dY), offset(operands_.X), offset(operands_.output), 0};
    const int length = static_cast<int>(Min(walk_.counts[kInner] - inner, kPieceElements));
    const bool neighbours = leader_.strides[kInner] == 1;
    const int ahead = neighbours ? static_cast<int>(-offset(leader_) & (V - 1)) : 0;
    head_ = ahead < length ? ahead : length;
    vectors_ = (length - head_) / V;
    edges_ = length - vectors_ * V;
    items_.begin += LanesY(walk_);
    return true;
  }

  __device__ int vectors() const { return vectors_; }
  __device__ int edges() const { return edges_; }

  template <Access kAccess>
  __device__ __forceinline__ Place Vector(int i) const {
    return At<kAccess>(head_ + i * V, V);
  }
  __device__ __forceinline__ Place Edge(int i) const {
    return At<Access::kElements>(i < head_ ? i : i + vectors_ * V, 1);
  }

 private:
  template <Access kAccess>
  __device__ __forceinline__ Place At(int inner, int count) const {
    const auto distance = [&](const Operand& operand) {
      return kAccess == Access::kVector ? inner : inner * operand.strides[kInner];
    };
    return {
        begin_.dY + distance(operands_.dY), begin_.X + distance(operands_.X),
        begin_.output + distance(operands_.output), count};
  }

  const Walk& walk_;
  const Operands& operands_;
  const Operand& leader_;
  std::int64_t channel_;
  Range items_;
  Place begin_{};
  int head_ = 0;
  int vectors_ = 0;
  int edges_ = 0;
};

/// Loads and uses what a thread has of a row's vectors, kBatch at once so that their loads do not
/// wait for each other.
template <Access kAccess, int kBatch, int V, typename Visitor>
__device__ __forceinline__ void
VisitVectors(const Walk& walk, const Rows<V>& rows, Visitor& visitor) {
  using Elements = typename Visitor::template Elements<V>;
  int i = LaneX(walk);
  for (; kBatch > 1 && i + (kBatch - 1) * walk.width < rows.vectors(); i += kBatch * walk.width) {
    Elements batch[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      visitor.template Load<kAccess>(rows.template Vector<kAccess>(i + j * walk.width), &batch[j]);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      visitor.template Use<kAccess>(batch[j]);
    }
  }
  for (; i < rows.vectors(); i += walk.width) {
    Elements one;
    visitor.template Load<kAccess>(rows.template Vector<kAccess>(i), &one);
    visitor.template Use<kAccess>(one);
  }
}

/// The same of all rows, and of their edges, of which a thread's first is loaded before the
/// vectors.
template <int kBatch, int V, typename Visitor>
__device__ __forceinline__ void VisitRows(const Walk& walk, Rows<V>& rows, Visitor& visitor) {
  constexpr Access kElements = Access::kElements;
  using Edge = typename Visitor::template Elements<1>;
  while (rows.Next()) {
    const int lane = LaneX(walk);
    Edge edge;
    if (lane < rows.edges()) {
      visitor.template Load<kElements>(rows.Edge(lane), &edge);
    }
    if (walk.vectors_alike) {
      VisitVectors<Access::kVector, kBatch>(walk, rows, visitor);
    } else {
      VisitVectors<kElements, 1>(walk, rows, visitor);
    }
    if (lane < rows.edges()) {
      visitor.template Use<kElements>(edge);
    }
    for (int i = lane + walk.width; i < rows.edges(); i += walk.width) {
      visitor.template Load<kElements>(rows.Edge(i), &edge);
      visitor.template Use<kElements>(edge);
    }
  }
}

/// How far one of a thread's columns is from the next.
template <int V>
__device__ std::int64_t ColumnStride(const Operand& operand) {
  return V == 1 ? operand.channel_stride : 1;
}

/// V columns of the tensors.
template <int V>
struct Columns {
  const Walk& walk;
  const Operands& operands;
  std::int64_t first;

  __device__ Columns(const Walk& the_walk, const Operands& the_operands)
      : walk(the_walk),
        operands(the_operands),
        first((static_cast<std::int64_t>(blockIdx.x) * the_walk.width + LaneX(the_walk)) * V) {}

  /// Whether this thread has any. V divides their number.
  __device__ bool present() const { return first < walk.columns && LaneY(walk) < LanesY(walk); }
  /// Those of the step after the last, as one thread has it.
  __device__ int tail() const {
    const bool mine = present() && LaneY(walk) == 0 && blockIdx.y == 0;
    return mine ? static_cast<int>(Min(walk.tail - first, V)) : 0;
  }
};

/// The places of a thread's steps from one on. A map goes backwards: what was read last is still in
/// the cache. To go on takes no division: it would cost more than the rest.
template <int V, bool kBackwards>
class StepPlaces {
 public:
  __device__ StepPlaces(const Columns<V>& columns, std::int64_t step)
      : walk_(columns.walk), operands_(columns.operands) {
    std::int64_t row = 0;
    if (walk_.counts[kInner] != walk_.steps) {
      row = Divide(step, walk_.counts[kInner]);
      const std::int64_t middle = Divide(row, walk_.counts[2]);
      middle_ = static_cast<int>(row - middle * walk_.counts[2]);
      outer_ = static_cast<int>(middle - Divide(middle, walk_.counts[1]) * walk_.counts[1]);
    }
    inner_ = step - row * walk_.counts[kInner];
    const auto offset = [&](const Operand& operand) {
      return ColumnOffset(walk_, operand, columns.first) + RowOffset(walk_, operand, row) +
             inner_ * operand.strides[kInner];
    };
    place_ = {offset(operands_.dY), offset(operands_.X), offset(operands_.output), 0};
  }

  __device__ __forceinline__ Place Next(int count) {
    Place result = place_;
    result.count = count;
    Move(operands_.dY.ahead, operands_.X.ahead, operands_.output.ahead);
    inner_ += kBackwards ? -walk_.ahead : walk_.ahead;
    while (kBackwards ? inner_ < 0 : inner_ >= walk_.counts[kInner]) {
      NextRow();
    }
    return result;
  }

 private:
  __device__ __forceinline__ void Move(std::int64_t dY, std::int64_t X, std::int64_t output) {
    place_.dY += kBackwards ? -dY : dY;
    place_.X += kBackwards ? -X : X;
    place_.output += kBackwards ? -output : output;
  }

  __device__ __forceinline__ void NextRow() {
    inner_ += kBackwards ? walk_.counts[kInner] : -walk_.counts[kInner];
    const int carry = !Carry(&middle_, walk_.counts[2]) ? 0
                      : Carry(&outer_, walk_.counts[1]) ? 2
                                                        : 1;
    Move(
        operands_.dY.to_next_row[carry], operands_.X.to_next_row[carry],
        operands_.output.to_next_row[carry]);
  }

  /// Whether it was the last.
  __device__ __forceinline__ bool Carry(int* index, std::int64_t count) {
    const bool last = *index == (kBackwards ? 0 : count - 1);
    *index = last ? static_cast<int>(kBackwards ? count - 1 : 0) : *index + (kBackwards ? -1 : 1);
    return last;
  }

  const Walk& walk_;
  const Operands& operands_;
  std::int64_t inner_ = 0;
  int middle_ = 0;
  int outer_ = 0;
  Place place_{};
};

/// The steps that a thread has of a slice.
struct OwnSteps {
  std::int64_t first;
  int count;

  __device__ OwnSteps(const Walk& walk, std::int64_t slice) {
    Range steps = {slice * LanesY(walk), walk.steps};
    if (walk.ahead == LanesY(walk)) {
      steps = SliceOf(walk.steps, walk.slices, slice);
    }
    first = steps.begin + LaneY(walk);
    count = static_cast<int>(Divide(Max(steps.end - first + walk.ahead - 1, 0), walk.ahead));
  }

  /// Not below the first.
  __device__ std::int64_t last(const Walk& walk) const {
    return first + Max(count - 1, 0) * walk.ahead;
  }
};

/// What is left after the last step.
template <int V, bool kBackwards, typename Visitor>
__device__ __forceinline__ void VisitTail(const Columns<V>& columns, Visitor& visitor) {
  if (const int tail = columns.tail(); tail > 0) {
    StepPlaces<V, kBackwards> after(columns, columns.walk.steps);
    visitor.template Visit<1>(&after, tail);
  }
}

/// Calls visitor.template Visit<n>(&places, count) for n places of a thread's columns, until all of
/// the block's slice have been visited: n at once so that their loads do not wait for each other.
template <int kBatch, bool kBackwards, int V, typename Visitor>
__device__ __forceinline__ void ForEachPlace(const Columns<V>& columns, Visitor& visitor) {
  if (!columns.present()) {
    return;
  }
  const Walk& walk = columns.walk;
  const OwnSteps steps(walk, kBackwards ? walk.slices - 1 - blockIdx.y : blockIdx.y);
  int left = steps.count;
  StepPlaces<V, kBackwards> places(columns, kBackwards ? steps.last(walk) : steps.first);
  for (; left >= kBatch; left -= kBatch) {
    visitor.template Visit<kBatch>(&places, V);
  }
  for (; left > 0; --left) {
    visitor.template Visit<1>(&places, V);
  }
  VisitTail<V, kBackwards>(columns, visitor);
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_WALK_CUH_
