#ifndef GRADSMITH_CONV_CUDA_PATCH_MATRIX_H_
#define GRADSMITH_CONV_CUDA_PATCH_MATRIX_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "conv/cuda/patch_matrix_arguments.h"
#include "conv/task.h"
#include "cuda/device.h"
#include "gradsmith/status.h"

/// Convolutions whose patches of x do not overlap, as the first layers of vision transformers are:
/// with a row for each patch, and a column for each of a filter's elements, x becomes a matrix, and
/// the convolution a product of matrices.
namespace gradsmith::conv {

/// PatchProduct returns the product as a convolution of one tap: its x is the matrix, with one
/// channel for each column, and w and y are the problem's, of which y has at most two spatial axes.
/// Its columns are in the order of w's elements in memory. Nothing where patches overlap or meet
/// padding, in groups, or where a tensor is not dense in one of the two layouts.
std::optional<Problem> PatchProduct(const Problem& problem);

/// PatchMatrix is how x is copied to the matrix and back.
struct PatchMatrix {
  patch_matrix::Arguments arguments{};
  /// Bytes that are moved at once: 2, 4, 8 or 16.
  int unit = 0;
  /// PatchProduct of the problem.
  Problem product;
  /// How far apart rows are, in elements; what lies behind the columns is zero.
  std::int64_t pitch = 0;
};

/// PlanPatchMatrix takes a task, and PatchProduct of its problem. Nothing where it is too large for
/// indices of 32 bits.
std::optional<PatchMatrix>
PlanPatchMatrix(const Task& task, const Problem& product, std::int64_t pitch);

/// GatherPatches copies x to the matrix.
Status GatherPatches(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const PatchMatrix& plan,
    const void* x,
    void* matrix);

/// ScatterPatches copies the matrix to x. What lies between patches or behind them becomes zero, or
/// stays as it is.
Status ScatterPatches(
    const cuda::DeviceInfo& device,
    CUstream stream,
    const PatchMatrix& plan,
    const void* matrix,
    void* x,
    bool keeps_rest);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_PATCH_MATRIX_H_
