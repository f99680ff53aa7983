#include "patterns/cuda/windows.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/tiles.h"
#include "core/window.h"
#include "cuda/alignment.h"
#include "cuda/kernel_table.h"
#include "cuda/module.h"
#include "patterns/cuda/windows_launch.h"

namespace gradsmith::cuda {

namespace {

using internal::kWindowAxes;
using internal::PerDim;
using internal::WindowAxis;
using internal::WindowsGeometry;
using internal::WindowsTask;

/// Of which kernel's name a task's form is a part.
enum class WindowsForm : std::uint8_t { kChannels, kRun, kElements };

WindowsGeometry GeometryOf(const OpTask& task) {
  WindowsGeometry geometry;
  int next = 0;
  for (WindowAxis& axis : geometry.axes) {
    for (std::int64_t* field :
         {&axis.input, &axis.output, &axis.size, &axis.stride, &axis.dilation, &axis.pad_begin,
          &axis.pad_end}) {
      *field = task.choices[next++];
    }
  }
  geometry.rank = static_cast<int>(task.choices[next++]);
  const std::int64_t flags = task.choices[next];
  geometry.counts_padding = (flags & 1) != 0;
  geometry.column_major = (flags & 2) != 0;
  return geometry;
}

/// Whether 16 bytes of neighbours lie whole in a tensor, along the channels or the last axis.
bool HasVectors(
    const TensorRef& tensor,
    const PerDim<std::int64_t>& strides,
    int elements,
    bool along_channels) {
  const std::int64_t step = along_channels ? strides.channel : strides.axes[kWindowAxes - 1];
  if (step != 1 || AlignmentClass(tensor.data, tensor.type) != kVectorBytes) {
    return false;
  }
  const std::array<std::int64_t, 4> others = {
      strides.batch, strides.axes[0], strides.axes[1],
      along_channels ? strides.axes[kWindowAxes - 1] : strides.channel};
  return std::ranges::all_of(others, [&](std::int64_t stride) { return stride % elements == 0; });
}

/// Whether all tensors have vectors along the channels.
bool HasChannels(const OpTask& task, const WindowsTask& windows, int elements) {
  if (windows.channels % elements != 0) {
    return false;
  }
  for (int t = 0; t < task.operands(); ++t) {
    if (task.tensors[t].present &&
        !HasVectors(task.tensors[t], windows.strides[t], elements, /*along_channels=*/true)) {
      return false;
    }
  }
  return true;
}

/// Whether a gather's tensors over the input have vectors along the last axis.
bool HasRuns(
    const WindowsKind& kind,
    const OpTask& task,
    const WindowsTask& windows,
    int elements) {
  const int last = kWindowAxes - 1;
  if (!kind.gathers || windows.axes[last].input % elements != 0 ||
      (kind.has_places && windows.places.axes[last] != 1)) {
    return false;
  }
  const auto has_vectors = [&](int t) {
    return HasVectors(task.tensors[t], windows.strides[t], elements, /*along_channels=*/false);
  };
  return has_vectors(task.operands() - 1) && (!kind.reads_input || has_vectors(1));
}

WindowsForm
FormOf(const WindowsKind& kind, const OpTask& task, const WindowsTask& windows, int elements) {
  if (HasChannels(task, windows, elements)) {
    return WindowsForm::kChannels;
  }
  return HasRuns(kind, task, windows, elements) ? WindowsForm::kRun : WindowsForm::kElements;
}

std::string KernelName(WindowsForm form, const OpTask& task) {
  constexpr std::array<std::string_view, 3> kForms = {"channels", "run", "elements"};
  return "gradsmith_windows_" + std::string(kForms[static_cast<std::size_t>(form)]) + "_" +
         std::string(task.op->name) + "_" + std::string(KernelSuffix(task.lead().type));
}

/// Whether kernels can count along all axes.
Status CheckPositions(const WindowsTask& task) {
  for (const WindowAxis& axis : task.axes) {
    const internal::Wide padded = internal::Wide{axis.input} + axis.pad_begin + axis.pad_end;
    const internal::Wide most = std::max(padded, internal::WindowSpan(axis.size, axis.dilation));
    if (most > kMostWindowPositions) {
      return Unsupported(
          "an axis of " + std::to_string(axis.input) + " positions, with pads " +
          std::to_string(axis.pad_begin) + ", " + std::to_string(axis.pad_end) +
          " and windows of size " + std::to_string(axis.size) + ", passes 2^30 positions; " +
          "expected at most 2^30 on CUDA");
    }
  }
  return {};
}

/// Threads go along memory: the tensor that is written has the strides.
WindowsLaunch MakeLaunch(
    const WindowsTask& task,
    const WindowsKind& kind,
    WindowsForm form,
    const PerDim<std::int64_t>& strides,
    int elements) {
  WindowsLaunch launch;
  launch.task = task;
  launch.channels_first =
      form == WindowsForm::kChannels ||
      (form == WindowsForm::kElements && strides.channel < strides.axes[kWindowAxes - 1]);
  const PerDim<std::int64_t> counts = internal::SiteCounts(task, !kind.gathers);
  const std::int64_t lanes = form == WindowsForm::kElements ? 1 : elements;
  const std::int64_t(&axes)[kWindowAxes] = counts.axes;
  const std::array<std::int64_t, WindowsLaunch::kSizes> sizes =
      launch.channels_first ? std::array{counts.channel / lanes, axes[2], axes[1], axes[0]}
                            : std::array{axes[2] / lanes, axes[1], axes[0], counts.channel};
  launch.count = counts.batch;
  for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
    launch.sizes[dim] = sizes[dim];
    launch.count = sizes[dim] == 0 ? 0 : launch.count * sizes[dim];
  }
  constexpr std::int64_t kMostDivided = std::int64_t{1} << 31;
  launch.is_wide = launch.count >= kMostDivided;
  for (std::size_t dim = 0; dim < sizes.size() && launch.count > 0 && !launch.is_wide; ++dim) {
    launch.by_size[dim] = DivisorOf(sizes[dim]);
  }
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    launch.by_stride[axis] = DivisorOf(std::min(task.axes[axis].stride, kMostDivided));
  }
  return launch;
}

