#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gradsmith/context.h"
#include "pool/kernels.h"
#include "runtime/cuda/gpu_tensor.h"

/// Windows that hold a whole channel on the GPU, beside the CPU, bit for bit: shapes for each way
/// in which threads share a channel, and in which they meet memory.
namespace gradsmith::pool {
namespace {

using cuda::GpuTensor;
using cuda::Sizes;
using support::Layout;

struct WholeCase {
  std::string name;
  Sizes X;
  Layout layout = Layout::kContiguous;
  /// How many elements all data are off a 64-byte boundary.
  std::size_t misaligned = 0;

  [[nodiscard]] Sizes Spatial() const { return {X.begin() + 2, X.end()}; }
  [[nodiscard]] Sizes Y() const {
    Sizes dims = X;
    std::fill(dims.begin() + 2, dims.end(), 1);
    return dims;
  }
  [[nodiscard]] std::int64_t size() const {
    const Sizes spatial = Spatial();
    return std::accumulate(spatial.begin(), spatial.end(), std::int64_t{1}, std::multiplies<>());
  }
};

const std::vector<WholeCase>& Cases() {
  static const std::vector<WholeCase> kCases = {
      {"one_element", {4, 9, 1}},
      {"less_than_a_vector", {3, 5, 3}},
      {"as_much_as_a_vector", {3, 5, 8}},
      {"a_vector_and_one", {3, 5, 9}},
      {"few_vectors", {3, 5, 4, 10}},
      {"channels_of_a_warp", {3, 5, 8, 28}},
      {"less_than_a_batch", {2, 3, 16, 12}},
      {"batches_of_two_warps", {2, 3, 28, 44}},
      {"batches_of_a_block", {1, 2, 56, 168}},
      {"odd_planes", {5, 7, 7, 7}},
      {"odd_planes_of_several_blocks", {2, 3, 53, 61}},
      {"odd_volumes", {2, 2, 3, 11, 13}},
      {"misaligned", {2, 3, 8, 12}, {}, 1},
      {"misaligned_batches", {1, 2, 40, 60}, {}, 1},
      {"strided", {2, 3, 9, 10}, Layout::kStrided},
      {"channels_of_one_element", {2, 16, 1}, Layout::kChannelsLast},
      {"channels_of_few", {2, 24, 3, 1}, Layout::kChannelsLast},
      {"channels_of_a_batch", {3, 24, 12, 9}, Layout::kChannelsLast},
      {"channels_of_batches", {1, 8, 37, 41}, Layout::kChannelsLast},
      {"channels_of_several_blocks", {2, 40, 3, 12, 18}, Layout::kChannelsLast},
      {"misaligned_channels", {2, 8, 9, 11}, Layout::kChannelsLast, 1},
      {"odd_channels", {3, 5, 9, 12}, Layout::kChannelsLast},
      {"few_odd_channels", {1, 3, 33, 41}, Layout::kChannelsLast},
  };
  return kCases;
}

class CudaWholeWindows : public cuda::GpuTest {
 protected:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  /// What a test puts into X, element by element.
  using Draw = std::function<double()>;

  static GpuTensor Make(const WholeCase& given, DataType type, const Sizes& dims) {
    return {type, dims, support::StridesFor(given.layout, dims), given.misaligned};
  }
  static Draw Integers(const std::string& seed, std::int64_t multiple = 1) {
    return [random = reference::Random(seed), multiple]() mutable {
      return static_cast<double>(multiple * random.Integer(-4, 4));
    };
  }
  /// Equal elements, infinities and NaN.
  static Draw Ties() {
    return [random = reference::Random("ties")]() mutable {
      const double nan = random.Chance(0.1) ? kNan : 1;
      return random.Choice<double>({0, 0, 1, 1, nan, -kInfinity, -kInfinity, kInfinity});
    };
  }
  /// In each channel two equal largest elements, each time elsewhere. Elsewhere as well are two
  /// that are no numbers, in every second channel where the test has any.
  static Draw OneLargest(std::int64_t size, bool has_nans) {
    return [size, has_nans, index = std::int64_t{0}]() mutable {
      const std::int64_t channel = index / size;
      const std::int64_t place = index++ % size;
      const auto is_at = [&](std::int64_t first) {
        return place == first % size || place == (first + (size / 3)) % size;
      };
      if (has_nans && channel % 2 == 1 && is_at((channel * 17) + 5)) {
        return kNan;
      }
      return is_at((channel * 37) + 11) ? 2.0 : -1.0;
    };
  }

