#include "batch_norm/cuda/kernels/batch_norm_kernels.cuh"

/// Batch normalization with ReLU after it.

#define GRADSMITH_KERNELS(suffix, T)                                          \
  GRADSMITH_ACTIVATION_KERNELS(                                               \
      bn_relu, suffix, T, own::Sums::kReluGradient, own::Map::kNormalizeRelu, \
      own::Map::kReluInputGradient)

GRADSMITH_KERNELS(f32, float)
GRADSMITH_KERNELS(f64, double)
GRADSMITH_KERNELS(f16, __half)
GRADSMITH_KERNELS(bf16, __nv_bfloat16)
