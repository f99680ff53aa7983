#ifndef GRADSMITH_CONV_CUDA_WIDE_LAYERS_H_
#define GRADSMITH_CONV_CUDA_WIDE_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "conv/cuda/wide_layers_arguments.h"
#include "conv/task.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// The filter's gradient of wide convolutions of lines and images in TF32 by products of warpgroups
/// (`wgmma`), on compute capability 9.0: of float, channels last and in fours, one group, by single
/// steps, not dilated along the last axis, of rows of y of three pixels or more. Products want the
/// terms of a column next to each other, which are pixels: a kernel turns dY beforehand, and leaves
/// sums of its channels in passing. Terms of x come by registers: those of 64 channels for three
/// taps of a row of the filter, which a warpgroup multiplies with the same 128 channels of dY, so
/// that filters of other widths, and channels that are no multiples, leave places empty.
///
/// Both factors are rounded to TF32, and summed in float. What is infinite makes NaN of elements
/// beside those that it reaches.
namespace gradsmith::conv {

/// The candidate's name.
inline constexpr const char* kWideLayers = "own/wide-layers";

/// WideLayers is how a task is launched.
struct WideLayers {
  wide_layers::Arguments arguments = {};
  /// Pixels next to each other that a thread has.
  int run = 0;
  std::int64_t filter_elements = 0;
  /// The share of all products that is not for empty places of tiles.
  double share = 0;

  /// The bytes of what blocks leave of the filter, and of dY as it is turned behind it.
  [[nodiscard]] std::size_t bytes_of_pieces() const;
  [[nodiscard]] std::size_t workspace() const;
};

/// PlanWideLayers plans the launch; nothing where the task does not fit.
std::optional<WideLayers> PlanWideLayers(int compute_capability, const Task& task);

Result<std::unique_ptr<internal::Plan>>
MakeWideLayersPlan(int device, const Task& task, const WideLayers& plan);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_WIDE_LAYERS_H_
