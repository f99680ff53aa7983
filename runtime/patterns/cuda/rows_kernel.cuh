#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_KERNEL_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_KERNEL_CUH_

#include <cmath>
#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/kept.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"
#include "patterns/cuda/rows_operands.cuh"
#include "patterns/cuda/rows_sums.cuh"
#include "patterns/cuda/rows_team.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// Kernels of the pattern `rows` along memory and across it.
///
/// A team of threads has a row: each thread every so many vectors of it, of which it keeps the
/// first in shared memory, so that memory is read once; what is beyond is read again by each phase
/// and for the outputs. A vector is used for the last time when the outputs are made: that of the
/// team's next row takes its place at once, and is on its way while this one is finished. Where
/// rows lie across memory, a team has as many neighbouring rows as a vector has elements, and each
/// thread every so many vectors down the rows.
///
/// Rows may be ragged: begin anywhere between vectors, and end anywhere. A thread's vectors then
/// lie where vectors do in memory, and of the first and the last of a row it takes what is the
/// row's.
namespace gradsmith::cuda {

template <
    typename Functor,
    typename T,
    typename U,
    int kVector,
    bool kIsAcross,
    bool kIsRagged = false>
class RowsKernel {
 public:
  using A = Accumulator<T>;
  using Places = RowsPlaces<Functor>;
  using Operands = RowsOperands<Functor, T, U, kVector>;

