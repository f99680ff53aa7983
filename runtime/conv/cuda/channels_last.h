#ifndef GRADSMITH_CONV_CUDA_CHANNELS_LAST_H_
#define GRADSMITH_CONV_CUDA_CHANNELS_LAST_H_

#include <string>

#include "conv/task.h"

/// What our own kernels on tensor cores ask of the device and of operands.
namespace gradsmith::conv {

/// The first compute capability whose tensor cores take TF32, bf16 and double.
inline constexpr int kFirstWithTensorCores = 80;

/// IsChannelsLast says whether all operands are dense with innermost channels, at addresses that
/// are multiples of 16 bytes.
bool IsChannelsLast(const Task& task);

/// IsContiguous says whether an operand is dense with the last dim innermost; strides of dims of
/// size 1 do not count.
bool IsContiguous(const Problem& problem, Operand operand);

/// IsDense says whether strides are those of a dense tensor whose channels are first or last.
bool IsDense(const Dims& dims, const Strides& strides);

/// IsPointwise says whether every position of y meets the same position of x, and that one alone.
bool IsPointwise(const Problem& problem);

/// IsEmpty says whether an operand has no elements.
bool IsEmpty(const Problem& problem);

/// HasHopperMemory says whether blocks may have 227 KiB of shared memory, as from Hopper on, but
/// for those of 12.x.
bool HasHopperMemory(int compute_capability);
/// The first for which it says so.
inline constexpr int kFirstWithHopperMemory = 90;

/// HasThreeTapsAround says whether an axis has three taps by single steps, around the position of
/// each result.
bool HasThreeTapsAround(const Axis& axis);

/// NarrowKernel is the name of a kernel in half or bf16.
std::string NarrowKernel(const std::string& name, DataType type);

/// FitsNarrow says whether a task is not empty, in half or bf16, and IsChannelsLast takes its
/// operands, on a device whose blocks may have 227 KiB of shared memory.
bool FitsNarrow(int compute_capability, const Task& task);

/// FitOnePass says whether two tasks of which it says so are backward data and backward filter of a
/// problem: what kernels on tensor cores ask that compute both in one pass.
bool FitOnePass(int compute_capability, const Task& data, const Task& filter);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_CHANNELS_LAST_H_
