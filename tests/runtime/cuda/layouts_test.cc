#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/op_problems.h"

/// Memory layouts and geometries against the CPU backend, in the modes that pick different kernels.
namespace gradsmith::cuda {
namespace {

class CudaLayouts : public CudaTest {
 protected:
  static constexpr SearchMode kModes[] = {SearchMode::kHeuristic, SearchMode::kBenchmark};

  static void RunAndCompare(const OpCall& call, const Context& context) {
    const std::string mode(ToString(context.search_mode()));
    call.ResetOutputs();
    Status status = call.Run(context);
    status = status.ok() ? Synchronize(context) : status;
    ASSERT_TRUE(status.ok()) << mode << ": " << call.Describe() << ": " << status.message();
    call.ExpectResults(mode);
  }
  /// In all modes: what is timed serves the heuristic mode, which therefore comes first.
  static void Check(const OpCall& call) {
    for (const SearchMode mode : kModes) {
      RunAndCompare(call, Context(OnGpu(mode, 2)));
    }
  }

  static std::vector<ConvShape> Geometries() {
    return {
        {.name = "1-D", .x = {3, 8, 40}, .w = {12, 8, 5}, .strides = {2}, .pads = {2, 1}},
        {.name = "3-D",
         .x = {2, 8, 6, 7, 5},
         .w = {8, 8, 3, 2, 3},
         .strides = {1, 2, 1},
         .pads = {1, 0, 1, 1, 1, 1}},
        {.name = "asymmetric pads", .x = {2, 16, 9, 11}, .w = {16, 16, 3, 2}, .pads = {0, 2, 1, 1}},
        {.name = "stride and dilation",
         .x = {2, 8, 19, 17},
         .w = {16, 8, 3, 3},
         .strides = {2, 3},
         .pads = {2, 2, 2, 2},
         .dilations = {2, 2}},
        {.name = "kernel larger than input",
         .x = {2, 8, 3, 3},
         .w = {8, 8, 5, 5},
         .pads = {2, 2, 2, 2}},
        {.name = "one position", .x = {4, 16, 4, 4}, .w = {8, 16, 4, 4}},
        {.name = "odd channels", .x = {2, 5, 9, 9}, .w = {7, 5, 3, 3}, .pads = {1, 1, 1, 1}},
        ConvDepthwise(),
        {.name = "depthwise, two for each",
         .x = {2, 8, 10, 10},
         .w = {16, 1, 3, 3},
         .strides = {2, 2},
         .pads = {1, 1, 1, 1},
         .group = 8}};
  }
};

TEST_F(CudaLayouts, GeometriesByHeuristic) {
  Random random("cuda layouts heuristic");
  const Context context(OnGpu());
  for (const ConvShape& shape : Geometries()) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided}) {
        RunAndCompare(MakeConvGrad(shape, type, layout, random), context);
        RunAndCompare(MakeConv(shape, type, layout, random), context);
      }
    }
  }
}

TEST_F(CudaLayouts, GeometriesByBenchmark) {
  Random random("cuda layouts benchmark");
  const Context context(OnGpu(SearchMode::kBenchmark, 2));
  for (const ConvShape& shape : Geometries()) {
    RunAndCompare(MakeConvGrad(shape, DataType::kBFloat16, Layout::kChannelsLast, random), context);
    RunAndCompare(MakeConvGrad(shape, DataType::kFloat, Layout::kContiguous, random), context);
  }
}

