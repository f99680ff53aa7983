#include <cstdint>

#include "conv/cuda/patch_matrix_arguments.h"
#include "cuda/kernels/element_vector.cuh"
#include "cuda/kernels/indices.cuh"

/// Copies between x and the matrix of its patches; see conv/cuda/patch_matrix.h. A warp moves a
/// segment of one of x's rows at a time.
namespace gradsmith::conv::patch_matrix {
namespace {

using cuda::DivideBy;
using cuda::Lane;

/// A position that no patch has.
constexpr std::int64_t kNowhere = -1;

/// Takes the axis' index off the row's number, and adds its part of the place in the matrix.
__device__ __forceinline__ bool AddAxis(const Axis& axis, int* row, std::int64_t* place) {
  const int rest = DivideBy(axis.x, row);
  int tap = *row;
  *row = rest;
  const int patch = DivideBy(axis.stride, &tap);
  *place += patch * axis.patch_step + tap * axis.tap_step;
  return patch < axis.patches && tap < axis.taps;
}

/// PlaceOfRow returns where a row's patches begin in the matrix.
__device__ __forceinline__ std::int64_t PlaceOfRow(const Arguments& p, int row) {
  std::int64_t place = 0;
  const bool is_inner = AddAxis(p.axes[1], &row, &place);
  const bool is_outer = AddAxis(p.axes[0], &row, &place);
  const int image = DivideBy(p.channels, &row);
  place += image * p.image_step + row * p.channel_step;
  return is_inner && is_outer ? place : kNowhere;
}

__device__ __forceinline__ std::int64_t
PlaceOfUnit(const Arguments& p, std::int64_t place_of_row, int unit) {
  const int patch = DivideBy(p.stride, &unit);
  if (place_of_row == kNowhere || patch >= p.patches || unit >= p.run) {
    return kNowhere;
  }
  const int outer = DivideBy(p.inner, &unit);
  return place_of_row + patch * p.patch_step + outer * p.outer_step + unit * p.inner_step;
}

/// Calls move(place of the first of x's units, place_of) for each of a warp's items.
template <typename Move>
__device__ __forceinline__ void ForEachSegment(const Arguments& p, const Move& move) {
  const std::int64_t warps = std::int64_t{gridDim.x} * kWarps;
  for (std::int64_t item = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; item < p.items;
       item += warps) {
    auto segment = static_cast<int>(item);
    const int row = DivideBy(p.segments, &segment);
    move(std::int64_t{row} * p.row, PlaceOfRow(p, row), segment * kSegment + Lane());
  }
}

template <typename Word>
__device__ void Gather(const Arguments& p, const Word* x, Word* matrix) {
  ForEachSegment(p, [&](std::int64_t begin, std::int64_t place_of_row, int first) {
    Word words[kAtOnce];
    std::int64_t places[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int unit = first + 32 * i;
      places[i] = unit < p.row ? PlaceOfUnit(p, place_of_row, unit) : kNowhere;
      if (places[i] != kNowhere) {
        words[i] = x[begin + unit];
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (places[i] != kNowhere) {
        matrix[places[i]] = words[i];
      }
    }
  });
}

/// What no patch has becomes zero, or is kept.
template <typename Word>
__device__ void Scatter(const Arguments& p, const Word* matrix, Word* x, bool keeps_rest) {
  ForEachSegment(p, [&](std::int64_t begin, std::int64_t place_of_row, int first) {
    Word words[kAtOnce] = {};
    bool is_written[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int unit = first + 32 * i;
      const std::int64_t place = PlaceOfUnit(p, place_of_row, unit);
      is_written[i] = unit < p.row && !(keeps_rest && place == kNowhere);
      if (unit < p.row && place != kNowhere) {
        words[i] = matrix[place];
      }
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (is_written[i]) {
        x[begin + first + 32 * i] = words[i];
      }
    }
  });
}

}  // namespace
}  // namespace gradsmith::conv::patch_matrix

#define GRADSMITH_PATCH_MATRIX(bytes)                                                   \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::patch_matrix::kThreads) \
      gradsmith_gather_patches_##bytes(                                                 \
          const __grid_constant__ gradsmith::conv::patch_matrix::Arguments arguments,   \
          const gradsmith::cuda::WordOf<bytes>::Type* x,                                \
          gradsmith::cuda::WordOf<bytes>::Type* matrix) {                               \
    gradsmith::conv::patch_matrix::Gather(arguments, x, matrix);                        \
  }                                                                                     \
  extern "C" __global__ void __launch_bounds__(gradsmith::conv::patch_matrix::kThreads) \
      gradsmith_scatter_patches_##bytes(                                                \
          const __grid_constant__ gradsmith::conv::patch_matrix::Arguments arguments,   \
          const gradsmith::cuda::WordOf<bytes>::Type* matrix,                           \
          gradsmith::cuda::WordOf<bytes>::Type* x, bool keeps_rest) {                   \
    gradsmith::conv::patch_matrix::Scatter(arguments, matrix, x, keeps_rest);           \
  }

GRADSMITH_PATCH_MATRIX(2)
GRADSMITH_PATCH_MATRIX(4)
GRADSMITH_PATCH_MATRIX(8)
GRADSMITH_PATCH_MATRIX(16)
