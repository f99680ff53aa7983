#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_MEMORY_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_MEMORY_CUH_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda/kernels/element.cuh"
#include "cuda/kernels/element_vector.cuh"
#include "patterns/cuda/rows_launch.h"
#include "patterns/rows_functor.h"
#include "patterns/rows_task.h"

/// How kernels of the pattern `rows` load and store.
namespace gradsmith::cuda {

using internal::RowsTask;

/// How far the index-th element of a space with these dims lies from the first. It is rarely
/// called, and in many places.
inline __device__ __noinline__ std::int64_t
RowsOffset(int rank, const std::int64_t* dims, const std::int64_t* strides, std::int64_t index) {
  if (rank == 0) {
    return 0;
  }
  std::int64_t offset = 0;
#pragma unroll 1
  for (int dim = rank - 1; dim > 0; --dim) {
    const Division division = Divide(index, dims[dim]);
    offset += division.remainder * strides[dim];
    index = division.quotient;
  }
  return offset + index * strides[0];
}

/// How far an element lies from the row's first.
__device__ __forceinline__ std::int64_t
LengthOffset(const RowsTask& task, int tensor, std::int64_t index) {
  return RowsOffset(task.length_rank, task.length_dims, task.length_strides[tensor], index);
}

/// Calls visit(dim, at) for the dims of a row with the place of its index-th element along each.
template <typename Visit>
__device__ __forceinline__ void
ForEachDim(const RowsTask& task, const RowsLaunch& launch, std::int64_t index, const Visit& visit) {
#pragma unroll 1
  for (int dim = task.length_rank - 1; dim >= 0; --dim) {
    std::int64_t at = index;
    if (dim > 0) {
      index = launch.is_short ? Divide(static_cast<unsigned>(at), launch.length_divisors[dim])
                              : Divide(at, task.length_dims[dim]).quotient;
      at -= index * task.length_dims[dim];
    }
    visit(dim, at);
  }
}

/// How far a row's elements lie from the operand's first.
__device__ __forceinline__ std::int64_t
RowOffset(const RowsTask& task, int tensor, std::int64_t row) {
  return RowsOffset(task.row_rank, task.row_dims, task.row_strides[tensor], row);
}

/// How far a row's elements lie from the first of each operand.
template <int kTensors>
__device__ __forceinline__ void
RowOffsets(const RowsTask& task, std::int64_t row, std::int64_t (&offsets)[kTensors]) {
  if (task.row_rank == 1) {
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      offsets[t] = row * task.row_strides[t][0];
    }
    return;
  }
#pragma unroll
  for (int t = 0; t < kTensors; ++t) {
    offsets[t] = 0;
  }
#pragma unroll 1
  for (int dim = task.row_rank - 1; dim >= 0; --dim) {
    std::int64_t place = row;
    if (dim > 0) {
      const Division division = Divide(row, task.row_dims[dim]);
      place = division.remainder;
      row = division.quotient;
    }
#pragma unroll
    for (int t = 0; t < kTensors; ++t) {
      offsets[t] += place * task.row_strides[t][dim];
    }
  }
}

/// Looks up the element of a table that a row's integer says. Where there is none it is 0, or NaN
/// where such integers are refused: a kernel cannot return an error.
template <typename Functor, typename A>
__device__ __forceinline__ A
LookUp(const RowsTask& task, int lookup, const std::int64_t* integers) {
  const RowsLookup place = Functor::LookupAt(lookup);
  const int t = RowsPlaces<Functor>::kTable + place.table;
  const std::int64_t at = integers[place.integer];
  if (task.tensors[t] == nullptr) {
    return 0;
  }
  if (at < 0 || at >= task.length) {
    return place.refuses_outside ? static_cast<A>(NAN) : A{0};
  }
  return LoadElement<A>(task.tensors[t], task.types[t], at * task.length_strides[t][0]);
}

/// Stores an element of a type that is known at run time only, or adds to it.
template <typename E, typename A>
__device__ __forceinline__ void StoreAs(void* data, std::int64_t offset, A value, bool adds) {
  E* const to = static_cast<E*>(data) + offset;
  *to = Convert<E>(adds ? value + Convert<A>(*to) : value);
}

template <typename Task, typename A>
__device__ __forceinline__ void
StoreOfAnyType(const Task& task, int tensor, std::int64_t offset, A value) {
  void* const data = task.tensors[tensor];
  const bool adds = (task.accumulate >> tensor & 1U) != 0;
  if (task.types[tensor] == kTypeOfTruthValues) {
    static_cast<bool*>(data)[offset] = value != A{0};
    return;
  }
  switch (task.types[tensor]) {
#define GRADSMITH_STORE(number, element) \
  case number:                           \
    return StoreAs<element>(data, offset, value, adds);
    GRADSMITH_FLOATING_TYPES_OF_KERNELS(GRADSMITH_STORE)
#undef GRADSMITH_STORE
  }
  __builtin_unreachable();  // the host has checked that the type is one of these
}

/// Loads kVector elements, as they are, into a word.
template <typename E, int kVector, typename Word>
__device__ __forceinline__ void LoadWord(const void* from, Word* word) {
  E values[kVector];
  LoadAtOnce<kVector>(static_cast<const E*>(from), values);
  memcpy(word, values, sizeof(values));
}

/// A word in parts of four bytes, or in one of fewer. Elements are made of these: if they are
/// copied from the word, the compiler may take it apart to bytes.
__device__ __forceinline__ void TakeApart(const uint4& word, unsigned (&parts)[4]) {
  parts[0] = word.x;
  parts[1] = word.y;
  parts[2] = word.z;
  parts[3] = word.w;
}
__device__ __forceinline__ void TakeApart(const uint2& word, unsigned (&parts)[2]) {
  parts[0] = word.x;
  parts[1] = word.y;
}
template <typename Word>
__device__ __forceinline__ void TakeApart(const Word& word, unsigned (&parts)[1]) {
  parts[0] = word;
}

template <typename E, int kVector, typename Word, typename A>
__device__ __forceinline__ void Unpack(const Word& word, A (&to)[kVector]) {
  constexpr int kParts = sizeof(Word) > 4 ? static_cast<int>(sizeof(Word) / 4) : 1;
  // A part has two elements where these are short, and a double has two parts.
  constexpr int kElements = sizeof(E) < 4 ? static_cast<int>(4 / sizeof(E)) : 1;
  constexpr int kOfElement = sizeof(E) > 4 ? 2 : 1;
  unsigned parts[kParts];
  TakeApart(word, parts);
#pragma unroll
  for (int v = 0; v < kVector; v += kElements) {
    E elements[kElements];
    memcpy(elements, parts + v / kElements * kOfElement, sizeof(elements));
#pragma unroll
    for (int i = 0; i < kElements && v + i < kVector; ++i) {
      to[v + i] = Convert<A>(elements[i]);
    }
  }
}

/// Stores kVector elements, or adds to them.
template <typename E, int kVector, typename A>
__device__ __forceinline__ void StoreRowVector(void* data, const A (&values)[kVector], bool adds) {
  E* const to = static_cast<E*>(data);
  E stored[kVector];
  if (adds) {
    LoadAtOnce<kVector>(to, stored);
  }
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    stored[v] = Convert<E>(adds ? values[v] + Convert<A>(stored[v]) : values[v]);
  }
  StoreAtOnce<kVector>(stored, to);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_MEMORY_CUH_
