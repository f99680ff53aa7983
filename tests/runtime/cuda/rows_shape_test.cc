#include "patterns/cuda/rows_shape.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "patterns/rows.h"
#include "runtime/cuda/gpu_tensor.h"

/// Which kernels of the pattern `rows` are chosen, and how a task is cut for a GPU.
namespace gradsmith::cuda {
namespace {

/// A tensor in memory that is not touched.
TensorRef Ref(DataType type, const Dims& dims, const Strides& strides, std::size_t misaligned = 0) {
  alignas(16) static std::array<std::byte, 32> memory;
  return {type, memory.data() + misaligned, dims, strides, {}};
}

/// X, from which Y and a number for each row are made.
constexpr internal::RowsCounts kCounts = {.inputs = 1, .outputs = 1, .row_outputs = 1};

RowsForm FormOfChannels(DataType type, const Dims& dims, const Strides& strides, bool many_dims) {
  const internal::RowsAxes axes = internal::ChannelsOf(dims.size(), 1);
  const std::array<TensorRef, 3> tensors = {
      Ref(type, dims, strides), Ref(type, dims, strides), Ref(type, {dims[1]}, {1})};
  const RowsInfo info = {.counts = kCounts, .rows_of_many_dims = many_dims};
  return FormOf(internal::RowsTaskOf(tensors, kCounts, axes, {}), tensors, info);
}

TEST(RowsShape, ChannelsAreReadInVectors) {
  // NCHW: the batch and the spatial dims are not one.
  RowsForm form = FormOfChannels(DataType::kFloat, {4, 3, 2, 6}, {36, 12, 6, 1}, true);
  EXPECT_FALSE(form.is_across);
  EXPECT_EQ(form.vector, 4);
  form = FormOfChannels(DataType::kFloat, {4, 3, 2, 6}, {36, 12, 6, 1}, false);
  EXPECT_EQ(form.vector, 1);
  // A vector would hold elements of two channels.
  form = FormOfChannels(DataType::kMLFloat16, {4, 3, 2, 6}, {36, 12, 6, 1}, true);
  EXPECT_EQ(form.vector, 1);
  // NHWC.
  form = FormOfChannels(DataType::kMLFloat16, {4, 16, 2, 6}, {192, 1, 96, 16}, true);
  EXPECT_TRUE(form.is_across);
  EXPECT_EQ(form.vector, 8);
  form = FormOfChannels(DataType::kMLFloat16, {4, 12, 2, 6}, {144, 1, 72, 12}, true);
  EXPECT_TRUE(form.is_across);
  EXPECT_EQ(form.vector, 1);
  // Rows of images, each with a gap behind it.
  form = FormOfChannels(DataType::kDouble, {4, 3, 2, 6}, {96, 32, 8, 1}, true);
  EXPECT_FALSE(form.is_across);
  EXPECT_EQ(form.vector, 2);
}

constexpr std::int64_t kMany = (std::int64_t{1} << 31U) + 8;

RowsShape ShapeOfFloats(const DeviceInfo& device, const Dims& dims, const RowsInfo& info) {
  const internal::RowsAxes axes = internal::ChannelsOf(dims.size(), 1);
  const Strides strides = ContiguousStrides(dims);
  const std::array<TensorRef, 3> tensors = {
      Ref(DataType::kFloat, dims, strides), Ref(DataType::kFloat, dims, strides),
      Ref(DataType::kFloat, {dims[1]}, {1})};
  const internal::RowsTask task = internal::RowsTaskOf(tensors, kCounts, axes, {});
  return ShapeOf(device, task, FormOf(task, tensors, info), info, /*bytes=*/4);
}

class CudaRowsShape : public GpuTest {};

TEST_F(CudaRowsShape, MoreElementsThan32BitsCount) {
  const RowsInfo info = {.counts = kCounts, .phases = 1, .results = 1, .rows_of_many_dims = true};
  // One row, which is cut; its parts hold all of it.
  RowsShape shape = ShapeOfFloats(device(), {4, 1, kMany}, info);
  EXPECT_GT(shape.launch.parts, 1);
  EXPECT_GE(shape.launch.parts * shape.launch.part_length, 4 * kMany);
  EXPECT_LT((shape.launch.parts - 1) * shape.launch.part_length, 4 * kMany);
  EXPECT_FALSE(shape.launch.is_short);
  EXPECT_GT(shape.launch.held, 0);
  // There are kMany rows of one element each, and neighbours in memory are of different rows.
  shape = ShapeOfFloats(device(), {1, kMany, 1}, info);
  EXPECT_TRUE(shape.form.is_across);
  EXPECT_GE(shape.launch.groups * shape.launch.teams * shape.form.vector, kMany);
  EXPECT_TRUE(shape.launch.is_short);
  EXPECT_LE(shape.blocks, shape.launch.groups);
  // There are kMany rows of eight elements, which are neighbours in memory.
  shape = ShapeOfFloats(device(), {1, kMany, 8}, info);
  EXPECT_FALSE(shape.form.is_across);
  EXPECT_GE(shape.launch.groups * shape.launch.teams, kMany);
}

}  // namespace
}  // namespace gradsmith::cuda
