#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_OP_PROBLEMS_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_OP_PROBLEMS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cuda/op_call.h"

/// Calls of every op with tensors that fit together.
namespace gradsmith::cuda {

inline TensorPointer
MakeTensor(DataType type, const Sizes& dims, Layout layout = Layout::kContiguous) {
  return std::make_shared<GpuTensor>(type, dims, layout);
}

/// ConvShape is a convolution from x (N, C, D...) with w (M, C / group, K...).
struct ConvShape {
  std::string name;
  Sizes x;
  Sizes w;
  IntList strides = {};
  IntList pads = {};
  IntList dilations = {};
  std::int64_t group = 1;

  [[nodiscard]] Sizes YDims() const {
    Sizes y = {x[0], w[0]};
    const auto axes = static_cast<int>(x.size()) - 2;
    for (int i = 0; i < axes; ++i) {
      const std::int64_t pad = pads.empty() ? 0 : pads[i] + pads[axes + i];
      const std::int64_t dilation = dilations.empty() ? 1 : dilations[i];
      const std::int64_t stride = strides.empty() ? 1 : strides[i];
      y.push_back(((x[i + 2] + pad - (dilation * (w[i + 2] - 1)) - 1) / stride) + 1);
    }
    return y;
  }
  [[nodiscard]] std::vector<Attribute> Attributes() const {
    std::vector<Attribute> attributes = {{"group", group}};
    if (!strides.empty()) {
      attributes.emplace_back("strides", strides);
    }
    if (!pads.empty()) {
      attributes.emplace_back("pads", pads);
    }
    if (!dilations.empty()) {
      attributes.emplace_back("dilations", dilations);
    }
    return attributes;
  }
};

/// In 2-d, by such steps along both axes; `pads` are those at the begin of both, and those at the
/// end.
inline ConvShape ConvBySteps(
    std::int64_t step,
    std::string name,
    Sizes x,
    std::int64_t y_channels,
    std::array<std::int64_t, 2> taps,
    IntList pads) {
  Sizes w = {y_channels, x[1], taps[0], taps[1]};
  return {
      .name = std::move(name),
      .x = std::move(x),
      .w = std::move(w),
      .strides = {step, step},
      .pads = std::move(pads)};
}
inline ConvShape Conv3x3() {
  return {.name = "3x3", .x = {2, 16, 14, 14}, .w = {24, 16, 3, 3}, .pads = {1, 1, 1, 1}};
}
inline ConvShape Conv1x1() {
  return {.name = "1x1", .x = {2, 32, 14, 14}, .w = {16, 32, 1, 1}};
}
inline ConvShape ConvGrouped() {
  return {
      .name = "grouped",
      .x = {2, 16, 12, 12},
      .w = {16, 4, 3, 3},
      .pads = {1, 1, 1, 1},
      .group = 4};
}
inline ConvShape ConvStrided() {
  return {
      .name = "strided",
      .x = {2, 8, 15, 15},
      .w = {12, 8, 5, 5},
      .strides = {2, 2},
      .pads = {2, 2, 2, 2}};
}
inline ConvShape ConvDepthwise() {
  return {
      .name = "depthwise",
      .x = {2, 16, 14, 14},
      .w = {16, 1, 3, 3},
      .pads = {1, 1, 1, 1},
      .group = 16};
}

inline std::string LayoutName(Layout layout) {
  constexpr std::array<const char*, 4> kNames = {"NCHW", "NHWC", "strided", "broadcast"};
  return kNames.at(static_cast<std::size_t>(layout));
}

/// An op's call, unfilled: inputs (dY, X, W), outputs (dX, dW, dB). `dy_layout` may be kBroadcast.
inline OpCall MakeConvGrad(const ConvShape& shape, DataType type, Layout layout, Layout dy_layout) {
  OpCall call{
      .name = shape.name + " " + LayoutName(layout) + " dY " + LayoutName(dy_layout),
      .op = "ConvGrad",
      .types = {type},
      .attributes = shape.Attributes()};
  call.inputs = {
      MakeTensor(type, shape.YDims(), dy_layout), MakeTensor(type, shape.x, layout),
      MakeTensor(type, shape.w, layout)};
  call.outputs = {
      MakeTensor(type, shape.x, layout), MakeTensor(type, shape.w, layout),
      MakeTensor(type, {shape.w[0]})};
  return call;
}
inline OpCall MakeConvGrad(const ConvShape& shape, DataType type, Layout layout, Random& random) {
  OpCall call = MakeConvGrad(shape, type, layout, layout);
  call.FillInputs(random);
  return call;
}

/// Conv with a bias.
inline OpCall MakeConv(const ConvShape& shape, DataType type, Layout layout, Random& random) {
  OpCall call{
      .name = shape.name + " " + LayoutName(layout),
      .op = "Conv",
      .types = {type},
      .attributes = shape.Attributes()};
  call.inputs = {
      MakeTensor(type, shape.x, layout), MakeTensor(type, shape.w, layout),
      MakeTensor(type, {shape.w[0]})};
  call.outputs = {MakeTensor(type, shape.YDims(), layout)};
  call.FillInputs(random);
  return call;
}

/// The gradient of the transposed convolution from the shape's y to its x, whose sizes must come
/// out even.
inline OpCall
MakeConvTransposeGrad(const ConvShape& shape, DataType type, Layout layout, Random& random) {
  OpCall call{
      .name = shape.name + " " + LayoutName(layout),
      .op = "ConvTransposeGrad",
      .types = {type},
      .attributes = shape.Attributes()};
  call.inputs = {
      MakeTensor(type, shape.x, layout), MakeTensor(type, shape.YDims(), layout),
      MakeTensor(type, shape.w, layout)};
  call.outputs = {
      MakeTensor(type, shape.YDims(), layout), MakeTensor(type, shape.w, layout),
      MakeTensor(type, {shape.x[1]})};
  call.FillInputs(random);
  return call;
}

/// BatchNormalization with all its outputs.
inline OpCall MakeBatchNorm(const Sizes& x, DataType type, Layout layout, Random& random) {
  OpCall call{.name = LayoutName(layout), .op = "BatchNormalization", .types = {type, type, type}};
  const auto channels = [&] { return MakeTensor(type, {x[1]}); };
  call.inputs = {MakeTensor(type, x, layout), channels(), channels(), channels(), channels()};
  call.outputs = {MakeTensor(type, x, layout), channels(), channels(), channels(), channels()};
  call.FillInputs(random);
  return call;
}

/// Inputs (dY, X, scale, saved_mean, saved_inv_std), outputs (dX, dScale, dBias).
inline OpCall MakeBatchNormGrad(const Sizes& x, DataType type, Layout layout, Random& random) {
  OpCall call{
      .name = LayoutName(layout), .op = "BatchNormalizationGrad", .types = {type, type, type}};
  const auto channels = [&] { return MakeTensor(type, {x[1]}); };
  call.inputs = {
      MakeTensor(type, x, layout), MakeTensor(type, x, layout), channels(), channels(), channels()};
  call.outputs = {MakeTensor(type, x, layout), channels(), channels()};
  call.FillInputs(random);
  return call;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_OP_PROBLEMS_H_
