#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gradsmith/context.h"
#include "pool/kernels.h"
#include "runtime/cuda/gpu_tensor.h"

/// Pooling on the GPU beside the CPU, on integers: every form of kernel (tiles, channels,
/// elements), aligned and not, gives the same bits.
namespace gradsmith::pool {
namespace {

using cuda::GpuTensor;
using cuda::Sizes;
using support::Layout;

/// A call: attributes, and the tensors' layout.
struct PoolCase {
  std::string name;
  AveragePoolAttributes average;
  Sizes X;
  Layout layout = Layout::kContiguous;
  /// How many elements all data are off a 64-byte boundary.
  std::size_t misaligned = 0;
  std::int64_t storage_order = 0;

  [[nodiscard]] MaxPoolAttributes max() const {
    return {static_cast<const WindowAttributes&>(average), storage_order};
  }
  [[nodiscard]] Sizes Y() const {
    Sizes dims = X;
    const Result<Dims> spatial =
        PooledSpatial(average, support::ToIntList({X.begin() + 2, X.end()}));
    EXPECT_TRUE(spatial.ok()) << spatial.status().message();
    for (int axis = 0; spatial.ok() && axis < spatial->size(); ++axis) {
      dims.at(2 + axis) = (*spatial)[axis];
    }
    return dims;
  }
};

/// Windows over one or two axes: runs of elements and of channels, whole vectors or not, and tiles.
std::vector<PoolCase> CasesOfPlanes() {
  return {
      {"runs", {{.kernel_shape = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}}}, {2, 3, 9, 16}},
      {"dilated_runs",
       {{.kernel_shape = {2, 3}, .pads = {0, 2, 1, 2}, .dilations = {1, 2}}, true},
       {1, 2, 4, 24}},
      {"channels",
       {{.kernel_shape = {3, 2}, .strides = {1, 2}, .ceil_mode = true}},
       {2, 16, 5, 6},
       Layout::kChannelsLast},
      {"odd_channels",
       {{.kernel_shape = {2, 2}, .strides = {3, 2}}},
       {2, 3, 7, 5},
       Layout::kChannelsLast},
      {"misaligned_runs", {{.kernel_shape = {3}, .pads = {1, 1}}}, {2, 3, 16}, {}, 1},
      {"misaligned_channels", {{.kernel_shape = {2, 2}}}, {1, 8, 3, 3}, Layout::kChannelsLast, 1},
      {"strided",
       {{.kernel_shape = {2, 1, 3}, .strides = {1, 2, 1}, .dilations = {2, 1, 1}}},
       {1, 2, 4, 3, 8},
       Layout::kStrided},
      {"column_major", {{.kernel_shape = {2, 2}, .strides = {2, 2}}}, {1, 2, 6, 8}, {}, 0, 1},
      {"tiles_of_rows",
       {{.kernel_shape = {3, 3}, .strides = {2, 1}, .pads = {1, 1, 1, 1}}},
       {1, 2, 151, 61}},
      {"tiles_of_a_row", {{.kernel_shape = {4}, .strides = {2}, .pads = {2, 2}}}, {1, 2, 9001}},
      {"tiles_of_channels", {{.kernel_shape = {2, 2}, .pads = {1, 0, 0, 0}}}, {1, 3500, 3, 3}},
      {"rectangles",
       {{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}, .dilations = {1, 1}}},
       {1, 24, 41, 37},
       Layout::kChannelsLast},
      {"holes", {{.kernel_shape = {2, 1}, .strides = {3, 2}, .pads = {1, 0, 0, 1}}}, {2, 3, 10, 9}},
      {"one_element", {{.kernel_shape = {1}}}, {1, 1, 1}},
      {"window_of_all", {{.kernel_shape = {5, 8}}}, {2, 2, 5, 8}},
      {"far_pads",
       {{.kernel_shape = {2}, .strides = {5}, .pads = {9, 9}, .dilations = {4}}},
       {1, 2, 8}},
  };
}

