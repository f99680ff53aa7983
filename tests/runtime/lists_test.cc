#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/list_arguments.h"
#include "core/list_schema.h"
#include "core/validate.h"
#include "gradsmith/kernel.h"

namespace gradsmith {
namespace {

/// An op with lists: each W, less its G and, where there is one, M, times the rate.
constexpr std::array<SymbolSpec, 1> kSymbols = {SymbolSpec{
    .name = "D",
    .is_list = true,
    .of_each = true,
}};
constexpr std::array<DimSpec, 1> kShape = {DimSpec{.symbol = 0}};
constexpr std::array<TensorSpec, 4> kInputs = {
    TensorSpec{.name = "W", .list = "n", .shape = kShape, .shape_text = "[*D]"},
    TensorSpec{.name = "rate", .shape_text = "[]", .may_be_on_host = true},
    TensorSpec{.name = "G", .list = "n", .shape = kShape, .shape_text = "[*D]"},
    TensorSpec{.name = "M", .optional = true, .list = "n", .shape = kShape, .shape_text = "[*D]"},
};
constexpr std::array<TensorSpec, 1> kOutputs = {TensorSpec{
    .name = "Y",
    .list = "n",
    .shape = kShape,
    .shape_text = "[*D]",
    .in_place_of = 0,
}};

std::shared_ptr<void> NoAttributes() {
  return std::make_shared<int>();
}

constexpr OpSchema kOp = {
    .name = "Step",
    .source_file = "test.yaml",
    .symbols = kSymbols,
    .inputs = kInputs,
    .outputs = kOutputs,
    .has_lists = true,
    .make_attributes = &NoAttributes,
};

float NumberAt(const ConstTensorRef& tensor) {
  return *static_cast<const float*>(tensor.data);
}

/// Computes the first element of each tensor.
Status RunStep(
    const Context& /*context*/,
    const void* /*attributes*/,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const std::size_t length = internal::LengthOfLists(inputs.size(), 1, 3);
  const auto G = inputs.subspan(1 + length, length);
  const auto M = inputs.subspan(1 + 2 * length, length);
  for (std::size_t i = 0; i < length; ++i) {
    const float step = NumberAt(G[i]) + (M[i].present ? NumberAt(M[i]) : 0);
    *static_cast<float*>(outputs[i].data) = NumberAt(inputs[i]) - NumberAt(inputs[length]) * step;
  }
  return {};
}

constexpr std::int32_t kLine = 7;

constexpr Row RowOn(Backend backend) {
  return {.op = &kOp, .name = "float", .backend = backend, .run = &RunStep, .entry_line = &kLine};
}
constexpr std::array<Row, 1> kRows = {RowOn(Backend::kCpu)};

/// The arguments of a call, all of two elements in memory of their own.
struct StepCall {
  explicit StepCall(std::size_t length) : data(8 * length) {
    std::iota(data.begin(), data.end(), 1.0F);
    for (std::size_t i = 0; i < 4 * length; ++i) {
      TensorRef tensor(DataType::kFloat, &data[2 * i], {2});
      if (i < 3 * length) {
        inputs.emplace_back(tensor);
      } else {
        outputs.push_back(tensor);
      }
    }
    inputs.insert(
        inputs.begin() + static_cast<std::ptrdiff_t>(length),
        ConstTensorRef(DataType::kFloat, &rate, {}));
  }

  /// What is wrong with the call, without the row's name.
  [[nodiscard]] std::string Error() const {
    const Status status = Kernel::Create(kRows[0])->Run(Context(), inputs, outputs);
    const std::string prefix = "Step[float] on cpu (test.yaml:7): ";
    EXPECT_EQ(status.message().substr(0, prefix.size()), prefix) << status.message();
    return status.ok() ? "" : status.message().substr(prefix.size());
  }

