#include "op.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/explain.h"
#include "core/stub.h"
#include "errors.h"
#include "lock.h"
#include "table.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

bool IsEqual(nb::handle a, nb::handle b) {
  const int is_equal =
      InPython([a, b] { return PyObject_RichCompareBool(a.ptr(), b.ptr(), Py_EQ); });
  if (is_equal < 0) {
    throw nb::python_error();
  }
  return is_equal == 1;
}

/// Raises ValueError where an array, the subject, is on another device than others.
void CheckPlace(
    const std::string& subject,
    nb::handle place,
    const char* others_are_on,
    nb::handle of_others) {
  if (!IsEqual(place, of_others)) {
    RaiseValueError(
        subject + " is on " + ReprOf(place) + ", " + others_are_on + ReprOf(of_others) +
        "; expected arrays on one device");
  }
}

Status RunWithoutLock(
    const Kernel& kernel,
    const Context& context,
    const std::vector<Argument>& inputs,
    const std::vector<Output>& outputs,
    int times) {
  const std::vector<ConstTensorRef> in = Refs(inputs);
  const std::vector<TensorRef> out = Refs(outputs);
  return WithoutLock([&] {
    Status status;
    for (int i = 0; i < times && status.ok(); ++i) {
      status =
          kernel.Run(context, std::span<const ConstTensorRef>(in), std::span<const TensorRef>(out));
    }
    return status;
  });
}

void CheckRun(
    const Status& status,
    const Row& row,
    const std::vector<Argument>& inputs,
    const std::vector<Output>& outputs) {
  if (status.ok()) {
    return;
  }
  if (status.code() == StatusCode::kInvalidArgument &&
      !(HasTypes(row, inputs) && HasTypes(row, outputs))) {
    RaiseTypeError(status.message());
  }
  Raise(status);
}

void TellWritten(const Library& library, const std::vector<Wish>& wishes) {
  const auto is_given = [](const Wish& wish) { return wish.into.is_valid(); };
  const auto given = std::count_if(wishes.begin(), wishes.end(), is_given);
  if (given == 0) {
    return;
  }
  const nb::object written = nb::steal(PyTuple_New(given));
  Py_ssize_t next = 0;
  for (const Wish& wish : wishes) {
    if (is_given(wish)) {
      PyTuple_SetItem(written.ptr(), next++, nb::object(wish.into).release().ptr());
    }
  }
  library.TellWritten(written);
}

/// OutputInto returns the output that a caller's array is to be, of which nothing has been read.
Output OutputInto(
    const std::string& op,
    const Library& library,
    nb::handle place,
    const std::string& subject,
    const nb::object& object) {
  Output output;
  output.object = object;
  output.library = Library::Of(object, op.c_str(), subject.c_str());
  if (!output.library->IsSame(library)) {
    RaiseTypeError(
        op + ": " + subject + " is an array of " + output.library->name() + ", the inputs are of " +
        library.name() + "; expected arrays of one library");
  }
  if (library.has_places()) {
    const nb::object its = output.library->PlaceOf(object, op.c_str(), subject.c_str());
    CheckPlace(op + ": " + subject, its, "the inputs are on ", place);
  }
  return output;
}

void ReadOutput(const std::string& op, const std::string& subject, Output* output) {
  output->array = output->library->Read(output->object, op.c_str(), subject.c_str());
  if (!output->array.is_writable || !output->library->is_writable()) {
    RaiseValueError(op + ": " + subject + " is read-only; expected an array to write to");
  }
}

}  // namespace

std::vector<const Row*> Op::RowsOf(const std::string& name) {
  std::vector<const Row*> rows;
  for (const Row* row : BuiltinRegistry().rows()) {
    if (row->op->name == name) {
      rows.push_back(row);
    }
  }
  if (rows.empty()) {
    Raise(Unsupported("there is no operator " + name + " in this build"));
  }
  return rows;
}

Op::Op(const std::string& name, nb::object result) : Op(name, RowsOf(name), std::move(result)) {}

Op::Op(std::string name, std::vector<const Row*> rows, nb::object result)
    : name_(std::move(name)),
      result_(std::move(result)),
      rows_(std::move(rows)),
      schema_(rows_.front()->op),
      kernels_(*schema_) {
  for (const TensorSpec& output : schema_->outputs) {
    output_subjects_.push_back("output " + std::string(output.name));
  }
}

nb::object Op::Call(
    nb::handle inputs,
    nb::handle attributes,
    nb::handle outputs,
    nb::handle out,
    Policies& policies) {
  Bound call = Bind(inputs, attributes, outputs, out, policies);
  CheckRun(
      RunWithoutLock(call.kernel->kernel, call.context, call.inputs, call.outputs, 1),
      *call.kernel->row, call.inputs, call.outputs);
  TellWritten(*call.library, call.wishes);
  return ResultOf(call);
}

