#include "patterns/cuda/rows_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "patterns/cuda/rows_policy.h"
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

class CudaRowsShape : public GpuTest {};

RowsAccess AccessOfChannels(
    const DeviceInfo& device,
    DataType type,
    const Dims& dims,
    const Strides& strides,
    bool many_dims) {
  const internal::RowsAxes axes = internal::ChannelsOf(dims.size(), 1);
  const std::array<TensorRef, 3> tensors = {
      Ref(type, dims, strides), Ref(type, dims, strides), Ref(type, {dims[1]}, {1})};
  const RowsInfo info = {.counts = kCounts, .rows_of_many_dims = many_dims};
  return AccessOf({device}, internal::RowsTaskOf(tensors, kCounts, axes, {}), tensors, info);
}

TEST_F(CudaRowsShape, ChannelsAreReadInVectors) {
  // NCHW: the batch and the spatial dims are not one.
  RowsAccess access =
      AccessOfChannels(device(), DataType::kFloat, {4, 3, 2, 6}, {36, 12, 6, 1}, true);
  EXPECT_FALSE(access.is_across);
  EXPECT_EQ(access.vector, 4);
  access = AccessOfChannels(device(), DataType::kFloat, {4, 3, 2, 6}, {36, 12, 6, 1}, false);
  EXPECT_EQ(access.vector, 1);
  // A vector would hold elements of two channels.
  access = AccessOfChannels(device(), DataType::kMLFloat16, {4, 3, 2, 6}, {36, 12, 6, 1}, true);
  EXPECT_EQ(access.vector, 1);
  // NHWC.
  access = AccessOfChannels(device(), DataType::kMLFloat16, {4, 16, 2, 6}, {192, 1, 96, 16}, true);
  EXPECT_TRUE(access.is_across);
  EXPECT_EQ(access.vector, 8);
  access = AccessOfChannels(device(), DataType::kMLFloat16, {4, 12, 2, 6}, {144, 1, 72, 12}, true);
  EXPECT_TRUE(access.is_across);
  EXPECT_EQ(access.vector, 1);
  // Rows of images, each with a gap behind it.
  access = AccessOfChannels(device(), DataType::kDouble, {4, 3, 2, 6}, {96, 32, 8, 1}, true);
  EXPECT_FALSE(access.is_across);
  EXPECT_EQ(access.vector, 2);
}

/// How rows of X are read, from which Y is made; `strides` are those of X and Y from one row to the
/// next.
RowsAccess AccessOfRows(
    const DeviceInfo& device,
    const Dims& dims,
    std::array<std::int64_t, 2> strides,
    std::size_t misaligned = 0) {
  const std::array<TensorRef, 3> tensors = {
      Ref(DataType::kFloat, dims, {strides[0], 1}),
      Ref(DataType::kFloat, dims, {strides[1], 1}, misaligned),
      Ref(DataType::kFloat, {dims[0]}, {1})};
  const RowsInfo info = {.counts = kCounts, .phases = 1, .results = 1};
  const internal::RowsTask task =
      internal::RowsTaskOf(tensors, kCounts, internal::AxesFrom(1, 2), {});
  return AccessOf({device}, task, tensors, info);
}

TEST_F(CudaRowsShape, RaggedRowsAreReadInVectors) {
  RowsAccess access = AccessOfRows(device(), {9, 999}, {999, 999});
  EXPECT_TRUE(access.is_ragged);
  EXPECT_EQ(access.vector, 4);
  // Gaps behind rows, other ones in X than in Y, but a multiple of a vector.
  EXPECT_TRUE(AccessOfRows(device(), {9, 999}, {1003, 999}).is_ragged);
  EXPECT_FALSE(AccessOfRows(device(), {9, 1000}, {1000, 1000}).is_ragged);
  // A vector of X would be none of Y.
  access = AccessOfRows(device(), {9, 999}, {1000, 999});
  EXPECT_FALSE(access.is_ragged);
  EXPECT_EQ(access.vector, 1);
  EXPECT_FALSE(AccessOfRows(device(), {9, 999}, {999, 999}, 4).is_ragged);
  EXPECT_FALSE(AccessOfRows(device(), {9, 7}, {7, 7}).is_ragged);
  // Few and long rows are cut into parts, many are not.
  EXPECT_FALSE(AccessOfRows(device(), {2, 99999}, {99999, 99999}).is_ragged);
  EXPECT_TRUE(AccessOfRows(device(), {9999, 99999}, {99999, 99999}).is_ragged);
}

