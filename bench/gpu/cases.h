#ifndef GRADSMITH_BENCH_GPU_CASES_H_
#define GRADSMITH_BENCH_GPU_CASES_H_

#include <cstdint>
#include <string>

#include "gpu/measure.h"
#include "gpu/suite.h"

/// What is measured of a case of a suite.
namespace gradsmith::bench {

/// Measures is what is measured of a case.
enum class Measures : std::uint8_t {
  kAll,         ///< what its kind of case is about
  kOneCall,     ///< of a convolution: dX, dW and dB in one call, by search
  kModes,       ///< of a convolution: the same by default and by search
  kWorkspaces,  ///< of a convolution: the same under limits of workspace
  kRelu,        ///< of a batch normalization: with ReLU after it
};

struct CaseOptions {
  Measures measures = Measures::kAll;
  int samples = 24;
  /// For each search.
  double budget_seconds = 1;
  /// For the default's first choice.
  double first_choice_seconds = ContextOptions().first_choice_seconds;
  /// Where inputs and outputs are written; empty: nowhere.
  std::string save;
};

/// MeasureConv times ConvGrad or ConvTransposeGrad (dX, dW and dB alone, and all three) as chosen
/// by heuristics and by timing, and the best of cuDNN's legacy algorithms for dX and dW. The first
/// call of all three by heuristics is timed by itself, on the host up to the result.
JsonObject MeasureConv(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvAll times dX, dW and dB in one call by the kernels that a search chooses. Samples are
/// fewer where they take long.
JsonObject MeasureConvAll(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvModes does so by the kernels that the default chooses and by those of a search, says
/// how long the default's first call took up to its result, in milliseconds, and names the kernels.
JsonObject MeasureConvModes(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureConvWorkspaces does so without a limit of workspace and under limits of 256, 32 and 0
/// MiB, and adds the workspace that the context then takes: multiples of 2 MiB.
JsonObject MeasureConvWorkspaces(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureBatchNorm times BatchNormalization and BatchNormalizationGrad as chosen by timing, and
/// the gradient by heuristics, whose first call is timed by itself too.
JsonObject MeasureBatchNorm(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureHostTime returns what one tuned ConvGrad call of a small shape takes on the host to
/// enqueue, with one output and with three, in microseconds.
JsonObject MeasureHostTime(Gpu* gpu);

/// MeasureFirstCalls returns what first calls of new shapes take on the host, in milliseconds, up
/// to the result. It must be the first that the process does.
JsonObject MeasureFirstCalls(SearchMode mode, double budget_seconds);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CASES_H_
