#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_FLAT_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_FLAT_CUH_

#include <cstdint>
#include <type_traits>

#include "patterns/cuda/rows_memory.cuh"
#include "patterns/cuda/rows_operands.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// Kernels of flat rows (RowsFunctor::kIsFlat).
///
/// As in kernels of the pattern `map`, a thread has one vector of each operand, or one element, and
/// nothing is kept: memory is busiest so. Each thread reads what there is once of the row, and the
/// first of all writes it, also where the row has no elements.
namespace gradsmith::cuda {

using internal::DenseRowTask;

/// The elements of an operand lie where the task says: a DenseRowTask's are dense, and a RowsTask's
/// of kVector neighbours along the last dim are a vector, or one element for all of them.
template <typename Functor, typename T, typename U, int kVector, typename Task>
class FlatRowKernel {
 public:
  using A = Accumulator<T>;
  using Places = RowsPlaces<Functor>;

  __device__ __forceinline__ explicit FlatRowKernel(const Task& task) : task_(task) {
#pragma unroll
    for (int i = 0; i < internal::kMaxRowsScalars; ++i) {
      scalars_[i] = static_cast<A>(task.scalars[i]);
    }
  }

  __device__ __forceinline__ void Run() {
    LoadOnce();
    const std::int64_t thread = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (IsWanted(Places::kOutput, Places::kColumnSum)) {
      const std::int64_t vectors = task_.length / kVector;
      if (thread < vectors) {
        MapAt<kVector>(thread * kVector);
      }
      MapBehind(vectors * kVector);
    }
    if (Functor::kRowOutputs > 0 && thread == 0) {
      WriteOnce();
    }
  }

 private:
  static constexpr bool kIsDense = std::is_same_v<Task, DenseRowTask>;
  static constexpr int kOutputs = AtLeastOne(Functor::kOutputs);
  static constexpr int kRowOutputs = AtLeastOne(Functor::kRowOutputs);
  static_assert(Functor::kIsFlat && Functor::kPhases == 0 && Functor::kTables == 0);
  static_assert(Functor::kColumnInputs + Functor::kColumnSums == 0);

  /// How far an element lies from the first, in operands of elements.
  struct Offsets {
    std::int64_t of_inputs[Functor::kInputs];
    std::int64_t of_outputs[kOutputs];
  };

  __device__ __forceinline__ bool IsWanted(int begin, int end) const {
    bool is_wanted = false;
#pragma unroll
    for (int t = begin; t < end; ++t) {
      is_wanted = is_wanted || task_.tensors[t] != nullptr;
    }
    return is_wanted;
  }

  __device__ __forceinline__ void LoadOnce() {
#pragma unroll
    for (int i = 0; i < Functor::kRowInputs; ++i) {
      const int t = Places::kRowInput + i;
      inputs_[i] = 0;
      if (task_.tensors[t] != nullptr) {
        inputs_[i] = LoadElement<A>(task_.tensors[t], task_.types[t], 0);
      }
    }
#pragma unroll
    for (int i = 0; i < Functor::kIntegerInputs; ++i) {
      const int t = Places::kIntegerInput + i;
      integers_[i] = 0;
      if (task_.tensors[t] != nullptr) {
        integers_[i] = LoadInteger(task_.tensors[t], task_.types[t], 0);
      }
    }
  }

  __device__ __forceinline__ void WriteOnce() const {
    A outputs[kRowOutputs];
    Functor::RowOutputs(RowAt(0), outputs);
#pragma unroll
    for (int o = 0; o < Functor::kRowOutputs; ++o) {
      if (const int t = Places::kRowOutput + o; task_.tensors[t] != nullptr) {
        StoreOfAnyType(task_, t, 0, outputs[o]);
      }
    }
  }

  /// What is known of the row at an element.
  __device__ __forceinline__ RowValues<A> RowAt(std::int64_t index) const {
    RowValues<A> row;
    row.inputs = inputs_;
    row.integers = integers_;
    row.index = index;
    row.length = static_cast<A>(task_.length);
    row.exact_length = task_.length;
    row.scalars = scalars_;
    row.exact_scalars = task_.scalars;
    return row;
  }