constexpr std::int64_t kMany = (std::int64_t{1} << 31U) + 8;

RowsShape ShapeOfFloats(const RowsTarget& target, const Dims& dims, const RowsInfo& info) {
  const internal::RowsAxes axes = internal::ChannelsOf(dims.size(), 1);
  const Strides strides = ContiguousStrides(dims);
  const std::array<TensorRef, 3> tensors = {
      Ref(DataType::kFloat, dims, strides), Ref(DataType::kFloat, dims, strides),
      Ref(DataType::kFloat, {dims[1]}, {1})};
  const internal::RowsTask task = internal::RowsTaskOf(tensors, kCounts, axes, {});
  return ShapeOf(target, task, AccessOf(target, task, tensors, info), info, /*bytes=*/4);
}

TEST_F(CudaRowsShape, MoreElementsThan32BitsCount) {
  const RowsInfo info = {.counts = kCounts, .phases = 1, .results = 1, .rows_of_many_dims = true};
  // One row, which is cut; its parts hold all of it.
  RowsShape shape = ShapeOfFloats({device()}, {4, 1, kMany}, info);
  EXPECT_GT(shape.launch.parts, 1);
  EXPECT_GE(shape.launch.parts * shape.launch.part_length, 4 * kMany);
  EXPECT_LT((shape.launch.parts - 1) * shape.launch.part_length, 4 * kMany);
  EXPECT_FALSE(shape.launch.is_short);
  EXPECT_GT(shape.launch.held, 0);
  // There are kMany rows of one element each, and neighbours in memory are of different rows.
  shape = ShapeOfFloats({device()}, {1, kMany, 1}, info);
  EXPECT_TRUE(shape.access.is_across);
  EXPECT_GE(shape.launch.groups * shape.launch.teams * shape.access.vector, kMany);
  EXPECT_TRUE(shape.launch.is_short);
  EXPECT_LE(shape.blocks, shape.launch.groups);
  // There are kMany rows of eight elements, which are neighbours in memory.
  shape = ShapeOfFloats({device()}, {1, kMany, 8}, info);
  EXPECT_FALSE(shape.access.is_across);
  EXPECT_GE(shape.launch.groups * shape.launch.teams, kMany);
}

TEST_F(CudaRowsShape, ShortRowsAcrossMemoryHaveOneThread) {
  const RowsInfo info = {.counts = kCounts, .phases = 1, .results = 1};
  const int most = RowsPolicyOf(device()).most_of_single_thread;
  RowsShape shape = ShapeOfFloats({device()}, {most, 1 << 20}, info);
  EXPECT_TRUE(shape.access.is_across);
  EXPECT_EQ(shape.launch.members, 1);
  EXPECT_EQ(shape.threads, static_cast<unsigned>(shape.launch.teams));
  EXPECT_GE(shape.launch.teams, 32);
  EXPECT_GE(shape.launch.groups * shape.launch.teams * shape.access.vector, 1 << 20);
  EXPECT_EQ(shape.launch.held, most);
  // Longer rows, and rows that would leave multiprocessors idle, have more threads.
  shape = ShapeOfFloats({device()}, {most + 1, 1 << 20}, info);
  EXPECT_GT(shape.launch.members, 1);
  shape = ShapeOfFloats({device()}, {most, 32 * device().multiprocessors()}, info);
  EXPECT_GT(shape.launch.members, 1);
}

