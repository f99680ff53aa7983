#include "support/large_memory.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include "support/device_allocation.h"
#include "support/elements.h"

namespace gradsmith::support {

std::size_t FreeBytes(Device device) {
  if (device.backend == Backend::kCuda) {
    return FreeOnDevice(device.index);
  }
  std::ifstream info("/proc/meminfo");
  std::string name;
  std::size_t kilobytes = 0;
  while (info >> name >> kilobytes) {
    if (name == "MemAvailable:") {
      return kilobytes << 10U;
    }
    info.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

LargeMemory::LargeMemory(Device device, DataType type, std::int64_t count)
    : device_(device),
      type_(type),
      count_(count),
      memory_(Allocate(device, static_cast<std::size_t>(count) * SizeOf(type))) {
  const Bytes poison(BytesOf(kBlock), std::byte{0xFF});
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    Write(begin, std::span(poison).first(BytesOf(std::min(kBlock, count - begin))));
  }
}

void LargeMemory::Fill(std::span<const double> period) {
  Fill(period, 0, count_);
}

void LargeMemory::Fill(std::span<const double> period, std::int64_t begin, std::int64_t end) {
  const Bytes block = Repeated(period);
  const auto elements = static_cast<std::int64_t>(block.size() / SizeOf(type_));
  for (; begin < end; begin += elements) {
    Write(begin, std::span(block).first(BytesOf(std::min(elements, end - begin))));
  }
}

void LargeMemory::FillWith(const std::function<double(std::int64_t)>& value) {
  for (std::int64_t begin = 0; begin < count_; begin += kBlock) {
    Write(begin, Encoded(value, begin, std::min(begin + kBlock, count_)));
  }
}

std::string LargeMemory::Difference(std::span<const double> period) const {
  return Difference(period, 0, count_);
}

std::string LargeMemory::Difference(
    std::span<const double> period,
    std::int64_t begin,
    std::int64_t end) const {
  const Bytes block = Repeated(period);
  const auto elements = static_cast<std::int64_t>(block.size() / SizeOf(type_));
  for (; begin < end; begin += elements) {
    std::string found =
        Compare(begin, std::span(block).first(BytesOf(std::min(elements, end - begin))));
    if (!found.empty()) {
      return found;
    }
  }
  return "";
}

std::string LargeMemory::DifferenceFrom(const std::function<double(std::int64_t)>& value) const {
  for (std::int64_t begin = 0; begin < count_; begin += kBlock) {
    std::string found = Compare(begin, Encoded(value, begin, std::min(begin + kBlock, count_)));
    if (!found.empty()) {
      return found;
    }
  }
  return "";
}

std::vector<double> LargeMemory::Values(std::int64_t begin, std::int64_t end) const {
  const Bytes bytes = Read(begin, end);
  std::vector<double> values;
  for (std::size_t at = 0; at < bytes.size(); at += SizeOf(type_)) {
    values.push_back(Decode(type_, &bytes[at]));
  }
  return values;
}

std::size_t LargeMemory::BytesOf(std::int64_t count) const {
  return static_cast<std::size_t>(count) * SizeOf(type_);
}

LargeMemory::Bytes LargeMemory::Repeated(std::span<const double> period) const {
  const auto length = static_cast<std::int64_t>(period.size());
  const auto value = [&](std::int64_t element) {
    return period[static_cast<std::size_t>(element)];
  };
  const Bytes one = Encoded(value, 0, length);
  Bytes block;
  const std::int64_t times = std::clamp<std::int64_t>(std::min(kBlock, count_) / length, 1, kBlock);
  block.reserve(one.size() * static_cast<std::size_t>(times));
  for (std::int64_t i = 0; i < times; ++i) {
    block.insert(block.end(), one.begin(), one.end());
  }
  return block;
}

LargeMemory::Bytes LargeMemory::Encoded(
    const std::function<double(std::int64_t)>& value,
    std::int64_t begin,
    std::int64_t end) const {
  Bytes bytes(BytesOf(end - begin));
  for (std::int64_t i = begin; i < end; ++i) {
    Encode(type_, value(i), &bytes[BytesOf(i - begin)]);
  }
  return bytes;
}

void LargeMemory::Write(std::int64_t begin, std::span<const std::byte> bytes) {
  std::byte* const to = data() + BytesOf(begin);
  if (device_.backend == Backend::kCuda) {
    CopyToDevice(device_.index, to, bytes);
  } else {
    std::ranges::copy(bytes, to);
  }
}

LargeMemory::Bytes LargeMemory::Read(std::int64_t begin, std::int64_t end) const {
  Bytes bytes(BytesOf(end - begin));
  const std::byte* const from = data() + BytesOf(begin);
  if (device_.backend == Backend::kCuda) {
    CopyFromDevice(device_.index, bytes, from);
  } else {
    std::copy_n(from, bytes.size(), bytes.begin());
  }
  return bytes;
}

std::string LargeMemory::Compare(std::int64_t begin, std::span<const std::byte> expected) const {
  const auto elements = static_cast<std::int64_t>(expected.size() / SizeOf(type_));
  const Bytes found = Read(begin, begin + elements);
  if (std::memcmp(found.data(), expected.data(), found.size()) == 0) {
    return "";
  }
  const auto [at, unlike] = std::ranges::mismatch(found, expected);
  const auto first =
      static_cast<std::int64_t>(static_cast<std::size_t>(at - found.begin()) / SizeOf(type_));
  return "element " + std::to_string(begin + first) + " of " + std::to_string(count_) + " is " +
         std::to_string(Decode(type_, &found[BytesOf(first)])) + "; expected " +
         std::to_string(Decode(type_, &expected[BytesOf(first)]));
}

}  // namespace gradsmith::support
