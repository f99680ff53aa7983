#ifndef GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_FILTER_H_
#define GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_FILTER_H_

#include <cstddef>
#include <optional>

#include "conv/cuda/depthwise_lines.h"
#include "conv/cuda/filter_slices.h"
#include "conv/task.h"

/// The part of conv/cuda/depthwise_lines.h that computes the filter's gradient.
namespace gradsmith::conv::depthwise_lines {

/// PlanFilter is for tasks of lines; it returns nothing where their filter is too large.
std::optional<DepthwiseLines> PlanFilter(const Task& task);

/// FilterPlan leaves no sums of dY, which are in float, beside a gradient in double.
class FilterPlan final : public internal::Plan {
 public:
  FilterPlan(const Task& task, const FilterSlices<FilterArguments>& slices, std::size_t workspace)
      : task_(task), slices_(slices), workspace_(workspace) {}

  [[nodiscard]] std::size_t workspace() const override { return workspace_; }

  Status Run(const internal::Launch& launch) override {
    return RunFilterSlices(task_, slices_, launch, {}, static_cast<void*>(nullptr));
  }

 private:
  Task task_;
  FilterSlices<FilterArguments> slices_;
  std::size_t workspace_;
};

}  // namespace gradsmith::conv::depthwise_lines

#endif  // GRADSMITH_CONV_CUDA_DEPTHWISE_LINES_FILTER_H_
