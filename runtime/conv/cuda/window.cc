#include "conv/cuda/window.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "conv/cuda/filter_slices.h"
#include "conv/cuda/math_name.h"
#include "conv/cuda/window_tiles.h"
#include "core/tiles.h"
#include "cuda/kernel_images.h"
#include "cuda/module.h"

namespace gradsmith::conv {

namespace {

using internal::CeilDivide;
using window::CorrelateArguments;
using window::Correlation;
using window::Filter;

/// Launches of a kernel take different amounts of shared memory.
Result<CUkernel> FindKernel(const cuda::DeviceInfo& device, const std::string& name) {
  return cuda::FindKernelOf(
      window::kMostShared, device.ordinal(),
      {&cuda::kImage_conv_window_correlate, &cuda::kImage_conv_window_filter},
      ("gradsmith_window_" + name).c_str());
}

class CorrelatePlan final : public internal::Plan {
 public:
  /// A launch that prepares the filter, and those that multiply by it.
  struct Launches {
    CUkernel prepare;
    cuda::LaunchShape prepare_shape;
    CUkernel multiply;
    cuda::LaunchShape multiply_shape;
  };

  CorrelatePlan(const Task& task, const Correlation& correlation, const Launches& launches)
      : correlation_(correlation),
        launches_(launches),
        accumulate_(task.accumulate),
        result_(ResultOf(task.primitive)) {}

  [[nodiscard]] std::size_t workspace() const override { return correlation_.workspace(); }

  Status Run(const internal::Launch& launch) override {
    CUstream stream = launch.stream;
    const void* source = launch.operands[result_ == kX ? kY : kX];
    const void* filter = launch.operands[kW];
    if (Status status = cuda::Launch(
            launches_.prepare, launches_.prepare_shape, stream, correlation_.arguments, filter,
            launch.workspace);
        !status.ok()) {
      return status;
    }
    const int launches = correlation_.launches();
    for (int slab = 0; slab < launches; ++slab) {
      if (Status status = cuda::Launch(
              launches_.multiply, launches_.multiply_shape, stream, correlation_.arguments, source,
              launch.workspace, launch.operands[result_], slab, accumulate_ || slab > 0);
          !status.ok()) {
        return status;
      }
    }
    return {};
  }

 private:
  Correlation correlation_;
  Launches launches_;
  bool accumulate_;
  Operand result_;
};

cuda::LaunchShape ShapeOf(std::int64_t blocks, std::int64_t slabs, int threads, int shared_bytes) {
  return {
      .blocks_x = static_cast<unsigned>(blocks),
      .blocks_y = static_cast<unsigned>(slabs),
      .threads = static_cast<unsigned>(threads),
      .shared_bytes = static_cast<unsigned>(shared_bytes)};
}

Result<std::unique_ptr<internal::Plan>>
Build(const cuda::DeviceInfo& device, const Task& task, const Correlation& correlation) {
  constexpr int kPrepareThreads = 128;
  constexpr std::int64_t kRegisterBytes = 4;
  const CorrelateArguments& arguments = correlation.arguments;
  const std::string type = MathNameOf(task.problem.type);
  const Result<CUkernel> prepare = FindKernel(device, "fragments_" + type);
  const Result<CUkernel> multiply = FindKernel(
      device, "correlate_" + type + (window::SharesChunks(arguments) ? "_shared" : "_apart"));
  if (!prepare.ok() || !multiply.ok()) {
    return prepare.ok() ? multiply.status() : prepare.status();
  }
  const std::int64_t room =
      device.multiprocessors() * window::RoomFor(correlation.shared_bytes, window::kBlocksOfSm);
  const std::int64_t slabs_at_once = correlation.slabs / correlation.launches();
  const std::int64_t blocks =
      std::clamp<std::int64_t>(CeilDivide(room, slabs_at_once), 1, arguments.tiling.count);
  const std::int64_t registers = correlation.fragment_bytes() / kRegisterBytes;
  return std::unique_ptr<internal::Plan>(std::make_unique<CorrelatePlan>(
      task, correlation,
      CorrelatePlan::Launches{
          .prepare = *prepare,
          .prepare_shape = ShapeOf(
              CeilDivide(registers, kPrepareThreads), correlation.slabs, kPrepareThreads, 0),
          .multiply = *multiply,
          .multiply_shape =
              ShapeOf(blocks, slabs_at_once, window::kThreads, correlation.shared_bytes)}));
}

Result<std::unique_ptr<internal::Plan>>
Build(const cuda::DeviceInfo& device, const Task& task, const Filter& filter) {
  const Result<CUkernel> kernel = FindKernel(
      device, std::string("filter_") + MathNameOf(task.problem.type) + "_" +
                  std::to_string(filter.row_blocks));
  if (!kernel.ok()) {
    return kernel.status();
  }
  const FilterSlices<window::FilterArguments> slices = {
      .kernel = *kernel,
      .shape = ShapeOf(filter.blocks, filter.slabs, window::kFilterThreads, filter.shared_bytes),
      .arguments = filter.arguments,
      .count = filter.slices()};
  return std::unique_ptr<internal::Plan>(
      std::make_unique<FilterSlicesPlan<window::FilterArguments>>(
          task, slices, filter.workspace()));
}

}  // namespace

std::optional<WindowWork>
MakeWindowWork(const cuda::DeviceInfo& device, const Task& task, bool allow_tf32) {
  if (!window::Fits(device.compute_capability(), task, allow_tf32)) {
    return std::nullopt;
  }
  if (IsFilter(task)) {
    return window::MakeFilter(task, device.multiprocessors());
  }
  return window::MakeCorrelation(task);
}

internal::Candidate WindowCandidate(const Task& task, const WindowWork& work) {
  return {
      .id = kWindow,
      .engine = kWindow,
      .notes = {.tf32 = task.problem.type == DataType::kFloat},
      .workspace = std::visit([](const auto& either) { return either.workspace(); }, work)};
}

Result<std::unique_ptr<internal::Plan>>
BuildWindowPlan(const cuda::DeviceInfo& device, const Task& task, const WindowWork& work) {
  return std::visit([&](const auto& either) { return Build(device, task, either); }, work);
}

}  // namespace gradsmith::conv