/// Windows over three axes.
std::vector<PoolCase> CasesOfVolumes() {
  return {
      {"one_element_of_a_volume", {{.kernel_shape = {1, 1, 1}}}, {1, 1, 1, 1, 1}},
      {"no_volume", {{.kernel_shape = {2, 2, 2}}}, {0, 3, 4, 4, 4}},
      {"no_channels", {{.kernel_shape = {2, 2, 2}}}, {2, 0, 4, 4, 4}, Layout::kChannelsLast},
      {"volumes", {{.kernel_shape = {3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}}}, {2, 3, 7, 5, 9}},
      {"volumes_apart", {{.kernel_shape = {2, 2, 2}, .strides = {2, 2, 2}}}, {2, 5, 8, 6, 4}},
      {"volumes_of_channels",
       {{.kernel_shape = {3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}}},
       {2, 24, 6, 5, 7},
       Layout::kChannelsLast},
      {"volumes_of_channels_apart",
       {{.kernel_shape = {2, 2, 2}, .strides = {2, 2, 2}, .ceil_mode = true}},
       {1, 16, 5, 7, 3},
       Layout::kChannelsLast},
      {"tiles_of_volumes",
       {{.kernel_shape = {3, 2, 3}, .strides = {1, 1, 2}, .pads = {2, 0, 1, 0, 1, 1}}},
       {1, 2, 31, 67, 71}},
      {"tiles_of_a_row_of_volumes",
       {{.kernel_shape = {2, 1, 4}, .strides = {1, 1, 2}, .pads = {0, 0, 2, 1, 0, 2}}},
       {1, 1, 5, 1, 9001}},
      {"boxes",
       {{.kernel_shape = {3, 3, 3}, .strides = {2, 1, 1}, .pads = {1, 1, 1, 1, 1, 1}}},
       {1, 16, 21, 23, 19},
       Layout::kChannelsLast},
      {"dilated_volumes",
       {{.kernel_shape = {2, 3, 2}, .pads = {2, 1, 0, 1, 2, 1}, .dilations = {3, 1, 2}}},
       {1, 3, 9, 5, 7}},
      {"volumes_of_dilated_channels",
       {{.kernel_shape = {2, 2, 3}, .pads = {0, 1, 2, 2, 0, 1}, .dilations = {2, 2, 1}}},
       {1, 8, 7, 6, 5},
       Layout::kChannelsLast},
      {"holes_in_volumes",
       {{.kernel_shape = {2, 1, 2}, .strides = {5, 2, 3}, .pads = {0, 0, 1, 1, 0, 0}}},
       {2, 3, 17, 5, 7}},
      {"holes_between_channels",
       {{.kernel_shape = {1, 2, 1}, .strides = {3, 3, 2}}},
       {1, 8, 11, 5, 7},
       Layout::kChannelsLast},
      {"column_major_volumes",
       {{.kernel_shape = {2, 2, 2}, .strides = {1, 2, 1}}},
       {1, 2, 5, 6, 3},
       {},
       0,
       1},
  };
}

/// Windows that tiles are cut by, also in pads and apart from each other.
std::vector<PoolCase> CasesOfManyWindows() {
  return {
      {"one_plane_of_windows",
       {{.kernel_shape = {3, 2, 2}, .strides = {2, 1, 1}, .pads = {1, 0, 0, 3, 0, 0}}},
       {1, 2, 1, 4, 5}},
      {"windows_of_rows",
       {{.kernel_shape = {4, 3}, .strides = {3, 2}, .pads = {2, 1, 3, 2}, .ceil_mode = true}, true},
       {3, 2, 131, 127}},
      {"windows_beyond_pads",
       {{.kernel_shape = {4, 3}, .strides = {3, 2}, .pads = {2, 1, 1, 0}, .ceil_mode = true}, true},
       {3, 2, 132, 127}},
      {"windows_of_channels_beyond_pads",
       {{.kernel_shape = {4, 3}, .strides = {3, 2}, .pads = {2, 1, 1, 0}, .ceil_mode = true}, true},
       {2, 16, 12, 7},
       Layout::kChannelsLast},
      {"windows_of_a_row",
       {{.kernel_shape = {4}, .strides = {3}, .pads = {3, 4}, .dilations = {2}}},
       {1, 3, 20011}},
      {"windows_of_many_channels",
       {{.kernel_shape = {3, 3}, .pads = {0, 1, 1, 0}}},
       {3, 1031, 5, 7}},
      {"windows_of_odd_planes", {{.kernel_shape = {5, 3}}}, {3, 1031, 5, 3}},
      {"windows_apart",
       {{.kernel_shape = {2, 1}, .strides = {5, 3}, .pads = {1, 0, 4, 2}}},
       {2, 3, 19, 14}},
      {"windows_in_pads",
       {{.kernel_shape = {2, 2, 1}, .strides = {2, 1, 1}, .pads = {4, 0, 1, 5, 3, 0}}, true},
       {1, 2, 3, 4, 5}},
  };
}

/// Windows that hold all elements of a channel, or nearly all.
std::vector<PoolCase> CasesOfWholePlanes() {
  return {
      {"whole_planes", {{.kernel_shape = {24, 36}}}, {3, 5, 24, 36}},
      {"whole_planes_of_few_vectors", {{.kernel_shape = {4, 6}}}, {3, 5, 4, 6}},
      {"whole_odd_planes", {{.kernel_shape = {27, 3}}}, {2, 65, 27, 3}},
      {"whole_large_odd_planes", {{.kernel_shape = {27, 81}}}, {2, 3, 27, 81}},
      {"misaligned_whole_planes", {{.kernel_shape = {8, 12}}}, {2, 3, 8, 12}, {}, 1},
      {"whole_channels", {{.kernel_shape = {12, 9}}}, {3, 24, 12, 9}, Layout::kChannelsLast},
      {"whole_channels_of_volumes",
       {{.kernel_shape = {3, 12, 18}}},
       {2, 40, 3, 12, 18},
       Layout::kChannelsLast},
      {"whole_odd_channels", {{.kernel_shape = {9, 12}}}, {3, 5, 9, 12}, Layout::kChannelsLast},
      {"window_of_most_planes", {{.kernel_shape = {4, 2, 2}}}, {1, 2, 5, 4, 4}},
  };
}

