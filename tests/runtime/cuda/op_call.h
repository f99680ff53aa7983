#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_OP_CALL_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_OP_CALL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradsmith/cache.h"
#include "gradsmith/gradsmith.h"
#include "reference/random.h"
#include "runtime/cuda/gpu_tensor.h"
#include "runtime/test_clock.h"
#include "support/device_memory.h"
#include "support/test_tensor.h"

/// What tests of whole ops on a GPU share: a call with its tensors, and what the CPU backend says.
namespace gradsmith::cuda {

using reference::Random;
using support::Layout;

inline constexpr std::array<DataType, 4> kAllTypes = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};
inline constexpr std::array<SearchMode, 3> kAllModes = {
    SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark};
inline constexpr std::array<Layout, 2> kDenseLayouts = {Layout::kContiguous, Layout::kChannelsLast};

/// Set in processes that a test started: see child_process.h.
inline constexpr const char* kChildVariable = "GRADSMITH_TEST_CHILD";

/// CudaTest skips its tests where ops cannot run on the first GPU. Each begins with nothing
/// remembered.
class CudaTest : public GpuTest {
 protected:
  void SetUp() override {
    if (std::getenv(kChildVariable) == nullptr) {
      setenv("GRADSMITH_CACHE", "off", 1);
    }
    if (const Status status = CheckDevice({Backend::kCuda, 0}); !status.ok()) {
      GTEST_SKIP() << status.message();
    }
    GpuTest::SetUp();
    if (CacheFile().empty()) {
      EXPECT_TRUE(ClearCache().ok());
    }
  }
};

/// Where the clock is a test's, as on the emulated GPU, each candidate that a search tries takes
/// thirty milliseconds of its budget. What heuristics put first is taken, whatever the clock says.
inline ContextOptions OnGpu(SearchMode mode = SearchMode::kHeuristic, double budget = 1) {
  ContextOptions options;
  options.on_search_progress = [](const SearchProgress&) { TestClock::Advance(0.03); };
  options.device = {Backend::kCuda, 0};
  options.search_mode = mode;
  options.search_budget_seconds = budget;
  options.first_choice_seconds = 0;
  return options;
}

inline ContextOptions WithTf32(SearchMode mode = SearchMode::kHeuristic) {
  ContextOptions options = OnGpu(mode);
  options.allow_tf32 = true;
  return options;
}

/// CountingAllocator gives a context its workspace and counts. The counts live as long as a context
/// or a graph has memory of it.
class CountingAllocator {
 public:
  struct Counts {
    std::atomic<int> allocations = 0;
    std::atomic<int> frees = 0;
    std::atomic<std::size_t> live = 0;
    std::atomic<std::size_t> peak = 0;
    /// Returns null always.
    std::atomic<bool> is_empty = false;
  };

  Allocator Get() { return {&Allocate, &Free, counts_.get(), counts_}; }
  Counts* operator->() const { return counts_.get(); }

 private:
  static void* Allocate(void* user, std::size_t size, void* stream) {
    auto& counts = *static_cast<Counts*>(user);
    ++counts.allocations;
    if (counts.is_empty) {
      return nullptr;
    }
    counts.live += size;
    counts.peak = std::max<std::size_t>(counts.peak, counts.live);
    CUdeviceptr address = 0;
    EXPECT_EQ(
        Driver().cuMemAllocAsync(&address, size, static_cast<CUstream>(stream)), CUDA_SUCCESS);
    return reinterpret_cast<void*>(address);
  }
  static void Free(void* user, void* address, std::size_t size, void* stream) {
    auto& counts = *static_cast<Counts*>(user);
    ++counts.frees;
    counts.live -= size;
    EXPECT_EQ(
        Driver().cuMemFreeAsync(
            reinterpret_cast<CUdeviceptr>(address), static_cast<CUstream>(stream)),
        CUDA_SUCCESS);
  }

  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

inline const Registry& AllOps() {
  static const Registry& registry = *[] {
    auto* made = new Registry;
    EXPECT_TRUE(RegisterAll(*made).ok());
    return made;
  }();
  return registry;
}

/// RelativeError returns |actual - expected| / |expected|, or the numerator where nothing is
/// expected; infinity where something is not finite.
inline double RelativeError(
    const std::vector<double>& actual,
    const std::vector<double>& expected) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  const double relative = std::sqrt(error) / (norm > 0 ? std::sqrt(norm) : 1);
  return std::isfinite(relative) ? relative : std::numeric_limits<double>::infinity();
}

/// Tolerance is for sums of up to a few thousand terms, relative to the norm.
inline double Tolerance(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return 1e-6;
    case DataType::kDouble:
      return 1e-14;
    case DataType::kMLFloat16:
      return 1e-3;
    default:
      break;
  }
  return 8e-3;
}

/// RecentChoices returns the kernels that were used last, for messages.
inline std::string RecentChoices(std::size_t count = 4) {
  std::string text;
  for (const CachedChoice& choice : CachedChoices()) {
    if (count-- == 0) {
      break;
    }
    text += "\n    " + choice.problem + "\n      -> " + choice.kernel + " (" +
            std::string(ToString(choice.mode)) + ", " + std::to_string(choice.workspace) +
            " bytes)";
  }
  return "\n  last choices:" + (text.empty() ? std::string(" none") : text);
}

using TensorPointer = std::shared_ptr<GpuTensor>;