  static std::vector<double> Comparable(std::vector<double> values) {
    std::ranges::replace_if(values, [](double value) { return std::isnan(value); }, 12345.0);
    return values;
  }
  /// The kernels write nothing but elements, and the CPU's.
  static void Compare(const GpuTensor& tensor, const Status& host, const Status& gpu) {
    ASSERT_TRUE(host.ok()) << host.message();
    ASSERT_TRUE(gpu.ok()) << gpu.message();
    EXPECT_EQ(Comparable(tensor.GpuValues()), Comparable(tensor.HostValues()));
    EXPECT_TRUE(tensor.SurroundingsIntact());
  }
  /// The same of what both have added to elements of their own, of which there are `before`.
  static void CompareSums(
      const GpuTensor& tensor,
      const std::vector<double>& before,
      const std::vector<double>& gradient,
      const Status& gpu) {
    ASSERT_TRUE(gpu.ok()) << gpu.message();
    std::vector<double> sums = before;
    std::ranges::transform(sums, gradient, sums.begin(), std::plus<>());
    EXPECT_EQ(tensor.GpuValues(), sums);
    EXPECT_TRUE(tensor.SurroundingsIntact());
  }

  static TensorRef RefOf(GpuTensor& tensor, bool on_gpu) {
    return on_gpu ? tensor.GpuRef() : tensor.HostRef();
  }

  Status MaxForward(
      GpuTensor& X,
      GpuTensor& Y,
      GpuTensor& indices,
      const Sizes& window,
      bool on_gpu) const {
    const ConstTensorRef x = RefOf(X, on_gpu);
    const TensorRef y = RefOf(Y, on_gpu);
    const TensorRef named = RefOf(indices, on_gpu);
    const MaxPoolAttributes attributes = {{.kernel_shape = support::ToIntList(window)}, 0};
    return on_gpu ? MaxPool::RunCuda(gpu_, attributes, {.X = &x}, {.Y = &y, .Indices = &named})
                  : MaxPool::RunCpu(host_, attributes, {.X = &x}, {.Y = &y, .Indices = &named});
  }
  Status MaxGradient(
      GpuTensor& dY,
      GpuTensor& X,
      GpuTensor& Y,
      GpuTensor& dX,
      bool on_gpu,
      bool accumulate = false) const {
    const ConstTensorRef dy = RefOf(dY, on_gpu);
    const ConstTensorRef x = RefOf(X, on_gpu);
    const ConstTensorRef y = RefOf(Y, on_gpu);
    const TensorRef dx = accumulate ? RefOf(dX, on_gpu).Accumulating() : RefOf(dX, on_gpu);
    return on_gpu
               ? GlobalMaxPoolGrad::RunCuda(gpu_, {}, {.dY = &dy, .X = &x, .Y = &y}, {.dX = &dx})
               : GlobalMaxPoolGrad::RunCpu(host_, {}, {.dY = &dy, .X = &x, .Y = &y}, {.dX = &dx});
  }
  Status AverageForward(GpuTensor& X, GpuTensor& Y, bool on_gpu) const {
    const ConstTensorRef x = RefOf(X, on_gpu);
    const TensorRef y = RefOf(Y, on_gpu);
    return on_gpu ? GlobalAveragePool::RunCuda(gpu_, {}, {.X = &x}, {.Y = &y})
                  : GlobalAveragePool::RunCpu(host_, {}, {.X = &x}, {.Y = &y});
  }
  Status AverageGradient(
      GpuTensor& dY,
      GpuTensor& X,
      GpuTensor& dX,
      bool on_gpu,
      bool accumulate = false) const {
    const ConstTensorRef dy = RefOf(dY, on_gpu);
    const ConstTensorRef x = RefOf(X, on_gpu);
    const TensorRef dx = accumulate ? RefOf(dX, on_gpu).Accumulating() : RefOf(dX, on_gpu);
    return on_gpu ? GlobalAveragePoolGrad::RunCuda(gpu_, {}, {.dY = &dy, .X = &x}, {.dX = &dx})
                  : GlobalAveragePoolGrad::RunCpu(host_, {}, {.dY = &dy, .X = &x}, {.dX = &dx});
  }

  void CheckMax(const WholeCase& given, DataType type, const Draw& draw) const {
    GpuTensor X = Make(given, type, given.X);
    GpuTensor Y = Make(given, type, given.Y());
    GpuTensor dY = Make(given, type, given.Y());
    GpuTensor dX = Make(given, type, given.X);
    GpuTensor sums = Make(given, type, given.X);
    GpuTensor indices = Make(given, DataType::kInt64, given.Y());
    X.Fill(draw);
    dY.Fill(Integers("dY"));
    sums.Fill(Integers("before"));
    const Status host = MaxForward(X, Y, indices, given.Spatial(), /*on_gpu=*/false);
    const Status gpu = MaxForward(X, Y, indices, given.Spatial(), /*on_gpu=*/true);
    Compare(Y, host, gpu);
    Compare(indices, host, gpu);
    const Status of_host = MaxGradient(dY, X, Y, dX, /*on_gpu=*/false);
    Compare(dX, of_host, MaxGradient(dY, X, Y, dX, /*on_gpu=*/true));
    CompareSums(
        sums, sums.HostValues(), dX.HostValues(),
        MaxGradient(dY, X, Y, sums, /*on_gpu=*/true, /*accumulate=*/true));
  }