class WindowsPlan final : public internal::Plan {
 public:
  WindowsPlan(const WindowsLaunch& launch, CUkernel kernel) : launch_(launch), kernel_(kernel) {}

  [[nodiscard]] std::size_t workspace() const override { return 0; }

  Status Run(const internal::Launch& launch) override {
    if (launch_.count == 0) {
      return {};
    }
    WindowsLaunch windows = launch_;
    std::ranges::copy(launch.operands, windows.task.tensors);
    const auto blocks = static_cast<unsigned>(internal::CeilDivide(windows.count, kWindowsThreads));
    return Launch(
        kernel_, {.blocks_x = blocks, .threads = kWindowsThreads}, launch.stream, windows);
  }

 private:
  WindowsLaunch launch_;
  CUkernel kernel_;
};

}  // namespace

void AddChoices(const WindowsGeometry& geometry, OpTask* task) {
  for (const WindowAxis& axis : geometry.axes) {
    for (const std::int64_t field :
         {axis.input, axis.output, axis.size, axis.stride, axis.dilation, axis.pad_begin,
          axis.pad_end}) {
      task->choices.push_back(field);
    }
  }
  task->choices.push_back(geometry.rank);
  task->choices.push_back((geometry.counts_padding ? 1 : 0) + (geometry.column_major ? 2 : 0));
}

Result<std::unique_ptr<internal::Plan>>
MakeWindowsPlan(const KernelImage& image, const WindowsKind& kind, const OpTask& task) {
  const WindowsTask windows = internal::MakeWindowsTask(
      GeometryOf(task), {task.tensors.begin(), static_cast<std::size_t>(task.operands())});
  if (Status status = CheckPositions(windows); !status.ok()) {
    return status;
  }
  const int elements = kVectorBytes / static_cast<int>(SizeOf(task.lead().type));
  const WindowsForm form = FormOf(kind, task, windows, elements);
  const Result<CUkernel> kernel = FindKernel({&image}, KernelName(form, task).c_str());
  if (!kernel.ok()) {
    return kernel.status();
  }
  const int written = kind.gathers ? task.operands() - 1 : 1;
  const WindowsLaunch launch = MakeLaunch(windows, kind, form, windows.strides[written], elements);
  return std::unique_ptr<internal::Plan>(std::make_unique<WindowsPlan>(launch, *kernel));
}

}  // namespace gradsmith::cuda
