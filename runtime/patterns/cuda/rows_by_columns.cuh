#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_CUH_

#include <cmath>
#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"
#include "patterns/cuda/rows_operands.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// Kernels of the pattern `rows` in which a thread has the same few columns of every row: what
/// there is once for a column, such as a scale, and the sums over rows stay in its registers.
namespace gradsmith::cuda {

/// What a team that has a few neighbouring rows knows of them is spread over its lanes: each lane
/// has one of the rows, whose results it finds with the others that have the same, and lanes ask
/// each other for what they need of the rest.
template <typename Functor, typename A, int kRows>
class RowsOfLanes {
 public:
  static constexpr int kResults = AtLeastOne(Functor::kResults);

  /// A team has all lanes of its warps, or as many neighbouring lanes as it has threads.
  __device__ __forceinline__ explicit RowsOfLanes(const RowsLaunch& launch)
      : span_(min(launch.members, 32)), warps_(launch.members / 32) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    first_lane_ = lane - lane % span_;
    row_ = lane % span_ / (span_ / kRows);
  }

  /// The row whose results this lane has.
  [[nodiscard]] __device__ __forceinline__ int row() const { return row_; }
  /// The lane that has a row's.
  [[nodiscard]] __device__ __forceinline__ int LaneOf(int row) const {
    return first_lane_ + row * (span_ / kRows);
  }
  [[nodiscard]] __device__ __forceinline__ int first_lane() const { return first_lane_; }
  [[nodiscard]] __device__ __forceinline__ int span() const { return span_; }

  /// Makes of what the threads found of all rows the results of this lane's. All threads of a block
  /// come here together, and the buffers take turns, so that one wait will do.
  __device__ __forceinline__ void
  Combine(int phase, int* turn, A (&found)[kRows][kResults], A (&own)[kResults]) const {
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      if (Functor::PhaseOf(i) == phase) {
        A of_all[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          of_all[r] = found[r][i];
        }
        own[i] = OfLanes(i, of_all);
      }
    }
    if (warps_ > 1) {
      CombineWarps(phase, *turn, own);
      *turn = 1 - *turn;
    }
  }

 private:
  static constexpr int kWarps = kMostRowsThreads / 32;

  static __device__ __forceinline__ A Added(int result, A one, A other) {
    // A maximum passes over what is not a number; sums do not.
    const A most = one < other ? other : one;
    return Functor::IsMax(result) ? most : one + other;
  }
  static __device__ __forceinline__ A OfOther(A value, int distance) {
    return __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  }

  /// The lanes of each half keep the rows of one half, until each has one row.
  __device__ __forceinline__ A OfLanes(int result, A (&of_all)[kRows]) const {
    int distance = span_ / 2;
#pragma unroll
    for (int rows = kRows; rows > 1; rows /= 2) {
      const bool is_upper = (threadIdx.x & static_cast<unsigned>(distance)) != 0;
#pragma unroll
      for (int r = 0; r < rows / 2; ++r) {
        const A kept = is_upper ? of_all[r + rows / 2] : of_all[r];
        const A given = is_upper ? of_all[r] : of_all[r + rows / 2];
        of_all[r] = Added(result, kept, OfOther(given, distance));
      }
      distance /= 2;
    }
    A own = of_all[0];
#pragma unroll
    for (int d = 16 / kRows; d > 0; d /= 2) {
      if (d <= distance) {
        own = Added(result, own, OfOther(own, d));
      }
    }
    return own;
  }

  /// Adds up what the team's warps found, in their order.
  __device__ __forceinline__ void CombineWarps(int phase, int turn, A (&own)[kResults]) const {
    constexpr int kLanes = 32 / kRows;
    __shared__ A shared[2][kResults][kRows][kWarps];
    static_assert(sizeof(shared) <= kRowsStaticBytes);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int of_row = static_cast<int>(threadIdx.x) % kLanes;
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      if (Functor::PhaseOf(i) == phase && of_row == 0) {
        shared[turn][i][row_][warp] = own[i];
      }
    }
    __syncthreads();
    const int first = warp - warp % warps_;
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      if (Functor::PhaseOf(i) != phase) {
        continue;
      }
      own[i] = Functor::IsMax(i) ? -static_cast<A>(INFINITY) : A(0);
      for (int w = of_row; w < warps_; w += kLanes) {
        own[i] = Added(i, own[i], shared[turn][i][row_][first + w]);
      }
