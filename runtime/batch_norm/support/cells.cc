#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "batch_norm/cuda/form.h"
#include "batch_norm/cuda/graph.h"
#include "batch_norm/cuda/task.h"
#include "cuda/support_cells.h"

namespace gradsmith::batch_norm {

namespace {

constexpr int kMostAxes = 3;

/// Feature is what is special about a cell's batch normalization.
struct Feature {
  const char* name = "";
  std::int64_t channels = 64;
  bool accumulate = false;
};

constexpr Feature kFeatures[] = {
    {.name = "plain"},
    {.name = "odd channels", .channels = 63},
    {.name = "accumulating", .accumulate = true},
};

/// The types of a row: T, T1, T2.
using Mix = std::span<const DataType>;

cuda::OpTask MakeTask(
    Activation activation,
    Mix mix,
    bool channels_last,
    int spatial_rank,
    const Feature& feature) {
  using backward::Operand;
  Dims dims = {8, feature.channels};
  for (int i = 0; i < spatial_rank; ++i) {
    dims.push_back(16);
  }
  cuda::OpTask task;
  task.op = &OpOf(Direction::kBackward, activation);
  task.tensors.resize(backward::kOperands);
  if (activation != Activation::kNone) {
    task.tensors[Operand::kB] = TensorRef(mix[1], nullptr, {feature.channels});
  }
  for (const Operand operand : {Operand::kDY, Operand::kX, Operand::kDX}) {
    task.tensors[operand] = TensorRef(mix[0], nullptr, dims, DenseStrides(dims, channels_last));
  }
  for (const Operand operand : {Operand::kScale, Operand::kDScale, Operand::kDBias}) {
    task.tensors[operand] = TensorRef(mix[1], nullptr, {feature.channels});
  }
  for (const Operand operand : {Operand::kSavedMean, Operand::kSavedInvStd}) {
    task.tensors[operand] = TensorRef(mix[2], nullptr, {feature.channels});
  }
  for (const Operand operand : {Operand::kDX, Operand::kDScale, Operand::kDBias}) {
    task.tensors[operand].accumulate = feature.accumulate;
  }
  return task;
}

cuda::SupportCell CellOf(
    const char* primitive,
    const cuda::OpTask& task,
    Mix mix,
    bool channels_last,
    const Feature& feature) {
  cuda::SupportCell cell{
      .primitive = primitive,
      .types = std::string(ToString(mix[0])) + "/" + std::string(ToString(mix[1])) + "/" +
               std::string(ToString(mix[2])),
      .type = XOf(task).type,
      .channels_last = channels_last,
      .axes = XOf(task).rank() - 2,
      .feature = feature.name};
  if (Result<StagedForm> form = GraphForm(task); form.ok()) {
    cell.forms.push_back(
        {"", [form = *form](const cuda::GraphTarget& target) { return MakeGraph(target, form); }});
  }
  return cell;
}

}  // namespace

cuda::SupportQuestions AskedOfCudnn(cuda::TypesOnCuda types_of) {
  cuda::SupportQuestions asked{.cells = {}, .needs_driver = true};
  for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
    const char* const primitive = activation == Activation::kNone
                                      ? "batch-normalization-backward"
                                      : "batch-normalization-relu-backward";
    for (const Mix mix : types_of(OpOf(Direction::kBackward, activation).name)) {
      for (const bool channels_last : {false, true}) {
        for (int axes = 0; axes <= kMostAxes; ++axes) {
          for (const Feature& feature : kFeatures) {
            const cuda::OpTask task = MakeTask(activation, mix, channels_last, axes, feature);
            asked.cells.push_back(CellOf(primitive, task, mix, channels_last, feature));
          }
        }
      }
    }
  }
  return asked;
}

}  // namespace gradsmith::batch_norm
