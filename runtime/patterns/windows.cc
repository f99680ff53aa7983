#include "patterns/windows.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/arguments.h"

namespace gradsmith::internal {

namespace {

PerDim<std::int64_t> StridesOf(const TensorRef& tensor, int rank) {
  PerDim<std::int64_t> strides;
  strides.batch = tensor.strides[0];
  strides.channel = tensor.strides[1];
  for (int axis = 0; axis < rank; ++axis) {
    strides.axes[kWindowAxes - rank + axis] = tensor.strides[2 + axis];
  }
  return strides;
}

/// The steps of the index of all elements of the input.
PerDim<std::int64_t> PlacesOf(const WindowsGeometry& geometry, std::int64_t channels) {
  PerDim<std::int64_t> places;
  std::int64_t step = 1;
  const int first = kWindowAxes - geometry.rank;
  for (int i = 0; i < geometry.rank; ++i) {
    const int axis = geometry.column_major ? first + i : kWindowAxes - 1 - i;
    places.axes[axis] = step;
    step *= geometry.axes[axis].input;
  }
  places.channel = step;
  places.batch = step * channels;
  return places;
}

}  // namespace

WindowsTask MakeWindowsTask(const WindowsGeometry& geometry, std::span<const TensorRef> tensors) {
  WindowsTask task;
  task.batch = tensors[0].dims[0];
  task.channels = tensors[0].dims[1];
  task.counts_padding = geometry.counts_padding;
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    WindowAxis& windows = task.axes[axis];
    windows = geometry.axes[axis];
    // With one tap a dilation means nothing, and may be larger than any position.
    windows.dilation = windows.size == 1 ? 1 : windows.dilation;
    task.is_dilated = task.is_dilated || windows.dilation != 1;
  }
  if (SiteTotal(SiteCounts(task, /*of_output=*/false)) > 0) {
    task.places = PlacesOf(geometry, task.channels);
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].present) {
      task.tensors[t] = tensors[t].data;
      task.strides[t] = StridesOf(tensors[t], geometry.rank);
      task.accumulate = task.accumulate || tensors[t].accumulate;
    }
  }
  return task;
}

Status CheckWindows(
    std::span<const TensorRef> tensors,
    const WindowsGeometry& geometry,
    const WindowsOperands& operands,
    std::span<const std::string_view> names) {
  const TensorRef& first = tensors[0];
  if (first.rank() != 2 + geometry.rank) {
    return Internal(
        std::string(names[0]) + " has " + std::to_string(first.rank()) + " dims; expected " +
        std::to_string(2 + geometry.rank));
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const bool is_over_input = (operands.over_input >> t & 1U) != 0;
    Dims expected = {first.dims[0], first.dims[1]};
    for (const WindowAxis& axis : std::span(geometry.axes).last(geometry.rank)) {
      expected.push_back(is_over_input ? axis.input : axis.output);
    }
    const bool has_indices = (operands.indices >> t & 1U) != 0;
    const Argument argument =
        MakeArgument(names[t], &tensors[t], expected, has_indices ? DataType::kInt64 : first.type);
    if (HasWrongDims(argument)) {
      return WrongDims(names[t], *argument.dims, expected, ", as the windows say");
    }
    if (Status status = CheckTypes({&argument, 1}, "one type"); !status.ok()) {
      return status;
    }
  }
  return {};
}

PerDim<std::int64_t> SiteCounts(const WindowsTask& task, bool of_output) {
  PerDim<std::int64_t> counts = {.batch = task.batch, .channel = task.channels};
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    counts.axes[axis] = of_output ? task.axes[axis].output : task.axes[axis].input;
  }
  return counts;
}

std::int64_t SiteTotal(const PerDim<std::int64_t>& counts) {
  // Where one is 0, the product of the others may be too large.
  const std::array<std::int64_t, 2 + kWindowAxes> sizes = {
      counts.batch, counts.channel, counts.axes[0], counts.axes[1], counts.axes[2]};
  std::int64_t total = std::ranges::find(sizes, 0) == sizes.end() ? 1 : 0;
  for (const std::int64_t size : sizes) {
    total = total == 0 ? 0 : total * size;
  }
  return total;
}

}  // namespace gradsmith::internal