nb::object Op::ResultOf(Bound& call) const {
  nb::object results = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(call.outputs.size())));
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const bool is_made = call.outputs[i].array.ref.present;
    nb::object object =
        is_made ? call.library->Finish(std::move(call.outputs[i]), call.context, call.place)
                : nb::none();
    PyTuple_SetItem(results.ptr(), static_cast<Py_ssize_t>(i), object.release().ptr());
  }
  return result_.Make(std::move(results));
}

double Op::Time(
    nb::handle inputs,
    nb::handle attributes,
    nb::handle outputs,
    nb::handle out,
    Policies& policies,
    int calls) {
  const Bound call = Bind(inputs, attributes, outputs, out, policies);
  const auto start = std::chrono::steady_clock::now();
  const Status status =
      RunWithoutLock(call.kernel->kernel, call.context, call.inputs, call.outputs, calls);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CheckRun(status, *call.kernel->row, call.inputs, call.outputs);
  return seconds.count() / calls;
}

Op::Bound Op::Bind(
    nb::handle inputs,
    nb::handle attributes,
    nb::handle outputs,
    nb::handle out,
    Policies& policies) {
  // What may run a caller's code comes first: it may move or free the memory of arrays, whatever
  // holds them, so that addresses are read after it.
  std::vector<Argument> in = FindInputs(inputs);
  std::shared_ptr<const Library> library = FirstGiven(in).library;
  nb::object place = PlaceOf(*library, in);
  std::vector<Wish> wishes = ReadWishes(outputs, out);
  std::vector<Output> made = FindOutputs(*library, place, wishes);
  std::optional<std::vector<GivenAttribute>> values;
  if (!IsFixed(attributes)) {
    values = ReadAttributes(*schema_, attributes);
  }
  ReadInputs(&in);
  const Device device = FirstGiven(in).array.ref.device;
  const Row& row = FindRow(in, device);
  std::shared_ptr<CachedKernel> kernel =
      values ? kernels_.Find(row, std::move(*values)) : kernels_.Find(row, attributes);
  MakeOutputs(*kernel, *library, in, wishes, &made);
  Context context = policies.On(device, library->CurrentStream(device));
  ReadMoved(&in, &made);
  return {std::move(library), std::move(place), std::move(in),     std::move(wishes),
          std::move(kernel),  std::move(made),  std::move(context)};
}

std::vector<Argument> Op::FindInputs(nb::handle inputs) const {
  std::vector<Argument> arguments(schema_->inputs.size());
  const Library* library = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const nb::handle object = PyTuple_GetItem(inputs.ptr(), static_cast<Py_ssize_t>(i));
    const TensorSpec& spec = schema_->inputs[i];
    if (object.is_none() && spec.optional) {
      continue;
    }
    if (!spec.shape_of.empty()) {
      arguments[i].held = ReadInts(object, name_ + ": " + std::string(spec.name));
      continue;
    }
    std::shared_ptr<const Library> its = Library::Of(object, name_.c_str(), spec.name.data());
    if (library != nullptr && !its->IsSame(*library)) {
      RaiseTypeError(
          name_ + ": " + std::string(spec.name) + " is an array of " + its->name() +
          ", the inputs before it are of " + library->name() + "; expected arrays of one library");
    }
    library = its.get();
    arguments[i] = {object, std::move(its), {}, {}, spec.may_be_on_host};
  }
  if (library == nullptr) {
    RaiseTypeError(name_ + ": no input is given; expected at least one");
  }
  return arguments;
}

void Op::ReadInputs(std::vector<Argument>* inputs) const {
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    Argument& input = (*inputs)[i];
    if (input.object.is_valid()) {
      input.array =
          input.library->Read(input.object, name_.c_str(), schema_->inputs[i].name.data());
    }
  }
}

void Op::ReadMoved(std::vector<Argument>* inputs, std::vector<Output>* outputs) const {
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    Argument& input = (*inputs)[i];
    if (input.object.is_valid() && input.library->MayMove()) {
      input.library->ReadMoved(
          input.object, name_.c_str(), schema_->inputs[i].name.data(), &input.array);
    }
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    Output& output = (*outputs)[i];
    if (output.library != nullptr && output.library->MayMove()) {
      output.library->ReadMoved(
          output.object, name_.c_str(), output_subjects_[i].c_str(), &output.array);
    }
  }
}

