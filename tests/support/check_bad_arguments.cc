#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/checks.h"
#include "support/refusal.h"
#include "support/run.h"

namespace gradsmith::support {

namespace {

constexpr DataType kTypes[] = {
#define GRADSMITH_TYPE(enumerator, type, name, dlpack_code, torch_type) DataType::enumerator,
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_TYPE)
#undef GRADSMITH_TYPE
};

/// The arguments of one call.
struct CallArguments {
  std::vector<ConstTensorRef> inputs;
  std::vector<TensorRef> outputs;
};

reference::Shape ToShape(const IntList& list) {
  return {list.begin(), list.end()};
}

std::string Text(DataType type) {
  return std::string(ToString(type));
}

std::int64_t ElementsIn(const ConstTensorRef& tensor) {
  return reference::Count(ToShape(tensor.dims));
}

/// How many bytes lie before the tensor's last element.
std::size_t BytesBeforeLast(const ConstTensorRef& tensor) {
  std::int64_t last = 0;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    last += (tensor.dims[axis] - 1) * tensor.strides[axis];
  }
  return static_cast<std::size_t>(last) * SizeOf(tensor.type);
}

/// The last place, in bytes from `other`'s first element, where a tensor is aligned and shares a
/// byte with `other`'s last.
std::size_t LastPlaceFor(const ConstTensorRef& tensor, const ConstTensorRef& other) {
  return BytesBeforeLast(other) / SizeOf(tensor.type) * SizeOf(tensor.type);
}

std::size_t BytesOf(const ConstTensorRef& tensor) {
  return BytesBeforeLast(tensor) + SizeOf(tensor.type);
}

/// Calls a kernel with one argument wrong at a time. A wrong argument lies in memory of its own
/// that is large enough, so that a call that is accepted by mistake fails the test and nothing
/// else.
class Refusals {
 public:
  Refusals(
      const Subject& subject,
      const Case& problem,
      Kernel kernel,
      Arguments arguments,
      Report& report)
      : subject_(subject),
        problem_(problem),
        kernel_(std::move(kernel)),
        arguments_(std::move(arguments)),
        good_{arguments_.InputRefs(), arguments_.OutputRefs()},
        scratch_(Allocate(subject.device(), ScratchSize())),
        host_scratch_(Allocate(Device{}, ScratchSize())),
        report_(report) {}

  void CheckAll() {
    for (std::size_t i = 0; i < good_.inputs.size(); ++i) {
      CheckTensor(&CallArguments::inputs, subject_.op().inputs[i], i);
    }
    for (std::size_t i = 0; i < good_.outputs.size(); ++i) {
      CheckTensor(&CallArguments::outputs, subject_.op().outputs[i], i);
      CheckSharedElements(i);
      CheckOverlaps(i);
    }
    CheckCounts();
    CheckNoOutputs();
    CheckContext();
  }

 private:
  template <typename Ref>
  using Role = std::vector<Ref> CallArguments::*;

  [[nodiscard]] std::size_t ScratchSize() const {
    std::size_t size = 64;
    const auto include = [&size](const ConstTensorRef& tensor) {
      std::size_t count = SizeOf(DataType::kDouble);
      for (const std::int64_t dim : tensor.dims) {
        count *= static_cast<std::size_t>(dim) + 1;
      }
      size = std::max(size, count);
    };
    std::for_each(good_.inputs.begin(), good_.inputs.end(), include);
    std::for_each(good_.outputs.begin(), good_.outputs.end(), include);
    return size;
  }

  void Expect(
      const std::string& what,
      const CallArguments& call,
      const std::vector<std::string>& phrases) {
    VerifyRefusal(subject_, what, Run(what, call), phrases, report_);
  }

  Status Run(const std::string& what, const CallArguments& call) {
    const Context& context = ContextFor(*subject_.row, 1);
    const Status status = subject_.run(kernel_, context, call.inputs, call.outputs);
    arguments_.CheckSurroundings(Present(good_.outputs.size(), false), what, report_);
    return status;
  }

  /// The good call with one argument on scratch memory, dense, and then changed.
  template <typename Ref, typename Change>
  CallArguments With(Role<Ref> role, std::size_t i, Change change) {
    CallArguments call = good_;
    Ref& tensor = (call.*role)[i];
    tensor.data = (tensor.device == Device{} ? host_scratch_ : scratch_)->Address();
    tensor.strides = ToIntList(StridesFor(Layout::kContiguous, ToShape(tensor.dims)));
    change(tensor);
    return call;
  }

