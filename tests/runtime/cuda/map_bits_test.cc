#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/map_call.h"

/// The pattern `map` on CUDA with an input of bits, in each of its forms.
namespace gradsmith::cuda {
namespace {

struct Shape {
  Sizes dims;
  /// How dY and dX lie in memory; empty where they are contiguous.
  Sizes strides = {};
  std::int64_t word_step = 1;
  std::size_t misaligned = 0;
};

class CudaMapBits : public GpuTest {
 protected:
  /// The ratio is a half, so that what is kept is doubled; dX is written over dY.
  static void Check(const Shape& shape, DataType type) {
    const Sizes strides = shape.strides.empty()
                              ? support::StridesFor(support::Layout::kContiguous, shape.dims)
                              : shape.strides;
    reference::Random random("map bits");
    GpuTensor dY(type, shape.dims, strides, shape.misaligned);
    dY.Fill([&] { return static_cast<double>(random.Integer(1, 9)); });
    std::vector<double> expected = dY.HostValues();
    const auto words = static_cast<std::int64_t>((expected.size() + 31) / 32);
    GpuTensor mask(DataType::kUint32, {words}, {shape.word_step});
    mask.Fill([&] { return static_cast<double>(random.Integer(0, 0xFFFFFFFF)); });
    const std::vector<double> bits = mask.HostValues();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto word = static_cast<std::uint32_t>(bits[i / 32]);
      expected[i] *= (word >> (i % 32) & 1U) != 0 ? 2 : 0;
    }
    const TensorRef in = dY.GpuRef();
    const TensorRef m = mask.GpuRef();
    const Status status = RunOnGpu("BitmaskDropoutGrad", type, {in, m}, {in});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(dY.GpuValues(), expected);
    EXPECT_TRUE(dY.SurroundingsIntact());
  }
};

TEST_F(CudaMapBits, EveryForm) {
  const std::vector<Shape> shapes = {
      // Dense, with and without a tail; words that lie apart.
      {.dims = {8, 64}},
      {.dims = {3, 11, 331}},
      {.dims = {1000}, .word_step = 2},
      // Vectors of rows that lie apart.
      {.dims = {5, 40}, .strides = {48, 1}},
      // One by one: rows between vectors, channels last, an address that is not aligned.
      {.dims = {5, 37}, .strides = {40, 1}},
      {.dims = {2, 16, 3, 5}, .strides = {240, 1, 80, 16}},
      {.dims = {7, 33}, .misaligned = 1},
      {.dims = {}},
  };
  for (const Shape& shape : shapes) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      SCOPED_TRACE(testing::PrintToString(shape.dims));
      Check(shape, type);
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
