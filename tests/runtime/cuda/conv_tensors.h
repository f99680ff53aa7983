#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_CONV_TENSORS_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_CONV_TENSORS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

#include "conv/kernels.h"
#include "conv/primitives.h"
#include "conv/problem.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"
#include "reference/random.h"
#include "runtime/cuda/gpu_tensor.h"
#include "support/elements.h"
#include "support/test_tensor.h"

/// Problems of convolutions with their tensors, for tests of kernels and copies below the ops.
namespace gradsmith::conv {

using cuda::GpuTensor;
using cuda::Sizes;
using reference::Random;
using support::Layout;

inline constexpr DataType kConvTypes[] = {
    DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16};
inline constexpr Primitive kConvPrimitives[] = {
    Primitive::kForward, Primitive::kBackwardData, Primitive::kBackwardFilter};

inline std::string DescribeConv(const Problem& problem) {
  std::ostringstream text;
  text << ToString(problem.type) << " batch " << problem.batch << " channels " << problem.x_channels
       << " -> " << problem.y_channels << " group " << problem.group;
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes[i];
    text << "; x " << axis.x << " w " << axis.w << " y " << axis.y << " stride " << axis.stride
         << " dilation " << axis.dilation << " pads " << axis.pad_begin << ", " << axis.pad_end;
  }
  text << "; strides " << ToString(problem.x_strides) << ToString(problem.w_strides)
       << ToString(problem.y_strides);
  return text.str();
}

inline Sizes ConvDims(
    std::int64_t outer,
    std::int64_t channels,
    const Problem& problem,
    std::int64_t Axis::*size) {
  Sizes dims = {outer, channels};
  for (int i = 0; i < problem.spatial_rank; ++i) {
    dims.push_back(problem.axes[i].*size);
  }
  return dims;
}

/// A problem with its three tensors, on the host and on the GPU.
struct ConvTensors {
  Problem problem;
  std::unique_ptr<GpuTensor> x;
  std::unique_ptr<GpuTensor> w;
  std::unique_ptr<GpuTensor> y;

  [[nodiscard]] GpuTensor& Result(Primitive primitive) const {
    switch (primitive) {
      case Primitive::kForward:
        return *y;
      case Primitive::kBackwardData:
        return *x;
      case Primitive::kBackwardFilter:
        break;
    }
    return *w;
  }
};

/// The layout of each tensor; kBroadcast only of those that are read.
struct ConvLayouts {
  Layout x = Layout::kContiguous;
  Layout w = Layout::kContiguous;
  Layout y = Layout::kContiguous;
};

inline ConvTensors
MakeConvTensors(Problem problem, DataType type, const ConvLayouts& layouts, Random& random) {
  problem.type = type;
  ConvTensors tensors;
  const auto make = [&](const Sizes& dims, Layout layout) {
    auto tensor = std::make_unique<GpuTensor>(type, dims, layout);
    tensor->FillRandom(random);
    return tensor;
  };
  tensors.x = make(ConvDims(problem.batch, problem.x_channels, problem, &Axis::x), layouts.x);
  tensors.w = make(
      ConvDims(problem.y_channels, problem.x_channels / problem.group, problem, &Axis::w),
      layouts.w);
  tensors.y = make(ConvDims(problem.batch, problem.y_channels, problem, &Axis::y), layouts.y);
  tensors.problem = WithStrides(
      problem, tensors.x->GpuRef().strides, tensors.w->GpuRef().strides,
      tensors.y->GpuRef().strides);
  return tensors;
}

struct ConvSizes {
  std::int64_t N = 1;
  std::int64_t C = 1;
  std::int64_t M = 1;
  Sizes D;
  Sizes K;
};

inline Problem MakeConvProblem(const ConvSizes& shape, const Attributes& attributes) {
  Sizes x = {shape.N, shape.C};
  Sizes w = {shape.M, shape.C / attributes.group};
  x.insert(x.end(), shape.D.begin(), shape.D.end());
  w.insert(w.end(), shape.K.begin(), shape.K.end());
  const Result<Problem> problem = ConvolutionProblem(
      attributes, ConstTensorRef(DataType::kFloat, nullptr, support::ToIntList(x)),
      ConstTensorRef(DataType::kFloat, nullptr, support::ToIntList(w)));
  EXPECT_TRUE(problem.ok()) << problem.status().message();
  return *problem;
}

/// Any valid convolution of a few thousand products.
inline Problem RandomConvProblem(Random& random) {
  const int rank = static_cast<int>(random.Integer(1, 3));
  Attributes attributes;
  attributes.group = random.Integer(1, 3);
  ConvSizes shape = {
      .N = random.Integer(1, 3),
      .C = attributes.group * random.Integer(1, 3),
      .M = attributes.group * random.Integer(1, 3),
      .D = {},
      .K = {}};
  IntList pads_end;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t K = random.Integer(1, 4);
    const std::int64_t dilation = random.Integer(1, 4);
    const std::int64_t span = (dilation * (K - 1)) + 1;
    const std::int64_t pad = random.Integer(0, span + 1);
    const std::int64_t pad_end = random.Integer(0, span + 1);
    shape.K.push_back(K);
    shape.D.push_back(random.Integer(std::max<std::int64_t>(1, span - pad - pad_end), span + 5));
    attributes.strides.push_back(random.Integer(1, 4));
    attributes.dilations.push_back(dilation);
    attributes.pads.push_back(pad);
    pads_end.push_back(pad_end);
  }
  for (const std::int64_t pad : pads_end) {
    attributes.pads.push_back(pad);
  }
  return MakeConvProblem(shape, attributes);
}

/// How many products an element sums at most.
inline double LargestConvSum(Primitive primitive, const Problem& problem) {
  std::int64_t terms = problem.batch;
  if (primitive != Primitive::kBackwardFilter) {
    terms = std::max(problem.x_channels, problem.y_channels) / problem.group;
  }
  for (int i = 0; i < problem.spatial_rank; ++i) {
    const Axis& axis = problem.axes[i];
    terms *= primitive == Primitive::kBackwardFilter ? axis.y : axis.w;
  }
  return static_cast<double>(terms);
}

inline void RunConvOnCpu(Primitive primitive, const ConvTensors& tensors) {
  static const Context kContext;
  void* x = tensors.x->HostRef().data;
  void* w = tensors.w->HostRef().data;
  void* y = tensors.y->HostRef().data;
  switch (primitive) {
    case Primitive::kForward:
      Forward(kContext, tensors.problem, x, w, nullptr, y);
      break;
    case Primitive::kBackwardData:
      BackwardData(kContext, tensors.problem, y, w, nullptr, x);
      break;
    case Primitive::kBackwardFilter:
      BackwardFilter(kContext, tensors.problem, x, y, w);
      break;
  }
}

}  // namespace gradsmith::conv

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_CONV_TENSORS_H_
