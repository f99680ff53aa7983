#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/map_call.h"

/// The pattern `map` on CUDA with sums over what outputs lack, where blocks and pieces share them.
namespace gradsmith::cuda {
namespace {

struct Shape {
  Sizes dims;
  /// How the big tensors lie in memory; empty where they are contiguous.
  Sizes strides;
  Sizes slope;
  std::size_t misaligned = 0;
};

/// Sums of integers, which are exact in any order.
struct Sums {
  std::vector<double> of_x;
  std::vector<double> of_slope;
};

Sums ExpectedSums(
    const Shape& shape,
    const std::vector<double>& dY,
    const std::vector<double>& X,
    const std::vector<double>& slope) {
  Sums sums = {{}, std::vector<double>(slope.size())};
  for (std::size_t i = 0; i < X.size(); ++i) {
    const std::size_t place = BroadcastPlace(shape.slope, shape.dims, i);
    sums.of_x.push_back(X[i] > 0 ? dY[i] : slope[place] * dY[i]);
    sums.of_slope[place] += X[i] > 0 ? 0 : X[i] * dY[i];
  }
  return sums;
}

class CudaMapSums : public GpuTest {
 protected:
  /// dSlope is added to 5 in every second run, dX is written over dY.
  static void Check(const Shape& shape, DataType type) {
    const Sizes strides = shape.strides.empty()
                              ? support::StridesFor(support::Layout::kContiguous, shape.dims)
                              : shape.strides;
    reference::Random random("map sums");
    const auto draw = [&] { return static_cast<double>(random.Integer(-1, 1)); };
    for (const bool accumulates : {false, true}) {
      GpuTensor dY(type, shape.dims, strides, shape.misaligned);
      GpuTensor X(type, shape.dims, strides, shape.misaligned);
      GpuTensor slope(type, shape.slope, support::Layout::kContiguous);
      GpuTensor dSlope(type, shape.slope, support::Layout::kContiguous);
      dY.Fill(draw);
      X.Fill(draw);
      slope.Fill(draw);
      if (accumulates) {
        dSlope.Fill([] { return 5; });
      }
      const Sums expected =
          ExpectedSums(shape, dY.HostValues(), X.HostValues(), slope.HostValues());
      const TensorRef in = dY.GpuRef();
      const TensorRef x = X.GpuRef();
      const TensorRef s = slope.GpuRef();
      TensorRef out = dSlope.GpuRef();
      out.accumulate = accumulates;
      const Status status = RunOnGpu("PReluGrad", type, {in, x, s}, {in, out});
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(dY.GpuValues(), expected.of_x);
      std::vector<double> sums = expected.of_slope;
      for (double& sum : sums) {
        sum += accumulates ? 5 : 0;
      }
      EXPECT_EQ(dSlope.GpuValues(), sums);
      EXPECT_TRUE(dY.SurroundingsIntact());
      EXPECT_TRUE(dSlope.SurroundingsIntact());
    }
  }
};

TEST_F(CudaMapSums, EveryForm) {
  const std::vector<Shape> shapes = {
      // A channel's terms, in vectors and one by one, in one piece and in several.
      {{2, 3, 8, 8}, {}, {3, 1, 1}},
      {{2, 3, 160, 160}, {}, {3, 1, 1}},
      {{2, 3, 161, 161}, {}, {3, 1, 1}},
      {{3, 5, 64}, {}, {5, 1}, 1},
      // Places beside each other: the last dim, channels last, few and many.
      {{500, 24}, {}, {24}},
      {{4000, 23}, {}, {23}},
      {{3, 700}, {}, {700}},
      {{2, 16, 30, 40}, {19200, 1, 640, 16}, {16, 1, 1}},
      // Rows that are no whole vectors, several of which are, with and without a few behind them.
      {{515, 27}, {}, {27}},
      {{2000, 21}, {}, {21}},
      {{261, 6}, {}, {6}},
      {{4000, 23}, {}, {23}, 1},
      {{7, 27}, {}, {27}},
      // One number for all, of which the last are no vector.
      {{91203}, {}, {1}},
      // Everything, every second dim, and few terms for many places.
      {{300, 301}, {}, {}},
      {{8, 6, 7, 5}, {}, {8, 1, 7, 1}},
      {{8, 6, 7, 5}, {}, {6, 1, 5}},
      {{2, 900, 4}, {}, {900, 1}},
  };
  for (const Shape& shape : shapes) {
    for (const DataType type : {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16}) {
      SCOPED_TRACE(testing::PrintToString(shape.dims) + testing::PrintToString(shape.slope));
      Check(shape, type);
    }
  }
}

/// One number for all of X and dY, which no 32-bit number counts.
TEST_F(CudaMapSums, MoreElementsThan32BitsCount) {
  if (IsEmulated()) {
    GTEST_SKIP() << "the emulated GPU takes hours for so many elements";
  }
  constexpr std::int64_t kMany = (std::int64_t{1} << 31U) + 8;
  GpuTensor one(DataType::kDouble, {1}, support::Layout::kContiguous);
  GpuTensor slope(DataType::kDouble, {1}, support::Layout::kContiguous);
  GpuTensor dSlope(DataType::kDouble, {1}, support::Layout::kContiguous);
  one.Fill([] { return -1; });
  slope.Fill([] { return 1; });
  TensorRef all = one.GpuRef();
  all.dims = {kMany};
  all.strides = {0};
  const ConstTensorRef in = all;
  const ConstTensorRef of_slope = slope.GpuRef();
  const TensorRef out = dSlope.GpuRef();
  const Status status =
      RunOnGpu("PReluGrad", DataType::kDouble, {in, in, of_slope}, {TensorRef(), out});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(dSlope.GpuValues(), std::vector<double>(1, static_cast<double>(kMany)));
}

/// Sums of half that its own digits would not hold.
TEST_F(CudaMapSums, HalfIsSummedInFloat) {
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    GpuTensor ones(type, {4, 3000}, support::Layout::kContiguous);
    GpuTensor minus(type, {4, 3000}, support::Layout::kContiguous);
    GpuTensor slope(type, {4, 1}, support::Layout::kContiguous);
    GpuTensor dSlope(type, {4, 1}, support::Layout::kContiguous);
    ones.Fill([] { return 1; });
    minus.Fill([] { return -0.125; });
    slope.Fill([] { return 1; });
    const ConstTensorRef dY = ones.GpuRef();
    const ConstTensorRef X = minus.GpuRef();
    const ConstTensorRef of_slope = slope.GpuRef();
    const TensorRef out = dSlope.GpuRef();
    const Status status = RunOnGpu("PReluGrad", type, {dY, X, of_slope}, {TensorRef(), out});
    ASSERT_TRUE(status.ok()) << status.message();
    // 375 in half; bf16 has 376 beside it.
    const double expected = type == DataType::kMLFloat16 ? -375 : -376;
    EXPECT_EQ(dSlope.GpuValues(), std::vector<double>(4, expected));
  }
}

}  // namespace
}  // namespace gradsmith::cuda
