#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/gpu_tensor.h"
#include "runtime/cuda/map_call.h"

/// The pattern `map` on CUDA with inputs that are broadcast, where vectors of the output begin in a
/// row and end in the next.
namespace gradsmith::cuda {
namespace {

struct Shape {
  Sizes out;
  Sizes condition;
  Sizes a;
  Sizes b;
  /// How `b` lies in memory; empty where it is contiguous.
  Sizes strides_of_b = {};
  std::size_t misaligned_b = 0;
};

class CudaMapBroadcast : public GpuTest {
 protected:
  static void Check(const Shape& shape, DataType type) {
    const Sizes strides = shape.strides_of_b.empty()
                              ? support::StridesFor(support::Layout::kContiguous, shape.b)
                              : shape.strides_of_b;
    reference::Random random("map broadcast");
    GpuTensor condition(DataType::kBool, shape.condition, support::Layout::kContiguous);
    GpuTensor A(type, shape.a, support::Layout::kContiguous);
    GpuTensor B(type, shape.b, strides, shape.misaligned_b);
    GpuTensor Y(type, shape.out, support::Layout::kContiguous);
    condition.Fill([&] { return static_cast<double>(random.Integer(0, 1)); });
    A.Fill([&] { return static_cast<double>(random.Integer(1, 99)); });
    B.Fill([&] { return static_cast<double>(random.Integer(-99, -1)); });
    const std::vector<double> is_a = condition.HostValues();
    const std::vector<double> a = A.HostValues();
    const std::vector<double> b = B.HostValues();
    std::vector<double> expected(Y.HostValues().size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool takes_a = is_a[BroadcastPlace(shape.condition, shape.out, i)] != 0;
      expected[i] = takes_a ? a[BroadcastPlace(shape.a, shape.out, i)]
                            : b[BroadcastPlace(shape.b, shape.out, i)];
    }
    const TensorRef given = condition.GpuRef();
    const TensorRef of_a = A.GpuRef();
    const TensorRef of_b = B.GpuRef();
    const TensorRef out = Y.GpuRef();
    const Status status = RunOnGpu("Where", type, {given, of_a, of_b}, {out});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(Y.GpuValues(), expected);
    EXPECT_TRUE(Y.SurroundingsIntact());
  }
};

TEST_F(CudaMapBroadcast, RowsThatAreNoWholeVectors) {
  const std::vector<Shape> shapes = {
      // One for each row, one for each column, one for all.
      {.out = {7, 27}, .condition = {7, 27}, .a = {7, 1}, .b = {7, 27}},
      {.out = {7, 27}, .condition = {7, 1}, .a = {27}, .b = {7, 27}},
      {.out = {7, 27}, .condition = {27}, .a = {7, 27}, .b = {}},
      // Rows shorter than a vector, and more dims than two.
      {.out = {50, 3}, .condition = {3}, .a = {50, 1}, .b = {50, 3}},
      {.out = {4, 5, 9}, .condition = {5, 1}, .a = {4, 1, 9}, .b = {9}},
      // More vectors than threads that are there at once.
      {.out = {301, 1003}, .condition = {1003}, .a = {301, 1}, .b = {301, 1003}},
      // What is broadcast lies apart, and what is not does not lie in vectors.
      {.out = {7, 27}, .condition = {7, 1}, .a = {27}, .b = {7, 1}, .strides_of_b = {3, 1}},
      {.out = {7, 27}, .condition = {7, 1}, .a = {27}, .b = {7, 27}, .strides_of_b = {30, 1}},
      {.out = {7, 27}, .condition = {7, 1}, .a = {27}, .b = {7, 27}, .misaligned_b = 1},
  };
  for (const Shape& shape : shapes) {
    for (const DataType type :
         {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
      SCOPED_TRACE(testing::PrintToString(shape.out) + testing::PrintToString(shape.condition));
      Check(shape, type);
    }
  }
}

TEST_F(CudaMapBroadcast, AContextTellsApartWhichInputsHaveTheSameDims) {
  constexpr auto kType = DataType::kFloat;
  Registry registry;
  ASSERT_TRUE(RegisterAll(registry).ok());
  const Kernel where = *Kernel::Create(registry, "Where", {kType}, Backend::kCuda);
  const Context context(ContextOptions{.device = {Backend::kCuda, 0}});
  GpuTensor condition(DataType::kBool, {5}, support::Layout::kContiguous);
  GpuTensor A(kType, {4, 5}, support::Layout::kContiguous);
  bool is_a = false;
  condition.Fill([&] { return (is_a = !is_a) ? 1.0 : 0.0; });
  double next = 0;
  A.Fill([&] { return ++next; });
  // B has the dims of the condition, then those of A, and again.
  for (const Sizes& dims : std::vector<Sizes>{{5}, {4, 5}, {5}, {4, 5}}) {
    SCOPED_TRACE(testing::PrintToString(dims));
    GpuTensor B(kType, dims, support::Layout::kContiguous);
    GpuTensor Y(kType, {4, 5}, support::Layout::kContiguous);
    next = 0;
    B.Fill([&] { return --next; });
    const Status status =
        where.Run(context, {condition.GpuRef(), A.GpuRef(), B.GpuRef()}, {Y.GpuRef()});
    ASSERT_TRUE(status.ok()) << status.message();
    const std::vector<double> b = B.HostValues();
    std::vector<double> expected;
    for (std::size_t i = 0; i < 20; ++i) {
      expected.push_back(i % 5 % 2 == 0 ? static_cast<double>(i + 1) : b[i % b.size()]);
    }
    EXPECT_EQ(Y.GpuValues(), expected);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
