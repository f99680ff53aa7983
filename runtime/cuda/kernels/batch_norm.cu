#include "batch_norm/cuda/arguments.h"
#include "cuda/kernels/batch_norm_finish.cuh"
#include "cuda/kernels/batch_norm_map.cuh"
#include "cuda/kernels/batch_norm_short.cuh"
#include "cuda/kernels/batch_norm_sums.cuh"

/// Batch normalization in three steps: sums over slices of each channel, what they come to, and a
/// map over all elements; or all in one launch, where blocks or threads have channels to
/// themselves. See batch_norm/cuda/own.h.
///
/// X is read less a number near its channel's mean, its pivot: squares then do not cancel, and the
/// difference of two floats that are close is exact. Threads sum in the accumulator's type, all
/// beyond them is in double.
namespace gradsmith::batch_norm::own {
namespace {

/// A block has all of its channels: their sums are theirs as soon as it has been through them, and
/// what it maps it finds in the cache.
template <typename T, int V>
__device__ void
WholeForward(const ForwardFinish& finish, const Operands& operands, double* coefficients) {
  SumColumns<Sums::kMoments, T, V>(
      finish.walk, operands, {}, [&](std::int64_t channel, double first, double second) {
        FinishForward(finish, channel, first, second, coefficients);
      });
  __syncthreads();
  MapColumns<Map::kNormalize, T, V>(finish.walk, operands, coefficients);
}

template <typename T, int V>
__device__ void
WholeBackward(const BackwardFinish& finish, const Operands& operands, double* coefficients) {
  SumColumns<Sums::kGradient, T, V>(
      finish.walk, operands, finish.saved_mean,
      [&](std::int64_t channel, double first, double second) {
        FinishBackward(finish, channel, first, second, coefficients);
      });
  __syncthreads();
  MapColumns<Map::kInputGradient, T, V>(finish.walk, operands, coefficients);
}

}  // namespace
}  // namespace gradsmith::batch_norm::own

// ---------------------------------------------------------------------------------------------
// Kernels
// ---------------------------------------------------------------------------------------------

// Calls in their arguments' list: one kernel for each path and element type.
#define GRADSMITH_SUM_KERNEL(name, function)                                                \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks)         \
      name(own::Walk walk, own::Operands operands, own::Parameter mean, double* partials) { \
    function(walk, operands, mean, partials);                                               \
  }
#define GRADSMITH_MAP_KERNEL(name, function)                                        \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) \
      name(own::Walk walk, own::Operands operands, const double* coefficients) {    \
    function(walk, operands, coefficients);                                         \
  }
#define GRADSMITH_WHOLE_KERNEL(name, Finish, function)                              \
  extern "C" __global__ void __launch_bounds__(own::kThreads, own::kResidentBlocks) \
      name(own::Finish finish, own::Operands operands, double* coefficients) {      \
    function(finish, operands, coefficients);                                       \
  }
#define GRADSMITH_SHORT_KERNEL(name, Finish, function)                   \
  extern "C" __global__ void __launch_bounds__(own::kShortThreads) name( \
      const __grid_constant__ own::Finish finish,                        \
      const __grid_constant__ own::Operands operands) {                  \
    function(finish, operands);                                          \
  }
#define GRADSMITH_SUM_KERNELS(sums, suffix, T, kSums)                                 \
  GRADSMITH_SUM_KERNEL(gradsmith_bn_##sums##_rows_##suffix, (own::SumRows<kSums, T>)) \
  GRADSMITH_SUM_KERNEL(                                                               \
      gradsmith_bn_##sums##_columns_##suffix, (own::SumColumnSlices<kSums, T, 1>))    \
  GRADSMITH_SUM_KERNEL(                                                               \
      gradsmith_bn_##sums##_vectors_##suffix, (own::SumColumnSlices<kSums, T, own::kVector<T>>))
#define GRADSMITH_MAP_KERNELS(map, suffix, T, kMap)                                          \
  GRADSMITH_MAP_KERNEL(gradsmith_bn_##map##_rows_##suffix, (own::MapRows<kMap, T>))          \
  GRADSMITH_MAP_KERNEL(gradsmith_bn_##map##_columns_##suffix, (own::MapColumns<kMap, T, 1>)) \
  GRADSMITH_MAP_KERNEL(                                                                      \
      gradsmith_bn_##map##_vectors_##suffix, (own::MapColumns<kMap, T, own::kVector<T>>))
#define GRADSMITH_KERNELS(suffix, T)                                                               \
  GRADSMITH_SUM_KERNELS(moments, suffix, T, own::Sums::kMoments)                                   \
  GRADSMITH_SUM_KERNELS(gradient_sums, suffix, T, own::Sums::kGradient)                            \
  GRADSMITH_SUM_KERNELS(bias_sums, suffix, T, own::Sums::kBias)                                    \
  GRADSMITH_MAP_KERNELS(normalize, suffix, T, own::Map::kNormalize)                                \
  GRADSMITH_MAP_KERNELS(input_gradient, suffix, T, own::Map::kInputGradient)                       \
  GRADSMITH_WHOLE_KERNEL(                                                                          \
      gradsmith_bn_forward_##suffix, ForwardFinish, (own::WholeForward<T, own::kVector<T>>))       \
  GRADSMITH_WHOLE_KERNEL(                                                                          \
      gradsmith_bn_backward_##suffix, BackwardFinish, (own::WholeBackward<T, own::kVector<T>>))    \
  GRADSMITH_SHORT_KERNEL(gradsmith_bn_short_forward_##suffix, ForwardFinish, own::ShortForward<T>) \
  GRADSMITH_SHORT_KERNEL(                                                                          \
      gradsmith_bn_short_backward_##suffix, BackwardFinish, own::ShortBackward<T>)

namespace own = gradsmith::batch_norm::own;

GRADSMITH_KERNELS(f32, float)
GRADSMITH_KERNELS(f64, double)
GRADSMITH_KERNELS(f16, __half)
GRADSMITH_KERNELS(bf16, __nv_bfloat16)

#define GRADSMITH_FINISH_KERNEL(name, Finish, function)                                 \
  extern "C" __global__ void __launch_bounds__(own::kFinishChannels* own::kFinishLanes) \
      name(own::Finish finish, const double* partials, double* coefficients) {          \
    own::ForEachSum(                                                                    \
        finish.walk, partials, [&](std::int64_t channel, double first, double second) { \
          own::function(finish, channel, first, second, coefficients);                  \
        });                                                                             \
  }

GRADSMITH_FINISH_KERNEL(gradsmith_bn_finish_forward, ForwardFinish, FinishForward)
GRADSMITH_FINISH_KERNEL(gradsmith_bn_finish_backward, BackwardFinish, FinishBackward)
