#include "gradsmith/kernel.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/stub.h"
#include "gradsmith/gradsmith.h"
#include "support/fake_op.h"

namespace gradsmith {
namespace {

/// ConvGrad on float through the dynamic door, with tensors that fit together.
class ConvGradKernel : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAll(registry_).ok()); }

  Result<Kernel> Create(std::initializer_list<Attribute> attributes) {
    return Kernel::Create(registry_, "ConvGrad", {DataType::kFloat}, Backend::kCpu, attributes);
  }

  /// The message of the error that creating must give, without its prefix.
  std::string CreateError(std::initializer_list<Attribute> attributes) {
    const Result<Kernel> kernel = Create(attributes);
    EXPECT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.status().code(), StatusCode::kInvalidArgument);
    return WithoutPrefix(kernel.status().message());
  }

  /// The message of the error that running must give, without its prefix.
  std::string RunError() {
    const Result<Kernel> kernel = Create({});
    EXPECT_TRUE(kernel.ok());
    const Status status = kernel->Run(context_, {dy_, x_, w_}, {dx_});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return WithoutPrefix(status.message());
  }

  static std::string WithoutPrefix(const std::string& message) {
    EXPECT_EQ(message.find("ConvGrad[float] on cpu (ops.yaml:"), 0U) << message;
    const std::size_t end = message.find("): ");
    return end == std::string::npos ? message : message.substr(end + 3);
  }

  Registry registry_;
  Context context_{{.threads = 1}};
  std::vector<float> dy_data_ = std::vector<float>(2 * 4 * 3 * 4, 1.0F);
  std::vector<float> x_data_ = std::vector<float>(2 * 3 * 5 * 5, 1.0F);
  std::vector<float> w_data_ = std::vector<float>(4 * 3 * 3 * 2, 1.0F);
  std::vector<float> dx_data_ = std::vector<float>(2 * 3 * 5 * 5);
  ConstTensorRef dy_{DataType::kFloat, dy_data_.data(), {2, 4, 3, 4}};
  ConstTensorRef x_{DataType::kFloat, x_data_.data(), {2, 3, 5, 5}};
  ConstTensorRef w_{DataType::kFloat, w_data_.data(), {4, 3, 3, 2}};
  TensorRef dx_{DataType::kFloat, dx_data_.data(), {2, 3, 5, 5}};
};

TEST_F(ConvGradKernel, RunsAndMayBeRunAgain) {
  const Result<Kernel> kernel = Create({{"strides", IntList{1, 1}}, {"auto_pad", "VALID"}});
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  for (int run = 0; run < 2; ++run) {
    const Status status = kernel->Run(context_, {dy_, x_, w_}, {dx_});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(dx_data_[0], 4.0F);              // one tap reads the corner, for each of four filters
    EXPECT_EQ(dx_data_[2 * 5 + 2], 4.0F * 6);  // all six read the middle
  }
}

TEST_F(ConvGradKernel, NamesWhatIsWrongWithAnAttribute) {
  EXPECT_EQ(
      CreateError({{"stride", IntList{1, 1}}}),
      "there is no attribute 'stride'; expected one of kernel_shape, strides, pads, dilations, "
      "group, auto_pad; did you mean 'strides'?");
  EXPECT_EQ(
      CreateError({{"group", 1}, {"group", 1}}), "attribute group is given twice; expected once");
  EXPECT_EQ(CreateError({{"group", "two"}}), "attribute group is 'two'; expected an integer");
  EXPECT_EQ(CreateError({{"group", 0}}), "attribute group is 0; expected at least 1");
  EXPECT_EQ(
      CreateError({{"strides", IntList{1, 0}}}),
      "attribute strides is [1, 0], with 0; expected each at least 1");
  EXPECT_EQ(
      CreateError({{"auto_pad", "SAME_UPER"}}),
      "attribute auto_pad is 'SAME_UPER'; expected one of NOTSET, SAME_UPPER, SAME_LOWER, VALID; "
      "did you mean 'SAME_UPPER'?");
  EXPECT_EQ(
      CreateError({{"pads", IntList{0, 0, 0, 0, 0, 0, 0, 0, 0}}}),
      "attribute pads is [0, 0, 0, 0, 0, 0, 0, 0, ...]; expected at most 8 values");
}

