// ConvGrad and BatchNormalizationGrad in float on the CPU, beside oneDNN's, two threads each; in a
// build with GRADSMITH_ONEDNN also with oneDNN among the candidates, chosen by heuristics and by
// timing. The tensors are the caller's, in NCHW: what oneDNN computes in layouts of its own choice,
// it is given and gives back by its own copies, which count, as they would behind this library's
// API. Results are compared before anything is timed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/cpu_candidates.h"
#include "core/decision_cache.h"
#include "gradsmith/gradsmith.h"

namespace gradsmith {
namespace {

using Values = std::vector<float>;

Values RandomValues(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Values values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return uniform(random); });
  return values;
}

/// Ends the program where two results are further apart than rounding explains.
void ExpectAlike(const std::string& name, const Values& a, const Values& b) {
  constexpr double kRounding = 1e-4;
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(double{a[i]} - double{b[i]}, 2);
    size += std::pow(double{a[i]}, 2);
  }
  if (!(error <= kRounding * kRounding * size)) {
    std::fprintf(
        stderr, "%s: oneDNN and gradsmith differ by %g\n", name.c_str(), std::sqrt(error / size));
    std::exit(1);
  }
}

void Check(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
  }
}

/// A folder for decisions, empty at first.
const std::string& Folder() {
  static const std::string& folder = *new std::string([] {
    std::string name = (std::filesystem::temp_directory_path() / "gradsmith-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::exit(1);
    }
    return name;
  }());
  return folder;
}

/// Contexts of two threads. Where oneDNN is among the candidates, all of the first's decisions are
/// for our own kernels.
const Context& OwnKernels() {
  static const Context& context = *new Context({.threads = 2, .cache = Folder() + "/own"});
  return context;
}

const Context& Heuristic() {
  static const Context& context = *new Context(
      {.threads = 2, .search_mode = SearchMode::kHeuristic, .cache = Folder() + "/heuristic"});
  return context;
}

const Context& Benchmark() {
  static const Context& context = *new Context(
      {.threads = 2, .search_mode = SearchMode::kBenchmark, .cache = Folder() + "/benchmark"});
  return context;
}

/// Makes every decision of OwnKernels one for our own kernel.
void DecideForOwn() {
  internal::DecisionCache& decisions = *OwnKernels().decisions();
  std::vector<internal::StoredDecision> all = decisions.Entries();
  for (internal::StoredDecision& stored : all) {
    stored.decision.id = "own/gemm";
  }
  decisions.Add(all);
}

// --- oneDNN -------------------------------------------------------------------------------------