  __device__ __forceinline__
  RowsKernel(const RowsTask& task, const RowsLaunch& launch, void* shared)
      : task_(task),
        launch_(launch),
        team_(TeamOf<kIsAcross>(launch)),
        shared_(static_cast<Word*>(shared) + threadIdx.x),
        sums_(
            task,
            launch,
            team_,
            static_cast<Word*>(shared) + launch.held * SlotOf(Functor::kInputs) * blockDim.x) {
#pragma unroll
    for (int i = 0; i < internal::kMaxRowsScalars; ++i) {
      scalars_[i] = static_cast<A>(task.scalars[i]);
    }
    const std::int64_t begin = launch.parts > 1 ? blockIdx.y * launch.part_length : 0;
    end_ = launch.parts > 1 ? min(task.length, begin + launch.part_length) : task.length;
    first_ = begin + std::int64_t{team_.member} * kStep;
    stride_ = launch.members * kStep;
    chunks_ = ChunksUntil(end_);
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      ins_[t] = Kept(BeginOf(t));
    }
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      outs_[o] = Kept(BeginOf(Places::kOutput + o));
    }
    if (!kIsDense && !kIsOfManyDims) {
#pragma unroll
      for (int i = 0; i < kApart; ++i) {
        const int t = TensorOf(i);
        steps_[i] = Kept(stride_ * task.length_strides[t][0] * SizeOf(t));
      }
    }
  }

  __device__ __forceinline__ void Run() {
    if (HasColumns()) {
      sums_.Clear(first_, stride_, end_);
    }
    Rows rows;
    Find(blockIdx.x, &rows);
    Fetch(rows);
    for (std::int64_t group = blockIdx.x; group < launch_.groups; group += gridDim.x) {
      Results results;
      const bool finds_all = Reduce(rows, results);
      Rows next;
      Find(group + gridDim.x, &next);
      if (finds_all) {
        FinishRows(rows, results, next);
      } else {
        Fetch(next);
      }
      rows = next;
    }
    if (HasColumns()) {
      sums_.Write(first_, stride_, end_);
    }
  }

 private:
  /// How many rows a thread has at once.
  static constexpr int kRows = kIsAcross ? kVector : 1;
  /// Elements of a row from one vector of it to the next.
  static constexpr int kStep = kIsAcross ? 1 : kVector;
  /// Vectors that a loop has at once: two of those whose columns are summed hide how long it takes.
  static constexpr int kUnroll = kVector == 1 || Functor::kColumnSums != 0 ? 2 : 1;
  /// Whether vectors are copied to shared memory while the thread goes on.
  static constexpr bool kIsAsync = kVector * Operands::kNarrower >= 4;
  /// Not where outputs of rows are made of what there is once of each.
  static constexpr bool kReadsElements =
      Functor::kPhases + Functor::kOutputs + Functor::kColumnSums > 0;
  static constexpr bool kSumsOutputs = SumsOutputs<Functor>();
  static constexpr int kResults = AtLeastOne(Functor::kResults);
  static constexpr int kColumns = AtLeastOne(Functor::kColumnInputs);
  static constexpr int kSums = AtLeastOne(Functor::kColumnSums);
  static constexpr int kOutputs = AtLeastOne(Functor::kOutputs);
  static constexpr int kRowOutputs = AtLeastOne(Functor::kRowOutputs);
  static constexpr int kRowInputs = AtLeastOne(Functor::kRowInputs);
  static constexpr int kIntegers = AtLeastOne(Functor::kIntegerInputs);
  static constexpr int kLookups = AtLeastOne(Functor::kLookups);
  /// Whether all operands have neighbours along rows. Others each have a stride of their own.
  static constexpr bool kIsDense = kVector > 1 && !kIsAcross && !Functor::kRowsOfManyDims;
  /// Whether each vector's place is computed anew.
  static constexpr bool kIsOfManyDims = Functor::kRowsOfManyDims;
  static constexpr int kElementInputs = Functor::kInputs + Functor::kColumnInputs;
  static constexpr int kApart = kIsDense ? 1 : kElementInputs + Functor::kOutputs;
  static_assert(!(kIsAcross || kIsRagged) || Functor::kColumnInputs + Functor::kColumnSums == 0);
  static_assert(!kIsRagged || kIsDense);
  static_assert(!Functor::kIsFlat, "flat rows have kernels of their own (rows_flat.cuh)");

  using Word = typename Operands::Word;
  using Words = Word[Functor::kInputs];
  using Team = RowsTeam<A, kRows, kResults, kIsAcross ? kRowsAcross<kVector> : 1>;
  using Results = A[kRows][kResults];
  using Outputs = A[kOutputs][kVector];

  /// Where a thread's rows are, and what there is once of each.
  struct Rows {
    std::int64_t row;
    /// How many elements before the row its first vector begins.
    int shift;
    /// How many vectors the thread has of them: none behind the last row.
    int chunks;
    /// This thread's first vector in each input and output of elements.
    const char* in[Functor::kInputs];
    char* out[kOutputs];
    A inputs[kRows][kRowInputs];
    A pivots[kRows];
    std::int64_t integers[kRows][kIntegers];
    A lookups[kRows][kLookups];
  };

  /// A vector's place among those that the thread has of a row, where it is kept, and how far it
  /// lies from the first.
  struct Place {
    int chunk = 0;
    unsigned kept_at = 0;
    std::int64_t along = 0;
    std::int64_t apart[kApart] = {};
  };

  __device__ __forceinline__ bool HasColumns() const {
    return Functor::kColumnSums > 0 && launch_.columns != nullptr;
  }
  /// Whether elements of a row have no one stride: none are kept then.
  __device__ __forceinline__ bool IsGeneral() const {
    return kVector == 1 && !kIsOfManyDims && task_.length_rank > 1;
  }

  /// What is known of the r-th row at an element; `index` is the element's place in the row.
  __device__ __forceinline__ RowValues<A>
  RowOf(const Rows& rows, const Results& results, int r, std::int64_t index = 0) const {
    RowValues<A> row;
    row.inputs = rows.inputs[r];
    row.integers = rows.integers[r];
    row.lookups = rows.lookups[r];
    row.index = index;
    row.results = results[r];
    row.pivot = rows.pivots[r];
    row.length = static_cast<A>(task_.length);
    row.exact_length = task_.length;
    row.scalars = scalars_;
    row.exact_scalars = task_.scalars;
    return row;
  }
  /// The same for an element of a vector: its own row, or its place in the vector's.
  __device__ __forceinline__ RowValues<A>
  RowAt(const Rows& rows, const Results& results, const Place& place, int v) const {
    const std::int64_t index = IndexOf(rows, place);
    return kIsAcross ? RowOf(rows, results, v, index) : RowOf(rows, results, 0, index + v);
  }

  /// The place in the row of a vector's first element; less than 0 where it lies before the row.
  __device__ __forceinline__ std::int64_t IndexOf(const Rows& rows, const Place& place) const {
    return first_ + place.along - (kIsRagged ? rows.shift : 0);
  }
  /// How many of a vector's elements lie before the row's end.
  __device__ __forceinline__ int ElementsOf(const Rows& rows, const Place& place) const {
    const std::int64_t left = task_.length - IndexOf(rows, place);
    return kIsRagged ? static_cast<int>(min(left, std::int64_t{kVector})) : kVector;
  }
  /// How many vectors a thread has until so many elements behind the first vector's.
  __device__ __forceinline__ int ChunksUntil(std::int64_t end) const {
    const std::int64_t ends_above = end - first_ + stride_ - 1;
    return static_cast<int>(max(ends_above, std::int64_t{0}) / kStep >> launch_.member_bits);
  }

  /// The number of an operand of elements or columns among those that are apart.
  static __device__ constexpr int ApartOf(int tensor) {
    return tensor < kElementInputs ? tensor : kElementInputs + tensor - Places::kOutput;
  }
  static __device__ constexpr int TensorOf(int apart) {
    return apart < kElementInputs ? apart : Places::kOutput + apart - kElementInputs;
  }
  static __device__ constexpr std::int64_t SizeOf(int tensor) { return Operands::SizeOf(tensor); }

  /// Whether an element input is absent: nothing of it is loaded or kept.
  __device__ __forceinline__ bool IsAbsent(int input) const {
    return MayBeAbsent<Functor>(input) && task_.tensors[input] == nullptr;
  }
  /// The place of an element input among those of which vectors are kept.
  __device__ __forceinline__ int SlotOf(int input) const {
    int slot = input;
#pragma unroll
    for (int t = 0; t < input; ++t) {
      slot -= IsAbsent(t) ? 1 : 0;
    }
    return slot;
  }

  /// How far this thread's vector lies from its first, in bytes.
  __device__ __forceinline__ std::int64_t DistanceOf(int tensor, const Place& place) const {
    if (kIsDense) {
      return place.along * SizeOf(tensor);
    }
    return place.apart[ApartOf(tensor)];
  }
  __device__ __forceinline__ void Advance(Place* place) const {
    ++place->chunk;
    place->kept_at += SlotOf(Functor::kInputs) * BytesOfBlock();
    place->along += stride_;
    if (kIsOfManyDims) {
      Locate(place);
    } else if (!kIsDense) {
#pragma unroll
      for (int i = 0; i < kApart; ++i) {
        place->apart[i] += steps_[i];
      }
    }
  }
  /// How far apart a thread's words are in shared memory.
  static __device__ __forceinline__ unsigned BytesOfBlock() {
    return blockDim.x * static_cast<unsigned>(sizeof(Word));
  }
  __device__ __forceinline__ Place FirstPlace() const {
    Place place;
    place.kept_at = launch_.held > 0 ? Kept(SharedAddress(shared_)) : 0;
    if (kIsOfManyDims) {
      Locate(&place);
    }
    return place;
  }
  /// Finds how far a vector of a row of many dims lies from the row, in each operand.
  __device__ __forceinline__ void Locate(Place* place) const {
#pragma unroll
    for (int i = 0; i < kApart; ++i) {
      place->apart[i] = 0;
    }
    ForEachDim(task_, launch_, first_ + place->along, [&](int dim, std::int64_t at) {
#pragma unroll
      for (int i = 0; i < kApart; ++i) {
        const int t = TensorOf(i);
        place->apart[i] += at * task_.length_strides[t][dim] * SizeOf(t);
      }
    });
  }
  /// The place of a vector that is not kept.
  __device__ __forceinline__ Place PlaceOf(int chunk) const {
    Place place;
    place.chunk = chunk;
    place.along = chunk * std::int64_t{stride_};
    if (kIsOfManyDims) {
      Locate(&place);
    } else if (!kIsDense) {
#pragma unroll
      for (int i = 0; i < kApart; ++i) {
        const int t = TensorOf(i);
        place.apart[i] = IsGeneral() ? LengthOffset(task_, t, first_ + place.along) * SizeOf(t)
                                     : chunk * steps_[i];
      }
    }
    return place;
  }

  /// The address of this thread's first vector of a first row.
  __device__ __forceinline__ std::int64_t BeginOf(int tensor) const {
    return reinterpret_cast<std::intptr_t>(task_.tensors[tensor]) + Begin(tensor);
  }
  /// How far this thread's first vector of a row lies from the row, in bytes.
  __device__ __forceinline__ std::int64_t Begin(int tensor) const {
    if (kIsDense) {
      return first_ * SizeOf(tensor);
    }
    return kIsOfManyDims || IsGeneral() ? 0
                                        : first_ * task_.length_strides[tensor][0] * SizeOf(tensor);
  }

  /// Finds the rows of a group, and loads what there is once of each.
  __device__ __forceinline__ void Find(std::int64_t group, Rows* rows) const {
    rows->row = (group * launch_.teams + team_.index) * kRows;
    const bool exists = group < launch_.groups && rows->row < task_.rows;
    std::int64_t starts[Places::kEnd];
    RowOffsets<Places::kEnd>(task_, exists ? rows->row : 0, starts);
    rows->shift = kIsRagged ? static_cast<int>(starts[0] & (kVector - 1)) : 0;
    const int chunks = kIsRagged ? ChunksUntil(task_.length + rows->shift) : chunks_;
    rows->chunks = exists && kReadsElements ? chunks : 0;
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      rows->in[t] = reinterpret_cast<const char*>(ins_[t] + (starts[t] - rows->shift) * SizeOf(t));
    }
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      const int t = Places::kOutput + o;
      rows->out[o] = reinterpret_cast<char*>(outs_[o] + (starts[t] - rows->shift) * SizeOf(t));
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < Functor::kRowInputs; ++i) {
        const int t = Places::kRowInput + i;
        rows->inputs[r][i] = 0;
        if (exists && task_.tensors[t] != nullptr) {
          rows->inputs[r][i] = LoadOnce(t, r, starts[t]);
        }
      }
      LoadIntegers(exists, r, starts, rows);
      rows->pivots[r] = 0;
      if constexpr (Functor::kPivot >= 0) {
        if (exists && task_.length > 0) {
          const A pivot = LoadOnce(Functor::kPivot, r, starts[Functor::kPivot]);
          rows->pivots[r] = isfinite(pivot) ? pivot : A(0);
        }
      }
    }
  }
  __device__ __forceinline__ void
  LoadIntegers(bool exists, int r, const std::int64_t (&starts)[Places::kEnd], Rows* rows) const {
#pragma unroll
    for (int i = 0; i < Functor::kIntegerInputs; ++i) {
      const int t = Places::kIntegerInput + i;
      rows->integers[r][i] = 0;
      if (exists && task_.tensors[t] != nullptr) {
        const std::int64_t offset = OffsetOnce(t, r, starts[t]);
        rows->integers[r][i] = LoadInteger(task_.tensors[t], task_.types[t], offset);
      }
    }
#pragma unroll
    for (int i = 0; i < Functor::kLookups; ++i) {
      rows->lookups[r][i] = LookUp<Functor, A>(task_, i, rows->integers[r]);
    }
  }
  /// How far the r-th of a thread's rows lies from an operand's first, if its first one lies so
  /// far: a thread's rows are neighbours along one dim.
  __device__ __forceinline__ std::int64_t OffsetOnce(int tensor, int r, std::int64_t first) const {
    return r == 0 ? first : first + r * task_.row_strides[tensor][task_.row_rank - 1];
  }
  __device__ __forceinline__ A LoadOnce(int tensor, int r, std::int64_t first) const {
    const std::int64_t offset = OffsetOnce(tensor, r, first);
    return LoadElement<A>(task_.tensors[tensor], task_.types[tensor], offset);
  }

  __device__ __forceinline__ void Load(const Rows& rows, const Place& place, Words& words) const {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      const char* const from = rows.in[t] + DistanceOf(t, place);
      if (IsAbsent(t)) {
        words[t] = {};
      } else if (kIsRagged) {
        Operands::LoadPart(t, from, ElementsOf(rows, place), &words[t]);
      } else {
        Operands::Load(t, from, &words[t]);
      }
    }
  }
  __device__ __forceinline__ void LoadColumn(int tensor, const Place& place, A (&values)[kVector])
      const {
    Word word = {};
    if (task_.tensors[tensor] != nullptr) {
      Operands::Load(
          tensor,
          static_cast<const char*>(task_.tensors[tensor]) +
              (Begin(tensor) + DistanceOf(tensor, place)),
          &word);
    }
    Operands::Unpack(Operands::IsSecond(tensor), word, values);
  }

  __device__ __forceinline__ Word* Shared(int chunk, int input) const {
    return shared_ +
           (chunk * SlotOf(Functor::kInputs) + SlotOf(input)) * static_cast<int>(blockDim.x);
  }
  __device__ __forceinline__ void BeginCopies(const Rows& rows, const Place& place) const {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      if (!IsAbsent(t)) {
        Operands::BeginCopy(
            t, place.kept_at + SlotOf(t) * BytesOfBlock(), rows.in[t] + DistanceOf(t, place),
            ElementsOf(rows, place));
      }
    }
  }

  /// Fetches what is kept of rows.
  __device__ __forceinline__ void Fetch(const Rows& rows) const {
    const int kept = min(rows.chunks, launch_.held);
    Place place = FirstPlace();
    if constexpr (kIsAsync) {
#pragma unroll 1
      while (place.chunk < kept) {
        BeginCopies(rows, place);
        Advance(&place);
      }
      EndOfCopies();
      return;
    }
    constexpr int kBatch = 8;
#pragma unroll 1
    while (place.chunk < kept) {
      const int first = place.chunk;
      Words words[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i < kept) {
          Load(rows, place, words[i]);
        }
        Advance(&place);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        if (first + i < kept) {
#pragma unroll
          for (int t = 0; t < Functor::kInputs; ++t) {
            if (!IsAbsent(t)) {
              *Shared(first + i, t) = words[i][t];
            }
          }
        }
      }
    }
  }

  /// Calls visit(place, words) for the vectors of this thread, and done(place) after those that are
  /// kept.
  template <int kUnroll, typename Visit, typename Done>
  __device__ __forceinline__ void ForEach(const Rows& rows, const Visit& visit, const Done& done)
      const {
    const int kept = min(rows.chunks, launch_.held);
    const int next = SlotOf(Functor::kInputs) * static_cast<int>(blockDim.x);
    const Word* from = shared_;
    Place place = FirstPlace();
#pragma unroll kUnroll
    for (int chunk = 0; chunk < kept; ++chunk) {
      Words words;
#pragma unroll
      for (int t = 0; t < Functor::kInputs; ++t) {
        words[t] = {};
        if (!IsAbsent(t)) {
          words[t] = from[SlotOf(t) * static_cast<int>(blockDim.x)];
        }
      }
      visit(place, words);
      done(place);
      from += next;
      Advance(&place);
    }
#pragma unroll 1
    for (int chunk = kept; chunk < rows.chunks; ++chunk) {
      const Place behind = PlaceOf(chunk);
      Words words;
      Load(rows, behind, words);
      visit(behind, words);
    }
  }

  /// The elements of a vector, those of one place together.
  struct Elements {
    A in[kVector][Functor::kInputs];
    A columns[kVector][kColumns];
  };

  __device__ __forceinline__ void Take(const Words& words, const Place& place, Elements* elements)
      const {
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      A values[kVector];
      Operands::Unpack(Operands::IsSecond(t), words[t], values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->in[v][t] = values[v];
      }
    }
