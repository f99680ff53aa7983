#ifndef GRADSMITH_BENCH_GPU_CONV_CONV_MEASURES_H_
#define GRADSMITH_BENCH_GPU_CONV_CONV_MEASURES_H_

#include "gpu/cases.h"

/// What is measured of convolutions and of transposed ones.
namespace gradsmith::bench {

/// MeasureConv times ConvGrad or ConvTransposeGrad (dX, dW and dB alone, and all three) as chosen
/// by heuristics and by timing, and the best of cuDNN's legacy algorithms for dX and dW. The first
/// call of all three by heuristics is timed by itself, on the host up to the result.
JsonObject MeasureConv(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvAll times dX, dW and dB in one call by the kernels that a search chooses. Samples are
/// fewer where they take long.
JsonObject MeasureConvAll(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvDefault does so by the kernels that the default chooses, says how long its first call
/// took up to its result, in milliseconds, and names the kernels.
JsonObject MeasureConvDefault(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvModes does so by the kernels that the default chooses and by those of a search.
JsonObject MeasureConvModes(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvForward times Conv or ConvTranspose without a bias by the kernels that the default
/// chooses and by those of a search, and names the kernels.
JsonObject MeasureConvForward(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvWorkspaces times dX, dW and dB in one call without a limit of workspace and under
/// limits of 256, 32 and 0 MiB, and adds the workspace that the context then takes: multiples of 2
/// MiB.
JsonObject MeasureConvWorkspaces(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvHostTime returns what one tuned ConvGrad call of a small shape takes on the host to
/// enqueue, with one output and with three, in microseconds; and under "bare" what its plans do.
JsonObject MeasureConvHostTime(Gpu* gpu);

/// MeasureFirstConvs is Family::first_calls of ConvGrad.
JsonObject MeasureFirstConvs(SearchMode mode, double budget_seconds);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CONV_CONV_MEASURES_H_