TEST_F(ConvGradKernel, NamesWhatIsWrongWithATensor) {
  x_.type = DataType::kDouble;
  EXPECT_EQ(RunError(), "X has type double; expected float (T)");
  x_.type = DataType::kFloat;
  x_.dims = {2, 3, 5};
  x_.strides = {15, 5, 1};
  EXPECT_EQ(RunError(), "X has shape [2, 3, 5], rank 3; expected rank 4: [N, C, *D]");
  x_ = {DataType::kFloat, x_data_.data(), {2, 2, 5, 5}};
  EXPECT_EQ(
      RunError(),
      "W has shape [4, 3, 3, 2], 3 at dimension 1; expected 2 (C = 2 from X, group = 1): "
      "[M, C / group, *K]");
  x_ = {DataType::kFloat, x_data_.data(), {2, 3, 4, 5}};
  EXPECT_EQ(
      RunError(),
      "dY has O = [3, 4]; expected [2, 4] by conv::OutputSpatial(D, K), D = [4, 5] from X, "
      "K = [3, 2] from W");
  x_ = {};
  EXPECT_EQ(RunError(), "input X is absent; it is required");
}

TEST_F(ConvGradKernel, NamesRanksAndMultiplesThatDoNotFit) {
  dy_ = {DataType::kFloat, dy_data_.data(), {1, 1, 1, 1, 1, 1}};
  EXPECT_EQ(
      RunError(), "dY has shape [1, 1, 1, 1, 1, 1], rank 6; expected rank 3 to 5: [N, M, *O]");
  const auto infer = [](const Dims& X, const Dims& W) {
    return InferShapes(ConvAttributes{.group = 2}, {.X = X, .W = W}).status().message();
  };
  EXPECT_EQ(infer({1, 4, 3}, {6, 2, 3}), "");
  EXPECT_EQ(
      infer({1, 5, 3}, {6, 2, 3}),
      "Conv: C = 5 from X is no multiple of group = 2, and W has shape [6, 2, 3]; expected "
      "[M, C / group, *K]");
  EXPECT_EQ(
      infer({1, 4, 3}, {5, 2, 3}),
      "Conv: M = 5 from W does not fit; expected a multiple of group = 2");
}

TEST(ShapesOfSoftmax, ErrorsTellOnWhichAttributesRanksHang) {
  const auto infer = [](const Dims& dY, const Dims& Y, std::int64_t axis, bool coerced) {
    const SoftmaxGradAttributes attributes{.axis = axis, .coerced = coerced};
    return InferShapes(attributes, {.dY = dY, .Y = Y}).status().message();
  };
  for (const bool coerced : {false, true}) {
    for (const std::int64_t axis : {-3, 0, 1, 2}) {
      EXPECT_EQ(infer({2, 3, 4}, {2, 3, 4}, axis, coerced), "");
    }
  }
  EXPECT_EQ(
      infer({3, 4}, {2, 3, 4}, -1, false),
      "SoftmaxGrad: dY has shape [3, 4], rank 2; expected rank 3 to 8: [*B, *A, *F] with "
      "axis = -1 of Y, coerced = false");
  EXPECT_EQ(
      infer({2}, {2, 3, 4}, 1, true),
      "SoftmaxGrad: dY has shape [2], rank 1; expected rank 2 to 8: [*B, *A, *F] with "
      "axis = 1 of Y, coerced = true");
  EXPECT_EQ(
      infer({2, 3, 4, 5}, {2, 3, 4}, 1, false),
      "SoftmaxGrad: Y has shape [2, 3, 4], rank 3; expected rank 4: [*B, *A, *F] with "
      "axis = 1 of Y, coerced = false");
  EXPECT_EQ(
      infer({2, 3, 4}, {2, 5, 4}, 0, true),
      "SoftmaxGrad: Y has shape [2, 5, 4], 5 at dimension 1; expected 3 (A = [2, 3, 4] from dY): "
      "[*B, *A, *F]");
  EXPECT_EQ(
      infer({}, {}, -1, false),
      "SoftmaxGrad: attribute axis is -1, and Y has shape []; expected a tensor that has axes");
}

