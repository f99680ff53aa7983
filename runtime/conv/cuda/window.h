#ifndef GRADSMITH_CONV_CUDA_WINDOW_H_
#define GRADSMITH_CONV_CUDA_WINDOW_H_

#include <memory>
#include <string>
#include <vector>

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

/// ListWindow returns the candidate for a task, or none where the device or the kernels do not
/// take it.
std::vector<internal::Candidate> ListWindow(
    const cuda::DeviceInfo& device,
    const Task& task,
    const std::string& engine,
    bool allow_tf32);

/// BuildWindowPlan makes the candidate's plan.
Result<std::unique_ptr<internal::Plan>>
BuildWindowPlan(const cuda::DeviceInfo& device, const Task& task, bool allow_tf32);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_CUDA_WINDOW_H_
