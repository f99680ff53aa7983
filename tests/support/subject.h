#ifndef GRADSMITH_TESTS_SUPPORT_SUBJECT_H_
#define GRADSMITH_TESTS_SUPPORT_SUBJECT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradsmith/context.h"
#include "gradsmith/kernel.h"
#include "gradsmith/registry.h"
#include "gradsmith/schema.h"
#include "reference/oracle.h"
#include "support/op_tests.h"
#include "support/test_tensor.h"

namespace gradsmith::support {

/// Report is what a check found. A check that could not be made says why in `skipped`.
struct Report {
  std::vector<std::string> failures;
  std::string skipped;
  /// What was compared less strictly than the check's name says, and why.
  std::vector<std::string> notes;

  [[nodiscard]] bool ok() const { return failures.empty() && skipped.empty(); }
  void Fail(const std::string& failure) { failures.push_back(failure); }
  /// FailIfNot records the Status' sentence, with what was being done, unless it is success.
  void FailIfNot(const Status& status, const std::string& doing);
};

/// How a kernel is called; the harness' own tests put something else in its place.
using Runner = std::function<Status(
    const Kernel& kernel,
    const Context& context,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs)>;

/// Subject is a row under test.
struct Subject {
  const Registry* registry = nullptr;
  const Row* row = nullptr;
  const OpTests* tests = nullptr;
  /// The typed function; null where only the dynamic door is tested.
  Status (*typed)(const TypedCall& call) = nullptr;
  Runner run = [](const Kernel& kernel,
                  const Context& context,
                  std::span<const ConstTensorRef> inputs,
                  std::span<const TensorRef> outputs) {
    return kernel.Run(context, inputs, outputs);
  };

  [[nodiscard]] const OpSchema& op() const { return *row->op; }
  [[nodiscard]] const reference::Oracle& oracle() const { return *tests->oracle; }
  [[nodiscard]] Device device() const { return {row->backend, 0}; }
  [[nodiscard]] DataType TypeOf(const TensorSpec& tensor) const;
  /// AccumulatorType is what a kernel must sum in: double where all floating types of the row are,
  /// else float.
  [[nodiscard]] DataType AccumulatorType() const;
};

/// RowForLists returns the row for lists of one length: an op with lists spelled out. A row of
/// another op is returned as it is.
const Row& RowForLists(const Row& row, int length);

/// RowForCase returns the row for lists as long as those of a case.
const Row& RowForCase(const Row& row, const Case& problem);

/// SharedContext returns a Context on the backend that is made once; `threads` is for the CPU.
const Context& SharedContext(Backend backend, int threads, bool deterministic = true);

/// ContextFor returns the SharedContext in which a row is tested: a deterministic one, in which
/// runs can be compared bit by bit, unless the row is never repeatable and refuses that.
const Context& ContextFor(const Row& row, int threads);

/// Present says of each optional argument, in the schema's order, whether it is there. Required
/// ones are.
using Present = std::vector<bool>;

/// PresentSubsets returns every choice of the optional ones, all present first.
std::vector<Present> PresentSubsets(std::span<const TensorSpec> tensors);

/// DescribePresent returns the names of what is present, for example "dX, dB".
std::string DescribePresent(std::span<const TensorSpec> tensors, const Present& present);

/// OracleAttributes returns the op's defaults with `given` in their place.
reference::Attributes OracleAttributes(const OpTests& tests, const std::vector<Attribute>& given);

/// ToAttributes returns attributes in the dynamic door's form.
std::vector<Attribute> ToAttributes(const reference::Attributes& attributes);

/// InputShapes returns the case's shapes of those inputs that are present.
reference::Shapes InputShapes(const Case& problem, const Present& present);

/// WithHeldShapes adds the inputs that hold shapes to what an oracle has drawn: tensors without
/// values, whose dims are what is held. `inputs` are those that are present.
reference::Tensors
WithHeldShapes(const OpSchema& op, const reference::Shapes& inputs, reference::Tensors data);

/// Arguments are the tensors of one problem, inputs filled and outputs poisoned.
class Arguments {
 public:
  Arguments(const Subject& subject, const Case& problem, const reference::Tensors& inputs);

  [[nodiscard]] std::vector<ConstTensorRef> InputRefs() const;
  /// OutputRefs returns views of the outputs that are present, default-constructed ones of the
  /// others.
  [[nodiscard]] std::vector<TensorRef> OutputRefs(const Present& present) const;
  [[nodiscard]] std::vector<TensorRef> OutputRefs() const;

  /// InputValues returns what the inputs hold: rounded, and equal where elements share memory. One
  /// that holds a shape is as WithHeldShapes has it.
  [[nodiscard]] reference::Tensors InputValues() const;
  [[nodiscard]] const TestTensor& output(std::size_t i) const { return outputs_[i]; }
  [[nodiscard]] TestTensor& output(std::size_t i) { return outputs_[i]; }
  [[nodiscard]] const TestTensor& input(std::size_t i) const { return *inputs_[i]; }

  void PoisonOutputs();
  /// CheckSurroundings fails where an input, an absent output or what lies around a tensor was
  /// written.
  void CheckSurroundings(const Present& present, const std::string& doing, Report& report) const;

 private:
  const Subject* subject_;
  /// Null where the input is absent.
  std::vector<std::unique_ptr<TestTensor>> inputs_;
  std::vector<std::vector<std::byte>> input_bytes_;
  std::vector<TestTensor> outputs_;
};

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_SUBJECT_H_
