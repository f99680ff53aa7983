#include "channels/functors.h"
#include "patterns/cuda/rows.cuh"

using namespace gradsmith::channels;

GRADSMITH_ROWS_KERNELS(ChannelNorm, ChannelNormRows)
GRADSMITH_ROWS_KERNELS(ChannelNormGrad, ChannelNormGradRows)
GRADSMITH_ROWS_KERNELS_ALONG(ChannelTotals, ChannelTotalsRows, f32, float, float)
GRADSMITH_ROWS_KERNELS_ALONG(ChannelTotals, ChannelTotalsRows, f64, double, double)
GRADSMITH_ROWS_KERNELS_ALONG(ChannelTotals, ChannelTotalsRows, f16, __half, __half)
GRADSMITH_ROWS_KERNELS_ALONG(ChannelTotals, ChannelTotalsRows, bf16, __nv_bfloat16, __nv_bfloat16)
