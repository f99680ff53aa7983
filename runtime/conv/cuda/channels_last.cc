#include "conv/cuda/channels_last.h"

namespace gradsmith::conv {

bool IsChannelsLast(const Task& task) {
  constexpr int kAlignment = 16;
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    const Strides& strides = StridesOf(task.problem, operand);
    const Strides dense = ChannelsLastStrides(dims);
    for (int i = 0; i < dims.size(); ++i) {
      if (dims[i] > 1 && strides[i] != dense[i]) {
        return false;
      }
    }
    if (task.alignment.at(operand) < kAlignment) {
      return false;
    }
  }
  return true;
}

bool IsEmpty(const Problem& problem) {
  return NumElements(DimsOf(problem, kX)) == 0 || NumElements(DimsOf(problem, kY)) == 0 ||
         NumElements(DimsOf(problem, kW)) == 0;
}

}  // namespace gradsmith::conv