dnnl::engine& Engine() {
  static auto& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& Stream() {
  static auto& stream = *new dnnl::stream(Engine());
  return stream;
}

constexpr auto kF32 = dnnl::memory::data_type::f32;
using Tag = dnnl::memory::format_tag;

/// An operand of a primitive: the caller's memory, and where the primitive wants another layout a
/// copy, with the reorder between them.
class Operand {
 public:
  Operand(const dnnl::memory::desc& mine, const dnnl::memory::desc& wanted, const float* values)
      : mine_(mine, Engine(), const_cast<float*>(values)), wanted_(mine_) {
    if (mine != wanted) {
      wanted_ = dnnl::memory(wanted, Engine());
    }
  }

  void Read() { Reorder(mine_, wanted_); }
  void Write() { Reorder(wanted_, mine_); }
  [[nodiscard]] const dnnl::memory& memory() const { return wanted_; }

 private:
  static void Reorder(dnnl::memory& from, dnnl::memory& to) {
    if (from.get() != to.get()) {
      dnnl::reorder(from, to).execute(Stream(), from, to);
    }
  }

  dnnl::memory mine_;
  dnnl::memory wanted_;
};

// --- convolution --------------------------------------------------------------------------------

struct ConvCase {
  const char* name;
  std::int64_t batch, channels, size, filters, kernel, stride, pad, group;

  [[nodiscard]] std::int64_t out() const { return ((size + (2 * pad) - kernel) / stride) + 1; }
  [[nodiscard]] Dims x() const { return {batch, channels, size, size}; }
  [[nodiscard]] Dims w() const { return {filters, channels / group, kernel, kernel}; }
  [[nodiscard]] Dims y() const { return {batch, filters, out(), out()}; }
};

constexpr ConvCase kConvCases[] = {
    {"3x3_64_28", 16, 64, 28, 64, 3, 1, 1, 1},
    {"1x1_64_256_28", 16, 64, 28, 256, 1, 1, 0, 1},
    {"7x7_stem_112", 4, 3, 112, 64, 7, 2, 3, 1},
    {"3x3_s2_128_28", 8, 128, 28, 128, 3, 2, 1, 1},
    {"5x5_autoencoder_28", 64, 1, 28, 16, 5, 1, 2, 1},
    {"3x3_16_10", 2, 16, 10, 16, 3, 1, 1, 1},
    {"3x3_1_5", 1, 1, 5, 1, 3, 1, 0, 1}};

struct ConvProblem {
  explicit ConvProblem(const ConvCase& given)
      : shape(given),
        x(RandomValues(NumElements(given.x()), 1)),
        w(RandomValues(NumElements(given.w()), 2)),
        dy(RandomValues(NumElements(given.y()), 3)),
        dx(x.size()),
        dw(w.size()) {}

  void Run(const Context& context) {
    const ConvGradInputs<float> inputs = {
        .dY = {dy.data(), shape.y()}, .X = {x.data(), shape.x()}, .W = {w.data(), shape.w()}};
    const ConvGradOutputs<float> outputs = {
        .dX = {dx.data(), shape.x()}, .dW = {dw.data(), shape.w()}};
    Check(ConvGrad<float>(
        context,
        {.strides = {shape.stride, shape.stride},
         .pads = {shape.pad, shape.pad, shape.pad, shape.pad},
         .group = shape.group},
        inputs, outputs));
  }

  ConvCase shape;
  Values x, w, dy, dx, dw;
};

/// oneDNN's two gradients of a problem, prepared once.
class OneDnnConv {
 public:
  explicit OneDnnConv(const ConvProblem& problem) : dx_(problem.dx.size()), dw_(problem.dw.size()) {
    const ConvCase& shape = problem.shape;
    const auto desc = [](const Dims& dims, Tag tag) {
      return dnnl::memory::desc(dnnl::memory::dims(dims.begin(), dims.end()), kF32, tag);
    };
    const auto any = [&](const Dims& dims) { return desc(dims, Tag::any); };
    const dnnl::memory::dims strides = {shape.stride, shape.stride};
    const dnnl::memory::dims pads = {shape.pad, shape.pad};
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc hint(
        {dnnl::prop_kind::forward_training, algorithm, any(shape.x()), any(shape.w()),
         any(shape.y()), strides, pads, pads},
        Engine());
    const dnnl::convolution_backward_data::primitive_desc data(
        {algorithm, any(shape.x()), any(shape.w()), any(shape.y()), strides, pads, pads}, Engine(),
        hint);
    const dnnl::convolution_backward_weights::primitive_desc weights(
        {algorithm, any(shape.x()), any(shape.w()), any(shape.y()), strides, pads, pads}, Engine(),
        hint);
    data_ = dnnl::convolution_backward_data(data);
    weights_ = dnnl::convolution_backward_weights(weights);
    const auto mine_x = desc(shape.x(), Tag::nchw);
    const auto mine_w = desc(shape.w(), Tag::oihw);
    const auto mine_y = desc(shape.y(), Tag::nchw);
    inputs_.emplace_back(mine_y, data.diff_dst_desc(), problem.dy.data());
    inputs_.emplace_back(mine_w, data.weights_desc(), problem.w.data());
    inputs_.emplace_back(mine_y, weights.diff_dst_desc(), problem.dy.data());
    inputs_.emplace_back(mine_x, weights.src_desc(), problem.x.data());
    outputs_.emplace_back(mine_x, data.diff_src_desc(), dx_.data());
    outputs_.emplace_back(mine_w, weights.diff_weights_desc(), dw_.data());
  }

  void Run() {
    for (Operand& input : inputs_) {
      input.Read();
    }
    data_.execute(
        Stream(), {{DNNL_ARG_DIFF_DST, inputs_[0].memory()},
                   {DNNL_ARG_WEIGHTS, inputs_[1].memory()},
                   {DNNL_ARG_DIFF_SRC, outputs_[0].memory()}});
    weights_.execute(
        Stream(), {{DNNL_ARG_DIFF_DST, inputs_[2].memory()},
                   {DNNL_ARG_SRC, inputs_[3].memory()},
                   {DNNL_ARG_DIFF_WEIGHTS, outputs_[1].memory()}});
    for (Operand& output : outputs_) {
      output.Write();
    }
    Stream().wait();
  }

  [[nodiscard]] const Values& dx() const { return dx_; }
  [[nodiscard]] const Values& dw() const { return dw_; }

 private:
  Values dx_, dw_;
  dnnl::convolution_backward_data data_;
  dnnl::convolution_backward_weights weights_;
  std::vector<Operand> inputs_, outputs_;
};

void Add(const std::string& name, const std::function<void()>& run) {
  benchmark::RegisterBenchmark(name.c_str(), [run](benchmark::State& state) {
    for (auto _ : state) {
      run();
    }
  })->UseRealTime();
}

void AddConvolution(const ConvCase& shape) {
  auto ours = std::make_shared<ConvProblem>(shape);
  auto theirs = std::make_shared<OneDnnConv>(*ours);
  theirs->Run();
  const auto compare = [&](const Context& context) {
    ours->Run(context);
    ExpectAlike(shape.name, ours->dx, theirs->dx());
    ExpectAlike(shape.name, ours->dw, theirs->dw());
  };
  const std::string name = std::string("ConvGrad/") + shape.name;
  compare(OwnKernels());
  if (internal::CpuHasCandidates()) {
    DecideForOwn();
    compare(Heuristic());
    compare(Benchmark());
    Add(name + "/gradsmith_with_oneDNN_heuristic", [ours] { ours->Run(Heuristic()); });
    Add(name + "/gradsmith_with_oneDNN_benchmark", [ours] { ours->Run(Benchmark()); });
  }
  Add(name + "/gradsmith", [ours] { ours->Run(OwnKernels()); });
  Add(name + "/oneDNN", [theirs] { theirs->Run(); });
}

// --- batch normalization ------------------------------------------------------------------------

constexpr float kEpsilon = 1e-5F;

struct BatchNormProblem {
  explicit BatchNormProblem(const Dims& dims)
      : shape(dims),
        x(RandomValues(NumElements(dims), 1)),
        dy(RandomValues(NumElements(dims), 2)),
        scale(RandomValues(dims[1], 3)),
        mean(static_cast<std::size_t>(dims[1])),
        inv_std(mean.size()),
        dx(x.size()),
        dscale(mean.size()),
        dbias(mean.size()) {
    const std::int64_t inner = dims[2] * dims[3];
    const auto samples = static_cast<double>(dims[0] * inner);
    for (std::int64_t c = 0; c < dims[1]; ++c) {
      double sum = 0;
      double squares = 0;
      for (std::int64_t n = 0; n < dims[0]; ++n) {
        for (std::int64_t i = 0; i < inner; ++i) {
          const double value = x[static_cast<std::size_t>((((n * dims[1]) + c) * inner) + i)];
          sum += value;
          squares += value * value;
        }
      }
      const double average = sum / samples;
      mean[static_cast<std::size_t>(c)] = static_cast<float>(average);
      inv_std[static_cast<std::size_t>(c)] = static_cast<float>(
          1 / std::sqrt((squares / samples) - (average * average) + double{kEpsilon}));
    }
  }

  void Run() {
    const Dims channels = {shape[1]};
    Check(BatchNormalizationGrad<float, float, float>(
        OwnKernels(), {.epsilon = kEpsilon},
        {.dY = {dy.data(), shape},
         .X = {x.data(), shape},
         .scale = {scale.data(), channels},
         .saved_mean = {mean.data(), channels},
         .saved_inv_std = {inv_std.data(), channels}},
        {.dX = {dx.data(), shape},
         .dScale = {dscale.data(), channels},
         .dBias = {dbias.data(), channels}}));
  }

  Dims shape;
  Values x, dy, scale, mean, inv_std, dx, dscale, dbias;
};

class OneDnnBatchNorm {
 public:
  explicit OneDnnBatchNorm(const BatchNormProblem& problem)
      : dx_(problem.dx.size()),
        dscale_shift_(2 * problem.scale.size()),
        scale_shift_(problem.scale),
        variance_(problem.mean.size()) {
    const Dims& dims = problem.shape;
    const dnnl::memory::desc images(dnnl::memory::dims(dims.begin(), dims.end()), kF32, Tag::nchw);
    const dnnl::memory::desc channels({dims[1]}, kF32, Tag::a);
    const dnnl::memory::desc pairs({2, dims[1]}, kF32, Tag::nc);
    scale_shift_.resize(2 * problem.scale.size());
    for (std::size_t c = 0; c < variance_.size(); ++c) {
      variance_[c] = (1 / (problem.inv_std[c] * problem.inv_std[c])) - kEpsilon;
    }
    const auto flags = dnnl::normalization_flags::use_scale_shift;
    const dnnl::batch_normalization_forward::primitive_desc hint(
        {dnnl::prop_kind::forward_training, images, kEpsilon, flags}, Engine());
    const dnnl::batch_normalization_backward::primitive_desc backward(
        {dnnl::prop_kind::backward, images, images, kEpsilon, flags}, Engine(), hint);
    primitive_ = dnnl::batch_normalization_backward(backward);
    const auto memory = [](const dnnl::memory::desc& desc, const Values& values) {
      return dnnl::memory(desc, Engine(), const_cast<float*>(values.data()));
    };
    arguments_ = {
        {DNNL_ARG_SRC, memory(images, problem.x)},
        {DNNL_ARG_DIFF_DST, memory(images, problem.dy)},
        {DNNL_ARG_MEAN, memory(channels, problem.mean)},
        {DNNL_ARG_VARIANCE, memory(channels, variance_)},
        {DNNL_ARG_SCALE_SHIFT, memory(pairs, scale_shift_)},
        {DNNL_ARG_DIFF_SRC, memory(images, dx_)},
        {DNNL_ARG_DIFF_SCALE_SHIFT, memory(pairs, dscale_shift_)}};
  }

  void Run() {
    primitive_.execute(Stream(), arguments_);
    Stream().wait();
  }

  [[nodiscard]] const Values& dx() const { return dx_; }

 private:
  Values dx_, dscale_shift_, scale_shift_, variance_;
  dnnl::batch_normalization_backward primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void AddBatchNorm(const char* name, const Dims& dims) {
  auto ours = std::make_shared<BatchNormProblem>(dims);
  auto theirs = std::make_shared<OneDnnBatchNorm>(*ours);
  ours->Run();
  theirs->Run();
  ExpectAlike(name, ours->dx, theirs->dx());
  const std::string title = std::string("BatchNormalizationGrad/") + name;
  Add(title + "/gradsmith", [ours] { ours->Run(); });
  Add(title + "/oneDNN", [theirs] { theirs->Run(); });
}

}  // namespace
}  // namespace gradsmith

int main(int argc, char** argv) {
  setenv("OMP_NUM_THREADS", "2", /*overwrite=*/1);  // oneDNN's threads
  for (const gradsmith::ConvCase& shape : gradsmith::kConvCases) {
    gradsmith::AddConvolution(shape);
  }
  gradsmith::AddBatchNorm("64_28", {16, 64, 28, 28});
  gradsmith::AddBatchNorm("256_14", {32, 256, 14, 14});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(gradsmith::Folder());
  return 0;
}
