#include "conv/cuda/call.h"

#include <cstdint>
#include <string>

#include "conv/merged_axes.h"
#include "cuda/alignment.h"

namespace gradsmith::conv {

namespace {

/// A convolution's tensor, as an input or else as a result.
const TensorRef& TensorOf(const cuda::OpTask& call, Operand operand) {
  const TensorRef& input = call.tensors[kInputs + operand];
  return input.present ? input : call.tensors[kResults + operand];
}

Task TaskOf(const cuda::OpTask& call, Primitive primitive) {
  Task task;
  task.primitive = primitive;
  task.problem = ProblemOf(call);
  const Operand result = ResultOf(primitive);
  task.accumulate = call.tensors[kResults + result].accumulate || call.tensors[kBiasInput].present;
  for (const Operand operand : {kX, kW, kY}) {
    const TensorRef& tensor = call.tensors[PlaceOf(result, operand)];
    StridesOf(task.problem, operand) = tensor.strides;
    task.alignment.at(operand) = cuda::AlignmentClass(tensor.data, tensor.type);
  }
  task.problem = WithMergedAxes(task.problem);
  return task;
}

}  // namespace

void AddChoices(const Problem& problem, cuda::OpTask* call) {
  call->choices.push_back(problem.group);
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes.at(i);
    for (const std::int64_t value : {axis.stride, axis.dilation, axis.pad_begin, axis.pad_end}) {
      call->choices.push_back(value);
    }
  }
}

Problem ProblemOf(const cuda::OpTask& call) {
  const TensorRef& x = TensorOf(call, kX);
  const TensorRef& w = TensorOf(call, kW);
  const TensorRef& y = TensorOf(call, kY);
  Problem problem;
  problem.type = x.type;
  problem.batch = x.dims[0];
  problem.x_channels = x.dims[1];
  problem.y_channels = y.dims[1];
  problem.spatial_rank = x.rank() - 2;
  const std::int64_t* choice = call.choices.begin();
  problem.group = *choice++;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    Axis& axis = problem.axes.at(i);
    axis.x = x.dims[2 + i];
    axis.w = w.dims[2 + i];
    axis.y = y.dims[2 + i];
    for (const auto field : {&Axis::stride, &Axis::dilation, &Axis::pad_begin, &Axis::pad_end}) {
      axis.*field = *choice++;
    }
  }
  return problem;
}

std::string TextOfChoices(const cuda::OpTask& call) {
  return AttributesText(ProblemOf(call));
}

Operand SharedOf(const cuda::OpTask& call) {
  return static_cast<Operand>(call.op->lead - kInputs);
}

std::vector<Task> TasksOf(const cuda::OpTask& call) {
  std::vector<Task> tasks;
  if (HasEmptyOperand(ProblemOf(call))) {
    return tasks;
  }
  for (const Primitive primitive :
       {Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter}) {
    if (call.tensors[kResults + ResultOf(primitive)].present) {
      tasks.push_back(TaskOf(call, primitive));
    }
  }
  return tasks;
}

}  // namespace gradsmith::conv