TEST_F(ConvGradKernel, NamesWhatIsWrongWithMemory) {
  x_.data = nullptr;
  EXPECT_EQ(RunError(), "X has null data; expected 150 elements, dims [2, 3, 5, 5]");
  x_.data = dx_data_.data() + 149;
  EXPECT_EQ(RunError(), "output dX overlaps input X in memory; expected memory of its own");
  x_.data = x_data_.data();
  dx_.strides = {75, 25, 5, 0};
  EXPECT_EQ(
      RunError(),
      "output dX has dims [2, 3, 5, 5] and strides [75, 25, 5, 0], in which elements share memory; "
      "expected strides that do not overlap");
  dx_.strides = {75, 25, -5, 1};
  EXPECT_EQ(
      RunError(), "dX has strides [75, 25, -5, 1], negative at dimension 2; expected 0 or more");
  dx_.strides = {75, 25, 5};
  EXPECT_EQ(
      RunError(), "dX has 3 strides [75, 25, 5] for 4 dims [2, 3, 5, 5]; expected one for each");
}

TEST_F(ConvGradKernel, NeedsAlignedElements) {
  const auto at = [](auto* data, std::size_t offset) {
    return reinterpret_cast<std::byte*>(data) + offset;
  };
  dx_.data = at(dx_data_.data(), 1);
  EXPECT_EQ(
      RunError(),
      "dX has data 1 byte past a multiple of 4; expected it aligned to its elements of "
      "4 bytes (float)");
  dx_.data = dx_data_.data();
  x_.data = at(x_data_.data(), 2);
  EXPECT_EQ(
      RunError(),
      "X has data 2 bytes past a multiple of 4; expected it aligned to its elements of "
      "4 bytes (float)");
  EXPECT_EQ(dx_data_, std::vector<float>(dx_data_.size()));
}

/// Where nothing is read or written, the address is nobody's business.
TEST_F(ConvGradKernel, EmptyTensorsNeedNoAlignment) {
  dy_ = {DataType::kFloat, reinterpret_cast<std::byte*>(dy_data_.data()) + 1, {0, 4, 3, 4}};
  x_ = {DataType::kFloat, reinterpret_cast<std::byte*>(x_data_.data()) + 3, {0, 3, 5, 5}};
  dx_ = {DataType::kFloat, reinterpret_cast<std::byte*>(dx_data_.data()) + 2, {0, 3, 5, 5}};
  const Result<Kernel> kernel = Create({});
  ASSERT_TRUE(kernel.ok());
  const Status status = kernel->Run(context_, {dy_, x_, w_}, {dx_});
  EXPECT_TRUE(status.ok()) << status.message();
}

/// Needs no GPU: the call is refused before one is asked for.
TEST_F(ConvGradKernel, WorkspaceOfTheCallersMustBeAligned) {
  alignas(256) static std::byte block[1024];
  const Row* row = registry_.Find("ConvGrad", {DataType::kFloat}, Backend::kCuda);
  if (row == nullptr) {
    GTEST_SKIP() << "there is no CUDA backend";
  }
  const auto error = [&](void* workspace, std::size_t size) {
    const Context context(
        {.device = {Backend::kCuda, 0}, .workspace = workspace, .workspace_size = size});
    const Status status = Kernel::Create(*row)->Run(context, {dy_, x_, w_}, {dx_});
    const std::size_t end = status.message().find("): ");
    return end == std::string::npos ? status.message() : status.message().substr(end + 3);
  };
  EXPECT_EQ(
      error(block + 16, 512),
      "the context's workspace is 16 bytes past a multiple of 256; expected it aligned to 256 "
      "bytes");
  EXPECT_EQ(
      error(nullptr, 512),
      "the context's workspace is null; expected 512 bytes, which workspace_size promises");
  for (std::byte* aligned : {block, block + 256}) {
    EXPECT_EQ(error(aligned, 512).find("the context's workspace"), std::string::npos);
  }
}

TEST_F(ConvGradKernel, NamesTheDevice) {
  w_.device = {Backend::kCuda, 1};
  EXPECT_EQ(RunError(), "W is on cuda 1; expected the context's device, cpu 0");
  w_.device = {Backend::kCpu, 1};
  EXPECT_EQ(RunError(), "W is on cpu 1; expected the context's device, cpu 0");
}

