#include "support/checks.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/elements.h"
#include "support/fake_op.h"
#include "support/generated_tests.h"
#include "support/refusal.h"
#include "support/run.h"

/// The harness must not be lied to: each check passes an honest kernel, and finds each way not to
/// be one.
namespace gradsmith::support {
namespace {

using fake::kScaleFloat;
using fake::kScaleGradDouble;
using fake::kScaleGradFloat;
using fake::RowIndex;

Subject MakeSubject(RowIndex row) {
  const OpTests& tests = fake::TestsOf(row);
  return {&fake::FakeRegistry(), &fake::Rows()[row], &tests, tests.rows[row % 2].run};
}

/// A row whose kernel is another.
class Liar {
 public:
  Liar(RowIndex row, RunFunction run, Repeatable repeatable = Repeatable::kPolicy)
      : row_(fake::Rows()[row]), subject_(MakeSubject(row)) {
    row_.run = run;
    row_.repeatable = repeatable;
    subject_.row = &row_;
  }
  ~Liar() = default;
  Liar(const Liar&) = delete;
  Liar(Liar&&) = delete;
  Liar& operator=(const Liar&) = delete;
  Liar& operator=(Liar&&) = delete;

  [[nodiscard]] const Subject& subject() const { return subject_; }

 private:
  Row row_;
  Subject subject_;
};

const Case& CaseNamed(RowIndex row, std::string_view name) {
  for (const Case* problem : fake::TestsOf(row).cases) {
    if (problem->name == name) {
      return *problem;
    }
  }
  throw std::invalid_argument(std::string(name));
}

bool Finds(const Report& report, const std::string& phrase) {
  const bool found = std::any_of(
      report.failures.begin(), report.failures.end(),
      [&](const std::string& failure) { return failure.find(phrase) != std::string::npos; });
  for (const std::string& failure : found ? std::vector<std::string>() : report.failures) {
    ADD_FAILURE() << "found instead: " << failure;
  }
  return found;
}

using Inputs = std::span<const ConstTensorRef>;
using Outputs = std::span<const TensorRef>;

Status Honest(const Context& context, const void* attributes, Inputs inputs, Outputs outputs) {
  return fake::Run(kScaleGradFloat, context, attributes, inputs, outputs);
}

/// Multiplies the first element of the first output that is present.
void Change(Outputs outputs, float factor) {
  for (const TensorRef& output : outputs) {
    if (output.present && NumElements(output.dims) > 0) {
      *static_cast<float*>(output.data) *= factor;
      return;
    }
  }
}

TEST(ChecksTest, HonestKernelsPass) {
  for (const RowIndex row : {kScaleFloat, fake::kScaleDouble, kScaleGradFloat, kScaleGradDouble}) {
    const Subject subject = MakeSubject(row);
    EXPECT_EQ(CheckNeighbours(subject).failures, std::vector<std::string>());
    for (const Case* problem : subject.tests->cases) {
      for (const Kind& kind : CaseKinds()) {
        if (kind.applies(*subject.row, *subject.tests, *problem)) {
          const Report report = kind.check(subject, *problem, "seed");
          EXPECT_TRUE(report.ok()) << kind.name << " " << problem->name;
          EXPECT_EQ(report.failures, std::vector<std::string>());
        }
      }
    }
  }
}

TEST(ChecksTest, SeamsFindWhatIsNotSaid) {
  const reference::FormulaNode nodes[] = {
      {.operation = "number", .number = 0}, {.operation = "number", .number = 1}};
  for (const RowIndex row : {kScaleFloat, fake::kScaleDouble}) {
    Subject subject = MakeSubject(row);
    OpTests tests = *subject.tests;
    tests.seam_nodes = nodes;
    subject.tests = &tests;
    const Case& problem = *tests.cases.front();
    const Seam seams[] = {
        {.text = "X = 0, total = 0",
         .at = {{.tensor = "X", .node = 0}, {.tensor = "total", .node = 0}},
         .gives = {{.tensor = "total", .node = 0}}},
        {.text = "X = 0, total = 0",
         .at = {{.tensor = "X", .node = 0}, {.tensor = "total", .node = 0}},
         .gives = {{.tensor = "total", .node = 1}}}};
    tests.seams = std::span(seams).first(1);
    EXPECT_EQ(CheckSeams(subject, problem, "seed").failures, std::vector<std::string>());
    tests.seams = seams;
    const Report report = CheckSeams(subject, problem, "seed");
    ASSERT_EQ(report.failures.size(), 1);
    EXPECT_TRUE(report.failures[0].starts_with("where X = 0, total = 0: total["))
        << report.failures[0];
  }
}

TEST(ChecksTest, NotFiniteNumbersAreForFormulasOnEachBackend) {
  const auto& kinds = CaseKinds();
  const auto not_finite = std::ranges::find(kinds, "NotFinite", &Kind::name);
  ASSERT_NE(not_finite, kinds.end());
  OpSchema schema = *MakeSubject(kScaleFloat).row->op;
  Row row = *MakeSubject(kScaleFloat).row;
  row.op = &schema;
  row.backend = Backend::kCuda;
  schema.kernel = "formulas::Scale";
  EXPECT_TRUE(not_finite->applies(row, *MakeSubject(kScaleFloat).tests, {}));
  schema.kernel = "fake::Scale";
  EXPECT_FALSE(not_finite->applies(row, *MakeSubject(kScaleFloat).tests, {}));
}

TEST(ChecksTest, ExactFindsOneUnitInTheLastPlace) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    Change(out, 1 + std::numeric_limits<float>::epsilon());
    return status;
  });
  for (const Case* problem : liar.subject().tests->cases) {
    if (problem->name != "empty") {
      EXPECT_TRUE(Finds(CheckExact(liar.subject(), *problem, "seed"), "dX[0, 0")) << problem->name;
    }
  }
  EXPECT_TRUE(CheckRandom(liar.subject(), CaseNamed(kScaleGradFloat, "plain"), "seed").ok());
}

