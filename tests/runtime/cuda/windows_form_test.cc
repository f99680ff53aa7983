#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "patterns/cuda/windows.h"
#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/pool_windows_image.h"

/// In which form tasks of the pattern `windows` are computed: an operator that has no kernels gets
/// an error that names the kernel. That they compute the same, pool_test.cc tells.
namespace gradsmith::cuda {
namespace {

using internal::WindowAxis;
using internal::WindowsGeometry;
using support::Layout;

constexpr WindowsKind kReduction = {.kernels = "None", .has_whole = true, .has_tiles = true};
constexpr WindowsKind kGivers = {
    .kernels = "None",
    .gathers = true,
    .has_places = true,
    .has_tiles = true};
constexpr WindowsKind kSharesOfWhole = {
    .kernels = "None",
    .gathers = true,
    .has_whole = true,
    .has_tiles = true};
constexpr WindowsKind kShares = {.kernels = "None", .gathers = true, .has_tiles = true};

constexpr std::array<std::string_view, 3> kOperands = {"first", "second", "third"};

/// Windows of one size and stride along axes of these sizes, without pads.
WindowsGeometry GeometryOf(const Sizes& input, std::int64_t size, std::int64_t stride) {
  WindowsGeometry geometry;
  geometry.rank = static_cast<int>(input.size());
  for (std::size_t axis = 0; axis < input.size(); ++axis) {
    geometry.axes[internal::kWindowAxes - input.size() + axis] = {
        .input = input[axis],
        .output = ((input[axis] - size) / stride) + 1,
        .size = size,
        .stride = stride};
  }
  return geometry;
}

class CudaWindowsForm : public GpuTest {
 protected:
  /// The form and type of the kernel that a task of floats is computed by.
  static std::string FormOf(
      const WindowsKind& kind,
      Layout layout,
      std::int64_t channels,
      const Sizes& input,
      const WindowsGeometry& geometry,
      const WindowsPolicy& policy = kWindowsPolicies.front()) {
    Sizes x = {2, channels};
    Sizes y = {2, channels};
    x.insert(x.end(), input.begin(), input.end());
    for (std::size_t axis = 0; axis < input.size(); ++axis) {
      y.push_back(geometry.axes[internal::kWindowAxes - input.size() + axis].output);
    }
    const GpuTensor over_input(DataType::kFloat, x, layout);
    const GpuTensor over_windows(DataType::kFloat, y, layout);
    const GpuTensor indices(DataType::kInt64, y, layout);
    static constexpr OpInfo kOp = {.name = "None", .operands = kOperands, .inputs = 1};
    OpTask task;
    task.op = &kOp;
    task.tensors.push_back(kind.gathers ? over_windows.GpuRef() : over_input.GpuRef());
    if (kind.has_places) {
      task.tensors.push_back(indices.GpuRef());
    }
    task.tensors.push_back(kind.gathers ? over_input.GpuRef() : over_windows.GpuRef());
    AddChoices(geometry, &task);
    const auto plan = MakeWindowsPlan(policy, kImage_pool_windows, kind, task);
    EXPECT_FALSE(plan.ok());
    constexpr std::string_view kBefore = "there is no kernel gradsmith_windows_";
    const std::string message(plan.status().message());
    const std::size_t at = message.find(kBefore);
    return at == std::string::npos ? message : message.substr(at + kBefore.size());
  }
  static std::string FormOf(
      const WindowsKind& kind,
      Layout layout,
      const Sizes& input,
      std::int64_t size,
      std::int64_t stride,
      std::int64_t channels = 8) {
    return FormOf(kind, layout, channels, input, GeometryOf(input, size, stride));
  }
};

TEST_F(CudaWindowsForm, GradientsOfVolumesGoPlaneByPlane) {
  EXPECT_EQ(FormOf(kGivers, Layout::kContiguous, {9, 7, 8}, 3, 1), "volumes_None_f32");
  EXPECT_EQ(FormOf(kGivers, Layout::kContiguous, {9, 7, 8}, 2, 3), "volumes_None_f32");
  EXPECT_EQ(
      FormOf(kGivers, Layout::kChannelsLast, {9, 7, 8}, 3, 1), "volumes_of_channels_None_f32");
  EXPECT_EQ(FormOf(kGivers, Layout::kStrided, {9, 7, 8}, 3, 1), "elements_None_f32");
  EXPECT_EQ(FormOf(kGivers, Layout::kContiguous, {7, 8}, 3, 1), "tiles_None_f32");
  EXPECT_EQ(FormOf(kShares, Layout::kContiguous, {9, 7, 8}, 3, 1), "tiles_None_f32");
  EXPECT_EQ(FormOf(kShares, Layout::kChannelsLast, {9, 7, 8}, 3, 1), "tiles_of_channels_None_f32");
}

TEST_F(CudaWindowsForm, PlanesThatDoNotFitSharedMemoryGoTheOldWay) {
  // A ring of 600 planes of 8 rows, of which a tile has at least one.
  WindowsGeometry geometry = GeometryOf({700, 8, 9}, 2, 1);
  WindowAxis& planes = geometry.axes[0];
  planes.dilation = 599;
  planes.output = 100;
  EXPECT_EQ(FormOf(kGivers, Layout::kContiguous, 8, {700, 8, 9}, geometry), "elements_None_f32");
  planes.dilation = 9;
  planes.output = 690;
  EXPECT_EQ(FormOf(kGivers, Layout::kContiguous, 8, {700, 8, 9}, geometry), "volumes_None_f32");
}

/// Another policy cuts work otherwise: what decides is in the table.
TEST_F(CudaWindowsForm, ThePolicyDecides) {
  const auto form_of = [](const Sizes& input, std::int64_t size, const WindowsPolicy& policy) {
    return FormOf(kReduction, Layout::kContiguous, 8, input, GeometryOf(input, size, 1), policy);
  };
  WindowsPolicy policy = kWindowsPolicies.front();
  EXPECT_EQ(form_of({8, 8}, 8, policy), "whole_None_f32");
  EXPECT_EQ(form_of({7, 8}, 3, policy), "tiles_None_f32");
  policy.order.most_unshared_of_vectors = 64;
  EXPECT_EQ(form_of({8, 8}, 8, policy), "tiles_None_f32");
  policy.tile_bytes = 64;
  EXPECT_EQ(form_of({7, 8}, 3, policy), "elements_None_f32");
}

TEST_F(CudaWindowsForm, ReductionsOfContiguousTensorsGoByTiles) {
  for (const Sizes& input : {Sizes{30}, Sizes{7, 8}, Sizes{9, 7, 8}}) {
    EXPECT_EQ(FormOf(kReduction, Layout::kContiguous, input, 3, 2), "tiles_None_f32");
    EXPECT_EQ(FormOf(kReduction, Layout::kStrided, input, 3, 2), "elements_None_f32");
    EXPECT_EQ(FormOf(kReduction, Layout::kChannelsLast, input, 3, 2), "channels_None_f32");
  }
}

TEST_F(CudaWindowsForm, WholeChannelsAreShared) {
  EXPECT_EQ(FormOf(kReduction, Layout::kContiguous, {8, 8}, 8, 1), "whole_None_f32");
  EXPECT_EQ(FormOf(kReduction, Layout::kChannelsLast, {9, 9}, 9, 1), "whole_channels_None_f32");
  // Odd numbers of elements have no vectors: few of them are quicker by tiles.
  EXPECT_EQ(FormOf(kReduction, Layout::kContiguous, {7, 7}, 7, 1), "tiles_None_f32");
  EXPECT_EQ(FormOf(kReduction, Layout::kContiguous, {33, 33}, 33, 1), "whole_None_f32");
  // Five channels are no vectors.
  EXPECT_EQ(FormOf(kReduction, Layout::kChannelsLast, {9, 9}, 9, 1, 5), "whole_None_f32");
}

TEST_F(CudaWindowsForm, SharesOfWholeChannelsAreSpread) {
  const auto form_of = [](Layout layout, const Sizes& input, std::int64_t channels = 8) {
    return FormOf(kSharesOfWhole, layout, input, input[0], 1, channels);
  };
  EXPECT_EQ(form_of(Layout::kContiguous, {8, 8}), "whole_None_f32");
  EXPECT_EQ(form_of(Layout::kContiguous, {7, 7}), "whole_None_f32");
  EXPECT_EQ(form_of(Layout::kContiguous, {4}), "whole_None_f32");
  EXPECT_EQ(form_of(Layout::kChannelsLast, {3, 3}), "whole_channels_None_f32");
  // Vectors would have elements of more than two channels, or of channels that are apart.
  EXPECT_EQ(form_of(Layout::kContiguous, {3}), "tiles_None_f32");
  EXPECT_EQ(form_of(Layout::kStrided, {7, 7}), "elements_None_f32");
  EXPECT_EQ(form_of(Layout::kChannelsLast, {9, 9}, 5), "elements_None_f32");
}

}  // namespace
}  // namespace gradsmith::cuda