  template <typename Ref>
  void CheckTensor(Role<Ref> role, const TensorSpec& spec, std::size_t i) {
    CheckTypes(role, spec, i);
    CheckDevices(role, spec, i);
    CheckMemory(role, spec, i);
    if (spec.shape_of.empty()) {
      CheckRanks(role, spec, i);
      CheckDims(role, spec, i);
    } else {
      CheckHeldShape(spec, i);
    }
    if (!spec.optional) {
      Expect(
          std::string(spec.name) + " absent", With(role, i, [](Ref& tensor) { tensor = Ref(); }),
          {std::string(spec.name), "absent", "required"});
    }
  }

  template <typename Ref>
  void CheckTypes(Role<Ref> role, const TensorSpec& spec, std::size_t i) {
    const DataType expected = subject_.TypeOf(spec);
    for (const DataType type : kTypes) {
      if (type != expected) {
        Expect(
            std::string(spec.name) + " of type " + Text(type),
            With(role, i, [&](Ref& tensor) { tensor.type = type; }),
            {std::string(spec.name), Text(type), "expected " + Text(expected)});
      }
    }
  }

  template <typename Ref>
  void CheckDevices(Role<Ref> role, const TensorSpec& spec, std::size_t i) {
    const Backend backend = spec.shape_of.empty() ? subject_.row->backend : Backend::kCpu;
    const Backend other = backend == Backend::kCpu ? Backend::kCuda : Backend::kCpu;
    for (const Device device : {Device{backend, 1}, Device{other, 0}}) {
      if (spec.may_be_on_host && device == Device{}) {
        continue;
      }
      const std::string text =
          std::string(ToString(device.backend)) + " " + std::to_string(device.index);
      Expect(
          std::string(spec.name) + " on " + text,
          With(role, i, [&](Ref& tensor) { tensor.device = device; }),
          {std::string(spec.name), text, "expected", std::string(ToString(backend)) + " 0"});
    }
  }

  template <typename Ref>
  void CheckMemory(Role<Ref> role, const TensorSpec& spec, std::size_t i) {
    const std::string name(spec.name);
    const Ref& good = (good_.*role)[i];
    if (ElementsIn(good) > 0 && !spec.shape_only) {
      Expect(
          name + " with null data", With(role, i, [](Ref& tensor) { tensor.data = nullptr; }),
          {name, "null", "expected"});
    }
    if (ElementsIn(good) > 0 && SizeOf(good.type) > 1) {
      Expect(
          name + " at an odd address",
          With(
              role, i,
              [](Ref& tensor) {
                tensor.data =
                    const_cast<std::byte*>(static_cast<const std::byte*>(tensor.data)) + 1;
              }),
          {name, "1 byte past", "expected", std::to_string(SizeOf(good.type)) + " bytes"});
    }
    CallArguments more = With(role, i, [](Ref& tensor) { tensor.strides.push_back(1); });
    Expect(
        name + " with a stride too many", more,
        {name, gradsmith::ToString((more.*role)[i].strides), "expected one for each"});
    if (good.rank() > 0) {
      CallArguments fewer = With(role, i, [](Ref& tensor) {
        tensor.strides = Strides(std::span(tensor.strides.begin(), tensor.strides.end() - 1));
      });
      Expect(
          name + " with a stride too few", fewer,
          {name, gradsmith::ToString((fewer.*role)[i].strides), "expected one for each"});
    }
    for (int axis = 0; axis < good.rank(); ++axis) {
      CallArguments negative =
          With(role, i, [&](Ref& tensor) { tensor.strides[axis] = -tensor.strides[axis]; });
      Expect(
          name + " with a negative stride", negative,
          {name, "strides", gradsmith::ToString((negative.*role)[i].strides), "expected"});
      negative = With(role, i, [&](Ref& tensor) { tensor.dims[axis] = -1; });
      Expect(
          name + " with a negative dim", negative,
          {name, gradsmith::ToString((negative.*role)[i].dims), "expected"});
    }
  }

  /// A shape that an input holds, of which one number is another, or there are too many or too few.
  void CheckHeldShape(const TensorSpec& spec, std::size_t i) {
    const std::string name(spec.name);
    const reference::Shape& right = problem_.inputs[i].dims;
    Expect(
        name + " of two dims",
        With(
            &CallArguments::inputs, i,
            [](ConstTensorRef& tensor) {
              tensor.dims.push_back(1);
              tensor.strides.push_back(1);
            }),
        {name, "rank 2", "expected a vector"});
    reference::Shape longer = right;
    longer.push_back(1);
    ExpectRefused(name, i, longer, "rank");
    for (std::size_t axis = 0; axis < right.size(); ++axis) {
      reference::Shape other = right;
      other[axis] = -1;
      ExpectRefused(name, i, other, "negative");
      other[axis] = right[axis] + 1;
      ExpectRefused(name, i, other, "expected");
    }
    if (!right.empty()) {
      ExpectRefused(name, i, reference::Shape(right.begin(), right.end() - 1), "rank");
    }
    ExpectRefused(name, i, reference::Shape(9, 1), "at most 8");
  }

