#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_CUH_

#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/kept.cuh"
#include "patterns/cuda/rows_lanes.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"
#include "patterns/cuda/rows_once.cuh"
#include "patterns/cuda/rows_operands.cuh"
#include "patterns/cuda/rows_results.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// Kernels of the pattern `rows` in which a thread has the same few columns of every row: what
/// there is once for a column, such as a scale, and the sums over rows stay in its registers.
namespace gradsmith::cuda {

/// A team has kRows neighbouring rows at once, each of its threads kChunks vectors or single
/// elements of them. Vectors wait in shared memory in places of the thread's own, elements in its
/// registers. When the outputs of a row are made, the row that the team has next takes its places.
/// Where rows are cut into parts (RowsLaunch::parts), a block has the columns of one part.
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
        held_in_shared_(shared_ + threadIdx.x / 32 * (32 * kWords) + threadIdx.x % 32),
        team_(static_cast<int>(threadIdx.x) / launch.members),
        member_(static_cast<int>(threadIdx.x) % launch.members),
        column_(member_ / kBeside * (kBeside * kChunks * kVector) + member_ % kBeside * kVector),
        behind_(static_cast<int>(min(launch.part_length, task.length - FirstColumn())) - column_) {
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      const int t = Places::kOutput + o;
      stored_[o] = Kept(task.tensors[t] != nullptr ? behind_ : 0);
    }
#pragma unroll
    for (int i = 0; i < internal::kMaxRowsScalars; ++i) {
      scalars_[i] = static_cast<A>(task.scalars[i]);
    }
    LoadColumns();
  }

  __device__ __forceinline__ void Run() {
    FindInputs(FirstRow(blockIdx.x));
    FetchAll(FirstRow(blockIdx.x));
    Once once(task_, lanes_, FirstRow(blockIdx.x));
    for (std::int64_t group = blockIdx.x; group < launch_.groups; group += gridDim.x) {
      A own[kResults] = {};
      const bool finds_all = Reduce(FirstRow(group), once, own);
      const std::int64_t next = FirstRow(group + gridDim.x);
      const Once of_next(task_, lanes_, next);
      FindInputs(next);
      if (finds_all) {
        Finish(FirstRow(group), once, own, next);
      } else {
        FetchAll(next);
      }
      once = of_next;
    }
    if (HasSums()) {
      WriteSums();
    }
  }

 private:
  static constexpr int kChunks =
      ColumnsOfThread(sizeof(A), kVector == 1 ? kElementsOfColumn<Functor> : 0) / kVector;
  static constexpr int kRows = RowsOfTeam(sizeof(A), kVector);
  static constexpr bool kInRegisters = kVector == 1;
  static constexpr int kBeside = ThreadsBesideEachOther(kVector);
  /// Columns from a chunk of a thread to its next.
  static constexpr int kStep = kBeside * kVector;
  /// What a thread holds of its team's rows.
  static constexpr int kWords = kRows * kChunks * AtLeastOne(Functor::kInputs);
  static constexpr int kResults = AtLeastOne(Functor::kResults);
  static constexpr int kColumns = AtLeastOne(Functor::kColumnInputs);
  static constexpr int kSums = AtLeastOne(Functor::kColumnSums);
  static constexpr int kOutputs = AtLeastOne(Functor::kOutputs);
  static constexpr int kRowOutputs = AtLeastOne(Functor::kRowOutputs);
  static_assert(kLeastMembersByColumns >= 2 * kRows);

  using Word = typename Operands::Word;
  using Outputs = A[kOutputs][kVector];

  using Once = OnceOfRows<Functor, A, kRows>;

  __device__ __forceinline__ bool HasSums() const {
    return Functor::kColumnSums > 0 && launch_.columns != nullptr;
  }
  __device__ __forceinline__ std::int64_t FirstRow(std::int64_t group) const {
    return (group * launch_.teams + team_) * kRows;
  }
  /// The first column of the block's part, from which others are counted.
  __device__ __forceinline__ std::int64_t FirstColumn() const {
    return blockIdx.y * launch_.part_length;
  }
  __device__ __forceinline__ int Column(int chunk) const { return column_ + chunk * kStep; }
  __device__ __forceinline__ bool HasChunk(int chunk) const { return chunk * kStep < behind_; }
  /// Whether no thread has this chunk, or one behind it: rows shorter than the columns of one
  /// warp's threads are left early.
  __device__ __forceinline__ bool IsBehindRow(int chunk) const {
    return kInRegisters && chunk > 0 && chunk % 4 == 0 &&
           chunk * kStep >= static_cast<int>(launch_.part_length);
  }
  /// How far the thread's first column of a row lies from the first row, in bytes.
  __device__ __forceinline__ std::int64_t ByteOf(int tensor, std::int64_t row) const {
    return (row * task_.row_strides[tensor][0] + FirstColumn() + column_) *
           Operands::SizeOf(tensor);
  }
  /// How far a row lies behind the one before, in bytes.
  __device__ __forceinline__ std::int64_t Pitch(int tensor) const {
    return task_.row_strides[tensor][0] * Operands::SizeOf(tensor);
  }
  /// How far a chunk lies behind the first, in bytes.
  static __device__ __forceinline__ std::int64_t BytesTo(int tensor, int chunk) {
    return chunk * kStep * Operands::SizeOf(tensor);
  }
  /// What the thread has of an input in the r-th of the team's rows. A warp's words lie together,
  /// so that the places of a thread's are known to the compiler.
  __device__ __forceinline__ Word& Held(int r, int chunk, int input) {
    const int word = (r * kChunks + chunk) * Functor::kInputs + input;
    return kInRegisters ? held_[word] : held_in_shared_[word * 32];
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
          const std::int64_t column = FirstColumn() + Column(c);
          Operands::Load(t, from + column * Operands::SizeOf(t), &columns_[c][i]);
        }
      }
    }
  }

  /// Finds where a row begins in each input: Fetch is to begin there.
  __device__ __forceinline__ void FindInputs(std::int64_t row) {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      ins_[t] = static_cast<const char*>(task_.tensors[t]) + ByteOf(t, row);
    }
  }
  __device__ __forceinline__ void FetchAll(std::int64_t first) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Fetch(first, r);
    }
  }
  /// Begins to copy the r-th of the rows from `first` on to shared memory, or to load it. Rows are
  /// fetched one behind the other.
  __device__ __forceinline__ void Fetch(std::int64_t first, int r) {
    if (first + r < task_.rows) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (IsBehindRow(c)) {
          break;
        }
        if (HasChunk(c)) {
#pragma unroll
          for (int t = 0; t < Functor::kInputs; ++t) {
            FetchWord(r, c, t);
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      ins_[t] += Pitch(t);
    }
    if constexpr (!kInRegisters) {
      EndOfCopies();
    }
  }
  __device__ __forceinline__ void FetchWord(int r, int chunk, int input) {
    const char* const from = ins_[input] + BytesTo(input, chunk);
    if (MayBeAbsent<Functor>(input) && task_.tensors[input] == nullptr) {
      Held(r, chunk, input) = {};
    } else if constexpr (kInRegisters) {
      Operands::Load(input, from, &Held(r, chunk, input));
    } else {
      Operands::BeginCopy(input, SharedAddress(&Held(r, chunk, input)), from);
    }
  }

  __device__ __forceinline__ RowValues<A> ValuesOf(
      const typename Once::OfRow& once,
      const A (&results)[kResults]) const {
    RowValues<A> row;
    row.inputs = once.values;
    row.integers = once.integers;
    row.lookups = once.lookups;
    row.results = results;
    row.pivot = once.pivot();
    row.length = static_cast<A>(task_.length);
    row.exact_length = task_.length;
    row.scalars = scalars_;
    row.exact_scalars = task_.scalars;
    return row;
  }
  /// The row as it is at an element of a vector.
  __device__ __forceinline__ RowValues<A> At(RowValues<A> row, int chunk, int v) const {
    row.index = FirstColumn() + Column(chunk) + v;
    return row;
  }
  /// Gives all lanes what the lane of the r-th row found.
  __device__ __forceinline__ void Share(const A (&own)[kResults], int r, A (&results)[kResults])
      const {
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
  __device__ __forceinline__ void Take(int r, int chunk, Elements* elements) {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      A values[kVector];
      Operands::Unpack(Operands::IsSecond(t), Held(r, chunk, t), values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->in[v][t] = values[v];
      }
    }
#pragma unroll
    for (int i = 0; i < Functor::kColumnInputs; ++i) {
      A values[kVector];
      Operands::Unpack(Operands::IsSecond(Places::kColumnInput + i), columns_[chunk][i], values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->columns[v][i] = values[v];
      }
    }
  }

  /// Finds the results of this lane's row. Of a launch for one phase it leaves what it found of the
  /// part, and returns false: there is nothing more to do.
  __device__ __forceinline__ bool Reduce(std::int64_t first, const Once& once, A (&own)[kResults]) {
#pragma unroll
    for (int phase = 0; phase < Functor::kPhases; ++phase) {
      A found[kRows][kResults];
      if (IsInParts() && phase < launch_.phase) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          ClearResults<Functor>(found[r]);
          if (first + r < task_.rows) {
            AddPartials<Functor>(phase, launch_, first + r, member_, found[r]);
          }
        }
      } else {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          if (!kInRegisters && (phase == 0 || IsInParts())) {
            WaitForCopies(r);
          }
          ReduceRow(phase, r, once, own, found[r]);
        }
      }
      lanes_.Combine(phase, &turn_, found, own);
      if (IsInParts() && phase == launch_.phase) {
        WritePartials(phase, first, own);
        return false;
      }
      const typename Once::OfRow of_row = once.Of(lanes_, lanes_.row());
      Functor::Finish(phase, ValuesOf(of_row, own), own);
    }
    return true;
  }
  __device__ __forceinline__ bool IsInParts() const { return launch_.parts > 1; }
  /// Whether this thread is the one that writes the results of its lane's row, if the row exists.
  __device__ __forceinline__ bool WritesResults(std::int64_t row) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    return row < task_.rows && member_ < lanes_.span() && lane == lanes_.LaneOf(lanes_.row());
  }
  __device__ __forceinline__ void
  WritePartials(int phase, std::int64_t first, const A (&own)[kResults]) const {
    const std::int64_t row = first + lanes_.row();
    if (WritesResults(row)) {
      CopyPhase<Functor>(phase, own, PartialsOf<A, kResults>(launch_, row, blockIdx.y));
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
  __device__ __forceinline__ void
  ReduceRow(int phase, int r, const Once& once, const A (&own)[kResults], A (&found)[kResults]) {
    const typename Once::OfRow of_row = once.Of(lanes_, r);
    A results[kResults] = {};
    if (phase > 0) {
      Share(own, r, results);
    }
    const RowValues<A> row = ValuesOf(of_row, results);
    ClearResults<Functor>(found);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (IsBehindRow(c)) {
        break;
      }
      if (!HasChunk(c)) {
        continue;
      }
      Elements elements;
      Take(r, c, &elements);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        A terms[kResults];
        Functor::Terms(phase, At(row, c, v), elements.in[v], elements.columns[v], terms);
        AddPhase<Functor>(phase, terms, found);
      }
    }
  }

  /// Makes the rows' outputs and adds them to the sums of columns, while those to come are fetched.
  __device__ __forceinline__ void
  Finish(std::int64_t first, const Once& once, const A (&own)[kResults], std::int64_t next) {
    char* outs[kOutputs];
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      const int t = Places::kOutput + o;
      outs[o] = static_cast<char*>(task_.tensors[t]) + ByteOf(t, first);
    }
