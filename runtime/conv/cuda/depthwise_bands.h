#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/depthwise_bands_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// Depthwise convolutions along one or two axes on tensor cores, in TF32, half and bf16, where rows
/// are dense, as in NCHW, whatever the filter's size: neighbouring results are products of what
/// they meet in the source and a band of the filter. By steps of 1 to 4 across and of 1, 2 or 4
/// down, backward data by single steps; dilated, but down not by steps as well. The filter's
/// gradient leaves sums of dY's channels in passing.
///
/// Factors of float are rounded to TF32; sums are in float, and rounded once. Zeros stand around
/// rows and taps: what is infinite makes NaN of neighbouring results that do not meet it.
namespace gradsmith::conv {

/// The candidate's name.
inline constexpr const char* kDepthwiseBands = "own/depthwise-bands";

/// DepthwiseBands is how a task is launched.
struct DepthwiseBands {
  depthwise_bands::Arguments arguments = {};
  /// Rows of a strip: which kernel.
  int rows = 0;
  int threads = 0;
  int slices = 0;
  /// How many sets the items of a filter are split into, each of which has blocks of its own.
  int sets = 1;
  int shared_bytes = 0;
  /// The bytes of the partial sums of a filter's gradient.
  std::size_t workspace = 0;
};

/// PlanDepthwiseBands plans the launch; nothing where the task does not fit.
std::optional<DepthwiseBands> PlanDepthwiseBands(int compute_capability, const Task& task);

/// MayFitDepthwiseBands says whether it would on the latest devices.
bool MayFitDepthwiseBands(const Task& task);

Result<std::unique_ptr<internal::Plan>>
MakeDepthwiseBandsPlan(int device, const Task& task, const DepthwiseBands& bands);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_BANDS_H_
