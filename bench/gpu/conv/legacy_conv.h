#ifndef GRADSMITH_BENCH_GPU_CONV_LEGACY_CONV_H_
#define GRADSMITH_BENCH_GPU_CONV_LEGACY_CONV_H_

#include "gpu/conv/conv_case.h"
#include "gpu/measure.h"

namespace gradsmith::bench {

/// MeasureLegacyConv returns what dX, dW and dB take by cuDNN's legacy API: the best of its
/// algorithms, and cudnnConvolutionBackwardBias. Null where it has none.
JsonObject MeasureLegacyConv(Gpu* gpu, const ConvCase& conv, int samples);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CONV_LEGACY_CONV_H_
