#include "core/argument_overlap.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/overlap.h"
#include "gradsmith/schema.h"

namespace gradsmith::internal {
namespace {

constexpr std::size_t kTensors = 4;  // inputs, and outputs
constexpr std::array<TensorSpec, kTensors> kInputs = {
    {{.name = "A"}, {.name = "B"}, {.name = "C"}, {.name = "D"}}};
constexpr std::array<TensorSpec, kTensors> kOutputs = {
    {{.name = "W", .in_place_of = 1},
     {.name = "X", .in_place_of = 3},
     {.name = "Y"},
     {.name = "Z"}}};

using Inputs = std::array<ConstTensorRef, kTensors>;
using Outputs = std::array<TensorRef, kTensors>;

/// Whether the checks let the arguments of an op pass, or those of one that is spelled out, whose
/// pairs are not all compared.
bool IsSound(const Inputs& inputs, const Outputs& outputs, bool is_spelled_out) {
  OpSchema op;
  op.inputs = kInputs;
  op.outputs = kOutputs;
  op.list_length = is_spelled_out ? 1 : 0;
  return CheckNoneIsShared(op, outputs).ok() && CheckOverlaps(op, inputs, outputs).ok();
}

bool AreTheSame(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data == b.data && a.type == b.type && a.dims == b.dims && a.strides == b.strides;
}

/// The same, pair by pair.
bool IsSoundByPairs(const Inputs& inputs, const Outputs& outputs) {
  for (std::size_t o = 0; o < kTensors; ++o) {
    const ConstTensorRef output = outputs[o];
    if (OverlapsItself(output)) {
      return false;
    }
    for (std::size_t i = 0; i < kTensors; ++i) {
      const bool in_place = kOutputs[o].in_place_of == static_cast<int>(i);
      const bool may_overlap = in_place && AreTheSame(output, inputs[i]);
      if ((!may_overlap && Overlap(output, inputs[i])) ||
          (i < o && Overlap(output, ConstTensorRef(outputs[i])))) {
        return false;
      }
    }
  }
  return true;
}

/// Views of some memory, most of which lie apart, with some that are absent and some that lie in an
/// input's place, or nearly so.
class Views {
 public:
  explicit Views(unsigned seed) : random_(seed), memory_(kSize) {}

  void Draw(Inputs& inputs, Outputs& outputs) {
    for (std::size_t i = 0; i < kTensors; ++i) {
      inputs[i] = OneIn(8) ? TensorRef() : View(2 * i);
    }
    for (std::size_t i = 0; i < kTensors; ++i) {
      outputs[i] = OneIn(8) ? TensorRef() : View(2 * i + 1);
      if (kOutputs[i].in_place_of >= 0 && OneIn(2)) {
        outputs[i] = Near(inputs[static_cast<std::size_t>(kOutputs[i].in_place_of)]);
      }
    }
  }

 private:
  static constexpr std::size_t kOfEach = 16;
  static constexpr std::size_t kSize = (2 * kTensors + 2) * kOfEach;

  bool OneIn(int count) { return Below(count) == 0; }
  int Below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

  /// A view in its own place, or in any, or a long one.
  TensorRef View(std::size_t place) {
    const std::size_t begin =
        OneIn(16) ? static_cast<std::size_t>(Below(kSize / 2)) : place * kOfEach;
    const std::int64_t size = OneIn(32) ? 2 * kOfEach : OneIn(32) ? 0 : 4;
    const Strides strides = OneIn(32) ? Strides{0, 1} : Strides{size, 1};
    return {DataType::kFloat, &memory_[begin], Dims{OneIn(2) ? 1 : 2, size}, strides, {}};
  }
  /// The very memory of a tensor, or that of a tensor that differs in one thing.
  TensorRef Near(const ConstTensorRef& input) {
    TensorRef near;
    near.present = input.present;
    near.data = const_cast<void*>(input.data);
    near.type = OneIn(16) ? DataType::kInt32 : input.type;
    near.dims = input.dims;
    near.strides = input.strides;
    if (input.present && OneIn(16)) {
      near.data = static_cast<float*>(near.data) + 1;
    } else if (input.present && OneIn(16)) {
      near.dims[1] = 3;
    } else if (input.present && OneIn(16)) {
      near.strides = {1, near.dims[0]};
    }
    return near;
  }

  std::mt19937 random_;
  std::vector<float> memory_;
};

TEST(CheckOverlaps, AgreesWithAllPairs) {
  Views views(7);
  int sound = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    Inputs inputs;
    Outputs outputs;
    views.Draw(inputs, outputs);
    const bool expected = IsSoundByPairs(inputs, outputs);
    ASSERT_EQ(IsSound(inputs, outputs, /*is_spelled_out=*/false), expected) << trial;
    ASSERT_EQ(IsSound(inputs, outputs, /*is_spelled_out=*/true), expected) << trial;
    sound += expected ? 1 : 0;
  }
  EXPECT_GT(sound, kTrials / 5);
  EXPECT_LT(sound, kTrials / 5 * 4);
}

}  // namespace
}  // namespace gradsmith::internal