TEST_F(ConvGradKernel, SaysThatThereIsOneCpu) {
  ContextOptions options;
  options.device = {Backend::kCpu, 3};
  const Result<Kernel> kernel = Create({});
  ASSERT_TRUE(kernel.ok());
  const Status status = kernel->Run(Context(options), {dy_, x_, w_}, {dx_});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  constexpr std::string_view kThereIsOne =
      "there is no cpu 3; expected 0, which has all of the machine's processors";
  EXPECT_EQ(WithoutPrefix(status.message()), "the context's device: " + std::string(kThereIsOne));
  EXPECT_EQ(CheckDevice(options.device).message(), kThereIsOne);
  EXPECT_TRUE(CheckDevice({Backend::kCpu, 0}).ok());
}

TEST_F(ConvGradKernel, NeedsTheDataOfASingleElement) {
  dy_ = {DataType::kFloat, dy_data_.data(), {1, 1, 1}};
  x_ = {DataType::kFloat, nullptr, {1, 1, 1}};
  w_ = {DataType::kFloat, w_data_.data(), {1, 1, 1}};
  dx_ = {DataType::kFloat, dx_data_.data(), {1, 1, 1}};
  EXPECT_EQ(RunError(), "X has null data; expected 1 element, dims [1, 1, 1]");
}

TEST_F(ConvGradKernel, RefusesTooManyArguments) {
  const Result<Kernel> kernel = Create({});
  ASSERT_TRUE(kernel.ok());
  const Status status = kernel->Run(context_, {dy_, x_, w_, w_}, {dx_});
  EXPECT_EQ(WithoutPrefix(status.message()), "4 inputs were given; expected at most 3");
}

TEST_F(ConvGradKernel, RefusesToComputeNothing) {
  const Result<Kernel> kernel = Create({});
  ASSERT_TRUE(kernel.ok());
  const ConstTensorRef no_images(DataType::kFloat, nullptr, {0, 3, 5, 5});
  const ConstTensorRef no_gradient(DataType::kFloat, nullptr, {0, 4, 3, 4});
  for (const std::vector<TensorRef>& outputs : {std::vector<TensorRef>(), {{}, {}, {}}}) {
    for (const std::vector<ConstTensorRef>& inputs :
         {std::vector<ConstTensorRef>{dy_, x_, w_}, {no_gradient, no_images, w_}}) {
      const Status status = kernel->Run(context_, std::span(inputs), std::span(outputs));
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(
          WithoutPrefix(status.message()),
          "no output is asked for; expected at least one of dX, dW, dB");
    }
  }
}

TEST_F(ConvGradKernel, MissingRowsAreExplained) {
  const Result<Kernel> kernel =
      Kernel::Create(registry_, "ConvGrad", {DataType::kFloat, DataType::kFloat}, Backend::kCpu);
  EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(
      kernel.status().message(),
      registry_.Explain("ConvGrad", {DataType::kFloat, DataType::kFloat}, Backend::kCpu));
}

TEST_F(ConvGradKernel, InfersShapes) {
  const Result<Kernel> kernel = Create({{"strides", IntList{2, 1}}});
  ASSERT_TRUE(kernel.ok());
  const ConstTensorRef dy(DataType::kFloat, nullptr, {2, 4, 2, 4});
  const Result<std::vector<Dims>> shapes = kernel->InferShapes({dy, x_, w_});
  ASSERT_TRUE(shapes.ok()) << shapes.status().message();
  EXPECT_EQ(*shapes, (std::vector<Dims>{{2, 3, 5, 5}, {4, 3, 3, 2}, {4}}));
  EXPECT_FALSE(kernel->InferShapes({dy_, x_, w_}).ok());
  EXPECT_FALSE(kernel->InferShapes({dy}).ok());
}

TEST_F(ConvGradKernel, TypedDoorInfersShapes) {
  const Result<ConvOutputDims> dims =
      InferShapes(ConvAttributes{.pads = {1, 1, 1, 1}}, {.X = {2, 3, 5, 5}, .W = {4, 3, 3, 2}});
  ASSERT_TRUE(dims.ok()) << dims.status().message();
  EXPECT_EQ(dims->Y, (Dims{2, 4, 5, 6}));
  const Result<ConvOutputDims> bad =
      InferShapes(ConvAttributes{}, {.X = {2, 3, 5, 5}, .W = {4, 3, 7, 2}});
  EXPECT_EQ(bad.status().message().find("Conv: "), 0U) << bad.status().message();

  const Result<ConvOutputDims> negative =
      InferShapes(ConvAttributes{}, {.X = {2, -1, 5, 5}, .W = {4, 3, 3, 2}});
  EXPECT_EQ(negative.status().message(), "Conv: X has dims [2, -1, 5, 5]; expected 0 or more");
  const Result<ConvOutputDims> enumerator = InferShapes(
      ConvAttributes{.auto_pad = static_cast<AutoPad>(4)}, {.X = {2, 3, 5, 5}, .W = {4, 3, 3, 2}});
  EXPECT_EQ(
      enumerator.status().message(),
      "Conv: attribute auto_pad is the enumerator 4; expected one below 4");
}

