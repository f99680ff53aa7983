#include "layer_norm/functors.h"
#include "patterns/cuda/rows.cuh"

using namespace gradsmith::layer_norm;

GRADSMITH_ROWS_KERNELS_WITH_COLUMNS(LayerNormalization, LayerNormalizationRows)
GRADSMITH_ROWS_KERNELS_WITH_COLUMNS(LayerNormalizationGrad, LayerNormalizationGradRows)
GRADSMITH_ROWS_KERNELS_WITH_COLUMNS(SimplifiedLayerNormalization, SimplifiedLayerNormalizationRows)
GRADSMITH_ROWS_KERNELS_WITH_COLUMNS(
    SimplifiedLayerNormalizationGrad,
    SimplifiedLayerNormalizationGradRows)
