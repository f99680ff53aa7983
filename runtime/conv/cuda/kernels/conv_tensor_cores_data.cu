#include "conv/cuda/kernels/tensor_cores_correlate.cuh"

/// Backward data on tensor cores; see conv/cuda/tensor_cores.h.
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_data_float,
    gradsmith::conv::tensor_cores::Math::kFloat,
    true)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_data_tf32,
    gradsmith::conv::tensor_cores::Math::kTf32,
    true)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_data_double,
    gradsmith::conv::tensor_cores::Math::kDouble,
    true)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_data_half,
    gradsmith::conv::tensor_cores::Math::kHalf,
    true)
GRADSMITH_CORRELATE_TILES(
    gradsmith_tensor_cores_data_bf16,
    gradsmith::conv::tensor_cores::Math::kBfloat16,
    true)