/// ScaleGrad's oracle, whose data make dX inexact for a reason of its own, or are too large for
/// sums to be exact.
class RoundingOracle final : public reference::Oracle {
 public:
  RoundingOracle(std::set<std::string> allowed, std::string reason, double scale)
      : allowed_(std::move(allowed)), reason_(std::move(reason)), scale_(scale) {}

  [[nodiscard]] std::optional<reference::Shapes> OutputShapes(
      const reference::Shapes& inputs,
      const reference::Attributes& attributes) const override {
    return real_.OutputShapes(inputs, attributes);
  }
  [[nodiscard]] reference::ExpectedOutputs Run(
      const reference::Tensors& inputs,
      const reference::Attributes& attributes) const override {
    return real_.Run(inputs, attributes);
  }
  [[nodiscard]] reference::Tensors MakeRandomData(
      const reference::Shapes& inputs,
      const reference::Attributes& attributes,
      reference::Random& random) const override {
    return real_.MakeRandomData(inputs, attributes, random);
  }
  [[nodiscard]] std::optional<reference::ExactData> MakeExactData(
      const reference::Shapes& inputs,
      const reference::Attributes& attributes,
      int level,
      reference::Random& random) const override {
    auto data = real_.MakeExactData(inputs, attributes, level, random);
    if (!data) {
      return std::nullopt;
    }
    if (!reason_.empty()) {
      data->inexact["dX"] = reason_;
    }
    for (double& value : data->inputs["W"].values) {
      value *= scale_;
    }
    return data;
  }
  [[nodiscard]] std::set<std::string> InexactOutputs() const override { return allowed_; }

 private:
  const reference::Oracle& real_ = *fake::TestsOf(kScaleGradFloat).oracle;
  std::set<std::string> allowed_;
  std::string reason_;
  double scale_;
};

Report CheckExactWith(const RoundingOracle& oracle) {
  OpTests tests = fake::TestsOf(kScaleGradFloat);
  tests.oracle = &oracle;
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.tests = &tests;
  return CheckExact(subject, CaseNamed(kScaleGradFloat, "plain"), "seed");
}

TEST(ChecksTest, ExactFailsOutputsThatTheOracleDoesNotAllowToBeInexact) {
  EXPECT_TRUE(CheckExactWith(RoundingOracle({}, "", 1)).ok());
  EXPECT_TRUE(Finds(
      CheckExactWith(RoundingOracle({"dW"}, "by decree", 1)),
      "dX must be compared exactly, and cannot be: by decree"));
  EXPECT_TRUE(Finds(
      CheckExactWith(RoundingOracle({"dW"}, "", 1 + std::ldexp(1, -20))),
      "dX must be compared exactly, and cannot be: integers give more bits than its type has"));
}

