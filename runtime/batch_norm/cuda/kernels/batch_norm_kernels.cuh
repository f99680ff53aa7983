#ifndef GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_KERNELS_CUH_
#define GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_KERNELS_CUH_

#include "batch_norm/cuda/arguments.h"
#include "batch_norm/cuda/kernels/batch_norm_finish.cuh"
#include "batch_norm/cuda/kernels/batch_norm_held.cuh"
#include "batch_norm/cuda/kernels/batch_norm_map.cuh"
#include "batch_norm/cuda/kernels/batch_norm_resident.cuh"
#include "batch_norm/cuda/kernels/batch_norm_short.cuh"
#include "batch_norm/cuda/kernels/batch_norm_sums.cuh"

/// Batch normalization in three steps: sums over slices of each channel, what they come to, and a
/// map over all elements; or all in one launch, where blocks or threads have channels to
/// themselves, or where all blocks run at once. See batch_norm/cuda/own.h and held.h.
///
/// X is read less a number near its channel's mean, its pivot: squares then do not cancel, and the
/// difference of two floats that are close is exact. Threads sum in the accumulator's type, all
/// beyond them is in double.
namespace gradsmith::batch_norm::own {
namespace {

/// A block has all of its channels: their sums are theirs as soon as it has been through them, and
/// what it maps it finds in the cache.
template <Map kMap, typename T, int V>
__device__ void
WholeForward(const ForwardFinish& finish, const Operands& operands, double* coefficients) {
  SumColumns<Sums::kMoments, T, V>(
      finish.walk, operands, {}, [&](std::int64_t channel, double first, double second) {
        FinishForward(
            finish, channel, TotalsOf(ForwardAgain{finish}, channel, first, second), coefficients);
      });
  __syncthreads();
  MapColumns<kMap, T, V>(finish.walk, operands, coefficients);
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

// ---------------------------------------------------------------------------------------------
// Kernels
// ---------------------------------------------------------------------------------------------

// Calls in their arguments' list: one kernel for each path and element type. `op` is bn or bn_relu.
#define GRADSMITH_SUM_KERNEL(name, function)                                              \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) name( \
      own::Walk walk, own::Operands operands, own::Normalization normalization,           \
      double* partials) {                                                                 \
    function(walk, operands, normalization, partials);                                    \
  }
#define GRADSMITH_MAP_KERNEL(name, function)                                        \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) \
      name(own::Walk walk, own::Operands operands, const double* coefficients) {    \
    function(walk, operands, coefficients);                                         \
  }
#define GRADSMITH_WHOLE_KERNEL(name, function)                                            \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) name( \
      const __grid_constant__ own::ForwardFinish finish, own::Operands operands,          \
      double* coefficients) {                                                             \
    function(finish, operands, coefficients);                                             \
  }
#define GRADSMITH_RESIDENT_KERNEL(name, function)                                               \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) name(       \
      const __grid_constant__ own::BackwardFinish finish,                                       \
      const __grid_constant__ own::Operands operands, double* partials, double* coefficients) { \
    function(finish, operands, partials, coefficients);                                         \
  }
#define GRADSMITH_SHORT_KERNEL(name, Finish, function)                   \
  extern "C" __global__ void __launch_bounds__(own::kShortThreads) name( \
      const __grid_constant__ own::Finish finish,                        \
      const __grid_constant__ own::Operands operands) {                  \
    function(finish, operands);                                          \
  }
#define GRADSMITH_HELD_KERNEL(name, function)                                             \
  extern "C" __global__ void __launch_bounds__(own::kHeldThreads, own::kHeldBlocks) name( \
      const __grid_constant__ own::BackwardFinish finish,                                 \
      const __grid_constant__ own::Operands operands,                                     \
      const __grid_constant__ own::HeldWalk held) {                                       \
    function(finish, operands, held);                                                     \
  }
#define GRADSMITH_SUM_KERNELS(name, suffix, T, kSums)                                \
  GRADSMITH_SUM_KERNEL(name##_rows_##suffix, (own::SumRows<kSums, T>))               \
  GRADSMITH_SUM_KERNEL(name##_columns_##suffix, (own::SumColumnSlices<kSums, T, 1>)) \
  GRADSMITH_SUM_KERNEL(name##_vectors_##suffix, (own::SumColumnSlices<kSums, T, own::kVector<T>>))
#define GRADSMITH_MAP_KERNELS(name, suffix, T, kMap)                           \
  GRADSMITH_MAP_KERNEL(name##_rows_##suffix, (own::MapRows<kMap, T>))          \
  GRADSMITH_MAP_KERNEL(name##_columns_##suffix, (own::MapColumns<kMap, T, 1>)) \
  GRADSMITH_MAP_KERNEL(name##_vectors_##suffix, (own::MapColumns<kMap, T, own::kVector<T>>))
#define GRADSMITH_ACTIVATION_KERNELS(op, suffix, T, kSums, kNormalize, kInputGradient)            \
  GRADSMITH_SUM_KERNELS(gradsmith_##op##_gradient_sums, suffix, T, kSums)                         \
  GRADSMITH_MAP_KERNELS(gradsmith_##op##_normalize, suffix, T, kNormalize)                        \
  GRADSMITH_MAP_KERNELS(gradsmith_##op##_input_gradient, suffix, T, kInputGradient)               \
  GRADSMITH_WHOLE_KERNEL(                                                                         \
      gradsmith_##op##_forward_##suffix, (own::WholeForward<kNormalize, T, own::kVector<T>>))     \
  GRADSMITH_RESIDENT_KERNEL(                                                                      \
      gradsmith_##op##_whole_backward_##suffix,                                                   \
      (own::ResidentBackward<true, kSums, kInputGradient, T>))                                    \
  GRADSMITH_RESIDENT_KERNEL(                                                                      \
      gradsmith_##op##_resident_backward_##suffix,                                                \
      (own::ResidentBackward<false, kSums, kInputGradient, T>))                                   \
  GRADSMITH_SHORT_KERNEL(                                                                         \
      gradsmith_##op##_short_forward_##suffix, ForwardFinish, (own::ShortForward<kNormalize, T>)) \
  GRADSMITH_SHORT_KERNEL(                                                                         \
      gradsmith_##op##_short_backward_##suffix, BackwardFinish,                                   \
      (own::ShortBackward<kSums, kInputGradient, T>))                                             \
  GRADSMITH_HELD_KERNEL(                                                                          \
      gradsmith_##op##_held_backward_##suffix, (own::HeldBackward<kSums, kInputGradient, T>))

namespace own = gradsmith::batch_norm::own;

#endif  // GRADSMITH_BATCH_NORM_CUDA_KERNELS_BATCH_NORM_KERNELS_CUH_