#pragma unroll
      for (int d = kLanes / 2; d > 0; d /= 2) {
        own[i] = Added(i, own[i], OfOther(own[i], d));
      }
    }
  }

  int span_;
  int warps_;
  int first_lane_;
  int row_;
};

/// A team has kRows neighbouring rows at once, each of its threads kChunks vectors of them, which
/// wait in shared memory in places of the thread's own. When the outputs of a row are made, the
/// row that the team has next takes its places.
template <typename Functor, typename T, typename U, int kVector>
class RowsByColumnsKernel {
 public:
  using A = Accumulator<T>;
  using Places = RowsPlaces<Functor>;
  using Operands = RowsOperands<Functor, T, U, kVector>;

  __device__ __forceinline__
  RowsByColumnsKernel(const RowsTask& task, const RowsLaunch& launch, void* shared)
      : task_(task),
        launch_(launch),
        lanes_(launch),
        in_memory_{task, launch},
        shared_(static_cast<Word*>(shared)),
        team_(static_cast<int>(threadIdx.x) / launch.members),
        member_(static_cast<int>(threadIdx.x) % launch.members) {
#pragma unroll
    for (int i = 0; i < internal::kMaxRowsScalars; ++i) {
      scalars_[i] = static_cast<A>(task.scalars[i]);
    }
    LoadColumns();
  }

