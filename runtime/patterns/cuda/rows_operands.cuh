#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_OPERANDS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_OPERANDS_CUH_

#include <cstdint>

#include "cuda/kernels/ptx.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_memory.cuh"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

namespace gradsmith::cuda {

/// Elements of a vector where operands have two types.
template <typename T, typename U>
inline constexpr int kVectorOfBoth = sizeof(T) > sizeof(U) ? kVectorLength<T> : kVectorLength<U>;

/// RowsOperands says which of a functor's operands have the second element type, and moves vectors
/// of them.
template <typename Functor, typename T, typename U, int kVector>
struct RowsOperands {
  using A = Accumulator<T>;
  using Places = RowsPlaces<Functor>;
  static constexpr int kWider = static_cast<int>(sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U));
  static constexpr int kNarrower = static_cast<int>(sizeof(T) < sizeof(U) ? sizeof(T) : sizeof(U));
  using Word = typename WordOf<kVector * kWider>::Type;

  static __device__ constexpr bool IsSecond(int tensor) {
    return (Functor::kSecondTypes >> tensor & 1U) != 0;
  }
  static __device__ constexpr std::int64_t SizeOf(int tensor) {
    return static_cast<std::int64_t>(IsSecond(tensor) ? sizeof(U) : sizeof(T));
  }

  static __device__ __forceinline__ void Load(int tensor, const char* from, Word* word) {
    if (IsSecond(tensor)) {
      LoadWord<U, kVector>(from, word);
    } else {
      LoadWord<T, kVector>(from, word);
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
  static __device__ __forceinline__ void
  Store(int tensor, char* to, const A (&values)[kVector], bool adds) {
    if (IsSecond(tensor)) {
      StoreRowVector<U, kVector>(to, values, adds);
    } else {
      StoreRowVector<T, kVector>(to, values, adds);
    }
  }
  /// Copies the first elements of a vector to shared memory while the thread goes on; the rest
  /// becomes 0.
  static __device__ __forceinline__ void
  BeginCopy(int tensor, unsigned to, const char* from, int elements = kVector) {
    constexpr int kBytes = kVector * static_cast<int>(sizeof(T));
    constexpr int kBytesOfSecond = kVector * static_cast<int>(sizeof(U));
    const int bytes = elements * static_cast<int>(SizeOf(tensor));
    if (IsSecond(tensor)) {
      BeginCopyOfPart<kBytesOfSecond>(to, from, bytes);
    } else {
      BeginCopyOfPart<kBytes>(to, from, bytes);
    }
  }
  /// Loads the first elements of a vector; the rest becomes 0.
  static __device__ __forceinline__ void
  LoadPart(int tensor, const char* from, int elements, Word* word) {
    if (elements == kVector) {
      Load(tensor, from, word);
    } else if (IsSecond(tensor)) {
      LoadElements<U>(from, elements, word);
    } else {
      LoadElements<T>(from, elements, word);
    }
  }
  /// Stores those elements of a vector that lie from `begin` to `end`.
  static __device__ __forceinline__ void
  StorePart(int tensor, char* to, const A (&values)[kVector], bool adds, int begin, int end) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const A value[1] = {values[v]};
      if (v >= begin && v < end && IsSecond(tensor)) {
        StoreRowVector<U, 1>(to + v * sizeof(U), value, adds);
      } else if (v >= begin && v < end) {
        StoreRowVector<T, 1>(to + v * sizeof(T), value, adds);
      }
    }
  }

 private:
  template <typename E>
  static __device__ __forceinline__ void LoadElements(const char* from, int elements, Word* word) {
    E values[kVector] = {};
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      if (v < elements) {
        values[v] = reinterpret_cast<const E*>(from)[v];
      }
    }
    memcpy(word, values, sizeof(values));
  }
};

/// SumsInMemory are a block's sums of columns where it leaves them.
template <typename A, int kSums, int kFirst>
struct SumsInMemory {
  const internal::RowsTask& task;
  const RowsLaunch& launch;

  __device__ __forceinline__ A* At(int s, std::int64_t column) const {
    return static_cast<A*>(launch.columns) + (std::int64_t{blockIdx.x} * kSums + s) * task.length +
           column;
  }
  /// Leaves a sum for the kernel that adds up all blocks', or where this block is the only one in
  /// the operand.
  __device__ __forceinline__ void Put(int s, std::int64_t column, A sum) const {
    if (!launch.is_only_block) {
      *At(s, column) = sum;
    } else if (task.tensors[kFirst + s] != nullptr) {
      StoreOfAnyType(task, kFirst + s, LengthOffset(task, kFirst + s, column), sum);
    }
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_OPERANDS_CUH_
