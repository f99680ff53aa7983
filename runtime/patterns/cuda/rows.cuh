#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_CUH_

#include <cmath>
#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"
#include "patterns/cuda/rows_team.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// The kernels of the pattern `rows` (patterns/rows.h), in C++17.
/// GRADSMITH_ROWS_KERNELS(SoftmaxGrad, SoftmaxGradRows) makes those of an operator from its
/// functor.
///
/// A team of threads has a row: each thread every so many vectors of it, of which it keeps the
/// first in shared memory, so that memory is read once; what is beyond is read again by each phase
/// and for the outputs. Where rows lie across memory, a team has as many neighbouring rows as a
/// vector has elements, and each thread every so many vectors down the rows.
namespace gradsmith::cuda {

template <typename Functor, typename T, typename U, int kVector, bool kIsAcross>
class RowsKernel {
 public:
  using A = Accumulator<T>;
  using Places = RowsPlaces<Functor>;

  __device__ __forceinline__
  RowsKernel(const RowsTask& task, const RowsLaunch& launch, void* shared)
      : task_(task),
        launch_(launch),
        team_(TeamOf<kIsAcross>(launch)),
        held_(static_cast<Word*>(shared) + threadIdx.x),
        sums_(
            reinterpret_cast<A*>(
                static_cast<Word*>(shared) + launch.held * Functor::kInputs * blockDim.x) +
            threadIdx.x) {
#pragma unroll
    for (int i = 0; i < internal::kMaxRowsScalars; ++i) {
      scalars_[i] = static_cast<A>(task.scalars[i]);
    }
    const std::int64_t begin = launch.parts > 1 ? blockIdx.y * launch.part_length : 0;
    end_ = launch.parts > 1 ? min(task.length, begin + launch.part_length) : task.length;
    first_ = begin + std::int64_t{team_.member} * kStep;
    stride_ = std::int64_t{launch.members} * kStep;
  }

  __device__ __forceinline__ void Run() {
    if (HasColumns()) {
      ForEachSum([](A* sum, A* /*to*/) { *sum = 0; });
    }
    for (std::int64_t group = blockIdx.x; group < launch_.groups; group += gridDim.x) {
      const std::int64_t row = (group * launch_.teams + team_.index) * kRows;
      State state;
      Begin(row, &state);
      if (!Reduce(row, &state)) {
        continue;
      }
      if (row < task_.rows) {
        WriteOutputs(row, state);
      }
      if (HasColumns()) {
        AddToColumns(state);
      }
    }
    if (HasColumns()) {
      WriteColumns();
    }
  }

 private:
  /// How many rows a thread has at once.
  static constexpr int kRows = kIsAcross ? kVector : 1;
  /// Elements of a row from one vector of it to the next.
  static constexpr int kStep = kIsAcross ? 1 : kVector;
  static constexpr int kWider = static_cast<int>(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));
  /// Vectors that a loop has at once, and that are on their way from memory at once.
  static constexpr int kBatch = kVector > 1 && !kIsAcross ? 2 : 1;
  static constexpr int kLoads = kVector > 1 ? 4 : 8;
  static constexpr int kResults = AtLeastOne(Functor::kResults);
  static constexpr int kColumns = AtLeastOne(Functor::kColumnInputs);
  static constexpr int kSums = AtLeastOne(Functor::kColumnSums);
  static constexpr int kOutputs = AtLeastOne(Functor::kOutputs);
  static constexpr int kRowOutputs = AtLeastOne(Functor::kRowOutputs);
  static constexpr int kRowInputs = AtLeastOne(Functor::kRowInputs);
  static_assert(!kIsAcross || Functor::kColumnInputs + Functor::kColumnSums == 0);

  using Word = typename WordOf<kVector * kWider>::Type;
  using Words = Word[Functor::kInputs];
  using Team = RowsTeam<A, kRows, kResults, kIsAcross ? kRowsAcross<kVector> : 1>;

  /// What a thread has of its rows.
  struct State {
    std::int64_t offsets[Places::kEnd];
    std::int64_t end;
    A results[kRows][kResults];
    A inputs[kRows][kRowInputs];
    A pivots[kRows];
  };