/// OpCall is an op with its tensors, which are the caller's to make; null ones are absent.
struct OpCall {
  std::string name;
  std::string op;
  std::vector<DataType> types;
  std::vector<Attribute> attributes = {};
  std::vector<TensorPointer> inputs = {};
  std::vector<TensorPointer> outputs = {};
  int device_index = 0;

  [[nodiscard]] std::string Describe() const {
    return op + " " + name + " of " + std::string(ToString(types[0]));
  }

  Status Run(const Context& context, bool accumulate = false) const {
    Result<Kernel> kernel = Create(types, Backend::kCuda);
    return kernel.ok() ? kernel->Run(context, InputRefs(), OutputRefs(accumulate))
                       : kernel.status();
  }
  Status Prepare(const Context& context) const { return Run(context.ForPreparing()); }

  [[nodiscard]] std::vector<ConstTensorRef> InputRefs() const {
    std::vector<ConstTensorRef> refs;
    for (const TensorPointer& tensor : inputs) {
      refs.emplace_back(Ref(tensor));
    }
    return refs;
  }
  [[nodiscard]] std::vector<TensorRef> OutputRefs(bool accumulate = false) const {
    std::vector<TensorRef> refs;
    for (const TensorPointer& tensor : outputs) {
      refs.push_back(Ref(tensor));
      refs.back().accumulate = accumulate && refs.back().present;
    }
    return refs;
  }

  void FillInputs(Random& random) const {
    for (const TensorPointer& tensor : inputs) {
      if (tensor != nullptr) {
        tensor->FillRandom(random);
      }
    }
  }
  void FillInputsWithIntegers(Random& random, std::int64_t low, std::int64_t high) const {
    for (const TensorPointer& tensor : inputs) {
      if (tensor != nullptr) {
        tensor->Fill([&] { return static_cast<double>(random.Integer(low, high)); });
      }
    }
  }
  /// Gives outputs their host's bytes again: NaN, unless they were filled.
  void ResetOutputs() const {
    for (const TensorPointer& tensor : outputs) {
      if (tensor != nullptr) {
        tensor->Upload();
      }
    }
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> OutputBytes() const {
    std::vector<std::vector<std::byte>> bytes;
    for (const TensorPointer& tensor : outputs) {
      bytes.push_back(tensor == nullptr ? std::vector<std::byte>() : tensor->GpuBytes());
    }
    return bytes;
  }

  /// Expected returns what the CPU backend computes in double from the same values.
  [[nodiscard]] std::vector<std::vector<double>> Expected() const {
    const Context cpu;
    std::vector<std::vector<double>> values;
    std::vector<ConstTensorRef> input_refs;
    for (const TensorPointer& tensor : inputs) {
      values.push_back(tensor == nullptr ? std::vector<double>() : tensor->HostValues());
      input_refs.emplace_back(OnHost(tensor, values.back()));
    }
    std::vector<std::vector<double>> results;
    std::vector<TensorRef> output_refs;
    for (const TensorPointer& tensor : outputs) {
      results.emplace_back(tensor == nullptr ? 0 : tensor->HostValues().size());
      output_refs.push_back(OnHost(tensor, results.back()));
    }
    Result<Kernel> kernel =
        Create(std::vector<DataType>(types.size(), DataType::kDouble), Backend::kCpu);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
    const Status status = kernel->Run(cpu, input_refs, output_refs);
    EXPECT_TRUE(status.ok()) << status.message();
    return results;
  }

  /// ExpectResults fails where an output is further from the CPU's than `tolerance` of its norm (0:
  /// the type's), or where something around it was written.
  void ExpectResults(const std::string& doing, double tolerance = 0) const {
    ExpectResults(doing, Expected(), tolerance);
  }
  void ExpectResults(
      const std::string& doing,
      const std::vector<std::vector<double>>& expected,
      double tolerance = 0) const {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != nullptr) {
        const double allowed = tolerance > 0 ? tolerance : Tolerance(outputs[i]->type());
        EXPECT_LE(RelativeError(outputs[i]->GpuValues(), expected[i]), allowed)
            << doing << ": output " << i << " of " << Describe() << RecentChoices();
        EXPECT_TRUE(outputs[i]->SurroundingsIntact())
            << doing << ": around output " << i << " of " << Describe() << RecentChoices();
      }
    }
  }

 private:
  [[nodiscard]] Result<Kernel> Create(const std::vector<DataType>& of, Backend backend) const {
    return Kernel::Create(AllOps(), op, of, backend, attributes);
  }
  [[nodiscard]] TensorRef Ref(const TensorPointer& tensor) const {
    if (tensor == nullptr) {
      return {};
    }
    TensorRef ref = tensor->GpuRef();
    ref.device.index = device_index;
    return ref;
  }
  static TensorRef OnHost(const TensorPointer& tensor, std::vector<double>& values) {
    return tensor == nullptr ? TensorRef()
                             : TensorRef(DataType::kDouble, values.data(), tensor->GpuRef().dims);
  }
};

/// RunRepeatedly runs a call on a GPU, as often as calls are repeated: the results are those of the
/// CPU, as ExpectResults has it, and the same bytes each time.
inline void RunRepeatedly(const OpCall& call, double tolerance = 0) {
  SCOPED_TRACE(call.Describe());
  const Context context(OnGpu());
  std::vector<std::vector<std::byte>> bytes;
  for (int left = RunsOfCall(); left > 0; --left) {
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    EXPECT_TRUE(bytes.empty() || bytes == call.OutputBytes());
    bytes = call.OutputBytes();
  }
  call.ExpectResults(call.name, tolerance);
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_OP_CALL_H_