TEST_F(CudaLayouts, MisalignedByOneElement) {
  Random random("cuda layouts misaligned");
  for (const DataType type : {DataType::kMLFloat16, DataType::kFloat}) {
    // One tensor at a time, then all of them.
    for (int which = 0; which <= 5; ++which) {
      const ConvShape shape = Conv3x3();
      OpCall call = MakeConvGrad(shape, type, Layout::kChannelsLast, random);
      call.name += ", misaligned " + std::to_string(which);
      const auto move = [&](int number, TensorPointer& tensor, const Sizes& dims) {
        if (which == number || which == 5) {
          tensor = std::make_shared<GpuTensor>(
              type, dims, support::StridesFor(Layout::kChannelsLast, dims), 1);
        }
      };
      move(0, call.inputs[0], shape.YDims());
      move(1, call.inputs[1], shape.x);
      move(2, call.inputs[2], shape.w);
      move(3, call.outputs[0], shape.x);
      move(4, call.outputs[1], shape.w);
      call.FillInputs(random);
      if (which == 5) {
        Check(call);
      } else {
        RunAndCompare(call, Context(OnGpu()));
      }
    }
  }
}

TEST_F(CudaLayouts, ZeroStrideGradient) {
  Random random("cuda layouts zero stride");
  for (const DataType type : {DataType::kFloat, DataType::kBFloat16}) {
    for (const Layout layout : kDenseLayouts) {
      OpCall call = MakeConvGrad(Conv3x3(), type, layout, Layout::kBroadcast);
      call.FillInputs(random);
      Check(call);
      // What the gradient of a sum is: one number for all.
      call.name += ", all strides 0";
      call.inputs[0] = std::make_shared<GpuTensor>(type, Conv3x3().YDims(), Sizes{0, 0, 0, 0});
      call.FillInputs(random);
      Check(call);
    }
  }
}

/// Tensors that are channels of larger ones.
TEST_F(CudaLayouts, ChannelSlices) {
  Random random("cuda layouts slices");
  const ConvShape shape = Conv3x3();
  const auto slice = [&](DataType type, const Sizes& dims, bool channels_last, std::size_t from) {
    const std::int64_t channels = 2 * dims[1];
    const std::int64_t area = dims[2] * dims[3];
    const Sizes strides = channels_last ? Sizes{area * channels, 1, dims[3] * channels, channels}
                                        : Sizes{area * channels, area, dims[3], 1};
    return std::make_shared<GpuTensor>(type, dims, strides, from);
  };
  for (const DataType type : {DataType::kMLFloat16, DataType::kDouble, DataType::kFloat}) {
    for (const bool channels_last : {false, true}) {
      // The first channel is on a 16-byte boundary, or not.
      for (const std::size_t from : {std::size_t{8}, std::size_t{3}}) {
        OpCall call = MakeConvGrad(
            shape, type, channels_last ? Layout::kChannelsLast : Layout::kContiguous, random);
        call.name += ", slices from " + std::to_string(from);
        call.inputs[0] = slice(type, shape.YDims(), channels_last, from);
        call.inputs[1] = slice(type, shape.x, channels_last, from);
        call.outputs[0] = slice(type, shape.x, channels_last, from);
        call.FillInputs(random);
        if (type == DataType::kMLFloat16) {
          Check(call);
        } else {
          RunAndCompare(call, Context(OnGpu()));
        }
      }
    }
  }
}

/// Layouts that differ from tensor to tensor.
TEST_F(CudaLayouts, MixedLayouts) {
  Random random("cuda layouts mixed");
  const Context context(OnGpu());
  constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kChannelsLast, Layout::kStrided};
  for (int round = 0; round < 12; ++round) {
    const DataType type = kAllTypes.at(static_cast<std::size_t>(round) % kAllTypes.size());
    const ConvShape shape = round % 3 == 0 ? ConvGrouped() : Conv3x3();
    const auto any = [&] { return kLayouts[random.Integer(0, 2)]; };
    OpCall call = MakeConvGrad(shape, type, any(), any());
    call.name += ", round " + std::to_string(round);
    call.inputs[2] = MakeTensor(type, shape.w, any());
    call.outputs[0] = MakeTensor(type, shape.x, any());
    call.outputs[1] = MakeTensor(type, shape.w, any());
    call.FillInputs(random);
    RunAndCompare(call, context);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
