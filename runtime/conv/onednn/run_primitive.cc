#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "conv/onednn/convolution.h"
#include "conv/onednn/padding.h"
#include "conv/onednn/search_space.h"
#include "conv/primitives.h"
#include "cpu/selected_run.h"
#include "onednn/library.h"
#include "onednn/threads.h"

/// The CPU's primitives in a build with oneDNN: in float, what was chosen for the problem.
namespace gradsmith::conv {

namespace {

/// How many threads oneDNN's kernels of a task take: one where waking the others takes longer.
int ThreadsOf(const Context& context, const Task& task) {
  constexpr double kFew = 2e6;
  return ProductsOf(task) < kFew ? 1 : onednn::ThreadsOf(context);
}

/// The bias without gaps: where it is, or in `copy`.
const float* WithoutGaps(const ConstTensorRef& bias, std::vector<float>* copy) {
  const auto* data = static_cast<const float*>(bias.data);
  if (bias.strides[0] == 1 || bias.dims[0] == 1) {
    return data;
  }
  for (std::int64_t i = 0; i < bias.dims[0]; ++i) {
    copy->push_back(data[i * bias.strides[0]]);
  }
  return copy->data();
}

}  // namespace

Status RunPrimitive(
    const Context& context,
    Primitive primitive,
    const Problem& problem,
    const std::array<void*, kOperands>& operands,
    const ConstTensorRef* bias) {
  if (problem.type != DataType::kFloat || HasEmptyOperand(problem)) {
    RunOwn(context, primitive, problem, operands, bias);
    return {};
  }
  Task task;
  task.primitive = primitive;
  task.problem = problem;
  task.bias = bias != nullptr;
  const int threads = ThreadsOf(context, task);
  internal::ProblemKey key;
  AddTo(task, &key);
  cpu::AddPolicy(context, problem.type, kRevision, &key);
  key.Add(onednn::Fingerprint());
  // Our own kernels take all of the context's, oneDNN's perhaps fewer.
  key.Add(context.threads());
  key.Add(threads);
  std::vector<float> bias_copy;
  const void* bias_data = bias == nullptr ? nullptr : WithoutGaps(*bias, &bias_copy);
  const std::array<void*, kCpuOperands> all = {
      operands[kX], operands[kW], operands[kY], const_cast<void*>(bias_data)};
  const auto make = [&] {
    return std::make_unique<CpuSearchSpace>(
        context, task, threads, cpu::PolicyOf(context, problem.type));
  };
  const Status status = cpu::RunSelected(context, problem.type, key, all, std::cref(make));
  if (status.ok() && !context.preparing() &&
      MayHaveMultipliedPadding(primitive, problem, operands)) {
    RunOwn(context, primitive, problem, operands, bias);
  }
  return status;
}

}  // namespace gradsmith::conv