TEST(ChecksTest, ExactNotesOutputsThatTheOracleAllowsToBeInexact) {
  const Report report = CheckExactWith(RoundingOracle({"dX"}, "by decree", 1));
  EXPECT_TRUE(report.ok());
  const std::vector<std::string> notes = {"dX is compared within rounding: by decree"};
  EXPECT_EQ(report.notes, notes);
}

TEST(ChecksTest, ExactFindsWhatWasNotWritten) {
  const Liar liar(
      kScaleGradFloat, [](const Context&, const void*, Inputs, Outputs) { return Status(); });
  const Report report = CheckExact(liar.subject(), CaseNamed(kScaleGradFloat, "strided"), "seed");
  EXPECT_TRUE(Finds(report, "nan"));
  EXPECT_EQ(report.failures.size(), 3U);
}

TEST(ChecksTest, ExactFindsAKernelThatFails) {
  const Liar liar(kScaleGradFloat, [](const Context&, const void*, Inputs, Outputs) {
    return Internal("no luck today");
  });
  EXPECT_TRUE(
      Finds(CheckExact(liar.subject(), CaseNamed(kScaleGradFloat, "plain"), "seed"), "no luck"));
}

/// Writes dX where it would be if it lay as X does.
Status AsXLies(const Context& c, const void* a, Inputs in, Outputs out) {
  std::vector<TensorRef> outputs(out.begin(), out.end());
  const bool is_dense = in[1].strides == ContiguousStrides(in[1].dims);
  if (outputs[0].present && is_dense) {  // not beyond its memory
    outputs[0].strides = in[1].strides;
  }
  return Honest(c, a, in, outputs);
}

TEST(ChecksTest, LayoutsFindsOutputsThatAreWrittenAsInputsLie) {
  const Liar liar(kScaleGradFloat, &AsXLies);
  const Case& problem = CaseNamed(kScaleGradFloat, "plain");
  EXPECT_EQ(CheckExact(liar.subject(), problem, "seed").failures, std::vector<std::string>());
  EXPECT_TRUE(Finds(CheckLayouts(liar.subject(), problem, "seed"), "with gaps in outputs: dX"));
}

/// Takes the first call's factor for that of all.
Status OfTheFirstFactor(const Context& c, const void* a, Inputs in, Outputs out) {
  static const std::int64_t first = *static_cast<const std::int64_t*>(a);
  const Status status = Honest(c, a, in, out);
  const std::int64_t asked = *static_cast<const std::int64_t*>(a);
  Change(out, static_cast<float>(first) / static_cast<float>(asked));
  return status;
}

TEST(ChecksTest, AttributesFindsACallThatIsTakenForAnother) {
  const Liar liar(kScaleGradFloat, &OfTheFirstFactor);
  const Case& problem = CaseNamed(kScaleGradFloat, "factor");
  EXPECT_TRUE(
      Finds(CheckAttributes(liar.subject(), problem, "seed"), "after a call without factor: dX"));
}

TEST(ChecksTest, RandomFindsAnErrorThatRoundingDoesNotExplain) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    Change(out, 1 + 1e-5F);
    return status;
  });
  EXPECT_TRUE(Finds(
      CheckRandom(liar.subject(), CaseNamed(kScaleGradFloat, "channels_last"), "seed"), "dX[0, 0"));
}

TEST(ChecksTest, NotFiniteFindsNaNThatSpreads) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    for (const TensorRef& output : out) {
      auto* data = static_cast<float*>(output.data);
      if (output.present && NumElements(output.dims) > 1 &&
          std::isnan(data[0]) != std::isnan(data[1])) {
        data[0] = data[1] = std::nanf("");
      }
    }
    return status;
  });
  const Case& plain = CaseNamed(kScaleGradFloat, "plain");
  EXPECT_TRUE(CheckRandom(liar.subject(), plain, "seed").ok());
  EXPECT_FALSE(CheckNotFinite(liar.subject(), plain, "seed 0").ok());
}