#pragma unroll(kInRegisters ? kRows : 1)
    for (int r = 0; r < kRows; ++r) {
      if (!kInRegisters && (Functor::kPhases == 0 || IsInParts())) {
        // No phase has waited for the row. Behind it are the team's others, and those to come.
        cuda::WaitForCopies<kRows - 1>();
      }
      const typename Once::OfRow of_row = once.Of(lanes_, r);
      A results[kResults];
      Share(own, r, results);
      FinishRow(ValuesOf(of_row, results), r, first + r < task_.rows, next, outs);
    }
    const std::int64_t own_row = first + lanes_.row();
    const typename Once::OfRow of_row = once.Of(lanes_, lanes_.row());
    if (Functor::kRowOutputs > 0 && blockIdx.y == 0 && WritesResults(own_row)) {
      WriteRowOutputs(ValuesOf(of_row, own), own_row);
    }
  }
  /// Makes the outputs of the r-th row, if it exists, and fetches what takes its place.
  __device__ __forceinline__ void FinishRow(
      const RowValues<A>& row,
      int r,
      bool exists,
      std::int64_t next,
      char* (&outs)[kOutputs]) {
    // What is held in registers gives its place to what is made of it, which is stored together:
    // each store by itself would ask whether it adds.
    constexpr int kMade = kInRegisters ? kChunks : 1;
    Outputs made[kMade];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (IsBehindRow(c)) {
        break;
      }
      if (exists && HasChunk(c)) {
        Elements elements;
        Take(r, c, &elements);
        Map(row, elements, c, made[c % kMade]);
        AddToSums(row, elements, c, made[c % kMade]);
        if constexpr (!kInRegisters) {
          StoreChunks(made, c, outs);
        }
      }
    }
    if (kInRegisters && exists) {
      StoreChunks(made, 0, outs);
    }
    Fetch(next, r);
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      outs[o] += Pitch(Places::kOutput + o);
    }
  }
  /// Stores chunks from the first on.
  template <int kMade>
  __device__ __forceinline__ void
  StoreChunks(const Outputs (&made)[kMade], int first, char* const (&outs)[kOutputs]) const {
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      const int t = Places::kOutput + o;
      const auto store = [&](bool adds) {
#pragma unroll
        for (int c = 0; c < kMade; ++c) {
          if (IsBehindRow(first + c)) {
            break;
          }
          if ((first + c) * kStep < stored_[o]) {
            Operands::Store(t, outs[o] + BytesTo(t, first + c), made[c][o], adds);
          }
        }
      };
      if ((task_.accumulate >> t & 1U) != 0) {
        store(true);
      } else {
        store(false);
      }
    }
  }
  __device__ __forceinline__ void
  Map(const RowValues<A>& row, const Elements& elements, int chunk, Outputs& out) const {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      A of_place[kOutputs];
      Functor::Map(At(row, chunk, v), elements.in[v], elements.columns[v], of_place);
#pragma unroll
      for (int o = 0; o < Functor::kOutputs; ++o) {
        out[o][v] = of_place[o];
      }
    }
  }
  __device__ __forceinline__ void
  AddToSums(const RowValues<A>& row, const Elements& elements, int chunk, const Outputs& out) {
    if constexpr (Functor::kColumnSums > 0) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        A terms[kSums];
        Functor::ColumnTerms(At(row, chunk, v), elements.in[v], elements.columns[v], terms);
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
          const int output = Functor::OutputOf(s);
          sums_[s][chunk][v] += output < 0 ? terms[s] : out[output < 0 ? 0 : output][v];
        }
      }
    }
  }
  __device__ __forceinline__ void WriteRowOutputs(const RowValues<A>& row, std::int64_t at) const {
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

  /// Leaves the block's sums for the kernel that adds up all blocks'; those of several teams, which
  /// have whole rows, are added up in the teams' order.
  __device__ __forceinline__ void WriteSums() const {
    auto* const shared = reinterpret_cast<A*>(shared_);
    const int length = static_cast<int>(task_.length);
    cuda::WaitForCopies<0>();
    __syncthreads();
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (IsBehindRow(c)) {
          break;
        }
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          if (HasChunk(c) && launch_.teams == 1) {
            *in_memory_.At(s, FirstColumn() + Column(c) + v) = sums_[s][c][v];
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
      *in_memory_.At(place / length, place % length) = sum;
    }
  }

  const RowsTask& task_;
  const RowsLaunch& launch_;
  typename Once::Lanes lanes_;
  SumsInMemory<A, kSums, Places::kColumnSum> in_memory_;
  Word* shared_;
  Word* held_in_shared_;
  int team_;
  int member_;
  /// The thread's first column, and how many columns there are from it on: in a row, and in each
  /// output that is wanted.
  int column_;
  int behind_;
  int stored_[kOutputs];
  int turn_ = 0;
  /// The thread's first column of the row that is fetched next.
  const char* ins_[AtLeastOne(Functor::kInputs)];
  A scalars_[internal::kMaxRowsScalars];
  Word columns_[kChunks][kColumns];
  Word held_[kInRegisters ? kWords : 1] = {};
  A sums_[kSums][kChunks][kVector] = {};
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_BY_COLUMNS_CUH_
