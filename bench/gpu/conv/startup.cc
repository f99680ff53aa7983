#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "conv/cuda/call.h"
#include "conv/cuda/call_plan.h"
#include "conv/cuda/search_space.h"
#include "conv/task.h"
#include "cuda/tensor_ops.h"
#include "cuda/thread_state.h"
#include "gpu/conv/conv_measures.h"
#include "gradsmith/cache.h"

/// What calls of ConvGrad cost the host.
namespace gradsmith::bench {

namespace {

/// A 3x3 convolution of half in NHWC, size kept.
class SmallConv {
 public:
  SmallConv(std::int64_t images, std::int64_t channels, std::int64_t size, std::int64_t filters)
      : x_({images, channels, size, size}),
        w_({filters, channels, 3, 3}),
        y_({images, filters, size, size}),
        db_({filters}) {
    for (Tensor* tensor : {&x_, &w_, &y_, &dx_, &dw_, &db_}) {
      if (tensor->dims.empty()) {
        tensor->dims = tensor == &dx_ ? x_.dims : w_.dims;
      }
      tensor->memory = Take(DeviceBuffer::Allocate(kDevice, tensor->Bytes()));
    }
  }

  void Fill(Gpu* gpu) {
    for (const Tensor* tensor : {&x_, &w_, &y_}) {
      gpu->FillRandom(DataType::kMLFloat16, tensor->memory.data(), tensor->Bytes());
    }
    gpu->Wait();
  }

  enum Wanted : unsigned char { kDX = 1, kDW = 2, kDB = 4, kAll = 7 };

  /// Computes those outputs of which `wanted` has the bit.
  [[nodiscard]] Status Call(const Context& context, unsigned wanted) const {
    ConvGradInputs<MLFloat16> inputs;
    inputs.dY = y_.View();
    inputs.X = x_.View();
    inputs.W = w_.View();
    ConvGradOutputs<MLFloat16> outputs;
    if ((wanted & kDX) != 0) {
      outputs.dX = dx_.View();
    }
    if ((wanted & kDW) != 0) {
      outputs.dW = dw_.View();
    }
    if ((wanted & kDB) != 0) {
      outputs.dB = db_.View();
    }
    return ConvGrad<MLFloat16>(context, {.pads = {1, 1, 1, 1}}, inputs, outputs);
  }

  [[nodiscard]] conv::Task TaskOf(conv::Primitive primitive) const {
    conv::Task task;
    task.primitive = primitive;
    conv::Problem& problem = task.problem;
    problem.type = DataType::kMLFloat16;
    problem.batch = x_.dims[0];
    problem.x_channels = x_.dims[1];
    problem.y_channels = w_.dims[0];
    problem.spatial_rank = 2;
    for (int i = 0; i < 2; ++i) {
      problem.axes.at(i) = {
          .x = x_.dims[i + 2], .w = 3, .y = y_.dims[i + 2], .pad_begin = 1, .pad_end = 1};
    }
    problem.x_strides = x_.View().strides();
    problem.w_strides = w_.View().strides();
    problem.y_strides = y_.View().strides();
    return task;
  }

  /// As plans of a whole call take them: those of a primitive need the first three alone, and
  /// write to one of them.
  [[nodiscard]] std::array<void*, conv::kCallTensors> Addresses() const {
    return {x_.memory.data(),  w_.memory.data(),  y_.memory.data(), nullptr,
            dx_.memory.data(), dw_.memory.data(), y_.memory.data(), db_.memory.data()};
  }

 private:
  static constexpr Device kDevice = {Backend::kCuda, 0};

  struct Tensor {
    Dims dims = {};
    DeviceBuffer memory = {};

    [[nodiscard]] std::size_t Bytes() const {
      return static_cast<std::size_t>(NumElements(dims)) * sizeof(MLFloat16);
    }
    [[nodiscard]] TensorView<MLFloat16> View() const {
      return {
          static_cast<MLFloat16*>(memory.data()), dims, StridesOf(dims, dims.size() > 2), kDevice};
    }
  };

