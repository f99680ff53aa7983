#include "gpu/cases.h"
#include "gpu/conv_case.h"
#include "gpu/legacy_conv.h"
#include "gradsmith/cache.h"

namespace gradsmith::bench {

namespace {

JsonObject MeasureMode(const ConvCase& conv, SearchMode mode, int samples) {
  JsonObject result;
  const Context context(conv.Options(mode));
  for (const WantedGradients& wanted : kWantedGradients) {
    result.Add(wanted.name, conv.Measure(context, wanted, samples));
  }
  return result;
}

/// Adds what the host's clock says of the first call of a new shape by heuristics, until dX, dW and
/// dB are there; null where it does not run. Nothing of it is remembered afterwards.
void AddFirstCall(const Gpu& gpu, const ConvCase& conv, JsonObject* result) {
  const Context context(conv.Options(SearchMode::kHeuristic));
  gpu.Wait();
  const Stopwatch first;
  const Status status = conv.Call(context, kAllGradients, 0);
  gpu.Wait();
  const double milliseconds = first.Seconds() * 1e3;
  if (status.ok()) {
    result->Add("first_call_ms", milliseconds);
  } else {
    result->AddNull("first_call_ms");
  }
  Require(ClearCache());
}

}  // namespace

JsonObject MeasureConv(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  Require(ClearCache());
  const ConvCase conv(gpu, suite_case, options);
  JsonObject result = conv.Size();
  AddFirstCall(*gpu, conv, &result);
  // Heuristics are measured first, as afterwards they would find what the search remembered.
  JsonObject ours;
  ours.Add("heuristic", MeasureMode(conv, SearchMode::kHeuristic, options.samples));
  ours.Add("benchmark", MeasureMode(conv, SearchMode::kBenchmark, options.samples));
  result.Add("ours", ours);
  result.Add("kernels", ChosenKernels());
  if (!options.save.empty()) {
    conv.Save(options.save);
  }
  return result.Add("legacy", MeasureLegacyConv(gpu, conv, options.samples));
}

}  // namespace gradsmith::bench