TEST_F(ConvGradKernel, CombinationOfOneBackendRefusesOthers) {
  const Row* row = registry_.Find("ConvGrad", {DataType::kFloat}, Backend::kCpu);
  ASSERT_NE(row, nullptr);
  const Context cuda({.device = {Backend::kCuda, 0}});
  const Status status = internal::CallOnBackend({row, 1}, cuda, nullptr, {}, {});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("the context is on cuda"), std::string::npos) << status.message();
}

TEST(EmptyBatch, HasZeroGradientsWhateverTheSavedStatistics) {
  const std::vector<float> ones(2, 1.0F);
  const std::vector<float> infinite(2, std::numeric_limits<float>::infinity());
  std::vector<float> d_scale(2, 7.0F);
  std::vector<float> d_bias(2, 7.0F);
  const Status status = BatchNormalizationGrad<float, float, float>(
      Context({.threads = 1}), {},
      {.dY = {nullptr, {0, 2, 3}},
       .X = {nullptr, {0, 2, 3}},
       .scale = {ones.data(), {2}},
       .saved_mean = {ones.data(), {2}},
       .saved_inv_std = {infinite.data(), {2}}},
      {.dScale = {d_scale.data(), {2}}, .dBias = {d_bias.data(), {2}}});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(d_scale, std::vector<float>(2));
  EXPECT_EQ(d_bias, std::vector<float>(2));
}

/// Running statistics may be updated where they lie, and nowhere else that they reach into.
TEST(InPlace, NeedsTheSameStrides) {
  std::vector<float> buffer(24, 1.0F);
  const std::vector<float> ones(12, 1.0F);
  const auto run = [&](const Strides& strides) {
    return BatchNormalization<float, float, float>(
        Context({.threads = 1}), {},
        {.X = {ones.data(), {6, 2}},
         .scale = {ones.data(), {2}},
         .B = {ones.data(), {2}},
         .running_mean = {buffer.data(), {2}, {1}},
         .running_var = {ones.data(), {2}}},
        {.Y = {buffer.data() + 8, {6, 2}}, .running_mean = {buffer.data(), {2}, strides}});
  };
  EXPECT_TRUE(run({1}).ok());
  EXPECT_NE(
      run({2}).message().find("output running_mean overlaps input running_mean in memory"),
      std::string::npos);
}

TEST(FloatAttributes, MustBeFiniteAndInRange) {
  Registry registry;
  ASSERT_TRUE(RegisterAll(registry).ok());
  const auto error = [&](double momentum) {
    return Kernel::Create(
               registry, "BatchNormalization",
               {DataType::kFloat, DataType::kFloat, DataType::kFloat}, Backend::kCpu,
               {{"momentum", momentum}})
        .status()
        .message();
  };
  EXPECT_EQ(error(0.5), "");
  EXPECT_EQ(error(1), "");
  EXPECT_NE(error(1.5).find("attribute momentum is 1.5; expected 0 to 1"), std::string::npos);
  EXPECT_NE(
      error(std::numeric_limits<double>::quiet_NaN()).find("attribute momentum is nan"),
      std::string::npos);
}

TEST(NeverRepeatable, IsRefusedByAContextThatIsDeterministic) {
  Row row = support::fake::Rows()[support::fake::kScaleFloat];
  row.repeatable = Repeatable::kNever;
  const Result<Kernel> kernel = Kernel::Create(row);
  ASSERT_TRUE(kernel.ok());
  const Status refused = kernel->Run(Context(ContextOptions{.deterministic = true}), {}, {});
  EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
  EXPECT_NE(refused.message().find("never give the same bits"), std::string::npos);
  // The next of what is checked: that there are inputs.
  const Status absent = kernel->Run(Context(ContextOptions{.deterministic = false}), {}, {});
  EXPECT_EQ(absent.code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gradsmith
