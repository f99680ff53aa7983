#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conv/kernels.h"
#include "conv/problem.h"
#include "gradsmith/tensor.h"

/// What attributes and dims make of a convolution, and what is refused.
namespace gradsmith::conv {
namespace {

using Rule = std::function<Result<Dims>(const TransposedAttributes&, const Dims&, const Dims&)>;

struct RuleCase {
  Rule rule;
  TransposedAttributes attributes;
  Dims D;
  Dims K;
  Dims expected;
};

TEST(ConvRules, Spatial) {
  const std::vector<RuleCase> cases = {
      {OutputSpatial, {}, {9, 11}, {3, 2}, {7, 10}},
      {OutputSpatial,
       {{.strides = {2, 3}, .pads = {0, 2, 1, 1}, .dilations = {1, 2}}},
       {9, 11},
       {3, 2},
       {4, 4}},
      {OutputSpatial,
       {{.strides = {2, 3}, .auto_pad = AutoPad::SAME_UPPER}},
       {7, 8},
       {4, 3},
       {4, 3}},
      {OutputSpatial, {{.strides = {4}, .auto_pad = AutoPad::SAME_LOWER}}, {9}, {1}, {3}},
      {OutputSpatial, {{.auto_pad = AutoPad::SAME_UPPER}}, {0}, {3}, {0}},
      {OutputSpatial, {{.auto_pad = AutoPad::VALID}}, {7, 8}, {4, 3}, {4, 6}},
      {OutputSpatial, {}, {0}, {3}, {0}},
      {OutputSpatial, {{.pads = {2, 2}}}, {0}, {3}, {2}},
      {OutputSpatial,
       {{.kernel_shape = {3}, .pads = {0, 0}, .auto_pad = AutoPad::VALID}},
       {5},
       {3},
       {3}},
      {TransposedOutputSpatial, {}, {4, 5}, {3, 2}, {6, 6}},
      {TransposedOutputSpatial,
       {{.strides = {2, 3}, .pads = {1, 0, 1, 1}}, {1, 2}},
       {4, 5},
       {3, 3},
       {8, 16}},
      {TransposedOutputSpatial, {{.strides = {2}}, {}, {8}}, {4}, {3}, {8}},
      {TransposedOutputSpatial, {{.strides = {2}, .auto_pad = AutoPad::SAME_UPPER}}, {4}, {4}, {8}},
      {TransposedOutputSpatial,
       {{.strides = {4}, .auto_pad = AutoPad::SAME_LOWER}},
       {3},
       {1},
       {12}},
      {TransposedOutputSpatial, {{.auto_pad = AutoPad::VALID}}, {4}, {3}, {6}},
      {TransposedOutputSpatial, {{.strides = {2}, .pads = {9, 9}}}, {0}, {3}, {0}},
      {TransposedOutputSpatial, {{}, {}, {5}}, {0}, {3}, {5}},
      {TransposedOutputSpatial, {{.pads = {3, 3}}}, {4}, {3}, {0}},
      {TransposedOutputSpatial, {{.dilations = {3}}, {2}}, {4}, {2}, {9}},
  };
  for (const RuleCase& rule_case : cases) {
    const Result<Dims> output = rule_case.rule(rule_case.attributes, rule_case.D, rule_case.K);
    ASSERT_TRUE(output.ok()) << output.status().message();
    EXPECT_EQ(*output, rule_case.expected) << ToString(*output);
  }
}

struct RuleErrorCase {
  Rule rule;
  TransposedAttributes attributes;
  Dims D;
  Dims K;
  std::string message;
};

constexpr std::int64_t kAbsurd = std::int64_t{1} << 62;

void ExpectErrors(const std::vector<RuleErrorCase>& cases) {
  for (const RuleErrorCase& rule_case : cases) {
    const Result<Dims> output = rule_case.rule(rule_case.attributes, rule_case.D, rule_case.K);
    ASSERT_FALSE(output.ok()) << rule_case.message;
    EXPECT_EQ(output.status().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(output.status().message(), rule_case.message);
  }
}

TEST(ConvRules, Errors) {
  ExpectErrors({
      {OutputSpatial,
       {{.pads = {0, 1, 0, 0}, .dilations = {1, 2}}},
       {5, 3},
       {3, 4},
       "spatial axis 1: the padded input has 4 positions (3 and pads 1, 0); expected at least the 7 that the window spans "
       "(size 4, dilation 2)"},
      {OutputSpatial, {}, {5}, {0}, "spatial axis 0: the window has size 0; expected 1 or more"},
      {OutputSpatial,
       {{.kernel_shape = {3, 2}}},
       {5, 5},
       {3, 3},
       "attribute kernel_shape is [3, 2]; expected W's spatial dims [3, 3]"},
      {OutputSpatial,
       {{.pads = {0, 1}, .auto_pad = AutoPad::SAME_UPPER}},
       {5},
       {3},
       "attribute pads is [0, 1]; expected none, or zeros, where auto_pad is SAME_UPPER"},
      {OutputSpatial,
       {{.strides = {1, 2, 3}}},
       {5, 5},
       {3, 3},
       "attribute strides has 3 entries; expected 2"},
      {OutputSpatial,
       {{.pads = {1, 1}}},
       {5, 5},
       {3, 3},
       "attribute pads has 2 entries; expected 4"},
      {OutputSpatial,
       {{.strides = {1, 0}}},
       {5, 5},
       {3, 3},
       "attribute strides[1] is 0; expected 1 or more"},
      {OutputSpatial, {{.pads = {-1, 0}}}, {5}, {3}, "attribute pads[0] is -1; expected 0 or more"},
      {OutputSpatial,
       {},
       {5},
       {3, 3},
       "X has 1 spatial axes and W has 2; expected the same number, from 1 to 3"},
      {OutputSpatial,
       {{.dilations = {kAbsurd}}},
       {5},
       {3},
       "spatial axis 0: the filter, with dilations, passes 2^62 positions; expected at most 2^62"},
      {OutputSpatial,
       {{.pads = {kAbsurd, kAbsurd}}},
       {5},
       {3},
       "spatial axis 0: the input, with pads, passes 2^62 positions; expected at most 2^62"},
  });
}

TEST(ConvRules, ErrorsOfTransposedConvolutions) {
  ExpectErrors({
      {TransposedOutputSpatial,
       {{.strides = {2, 2}}, {1, 2}},
       {5, 5},
       {3, 3},
       "spatial axis 1: output_padding is 2; expected less than 2, the larger of stride 2 and dilation 1"},
      {TransposedOutputSpatial,
       {{.pads = {3, 4}}},
       {4},
       {3},
       "spatial axis 0: pads 3, 4 are cut from an output of 6 positions; expected no more than that"},
      {TransposedOutputSpatial,
       {{.pads = {1, 0}}, {}, {5}},
       {4},
       {3},
       "attribute pads is [1, 0]; expected none, or zeros, where output_shape sets the pads"},
      {TransposedOutputSpatial,
       {{.auto_pad = AutoPad::VALID}, {}, {5}},
       {4},
       {3},
       "attribute output_shape is given; expected none where auto_pad is VALID, as both set the pads"},
      {TransposedOutputSpatial,
       {{.pads = {0, 1}, .auto_pad = AutoPad::VALID}},
       {4},
       {3},
       "attribute pads is [0, 1]; expected none, or zeros, where auto_pad is VALID"},
      {TransposedOutputSpatial,
       {{}, {}, {5, 5}},
       {4},
       {3},
       "attribute output_shape has 2 entries; expected 1"},
      {TransposedOutputSpatial,
       {{.strides = {kAbsurd}}},
       {4},
       {3},
       "spatial axis 0: the output before pads passes 2^62 positions; expected at most 2^62"},
      {TransposedOutputSpatial,
       {{.dilations = {INT64_MAX}}},
       {4},
       {INT64_MAX},
       "spatial axis 0: X has 4 and W has 9223372036854775807 positions; expected at most 2^62"},
      {TransposedOutputSpatial,
       {{.dilations = {INT64_MAX}}},
       {4},
       {kAbsurd},
       "spatial axis 0: the filter, with dilations, passes 2^62 positions; expected at most 2^62"},
      {TransposedOutputSpatial,
       {{.strides = {INT64_MAX}}},
       {kAbsurd},
       {kAbsurd},
       "spatial axis 0: the output before pads passes 2^62 positions; expected at most 2^62"},
      {TransposedOutputSpatial,
       {{}, {}, {INT64_MAX}},
       {4},
       {3},
       "spatial axis 0: the output passes 2^62 positions; expected at most 2^62"},
  });
}

struct PadCase {
  TransposedAttributes attributes;
  std::int64_t begin;
  std::int64_t end;
};

ConstTensorRef WithDims(const Dims& dims) {
  return {DataType::kFloat, nullptr, dims};
}

TEST(ConvProblem, ConvolutionPads) {
  // X 7, W 4, stride 2: ceil(7 / 2) = 4 outputs span 10, so 3 positions are added.
  for (const PadCase& pads :
       {PadCase{{{.strides = {2}, .auto_pad = AutoPad::SAME_UPPER}}, 1, 2},
        PadCase{{{.strides = {2}, .auto_pad = AutoPad::SAME_LOWER}}, 2, 1},
        PadCase{{{.strides = {2}, .auto_pad = AutoPad::VALID}}, 0, 0},
        PadCase{{{.strides = {2}, .pads = {5, 1}}}, 5, 1},
        PadCase{{{.strides = {7}, .auto_pad = AutoPad::SAME_UPPER}}, 0, 0}}) {
    const auto problem =
        ConvolutionProblem(pads.attributes, WithDims({1, 1, 7}), WithDims({1, 1, 4}));
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    EXPECT_EQ(problem->axes[0].pad_begin, pads.begin);
    EXPECT_EQ(problem->axes[0].pad_end, pads.end);
  }
}

TEST(ConvProblem, TransposedPads) {
  // X 4, W 4, stride 2: 10 positions before pads.
  for (const PadCase& pads :
       {PadCase{{{.strides = {2}, .auto_pad = AutoPad::SAME_UPPER}}, 1, 1},
        PadCase{{{.strides = {2}}, {}, {7}}, 2, 1},
        PadCase{{{.strides = {2}, .auto_pad = AutoPad::SAME_LOWER}, {}, {7}}, 2, 1},
        PadCase{{{.strides = {2}, .auto_pad = AutoPad::SAME_UPPER}, {}, {7}}, 1, 2},
        PadCase{{{.strides = {2}}, {1}, {7}}, 2, 2}, PadCase{{{.strides = {2}}, {}, {12}}, 0, 0}}) {
    const auto problem =
        TransposedProblem(pads.attributes, WithDims({1, 1, 4}), WithDims({1, 1, 4}));
    ASSERT_TRUE(problem.ok()) << problem.status().message();
    EXPECT_EQ(problem->axes[0].pad_begin, pads.begin);
    EXPECT_EQ(problem->axes[0].pad_end, pads.end);
  }
}

TEST(ConvProblem, IsComparable) {
  const Attributes attributes{.pads = {1, 1}};
  const auto problem = ConvolutionProblem(attributes, WithDims({2, 3, 7}), WithDims({4, 3, 3}));
  const auto same = ConvolutionProblem(
      {.auto_pad = AutoPad::SAME_UPPER}, WithDims({2, 3, 7}), WithDims({4, 3, 3}));
  const auto other = ConvolutionProblem({.pads = {2, 0}}, WithDims({2, 3, 7}), WithDims({4, 3, 3}));
  EXPECT_TRUE(*problem == *same);
  EXPECT_FALSE(*problem == *other);
  EXPECT_FALSE(*problem == WithStrides(*problem, {21, 7, 1}, {9, 3, 1}, {28, 7, 1}));
}

/// What a kernel says of arguments that an op's entry has let pass.
template <typename Kernel>
std::string Refusal(
    const typename Kernel::Attributes& attributes,
    const typename Kernel::Inputs& inputs,
    const typename Kernel::Outputs& outputs) {
  const Status status = Kernel::RunCpu(Context(), attributes, inputs, outputs);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return status.message();
}

TEST(ConvProblem, TheFiltersChannelsAreTheInputs) {
  const ConstTensorRef X = WithDims({2, 6, 5});
  const ConstTensorRef W = WithDims({4, 6, 3});
  const TensorRef Y(DataType::kFloat, nullptr, {2, 4, 3});
  EXPECT_EQ(
      Refusal<Conv>({.group = 2}, {.X = &X, .W = &W}, {.Y = &Y}),
      "W has shape [4, 6, 3]; expected [4, 3, 3]: the kernel takes " + std::string(Conv::kShapes));
  const TensorRef DW(DataType::kFloat, nullptr, {4, 6, 3});
  const ConstTensorRef good = WithDims({4, 3, 3});
  const ConstTensorRef DY = Y;
  EXPECT_EQ(
      Refusal<ConvGrad>({.group = 2}, {.dY = &DY, .X = &X, .W = &good}, {.dW = &DW}),
      "dW has shape [4, 6, 3]; expected [4, 3, 3]: the kernel takes " +
          std::string(ConvGrad::kShapes));
  EXPECT_EQ(
      Refusal<ConvTranspose>({}, {.X = &X, .W = &good}, {.Y = &Y}),
      "W has shape [4, 3, 3]; expected [6, 3, 3]: the kernel takes " +
          std::string(ConvTranspose::kShapes));
}

TEST(ConvProblem, ABiasHasTheOutputsChannels) {
  const ConstTensorRef X = WithDims({2, 6, 5});
  const ConstTensorRef W = WithDims({6, 4, 3});
  const ConstTensorRef B = WithDims({2});
  const TensorRef Y(DataType::kFloat, nullptr, {2, 4, 7});
  EXPECT_EQ(
      Refusal<ConvTranspose>({}, {.X = &X, .W = &W, .B = &B}, {.Y = &Y}),
      "B has shape [2]; expected [4]: the kernel takes " + std::string(ConvTranspose::kShapes));
  const ConstTensorRef DY = Y;
  const TensorRef DB(DataType::kFloat, nullptr, {6});
  EXPECT_EQ(
      Refusal<ConvTransposeGrad>({}, {.dY = &DY, .X = &X, .W = &W}, {.dB = &DB}),
      "dB has shape [6]; expected [4]: the kernel takes " +
          std::string(ConvTransposeGrad::kShapes));
}

/// Of an argument of another type than the kernel would read.
template <typename Kernel>
std::string TypeRefusal(
    const typename Kernel::Inputs& inputs,
    const typename Kernel::Outputs& outputs) {
  const Status status = Kernel::RunCpu(Context(), {}, inputs, outputs);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  return status.message();
}

TEST(ConvProblem, AllArgumentsHaveTheTypeThatIsRead) {
  const ConstTensorRef X = WithDims({2, 6, 5});
  const ConstTensorRef W = WithDims({4, 6, 3});
  const TensorRef Y(DataType::kFloat, nullptr, {2, 4, 3});
  const ConstTensorRef DY = Y;
  const ConstTensorRef half_w(DataType::kMLFloat16, nullptr, W.dims);
  const std::string expected = "W has type MLFloat16; expected float: the kernel takes ";
  EXPECT_EQ(
      TypeRefusal<Conv>({.X = &X, .W = &half_w}, {.Y = &Y}), expected + std::string(Conv::kTypes));
  const TensorRef DX(DataType::kFloat, nullptr, X.dims);
  EXPECT_EQ(
      TypeRefusal<ConvGrad>({.dY = &DY, .X = &X, .W = &half_w}, {.dX = &DX}),
      expected + std::string(ConvGrad::kTypes));
  const TensorRef double_dw(DataType::kDouble, nullptr, W.dims);
  EXPECT_EQ(
      TypeRefusal<ConvGrad>({.dY = &DY, .X = &X, .W = &W}, {.dW = &double_dw}),
      "dW has type double; expected float: the kernel takes " + std::string(ConvGrad::kTypes));
  const ConstTensorRef transposed = WithDims({2, 4, 3});
  const TensorRef double_db(DataType::kDouble, nullptr, {6});
  EXPECT_EQ(
      TypeRefusal<ConvTransposeGrad>({.dY = &X, .X = &transposed, .W = &W}, {.dB = &double_db}),
      "dB has type double; expected float: the kernel takes " +
          std::string(ConvTransposeGrad::kTypes));
}

TEST(ConvProblem, TheOutputFollowsFromTheOthers) {
  const ConstTensorRef X = WithDims({2, 6, 5});
  const ConstTensorRef W = WithDims({4, 6, 3});
  for (const Dims& dims : {Dims{4, 2, 3}, Dims{2, 4, 5}, Dims{2, 4, 3, 1}, Dims{}}) {
    const TensorRef Y(DataType::kFloat, nullptr, dims);
    EXPECT_EQ(
        Refusal<Conv>({}, {.X = &X, .W = &W}, {.Y = &Y}),
        "Y has shape " + ToString(dims) + "; expected [2, 4, 3]: the kernel takes " +
            std::string(Conv::kShapes));
    const ConstTensorRef DY = Y;
    const TensorRef DX(DataType::kFloat, nullptr, {2, 6, 5});
    EXPECT_EQ(
        Refusal<ConvGrad>({}, {.dY = &DY, .X = &X, .W = &W}, {.dX = &DX}),
        "dY has shape " + ToString(dims) + "; expected [2, 4, 3]: the kernel takes " +
            std::string(ConvGrad::kShapes));
  }
}

TEST(ConvProblem, RanksAreThoseOfConvolutions) {
  const Dims ranks[][2] = {{{}, {}}, {{4}, {4}}, {{2, 3}, {4, 3}}, {{2, 3, 5}, {4, 3, 3, 3}}};
  for (const auto& [x, w] : ranks) {
    const std::string expected = "X has rank " + std::to_string(x.size()) + " and W " +
                                 std::to_string(w.size()) + "; expected the same, from 3 to 5";
    EXPECT_EQ(ConvolutionProblem({}, WithDims(x), WithDims(w)).status().message(), expected);
    EXPECT_EQ(TransposedProblem({}, WithDims(x), WithDims(w)).status().message(), expected);
  }
}

TEST(ConvProblem, GroupsDivideChannels) {
  const TransposedAttributes attributes{{.group = 3}};
  EXPECT_EQ(
      ConvolutionProblem(attributes, WithDims({1, 6, 5}), WithDims({4, 2, 3})).status().message(),
      "the output channels, W's dim 0, are 4; expected a multiple of group 3");
  EXPECT_EQ(
      ConvolutionProblem(attributes, WithDims({1, 7, 5}), WithDims({3, 2, 3})).status().message(),
      "the input channels, X's dim 1, are 7; expected a multiple of group 3");
  EXPECT_EQ(
      TransposedProblem(attributes, WithDims({1, 4, 5}), WithDims({4, 2, 3})).status().message(),
      "the input channels, X's dim 1, are 4; expected a multiple of group 3");
  EXPECT_EQ(
      TransposedProblem({{.group = kAbsurd}}, WithDims({1, 0, 5}), WithDims({0, 4, 3}))
          .status()
          .message(),
      "W's dim 1, 4, times group 4611686018427387904; expected at most 2^62 output channels");
}

}  // namespace
}  // namespace gradsmith::conv
