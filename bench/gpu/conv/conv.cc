#include <array>
#include <map>
#include <string>
#include <utility>

#include "gpu/conv/conv_case.h"
#include "gpu/conv/conv_measures.h"
#include "gpu/conv/legacy_conv.h"
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

namespace conv {

namespace {

bool HasFilter(const SuiteCase& suite_case) {
  return !suite_case.Text("kernel").empty();
}
bool IsTransposed(const SuiteCase& suite_case) {
  return HasFilter(suite_case) && !suite_case.Text("output_padding").empty();
}
bool IsConvolution(const SuiteCase& suite_case) {
  return HasFilter(suite_case) && !IsTransposed(suite_case);
}

std::map<std::string, std::string> SmallColumns() {
  return {{"N", "2"},          {"C", "16"},       {"K", "16"},       {"groups", "1"},
          {"spatial", "8,8"},  {"kernel", "3,3"}, {"stride", "1,1"}, {"pad", "1,1"},
          {"dilation", "1,1"}, {"type", "f16"},   {"layout", "NHWC"}};
}

SuiteCase SmallConvolution() {
  return SuiteCase(SmallColumns());
}
SuiteCase SmallTransposed() {
  std::map<std::string, std::string> columns = SmallColumns();
  columns["output_padding"] = "0,0";
  return SuiteCase(std::move(columns));
}

constexpr std::array<CaseMeasure, 6> kMeasures = {
    {{.measure = &MeasureConv},
     {.option = "--one-call",
      .what = "of convolutions only dX, dW and dB in one call, by search",
      .measure = &MeasureConvAll},
     {.option = "--default",
      .what = "the same by default, with its first call",
      .measure = &MeasureConvDefault},
     {.option = "--modes", .what = "both, by default and by search", .measure = &MeasureConvModes},
     {.option = "--workspaces",
      .what = "the same under limits of workspace",
      .measure = &MeasureConvWorkspaces},
     {.option = "--forward",
      .what = "of convolutions only the forward operator, by default and by search",
      .measure = &MeasureConvForward}}};
constexpr std::array<CaseKind, 2> kKinds = {
    {{.name = "conv",
      .has = &IsConvolution,
      .measures = kMeasures,
      .small_case = &SmallConvolution},
     {.name = "conv_transpose",
      .has = &IsTransposed,
      .measures = kMeasures,
      .small_case = &SmallTransposed}}};

}  // namespace

Family BenchFamily() {
  return {
      .name = "conv",
      .kinds = kKinds,
      .host_time = &MeasureConvHostTime,
      .first_calls = &MeasureFirstConvs};
}

}  // namespace conv

}  // namespace gradsmith::bench
