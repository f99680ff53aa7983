#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_NORM_CALLS_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_NORM_CALLS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "patterns/cuda/rows_shape.h"
#include "patterns/rows_info.h"
#include "runtime/cuda/op_call.h"

/// Calls of the operators that normalize rows.
namespace gradsmith::cuda {

/// Types of X, of scale and Y, and of the statistics.
using Types = std::vector<DataType>;

/// What launches depend on of LayerNormalizationGrad's functor, which the generator writes: its
/// operands, dY and X, scale, mean and inv_std, dX, dScale and dBias, and two sums.
struct LayerNormGradientOperands : RowsFunctor {
  static constexpr int kInputs = 2;
  static constexpr int kColumnInputs = 1;
  static constexpr int kRowInputs = 2;
  static constexpr int kOutputs = 1;
  static constexpr int kColumnSums = 2;
  static constexpr unsigned kSecondTypes = 0b11000101;
  static constexpr int kPhases = 1;
  static constexpr int kResults = 2;
};

/// SkipGradientOperands is the same for SkipLayerNormalizationGrad, which takes dTotal and gives
/// dBias as well.
struct SkipGradientOperands : LayerNormGradientOperands {
  static constexpr int kInputs = 3;
  static constexpr int kColumnSums = 3;
  static constexpr unsigned kSecondTypes = 0;
  static constexpr unsigned kOptionalInputs = 0b100;
};

inline constexpr DataType kFloat = DataType::kFloat;
inline constexpr DataType kHalf = DataType::kMLFloat16;

inline TensorPointer Make(DataType type, const Sizes& dims, Layout layout = Layout::kContiguous) {
  return std::make_shared<GpuTensor>(type, dims, layout);
}

constexpr DataType StatisticsOf(DataType type) {
  return type == DataType::kDouble ? DataType::kDouble : DataType::kFloat;
}

class CudaNormTest : public CudaTest {
 protected:
  OpCall MakeForward(const Sizes& dims, const Types& types, Layout layout = Layout::kContiguous) {
    OpCall call{.name = "rows", .op = "LayerNormalization", .types = types};
    const Sizes row = {dims.back()};
    const Sizes rows(dims.begin(), dims.end() - 1);
    call.inputs = {Make(types[0], dims, layout), Make(types[1], row), Make(types[1], row)};
    call.outputs = {Make(types[1], dims, layout), Make(types[2], rows), Make(types[2], rows)};
    call.FillInputs(random_);
    return call;
  }
  OpCall MakeGradient(const Sizes& dims, const Types& types, Layout layout = Layout::kContiguous) {
    OpCall call{
        .name = "rows", .op = "LayerNormalizationGrad", .types = {types[1], types[0], types[2]}};
    const Sizes row = {dims.back()};
    const Sizes rows(dims.begin(), dims.end() - 1);
    call.inputs = {
        Make(types[1], dims, layout), Make(types[0], dims, layout), Make(types[1], row),
        Make(types[2], rows), Make(types[2], rows)};
    call.outputs = {Make(types[0], dims, layout), Make(types[1], row), Make(types[1], row)};
    call.FillInputs(random_);
    return call;
  }

  /// SkipLayerNormalization and its gradient, whose statistics are float, or double where all is.
  OpCall MakeSkip(const Sizes& dims, DataType type) {
    const DataType statistics = StatisticsOf(type);
    const Sizes row = {dims.back()};
    const Sizes rows(dims.begin(), dims.end() - 1);
    OpCall call{.name = "rows", .op = "SkipLayerNormalization", .types = {type, statistics}};
    call.inputs = {Make(type, dims), Make(type, dims), Make(type, row), nullptr, Make(type, row)};
    call.outputs = {Make(type, dims), Make(statistics, rows), nullptr, Make(type, dims)};
    call.FillInputs(random_);
    return call;
  }
  OpCall MakeSkipGradient(const Sizes& dims, DataType type, Layout layout = Layout::kContiguous) {
    const DataType statistics = StatisticsOf(type);
    OpCall call = MakeGradient(dims, {type, type, statistics}, layout);
    call.op = "SkipLayerNormalizationGrad";
    call.types = {type, statistics};
    call.inputs.push_back(Make(type, dims, layout));
    call.outputs.push_back(Make(type, {dims.back()}));
    call.FillInputs(random_);
    return call;
  }
  /// Channels of one image as rows: by MeanVarianceNormalization, InstanceNormalization,
  /// GroupNormalization, each channel a group, or the gradient of one.
  OpCall MakeOfChannels(const std::string& op, const Sizes& rows_and_length, DataType type) {
    const std::int64_t rows = rows_and_length[0];
    const bool is_of_images = !op.starts_with("MeanVariance");
    const Sizes dims = {1, rows, rows_and_length[1]};
    const Sizes statistics = is_of_images ? Sizes{1, rows} : Sizes{rows};
    OpCall call{.name = "channels", .op = op, .types = Types(is_of_images ? 3 : 1, type)};
    if (op.starts_with("Group")) {
      call.attributes = {{"num_groups", rows}};
    }
    call.inputs = {Make(type, dims)};
    call.outputs = {Make(type, dims)};
    const auto append = [&](std::vector<TensorPointer>* operands, const Sizes& of) {
      operands->insert(operands->end(), {Make(type, of), Make(type, of)});
    };
    if (op.ends_with("Grad")) {
      call.inputs.push_back(Make(type, dims));
      append(&call.inputs, statistics);
    } else {
      append(&call.outputs, statistics);
    }
    if (is_of_images && op.ends_with("Grad")) {
      call.inputs.insert(call.inputs.begin() + 2, Make(type, {rows}));
      append(&call.outputs, {rows});
    } else if (is_of_images) {
      append(&call.inputs, {rows});
    }
    call.FillInputs(random_);
    return call;
  }

  /// As few rows as all multiprocessors take by columns, and a rest that is no full team; 0 where
  /// a row has no place in shared memory.
  [[nodiscard]] std::int64_t RowsByColumns(std::int64_t length, const Types& types) const {
    const RowsInfo& info = kRowsInfo<LayerNormGradientOperands>;
    const int bytes = static_cast<int>(std::max(SizeOf(types[0]), SizeOf(types[1])));
    internal::RowsTask task;
    task.rows = 1 << 20;  // enough for as many teams as a block has at most
    task.length = length;
    const int vector = 16 / bytes;
    const RowsAccess access = {.vector = length % vector == 0 ? vector : 1, .is_by_columns = true};
    const RowsShape shape = ShapeOf({device()}, task, access, info, bytes);
    const int rows = RowsOfTeam(bytes == sizeof(double) ? 8 : 4, access.vector);
    return static_cast<int>(shape.shared_bytes) > MostShared({device()})
               ? 0
               : std::int64_t{shape.launch.teams} * rows * (device().multiprocessors() - 1) + 1;
  }

  Random random_{"layer norm rows"};
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_NORM_CALLS_H_
