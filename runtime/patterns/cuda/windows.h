#ifndef GRADSMITH_PATTERNS_CUDA_WINDOWS_H_
#define GRADSMITH_PATTERNS_CUDA_WINDOWS_H_

#include <memory>
#include <string_view>

#include "core/plan.h"
#include "cuda/kernel_image.h"
#include "cuda/op_task.h"
#include "gradsmith/status.h"
#include "patterns/cuda/windows_policy.h"
#include "patterns/windows.h"

/// The pattern `windows` (patterns/windows.h) on CUDA. An operator has up to eight kernels: `whole`
/// and `whole_channels` have threads share a window that holds a whole channel, as in global
/// pooling, or the channel that such a window gives to; `tiles` and `tiles_of_channels` have blocks
/// compute tiles of a gather in shared memory, where all tensors are contiguous or have vectors of
/// channels (channels last); `volumes` and `volumes_of_channels` do so plane by plane, where
/// windows of three axes each give to one element; `channels` reduces 16 bytes of neighbouring
/// channels at once; `elements` computes one by one, of any tensors.
namespace gradsmith::cuda {

/// WindowsKind is what the plan has to know of an operator's functor.
struct WindowsKind {
  /// Whose kernels they are: the name of an operator in the image.
  std::string_view kernels;
  /// Whether it is a gather, whose last tensor is over the windows' input.
  bool gathers = false;
  /// Whether its second tensor is over the input.
  bool reads_input = false;
  /// Whether it compares indices of the input's elements.
  bool has_places = false;
  /// Whether there are the kernels `whole` and `whole_channels`.
  bool has_whole = false;
  /// Whether there are kernels by tiles, in which the kind of key tells what a window gives, and
  /// not the functor.
  bool has_tiles = false;

  /// Whether a window of a gather gives to all that it holds, and not to one element.
  [[nodiscard]] constexpr bool shares() const { return !has_places && !reads_input; }
};

/// AddChoices makes the geometry a part of a task's key, from which MakeWindowsPlan reads it.
void AddChoices(const internal::WindowsGeometry& geometry, OpTask* task);

/// MakeWindowsPlan returns the plan of a task whose kernels are in the image, cut as
/// WindowsPolicyOf the device says. An error where an axis is too long for kernels.
Result<std::unique_ptr<internal::Plan>> MakeWindowsPlan(
    const WindowsPolicy& policy,
    const KernelImage& image,
    const WindowsKind& kind,
    const OpTask& task);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_CUDA_WINDOWS_H_