  __device__ __forceinline__ Offsets OffsetsOf(std::int64_t element) const {
    Offsets offsets;
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      offsets.of_inputs[t] = kIsDense ? element : 0;
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) {
      offsets.of_outputs[o] = kIsDense ? element : 0;
    }
    if constexpr (!kIsDense) {
      // Unrolled, the divisions would be most of the kernel.
#pragma unroll 1
      for (int dim = task_.length_rank - 1; dim >= 0; --dim) {
        std::int64_t at = element;
        if (dim > 0) {
          const Division division = Divide(element, task_.length_dims[dim]);
          at = division.remainder;
          element = division.quotient;
        }
#pragma unroll
        for (int t = 0; t < Functor::kInputs; ++t) {
          offsets.of_inputs[t] += at * task_.length_strides[t][dim];
        }
#pragma unroll
        for (int o = 0; o < Functor::kOutputs; ++o) {
          offsets.of_outputs[o] += at * task_.length_strides[Places::kOutput + o][dim];
        }
      }
    }
    return offsets;
  }

  /// Whether an input's elements are the same along the last dim.
  __device__ __forceinline__ bool IsSpread(int input) const {
    if constexpr (kIsDense || kVector == 1) {
      return false;
    } else {
      return task_.length_strides[input][task_.length_rank - 1] == 0;
    }
  }

  /// Loads neighbours; an input that is absent is 0.
  template <int kElements>
  __device__ __forceinline__ void Load(int t, std::int64_t offset, A (&values)[kElements]) const {
    using Operands = RowsOperands<Functor, T, U, kElements>;
    if (MayBeAbsent<Functor>(t) && task_.tensors[t] == nullptr) {
      Fill(A(0), values);
      return;
    }
    const char* const from =
        static_cast<const char*>(task_.tensors[t]) + offset * Operands::SizeOf(t);
    if (!IsSpread(t)) {
      typename Operands::Word word;
      Operands::Load(t, from, &word);
      Operands::Unpack(Operands::IsSecond(t), word, values);
      return;
    }
    using Single = RowsOperands<Functor, T, U, 1>;
    typename Single::Word word;
    Single::Load(t, from, &word);
    A value[1];
    Single::Unpack(Single::IsSecond(t), word, value);
    Fill(value[0], values);
  }
  template <int kElements>
  static __device__ __forceinline__ void Fill(A value, A (&values)[kElements]) {
#pragma unroll
    for (int v = 0; v < kElements; ++v) {
      values[v] = value;
    }
  }

  /// Writes the elements from one on; those that an output takes the place of are read before.
  template <int kElements>
  __device__ __forceinline__ void MapAt(std::int64_t element) const {
    using Operands = RowsOperands<Functor, T, U, kElements>;
    const Offsets offsets = OffsetsOf(element);
    A in[kElements][Functor::kInputs];
#pragma unroll
    for (int t = 0; t < Functor::kInputs; ++t) {
      A values[kElements];
      Load<kElements>(t, offsets.of_inputs[t], values);
#pragma unroll
      for (int v = 0; v < kElements; ++v) {
        in[v][t] = values[v];
      }
    }
    A out[kOutputs][kElements];
#pragma unroll
    for (int v = 0; v < kElements; ++v) {
      A of_place[kOutputs];
      Functor::Map(RowAt(element + v), in[v], static_cast<const A*>(nullptr), of_place);
#pragma unroll
      for (int o = 0; o < Functor::kOutputs; ++o) {
        out[o][v] = of_place[o];
      }
    }
#pragma unroll
    for (int o = 0; o < Functor::kOutputs; ++o) {
      if (const int t = Places::kOutput + o; task_.tensors[t] != nullptr) {
        char* const to =
            static_cast<char*>(task_.tensors[t]) + offsets.of_outputs[o] * Operands::SizeOf(t);
        Operands::Store(t, to, out[o], (task_.accumulate >> t & 1U) != 0);
      }
    }
  }

  /// Writes the elements behind the last whole vector, one to a thread.
  __device__ __forceinline__ void MapBehind(std::int64_t end_of_vectors) const {
    static_assert(kVector <= 32);  // the threads of a block, at least
    if constexpr (kIsDense) {
      const std::int64_t element = end_of_vectors + threadIdx.x;
      if (blockIdx.x == gridDim.x - 1 && element < task_.length) {
        MapAt<1>(element);
      }
    }
  }

  const Task& task_;
  A scalars_[internal::kMaxRowsScalars];
  A inputs_[AtLeastOne(Functor::kRowInputs)];
  std::int64_t integers_[AtLeastOne(Functor::kIntegerInputs)];
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_FLAT_CUH_
