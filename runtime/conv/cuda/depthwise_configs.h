#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_CONFIGS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_CONFIGS_H_

#include <optional>
#include <string>

#include "conv/cuda/depthwise_config.h"
#include "conv/task.h"

/// Which depthwise convolutions have kernels that compute tiles of results, and where tiles begin.
namespace gradsmith::conv::depthwise {

/// How many sides and steps of filters there are kernels for.
inline constexpr int kConfigs = 7;

/// ConfigOf returns how a depthwise task is computed by tiles; nothing where there is no kernel.
std::optional<KernelConfig> ConfigOf(const Task& task);

/// IndexOf returns a number below kConfigs for a configuration's side and step.
int IndexOf(const KernelConfig& config);

/// NameOf returns how kernels are named after a configuration's side and step.
std::string NameOf(const KernelConfig& config);

/// Where tiles begin along an axis: in the tensor that they are of, and in the other.
struct Origin {
  int to;
  int from;
};

/// OriginOf is for a task that has a configuration.
Origin OriginOf(const Task& task, const Axis& axis);

/// HasDenseRows returns whether neighbours along an operand's last axis lie next to each other.
bool HasDenseRows(const Problem& problem, Operand operand);

/// HasSmallPlanes returns whether positions in an image of an operand fit into 32 bits.
bool HasSmallPlanes(const Problem& problem, Operand operand);

}  // namespace gradsmith::conv::depthwise

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_CONFIGS_H_