TEST(ChecksTest, GradientFindsAGradientThatIsALittleOff) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    Change(out, 1 + 1e-4F);
    return status;
  });
  EXPECT_TRUE(Finds(
      CheckGradient(liar.subject(), CaseNamed(kScaleGradFloat, "factor"), "seed"),
      "differences of Scale with respect to X"));
}

TEST(ChecksTest, GradientFindsOneWrongElementOfMany) {
  Case large = CaseNamed(kScaleGradFloat, "plain");
  for (std::vector<NamedShape>* shapes : {&large.inputs, &large.outputs}) {
    for (NamedShape& shape : *shapes) {
      shape.dims = shape.dims.size() == 1 ? reference::Shape{8} : reference::Shape{16, 8, 9};
    }
  }
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    *static_cast<float*>(out[0].data) += 0.1F;
    return status;
  });
  EXPECT_TRUE(Finds(CheckGradient(liar.subject(), large, "seed"), "dX"));
}

TEST(ChecksTest, GradientIsThatOfEachInputThatItNames) {
  Subject subject = MakeSubject(kScaleGradFloat);
  std::vector<TensorSpec> outputs(subject.op().outputs.begin(), subject.op().outputs.end());
  constexpr std::string_view kOfBAndW[] = {"B", "W"};
  outputs[2].gradient_of = kOfBAndW;
  OpSchema op = subject.op();
  op.outputs = outputs;
  Row row = *subject.row;
  row.op = &op;
  subject.row = &row;
  const Report report = CheckGradient(subject, CaseNamed(kScaleGradFloat, "plain"), "seed");
  EXPECT_TRUE(Finds(report, "dB[0]"));
  for (const std::string& failure : report.failures) {
    EXPECT_NE(failure.find("differences of Scale with respect to W"), std::string::npos) << failure;
  }
}

TEST(ChecksTest, GradientSaysWhyItIsSkipped) {
  const Registry empty;
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.registry = &empty;
  const Report report = CheckGradient(subject, CaseNamed(kScaleGradFloat, "plain"), "seed");
  EXPECT_EQ(report.skipped, "Scale has no row of doubles on the CPU");
  EXPECT_FALSE(report.ok());
}

TEST(ChecksTest, SubsetsFindBitsThatDependOnWhatIsAsked) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    if (out.size() < 3 || !out[2].present) {
      Change(out, 1 + std::numeric_limits<float>::epsilon());
    }
    return status;
  });
  EXPECT_TRUE(Finds(
      CheckOutputSubsets(liar.subject(), CaseNamed(kScaleGradFloat, "plain"), "seed"),
      "asking for dX, dW: output dX has other bits, first in element 0"));
}

/// A sum of its last bits alone, so to speak: what no integer has.
Status OtherRoundingWithoutDb(const Context& c, const void* a, Inputs in, Outputs out) {
  const Status status = Honest(c, a, in, out);
  auto* const first = static_cast<float*>(out[0].data);
  if ((out.size() < 3 || !out[2].present) && out[0].present && *first != std::round(*first)) {
    *first *= 1 + std::numeric_limits<float>::epsilon();
  }
  return status;
}

TEST(ChecksTest, SubsetsMayBeAddedUpInAnotherOrderWhereARowSaysSo) {
  const Case& problem = CaseNamed(kScaleGradFloat, "plain");
  const Liar liar(kScaleGradFloat, &OtherRoundingWithoutDb);
  EXPECT_FALSE(CheckOutputSubsets(liar.subject(), problem, "seed").ok());
  // A row that never gives the same bits twice is run on integers.
  const Liar rounds(kScaleGradFloat, &OtherRoundingWithoutDb, Repeatable::kNever);
  EXPECT_EQ(
      CheckOutputSubsets(rounds.subject(), problem, "seed").failures, std::vector<std::string>());
  Row on_gpu = fake::Rows()[kScaleGradFloat];
  EXPECT_TRUE(HasOneOrder(on_gpu));
  on_gpu.backend = Backend::kCuda;
  EXPECT_FALSE(HasOneOrder(on_gpu));
  on_gpu.repeatable = Repeatable::kAlways;
  EXPECT_TRUE(HasOneOrder(on_gpu));
}