/// Another policy cuts work otherwise: what decides is in the table.
TEST_F(CudaRowsShape, ThePolicyDecides) {
  const RowsInfo info = {.counts = kCounts, .phases = 1, .results = 1};
  RowsPolicy policy;
  const RowsTarget target = {.device = device(), .policy = policy};
  const Dims short_rows = {1, 1 << 20, 64};
  const Dims across = {8, 1 << 20};
  const Dims long_row = {1, 1, 1 << 20};
  const auto shape_of = [&](const Dims& dims) { return ShapeOfFloats(target, dims, info); };
  EXPECT_EQ(shape_of(short_rows).threads, static_cast<unsigned>(policy.threads));
  EXPECT_EQ(shape_of(across).launch.members, 1);
  EXPECT_GT(shape_of(long_row).launch.parts, 3);
  EXPECT_GT(shape_of(long_row).launch.held, 0);
  const std::int64_t blocks = shape_of(short_rows).blocks;
  policy.threads = 64;
  policy.vectors_of_thread = 1;
  policy.most_of_single_thread = 7;
  policy.most_parts = 3;
  policy.resident_threads /= 4;
  EXPECT_EQ(shape_of(short_rows).threads, 64U);
  EXPECT_EQ(shape_of(short_rows).launch.members, 16);
  EXPECT_GT(shape_of(across).launch.members, 1);
  EXPECT_EQ(shape_of(long_row).launch.parts, 3);
  EXPECT_EQ(shape_of(short_rows).blocks, blocks);  // of a quarter of the threads
  policy.most_shared_bytes = 0;
  EXPECT_EQ(shape_of(long_row).launch.held, 0);
  EXPECT_EQ(shape_of(long_row).shared_bytes, 0U);
}

/// A gradient of rows with a scale: dY, X, scale and a number for each row; dX, dScale.
constexpr internal::RowsCounts kOfColumns =
    {.inputs = 2, .column_inputs = 1, .row_inputs = 1, .outputs = 1, .column_sums = 1};

/// Such a problem, in memory without gaps unless it says so.
struct ByColumns {
  std::int64_t rows = 0;
  std::int64_t length = 0;
  DataType type = DataType::kFloat;
  std::int64_t gap = 0;
  std::size_t misaligned = 0;
  RowsInfo info = {.counts = kOfColumns, .phases = 1, .results = 1};

  [[nodiscard]] RowsShape ShapeOn(const RowsTarget& target) const {
    const Dims dims = {rows, length};
    const Strides strides = {length + gap, 1};
    const std::array<TensorRef, 6> all = {
        Ref(type, dims, strides),
        Ref(type, dims, strides),
        Ref(type, {length}, {1}),
        Ref(type, {rows}, {1}),
        Ref(type, dims, strides, misaligned),
        Ref(type, {length}, {1})};
    const std::array<TensorRef, 3> elements = {all[0], all[1], all[4]};
    const std::span<const TensorRef> tensors =
        info.counts.column_inputs > 0 ? std::span<const TensorRef>(all) : elements;
    const internal::RowsTask task =
        internal::RowsTaskOf(tensors, info.counts, internal::AxesFrom(1, 2), {});
    const RowsAccess access = AccessOf(target, task, tensors, info);
    return ShapeOf(target, task, access, info, static_cast<int>(SizeOf(type)));
  }
  [[nodiscard]] bool IsOn(const RowsTarget& target) const {
    return ShapeOn(target).access.is_by_columns;
  }
};

TEST_F(CudaRowsShape, FewRowsWhoseColumnsAreSummedHaveOneBlock) {
  const auto threads = static_cast<unsigned>(RowsPolicyOf(device()).threads_of_few_rows);
  // 25 vectors of four floats, and 100 halves, which are no whole vectors.
  for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
    RowsShape shape = ByColumns{.rows = 8, .length = 100, .type = type}.ShapeOn({device()});
    EXPECT_TRUE(shape.launch.is_only_block);
    EXPECT_EQ(shape.launch.teams, 8);
    EXPECT_EQ(shape.threads, type == DataType::kFloat ? 8U * 32U : threads);
    // More threads than the row has vectors would find nothing to do.
    shape = ByColumns{.rows = 8, .length = 12, .type = type}.ShapeOn({device()});
    EXPECT_TRUE(shape.launch.is_only_block);
    EXPECT_LE(shape.launch.members, 16);
    // These rows are too many for one block.
    shape = ByColumns{.rows = 999, .length = 100, .type = type}.ShapeOn({device()});
    EXPECT_FALSE(shape.launch.is_only_block);
    EXPECT_GT(shape.blocks, 1);
  }
}

