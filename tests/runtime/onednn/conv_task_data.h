#ifndef GRADSMITH_TESTS_RUNTIME_ONEDNN_CONV_TASK_DATA_H_
#define GRADSMITH_TESTS_RUNTIME_ONEDNN_CONV_TASK_DATA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "conv/onednn/convolution.h"
#include "conv/task.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "support/test_tensor.h"

/// Tasks of a convolution in float, with data and the result by the definition.
namespace gradsmith::conv {

using support::Layout;
using support::TestTensor;
using Sizes = std::vector<std::int64_t>;
using Values = std::vector<double>;

inline constexpr Primitive kPrimitives[] = {
    Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter};

/// X (N, C, D...), W (M, C / group, K...), as Conv takes them.
struct ConvShape {
  Sizes X;
  Sizes W;
  Attributes attributes = {};
};

inline Problem MakeProblem(const ConvShape& shape, DataType type = DataType::kFloat) {
  const Result<Problem> problem = ConvolutionProblem(
      shape.attributes, ConstTensorRef(type, nullptr, support::ToIntList(shape.X)),
      ConstTensorRef(type, nullptr, support::ToIntList(shape.W)));
  return problem.value();
}

/// Calls term(x, w, y) with the indices, into dense tensors, of every product that is summed.
inline void ForEachTerm(
    const Problem& problem,
    const std::function<void(std::size_t, std::size_t, std::size_t)>& term) {
  std::array<Axis, kMaxSpatialRank> axes;  // those left over have one position
  std::copy_n(problem.axes.begin(), problem.spatial_rank, axes.begin());
  const std::int64_t x_group = problem.x_channels / problem.group;
  const std::int64_t y_group = problem.y_channels / problem.group;
  const auto flat = [](std::initializer_list<std::array<std::int64_t, 2>> indices) {
    std::int64_t index = 0;
    for (const auto& [value, size] : indices) {
      index = (index * size) + value;
    }
    return static_cast<std::size_t>(index);
  };
  const auto& [a, b, c] = axes;
  const auto sum_taps = [&](std::int64_t n, std::int64_t m, std::int64_t i, std::int64_t oa,
                            std::int64_t ob, std::int64_t oc) {
    const std::int64_t x_channel = (m / y_group * x_group) + i;
    for (std::int64_t tap = 0; tap < a.w * b.w * c.w; ++tap) {
      const std::array<std::int64_t, 3> k = {tap / (b.w * c.w), tap / c.w % b.w, tap % c.w};
      const std::int64_t xa = (oa * a.stride) + (k[0] * a.dilation) - a.pad_begin;
      const std::int64_t xb = (ob * b.stride) + (k[1] * b.dilation) - b.pad_begin;
      const std::int64_t xc = (oc * c.stride) + (k[2] * c.dilation) - c.pad_begin;
      if (xa < 0 || xb < 0 || xc < 0 || xa >= a.x || xb >= b.x || xc >= c.x) {
        continue;
      }
      term(
          flat({{n, 0}, {x_channel, problem.x_channels}, {xa, a.x}, {xb, b.x}, {xc, c.x}}),
          flat({{m, 0}, {i, x_group}, {k[0], a.w}, {k[1], b.w}, {k[2], c.w}}),
          flat({{n, 0}, {m, problem.y_channels}, {oa, a.y}, {ob, b.y}, {oc, c.y}}));
    }
  };
  for (std::int64_t n = 0; n < problem.batch; ++n) {
    for (std::int64_t m = 0; m < problem.y_channels; ++m) {
      for (std::int64_t i = 0; i < x_group; ++i) {
        for (std::int64_t o = 0; o < a.y * b.y * c.y; ++o) {
          sum_taps(n, m, i, o / (b.y * c.y), o / c.y % b.y, o % c.y);
        }
      }
    }
  }
}

/// TaskData is a task with its tensors, filled with small integers.
class TaskData {
 public:
  TaskData(
      Primitive primitive,
      Problem problem,
      const std::array<Layout, kOperands>& layouts,
      bool bias,
      reference::Random& random)
      : bias_values_(BiasTensor(primitive, problem)) {
    for (const Operand operand : {kX, kW, kY}) {
      const Dims dims = DimsOf(problem, operand);
      tensors_.emplace_back(DataType::kFloat, Sizes(dims.begin(), dims.end()), layouts.at(operand));
      StridesOf(problem, operand) = tensors_.back().Ref().strides;
    }
    task_ = {.primitive = primitive, .problem = problem, .bias = bias};
    const auto fill = [&](TestTensor& tensor) {
      Values values(tensor.Values().size());
      for (double& value : values) {
        value = static_cast<double>(random.Integer(-2, 2));
      }
      tensor.Fill(values);
    };
    for (TestTensor& tensor : tensors_) {
      fill(tensor);
    }
    fill(bias_values_);
  }

  [[nodiscard]] const Task& task() const { return task_; }
  [[nodiscard]] TestTensor& result() { return tensors_.at(ResultOf(task_.primitive)); }
  [[nodiscard]] std::array<void*, kCpuOperands> Operands() const {
    return {
        tensors_[kX].Ref().data, tensors_[kW].Ref().data, tensors_[kY].Ref().data,
        task_.bias ? bias_values_.Ref().data : nullptr};
  }

  /// Plants a value in an operand, at a part of its length: 0 is its begin, 1 its last element.
  void Plant(Operand operand, double value, double part) {
    Values values = tensors_.at(operand).Values();
    values.at(static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))) = value;
    tensors_.at(operand).Fill(values);
  }

  /// What the result must be, by the definition.
  [[nodiscard]] Values Expected() {
    std::array<Values, kOperands> values;
    for (const Operand operand : {kX, kW, kY}) {
      values.at(operand) = tensors_.at(operand).Values();
    }
    const Operand result = ResultOf(task_.primitive);
    Values sums(values.at(result).size());
    ForEachTerm(task_.problem, [&](std::size_t x, std::size_t w, std::size_t y) {
      switch (result) {
        case kX:
          sums[x] += values[kW][w] * values[kY][y];
          break;
        case kW:
          sums[w] += values[kX][x] * values[kY][y];
          break;
        case kY:
          sums[y] += values[kX][x] * values[kW][w];
          break;
      }
    });
    if (task_.bias) {
      const Values bias = bias_values_.Values();
      const std::size_t channels = bias.size();
      const std::size_t positions =
          sums.size() / channels / static_cast<std::size_t>(task_.problem.batch);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += bias[i / positions % channels];
      }
    }
    return sums;
  }

 private:
  static TestTensor BiasTensor(Primitive primitive, const Problem& problem) {
    const std::int64_t channels =
        primitive == Primitive::kForward ? problem.y_channels : problem.x_channels;
    return {DataType::kFloat, {channels}, Layout::kContiguous};
  }

  Task task_;
  std::vector<TestTensor> tensors_;
  TestTensor bias_values_;
};

}  // namespace gradsmith::conv

#endif  // GRADSMITH_TESTS_RUNTIME_ONEDNN_CONV_TASK_DATA_H_
