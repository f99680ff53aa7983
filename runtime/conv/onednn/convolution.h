#ifndef GRADSMITH_CONV_ONEDNN_CONVOLUTION_H_
#define GRADSMITH_CONV_ONEDNN_CONVOLUTION_H_

#include <memory>
#include <string>
#include <vector>

#include "conv/task.h"
#include "core/candidate.h"
#include "core/plan.h"
#include "gradsmith/status.h"

/// oneDNN's implementations of a convolution's primitives, by its direct algorithm (Winograd's is
/// not exact) and in strict float. A candidate is named by where it keeps its activations and by
/// oneDNN's name of the implementation: "blocked/jit:avx2" copies the operands into oneDNN's own
/// layouts and the result back, "plain/jit:avx2" takes x and y as they are, and copies the filter.
namespace gradsmith::conv {

/// Operands of a convolution on the CPU are x, w, y and the bias, of which the last may be null; it
/// has no gaps.
inline constexpr int kBias = kOperands;
inline constexpr int kCpuOperands = kOperands + 1;

/// The source of oneDNN's candidates.
inline constexpr const char* kOneDnn = "onednn";

/// ListOneDnn lists the implementations for a task on so many threads, the most promising first.
/// An id is such as "plain/jit:avx2", which is the variant's in a candidate's name. The reference
/// ones, which take a thousand times as long, are left out.
std::vector<internal::Candidate>
ListOneDnn(const Task& task, int threads, std::vector<internal::Rejection>* rejections);

/// BuildOneDnnPlan makes the plan of such an id.
Result<std::unique_ptr<internal::Plan>>
BuildOneDnnPlan(const Task& task, int threads, const std::string& choice);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_ONEDNN_CONVOLUTION_H_