/// Teams of a block would add to the same places in memory.
TEST_F(CudaRowsShape, SumsForWhichThereIsNoPlaceAreOfOneTeam) {
  for (const std::int64_t rows : {7, 2643}) {
    for (const std::int64_t length : {3, 16, 63, 64, 4096}) {
      for (const int shared : {0, 256, 4096, 1 << 20}) {
        const RowsPolicy policy = {.threads_by_columns = 0, .most_shared_bytes = shared};
        const RowsShape shape =
            ByColumns{.rows = rows, .length = length}.ShapeOn({device(), policy});
        const RowsLaunch& launch = shape.launch;
        const std::int64_t held =
            launch.held_sums * std::int64_t{launch.members} * shape.access.vector;
        EXPECT_TRUE(launch.teams == 1 || held >= length)
            << rows << ", " << length << ", " << shared;
        EXPECT_EQ(shape.threads, static_cast<unsigned>(launch.teams * launch.members));
        EXPECT_EQ(1 << launch.member_bits, launch.members);
        EXPECT_GE(shape.threads, 32U);
        EXPECT_GE(launch.groups * launch.teams, rows);
      }
    }
  }
}

TEST_F(CudaRowsShape, ByColumnsWhereEachMultiprocessorHasRows) {
  for (const DataType type : {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16}) {
    const std::int64_t columns = ColumnsOfThread(type == DataType::kDouble ? 8 : 4);
    for (const std::int64_t length :
         {columns, 9 * columns, 32 * columns, 33 * columns, 96 * columns, 512 * columns}) {
      ByColumns problem = {.rows = 1 << 20, .length = length, .type = type};
      const RowsShape shape = problem.ShapeOn({device()});
      std::int64_t members = std::max<std::int64_t>(length / columns, kLeastMembersByColumns);
      members = members == 9 ? 16 : members == 33 ? 64 : members;
      // A thread keeps eight vectors of both inputs.
      const bool has_place = members * 8 * 2 * 16 <= MostShared({device()});
      ASSERT_EQ(shape.access.is_by_columns, has_place) << ToString(type) << ", " << length;
      if (!has_place) {
        continue;
      }
      EXPECT_EQ(shape.launch.members, members);
      EXPECT_EQ(shape.threads, static_cast<unsigned>(shape.launch.members * shape.launch.teams));
      EXPECT_EQ(shape.threads % 32, 0U);
      EXPECT_LE(static_cast<int>(shape.shared_bytes), MostShared({device()}));
      const int vector = 16 / static_cast<int>(SizeOf(type));
      // Where there are fewer rows a block has fewer teams, of a warp at least.
      const std::int64_t group = std::max<std::int64_t>(32 / members, 1) *
                                 RowsOfTeam(type == DataType::kDouble ? 8 : 4, vector);
      EXPECT_GE(
          shape.launch.teams * std::int64_t{RowsOfTeam(type == DataType::kDouble ? 8 : 4, vector)},
          group);
      problem.rows = group * (device().multiprocessors() - 1);
      EXPECT_FALSE(problem.IsOn({device()})) << ToString(type) << ", " << length;
      ++problem.rows;
      EXPECT_TRUE(problem.IsOn({device()})) << ToString(type) << ", " << length;
    }
  }
}

