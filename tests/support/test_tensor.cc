#include "support/test_tensor.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "support/elements.h"

namespace gradsmith::support {

namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kPoison{0xFF};

/// Dense strides with the dims in this order, innermost first, and `gap` unused elements after each
/// dim.
std::vector<std::int64_t> StridesInOrder(
    const reference::Shape& dims,
    const std::vector<std::size_t>& innermost_first,
    std::int64_t gap) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t step = 1 + gap;
  for (const std::size_t axis : innermost_first) {
    strides[axis] = step;
    step = step * std::max<std::int64_t>(1, dims[axis]) + gap;
  }
  return strides;
}

std::int64_t Extent(const reference::Shape& dims, const std::vector<std::int64_t>& strides) {
  if (reference::Count(dims) == 0) {
    return 0;
  }
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    last += (dims[axis] - 1) * strides[axis];
  }
  return last + 1;
}

}  // namespace

std::vector<std::int64_t> StridesFor(Layout layout, const reference::Shape& dims) {
  std::vector<std::size_t> axes(dims.size());
  std::iota(axes.rbegin(), axes.rend(), 0);
  if (layout == Layout::kChannelsLast && dims.size() >= 3) {
    std::rotate(axes.begin(), axes.end() - 2, axes.end() - 1);
  }
  std::vector<std::int64_t> strides =
      StridesInOrder(dims, axes, layout == Layout::kStrided ? 1 : 0);
  if (layout == Layout::kBroadcast && !dims.empty()) {
    strides.front() = strides.back() = 0;
  }
  return strides;
}

IntList ToIntList(const std::vector<std::int64_t>& list) {
  return IntList(std::span(list));
}

std::string ToString(const std::vector<std::int64_t>& list) {
  std::string text;
  for (const std::int64_t value : list) {
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  }
  return "[" + text + "]";
}

TestTensor::TestTensor(DataType type, const reference::Shape& dims, Layout layout, Device device)
    : type_(type),
      dims_(dims),
      strides_(StridesFor(layout, dims)),
      device_(device),
      data_begin_(kGuard + (layout == Layout::kStrided ? SizeOf(type) : 0)),
      size_(ByteOffset(Extent(dims, strides_)) + kGuard),
      memory_(Allocate(device, size_)) {
  Poison();
}

void TestTensor::Poison() {
  memory_->CopyIn(std::vector<std::byte>(size_, kPoison));
}

void TestTensor::Fill(const std::vector<double>& values) {
  std::vector<std::byte> bytes(size_, kPoison);
  auto value = values.begin();
  ForEachOffset(dims_, strides_, [&](std::int64_t offset) {
    Encode(type_, *value++, &bytes[ByteOffset(offset)]);
  });
  memory_->CopyIn(bytes);
}

std::vector<double> TestTensor::Values() const {
  const std::vector<std::byte> bytes = AllBytes();
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(reference::Count(dims_)));
  ForEachOffset(dims_, strides_, [&](std::int64_t offset) {
    values.push_back(Decode(type_, &bytes[ByteOffset(offset)]));
  });
  return values;
}

std::vector<std::byte> TestTensor::ElementBytes() const {
  const std::vector<std::byte> bytes = AllBytes();
  std::vector<std::byte> elements;
  ForEachOffset(dims_, strides_, [&](std::int64_t offset) {
    const auto element = bytes.begin() + static_cast<std::ptrdiff_t>(ByteOffset(offset));
    elements.insert(elements.end(), element, element + static_cast<std::ptrdiff_t>(SizeOf(type_)));
  });
  return elements;
}

bool TestTensor::SurroundingsIntact() const {
  std::vector<std::byte> bytes = AllBytes();
  ForEachOffset(dims_, strides_, [&](std::int64_t offset) {
    std::fill_n(&bytes[ByteOffset(offset)], SizeOf(type_), kPoison);
  });
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == kPoison; });
}

TensorRef TestTensor::Ref() const {
  return {type_, memory_->Address() + data_begin_, ToIntList(dims_), ToIntList(strides_), device_};
}

std::size_t TestTensor::ByteOffset(std::int64_t offset) const {
  return data_begin_ + static_cast<std::size_t>(offset) * SizeOf(type_);
}

}  // namespace gradsmith::support
