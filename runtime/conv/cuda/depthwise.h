#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/depthwise_lines.h"
#include "conv/cuda/depthwise_tiles.h"
#include "conv/task.h"
#include "core/plan.h"

/// Our own depthwise convolutions, where every channel has one filter (group == x_channels ==
/// y_channels): of all types, strides and layouts, quick where channels or the last axis are dense.
/// Half and bf16 are summed in float and rounded once (in parts of a batch: once for each part);
/// the same call gives the same bits.
namespace gradsmith::conv {

/// TapsOf returns how many taps the filter of a channel has.
std::int64_t TapsOf(const Problem& problem);

/// Whether each channel of x is a group of its own, whose filters may be several.
bool HasGroupOfEachChannel(const Problem& problem);

/// DepthwiseFits returns whether the task is one: its filter dense and of no more than 64 taps, and
/// all sizes within 32 bits.
bool DepthwiseFits(const Task& task);

/// DepthwiseFitsByRows returns whether the kernels of conv/cuda/depthwise_rows.h take it.
bool DepthwiseFitsByRows(const Task& task);

/// The candidate of the kernels of conv/cuda/depthwise_tiles.h.
inline constexpr const char* kDepthwiseTiles = "own/depthwise-tiles";

/// DepthwiseTilesOf returns how these compute a task; nothing where they do not take it.
std::optional<DepthwiseTiles> DepthwiseTilesOf(const Task& task);

/// BothByDepthwiseTilesOf returns how they compute a problem's gradients in one pass; nothing where
/// they do not.
std::optional<DepthwiseTiles> BothByDepthwiseTilesOf(const Task& data, const Task& filter);

/// The candidate of the kernels by rows and by single results.
inline constexpr const char* kDepthwise = "own/depthwise";
/// The candidate of the kernels of conv/cuda/depthwise_lines.h.
inline constexpr const char* kDepthwiseLines = "own/depthwise-lines";

/// DepthwiseLinesOf returns how these compute a task; nothing where they do not take it, or where
/// kernels by rows do, which are quicker.
std::optional<DepthwiseLines> DepthwiseLinesOf(const Task& task);

/// DepthwiseWorkspace returns the bytes of the filter gradient's partial sums.
std::size_t DepthwiseWorkspace(const Task& task);

/// MakeDepthwisePlan returns a plan for a task that fits.
Result<std::unique_ptr<internal::Plan>> MakeDepthwisePlan(const Task& task);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_H_