TEST(ChecksTest, SubsetsFindAnAbsentOutputThatIsWritten) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    static float* remembered = nullptr;
    if (out.size() == 3 && out[2].present) {
      remembered = static_cast<float*>(out[2].data);
    } else {
      *remembered = 0;
    }
    return Honest(c, a, in, out);
  });
  EXPECT_TRUE(Finds(
      CheckOutputSubsets(liar.subject(), CaseNamed(kScaleGradFloat, "plain"), "seed"),
      "output dB was not asked for and was written to"));
}

TEST(ChecksTest, EveryRunFindsAWriteBesideAnOutput) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    for (const TensorRef& output : out) {
      if (output.present) {
        static_cast<float*>(output.data)[1] = 0;  // a gap of a strided tensor
        static_cast<float*>(output.data)[-1] = 0;
      }
    }
    return status;
  });
  const Case& problem = CaseNamed(kScaleGradFloat, "strided");
  for (const auto check : {&CheckExact, &CheckRandom, &CheckOutputSubsets, &CheckRepeat}) {
    EXPECT_TRUE(Finds(check(liar.subject(), problem, "seed"), "memory around output dX"));
  }
}

TEST(ChecksTest, EveryRunFindsAnInputThatIsWritten) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    *const_cast<float*>(static_cast<const float*>(in[1].data)) += 1;
    return status;
  });
  const Case& problem = CaseNamed(kScaleGradFloat, "plain");
  for (const auto check : {&CheckExact, &CheckRandom, &CheckOutputSubsets, &CheckRepeat}) {
    EXPECT_TRUE(Finds(check(liar.subject(), problem, "seed"), "input X was written to"));
  }
}

TEST(ChecksTest, InPlaceFindsAKernelThatReadsWhatItHasWritten) {
  const Liar liar(kScaleFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = fake::Run(kScaleFloat, c, a, in, out);
    return out[1].data == in[2].data ? fake::Run(kScaleFloat, c, a, in, out) : status;
  });
  EXPECT_TRUE(Finds(
      CheckInPlace(liar.subject(), CaseNamed(kScaleFloat, "plain"), "seed"),
      "with total written in place: output total has other bits"));
}

Status OtherBitsWithEachCall(const Context& c, const void* a, Inputs in, Outputs out) {
  static int runs = 0;
  const Status status = Honest(c, a, in, out);
  Change(out, 1 + static_cast<float>(runs++) * 1e-3F);
  return status;
}

/// A row that says that its bits repeat, under a policy or always, is compared with what it does.
TEST(ChecksTest, RepeatFindsBitsThatChange) {
  const Case& problem = CaseNamed(kScaleGradFloat, "plain");
  for (const Repeatable said : {Repeatable::kPolicy, Repeatable::kAlways}) {
    const Liar liar(kScaleGradFloat, &OtherBitsWithEachCall, said);
    EXPECT_TRUE(Finds(
        CheckRepeat(liar.subject(), problem, "seed"),
        "run again on 2 threads: output dX has other bits"));
  }
  // Of what is never repeatable no bits are compared: a deterministic context refuses it.
  const Liar honest(kScaleGradFloat, &OtherBitsWithEachCall, Repeatable::kNever);
  EXPECT_EQ(CheckRepeat(honest.subject(), problem, "seed").failures, std::vector<std::string>());
}

TEST(ChecksTest, RepeatFindsBitsThatDependOnThePolicy) {
  const RunFunction run = [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    Change(out, c.options().deterministic.value_or(false) ? 1 : 2);
    return status;
  };
  const Case& problem = CaseNamed(kScaleGradFloat, "plain");
  const Liar liar(kScaleGradFloat, run, Repeatable::kAlways);
  EXPECT_TRUE(Finds(
      CheckRepeat(liar.subject(), problem, "seed"),
      "run again in a context that is not deterministic: output dX has other bits"));
  const Liar honest(kScaleGradFloat, run, Repeatable::kPolicy);
  EXPECT_EQ(CheckRepeat(honest.subject(), problem, "seed").failures, std::vector<std::string>());
}

TEST(ChecksTest, RepeatFindsBitsThatDependOnTheContext) {
  const RunFunction run = [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    Change(out, c.options().first_choice_seconds == 0 ? 1 : 2);
    return status;
  };
  const Liar liar(kScaleGradFloat, run);
  EXPECT_TRUE(Finds(
      CheckRepeat(liar.subject(), CaseNamed(kScaleGradFloat, "plain"), "seed"),
      "run again in another deterministic context: output dX has other bits"));
}