  static __device__ constexpr bool IsSecond(int tensor) {
    return (Functor::kSecondTypes >> tensor & 1U) != 0;
  }
  __device__ __forceinline__ bool HasColumns() const {
    return Functor::kColumnSums > 0 && launch_.columns != nullptr;
  }

  __device__ __forceinline__ Row<A> RowOf(const State& state, int r) const {
    Row<A> row;
    row.inputs = state.inputs[r];
    row.results = state.results[r];
    row.pivot = state.pivots[r];
    row.length = static_cast<A>(task_.length);
    row.scalars = scalars_;
    return row;
  }

  /// How far an element lies from the row's first. Rows of vectors have one dim.
  __device__ __forceinline__ std::int64_t Along(int tensor, std::int64_t index) const {
    if (kVector > 1) {
      return kIsAcross ? index * task_.length_strides[tensor][0] : index;
    }
    return task_.length_rank > 1 ? LengthOffset(task_, tensor, index)
                                 : index * task_.length_strides[tensor][0];
  }

  __device__ __forceinline__ void Load(const State& state, std::int64_t index, Words& words) const {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      const std::int64_t offset = state.offsets[t] + Along(t, index);
      if (IsSecond(t)) {
        LoadWord<U, kVector>(task_.tensors[t], offset, &words[t]);
      } else {
        LoadWord<T, kVector>(task_.tensors[t], offset, &words[t]);
      }
    }
  }
  /// A vector that this thread keeps.
  __device__ __forceinline__ Word& Held(int chunk, int input) const {
    return held_[(chunk * Functor::kInputs + input) * static_cast<int>(blockDim.x)];
  }

  /// Loads what is kept of a row. Rows behind the last have no elements.
  __device__ __forceinline__ void Begin(std::int64_t row, State* state) const {
    const bool exists = row < task_.rows;
    state->end = exists ? end_ : 0;
    RowOffsets<Places::kEnd>(task_, exists ? row : 0, state->offsets);
#pragma unroll 1
    for (int chunk = 0; chunk < launch_.held; chunk += kLoads) {
      Words words[kLoads];
      const std::int64_t index = first_ + chunk * stride_;
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (chunk + i < launch_.held && index + i * stride_ < state->end) {
          Load(*state, index + i * stride_, words[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (chunk + i < launch_.held && index + i * stride_ < state->end) {
#pragma unroll
          for (int t = 0; t < Functor::kInputs; ++t) {
            Held(chunk + i, t) = words[i][t];
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      LoadOfRow(row + r, exists, r, state);
    }
  }
  __device__ __forceinline__ void LoadOfRow(std::int64_t row, bool exists, int r, State* state)
      const {
#pragma unroll
    for (int i = 0; i < Functor::kRowInputs; ++i) {
      const int t = Places::kRowInput + i;
      state->inputs[r][i] = 0;
      if (exists && task_.tensors[t] != nullptr) {
        const std::int64_t offset = r == 0 ? state->offsets[t] : RowOffset(task_, t, row);
        state->inputs[r][i] = LoadElement<A>(task_.tensors[t], task_.types[t], offset);
      }
    }
    state->pivots[r] = 0;
    if constexpr (Functor::kPivot >= 0) {
      constexpr int t = Functor::kPivot;
      if (exists && task_.length > 0) {
        const std::int64_t offset = r == 0 ? state->offsets[t] : RowOffset(task_, t, row);
        const A pivot = LoadElement<A>(task_.tensors[t], task_.types[t], offset);
        state->pivots[r] = isfinite(pivot) ? pivot : A(0);
      }
    }
  }

  /// Calls visit(index, chunk, words) for the vectors of this thread.
  template <typename Visit>
  __device__ __forceinline__ void ForEach(const State& state, const Visit& visit) const {
    int chunk = 0;
#pragma unroll 1
    for (std::int64_t index = first_; index < state.end; index += kBatch * stride_) {
      Words words[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (chunk + i < launch_.held) {
#pragma unroll
          for (int t = 0; t < Functor::kInputs; ++t) {
            words[i][t] = Held(chunk + i, t);
          }
        } else if (index + i * stride_ < state.end) {
          Load(state, index + i * stride_, words[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (index + i * stride_ < state.end) {
          visit(index + i * stride_, chunk + i, words[i]);
        }
      }
      chunk += kBatch;
    }
  }

  /// The elements of a vector, those of one place together.
  struct Elements {
    A in[kVector][Functor::kInputs];
    A columns[kVector][kColumns];
  };

  __device__ __forceinline__ void Take(const Words& words, std::int64_t index, Elements* elements)
      const {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      A values[kVector];
      Unpack(IsSecond(t), words[t], values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->in[v][t] = values[v];
      }
    }
#pragma unroll
    for (int i = 0; i < Functor::kColumnInputs; ++i) {
      const int t = Places::kColumnInput + i;
      A values[kVector] = {};
      if (task_.tensors[t] != nullptr) {
        Word word;
        if (IsSecond(t)) {
          LoadWord<U, kVector>(task_.tensors[t], Along(t, index), &word);
        } else {
          LoadWord<T, kVector>(task_.tensors[t], Along(t, index), &word);
        }
        Unpack(IsSecond(t), word, values);
      }
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->columns[v][i] = values[v];
      }
    }
  }
  static __device__ __forceinline__ void
  Unpack(bool is_second, const Word& word, A (&values)[kVector]) {
    if (is_second) {
      cuda::Unpack<U, kVector>(word, values);
    } else {
      cuda::Unpack<T, kVector>(word, values);
    }
  }

  /// Finds a row's results. Of a launch for one phase it leaves what it found of the part, and
  /// returns false: there is nothing more to do.
  __device__ __forceinline__ bool Reduce(std::int64_t row, State* state) {
    if (launch_.parts == 1 && !WantsRows() && !Functor::kColumnsNeedResults) {
      return true;
    }
#pragma unroll
    for (int phase = 0; phase < Functor::kPhases; ++phase) {
      if (launch_.parts > 1 && phase < launch_.phase) {
        ReadPartials(phase, row, state);
      } else {
        ReduceOwn(phase, state);
        if (launch_.parts > 1) {
          if (team_.member == 0 && row < task_.rows) {
            WritePartials(phase, row, *state);
          }
          return false;
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        Functor::Finish(phase, RowOf(*state, r), state->results[r]);
      }
    }
    return true;
  }

  __device__ __forceinline__ bool WantsRows() const {
    bool wants = false;
#pragma unroll
    for (int t = Places::kOutput; t < Places::kEnd; ++t) {
      const bool is_sum = t >= Places::kColumnSum && t < Places::kRowOutput;
      wants = wants || (!is_sum && task_.tensors[t] != nullptr);
    }
    return wants;
  }

  __device__ __forceinline__ void ReduceOwn(int phase, State* state) {
    A found[kRows][kResults];
    Team::template Clear<Functor>(&found);
    ForEach(*state, [&](std::int64_t index, int /*chunk*/, const Words& words) {
      Elements elements;
      Take(words, index, &elements);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const int r = kIsAcross ? v : 0;
        A terms[kResults];
        Functor::Terms(phase, RowOf(*state, r), elements.in[v], elements.columns[v], terms);
        Team::template Add<Functor>(phase, terms, found[r]);
      }
    });
    Team::template Combine<Functor>(phase, launch_, team_, &turn_, &found);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Team::template Take<Functor>(phase, found[r], state->results[r]);
    }
  }

  __device__ __forceinline__ A* PartialsOf(std::int64_t row, std::int64_t part) const {
    return static_cast<A*>(launch_.partials) + (row * launch_.parts + part) * kResults;
  }
  __device__ __forceinline__ void WritePartials(int phase, std::int64_t row, const State& state)
      const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Team::template Take<Functor>(phase, state.results[r], PartialsOf(row + r, blockIdx.y));
    }
  }
  __device__ __forceinline__ void ReadPartials(int phase, std::int64_t row, State* state) const {
    A found[kRows][kResults];
    Team::template Clear<Functor>(&found);
    if (row < task_.rows) {
      for (int part = 0; part < launch_.parts; ++part) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          Team::template Add<Functor>(phase, PartialsOf(row + r, part), found[r]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Team::template Take<Functor>(phase, found[r], state->results[r]);
    }
  }

  __device__ __forceinline__ void WriteOutputs(std::int64_t row, const State& state) const {
    ForEach(state, [&](std::int64_t index, int /*chunk*/, const Words& words) {
      Elements elements;
      Take(words, index, &elements);
      A out[kOutputs][kVector];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        A of_place[kOutputs];
        Functor::Map(
            RowOf(state, kIsAcross ? v : 0), elements.in[v], elements.columns[v], of_place);
#pragma unroll
        for (int o = 0; o < Functor::kOutputs; ++o) {
          out[o][v] = of_place[o];
        }
      }
#pragma unroll
      for (int o = 0; o < Functor::kOutputs; ++o) {
        Store(Places::kOutput + o, state, index, out[o]);
      }
    });
    if (Functor::kRowOutputs > 0 && team_.member == 0 && blockIdx.y == 0) {
      WriteRowOutputs(row, state);
    }
  }
  __device__ __forceinline__ void
  Store(int tensor, const State& state, std::int64_t index, const A (&values)[kVector]) const {
    if (task_.tensors[tensor] == nullptr) {
      return;
    }
    const std::int64_t offset = state.offsets[tensor] + Along(tensor, index);
    const bool adds = (task_.accumulate >> tensor & 1U) != 0;
    if (IsSecond(tensor)) {
      StoreRowVector<U, kVector>(task_.tensors[tensor], offset, values, adds);
    } else {
      StoreRowVector<T, kVector>(task_.tensors[tensor], offset, values, adds);
    }
  }
  __device__ __forceinline__ void WriteRowOutputs(std::int64_t row, const State& state) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      A outputs[kRowOutputs];
      Functor::RowOutputs(RowOf(state, r), outputs);
#pragma unroll
      for (int o = 0; o < Functor::kRowOutputs; ++o) {
        const int t = Places::kRowOutput + o;
        if (task_.tensors[t] != nullptr) {
          StoreOfAnyType(task_, t, RowOffset(task_, t, row + r), outputs[o]);
        }
      }
    }
  }

  __device__ __forceinline__ void AddToColumns(const State& state) const {
    if constexpr (Functor::kColumnSums > 0) {
      ForEach(state, [&](std::int64_t index, int chunk, const Words& words) {
        Elements elements;
        Take(words, index, &elements);
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          A terms[kSums];
          Functor::ColumnTerms(RowOf(state, 0), elements.in[v], elements.columns[v], terms);
#pragma unroll
          for (int s = 0; s < Functor::kColumnSums; ++s) {
            *SumAt(chunk, v, s, index) += terms[s];
          }
        }
      });
    }
  }
  /// Where this thread sums a column: in shared memory, or where that does not hold so many, in the
  /// block's own place, to which no other thread of the block writes: it has one team then.
  __device__ __forceinline__ A* SumAt(int chunk, int v, int s, std::int64_t index) const {
    const int place = ((chunk * kVector + v) * kSums + s) * static_cast<int>(blockDim.x);
    return chunk < launch_.held_sums ? sums_ + place : BlockSumAt(s, index + v);
  }
  __device__ __forceinline__ A* BlockSumAt(int s, std::int64_t column) const {
    return static_cast<A*>(launch_.columns) +
           (std::int64_t{blockIdx.x} * Functor::kColumnSums + s) * task_.length + column;
  }
  /// Calls visit(sum, to) for the columns that this thread sums.
  template <typename Visit>
  __device__ __forceinline__ void ForEachSum(const Visit& visit) const {
    if constexpr (Functor::kColumnSums > 0) {
      int chunk = 0;
#pragma unroll 1
      for (std::int64_t index = first_; index < end_; index += stride_) {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
#pragma unroll
          for (int s = 0; s < Functor::kColumnSums; ++s) {
            visit(SumAt(chunk, v, s, index), BlockSumAt(s, index + v));
          }
        }
        ++chunk;
      }
    }
  }
  /// Writes a block's sums of columns. Those of several teams, which are all in shared memory, are
  /// added up in the teams' order; the teams share that work.
  __device__ __forceinline__ void WriteColumns() const {
    if (launch_.teams == 1) {
      ForEachSum([&](A* sum, A* to) {
        if (sum != to) {
          *to = *sum;
        }
      });
      return;
    }
    __syncthreads();
    const A* all = sums_ - threadIdx.x;
    const int places = launch_.held_sums * kVector * kSums;
    for (int place = team_.index; place < places; place += launch_.teams) {
      const int v = place / kSums % kVector;
      const std::int64_t index = first_ + place / kSums / kVector * stride_;
      if (index >= end_) {
        continue;
      }
      const A* own = all + place * static_cast<int>(blockDim.x) + team_.member;
      A sum = 0;
      for (int team = 0; team < launch_.teams; ++team) {
        sum += own[team * launch_.members];
      }
      *BlockSumAt(place % kSums, index + v) = sum;
    }
  }

  const RowsTask& task_;
  const RowsLaunch& launch_;
  RowsPlaceInBlock team_;
  /// In shared memory, of this thread alone: the vectors that it keeps, and its sums of columns.
  Word* held_;
  A* sums_;
  A scalars_[internal::kMaxRowsScalars];
  std::int64_t first_;
  std::int64_t stride_;
  std::int64_t end_;
  int turn_ = 0;
};

}  // namespace gradsmith::cuda