  __device__ __forceinline__ void Run() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Fetch(FirstRow(blockIdx.x), r);
    }
    OnceOfRows once = LoadOnce(FirstRow(blockIdx.x));
    for (std::int64_t group = blockIdx.x; group < launch_.groups; group += gridDim.x) {
      A own[kResults] = {};
      Reduce(once, own);
      const std::int64_t next = FirstRow(group + gridDim.x);
      const OnceOfRows of_next = LoadOnce(next);
      Finish(FirstRow(group), once, own, next);
      once = of_next;
    }
    if (HasSums()) {
      WriteSums();
    }
  }

 private:
  static constexpr int kChunks = ColumnsOfThread(sizeof(A)) / kVector;
  static constexpr int kRows = RowsOfTeam(sizeof(A), kVector);
  static constexpr int kResults = AtLeastOne(Functor::kResults);
  static constexpr int kColumns = AtLeastOne(Functor::kColumnInputs);
  static constexpr int kSums = AtLeastOne(Functor::kColumnSums);
  static constexpr int kOutputs = AtLeastOne(Functor::kOutputs);
  static constexpr int kRowOutputs = AtLeastOne(Functor::kRowOutputs);
  /// What there is once of a row: its inputs, and the pivot behind them.
  static constexpr int kHasPivot = Functor::kPivot >= 0 ? 1 : 0;
  static constexpr int kOnce = Functor::kRowInputs + kHasPivot;
  static constexpr int kOnceSize = AtLeastOne(kOnce);
  static constexpr int kOnceOfLane =
      AtLeastOne((kRows * kOnce + kLeastMembersByColumns - 1) / kLeastMembersByColumns);
  static_assert(kLeastMembersByColumns >= 2 * kRows);

  using Word = typename Operands::Word;
  using Words = Word[Functor::kInputs];

  /// What there is once of each of the team's rows, spread over the first lanes.
  struct OnceOfRows {
    A values[kOnceOfLane];
  };
  /// What there is once of one row.
  struct OnceOfRow {
    A values[kOnceSize];
  };

  __device__ __forceinline__ bool HasSums() const {
    return Functor::kColumnSums > 0 && launch_.columns != nullptr;
  }
  __device__ __forceinline__ std::int64_t FirstRow(std::int64_t group) const {
    return (group * launch_.teams + team_) * kRows;
  }
  __device__ __forceinline__ int Column(int chunk) const {
    return (member_ + chunk * launch_.members) * kVector;
  }
  __device__ __forceinline__ bool HasChunk(int chunk) const {
    return Column(chunk) < static_cast<int>(task_.length);
  }
  __device__ __forceinline__ std::int64_t ByteOf(int tensor, std::int64_t row, int chunk) const {
    return (row * task_.row_strides[tensor][0] + Column(chunk)) * Operands::SizeOf(tensor);
  }
  __device__ __forceinline__ int WordOfBlock(int r, int chunk, int input) const {
    return ((r * kChunks + chunk) * Functor::kInputs + input) * static_cast<int>(blockDim.x) +
           static_cast<int>(threadIdx.x);
  }

  __device__ __forceinline__ void LoadColumns() {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
#pragma unroll
      for (int i = 0; i < Functor::kColumnInputs; ++i) {
        const int t = Places::kColumnInput + i;
        columns_[c][i] = {};
        if (task_.tensors[t] != nullptr && HasChunk(c)) {
          const auto* const from = static_cast<const char*>(task_.tensors[t]);
          Operands::Load(t, from + Column(c) * Operands::SizeOf(t), &columns_[c][i]);
        }
      }
    }
  }

  /// Begins to copy the r-th of the team's rows to shared memory.
  __device__ __forceinline__ void Fetch(std::int64_t first, int r) const {
    if (first + r < task_.rows) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (HasChunk(c)) {
#pragma unroll
          for (int t = 0; t < Functor::kInputs; ++t) {
            const auto* const from = static_cast<const char*>(task_.tensors[t]);
            Operands::BeginCopy(
                t, SharedAddress(shared_ + WordOfBlock(r, c, t)), from + ByteOf(t, first + r, c));
          }
        }
      }
    }
    EndOfCopies();
  }

  __device__ __forceinline__ OnceOfRows LoadOnce(std::int64_t first) const {
    OnceOfRows once = {};
    const int lane = static_cast<int>(threadIdx.x) % 32 - lanes_.first_lane();
#pragma unroll
    for (int i = 0; i < kOnceOfLane; ++i) {
      const int place = i * kLeastMembersByColumns + lane;
      if (kOnce > 0 && lane < kLeastMembersByColumns && place < kRows * kOnce) {
        once.values[i] = LoadOnceOf(first + place / kOnceSize, place % kOnceSize);
      }
    }
    return once;
  }
  __device__ __forceinline__ A LoadOnceOf(std::int64_t row, int which) const {
    const bool is_pivot = which == Functor::kRowInputs;
    const int t = is_pivot ? Functor::kPivot : Places::kRowInput + which;
    if (row >= task_.rows || task_.tensors[t] == nullptr) {
      return 0;
    }
    const A value =
        LoadElement<A>(task_.tensors[t], task_.types[t], row * task_.row_strides[t][0]);
    return is_pivot && !isfinite(value) ? A(0) : value;
  }
  /// What there is once of the team's r-th row. All lanes ask together.
  __device__ __forceinline__ OnceOfRow OnceOf(const OnceOfRows& once, int r) const {
    OnceOfRow of_row = {};
#pragma unroll
    for (int i = 0; i < kOnce; ++i) {
      // The lane's own row is not known to the compiler: what it may have is looked through.
      const int place = r * kOnce + i;
      const int lane = lanes_.first_lane() + place % kLeastMembersByColumns;
#pragma unroll
      for (int word = 0; word < kOnceOfLane; ++word) {
        const A value = __shfl_sync(0xFFFFFFFFU, once.values[word], lane);
        of_row.values[i] = place / kLeastMembersByColumns == word ? value : of_row.values[i];
      }
    }
    return of_row;
  }

  __device__ __forceinline__ RowValues<A>
  ValuesOf(const OnceOfRow& once, const A (&results)[kResults]) const {
    RowValues<A> row;
    row.inputs = once.values;
    row.results = results;
    row.pivot = kHasPivot != 0 ? once.values[kOnce - kHasPivot] : A(0);
    row.length = static_cast<A>(task_.length);
    row.scalars = scalars_;
    return row;
  }
  /// Gives all lanes what the lane of the r-th row found.
  __device__ __forceinline__ void
  Share(const A (&own)[kResults], int r, A (&results)[kResults]) const {
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      results[i] = __shfl_sync(0xFFFFFFFFU, own[i], lanes_.LaneOf(r));
    }
  }

  /// The elements of a vector, those of one place together.
  struct Elements {
    A in[kVector][Functor::kInputs];
    A columns[kVector][kColumns];
  };
  __device__ __forceinline__ void Take(int r, int chunk, Elements* elements) const {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      A values[kVector];
      Operands::Unpack(Operands::IsSecond(t), shared_[WordOfBlock(r, chunk, t)], values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->in[v][t] = values[v];
      }
    }
