#include "conv/cuda/channels_last.h"

#include <algorithm>
#include <array>
#include <string>

namespace gradsmith::conv {

namespace {

/// Whether the strides are these, but for those of dims of size 1.
bool LieAs(const Dims& dims, const Strides& strides, const Strides& these) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] != these[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool IsChannelsLast(const Task& task) {
  constexpr int kAlignment = 16;
  return std::ranges::all_of(std::array{kX, kW, kY}, [&](Operand operand) {
    const Dims dims = DimsOf(task.problem, operand);
    return LieAs(dims, StridesOf(task.problem, operand), ChannelsLastStrides(dims)) &&
           task.alignment.at(operand) >= kAlignment;
  });
}

bool IsContiguous(const Problem& problem, Operand operand) {
  const Dims dims = DimsOf(problem, operand);
  return LieAs(dims, StridesOf(problem, operand), ContiguousStrides(dims));
}

bool IsPointwise(const Problem& problem) {
  return std::all_of(
      problem.axes.begin(), problem.axes.begin() + problem.spatial_rank, [](const Axis& axis) {
        return axis.w == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.x == axis.y;
      });
}

bool IsDense(const Dims& dims, const Strides& strides) {
  return strides == ContiguousStrides(dims) || strides == ChannelsLastStrides(dims);
}

bool IsEmpty(const Problem& problem) {
  return NumElements(DimsOf(problem, kX)) == 0 || NumElements(DimsOf(problem, kY)) == 0 ||
         NumElements(DimsOf(problem, kW)) == 0;
}

bool HasHopperMemory(int compute_capability) {
  return compute_capability >= kFirstWithHopperMemory && compute_capability < 120;
}

bool HasThreeTapsAround(const Axis& axis) {
  return axis.w == 3 && axis.stride == 1 && axis.dilation == 1 && axis.pad_begin == 1 &&
         axis.x == axis.y;
}

std::string NarrowKernel(const std::string& name, DataType type) {
  return name + (type == DataType::kMLFloat16 ? "_f16" : "_bf16");
}

bool FitsNarrow(int compute_capability, const Task& task) {
  return HasHopperMemory(compute_capability) && SizeOf(task.problem.type) == 2 &&
         !IsEmpty(task.problem) && IsChannelsLast(task);
}

bool FitOnePass(int compute_capability, const Task& data, const Task& filter) {
  return data.primitive == Primitive::kBackwardData &&
         filter.primitive == Primitive::kBackwardFilter && FitsNarrow(compute_capability, data) &&
         FitsNarrow(compute_capability, filter);
}

}  // namespace gradsmith::conv