const std::vector<PoolCase>& Cases() {
  static const std::vector<PoolCase> kCases = [] {
    std::vector<PoolCase> cases;
    for (auto* of_kind : {CasesOfPlanes, CasesOfVolumes, CasesOfManyWindows, CasesOfWholePlanes}) {
      for (PoolCase& one : of_kind()) {
        cases.push_back(std::move(one));
      }
    }
    return cases;
  }();
  return kCases;
}

class CudaPool : public cuda::GpuTest {
 protected:
  static GpuTensor Make(const PoolCase& given, DataType type, const Sizes& dims) {
    return {type, dims, support::StridesFor(given.layout, dims), given.misaligned};
  }
  /// Small integers, multiples of what windows divide by.
  static void Fill(GpuTensor& tensor, std::int64_t multiple) {
    reference::Random random("pool");
    tensor.Fill([&] { return static_cast<double>(multiple * random.Integer(-4, 4)); });
  }
  /// Numbers of which many are equal, infinite or none.
  static void FillWithTies(GpuTensor& tensor) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    reference::Random random("ties");
    tensor.Fill([&] {
      const double nan = random.Chance(0.1) ? std::nan("") : 1;
      return random.Choice<double>({0, 0, 1, 1, nan, -kInfinity, -kInfinity, kInfinity});
    });
  }
  /// The kernels write nothing but elements, and the CPU's.
  static void Compare(const GpuTensor& tensor, const Status& host, const Status& gpu) {
    ASSERT_TRUE(host.ok()) << host.message();
    ASSERT_TRUE(gpu.ok()) << gpu.message();
    EXPECT_EQ(Comparable(tensor.GpuValues()), Comparable(tensor.HostValues()));
    EXPECT_TRUE(tensor.SurroundingsIntact());
  }

  /// NaN as a number, which is equal to itself.
  static std::vector<double> Comparable(std::vector<double> values) {
    std::ranges::replace_if(values, [](double value) { return std::isnan(value); }, 12345.0);
    return values;
  }

  /// The host's or the GPU's memory of a tensor.
  static TensorRef RefOf(GpuTensor& tensor, bool on_gpu) {
    return on_gpu ? tensor.GpuRef() : tensor.HostRef();
  }

  void CheckMaxPool(const PoolCase& given, DataType type, bool has_ties) const {
    GpuTensor X = Make(given, type, given.X);
    GpuTensor Y = Make(given, type, given.Y());
    GpuTensor dY = Make(given, type, given.Y());
    GpuTensor dX = Make(given, type, given.X);
    GpuTensor xy = Make(given, type, given.X);
    GpuTensor indices = Make(given, DataType::kInt64, given.Y());
    Fill(X, 1);
    Fill(dY, 1);
    if (has_ties) {
      FillWithTies(X);
    }
    const auto run = [&](bool on_gpu) {
      const ConstTensorRef x = RefOf(X, on_gpu);
      const ConstTensorRef dy = RefOf(dY, on_gpu);
      const TensorRef y = RefOf(Y, on_gpu);
      const TensorRef named = RefOf(indices, on_gpu);
      const TensorRef dx = RefOf(dX, on_gpu);
      const TensorRef dx_of_xy = RefOf(xy, on_gpu);
      const ConstTensorRef given_y = y;
      const ConstTensorRef given_indices = named;
      const Context& context = on_gpu ? gpu_ : host_;
      const auto forward = on_gpu ? MaxPool::RunCuda : MaxPool::RunCpu;
      const auto gradient = on_gpu ? MaxPoolGrad::RunCuda : MaxPoolGrad::RunCpu;
      const auto xy_gradient = on_gpu ? MaxPoolXYGrad::RunCuda : MaxPoolXYGrad::RunCpu;
      return std::array{
          forward(context, given.max(), {.X = &x}, {.Y = &y, .Indices = &named}),
          gradient(context, {given.max(), {}}, {.dY = &dy, .Indices = &given_indices}, {.dX = &dx}),
          xy_gradient(
              context, given.max(), {.dY = &dy, .X = &x, .Y = &given_y}, {.dX = &dx_of_xy})};
    };
    const auto host = run(false);
    const auto gpu = run(true);
    Compare(Y, host[0], gpu[0]);
    Compare(indices, host[0], gpu[0]);
    Compare(dX, host[1], gpu[1]);
    Compare(xy, host[2], gpu[2]);
    EXPECT_EQ(dX.GpuValues(), xy.GpuValues());
  }

  void CheckAveragePool(const PoolCase& given, DataType type) const {
    GpuTensor X = Make(given, type, given.X);
    GpuTensor Y = Make(given, type, given.Y());
    GpuTensor dY = Make(given, type, given.Y());
    GpuTensor dX = Make(given, type, given.X);
    Fill(X, 216);
    Fill(dY, 216);
    const auto run = [&](bool on_gpu) {
      const ConstTensorRef x = RefOf(X, on_gpu);
      const ConstTensorRef dy = RefOf(dY, on_gpu);
      const TensorRef y = RefOf(Y, on_gpu);
      const TensorRef dx = RefOf(dX, on_gpu);
      const Context& context = on_gpu ? gpu_ : host_;
      const auto forward = on_gpu ? AveragePool::RunCuda : AveragePool::RunCpu;
      const auto gradient = on_gpu ? AveragePoolGrad::RunCuda : AveragePoolGrad::RunCpu;
      return std::array{
          forward(context, given.average, {.X = &x}, {.Y = &y}),
          gradient(context, given.average, {.dY = &dy, .X = &x}, {.dX = &dx})};
    };
    const auto host = run(false);
    const auto gpu = run(true);
    Compare(Y, host[0], gpu[0]);
    Compare(dX, host[1], gpu[1]);
  }

  const Context host_;
  const Context gpu_{ContextOptions{.device = {Backend::kCuda, 0}}};
};

