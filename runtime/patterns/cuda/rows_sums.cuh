#ifndef GRADSMITH_PATTERNS_CUDA_ROWS_SUMS_CUH_
#define GRADSMITH_PATTERNS_CUDA_ROWS_SUMS_CUH_

#include <cstdint>

#include "patterns/cuda/rows_launch.h"
#include "patterns/cuda/rows_operands.cuh"
#include "patterns/cuda/rows_team.cuh"

namespace gradsmith::cuda {

/// RowsSums are a block's sums over rows, kSums for each column. A thread sums the columns that it
/// has of every row: in shared memory, or of those for which there is no place there in the block's
/// own place in memory, to which no other thread of the block writes: it has one team then.
template <typename A, int kVector, int kSums, int kFirst>
class RowsSums {
 public:
  __device__ __forceinline__ RowsSums(
      const RowsTask& task,
      const RowsLaunch& launch,
      const RowsPlaceInBlock& team,
      void* shared)
      : launch_(launch),
        in_memory_{task, launch},
        team_(team),
        shared_(static_cast<Word*>(shared) + threadIdx.x) {}

  /// Adds the terms of a chunk of a row, whose first element is the column.
  __device__ __forceinline__ void
  Add(int chunk, std::int64_t column, const A (&terms)[kSums][kVector]) const {
    if (chunk < launch_.held_sums) {
      AddShared(chunk, terms);
      return;
    }
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        *in_memory_.At(s, column + v) += terms[s][v];
      }
    }
  }

  /// `first`, `stride` and `end` say which columns this thread has.
  __device__ __forceinline__ void Clear(std::int64_t first, std::int64_t stride, std::int64_t end)
      const {
    ForEach(first, stride, end, [](A* sum, int /*s*/, std::int64_t /*column*/) { *sum = 0; });
  }

  /// Writes the block's sums. Those of several teams, which are all in shared memory, are added up
  /// in the teams' order; the teams share that work.
  __device__ __forceinline__ void Write(std::int64_t first, std::int64_t stride, std::int64_t end)
      const {
    if (launch_.teams == 1) {
      ForEach(first, stride, end, [&](A* sum, int s, std::int64_t column) {
        in_memory_.Put(s, column, *sum);
      });
      return;
    }
    __syncthreads();
    constexpr int kPlaces = kSums * kVector;
    const int places = launch_.held_sums * kPlaces;
    for (int place = team_.index; place < places; place += launch_.teams) {
      const int chunk = place / kPlaces;
      const int s = place % kPlaces / kVector;
      const int v = place % kVector;
      const std::int64_t index = first + chunk * stride;
      if (index >= end) {
        continue;
      }
      const Word* own = WordAt(chunk, s, v) - threadIdx.x + team_.member;
      A sum = 0;
      for (int team = 0; team < launch_.teams; ++team) {
        sum += own[team * launch_.members].values[v % kAtOnce];
      }
      in_memory_.Put(s, index + v, sum);
    }
  }

 private:
  static constexpr int kMost = static_cast<int>(16 / sizeof(A));
  static constexpr int kAtOnce = kVector < kMost ? kVector : kMost;
  static constexpr int kWords = kVector / kAtOnce;
  struct alignas(kAtOnce * sizeof(A)) Word {
    A values[kAtOnce];
  };

  /// The word in which this thread sums the v-th column of a chunk.
  __device__ __forceinline__ Word* WordAt(int chunk, int s, int v) const {
    const int place = (chunk * kSums + s) * kWords + v / kAtOnce;
    return shared_ + place * static_cast<int>(blockDim.x);
  }

  __device__ __forceinline__ void AddShared(int chunk, const A (&terms)[kSums][kVector]) const {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        Word* const to = WordAt(chunk, s, w * kAtOnce);
        Word word = *to;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          word.values[i] += terms[s][w * kAtOnce + i];
        }
        *to = word;
      }
    }
  }

  /// Calls visit(sum, s, column) for the columns that this thread sums.
  template <typename Visit>
  __device__ __forceinline__ void
  ForEach(std::int64_t first, std::int64_t stride, std::int64_t end, const Visit& visit) const {
    std::int64_t chunk = 0;
#pragma unroll 1
    for (std::int64_t index = first; index < end; index += stride) {
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          if (chunk < launch_.held_sums) {
            visit(&WordAt(static_cast<int>(chunk), s, v)->values[v % kAtOnce], s, index + v);
          } else {
            visit(in_memory_.At(s, index + v), s, index + v);
          }
        }
      }
      ++chunk;
    }
  }

  const RowsLaunch& launch_;
  SumsInMemory<A, kSums, kFirst> in_memory_;
  RowsPlaceInBlock team_;
  Word* shared_;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_ROWS_SUMS_CUH_
