#include "gpu/conv/legacy_conv.h"

#include <cudnn_cnn.h>

#include <array>
#include <string>
#include <vector>

#include "cuda/cudnn.h"
#include "cuda/dynamic_library.h"
#include "gpu/legacy.h"
#include "gradsmith/conv_algorithms.h"

namespace gradsmith::bench {

namespace {

/// A gradient as one of the convolution's primitives.
struct Step {
  ConvPrimitive primitive;
  ConvTensor x, w, y;
};

/// A transposed convolution is the backward-data of a convolution from y to x, so that its dX is
/// that convolution itself.
Step StepOfDX(const ConvShapes& shapes) {
  return shapes.transposed ? Step{ConvPrimitive::kForward, kDY, kW, kDX}
                           : Step{ConvPrimitive::kBackwardData, kDX, kW, kDY};
}

Step StepOfDW(const ConvShapes& shapes) {
  return shapes.transposed ? Step{ConvPrimitive::kBackwardFilter, kDY, kDW, kX}
                           : Step{ConvPrimitive::kBackwardFilter, kX, kDW, kDY};
}

bool IsPlainLegacy(const ConvAlgorithm& algorithm, bool allow_tf32) {
  constexpr std::size_t kMostWorkspace = std::size_t{16} << 30U;
  return algorithm.name.starts_with("legacy/") && !algorithm.reduced_precision &&
         (allow_tf32 || !algorithm.tf32) && algorithm.workspace <= kMostWorkspace;
}

/// LegacyStep finds the best algorithm by timing: each that the policies allow is run, and those
/// that come near the best are timed on all sets.
class LegacyStep {
 public:
  LegacyStep(Gpu* gpu, const ConvCase& conv, const Step& step)
      : gpu_(gpu), context_(conv.Options(SearchMode::kHeuristic)) {
    for (int set = 0; set < conv.sets().count(); ++set) {
      of_set_.push_back(Take(ConvAlgorithms::Prepare(
          context_, step.primitive, conv.Ref(set, step.x), conv.Ref(set, step.w),
          conv.Ref(set, step.y), conv.shapes().geometry)));
    }
  }

  /// Adds null where no algorithm runs.
  void AddTo(JsonObject* legacy, const char* name, int samples) {
    std::string best;
    double best_milliseconds = 0;
    int tried = 0;
    for (const ConvAlgorithm& algorithm : Take(of_set_[0].List())) {
      if (!IsPlainLegacy(algorithm, context_.options().allow_tf32) ||
          !of_set_[0].Run({algorithm.name}).ok()) {
        continue;
      }
      if (!best.empty() && MillisecondsOnce(algorithm.name) > (2 * best_milliseconds) + 0.2) {
        continue;  // far from the best: not worth more of the machine's time
      }
      const double milliseconds = Time(algorithm.name, 3).median;
      ++tried;
      if (best.empty() || milliseconds < best_milliseconds) {
        best = algorithm.name;
        best_milliseconds = milliseconds;
      }
    }
    if (best.empty()) {
      legacy->AddNull(name);
      return;
    }
    legacy->Add(name, Time(best, samples).Json().Add("algorithm", best).Add("tried", tried));
  }

 private:
  double MillisecondsOnce(const std::string& algorithm) {
    gpu_->Wait();
    const Stopwatch once;
    Require(of_set_[0].Run({algorithm}).status());
    gpu_->Wait();
    return once.Seconds() * 1e3;
  }

  Timing Time(const std::string& algorithm, int samples) {
    return gpu_->Time(static_cast<int>(of_set_.size()), samples, [&](int set) {
      return of_set_[static_cast<std::size_t>(set)].Run({algorithm}).status();
    });
  }

  Gpu* gpu_;
  Context context_;
  std::vector<ConvAlgorithms> of_set_;
};

/// dB of a convolution: cudnnConvolutionBackwardBias, which nothing else here uses.
class LegacyBiasGradient {
 public:
  LegacyBiasGradient(const Gpu& gpu, DataType type, const Dims& dY, const Strides& strides);
  [[nodiscard]] Status Run(const void* dY, void* dB) const;

 private:
  cudnnHandle_t handle_;
  LegacyTensor dy_;
  LegacyTensor db_;
  bool is_double_;
  decltype(&cudnnConvolutionBackwardBias) function_ = nullptr;
};

LegacyBiasGradient::LegacyBiasGradient(
    const Gpu& gpu,
    DataType type,
    const Dims& dY,
    const Strides& strides)
    : handle_(LegacyHandle(gpu)),
      dy_(type, dY, strides),
      db_(type, {1, dY[1]}, {dY[1], 1}),
      is_double_(type == DataType::kDouble) {
  const cuda::DynamicLibrary library = Take(cuda::DynamicLibrary::Open({cuda::LoadCudnn()->path}));
  Require(library.Find("cudnnConvolutionBackwardBias", &function_));
}

Status LegacyBiasGradient::Run(const void* dY, void* dB) const {
  const LegacyFactors factors(is_double_);
  return cuda::ToStatus(
      function_(handle_, factors.one, dy_.raw(), dY, factors.zero, db_.raw(), dB),
      "running the legacy bias gradient");
}

void AddLegacyBias(Gpu* gpu, const ConvCase& conv, int samples, JsonObject* legacy) {
  const ConvShapes& shapes = conv.shapes();
  const LegacyBiasGradient gradient(*gpu, conv.type(), shapes.y, shapes.y_strides);
  const ArgumentSets& sets = conv.sets();
  const auto run = [&](int set) { return gradient.Run(sets.At(set, kDY), sets.At(set, kDB)); };
  if (!run(0).ok()) {
    legacy->AddNull("dB");
    return;
  }
  legacy->Add("dB", gpu->Time(sets.count(), samples, run).Json());
}

}  // namespace

JsonObject MeasureLegacyConv(Gpu* gpu, const ConvCase& conv, int samples) {
  JsonObject legacy;
  LegacyStep(gpu, conv, StepOfDX(conv.shapes())).AddTo(&legacy, "dX", samples);
  LegacyStep(gpu, conv, StepOfDW(conv.shapes())).AddTo(&legacy, "dW", samples);
  AddLegacyBias(gpu, conv, samples, &legacy);
  return legacy;
}

}  // namespace gradsmith::bench