  Tensor x_;
  Tensor w_;
  Tensor y_;
  Tensor dx_;
  Tensor dw_;
  Tensor db_;
};

/// Microseconds of a call, median of 1,000 of them; the stream is emptied in between, so that none
/// waits for room in its queue.
double HostMicroseconds(const Gpu& gpu, const std::function<Status()>& call) {
  constexpr int kRounds = 50;
  constexpr int kCallsOfRound = 20;
  std::vector<double> times;
  for (int round = -1; round < kRounds; ++round) {
    for (int i = 0; i < kCallsOfRound; ++i) {
      const Stopwatch watch;
      Require(call());
      if (round >= 0) {
        times.push_back(watch.Seconds() * 1e6);
      }
    }
    gpu.Wait();
  }
  return Median(&times);
}

/// What a plan is called: the kernel that was chosen, or of a call's plan that no search has named
/// the kernels that its parts were chosen to be.
std::string NameOf(const internal::ReadyPlan& ready, const internal::ReadyPlans& plans) {
  const auto* call = dynamic_cast<const conv::CallPlan*>(ready.plan.get());
  if (call == nullptr) {
    return ready.id;
  }
  if (!ready.id.empty()) {
    return "call of " + ready.id;
  }
  std::string parts;
  for (const std::shared_ptr<internal::Plan>& part : call->alone()) {
    const auto of_part = std::ranges::find_if(
        plans.entries(), [&](const auto& entry) { return entry.second.plan == part; });
    parts += parts.empty() ? "" : " and ";
    parts += of_part == plans.entries().end() ? "a kernel no longer kept" : of_part->second.id;
  }
  return "call of " + (parts.empty() ? "the bias gradient" : parts);
}

/// The name, or the first of it with a number that is not taken.
std::string Numbered(const std::string& name, std::set<std::string>* taken) {
  std::string numbered = name;
  for (int number = 2; !taken->insert(numbered).second; ++number) {
    numbered = name + " #" + std::to_string(number);
  }
  return numbered;
}

/// What the same work costs the host without this library's part: the plans alone, that were
/// chosen for dX, dW and all outputs together, and one launch of a small kernel.
JsonObject MeasureBare(const Gpu& gpu, const SmallConv& conv) {
  cuda::ThreadState& state = cuda::ThreadState::OfThisThread(gpu.info());
  auto* stream = static_cast<CUstream>(gpu.Options().stream);
  JsonObject bare;
  std::set<std::string> taken;
  for (const auto& [key, ready] : state.plans().entries()) {
    const std::array<void*, conv::kCallTensors> operands = conv.Addresses();
    internal::Plan& plan = *ready.plan;
    const DeviceBuffer workspace =
        Take(DeviceBuffer::Allocate({Backend::kCuda, 0}, plan.workspace() + 1));
    bare.Add(Numbered(NameOf(ready, state.plans()), &taken), HostMicroseconds(gpu, [&] {
               return plan.Run({stream, operands, workspace.data()});
             }));
  }
  TensorRef one(DataType::kFloat, conv.Addresses()[0], Dims{1}, Strides{1});
  return bare.Add("launch", HostMicroseconds(gpu, [&] {
                    return cuda::FillTensor(gpu.info(), stream, 1, one);
                  }));
}

/// Whether the kernel that was chosen for a gradient of a SmallConv is compiled when it is built.
bool IsCompiledAtRunTime(
    const Gpu& gpu,
    const SmallConv& conv,
    conv::Primitive primitive,
    const internal::SearchPolicy& policy) {
  const conv::Task task = conv.TaskOf(primitive);
  const std::vector<CachedChoice> choices = CachedChoices();
  const auto choice = std::ranges::find(choices, Describe(task), &CachedChoice::problem);
  if (choice == choices.end()) {
    throw std::runtime_error("no choice is remembered for " + Describe(task));
  }
  conv::ConvSearchSpace space(
      gpu.info(), gpu.stream(), task, conv::OperandsOf(primitive, conv.Addresses()), policy);
  std::vector<internal::Rejection> rejections;
  for (int batch = 0; batch < space.batches(); ++batch) {
    for (const internal::Candidate& candidate : space.List(batch, &rejections)) {
      if (candidate.id == choice->kernel) {
        return candidate.notes.runtime_compiled;
      }
    }
  }
  throw std::runtime_error("nothing offers " + choice->kernel);
}

double MillisecondsOf(const std::function<void()>& what) {
  const Stopwatch watch;
  what();
  return watch.Seconds() * 1e3;
}

}  // namespace

JsonObject MeasureConvHostTime(Gpu* gpu) {
  ContextOptions options = gpu->Options();
  options.search_mode = SearchMode::kBenchmark;
  options.search_budget_seconds = 1;
  const Context context(options);
  SmallConv conv(2, 16, 8, 16);
  conv.Fill(gpu);
  const auto time = [&](unsigned wanted) {
    return HostMicroseconds(*gpu, [&] { return conv.Call(context, wanted); });
  };
  return JsonObject()
      .Add("outputs_3", time(SmallConv::kAll))
      .Add("outputs_1", time(SmallConv::kDW))
      .Add("dX", time(SmallConv::kDX))
      .Add("dB", time(SmallConv::kDB))
      .Add("bare", MeasureBare(*gpu, conv));
}

JsonObject MeasureFirstConvs(SearchMode mode, double budget_seconds) {
  constexpr std::array<std::array<std::int64_t, 4>, 7> kShapes = {
      {{32, 64, 28, 64},
       {16, 128, 14, 128},
       {64, 32, 30, 48},
       {8, 256, 20, 128},
       {24, 96, 26, 96},
       {48, 80, 18, 64},
       {12, 192, 22, 160}}};
  JsonObject result;
  const Device device = {Backend::kCuda, 0};
  result.Add("device_ms", MillisecondsOf([&] { Require(CheckDevice(device)); }));
  Gpu gpu;
  result.Add("handle_ms", MillisecondsOf([&] {
               Require(cuda::ThreadState::OfThisThread(gpu.info()).handle().status());
             }));
  ContextOptions options = gpu.Options();
  options.search_mode = mode;
  options.search_budget_seconds = budget_seconds;
  const Context context(options);
  std::vector<double> later;
  std::vector<double> precompiled;
  for (const auto& [images, channels, size, filters] : kShapes) {
    SmallConv conv(images, channels, size, filters);
    conv.Fill(&gpu);
    const double milliseconds = MillisecondsOf([&] {
      Require(conv.Call(context, SmallConv::kAll));
      gpu.Wait();
    });
    const double again = MillisecondsOf([&] {
      Require(conv.Call(context, SmallConv::kAll));
      gpu.Wait();
    });
    if (&images == &kShapes.front().front()) {
      result.Add("first_ms", milliseconds).Add("first_again_ms", again);
    } else {
      later.push_back(milliseconds);
      const internal::SearchPolicy policy = {.mode = mode};
      if (!IsCompiledAtRunTime(gpu, conv, conv::Primitive::kBackwardData, policy) &&
          !IsCompiledAtRunTime(gpu, conv, conv::Primitive::kBackwardFilter, policy)) {
        precompiled.push_back(milliseconds);
      }
    }
  }
  const double median = Median(&later);
  result.Add("new_shape_ms", median)
      .Add("new_shape_quickest_ms", later.front())
      .Add("new_shape_slowest_ms", later.back())
      .Add("precompiled", static_cast<double>(precompiled.size()));
  return precompiled.empty() ? result.AddNull("precompiled_ms")
                             : result.Add("precompiled_ms", Median(&precompiled));
}

}  // namespace gradsmith::bench