#pragma unroll
    for (int i = 0; i < Functor::kColumnInputs; ++i) {
      A values[kVector];
      Operands::Unpack(
          Operands::IsSecond(Places::kColumnInput + i), columns_[chunk][i], values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->columns[v][i] = values[v];
      }
    }
  }

  /// Finds the results of this lane's row.
  __device__ __forceinline__ void Reduce(const OnceOfRows& once, A (&own)[kResults]) {
#pragma unroll
    for (int phase = 0; phase < Functor::kPhases; ++phase) {
      A found[kRows][kResults];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (phase == 0) {
          WaitForCopies(r);
        }
        ReduceRow(phase, r, once, own, found[r]);
      }
      lanes_.Combine(phase, &turn_, found, own);
      const OnceOfRow of_row = OnceOf(once, lanes_.row());
      Functor::Finish(phase, ValuesOf(of_row, own), own);
    }
  }
  /// Waits for the copies of the r-th row; those of the rows behind may be under way.
  static __device__ __forceinline__ void WaitForCopies(int r) {
    if (r == 0) {
      cuda::WaitForCopies<kRows - 1>();
    } else if (r == 1) {
      cuda::WaitForCopies<(kRows > 2 ? kRows - 2 : 0)>();
    } else if (r == 2) {
      cuda::WaitForCopies<(kRows > 3 ? kRows - 3 : 0)>();
    } else {
      cuda::WaitForCopies<0>();
    }
  }
  __device__ __forceinline__ void ReduceRow(
      int phase,
      int r,
      const OnceOfRows& once,
      const A (&own)[kResults],
      A (&found)[kResults]) const {
    const OnceOfRow of_row = OnceOf(once, r);
    A results[kResults] = {};
    if (phase > 0) {
      Share(own, r, results);
    }
    const RowValues<A> row = ValuesOf(of_row, results);
#pragma unroll
    for (int i = 0; i < kResults; ++i) {
      found[i] = Functor::IsMax(i) ? -static_cast<A>(INFINITY) : A(0);
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (!HasChunk(c)) {
        continue;
      }
      Elements elements;
      Take(r, c, &elements);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        A terms[kResults];
        Functor::Terms(phase, row, elements.in[v], elements.columns[v], terms);
#pragma unroll
        for (int i = 0; i < kResults; ++i) {
          if (Functor::PhaseOf(i) == phase) {
            const A most = found[i] < terms[i] ? terms[i] : found[i];
            found[i] = Functor::IsMax(i) ? most : found[i] + terms[i];
          }
        }
      }
    }
  }

  /// Makes the rows' outputs and adds them to the sums of columns, while those to come are fetched.
  __device__ __forceinline__ void Finish(
      std::int64_t first,
      const OnceOfRows& once,
      const A (&own)[kResults],
      std::int64_t next) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const OnceOfRow of_row = OnceOf(once, r);
      A results[kResults];
      Share(own, r, results);
      const RowValues<A> row = ValuesOf(of_row, results);
      if (first + r < task_.rows) {
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
          if (HasChunk(c)) {
            Elements elements;
            Take(r, c, &elements);
            MakeOutputs(row, elements, first + r, c);
            AddToSums(row, elements, c);
          }
        }
      }
      Fetch(next, r);
    }
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t own_row = first + lanes_.row();
    const OnceOfRow of_row = OnceOf(once, lanes_.row());
    if (Functor::kRowOutputs > 0 && own_row < task_.rows && member_ < lanes_.span() &&
        lane == lanes_.LaneOf(lanes_.row())) {
      WriteRowOutputs(ValuesOf(of_row, own), own_row);
    }
  }
  __device__ __forceinline__ void MakeOutputs(
      const RowValues<A>& row,
      const Elements& elements,
      std::int64_t at,
      int chunk) const {
    A out[kOutputs][kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      A of_place[kOutputs];
      Functor::Map(row, elements.in[v], elements.columns[v], of_place);
#pragma unroll
      for (int o = 0; o < Functor::kOutputs; ++o) {
        out[o][v] = of_place[o];
      }
    }
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      const int t = Places::kOutput + o;
      if (task_.tensors[t] != nullptr) {
        auto* const to = static_cast<char*>(task_.tensors[t]);
        Operands::Store(t, to + ByteOf(t, at, chunk), out[o], (task_.accumulate >> t & 1U) != 0);
      }
    }
  }
  __device__ __forceinline__ void
  AddToSums(const RowValues<A>& row, const Elements& elements, int chunk) {
    if constexpr (Functor::kColumnSums > 0) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        A terms[kSums];
        Functor::ColumnTerms(row, elements.in[v], elements.columns[v], terms);
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
          sums_[s][chunk][v] += terms[s];
        }
      }
    }
  }
  __device__ __forceinline__ void
  WriteRowOutputs(const RowValues<A>& row, std::int64_t at) const {
    A outputs[kRowOutputs];
    Functor::RowOutputs(row, outputs);
#pragma unroll
    for (int o = 0; o < Functor::kRowOutputs; ++o) {
      const int t = Places::kRowOutput + o;
      if (task_.tensors[t] != nullptr) {
        StoreOfAnyType(task_, t, at * task_.row_strides[t][0], outputs[o]);
      }
    }
  }

  /// Writes the block's sums; those of several teams are added up in the teams' order.
  __device__ __forceinline__ void WriteSums() const {
    auto* const shared = reinterpret_cast<A*>(shared_);
    const int length = static_cast<int>(task_.length);
    cuda::WaitForCopies<0>();
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          if (HasChunk(c) && launch_.teams == 1) {
            in_memory_.Put(s, Column(c) + v, sums_[s][c][v]);
          } else if (HasChunk(c)) {
            shared[(team_ * kSums + s) * length + Column(c) + v] = sums_[s][c][v];
          }
        }
      }
    }
    if (launch_.teams == 1) {
      return;
    }
    __syncthreads();
    for (int place = static_cast<int>(threadIdx.x); place < kSums * length;
         place += static_cast<int>(blockDim.x)) {
      A sum = 0;
      for (int team = 0; team < launch_.teams; ++team) {
        sum += shared[team * kSums * length + place];
      }
      in_memory_.Put(place / length, place % length, sum);
    }
  }

  const RowsTask& task_;
  const RowsLaunch& launch_;
  RowsOfLanes<Functor, A, kRows> lanes_;
  SumsInMemory<A, kSums, Places::kColumnSum> in_memory_;
  Word* shared_;
  int team_;
  int member_;
  int turn_ = 0;
  A scalars_[internal::kMaxRowsScalars];
  Word columns_[kChunks][kColumns];
  A sums_[kSums][kChunks][kVector] = {};
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_CUH_
