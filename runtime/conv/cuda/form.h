#ifndef GRADSMITH_CONV_CUDA_FORM_H_
#define GRADSMITH_CONV_CUDA_FORM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conv/cuda/patch_matrix.h"
#include "conv/task.h"
#include "core/plan.h"
#include "cuda/device.h"

/// This says in what form a task's operands meet an engine: as they are, or as copies that suit it.
namespace gradsmith::conv {

/// OperandForm is the task as the engine sees it, and which operands are copied for that. A copied
/// operand is dense and aligned. It may have more channels than the task's, which are zero.
struct OperandForm {
  /// KernelName::form of its candidates: empty for the task as it is.
  std::string name;
  Task inner;
  std::array<bool, kOperands> copied = {};
  /// x is copied at those positions only that a filter of one tap reads: the inner convolution goes
  /// by single steps.
  bool subsampled = false;
  /// x is copied with those zeros that one end of an axis has beyond the other: the inner
  /// convolution has the same padding at both.
  bool bordered = false;
  /// x is copied to the matrix of its patches, and the task is their product with its own w and y;
  /// `inner` is the same with copies.
  std::optional<PatchMatrix> patches = std::nullopt;
  /// x is copied with each of its channels so often, one for each filter of the channel: the inner
  /// convolution has one filter for each channel. A gradient of x is the sum of so many.
  std::int64_t repeats = 1;
  /// The filters of a channel of x, as many as this if it is not 1, are the planes of one filter
  /// that has an axis more, turned around, and the channels of y that they meet are planes too.
  std::int64_t stacked = 1;
  /// Offered beside the task as it is, where another layout or number of channels may be quicker.
  bool is_detour = false;
  /// Only our own engines may be quick in it.
  bool is_for_own = false;
};

/// FormsOf returns the forms that a task can be run in, the most promising first. As a rule that is
/// - the task as it is, unless an input has zero strides or an odd address;
/// - "packed": copies of those operands that have odd strides or addresses;
/// - "subsampled": see above;
/// - "bordered": where the ends of an axis have unlike padding, for which cuDNN has few engines.
///   Half and bf16 are channels last in it;
/// - "patches": x as the matrix of its patches, channels last, and a multiple of columns for tensor
///   cores;
/// - "padded4" and "padded8": channels last, and a multiple of so many of them, which tensor cores
///   need;
/// - "nhwc" and "nchw": the other layout; the first, where channels are padded as well, for our own
///   windows alone and where they may fit; the second, of depthwise ones, for our own kernels of
///   dense rows alone;
/// - "repeated" and "repeated-nchw": of depthwise ones with several filters for each channel, see
///   above, in the task's layout and, where its channels are last, in the other; but for gradients
///   of x in half and bf16, whose sums would be rounded twice;
/// - "stacked": gradients of x of the same, see above, channels first, but for volumes;
/// but half and bf16 that tensor cores could not take otherwise are padded before all else.
std::vector<OperandForm> FormsOf(const Task& task);

/// AlignedWorkspace rounds bytes up to where the next piece of a workspace may begin.
constexpr std::size_t AlignedWorkspace(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// WrapPlan returns a plan for the task from one for the form: it copies inputs, and a result
/// that is added to, into the workspace, runs the inner plan, and copies the result back.
std::unique_ptr<internal::Plan> WrapPlan(
    const cuda::DeviceInfo& device,
    const Task& task,
    const OperandForm& form,
    std::unique_ptr<internal::Plan> inner);

/// CopiesBytes returns the workspace that a form's copies take.
std::size_t CopiesBytes(const OperandForm& form);

/// CopyBytes returns those of one operand.
std::size_t CopyBytes(const OperandForm& form, Operand operand);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_FORM_H_
