#include "cpu/trial.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <utility>

#include "core/rounding.h"
#include "core/stopwatch.h"
#include "core/tensor_memory.h"

namespace gradsmith::cpu {

namespace {

/// A NaN that no computation gives.
constexpr std::uint32_t kPoison = 0xFFBADBAD;
/// Floats on either side of a tensor that nobody is to write.
constexpr std::size_t kBorder = 64;

bool IsPoison(float value) {
  return std::bit_cast<std::uint32_t>(value) == kPoison;
}

void Poison(std::span<float> values) {
  std::ranges::fill(values, std::bit_cast<float>(kPoison));
}

void FillRandom(std::span<float> values, std::uint32_t seed, const internal::UniformRange& range) {
  const auto center = static_cast<float>(range.center);
  const auto radius = static_cast<float>(range.radius);
  // xorshift32 by Marsaglia.
  std::uint32_t state = 2463534242U + seed;
  for (float& value : values) {
    state ^= state << 13U;
    state ^= state >> 17U;
    state ^= state << 5U;
    value = center + (radius * ((static_cast<float>(state >> 8U) * 0x1p-23F) - 1));
  }
}

Status TooFar(double relative, double allowed, double largest) {
  std::array<char, 160> text{};
  std::snprintf(
      text.data(), text.size(),
      "disagrees with our own kernel: relative error %.2e, expected at most %.2e; largest error "
      "%.2e",
      relative, allowed, largest);
  return Internal(text.data());
}

/// Errors adds up how far a result is from what is expected.
struct Errors {
  double squared = 0;
  double squared_expected = 0;
  double largest = 0;
  std::size_t not_finite = 0;
  std::size_t written_between = 0;

  void Add(float value, float expected) {
    if (IsPoison(expected)) {  // no element of the tensor
      written_between += IsPoison(value) ? 0 : 1;
      return;
    }
    if (!std::isfinite(value)) {
      ++not_finite;
      return;
    }
    const double error = std::abs(double{value} - double{expected});
    squared += error * error;
    squared_expected += double{expected} * double{expected};
    largest = std::max(largest, error);
  }

  [[nodiscard]] Result<double> Judge(double allowed) const {
    if (not_finite > 0) {
      return Internal(std::to_string(not_finite) + " elements are not written, or not finite");
    }
    if (written_between > 0) {
      return Internal(
          "writes between the result's elements or beside them, " +
          std::to_string(written_between) + " times");
    }
    const double relative = internal::RelativeError(squared, squared_expected);
    return relative <= allowed ? Result<double>(relative) : TooFar(relative, allowed, largest);
  }
};

}  // namespace

std::span<float> Trial::Buffer::all() const {
  return {reinterpret_cast<float*>(memory.data()), count};
}

float* Trial::Buffer::data() const {
  return all().data() + kBorder;
}

Trial::Buffer Trial::Allocate(const ConstTensorRef& tensor) {
  const std::size_t count = (internal::SpanBytes(tensor) / sizeof(float)) + (2 * kBorder);
  return {AlignedMemory(count * sizeof(float)), count};
}

Trial::Trial(
    const Context& context,
    const std::vector<ConstTensorRef>& tensors,
    std::size_t output,
    Reference reference)
    : context_(context), output_(output), reference_(std::move(reference)) {
  for (const ConstTensorRef& tensor : tensors) {
    const Buffer& buffer = buffers_.emplace_back(tensor.present ? Allocate(tensor) : Buffer());
    addresses_.push_back(tensor.present ? buffer.data() : nullptr);
  }
  expected_ = Allocate(tensors.at(output));
  ranges_.resize(buffers_.size());
  Fill();
}

void Trial::Fill() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    FillRandom(buffers_[i].all(), static_cast<std::uint32_t>(i + 1), ranges_[i]);
  }
  has_expected_ = false;
}

void Trial::Refill(std::span<const internal::UniformRange> ranges) {
  if (!std::ranges::equal(ranges, ranges_)) {
    ranges_.assign(ranges.begin(), ranges.end());
    Fill();
  }
}

void Trial::Reserve(std::size_t workspace) {
  if (workspace > workspace_.size()) {
    workspace_ = AlignedMemory();
    workspace_ = AlignedMemory(workspace);
  }
}

Status Trial::Run(internal::Plan& plan) {
  Reserve(plan.workspace());
  return plan.Run({.operands = addresses_, .workspace = workspace_.data(), .context = &context_});
}

Result<double> Trial::Compare(double allowed) {
  const std::span<const float> result = buffers_.at(output_).all();
  const std::span<const float> expected = expected_.all();
  Errors errors;
  for (std::size_t i = 0; i < result.size(); ++i) {
    errors.Add(result[i], expected[i]);
  }
  return errors.Judge(allowed);
}

Result<double> Trial::Check(internal::Plan& plan, double allowed, bool twice) {
  if (!has_expected_) {
    std::vector<void*> operands = addresses_;
    operands.at(output_) = expected_.data();
    Poison(expected_.all());
    reference_(operands);
    has_expected_ = true;
  }
  const std::span<float> result = buffers_.at(output_).all();
  Reserve(plan.workspace());  // before it is poisoned
  std::vector<float> first;
  for (int run = 0; run < (twice ? 2 : 1); ++run) {
    first.assign(run == 0 ? result.end() : result.begin(), result.end());
    Poison(result);
    Poison({reinterpret_cast<float*>(workspace_.data()), workspace_.size() / sizeof(float)});
    if (Status status = Run(plan); !status.ok()) {
      return status;
    }
  }
  const auto same_bits = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  };
  if (twice && !std::ranges::equal(first, result, same_bits)) {
    return Internal("a second run gives other bits");
  }
  return Compare(allowed);
}

Result<double> Trial::Time(internal::Plan& plan) {
  constexpr double kLongEnough = 2e-4;  // seconds
  // Threads that OpenMP keeps spinning after another plan's run would take processors from this
  // one.
  constexpr std::chrono::milliseconds kOthersCalmDown{10};
  if (last_timed_ != &plan) {
    std::this_thread::sleep_for(kOthersCalmDown);
    last_timed_ = &plan;
  }
  const internal::Stopwatch watch;
  int runs = 0;
  while (runs == 0 || watch.Seconds() < kLongEnough) {
    if (Status status = Run(plan); !status.ok()) {
      return status;
    }
    ++runs;
  }
  return watch.Seconds() * 1e3 / runs;
}

}  // namespace gradsmith::cpu