#pragma unroll
    for (int i = 0; i < Functor::kColumnInputs; ++i) {
      A values[kVector];
      LoadColumn(Places::kColumnInput + i, place, values);
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        elements->columns[v][i] = values[v];
      }
    }
  }

  /// Finds rows' results. Of a launch for one phase it leaves what it found of the part, and
  /// returns false: there is nothing more to do.
  __device__ __forceinline__ bool Reduce(const Rows& rows, Results& results) {
    WaitForCopies<0>();
    if (launch_.parts == 1 && !WantsResults()) {
      return true;
    }
#pragma unroll
    for (int phase = 0; phase < Functor::kPhases; ++phase) {
      Results found;
      Team::template Clear<Functor>(&found);
      if (launch_.parts > 1 && phase < launch_.phase) {
        ReadPartials(phase, rows.row, found);
      } else {
        ReduceOwn(phase, rows, results, found);
      }
      Team::template Combine<Functor>(phase, launch_, team_, &turn_, &found);
      if (launch_.parts > 1 && phase == launch_.phase) {
        if (team_.member == 0 && rows.row < task_.rows) {
          WritePartials(phase, rows.row, found);
        }
        return false;
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        CopyPhase<Functor>(phase, found[r], results[r]);
        Functor::Finish(phase, RowOf(rows, results, r), results[r]);
      }
    }
    return true;
  }

  __device__ __forceinline__ bool IsWanted(int begin, int end) const {
    bool is_wanted = false;
#pragma unroll
    for (int t = begin; t < end; ++t) {
      is_wanted = is_wanted || task_.tensors[t] != nullptr;
    }
    return is_wanted;
  }
  __device__ __forceinline__ bool WantsResults() const {
    return WantsSumsOfResults<Functor>(task_.tensors) ||
           IsWanted(Places::kOutput, Places::kColumnSum) ||
           IsWanted(Places::kRowOutput, Places::kEnd);
  }

  __device__ __forceinline__ void
  ReduceOwn(int phase, const Rows& rows, const Results& results, Results& found) const {
    ForEach<kUnroll>(
        rows,
        [&](const Place& place, const Words& words) {
          Elements elements;
          Take(words, place, &elements);
#pragma unroll
          for (int v = 0; v < kVector; ++v) {
            const int r = kIsAcross ? v : 0;
            const std::int64_t index = IndexOf(rows, place) + v;
            if (kIsRagged && (index < 0 || index >= task_.length)) {
              continue;
            }
            A terms[kResults];
            Functor::Terms(
                phase, RowAt(rows, results, place, v), elements.in[v], elements.columns[v], terms);
            AddPhase<Functor>(phase, terms, found[r]);
          }
        },
        [](const Place& /*place*/) {});
  }

  __device__ __forceinline__ void WritePartials(int phase, std::int64_t row, const Results& found)
      const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      CopyPhase<Functor>(phase, found[r], PartialsOf<A, kResults>(launch_, row + r, blockIdx.y));
    }
  }
  __device__ __forceinline__ void ReadPartials(int phase, std::int64_t row, Results& found) const {
    if (row < task_.rows) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        AddPartials<Functor>(phase, launch_, row + r, team_.member, found[r]);
      }
    }
  }

  /// Makes the rows' outputs and adds them to the sums of columns, while those to come are fetched.
  __device__ __forceinline__ void
  FinishRows(const Rows& rows, const Results& results, const Rows& next) {
    const bool makes_elements = IsWanted(Places::kOutput, Places::kColumnSum);
    // Those of ragged rows are not always as many as this row's.
    constexpr bool kFetchesBeside = kIsAsync && !kIsRagged;
    const bool fetches = next.chunks > 0;
    ForEach<kUnroll>(
        rows,
        [&](const Place& place, const Words& words) {
          Elements elements;
          Take(words, place, &elements);
          Outputs out;
          if (makes_elements || (kSumsOutputs && HasColumns())) {
            Map(rows, results, elements, place, out);
          }
          if (makes_elements) {
            StoreOutputs(rows, place, out);
          }
          if (HasColumns()) {
            AddToColumns(rows, results, elements, place, out);
          }
        },
        [&](const Place& place) {
          if constexpr (kFetchesBeside) {
            if (fetches) {
              BeginCopies(next, place);
            }
          }
        });
    if (kFetchesBeside) {
      EndOfCopies();
    } else {
      Fetch(next);
    }
    if (Functor::kRowOutputs > 0 && team_.member == 0 && blockIdx.y == 0 && rows.row < task_.rows) {
      WriteRowOutputs(rows, results);
    }
  }
  __device__ __forceinline__ void Map(
      const Rows& rows,
      const Results& results,
      const Elements& elements,
      const Place& place,
      Outputs& out) const {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      A of_place[kOutputs];
      Functor::Map(RowAt(rows, results, place, v), elements.in[v], elements.columns[v], of_place);
#pragma unroll
      for (int o = 0; o < Functor::kOutputs; ++o) {
        out[o][v] = of_place[o];
      }
    }
  }
  __device__ __forceinline__ void
  StoreOutputs(const Rows& rows, const Place& place, const Outputs& out) const {
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      const int t = Places::kOutput + o;
      if (task_.tensors[t] == nullptr) {
        continue;
      }
      char* const to = rows.out[o] + DistanceOf(t, place);
      const bool adds = (task_.accumulate >> t & 1U) != 0;
      const int begin = static_cast<int>(max(-IndexOf(rows, place), std::int64_t{0}));
      const int end = ElementsOf(rows, place);
      if (kIsRagged && (begin > 0 || end < kVector)) {
        Operands::StorePart(t, to, out[o], adds, begin, end);
      } else {
        Operands::Store(t, to, out[o], adds);
      }
    }
  }
  __device__ __forceinline__ void AddToColumns(
      const Rows& rows,
      const Results& results,
      const Elements& elements,
      const Place& place,
      const Outputs& out) const {
    A all[kSums][kVector];
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      A terms[kSums];
      Functor::ColumnTerms(
          RowAt(rows, results, place, v), elements.in[v], elements.columns[v], terms);
#pragma unroll
      for (int s = 0; s < Functor::kColumnSums; ++s) {
        const int output = Functor::OutputOf(s);
        all[s][v] = output < 0 ? terms[s] : out[output < 0 ? 0 : output][v];
      }
    }
    sums_.Add(place.chunk, first_ + place.along, all);
  }
  __device__ __forceinline__ void WriteRowOutputs(const Rows& rows, const Results& results) const {
    std::int64_t starts[kRowOutputs];
#pragma unroll
    for (int o = 0; o < Functor::kRowOutputs; ++o) {
      starts[o] = RowOffset(task_, Places::kRowOutput + o, rows.row);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      A outputs[kRowOutputs];
      Functor::RowOutputs(RowOf(rows, results, r), outputs);
#pragma unroll
      for (int o = 0; o < Functor::kRowOutputs; ++o) {
        const int t = Places::kRowOutput + o;
        if (task_.tensors[t] != nullptr) {
          StoreOfAnyType(task_, t, OffsetOnce(t, r, starts[o]), outputs[o]);
        }
      }
    }
  }

  const RowsTask& task_;
  const RowsLaunch& launch_;
  RowsPlaceInBlock team_;
  /// This thread's own places, in which it keeps vectors.
  Word* shared_;
  RowsSums<A, kVector, kSums, Places::kColumnSum> sums_;
  A scalars_[internal::kMaxRowsScalars];
  std::int64_t first_;
  std::int64_t end_;
  /// The addresses of this thread's first vectors of a first row, and how far those of a row lie
  /// apart, in bytes.
  std::int64_t ins_[Functor::kInputs];
  std::int64_t outs_[kOutputs];
  std::int64_t steps_[kApart];
  int chunks_;
  int stride_;
  int turn_ = 0;
};

/// Rows of many dims are never ragged.
template <typename Functor, typename T, typename U>
__device__ __forceinline__ void
RunRaggedRows(const RowsTask& task, const RowsLaunch& launch, void* shared) {
  if constexpr (!Functor::kRowsOfManyDims) {
    RowsKernel<Functor, T, U, kVectorOfBoth<T, U>, false, true>(task, launch, shared).Run();
  }
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_KERNEL_CUH_
