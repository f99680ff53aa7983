#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/cuda/primitive_call.h"

/// Convolutions whose patches do not overlap, as products with the matrix of x's patches.
namespace gradsmith::cuda {
namespace {

constexpr const char* kForm = "patches ";

/// Patches that tile x and that do not, of which 16, 8, 4 and 2 bytes are moved at once, in one to
/// three dims, and more than a segment of a row.
std::vector<ConvShape> Shapes() {
  return {
      {.name = "2x2", .x = {2, 8, 6, 8}, .w = {16, 8, 2, 2}, .strides = {2, 2}},
      {.name = "images", .x = {2, 3, 32, 48}, .w = {8, 3, 16, 16}, .strides = {16, 16}},
      {.name = "odd images", .x = {3, 3, 21, 14}, .w = {10, 3, 7, 7}, .strides = {7, 7}},
      {.name = "14x14", .x = {1, 3, 28, 42}, .w = {8, 3, 14, 14}, .strides = {14, 14}},
      {.name = "gaps", .x = {2, 5, 13, 17}, .w = {7, 5, 3, 2}, .strides = {4, 5}},
      {.name = "a rest", .x = {2, 4, 11, 14}, .w = {8, 4, 4, 4}, .strides = {4, 4}},
      {.name = "one channel", .x = {2, 1, 12, 12}, .w = {5, 1, 4, 3}, .strides = {4, 3}},
      {.name = "one patch", .x = {4, 6, 5, 5}, .w = {9, 6, 5, 5}, .strides = {9, 9}},
      {.name = "a pad in the rest",
       .x = {2, 4, 9, 9},
       .w = {8, 4, 4, 4},
       .strides = {4, 4},
       .pads = {0, 0, 2, 1}},
      {.name = "one tap on an axis", .x = {2, 6, 9, 8}, .w = {4, 6, 1, 2}, .strides = {3, 2}},
      {.name = "1-D", .x = {2, 4, 1200}, .w = {8, 4, 4}, .strides = {4}},
      {.name = "1-D of one channel", .x = {1, 1, 2050}, .w = {8, 1, 10}, .strides = {10}},
      {.name = "volumes", .x = {2, 3, 5, 8, 12}, .w = {8, 3, 2, 4, 4}, .strides = {2, 4, 4}},
      {.name = "odd volumes", .x = {1, 5, 7, 6, 9}, .w = {3, 5, 2, 3, 2}, .strides = {3, 3, 4}},
  };
}

/// One of our own kernels, for any number of channels, whether it is listed or not.
std::string OwnOf(const PrimitiveCall& call) {
  const std::string form = std::string(kForm) + "own/tensor-cores/";
  const bool is_filter = call.primitive == ConvPrimitive::kBackwardFilter;
  switch (call.x->type()) {
    case DataType::kDouble:
      return form + "double/64x64";
    case DataType::kMLFloat16:
      return form + (is_filter ? "half/64x128" : "half/128x64");
    case DataType::kBFloat16:
      return form + (is_filter ? "bf16/64x128" : "bf16/128x64");
    default:
      return form + "float/64x64";
  }
}

bool HasForm(const PrimitiveCall& call, const Context& context) {
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
  bool has = false;
  for (const ConvAlgorithm& algorithm : *list) {
    has = has || algorithm.name.starts_with(kForm);
  }
  return has;
}

class CudaConvPatches : public CudaTest {};

TEST_F(CudaConvPatches, ComputeEveryPrimitiveExactly) {
  Random random("cuda patches");
  const Context context(OnGpu());
  for (const ConvShape& shape : Shapes()) {
    for (const DataType type : kAllTypes) {
      for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
        for (const ConvPrimitive primitive : kPrimitives) {
          const PrimitiveCall call = MakeCall(primitive, shape, type, layout, random);
          SCOPED_TRACE(shape.name + ": " + call.op.Describe());
          RunOnIntegers(call, context, OwnOf(call), random);
        }
      }
    }
  }
}

TEST_F(CudaConvPatches, AddToWhatIsThere) {
  Random random("cuda patches, adding");
  const Context context(OnGpu());
  for (const ConvShape& shape : Shapes()) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      for (const ConvPrimitive primitive : kPrimitives) {
        const PrimitiveCall call = MakeCall(primitive, shape, type, Layout::kChannelsLast, random);
        SCOPED_TRACE(shape.name + ": " + call.op.Describe());
        RunAddingIntegers(call, context, OwnOf(call), 3, random);
      }
    }
  }
}

