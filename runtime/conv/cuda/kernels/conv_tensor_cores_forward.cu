#include "conv/cuda/kernels/tensor_cores_correlate.cuh"

/// Forward on tensor cores; see conv/cuda/tensor_cores.h.
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_forward_float,
    gradsmith::conv::tensor_cores::Math::kFloat,
    false)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_forward_tf32,
    gradsmith::conv::tensor_cores::Math::kTf32,
    false)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_forward_double,
    gradsmith::conv::tensor_cores::Math::kDouble,
    false)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_forward_half,
    gradsmith::conv::tensor_cores::Math::kHalf,
    false)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_forward_bf16,
    gradsmith::conv::tensor_cores::Math::kBfloat16,
    false)
