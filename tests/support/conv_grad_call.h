#ifndef GRADSMITH_TESTS_SUPPORT_CONV_GRAD_CALL_H_
#define GRADSMITH_TESTS_SUPPORT_CONV_GRAD_CALL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "gradsmith/gradsmith.h"

namespace gradsmith::support {

/// Numbers returns small integers, of which sums are exact.
inline std::vector<float> Numbers(std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  }
  return numbers;
}

/// ConvGradCall is a call for tests of what happens around calls: large enough for several threads,
/// done in about a millisecond. What it is to give is computed first, on one thread.
class ConvGradCall {
 public:
  explicit ConvGradCall(bool accumulate = false) : accumulate_(accumulate) {
    was_made_ = Run(Context({.threads = 1})).ok();
    expected_ = {dx_, dw_, db_};
  }

  Status Run(const Context& context) {
    constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();
    std::ranges::fill(dx_, accumulate_ ? 1.0F : kPoison);
    std::ranges::fill(dw_, kPoison);
    std::ranges::fill(db_, kPoison);
    const TensorView<float> dx(dx_.data(), kX);
    return ConvGrad<float>(
        context, {.pads = {1, 1, 1, 1}},
        {.dY = {dy_.data(), kY}, .X = {x_.data(), kX}, .W = {w_.data(), kW}},
        {.dX = accumulate_ ? dx.Accumulating() : dx,
         .dW = {dw_.data(), kW},
         .dB = {db_.data(), {kY[1]}}});
  }

  /// Whether the last call has written what it is to give.
  [[nodiscard]] bool IsRight() const { return was_made_ && expected_ == std::array{dx_, dw_, db_}; }

  /// Whether a call succeeds and gives that.
  [[nodiscard]] bool IsRightOn(const Context& context) { return Run(context).ok() && IsRight(); }

 private:
  static constexpr Dims kX = {8, 3, 16, 15};
  static constexpr Dims kW = {4, 3, 3, 3};
  static constexpr Dims kY = {8, 4, 16, 15};

  bool accumulate_;
  bool was_made_ = false;
  std::vector<float> x_ = Numbers(5760);
  std::vector<float> w_ = Numbers(108);
  std::vector<float> dy_ = Numbers(7680);
  std::vector<float> dx_ = std::vector<float>(5760);
  std::vector<float> dw_ = std::vector<float>(108);
  std::vector<float> db_ = std::vector<float>(4);
  std::array<std::vector<float>, 3> expected_;
};

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_CONV_GRAD_CALL_H_