/// A filter in the other layout than x: its columns are in its own order.
TEST_F(CudaConvPatches, TakeAFilterInTheOtherLayout) {
  Random random("cuda patches, layouts");
  const Context context(OnGpu());
  for (const ConvShape& shape : Shapes()) {
    for (const bool last : {false, true}) {
      for (const ConvPrimitive primitive : kPrimitives) {
        PrimitiveCall call = MakeCall(
            primitive, shape, DataType::kFloat, last ? Layout::kChannelsLast : Layout::kContiguous,
            random);
        const PrimitiveCall other = MakeCall(
            primitive, shape, DataType::kFloat, last ? Layout::kContiguous : Layout::kChannelsLast,
            random);
        SCOPED_TRACE(shape.name + ": " + call.op.Describe());
        for (auto* tensors : {&call.op.inputs, &call.op.outputs}) {
          for (TensorPointer& tensor : *tensors) {
            if (tensor == call.w) {
              tensor = other.w;
            }
          }
        }
        call.w = other.w;
        RunOnIntegers(call, context, OwnOf(call), random);
      }
    }
  }
}

/// What no patch has is zero, whatever is in dY and W.
TEST_F(CudaConvPatches, GapsOfTheDataGradientAreZeroBesideInfinities) {
  Random random("cuda patches, infinities");
  const Context context(OnGpu());
  const ConvShape shape = {
      .name = "gaps", .x = {2, 5, 13, 17}, .w = {7, 5, 3, 2}, .strides = {4, 5}};
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kBackwardData, shape, DataType::kMLFloat16, layout, random);
    call.y->Fill([] { return std::numeric_limits<double>::infinity(); });
    call.w->Fill([] { return 1.0; });
    Result<ConvAlgorithms> algorithms = call.Prepare(context);
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    call.op.ResetOutputs();
    ASSERT_TRUE(algorithms->Run({OwnOf(call)}).ok());
    ASSERT_TRUE(Synchronize(context).ok());
    int zeros = 0;
    for (const double value : call.x->GpuValues()) {
      ASSERT_TRUE(value == 0 || std::isinf(value)) << value;
      zeros += value == 0 ? 1 : 0;
    }
    // Of 13 rows three times 3 are in patches, of 17 columns four times 2.
    EXPECT_EQ(zeros, 2 * 5 * (13 * 17 - 9 * 8));
  }
}

TEST_F(CudaConvPatches, AreNotOfferedWhereTapsMeetTwiceOrPadding) {
  Random random("cuda patches, others");
  const Context context(OnGpu());
  const std::vector<ConvShape> shapes = {
      {.name = "overlap", .x = {2, 4, 9, 9}, .w = {8, 4, 3, 3}, .strides = {2, 3}},
      {.name = "padding",
       .x = {2, 4, 8, 8},
       .w = {8, 4, 4, 4},
       .strides = {4, 4},
       .pads = {1, 0, 3, 0}},
      {.name = "padding at the end",
       .x = {2, 4, 6, 8},
       .w = {8, 4, 4, 4},
       .strides = {4, 4},
       .pads = {0, 0, 2, 0}},
      {.name = "dilation",
       .x = {2, 4, 12, 12},
       .w = {8, 4, 2, 2},
       .strides = {4, 4},
       .dilations = {2, 2}},
      {.name = "groups", .x = {2, 4, 8, 8}, .w = {8, 2, 4, 4}, .strides = {4, 4}, .group = 2}};
  for (const ConvShape& shape : shapes) {
    for (const ConvPrimitive primitive : kPrimitives) {
      const PrimitiveCall call =
          MakeCall(primitive, shape, DataType::kFloat, Layout::kChannelsLast, random);
      EXPECT_FALSE(HasForm(call, context)) << shape.name;
    }
  }
  const ConvShape patches = Shapes()[0];
  for (const Layout layout : {Layout::kStrided, Layout::kChannelsLast}) {
    const PrimitiveCall call =
        MakeCall(ConvPrimitive::kForward, patches, DataType::kFloat, layout, random);
    EXPECT_EQ(HasForm(call, context), layout == Layout::kChannelsLast);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