  void ExpectRefused(
      const std::string& name,
      std::size_t i,
      const reference::Shape& held,
      const std::string& phrase) {
    CallArguments call = good_;
    call.inputs[i] = {DataType::kInt64, held.data(), {static_cast<std::int64_t>(held.size())}};
    Expect(name + " that holds " + ToString(held), call, {name, phrase});
  }

  template <typename Ref>
  void CheckRanks(Role<Ref> role, const TensorSpec& spec, std::size_t i) {
    const reference::Shape dims = ToShape((good_.*role)[i].dims);
    reference::Shape longer = dims;
    longer.push_back(1);
    CheckDimsAre(role, spec, i, longer);
    if (!dims.empty()) {  // a scalar has no dim to lose
      CheckDimsAre(role, spec, i, reference::Shape(dims.begin(), dims.end() - 1));
    }
  }

  template <typename Ref>
  void CheckDims(Role<Ref> role, const TensorSpec& spec, std::size_t i) {
    const reference::Shape dims = ToShape((good_.*role)[i].dims);
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      for (const int change : {-1, 1}) {
        reference::Shape changed = dims;
        changed[axis] += change;
        if (changed[axis] >= 0) {
          CheckDimsAre(role, spec, i, changed);
        }
      }
    }
  }

  template <typename Ref>
  void CheckDimsAre(
      Role<Ref> role,
      const TensorSpec& spec,
      std::size_t i,
      const reference::Shape& dims) {
    const CallArguments call = With(role, i, [&](Ref& tensor) {
      tensor.dims = ToIntList(dims);
      tensor.strides = ToIntList(StridesFor(Layout::kContiguous, dims));
    });
    if (Fit(call)) {
      return;
    }
    const std::string what = std::string(spec.name) + " of dims " + ToString(dims);
    const Status status = Run(what, call);
    VerifyRefusal(subject_, what, status, {}, report_);
    if (!status.ok() && !NamesMismatch(status.message(), call)) {
      report_.Fail(
          what +
          ": the error names no tensor with the dims that it came with: " + status.message());
    }
  }

  /// Whether the oracle takes the call: a changed dim may make another good problem.
  [[nodiscard]] bool Fit(const CallArguments& call) const {
    reference::Shapes inputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      inputs[problem_.inputs[i].name] = subject_.op().inputs[i].shape_of.empty()
                                            ? ToShape(call.inputs[i].dims)
                                            : problem_.inputs[i].dims;
    }
    const reference::Shapes outputs =
        subject_.oracle()
            .OutputShapes(inputs, OracleAttributes(*subject_.tests, problem_.attributes))
            .value_or(reference::Shapes());
    bool fit = !outputs.empty();
    for (std::size_t i = 0; fit && i < call.outputs.size(); ++i) {
      fit = outputs.at(problem_.outputs[i].name) == ToShape(call.outputs[i].dims);
    }
    return fit;
  }

  /// Where dims disagree, each of two tensors may be the wrong one. The error names either, with
  /// all its dims or those of the list that disagrees.
  [[nodiscard]] bool NamesMismatch(const std::string& message, const CallArguments& call) const {
    const OpSchema& op = subject_.op();
    bool named = false;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      named = named || NamesDims(message, op.inputs[i], call.inputs[i].dims);
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      named = named || NamesDims(message, op.outputs[i], call.outputs[i].dims);
    }
    return named;
  }

  [[nodiscard]] bool NamesDims(const std::string& message, const TensorSpec& spec, const Dims& dims)
      const {
    const auto list = std::find_if(spec.shape.begin(), spec.shape.end(), [&](const DimSpec& dim) {
      return dim.kind == DimSpec::Kind::kSymbol && subject_.op().symbols[dim.symbol].is_list;
    });
    const auto before = list - spec.shape.begin();
    const auto after = std::max<std::ptrdiff_t>(0, spec.shape.end() - list - 1);
    const bool has_list = list != spec.shape.end() && dims.size() >= before + after;
    return Mentions(message, spec.name) &&
           (Mentions(message, gradsmith::ToString(dims)) ||
            (has_list &&
             Mentions(
                 message, ToString(reference::Shape(dims.begin() + before, dims.end() - after)))));
  }

  /// Elements of an output that share memory.
  void CheckSharedElements(std::size_t i) {
    const std::string name(subject_.op().outputs[i].name);
    for (int axis = 0; axis < good_.outputs[i].rank(); ++axis) {
      if (good_.outputs[i].dims[axis] < 2 || ElementsIn(good_.outputs[i]) == 0) {
        continue;
      }
      const CallArguments call =
          With(&CallArguments::outputs, i, [&](TensorRef& tensor) { tensor.strides[axis] = 0; });
      Expect(
          "output " + name + " with a zero stride", call,
          {name, "strides", gradsmith::ToString(call.outputs[i].strides), "expected"});
    }
  }

  void CheckOverlaps(std::size_t i) {
    const OpSchema& op = subject_.op();
    for (std::size_t j = 0; j < good_.inputs.size(); ++j) {
      if (!op.inputs[j].shape_of.empty()) {
        continue;  // its shape would no longer be what it is
      }
      const bool in_place = op.outputs[i].in_place_of == static_cast<int>(j);
      CheckOverlapsOf(i, &CallArguments::inputs, j, std::string(op.inputs[j].name), in_place);
    }
    for (std::size_t j = 0; j < i; ++j) {
      CheckOverlapsOf(i, &CallArguments::outputs, j, std::string(op.outputs[j].name), false);
    }
  }

  /// Output i and another tensor in one block: from the same address, and with the first element of
  /// either on the last of the other.
  template <typename Ref>
  void CheckOverlapsOf(
      std::size_t i,
      Role<Ref> role,
      std::size_t j,
      const std::string& other_name,
      bool may_coincide) {
    const TensorRef& output = good_.outputs[i];
    const ConstTensorRef other = (good_.*role)[j];
    if (ElementsIn(output) == 0 || ElementsIn(other) == 0) {
      return;
    }
    const std::string name(subject_.op().outputs[i].name);
    const auto memory = Allocate(subject_.device(), BytesOf(output) + BytesOf(other));
    const auto expect = [&](std::size_t output_at, std::size_t other_at, const std::string& how) {
      if (output_at == other_at && may_coincide) {
        return;
      }
      CallArguments call = good_;
      (call.*role)[j].data = memory->Address() + other_at;
      call.outputs[i].data = memory->Address() + output_at;
      Expect("output " + name + " and " + other_name + how, call, {name, other_name, "overlaps"});
    };
    expect(0, 0, " at one address");
    expect(LastPlaceFor(output, other), 0, ", the one beginning where the other ends");
    expect(0, LastPlaceFor(other, output), ", the other beginning where the one ends");
  }

  void CheckCounts() {
    CallArguments call = good_;
    call.inputs.emplace_back(DataType::kFloat, scratch_->Address(), Dims{1}, subject_.device());
    Expect(
        "an input too many", call,
        {std::to_string(call.inputs.size()), "inputs", std::to_string(good_.inputs.size())});
    call = good_;
    call.outputs.emplace_back(DataType::kFloat, scratch_->Address(), Dims{1}, subject_.device());
    Expect(
        "an output too many", call,
        {std::to_string(call.outputs.size()), "outputs", std::to_string(good_.outputs.size())});
    call = good_;
    call.inputs.clear();
    const auto specs = subject_.op().inputs;
    const auto required = std::find_if(
        specs.begin(), specs.end(), [](const TensorSpec& spec) { return !spec.optional; });
    if (required != specs.end()) {
      Expect("no inputs", call, {std::string(required->name), "absent", "required"});
    }
  }

  /// A required output says that it is absent; where all are optional, one must be there.
  void CheckNoOutputs() {
    const auto specs = subject_.op().outputs;
    const auto required = std::find_if(
        specs.begin(), specs.end(), [](const TensorSpec& spec) { return !spec.optional; });
    const std::string first(required == specs.end() ? specs[0].name : required->name);
    CallArguments call = good_;
    call.outputs.assign(specs.size(), TensorRef());
    const std::string what = required == specs.end() ? "no output is asked for" : "absent";
    Expect("absent outputs", call, {what, first});
    call.outputs.clear();
    Expect("no outputs", call, {what, first});
  }

  void CheckContext() {
    const Backend backend = subject_.row->backend;
    const Backend other = backend == Backend::kCpu ? Backend::kCuda : Backend::kCpu;
    const Status status =
        subject_.run(kernel_, SharedContext(other, 1), good_.inputs, good_.outputs);
    const std::string what = "a context on " + std::string(ToString(other));
    arguments_.CheckSurroundings(Present(good_.outputs.size(), false), what, report_);
    VerifyRefusal(
        subject_, what, status,
        {"context", std::string(ToString(other)), "expected " + std::string(ToString(backend))},
        report_);
  }

  const Subject& subject_;
  const Case& problem_;
  Kernel kernel_;
  Arguments arguments_;
  CallArguments good_;
  std::unique_ptr<Memory> scratch_;
  std::unique_ptr<Memory> host_scratch_;
  Report& report_;
};

}  // namespace

Report CheckBadArguments(const Subject& subject, const Case& problem, const std::string& seed) {
  Report report;
  if (const std::optional<Kernel> kernel = MakeKernel(subject, problem.attributes, report)) {
    Refusals(
        subject, problem, *kernel,
        MakeRandomArguments(subject, problem, AllPresent(subject.op().inputs), seed), report)
        .CheckAll();
  }
  return report;
}

}  // namespace gradsmith::support