  void CheckAverage(const WholeCase& given, DataType type) const {
    GpuTensor X = Make(given, type, given.X);
    GpuTensor Y = Make(given, type, given.Y());
    GpuTensor dY = Make(given, type, given.Y());
    GpuTensor dX = Make(given, type, given.X);
    GpuTensor sums = Make(given, type, given.X);
    X.Fill(Integers("X"));
    dY.Fill(Integers("dY"));
    const Status host = AverageForward(X, Y, /*on_gpu=*/false);
    Compare(Y, host, AverageForward(X, Y, /*on_gpu=*/true));
    const Status of_host = AverageGradient(dY, X, dX, /*on_gpu=*/false);
    Compare(dX, of_host, AverageGradient(dY, X, dX, /*on_gpu=*/true));
    // What is exact even where it is added, in each type that has the size.
    dY.Fill([size = static_cast<double>(given.size()), draw = Integers("exact")] {
      return draw() == 0 ? 0 : size;
    });
    sums.Fill([] { return 0; });
    const Status gpu = AverageGradient(dY, X, sums, /*on_gpu=*/true, /*accumulate=*/true);
    const Status plain = AverageGradient(dY, X, dX, /*on_gpu=*/false);
    ASSERT_TRUE(plain.ok()) << plain.message();
    CompareSums(sums, sums.HostValues(), dX.HostValues(), gpu);
    if (std::ranges::any_of(dX.HostValues(), [](double x) { return x != 0 && x != 1; })) {
      return;  // the type does not have the size
    }
    const std::vector<double> once = sums.GpuValues();
    const Status again = AverageGradient(dY, X, sums, /*on_gpu=*/true, /*accumulate=*/true);
    CompareSums(sums, once, once, again);
  }

  const Context host_;
  const Context gpu_{ContextOptions{.device = {Backend::kCuda, 0}}};
};

constexpr DataType kTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

TEST_F(CudaWholeWindows, AveragesAndTheirGradients) {
  for (const WholeCase& given : Cases()) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckAverage(given, type);
    }
  }
}

TEST_F(CudaWholeWindows, TheFirstOfTheLargestIsFoundWhereverItIs) {
  for (const WholeCase& given : Cases()) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckMax(given, type, OneLargest(given.size(), /*has_nans=*/false));
    }
  }
}

TEST_F(CudaWholeWindows, TheLastNanIsFoundWhereverItIs) {
  for (const WholeCase& given : Cases()) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckMax(given, type, OneLargest(given.size(), /*has_nans=*/true));
    }
  }
}

TEST_F(CudaWholeWindows, TiesOfInfinitiesAndNans) {
  for (const WholeCase& given : Cases()) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckMax(given, type, Ties());
      CheckMax(given, type, [] { return -kInfinity; });
    }
  }
}

/// So many channels that a warp has one for itself, for more than a batch of vectors.
TEST_F(CudaWholeWindows, ManyLongChannels) {
  const WholeCase given = {"many", {64, 64, 2, 257}};
  CheckMax(given, DataType::kDouble, OneLargest(given.size(), /*has_nans=*/true));
}

/// A thread has several runs, of vectors and of single elements, whose ends are no whole batches.
TEST_F(CudaWholeWindows, ChannelsOfSeveralRuns) {
  for (const std::int64_t size : {1'100'004, 533'001}) {
    const WholeCase given = {"runs", {1, 1, size}};
    SCOPED_TRACE(size);
    CheckMax(given, DataType::kFloat, OneLargest(size, /*has_nans=*/false));
    CheckAverage(given, DataType::kFloat);
  }
}

/// Gradients that lie apart, or are the same for all, are spread over contiguous memory.
TEST_F(CudaWholeWindows, GradientsThatLieApartAreSpread) {
  const Sizes dims = {3, 5, 7, 9};
  for (const Sizes& strides : {Sizes{10, 2, 1, 1}, Sizes{11, 2, 1, 1}, Sizes{0, 0, 0, 0}}) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(strides[0]);
      GpuTensor X(type, dims, Layout::kContiguous);
      GpuTensor dX(type, dims, Layout::kContiguous);
      GpuTensor dY(type, {3, 5, 1, 1}, strides);
      dY.Fill(Integers("apart"));
      const Status host = AverageGradient(dY, X, dX, /*on_gpu=*/false);
      Compare(dX, host, AverageGradient(dY, X, dX, /*on_gpu=*/true));
    }
  }
}

}  // namespace
}  // namespace gradsmith::pool