constexpr DataType kTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};

TEST_F(CudaPool, MaxPoolAndItsGradientsGiveTheBitsOfTheCpu) {
  for (const PoolCase& given : Cases()) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckMaxPool(given, type, /*has_ties=*/false);
    }
  }
}

TEST_F(CudaPool, TheFirstMaximumAndTheLastNanAreChosenAsOnTheCpu) {
  for (const PoolCase& given : Cases()) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckMaxPool(given, type, /*has_ties=*/true);
    }
  }
}

TEST_F(CudaPool, AveragePoolAndItsGradientGiveTheBitsOfTheCpu) {
  for (const PoolCase& given : Cases()) {
    for (const DataType type : kTypes) {
      SCOPED_TRACE(given.name + " " + std::string(ToString(type)));
      CheckAveragePool(given, type);
    }
  }
}

TEST_F(CudaPool, NoIndexIsUsedAsAnAddress) {
  for (const PoolCase& given : Cases()) {
    SCOPED_TRACE(given.name);
    GpuTensor dY = Make(given, DataType::kFloat, given.Y());
    GpuTensor dX = Make(given, DataType::kFloat, given.X);
    GpuTensor indices = Make(given, DataType::kInt64, given.Y());
    Fill(dY, 1);
    reference::Random random(given.name);
    // What has its low half within X, and what numbers elements of other windows.
    indices.Fill([&] {
      const auto near = static_cast<double>(random.Integer(-9, 99));
      return random.Choice<double>({near, near, near, 0x1p32, -0x1p32, 0x1p62});
    });
    const MaxPoolGradAttributes attributes = {given.max(), {}};
    const ConstTensorRef of_dy = dY.HostRef();
    const ConstTensorRef of_indices = indices.HostRef();
    const TensorRef of_dx = dX.HostRef();
    const Status host = MaxPoolGrad::RunCpu(
        host_, attributes, {.dY = &of_dy, .Indices = &of_indices}, {.dX = &of_dx});
    const ConstTensorRef gpu_dy = dY.GpuRef();
    const ConstTensorRef gpu_indices = indices.GpuRef();
    const TensorRef gpu_dx = dX.GpuRef();
    const Status gpu = MaxPoolGrad::RunCuda(
        gpu_, attributes, {.dY = &gpu_dy, .Indices = &gpu_indices}, {.dX = &gpu_dx});
    Compare(dX, host, gpu);
  }
}

TEST_F(CudaPool, RefusesAxesThatKernelsDoNotCount) {
  const AveragePoolAttributes attributes = {
      {.kernel_shape = {2},
       .strides = {std::int64_t{1} << 31U},
       .pads = {0, std::int64_t{1} << 30U}}};
  GpuTensor X(DataType::kFloat, {1, 1, 2}, Layout::kContiguous);
  GpuTensor Y(DataType::kFloat, {1, 1, 1}, Layout::kContiguous);
  const ConstTensorRef x = X.GpuRef();
  const TensorRef y = Y.GpuRef();
  const Status status = AveragePool::RunCuda(gpu_, attributes, {.X = &x}, {.Y = &y});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("expected at most 2^30 on CUDA"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace gradsmith::pool
