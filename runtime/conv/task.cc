#include "conv/task.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace gradsmith::conv {

namespace {

constexpr std::array<std::string_view, kOperands> kNames = {"x", "w", "y"};

/// Counted from 1: a number that no other family's keys begin with.
constexpr std::int64_t kFamily = 1;

std::string LayoutText(const Dims& dims, const Strides& strides) {
  if (strides == ContiguousStrides(dims)) {
    return "NCHW";
  }
  return strides == ChannelsLastStrides(dims) ? "NHWC" : "strides " + ToString(strides);
}

}  // namespace

std::string_view ToString(Primitive primitive) {
  constexpr std::array<std::string_view, 3> kPrimitives = {
      "forward", "backward-data", "backward-filter"};
  return kPrimitives.at(static_cast<std::size_t>(primitive));
}

Dims DimsOf(const Problem& problem, Operand operand) {
  Dims dims;
  switch (operand) {
    case kX:
      dims = {problem.batch, problem.x_channels};
      break;
    case kW:
      dims = {problem.y_channels, problem.x_channels / problem.group};
      break;
    case kY:
      dims = {problem.batch, problem.y_channels};
      break;
  }
  constexpr std::array<std::int64_t Axis::*, kOperands> kSizes = {&Axis::x, &Axis::w, &Axis::y};
  for (int i = 0; i < problem.spatial_rank; ++i) {
    dims.push_back(problem.axes[i].*kSizes.at(operand));
  }
  return dims;
}

const Strides& StridesOf(const Problem& problem, Operand operand) {
  switch (operand) {
    case kX:
      return problem.x_strides;
    case kW:
      return problem.w_strides;
    case kY:
      break;
  }
  return problem.y_strides;
}

Strides& StridesOf(Problem& problem, Operand operand) {
  return const_cast<Strides&>(StridesOf(static_cast<const Problem&>(problem), operand));
}

bool HasEmptyOperand(const Problem& problem) {
  return NumElements(DimsOf(problem, kX)) == 0 || NumElements(DimsOf(problem, kW)) == 0 ||
         NumElements(DimsOf(problem, kY)) == 0;
}

void AddTo(const Task& task, internal::ProblemKey* key) {
  const Problem& problem = task.problem;
  key->Add((kFamily << 8U) + static_cast<std::int64_t>(task.primitive));
  key->Add(
      static_cast<std::int64_t>(problem.type) + (task.accumulate ? 256 : 0) +
      (task.bias ? 512 : 0));
  key->Add(problem.batch);
  key->Add(problem.x_channels);
  key->Add(problem.y_channels);
  key->Add(problem.group);
  key->Add(problem.spatial_rank);
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes[i];
    for (const std::int64_t size :
         {axis.x, axis.w, axis.y, axis.stride, axis.dilation, axis.pad_begin, axis.pad_end}) {
      key->Add(size);
    }
  }
  for (const Strides* strides : {&problem.x_strides, &problem.w_strides, &problem.y_strides}) {
    key->Add(*strides);
  }
  key->Add(task.alignment[kX] + (task.alignment[kW] << 8U) + (task.alignment[kY] << 16U));
}

std::string AttributesText(const Problem& problem) {
  IntList strides;
  IntList dilations;
  IntList pads;
  IntList ends;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes[i];
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation);
    pads.push_back(axis.pad_begin);
    ends.push_back(axis.pad_end);
  }
  for (const std::int64_t end : ends) {
    pads.push_back(end);
  }
  return ", strides " + ToString(strides) + ", pads " + ToString(pads) + ", dilations " +
         ToString(dilations) + ", group " + std::to_string(problem.group);
}

std::string Describe(const Task& task) {
  std::string text = std::string(ToString(task.primitive)) + " of " +
                     std::string(gradsmith::ToString(task.problem.type));
  for (const Operand operand : {kX, kW, kY}) {
    const Dims dims = DimsOf(task.problem, operand);
    text += ", " + std::string(kNames.at(operand)) + " " + ToString(dims) + " " +
            LayoutText(dims, StridesOf(task.problem, operand));
    if (task.alignment.at(operand) < 16) {
      text += " aligned to " + std::to_string(task.alignment.at(operand)) + " bytes";
    }
  }
  return text + AttributesText(task.problem) + (task.bias ? ", with a bias" : "") +
         (task.accumulate ? ", accumulating" : "");
}

double TermsOf(const Task& task) {
  const Problem& problem = task.problem;
  double taps = 1;
  auto positions = static_cast<double>(problem.batch);
  for (int i = 0; i < problem.spatial_rank; ++i) {
    taps *= static_cast<double>(problem.axes[i].w);
    positions *= static_cast<double>(problem.axes[i].y);
  }
  const auto group = static_cast<double>(problem.group);
  switch (task.primitive) {
    case Primitive::kForward:
      return taps * static_cast<double>(problem.x_channels) / group;
    case Primitive::kBackwardData:
      return taps * static_cast<double>(problem.y_channels) / group;
    case Primitive::kBackwardFilter:
      break;
  }
  return positions;
}

double ProductsOf(const Task& task) {
  const Dims results = DimsOf(task.problem, ResultOf(task.primitive));
  return static_cast<double>(NumElements(results)) * TermsOf(task);
}

}  // namespace gradsmith::conv