TEST(ChecksTest, RepeatFindsBitsThatDependOnThreads) {
  const Liar liar(kScaleGradFloat, [](const Context& c, const void* a, Inputs in, Outputs out) {
    const Status status = Honest(c, a, in, out);
    Change(out, static_cast<float>(c.threads()));
    return status;
  });
  const Report report = CheckRepeat(liar.subject(), CaseNamed(kScaleGradFloat, "plain"), "seed");
  EXPECT_TRUE(Finds(report, "run again on 1 threads: output dX has other bits"));
  EXPECT_EQ(report.failures.size(), 2U);
}

TEST(ChecksTest, DoorsFindATypedFunctionOfItsOwn) {
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.typed = [](const TypedCall& call) {
    const Status status = fake::TestsOf(kScaleGradFloat).rows[0].run(call);
    Change(call.outputs, 2);
    return status;
  };
  const Case& problem = CaseNamed(kScaleGradFloat, "factor");
  EXPECT_TRUE(Finds(
      CheckDoors(subject, problem, "seed"),
      "the typed function, with inputs dY, X, W and outputs dX, dW, dB: output dX has other bits"));
  subject.typed = [](const TypedCall& call) {
    return Honest(call.context, call.attributes, call.inputs, call.outputs);
  };
  EXPECT_TRUE(Finds(CheckDoors(subject, problem, "seed"), "the typed function's error is ''"));
}

TEST(ChecksTest, DoorsFindOtherAttributes) {
  Case problem = CaseNamed(kScaleGradFloat, "factor");
  problem.typed_attributes = CaseNamed(kScaleGradFloat, "plain").typed_attributes;
  EXPECT_TRUE(
      Finds(CheckDoors(MakeSubject(kScaleGradFloat), problem, "seed"), "output dX has other bits"));
}

TEST(ChecksTest, ShapesFindsAWrongLiteral) {
  Case problem = CaseNamed(kScaleGradFloat, "plain");
  problem.outputs[0].dims = {2, 3, 5};
  const Report report = CheckShapes(MakeSubject(kScaleGradFloat), problem, "seed");
  for (const char* source : {"Kernel::InferShapes", "the oracle", "the typed InferShapes"}) {
    EXPECT_TRUE(Finds(report, source));
  }
}

TEST(ChecksTest, ShapesTellsARefusalOfWhatTheOracleTakes) {
  Subject subject = MakeSubject(kScaleGradFloat);
  std::vector<SymbolSpec> symbols(subject.op().symbols.begin(), subject.op().symbols.end());
  symbols.back().rule = [](const void*, std::span<const Dims>) -> Result<Dims> {
    return InvalidArgument("the rule refuses");
  };
  OpSchema op = subject.op();
  op.symbols = symbols;
  Row row = *subject.row;
  row.op = &op;
  subject.row = &row;
  EXPECT_TRUE(Finds(
      CheckShapes(subject, CaseNamed(kScaleGradFloat, "plain"), "seed"),
      "Kernel::InferShapes with another mode, which the oracle takes,: "));
}

TEST(ChecksTest, BadArgumentsFindsAKernelThatTakesAll) {
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.run = [](const Kernel&, const Context&, Inputs, Outputs) { return Status(); };
  const Report report = CheckBadArguments(subject, CaseNamed(kScaleGradFloat, "plain"), "seed");
  for (const char* what :
       {"X of type double", "dY on cpu 1", "W with null data", "dX with a negative stride",
        "X with a negative dim", "dY with a stride too few", "X of dims [2, 3, 4, 1]",
        "X of dims [2, 3]", "dW of dims [2]", "dB of dims [4]", "X absent",
        "output dX with a zero stride", "output dX and dY at one address",
        "output dX and W, the one beginning where the other ends",
        "output dW and dX, the other beginning where the one ends", "an input too many",
        "an output too many", "no inputs", "a context on cuda"}) {
    EXPECT_TRUE(Finds(report, std::string(what) + ": the status is ok")) << what;
  }
}

