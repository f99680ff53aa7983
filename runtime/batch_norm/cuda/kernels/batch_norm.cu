#include "batch_norm/cuda/kernels/batch_norm_kernels.cuh"

/// Batch normalization alone, and what it shares with that before an activation.

#define GRADSMITH_KERNELS(suffix, T)                                          \
  GRADSMITH_SUM_KERNELS(gradsmith_bn_moments, suffix, T, own::Sums::kMoments) \
  GRADSMITH_SUM_KERNELS(gradsmith_bn_bias_sums, suffix, T, own::Sums::kBias)  \
  GRADSMITH_ACTIVATION_KERNELS(                                               \
      bn, suffix, T, own::Sums::kGradient, own::Map::kNormalize, own::Map::kInputGradient)

GRADSMITH_KERNELS(f32, float)
GRADSMITH_KERNELS(f64, double)
GRADSMITH_KERNELS(f16, __half)
GRADSMITH_KERNELS(bf16, __nv_bfloat16)

#define GRADSMITH_FINISH_KERNEL(name, Finish, Again, function)                                    \
  extern "C" __global__ void __launch_bounds__(own::kFinishChannels* own::kFinishLanes) name(     \
      const __grid_constant__ own::Finish finish, const double* partials, double* coefficients) { \
    __shared__ own::FinishSums<own::kFinishChannels> sums;                                        \
    own::ForEachSum<own::kFinishChannels>(                                                        \
        finish.walk, own::Again{finish}, partials, blockIdx.x, gridDim.x, sums,                   \
        [&](std::int64_t channel, const own::Totals& totals) {                                    \
          own::function(finish, channel, totals, coefficients);                                   \
        });                                                                                       \
  }

GRADSMITH_FINISH_KERNEL(gradsmith_bn_finish_forward, ForwardFinish, ForwardAgain, FinishForward)
GRADSMITH_FINISH_KERNEL(gradsmith_bn_finish_backward, BackwardFinish, BackwardAgain, FinishBackward)