  float rate = 2;
  std::vector<float> data;
  std::vector<ConstTensorRef> inputs;
  std::vector<TensorRef> outputs;
};

TEST(Lists, ACallChoosesTheirLength) {
  constexpr std::size_t kMost = internal::kMaxListLength;
  for (const std::size_t length : {std::size_t{1}, std::size_t{3}, kMost}) {
    const StepCall call(length);
    const Status status = Kernel::Create(kRows[0])->Run(Context(), call.inputs, call.outputs);
    ASSERT_TRUE(status.ok()) << status.message();
    const std::size_t last = 2 * (length - 1);
    const std::size_t size = 2 * length;
    EXPECT_EQ(
        call.data[3 * size + last],
        call.data[last] - 2 * (call.data[size + last] + call.data[2 * size + last]));
  }
}

TEST(Lists, NumbersOfArgumentsThatFitNoLengthAreRefused) {
  StepCall call(2);
  call.inputs.pop_back();
  EXPECT_EQ(
      call.Error(),
      "6 inputs were given; expected 1 + 3 * n, n from 1 to 2000 being the length of W, G, M");
  StepCall more(2);
  more.outputs.push_back(more.outputs[0]);
  EXPECT_EQ(
      more.Error(), "the outputs are for lists of 3 in Y; expected 2, as there are of W, G, M");
  EXPECT_EQ(
      StepCall(internal::kMaxListLength + 1).Error(),
      "6004 inputs were given; expected 1 + 3 * n, n from 1 to 2000 being the length of W, G, M");
}

TEST(Lists, TheTensorThatIsWrongIsNamed) {
  StepCall call(3);
  call.inputs[3 + 1 + 2].dims = {1};
  EXPECT_EQ(
      call.Error(),
      "G[2] has shape [1], 1 at dimension 0; expected 2 (D[2] = [2] from W[2]): [*D]");
  call.inputs[3 + 1 + 2] = ConstTensorRef();
  EXPECT_EQ(call.Error(), "input G[2] is absent; it is required");
}

TEST(Lists, EachTensorMayBeWrittenInPlaceOfItsOwnAlone) {
  StepCall call(300);
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    call.outputs[i].data = const_cast<void*>(call.inputs[i].data);
  }
  const Kernel kernel = *Kernel::Create(kRows[0]);
  EXPECT_TRUE(kernel.Run(Context(), call.inputs, call.outputs).ok());
  call.outputs[299].data = const_cast<void*>(call.inputs[0].data);
  const std::string error = call.Error();
  EXPECT_TRUE(
      error == "output Y[299] overlaps input W[0] in memory; expected memory of its own" ||
      error == "output Y[0] overlaps output Y[299] in memory; expected memory of its own" ||
      error == "output Y[299] overlaps output Y[0] in memory; expected memory of its own")
      << error;
}

/// A typed call's arguments, as the generated stubs gather them.
Status CallTyped(std::size_t w, std::size_t g, std::size_t m, std::size_t y) {
  static std::array<float, 8> data = {};
  float rate = 1;
  const std::vector<TensorView<const float>> list(8, TensorView<const float>(data.data(), {2}));
  std::array<float, 8> written = {};
  std::vector<TensorView<float>> outputs;
  for (std::size_t i = 0; i < y; ++i) {
    outputs.emplace_back(&written[2 * i], Dims{2});
  }
  const auto first = [&](std::size_t size) {
    return std::vector(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(size));
  };
  return internal::CallLists(
      kRows, Context(), nullptr, [&](internal::ListInputs& in, internal::ListOutputs& out) {
        in.Add(first(w));
        in.Add(TensorView<const float>(&rate, Dims{}));
        in.Add(first(g));
        in.Add(first(m));
        out.Add(outputs);
      });
}

TEST(Lists, OfATypedCallHaveOneLength) {
  EXPECT_TRUE(CallTyped(2, 2, 2, 2).ok());
  EXPECT_TRUE(CallTyped(2, 2, 0, 2).ok()) << "an optional list may be absent";
  const std::string prefix = "Step[float] on cpu (test.yaml:7): ";
  EXPECT_EQ(CallTyped(2, 1, 2, 2).message(), prefix + "G has 1 tensor; expected 2, as W has");
  EXPECT_EQ(CallTyped(2, 2, 1, 2).message(), prefix + "M has 1 tensor; expected 2, as W has");
  EXPECT_EQ(CallTyped(2, 2, 2, 0).message(), prefix + "Y has 0 tensors; expected 2, as W has");
  EXPECT_EQ(
      CallTyped(0, 0, 0, 0).message(), prefix + "W, G, M, Y has no tensors; expected one at least");
}

/// An op whose output is as long as the parts are together.
constexpr std::array<SymbolSpec, 3> kSymbolsOfParts = {{
    {.name = "A"},
    {.name = "P", .of_each = true},
    {.name = "S", .sum_of = 1, .rule_name = "sum(P)"},
}};
constexpr std::array<DimSpec, 2> kShapeOfPart = {DimSpec{.symbol = 0}, DimSpec{.symbol = 1}};
constexpr std::array<DimSpec, 2> kShapeOfWhole = {DimSpec{.symbol = 0}, DimSpec{.symbol = 2}};
constexpr std::array<TensorSpec, 1> kParts = {
    {{.name = "X", .list = "n", .shape = kShapeOfPart, .shape_text = "[A, P]"}}};
constexpr std::array<TensorSpec, 1> kWhole = {
    {{.name = "Y", .shape = kShapeOfWhole, .shape_text = "[A, S]"}}};
constexpr OpSchema kOpOfParts = {
    .name = "Concat",
    .source_file = "test.yaml",
    .symbols = kSymbolsOfParts,
    .inputs = kParts,
    .outputs = kWhole,
    .has_lists = true,
    .make_attributes = &NoAttributes,
};

TEST(Lists, LengthsWhoseSumDoesNotFitAreRefused) {
  constexpr Row kRow = {.op = &kOpOfParts, .name = "float", .run = &RunStep, .entry_line = &kLine};
  constexpr std::int64_t kHalf = std::int64_t{1} << 62U;
  const auto infer = [&](const std::vector<std::int64_t>& lengths) {
    std::vector<ConstTensorRef> parts;
    for (const std::int64_t length : lengths) {
      parts.emplace_back(DataType::kFloat, nullptr, Dims{0, length});
    }
    return Kernel::Create(kRow)->InferShapes(parts);
  };
  const Result<std::vector<Dims>> most = infer({kHalf, kHalf - 1});
  ASSERT_TRUE(most.ok()) << most.status().message();
  EXPECT_EQ(*most, (std::vector<Dims>{{0, kHalf - 1 + kHalf}}));
  EXPECT_EQ(
      infer({kHalf, kHalf}).status().message(),
      "Concat[float] on cpu (test.yaml:7): P[0] = 4611686018427387904 from X[0], "
      "P[1] = 4611686018427387904 from X[1], whose sum does not fit; expected less than 2^63");
  std::string eight;
  for (int part = 0; part < 8; ++part) {
    const std::string place = "[" + std::to_string(part) + "]";
    eight += (part == 0 ? "P" : ", P") + place + " = 4611686018427387904 from X" + place;
  }
  EXPECT_EQ(
      infer(std::vector<std::int64_t>(9, kHalf)).status().message(),
      "Concat[float] on cpu (test.yaml:7): " + eight +
          " and so on, whose sum does not fit; expected less than 2^63");
}

TEST(Lists, AreSpelledOutOnceForEachLength) {
  const auto three = internal::SpellOut(kOp, 3);
  EXPECT_EQ(three, internal::SpellOut(kOp, 3));
  EXPECT_NE(three, internal::SpellOut(kOp, 2));
  EXPECT_EQ(three->inputs.size(), 10U);
  EXPECT_EQ(three->inputs[9].name, "M[2]");
  EXPECT_EQ(three->outputs[1].in_place_of, 1);
}

TEST(NumbersOnTheHost, AreTakenOnEveryBackend) {
  const Context context(ContextOptions{.device = {Backend::kCuda, 0}});
  const auto op = internal::SpellOut(kOp, 1);
  Row row = RowOn(Backend::kCuda);
  row.op = op.get();
  StepCall call(1);
  call.outputs[0].device = context.device();
  const auto error_with_rate_on = [&](Device device, Device others) {
    for (ConstTensorRef& input : call.inputs) {
      input.device = others;
    }
    call.inputs[1].device = device;
    return internal::ValidateCall(row, context, nullptr, call.inputs, call.outputs).message();
  };
  EXPECT_EQ(error_with_rate_on({}, context.device()), "");
  EXPECT_EQ(error_with_rate_on(context.device(), context.device()), "");
  EXPECT_EQ(
      error_with_rate_on({Backend::kCuda, 1}, context.device()),
      "rate is on cuda 1; expected the context's device, cuda 0, or cpu 0");
  EXPECT_EQ(
      error_with_rate_on({}, Device{}), "W[0] is on cpu 0; expected the context's device, cuda 0");
}

}  // namespace
}  // namespace gradsmith
