#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_PRIMITIVE_CALL_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_PRIMITIVE_CALL_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/decision_cache.h"
#include "gradsmith/conv_algorithms.h"
#include "runtime/cuda/op_problems.h"
#include "support/elements.h"

/// Calls of a convolution's primitives by the name of an algorithm.
namespace gradsmith::cuda {

inline constexpr ConvPrimitive kPrimitives[] = {
    ConvPrimitive::kForward, ConvPrimitive::kBackwardData, ConvPrimitive::kBackwardFilter};

/// A primitive's tensors, and what its result must be.
struct PrimitiveCall {
  ConvPrimitive primitive;
  ConvGeometry geometry;
  TensorPointer x = nullptr;
  TensorPointer w = nullptr;
  TensorPointer y = nullptr;
  /// The op that computes this result and nothing else.
  OpCall op = {};

  [[nodiscard]] const TensorPointer& Result() const {
    switch (primitive) {
      case ConvPrimitive::kForward:
        return y;
      case ConvPrimitive::kBackwardData:
        return x;
      case ConvPrimitive::kBackwardFilter:
        break;
    }
    return w;
  }
  [[nodiscard]] gradsmith::Result<ConvAlgorithms> Prepare(
      const Context& context,
      bool accumulate = false) const {
    const auto ref = [&](const TensorPointer& tensor) {
      const TensorRef made = tensor->GpuRef();
      return accumulate && tensor == Result() ? made.Accumulating() : made;
    };
    return ConvAlgorithms::Prepare(context, primitive, ref(x), ref(w), ref(y), geometry);
  }
  [[nodiscard]] ConvAddresses Addresses() const {
    return {x->GpuRef().data, w->GpuRef().data, y->GpuRef().data};
  }
};

inline PrimitiveCall MakeCall(
    ConvPrimitive primitive,
    const ConvShape& shape,
    DataType type,
    Layout layout,
    Random& random) {
  PrimitiveCall call{
      .primitive = primitive,
      .geometry = {
          .strides = shape.strides,
          .pads = shape.pads,
          .dilations = shape.dilations,
          .group = shape.group}};
  if (primitive == ConvPrimitive::kForward) {
    call.op = MakeConv(shape, type, layout, random);
    call.op.inputs[2] = nullptr;
    call.x = call.op.inputs[0];
    call.w = call.op.inputs[1];
    call.y = call.op.outputs[0];
    return call;
  }
  call.op = MakeConvGrad(shape, type, layout, random);
  const bool is_data = primitive == ConvPrimitive::kBackwardData;
  call.x = is_data ? call.op.outputs[0] : call.op.inputs[1];
  call.w = is_data ? call.op.inputs[2] : call.op.outputs[1];
  call.y = call.op.inputs[0];
  call.op.outputs[is_data ? 1 : 0] = nullptr;
  call.op.outputs[2] = nullptr;
  return call;
}

/// Runs the algorithm and compares its result with what the op's outputs must be, to OpCall's
/// tolerance.
inline void RunAndCompare(
    ConvAlgorithms& algorithms,
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    const std::vector<std::vector<double>>& expected,
    double tolerance) {
  call.op.ResetOutputs();
  std::vector<ConvAttempt> attempts;
  const Result<std::string> ran = algorithms.Run({name}, &attempts);
  ASSERT_TRUE(ran.ok()) << name << ": " << ran.status().message();
  EXPECT_EQ(*ran, name);
  EXPECT_TRUE(attempts.empty());
  ASSERT_TRUE(Synchronize(context).ok());
  call.op.ExpectResults(name, expected, tolerance);
}

/// The same, with what the op computes on the CPU.
inline void RunAndCompare(
    ConvAlgorithms& algorithms,
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    double tolerance = 0) {
  RunAndCompare(algorithms, call, context, name, call.op.Expected(), tolerance);
}

/// The same of a call that is prepared for this alone.
inline void RunAndCompare(
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    double tolerance = 0) {
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  RunAndCompare(*algorithms, call, context, name, tolerance);
}

/// What its result must be on the CPU.
inline std::vector<double> ExpectedOf(const PrimitiveCall& call) {
  return call.op.Expected()[call.primitive == ConvPrimitive::kBackwardFilter ? 1 : 0];
}

/// Runs the algorithm by name, as often as calls are repeated, on what the inputs are; the result
/// is exactly what is expected, and nothing around it is written.
inline void RunExactly(
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    const std::vector<double>& expected) {
  Result<ConvAlgorithms> algorithms = call.Prepare(context);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  for (int left = RunsOfCall(); left > 0; --left) {
    call.op.ResetOutputs();
    const Result<std::string> ran = algorithms->Run({name});
    ASSERT_TRUE(ran.ok()) << name << ": " << ran.status().message();
    ASSERT_TRUE(Synchronize(context).ok());
    EXPECT_EQ(call.Result()->GpuValues(), expected) << name;
    EXPECT_TRUE(call.Result()->SurroundingsIntact()) << name;
  }
}

/// Runs the algorithm on small integers, which are numbers in every type and in TF32: sums of them
/// are exact in float, whatever their order, and rounded once.
inline void RunOnIntegers(
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    Random& random) {
  call.op.FillInputsWithIntegers(random, -3, 3);
  RunExactly(call, context, name, support::RoundAll(call.Result()->type(), ExpectedOf(call)));
}

/// Runs it on a factor that is rounded to numbers of 11 bits, of which 4100 is one; cut off, 4099
/// would be 4096.
inline void RunOnWhatIsRounded(
    const PrimitiveCall& call,
    const TensorPointer& factor,
    const TensorPointer& other,
    const Context& context,
    const std::string& name) {
  other->Fill([] { return 1.0; });
  factor->Fill([] { return 4100.0; });
  const std::vector<double> rounded = ExpectedOf(call);
  factor->Fill([] { return 4099.0; });
  RunExactly(call, context, name, rounded);
}

/// The algorithm is listed once, where TF32 is allowed, and neither listed nor run elsewhere.
inline void ExpectInTf32Only(const PrimitiveCall& call, const std::string& name) {
  for (const bool is_allowed : {true, false}) {
    Result<ConvAlgorithms> algorithms = call.Prepare(Context(is_allowed ? WithTf32() : OnGpu()));
    ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
    const Result<std::vector<ConvAlgorithm>> list = algorithms->List();
    ASSERT_TRUE(list.ok()) << list.status().message();
    int listed = 0;
    for (const ConvAlgorithm& algorithm : *list) {
      if (algorithm.name == name) {
        ++listed;
        EXPECT_TRUE(algorithm.tf32);
        EXPECT_TRUE(algorithm.deterministic);
      }
    }
    EXPECT_EQ(listed, is_allowed ? 1 : 0);
    EXPECT_EQ(algorithms->Run({name}).ok(), is_allowed);
  }
}

/// Runs the algorithm on integers, prepared to add to its result; `gradient` is what it adds.
inline void RunAndCompareAdding(
    ConvAlgorithms& algorithms,
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    const std::vector<double>& gradient,
    Random& random) {
  call.Result()->Fill([&] { return static_cast<double>(random.Integer(-8, 8)); });
  const std::vector<double> before = call.Result()->HostValues();
  ASSERT_TRUE(algorithms.Run({name}).ok()) << name;
  ASSERT_TRUE(Synchronize(context).ok());
  const std::vector<double> after = call.Result()->GpuValues();
  for (std::size_t i = 0; i < after.size(); ++i) {
    ASSERT_EQ(after[i], before[i] + gradient[i]) << name << ", element " << i;
  }
  EXPECT_TRUE(call.Result()->SurroundingsIntact()) << name;
}

/// Prepares the call to add to its result, and runs the algorithm on integers from -most to most.
inline void RunAddingIntegers(
    const PrimitiveCall& call,
    const Context& context,
    const std::string& name,
    int most,
    Random& random) {
  call.op.FillInputsWithIntegers(random, -most, most);
  const std::vector<double> sums = ExpectedOf(call);
  Result<ConvAlgorithms> algorithms = call.Prepare(context, /*accumulate=*/true);
  ASSERT_TRUE(algorithms.ok()) << algorithms.status().message();
  ASSERT_NO_FATAL_FAILURE(RunAndCompareAdding(*algorithms, call, context, name, sums, random));
}

/// Remembers the algorithm for every filter's gradient that something is remembered for.
inline void ChooseForFilters(const std::string& name) {
  using internal::DecisionCache, internal::StoredDecision;
  std::vector<StoredDecision> filters;
  for (StoredDecision stored : DecisionCache::Named(std::nullopt).Entries()) {
    if (stored.problem.starts_with("backward-filter")) {
      stored.decision.id = name;
      filters.push_back(stored);
    }
  }
  ASSERT_FALSE(filters.empty()) << RecentChoices(8);
  DecisionCache::Named(std::nullopt).Add(filters);
}

/// Runs the call, as often as calls are repeated, and compares its results with the op's on the
/// CPU; the algorithm is among so many choices that were made for it.
inline void RunByChoice(
    const OpCall& call,
    const Context& context,
    const std::string& name,
    int choices,
    double tolerance = 0) {
  SCOPED_TRACE(call.Describe());
  const std::vector<std::vector<double>> expected = call.Expected();
  for (int left = RunsOfCall(); left > 0; --left) {
    call.ResetOutputs();
    const Status status = call.Run(context);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    call.ExpectResults(name, expected, tolerance);
  }
  const std::string recent = RecentChoices(choices);
  EXPECT_NE(recent.find(name), std::string::npos) << recent;
}

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_PRIMITIVE_CALL_H_