/// Rows longer than the columns of one block are cut into parts, more of them where rows are few.
TEST_F(CudaRowsShape, ByColumnsInParts) {
  for (const DataType type : {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16}) {
    const std::int64_t most =
        std::int64_t{kFewerRowsThreads} * ColumnsOfThread(type == DataType::kDouble ? 8 : 4);
    for (const std::int64_t rows : {1 << 20, 40, 1}) {
      for (const std::int64_t length :
           {(2 * most) + 8, (2 * most) + 9, 4 * most, std::int64_t{1} << 20}) {
        const ByColumns problem = {.rows = rows, .length = length, .type = type};
        const RowsShape shape = problem.ShapeOn({device()});
        const RowsLaunch& launch = shape.launch;
        if (!shape.access.is_by_columns) {
          EXPECT_LT(rows * length, std::int64_t{1024} * device().multiprocessors());
          continue;
        }
        EXPECT_EQ(launch.teams, 1);
        EXPECT_GT(launch.parts, 1);
        EXPECT_LE(launch.part_length, most);
        EXPECT_GE(launch.part_length, RowsPolicyOf(device()).least_columns_of_part);
        EXPECT_EQ(launch.part_length % shape.access.vector, 0);
        EXPECT_GE(launch.parts * launch.part_length, length);
        EXPECT_LT((launch.parts - 1) * launch.part_length, length);
        EXPECT_GE(
            launch.members *
                std::int64_t{ColumnsOfThread(BytesOfSum(static_cast<int>(SizeOf(type))))},
            launch.part_length);
        EXPECT_LE(shape.threads, static_cast<unsigned>(kFewerRowsThreads));
        EXPECT_EQ(shape.partials_bytes > 0, true);
        EXPECT_LE(shape.blocks, launch.groups);
      }
    }
  }
  // Along memory shorter ones are read once, but where nothing is found of them.
  ByColumns shorter = {.rows = 1 << 12, .length = 16384};
  EXPECT_FALSE(shorter.IsOn({device()}));
  shorter.info.phases = 0;
  EXPECT_TRUE(shorter.IsOn({device()}));
  const RowsPolicy in_parts = {.most_bytes_along = 0};
  shorter.info.phases = 1;
  EXPECT_TRUE(shorter.IsOn({.device = device(), .policy = in_parts}));
  // A grid has no more blocks along y.
  EXPECT_FALSE((ByColumns{.rows = 1, .length = std::int64_t{1} << 31U}.IsOn({device()})));
}

/// Blocks' sums are added up by many threads for a column, or where there are columns for all
/// multiprocessors by one for several.
TEST_F(CudaRowsShape, SumsOfBlocksAreSharedWhereColumnsAreFew) {
  const auto has_many = [&](std::int64_t length) {
    return ByColumns{.rows = 1 << 10, .length = length}.ShapeOn({device()}).has_many_columns;
  };
  const std::int64_t enough = std::int64_t{ManyColumns::kColumns} * device().multiprocessors();
  EXPECT_FALSE(has_many(64));
  EXPECT_FALSE(has_many(enough / 4));
  EXPECT_TRUE(has_many(enough));
}

TEST_F(CudaRowsShape, ByColumnsOfSingleElementsWhereVectorsLack) {
  const ByColumns plain = {.rows = 1 << 20, .length = 256};
  ByColumns gap = plain;
  gap.gap = 1;
  ByColumns misaligned = plain;
  misaligned.misaligned = 4;
  ByColumns odd = plain;
  odd.length = 8191;
  for (const ByColumns& problem : {gap, misaligned, odd}) {
    const RowsShape shape = problem.ShapeOn({device()});
    EXPECT_TRUE(shape.access.is_by_columns) << problem.length;
    EXPECT_EQ(shape.access.vector, 1) << problem.length;
    EXPECT_LE(static_cast<int>(shape.threads), kFewerRowsThreads) << problem.length;
  }
  odd.length = 16384 + 1;  // more than the threads of a block hold, in parts
  EXPECT_TRUE(odd.IsOn({device()}));
  EXPECT_EQ(odd.ShapeOn({device()}).access.vector, 1);
  ByColumns no_phases = gap;
  no_phases.info.phases = 0;
  EXPECT_TRUE(no_phases.IsOn({device()}));
}

TEST_F(CudaRowsShape, NotByColumnsWhereRowsOrColumnsLack) {
  const ByColumns plain = {.rows = 1 << 20, .length = 256};
  EXPECT_TRUE(plain.IsOn({device()}));
  const RowsPolicy without = {.threads_by_columns = 0};
  EXPECT_FALSE(plain.IsOn({.device = device(), .policy = without}));
  ByColumns other = plain;
  other.gap = 4;
  EXPECT_TRUE(other.IsOn({device()}));
  other = plain;
  other.length = 0;
  EXPECT_FALSE(other.IsOn({device()}));
  for (const std::int64_t rows : {0, 1}) {
    other = plain;
    other.rows = rows;
    EXPECT_FALSE(other.IsOn({device()})) << rows;
  }
  other = plain;
  other.info.rows_of_many_dims = true;
  EXPECT_FALSE(other.IsOn({device()}));
  other = plain;
  other.info.counts = {.inputs = 2, .outputs = 1};
  EXPECT_FALSE(other.IsOn({device()}));
}

}  // namespace
}  // namespace gradsmith::cuda
