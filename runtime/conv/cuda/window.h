#ifndef GRADSMITH_CONV_CUDA_WINDOW_H_
#define GRADSMITH_CONV_CUDA_WINDOW_H_

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "conv/cuda/window_problem.h"
#include "conv/task.h"
#include "core/candidate.h"
#include "core/plan.h"
#include "cuda/device.h"
#include "gradsmith/status.h"

/// Our own convolutions of few channels on tensor cores: of groups of up to 16 channels (8 for the
/// filter's gradient), and forward and backward data where all of the result's channels at a step's
/// positions are 8 at most, as in a network's first layer. A block of threads copies a window of
/// the image to shared memory once and reads it there at every tap, where other engines fetch it
/// anew for each.
///
/// Images and signals, channels last, half and bf16, and float where TF32 is allowed. Narrow groups
/// are multiplied side by side with zeros between them, and all positions of a step by every tap
/// that reaches any: what is infinite makes NaN of results beside those that it belongs to, of up
/// to 8 channels and as far as the filter reaches. The filter's gradient keeps it where it belongs.
namespace gradsmith::conv {

/// WindowWork is a task as the kernels compute it.
using WindowWork = std::variant<window::Correlation, window::Filter>;

/// MakeWindowWork returns nothing where the device or the kernels do not take a task. It weighs
/// thousands of tiles.
std::optional<WindowWork>
MakeWindowWork(const cuda::DeviceInfo& device, const Task& task, bool allow_tf32);

inline constexpr const char* kWindow = "own/window";

internal::Candidate WindowCandidate(const Task& task, const WindowWork& work);

/// BuildWindowPlan makes the candidate's plan.
Result<std::unique_ptr<internal::Plan>>
BuildWindowPlan(const cuda::DeviceInfo& device, const Task& task, const WindowWork& work);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_WINDOW_H_
