#ifndef GRADSMITH_BENCH_GPU_CASES_H_
#define GRADSMITH_BENCH_GPU_CASES_H_

#include <string>

#include "gpu/measure.h"
#include "gpu/suite.h"

/// What is measured of a case.
namespace gradsmith::bench {

struct CaseOptions {
  int samples = 24;
  /// For each search.
  double budget_seconds = 1;
  /// Where inputs and outputs are written; empty: nowhere.
  std::string save;
};

/// MeasureConv times ConvGrad (dX, dW and dB alone, and all three) as chosen by heuristics and by
/// timing, and the best of cuDNN's legacy algorithms for dX and dW.
JsonObject MeasureConv(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureBatchNorm times BatchNormalization and BatchNormalizationGrad.
JsonObject MeasureBatchNorm(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options);

/// MeasureHostTime returns what one tuned ConvGrad call of a small shape takes on the host to
/// enqueue, with one output and with three, in microseconds.
JsonObject MeasureHostTime(Gpu* gpu);

/// MeasureFirstCalls returns what first calls of new shapes take on the host, in milliseconds, up
/// to the result. It must be the first that the process does.
JsonObject MeasureFirstCalls(SearchMode mode, double budget_seconds);

}  // namespace gradsmith::bench

#endif  // GRADSMITH_BENCH_GPU_CASES_H_
