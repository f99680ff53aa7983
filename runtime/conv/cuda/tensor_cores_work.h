#ifndef GRADSMITH_CONV_CUDA_TENSOR_CORES_WORK_H_
#define GRADSMITH_CONV_CUDA_TENSOR_CORES_WORK_H_

#include <array>
#include <cstdint>
#include <optional>

#include "conv/cuda/tensor_cores_arguments.h"
#include "conv/task.h"
#include "cuda/device.h"

/// Which tasks the kernels on tensor cores take, and what they are launched with, but for what
/// depends on the tile.
namespace gradsmith::conv::tensor_cores {

/// Fits returns whether a device and the kernels take a task.
bool Fits(const cuda::DeviceInfo& device, const Task& task);

/// DepthOf returns how many terms of a line a stage holds.
int DepthOf(const Task& task);

/// AxesOf returns the spatial axes as the kernels count them: those that a problem lacks come first
/// and have one element.
std::array<Axis, kSpatialRank> AxesOf(const Problem& problem);

/// ProductOf returns the product of one of the sizes of all axes.
std::int64_t ProductOf(const std::array<Axis, kSpatialRank>& axes, std::int64_t Axis::*size);

/// Correlation is what forward and backward data are launched with, but for what depends on the
/// tile.
struct Correlation {
  CorrelateArguments arguments{};
  int parts = 0;
};

/// MakeCorrelation returns nothing where there are too many parts or taps.
std::optional<Correlation> MakeCorrelation(const Task& task);

/// FitsByLines returns whether a panel has room for the ends of all lines that a tile has of the
/// result, and the next panel's time to arrive.
bool FitsByLines(const Correlation& correlation, Tile tile);

/// MakeFilterArguments returns what the filter's gradient is launched with.
FilterArguments MakeFilterArguments(const Task& task);

/// FitsByLines returns the same for the filter's gradient, whose panels hold the positions of a
/// stage.
bool FitsByLines(const Task& task);

}  // namespace gradsmith::conv::tensor_cores

#endif  // GRADSMITH_CONV_CUDA_TENSOR_CORES_WORK_H_
