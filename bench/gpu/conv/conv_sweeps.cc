#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "cuda/driver.h"
#include "gpu/conv/conv_case.h"
#include "gpu/conv/conv_measures.h"
#include "gradsmith/cache.h"

/// How a convolution's gradients change with the batch and with what workspace they may take.
namespace gradsmith::bench {

namespace {

/// CountingAllocator gives the driver's memory, and knows the most that was out at once.
class CountingAllocator {
 public:
  [[nodiscard]] Allocator Functions() { return {&Allocate, &Free, this}; }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  static void* Allocate(void* user, std::size_t size, void* stream) {
    CUdeviceptr address = 0;
    auto* allocator = static_cast<CountingAllocator*>(user);
    if (cuda::Driver().cuMemAllocAsync(&address, size, static_cast<CUstream>(stream)) !=
        CUDA_SUCCESS) {
      return nullptr;
    }
    allocator->out_ += size;
    allocator->most_ = std::max(allocator->most_, allocator->out_);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as integers
    return reinterpret_cast<void*>(address);
  }
  static void Free(void* user, void* address, std::size_t size, void* stream) {
    static_cast<CountingAllocator*>(user)->out_ -= size;
    cuda::Driver().cuMemFreeAsync(
        reinterpret_cast<CUdeviceptr>(address), static_cast<CUstream>(stream));
  }

  std::size_t out_ = 0;
  std::size_t most_ = 0;
};

/// Workspace that the context of a call takes, whose kernels have been chosen.
std::size_t PeakWorkspace(const ConvCase& conv, ContextOptions options) {
  CountingAllocator allocator;
  options.allocator = allocator.Functions();
  Require(conv.Call(Context(options).ForPreparing(), kAllGradients, 0));
  return allocator.most();
}

/// What a call takes until the GPU has nothing left to do. Throws where the call fails.
double SecondsOf(const Gpu& gpu, const std::function<Status()>& call) {
  const Stopwatch watch;
  Require(call());
  gpu.Wait();
  return watch.Seconds();
}

/// As many samples as a quarter of a second has room for, but three at least: a large batch takes
/// long.
int AffordableSamples(const Gpu& gpu, const ConvCase& conv, const Context& context, int samples) {
  constexpr double kSeconds = 0.25;
  constexpr int kFewest = 3;
  gpu.Wait();
  const double affordable =
      kSeconds / SecondsOf(gpu, [&] { return conv.Call(context, kAllGradients, 0); });
  return affordable >= samples ? samples : std::max(kFewest, static_cast<int>(affordable));
}

/// All gradients in one call, by kernels that are chosen now. Throws where there are none.
JsonObject
MeasureAll(const Gpu& gpu, const ConvCase& conv, const ContextOptions& options, int samples) {
  Require(ClearCache());
  const Context context(options);
  const double search_ms =
      1e3 * SecondsOf(gpu, [&] { return conv.Call(context, kAllGradients, 0); });
  samples = AffordableSamples(gpu, conv, context, samples);
  return conv.Measure(context, kAllGradients, samples).Add("search_ms", search_ms);
}

struct WorkspaceLimitCase {
  const char* name;  // in MiB
  std::size_t bytes;
};
constexpr std::array<WorkspaceLimitCase, 4> kWorkspaceLimits = {
    {{"none", kNoLimit},
     {"256", std::size_t{256} << 20U},
     {"32", std::size_t{32} << 20U},
     {"0", 0}}};

constexpr std::initializer_list<SearchMode> kBothModes = {
    SearchMode::kHeuristic, SearchMode::kBenchmark};

/// Measures by the kernels that each mode chooses. The result names the kernels.
JsonObject MeasureModes(
    const ConvCase& conv,
    const CaseOptions& options,
    const std::string& what,
    std::initializer_list<SearchMode> modes,
    const std::function<JsonObject(const ContextOptions& of_mode)>& measure) {
  JsonObject ours;
  JsonObject kernels;
  for (const SearchMode mode : modes) {
    ContextOptions of_mode = conv.Options(mode);
    of_mode.first_choice_seconds = options.first_choice_seconds;
    const std::string name(ToString(mode));
    ours.Add(name, JsonObject().Add(what, measure(of_mode)));
    kernels.Add(name, ChosenKernels());
  }
  return conv.Size().Add("ours", ours).Add("kernels", kernels);
}

/// All gradients in one call.
JsonObject MeasureAllInModes(
    Gpu* gpu,
    const SuiteCase& suite_case,
    const CaseOptions& options,
    std::initializer_list<SearchMode> modes) {
  const ConvCase conv(gpu, suite_case, options);
  return MeasureModes(conv, options, "all", modes, [&](const ContextOptions& of_mode) {
    return MeasureAll(*gpu, conv, of_mode, options.samples);
  });
}

}  // namespace

JsonObject MeasureConvAll(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  const ConvCase conv(gpu, suite_case, options);
  const ContextOptions context_options = conv.Options(SearchMode::kBenchmark);
  const JsonObject all = MeasureAll(*gpu, conv, context_options, options.samples);
  return conv.Size().Add("ours", JsonObject().Add("benchmark", JsonObject().Add("all", all)));
}

JsonObject MeasureConvDefault(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  return MeasureAllInModes(gpu, suite_case, options, {SearchMode::kHeuristic});
}

JsonObject MeasureConvModes(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  return MeasureAllInModes(gpu, suite_case, options, kBothModes);
}

JsonObject MeasureConvForward(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  const ConvCase conv(gpu, suite_case, options);
  return MeasureModes(conv, options, "forward", kBothModes, [&](const ContextOptions& of_mode) {
    Require(ClearCache());
    const Context context(of_mode);
    const double search_ms = 1e3 * SecondsOf(*gpu, [&] { return conv.Forward(context, 0); });
    return conv.MeasureForward(context, options.samples).Add("search_ms", search_ms);
  });
}

JsonObject
MeasureConvWorkspaces(Gpu* gpu, const SuiteCase& suite_case, const CaseOptions& options) {
  const ConvCase conv(gpu, suite_case, options);
  JsonObject limits;
  JsonObject figures;
  std::optional<std::size_t> peak;
  for (const WorkspaceLimitCase& limit : kWorkspaceLimits) {
    // What was chosen under a larger limit and fits is what the smaller one would choose.
    if (!peak || *peak > limit.bytes) {
      ContextOptions context_options = conv.Options(SearchMode::kBenchmark);
      context_options.workspace_limit = limit.bytes;
      try {
        figures = MeasureAll(*gpu, conv, context_options, options.samples);
        peak = PeakWorkspace(conv, context_options);
        figures.Add("workspace", static_cast<double>(*peak));
      } catch (const std::exception& error) {
        peak.reset();
        figures = JsonObject().Add("error", error.what());
      }
    }
    limits.Add(limit.name, figures);
  }
  return conv.Size().Add("limits", limits);
}

}  // namespace gradsmith::bench
