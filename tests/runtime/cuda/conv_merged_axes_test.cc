#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "gradsmith/cache.h"
#include "runtime/cuda/op_problems.h"

/// Convolutions of volumes that are computed as those of images.
namespace gradsmith::cuda {
namespace {

ConvShape Pointwise() {
  return {.name = "pointwise", .x = {2, 5, 3, 4, 7}, .w = {6, 5, 1, 1, 1}};
}
/// Along the first axis alone.
ConvShape Temporal() {
  return {
      .name = "temporal",
      .x = {2, 4, 6, 5, 3},
      .w = {6, 2, 3, 1, 1},
      .strides = {2, 1, 1},
      .pads = {1, 0, 0, 0, 0, 0},
      .group = 2};
}
/// Along the others alone.
ConvShape Spatial() {
  return {
      .name = "spatial",
      .x = {2, 4, 3, 5, 7},
      .w = {5, 4, 1, 3, 2},
      .strides = {1, 2, 1},
      .pads = {0, 1, 0, 0, 1, 1},
      .dilations = {1, 1, 2}};
}

class CudaConvMergedAxes : public CudaTest {};

/// How many choices that were made last are those of images, of so many.
int ChoicesForImages(int count) {
  int of_images = 0;
  for (const CachedChoice& choice : CachedChoices()) {
    if (count-- == 0) {
      break;
    }
    const std::size_t strides = choice.problem.find("strides [");
    const std::string axes =
        choice.problem.substr(strides, choice.problem.find(']', strides) - strides);
    of_images += std::ranges::count(axes, ',') == 1 ? 1 : 0;
  }
  return of_images;
}

TEST_F(CudaConvMergedAxes, AreRight) {
  Random random("merged axes");
  for (const ConvShape& shape : {Pointwise(), Temporal(), Spatial()}) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : kDenseLayouts) {
        for (const OpCall& call :
             {MakeConv(shape, type, layout, random), MakeConvGrad(shape, type, layout, random)}) {
          ASSERT_TRUE(ClearCache().ok());
          ASSERT_NO_FATAL_FAILURE(RunRepeatedly(call));
          const bool is_merged =
              shape.w[2] > 1 || shape.w[3] == 1 || layout == Layout::kChannelsLast;
          const int choices = call.op == "Conv" ? 1 : 2;
          EXPECT_EQ(ChoicesForImages(choices + 1) >= choices, is_merged)
              << call.Describe() << RecentChoices();
        }
      }
    }
  }
}

/// Where x and dX lie in unlike layouts, one of dX and dW may be merged and the other not.
TEST_F(CudaConvMergedAxes, AreRightWhereLayoutsDiffer) {
  Random random("merged axes, unlike layouts");
  for (const ConvShape& shape : {Pointwise(), Temporal(), Spatial()}) {
    for (const Layout layout : kDenseLayouts) {
      for (const Layout of_dy : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
        OpCall call = MakeConvGrad(shape, DataType::kFloat, layout, of_dy);
        call.FillInputs(random);
        ASSERT_NO_FATAL_FAILURE(RunRepeatedly(call));
      }
    }
  }
}

TEST_F(CudaConvMergedAxes, AreRightOfTransposedOnes) {
  Random random("merged axes, transposed");
  for (const ConvShape& shape : {Pointwise(), Temporal(), Spatial()}) {
    for (const Layout layout : kDenseLayouts) {
      ASSERT_NO_FATAL_FAILURE(
          RunRepeatedly(MakeConvTransposeGrad(shape, DataType::kFloat, layout, random)));
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
