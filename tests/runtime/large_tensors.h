#ifndef GRADSMITH_TESTS_RUNTIME_LARGE_TENSORS_H_
#define GRADSMITH_TESTS_RUNTIME_LARGE_TENSORS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "reference/random.h"
#include "support/large_memory.h"
#include "support/turns.h"

/// What tests of tensors with 2^31 elements and more share. All of a result is compared, bit for
/// bit, with what a period of the operands gives: these are so chosen that nothing is rounded.
namespace gradsmith {

/// As few elements as no signed number of 32 bits counts, and as no number of 32 bits does.
inline constexpr std::int64_t kTwoToThe31 = std::int64_t{1} << 31U;
inline constexpr std::int64_t kTwoToThe32 = std::int64_t{1} << 32U;

/// A prime: neither power has it as a divisor. Periods of vectors are even.
inline constexpr std::int64_t kPeriod = 8191;

/// LargeTensorsTest skips what would take more memory than there is, and without a GPU, where a
/// test takes minutes, all that is not asked for.
class LargeTensorsTest : public testing::TestWithParam<Backend> {
 protected:
  static constexpr DataType kHalf = DataType::kMLFloat16;

  void SetUp() override {
    const std::string why = support::WhyUnavailable(GetParam());
    if (!why.empty()) {
      GTEST_SKIP() << why;
    }
    if (!on_gpu() && std::getenv("GRADSMITH_LARGE_TESTS") == nullptr) {
      GTEST_SKIP() << "takes minutes without a GPU, and up to 13 GB: set GRADSMITH_LARGE_TESTS";
    }
  }

  [[nodiscard]] static bool on_cuda() { return GetParam() == Backend::kCuda; }
  [[nodiscard]] static bool on_gpu() { return on_cuda() && !support::IsEmulated(); }
  [[nodiscard]] static Device device() { return {GetParam(), 0}; }

  /// WhyTooLarge says that there is no room for operands of so many bytes; empty where there is.
  [[nodiscard]] static std::string WhyTooLarge(std::int64_t bytes) {
    constexpr std::size_t kBeside = std::size_t{1} << 30U;
    const std::size_t needed = static_cast<std::size_t>(bytes) + kBeside;
    std::size_t free = support::FreeBytes(device());
    if (!on_gpu()) {
      free = std::min(free, support::FreeBytes({}));  // what an emulated GPU holds is the host's
    }
    return needed <= free ? ""
                          : "takes " + std::to_string(needed >> 20U) + " MiB of memory; " +
                                std::to_string(free >> 20U) + " MiB are free";
  }

  [[nodiscard]] static support::LargeMemory Memory(DataType type, std::int64_t count) {
    return {device(), type, count};
  }
  /// A tensor in memory from an element on.
  [[nodiscard]] static TensorRef
  Ref(const support::LargeMemory& memory, const Dims& dims, const Strides& strides) {
    return {memory.type(), memory.data(), dims, strides, device()};
  }
  [[nodiscard]] static TensorRef Ref(const support::LargeMemory& memory, const Dims& dims) {
    return Ref(memory, dims, ContiguousStrides(dims));
  }

  /// Runs an operator and waits for it.
  static void Run(
      std::string_view op,
      std::initializer_list<DataType> types,
      const std::vector<Attribute>& attributes,
      const std::vector<ConstTensorRef>& inputs,
      const std::vector<TensorRef>& outputs) {
    Registry registry;
    ASSERT_TRUE(RegisterAll(registry).ok());
    const Result<Kernel> kernel = Kernel::Create(
        registry, op, std::span(types.begin(), types.size()), GetParam(), attributes);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const Context context({.device = device()});
    const Status status = kernel->Run(context, inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
  }

  /// Multiples of a unit, none of them 0 or more than so many units, of either sign.
  [[nodiscard]] static std::vector<double>
  Multiples(std::int64_t count, std::int64_t most, double unit = 1) {
    reference::Random random("large tensors");
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto magnitude = static_cast<double>(random.Integer(1, most));
      values.push_back(unit * (random.Chance(0.5) ? magnitude : -magnitude));
    }
    return values;
  }
  /// Some of the values, drawn.
  [[nodiscard]] static std::vector<double> Choices(
      std::int64_t count,
      const std::vector<double>& of) {
    reference::Random random("large tensors' choices");
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(random.Choice(of));
    }
    return values;
  }

  /// How many times a period of so many elements makes as many as `least`, or more.
  [[nodiscard]] static std::int64_t Times(std::int64_t least, std::int64_t period) {
    return least / period + 1;
  }
};

/// Makes the tests of a class for both backends.
#define GRADSMITH_INSTANTIATE_LARGE_TENSORS(Test)                                   \
  INSTANTIATE_TEST_SUITE_P(                                                         \
      MoreElementsThan32Bits, Test, testing::Values(Backend::kCpu, Backend::kCuda), \
      [](const testing::TestParamInfo<Backend>& backend) {                          \
        return std::string(ToString(backend.param));                                \
      })

}  // namespace gradsmith

#endif  // GRADSMITH_TESTS_RUNTIME_LARGE_TENSORS_H_