nb::object Op::PlaceOf(const Library& library, const std::vector<Argument>& inputs) const {
  nb::object place = nb::none();
  const bool has_teller = std::any_of(inputs.begin(), inputs.end(), &TellsPlace);
  for (std::size_t i = 0; i < inputs.size() && library.has_places(); ++i) {
    if (has_teller ? !TellsPlace(inputs[i]) : !inputs[i].object.is_valid()) {
      continue;
    }
    nb::object its =
        inputs[i].library->PlaceOf(inputs[i].object, name_.c_str(), schema_->inputs[i].name.data());
    if (!place.is_none()) {
      const std::string subject = name_ + ": " + std::string(schema_->inputs[i].name);
      CheckPlace(subject, its, "the inputs before it are on ", place);
    }
    place = std::move(its);
  }
  return place;
}

std::vector<Wish> Op::ReadWishes(nb::handle outputs, nb::handle out) {
  std::vector<Wish> wishes =
      last_outputs_.is(outputs) ? last_wishes_ : ReadWanted(*schema_, outputs);
  if (!last_outputs_.is(outputs) && IsFixed(outputs)) {
    std::vector<Wish> copy = wishes;  // memory may run out here, before one of the two has changed
    last_wishes_.swap(copy);
    last_outputs_ = nb::borrow(outputs);
  }
  ReadOut(*schema_, out, &wishes);
  return wishes;
}

std::vector<Output>
Op::FindOutputs(const Library& library, nb::handle place, const std::vector<Wish>& wishes) const {
  std::vector<Output> outputs(wishes.size());
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (wishes[i].into.is_valid()) {
      outputs[i] = OutputInto(name_, library, place, output_subjects_[i], wishes[i].into);
    }
  }
  return outputs;
}

void Op::MakeOutputs(
    CachedKernel& kernel,
    const Library& library,
    const std::vector<Argument>& inputs,
    const std::vector<Wish>& wishes,
    std::vector<Output>* outputs) const {
  const bool are_shapes_needed = std::any_of(wishes.begin(), wishes.end(), [](const Wish& wish) {
    return wish.is_wanted && !wish.into.is_valid();
  });
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    if (wishes[i].into.is_valid()) {
      ReadOutput(name_, output_subjects_[i], &(*outputs)[i]);
    }
  }
  const auto inferred = are_shapes_needed ? Infer(kernel, inputs, *outputs) : nullptr;
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const TensorSpec& spec = schema_->outputs[i];
    if (!wishes[i].into.is_valid() && wishes[i].is_wanted) {
      const DataType type = ExpectedType(*kernel.row, spec);
      const Argument& like = MostLike(inputs, type);
      const Device device = like.array.ref.device;
      (*outputs)[i] = library.Make(type, inferred->outputs[i], device, like.object);
    }
  }
}

const Row& Op::FindRow(const std::vector<Argument>& inputs, Device device) const {
  for (const Row* row : rows_) {
    if (row->backend == device.backend && HasTypes(*row, inputs)) {
      return *row;
    }
  }
  // Inputs that disagree about a type parameter get the row of the first, which then refuses the
  // other by name.
  const std::vector<DataType> types = BoundTypes(*schema_, inputs);
  const auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row* one) {
    return one->backend == device.backend &&
           std::equal(one->types.begin(), one->types.end(), types.begin(), types.end());
  });
  if (row == rows_.end()) {
    Raise(Unsupported(internal::Explain(BuiltinRegistry(), name_, types, device.backend)));
  }
  return **row;
}

nb::list Op::Wanted(nb::handle outputs) const {
  return WantedNames(*schema_, outputs);
}

nb::object Op::InferShapes(nb::handle inputs, nb::handle attributes) {
  const Kernel kernel = kernels_.Find(*rows_.front(), attributes)->kernel;
  std::vector<ConstTensorRef> refs(schema_->inputs.size());
  std::vector<Dims> read(refs.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const nb::handle dims = PyTuple_GetItem(inputs.ptr(), static_cast<Py_ssize_t>(i));
    if (!dims.is_none()) {
      const std::string subject = name_ + ": the dims of " + std::string(schema_->inputs[i].name);
      read[i] = ReadInts(dims, subject);
      refs[i] = schema_->inputs[i].shape_of.empty()
                    ? ConstTensorRef(DataType::kFloat, nullptr, read[i])
                    : internal::HoldingShape(read[i]);
    }
  }
  const Result<std::vector<Dims>> dims = kernel.InferShapes(std::span<const ConstTensorRef>(refs));
  Check(dims.status());
  nb::list result;
  for (const Dims& output : *dims) {
    nb::list sizes;
    for (const std::int64_t size : output) {
      sizes.append(size);
    }
    result.append(nb::tuple(sizes));
  }
  return nb::tuple(result);
}

}  // namespace gradsmith::python