TEST(ChecksTest, BadArgumentsFindsErrorsThatSayNothing) {
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.run = [](const Kernel&, const Context&, Inputs, Outputs) {
    return InvalidArgument("ScaleGrad[float] on cpu (fake.yaml:10): bad argument");
  };
  const Report report = CheckBadArguments(subject, CaseNamed(kScaleGradFloat, "plain"), "seed");
  for (const char* what :
       {"X of type double: the error does not mention 'expected float'",
        "X with null data: the error does not mention 'null'",
        "dX of dims [3, 3, 4]: the error names no tensor with the dims"}) {
    EXPECT_TRUE(Finds(report, what)) << what;
  }
}

TEST(ChecksTest, BadArgumentsFindsARefusalThatHasWritten) {
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.run = [](const Kernel& kernel, const Context& context, Inputs in, Outputs out) {
    if (!out.empty() && out[0].present && out[0].data != nullptr) {
      const float zero = 0;
      std::memcpy(out[0].data, &zero, sizeof(zero));  // the address may be an odd one
    }
    return kernel.Run(context, in, out);
  };
  EXPECT_TRUE(Finds(
      CheckBadArguments(subject, CaseNamed(kScaleGradFloat, "plain"), "seed"),
      "X of type double: output dX was not asked for and was written to"));
}

TEST(ChecksTest, BadAttributesFindsAListOfTheWrongLengthThatIsTaken) {
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.run = [](const Kernel&, const Context&, Inputs, Outputs) { return Status(); };
  EXPECT_TRUE(Finds(
      CheckBadAttributes(subject, CaseNamed(kScaleGradFloat, "plain"), "seed"),
      "steps of length 2: the status is ok"));
}

TEST(ChecksTest, NeighboursFindsASentenceThatNamesNoRow) {
  const Registry empty;
  Subject subject = MakeSubject(kScaleGradFloat);
  subject.registry = &empty;
  EXPECT_TRUE(Finds(
      CheckNeighbours(subject),
      "ScaleGrad(MLFloat16): the sentence names no nearest row with the type that differs"));
}

TEST(RefusalTest, MentionsWholeWordsOnly) {
  EXPECT_TRUE(Mentions("dX is 3; expected [4, 5]", "dX"));
  EXPECT_TRUE(Mentions("dX is 3; expected [4, 5]", "[4, 5]"));
  EXPECT_TRUE(Mentions("X, dX", "X"));
  EXPECT_FALSE(Mentions("dX is 3", "X"));
  EXPECT_FALSE(Mentions("value is -1", "1"));
  EXPECT_FALSE(Mentions("value is 10", "1"));
  EXPECT_FALSE(Mentions("saved_mean", "mean"));
}

TEST(RefusalTest, VerifiesCodePrefixAndPhrases) {
  const Subject subject = MakeSubject(kScaleGradFloat);
  const std::string prefix = "ScaleGrad[float] on cpu (fake.yaml:10): ";
  const auto failures = [&](const Status& status) {
    Report report;
    VerifyRefusal(subject, "what", status, {"X", "3"}, report);
    return report.failures.size();
  };
  EXPECT_EQ(failures(InvalidArgument(prefix + "X is 3")), 0U);
  EXPECT_EQ(failures(InvalidArgument(prefix + "X is wrong")), 1U);
  EXPECT_EQ(failures(InvalidArgument("X is 3")), 1U);
  EXPECT_EQ(failures(Internal(prefix + "X is 3")), 1U);
  EXPECT_EQ(failures(Status()), 1U);
}

TEST(AssertTest, AFailureListsAllAndEndsWithTheRerun) {
  Report report;
  report.Fail("first");
  report.Fail("second");
  EXPECT_NONFATAL_FAILURE(
      Assert(report, "./tests --gtest_filter='Op.Exact/float_cpu_plain'"),
      "first\nsecond\nRerun: ./tests --gtest_filter='Op.Exact/float_cpu_plain'");
  Assert(Report(), "");
}

TEST(AssertTest, ASkipSaysWhy) {
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    Report report;
    report.skipped = "no such device";
    Assert(report, "");
  }
  ASSERT_EQ(results.size(), 1);
  EXPECT_TRUE(results.GetTestPartResult(0).skipped());
  EXPECT_NE(
      std::string(results.GetTestPartResult(0).message()).find("no such device"),
      std::string::npos);
}

}  // namespace
}  // namespace gradsmith::support