#define GRADSMITH_ROWS_KERNEL(form, is_across, kVector, name, Functor, suffix, T, U)            \
  extern "C" __global__ void __launch_bounds__(gradsmith::cuda::kMostRowsThreads)               \
      gradsmith_rows_##form##_##name##_##suffix(                                                \
          const __grid_constant__ gradsmith::internal::RowsTask task,                           \
          const __grid_constant__ gradsmith::cuda::RowsLaunch launch) {                         \
    GRADSMITH_DYNAMIC_SHARED(shared);                                                           \
    gradsmith::cuda::RowsKernel<Functor, T, U, kVector, is_across>(task, launch, shared).Run(); \
  }

#define GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, suffix, T, U)  \
  GRADSMITH_ROWS_KERNEL(                                           \
      along_vectors, false,                                        \
      (sizeof(T) > sizeof(U) ? gradsmith::cuda::kVectorLength<T>   \
                             : gradsmith::cuda::kVectorLength<U>), \
      name, Functor, suffix, T, U)                                 \
  GRADSMITH_ROWS_KERNEL(along_elements, false, 1, name, Functor, suffix, T, U)

#define GRADSMITH_ROWS_KERNELS_OF(name, Functor, suffix, T)                                 \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, suffix, T, T)                                 \
  GRADSMITH_ROWS_KERNEL(                                                                    \
      across_vectors, true, gradsmith::cuda::kVectorLength<T>, name, Functor, suffix, T, T) \
  GRADSMITH_ROWS_KERNEL(across_elements, true, 1, name, Functor, suffix, T, T)

/// Defines the kernels of an operator without columns and without a second type, by its name in
/// ops.yaml, for all floating types.
#define GRADSMITH_ROWS_KERNELS(name, Functor)           \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, f32, float)  \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, f64, double) \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, f16, __half) \
  GRADSMITH_ROWS_KERNELS_OF(name, Functor, bf16, __nv_bfloat16)

/// Defines the kernels of an operator with columns, for all floating types and for the pairs of
/// them that differ. Their rows are never computed across memory.
#define GRADSMITH_ROWS_KERNELS_WITH_COLUMNS(name, Functor)                        \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, f32, float, float)                  \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, f64, double, double)                \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, f16, __half, __half)                \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, bf16, __nv_bfloat16, __nv_bfloat16) \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, f16_f32, __half, float)             \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, bf16_f32, __nv_bfloat16, float)     \
  GRADSMITH_ROWS_KERNELS_ALONG(name, Functor, f32_f16, float, __half)

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_CUH_
