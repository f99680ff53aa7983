#include "core/problem_words.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/list_schema.h"
#include "gradsmith/gradsmith.h"

namespace gradsmith::internal {
namespace {

const Row& FindRow(const Registry& registry, std::string_view op, std::string_view name) {
  for (const Row* row : registry.rows()) {
    if (row->op->name == op && row->name == name && row->backend == Backend::kCpu) {
      return *row;
    }
  }
  throw std::string(op);  // ends the test
}

class ProblemWordsTest : public testing::Test {
 protected:
  ProblemWordsTest() { EXPECT_TRUE(RegisterAll(registry_).ok()); }

  template <typename Attributes>
  std::string Words(
      std::string_view op,
      std::string_view row,
      const Attributes& attributes,
      const std::vector<ConstTensorRef>& inputs,
      const std::vector<TensorRef>& outputs) const {
    return ProblemWords(FindRow(registry_, op, row), &attributes, inputs, outputs);
  }

 private:
  Registry registry_;
};

ConstTensorRef Input(const Dims& dims) {
  return ConstTensorRef(DataType::kFloat, nullptr, dims);
}
TensorRef Output(const Dims& dims) {
  return TensorRef(DataType::kFloat, nullptr, dims);
}

TEST_F(ProblemWordsTest, NamesDimsAndWhatIsNoDefault) {
  const std::vector<ConstTensorRef> inputs = {
      Input({8, 4, 7, 7}), Input({8, 3, 9, 9}), Input({4, 3, 3, 3})};
  const std::vector<TensorRef> outputs = {Output({8, 3, 9, 9}), Output({4, 3, 3, 3}), Output({4})};
  const std::string dims = " dY=8x4x7x7 X=8x3x9x9 W=4x3x3x3";
  EXPECT_EQ(
      Words("ConvGrad", "half", ConvGradAttributes{}, inputs, outputs), "ConvGrad half" + dims);
  const ConvGradAttributes attributes = {
      .strides = {2, 1}, .pads = {1, 1, 1, 0}, .auto_pad = AutoPad::SAME_LOWER};
  EXPECT_EQ(
      Words("ConvGrad", "float", attributes, inputs, outputs),
      "ConvGrad float" + dims + " strides=2,1 pads=1,1,1,0 auto_pad=SAME_LOWER");
}

TEST_F(ProblemWordsTest, OutputsThatAreLeftOutOrAddedTo) {
  const std::vector<ConstTensorRef> inputs = {Input({1, 1, 2}), Input({1, 1, 3}), Input({1, 1, 2})};
  std::vector<TensorRef> outputs = {TensorRef(), Output({1, 1, 2}), Output({1})};
  outputs[2].accumulate = true;
  const std::string line = "ConvGrad double dY=1x1x2 X=1x1x3 W=1x1x2 outputs=dW,dB accumulate=dB";
  EXPECT_EQ(Words("ConvGrad", "double", ConvGradAttributes{}, inputs, outputs), line);
  outputs.pop_back();  // trailing ones may be left out
  EXPECT_EQ(
      Words("ConvGrad", "double", ConvGradAttributes{}, inputs, outputs),
      "ConvGrad double dY=1x1x2 X=1x1x3 W=1x1x2 outputs=dW");
}

TEST_F(ProblemWordsTest, ImagesWhoseChannelsAreInnermost) {
  const Dims dims = {2, 3, 4, 5};
  const ConvAttributes attributes = {};
  const ConstTensorRef w = Input({1, 3, 1, 1});
  const auto words = [&](const ConstTensorRef& x) {
    return Words("Conv", "float", attributes, {x, w}, {Output({2, 1, 4, 5})});
  };
  const ConstTensorRef nhwc(DataType::kFloat, nullptr, dims, ChannelsLastStrides(dims), Device{});
  EXPECT_EQ(words(nhwc), "Conv float X=2x3x4x5 W=1x3x1x1 layout=NHWC");
  EXPECT_EQ(words(Input(dims)), "Conv float X=2x3x4x5 W=1x3x1x1");
}

TEST_F(ProblemWordsTest, InputsThatAreAbsentAreLeftOut) {
  const ConvAttributes attributes = {};
  const std::vector<TensorRef> outputs = {Output({2, 1, 4})};
  const ConstTensorRef x = Input({2, 3, 4});
  const ConstTensorRef w = Input({1, 3, 1});
  const std::string line = "Conv float X=2x3x4 W=1x3x1";
  EXPECT_EQ(Words("Conv", "float", attributes, {x, w, Input({1})}, outputs), line + " B=1");
  EXPECT_EQ(Words("Conv", "float", attributes, {x, w, ConstTensorRef()}, outputs), line);
  EXPECT_EQ(Words("Conv", "float", attributes, {x, w}, outputs), line);
}

TEST_F(ProblemWordsTest, NumbersAreWrittenToTheLastDigit) {
  const ClipAttributes attributes = {.min = -0.1, .max = std::numeric_limits<double>::infinity()};
  EXPECT_EQ(
      Words("Clip", "bf16", attributes, {Input({0, 7})}, {Output({0, 7})}),
      "Clip bf16 X=0x7 min=-0.1");
  EXPECT_EQ(
      Words("Clip", "bf16", ClipAttributes{.max = 1e-7}, {Input({1})}, {Output({1})}),
      "Clip bf16 X=1 max=1e-07");
}

TEST_F(ProblemWordsTest, TruthValuesAndTensorsWithoutDims) {
  EXPECT_EQ(
      Words("Softmax", "float", SoftmaxAttributes{.coerced = true}, {Input({3})}, {Output({3})}),
      "Softmax float X=3 coerced=true");
  EXPECT_EQ(
      Words("Relu", "float", ReluAttributes{}, {Input({})}, {Output({})}), "Relu float X=scalar");
}

TEST_F(ProblemWordsTest, DimsThatAnInputHolds) {
  const std::array<std::int64_t, 3> shape = {2, 3, 9};
  const ConstTensorRef held(DataType::kInt64, shape.data(), {3});
  EXPECT_EQ(
      Words(
          "MaxPoolGrad", "float", MaxPoolGradAttributes{.kernel_shape = {2}},
          {Input({2, 3, 8}), Input({2, 3, 8}), held}, {Output({2, 3, 9})}),
      "MaxPoolGrad float dY=2x3x8 Indices=2x3x8 shape=2x3x9 kernel_shape=2");
}

// What no built-in op has: texts, and lists of tensors.

struct NamedAttributes {
  std::string name = "mean";
  std::optional<std::int64_t> count;
};

constexpr std::array kNamed = {
    AttributeSpec{.name = "name", .kind = AttributeKind::kString, .offset = 0},
    AttributeSpec{
        .name = "count",
        .kind = AttributeKind::kInt,
        .offset = sizeof(std::string),
        .optional = true},
};
constexpr std::array kLists = {
    TensorSpec{.name = "W", .list = "n"}, TensorSpec{.name = "rate"},
    TensorSpec{.name = "dW", .list = "n"}};
constexpr std::array kNew = {TensorSpec{.name = "new_W", .list = "n"}};

TEST(ProblemWords, TextsAreOneWordOrTheCallHasNone) {
  const OpSchema op = {.name = "Named", .attributes = kNamed, .make_attributes = [] {
                         return std::shared_ptr<void>(std::make_shared<NamedAttributes>());
                       }};
  const Row row = {.op = &op, .name = "float"};
  const auto words = [&](const NamedAttributes& attributes) {
    return ProblemWords(row, &attributes, {}, {});
  };
  EXPECT_EQ(words({}), "Named float");
  EXPECT_EQ(words({.name = "sum-2", .count = {}}), "Named float name=sum-2");
  EXPECT_EQ(words({.count = 0}), "Named float count=0");
  for (const char* odd : {"a b", "", "a#b", "a\nb", "a=b", "\xC3\xA4"}) {
    EXPECT_EQ(words({.name = odd, .count = {}}), "") << odd;
  }
}

TEST(ProblemWords, TensorsOfAListHaveCommasBetween) {
  const OpSchema op = {.name = "Step", .inputs = kLists, .outputs = kNew, .has_lists = true};
  const Row row = {.op = &op, .name = "float"};
  const std::vector<ConstTensorRef> inputs = {
      Input({2, 3}), Input({4}), Input({}), Input({2, 3}), Input({4})};
  const std::vector<TensorRef> outputs = {Output({2, 3}), Output({4})};
  const std::string line = "Step float W=2x3,4 rate=scalar dW=2x3,4";
  EXPECT_EQ(ProblemWords(row, nullptr, inputs, outputs), line);
  // A binding may have spelled the op out already.
  const std::shared_ptr<const OpSchema> spelled = SpellOut(op, 2);
  const Row spelled_row = {.op = spelled.get(), .name = "float"};
  EXPECT_EQ(ProblemWords(spelled_row, nullptr, inputs, outputs), line);
  EXPECT_EQ(ProblemWords(spelled_row, nullptr, inputs, {}), line + " outputs=");
  std::vector<TensorRef> added = outputs;
  added[0].accumulate = added[1].accumulate = true;
  EXPECT_EQ(ProblemWords(row, nullptr, inputs, added), line + " accumulate=new_W");
}

TEST(ProblemWords, ACallHasNoneOfWhichTensorsOfAListAreAbsent) {
  const OpSchema op = {.name = "Step", .inputs = kLists, .outputs = kNew, .has_lists = true};
  const Row row = {.op = &op, .name = "float"};
  const std::vector<ConstTensorRef> inputs = {
      Input({2, 3}), Input({4}), Input({}), Input({2, 3}), Input({4})};
  const std::vector<TensorRef> outputs = {Output({2, 3}), Output({4})};
  std::vector<ConstTensorRef> fewer = inputs;
  fewer[4] = ConstTensorRef();
  EXPECT_EQ(ProblemWords(row, nullptr, fewer, outputs), "");
  EXPECT_EQ(ProblemWords(row, nullptr, inputs, {{TensorRef(), Output({4})}}), "");
  std::vector<TensorRef> added = outputs;
  added[1].accumulate = true;
  EXPECT_EQ(ProblemWords(row, nullptr, inputs, added), "");
}

}  // namespace
}  // namespace gradsmith::internal
