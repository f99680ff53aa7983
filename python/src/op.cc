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

/// So many kernels are kept; the least recently used goes first.
constexpr std::size_t kMaxKernels = 64;

DataType ExpectedType(const Row& row, const TensorSpec& spec) {
  return spec.type_parameter < 0 ? spec.fixed_type : row.types[spec.type_parameter];
}

bool HasTypes(const Row& row, const std::vector<Argument>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].object.is_valid() &&
        inputs[i].array.ref.type != ExpectedType(row, row.op->inputs[i])) {
      return false;
    }
  }
  return true;
}

bool HasTypes(const Row& row, const std::vector<Output>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorRef& ref = outputs[i].array.ref;
    if (ref.present && ref.type != ExpectedType(row, row.op->outputs[i])) {
      return false;
    }
  }
  return true;
}

/// The types that the first input of each type parameter has; float for those without an input.
std::vector<DataType> BoundTypes(const OpSchema& op, const std::vector<Argument>& inputs) {
  std::vector<DataType> types(op.type_parameters.size(), DataType::kFloat);
  for (std::size_t i = inputs.size(); i-- > 0;) {
    if (inputs[i].object.is_valid() && op.inputs[i].type_parameter >= 0) {
      types[op.inputs[i].type_parameter] = inputs[i].array.ref.type;
    }
  }
  return types;
}

/// Whether an input is given that tells where the others are.
bool TellsPlace(const Argument& input) {
  return input.object.is_valid() && !input.may_be_on_host;
}

/// The first input that tells where the others are; the first of all where none does.
const Argument& FirstGiven(const std::vector<Argument>& inputs) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), &TellsPlace);
  return found != inputs.end()
             ? *found
             : *std::find_if(inputs.begin(), inputs.end(), [](const Argument& input) {
                 return input.object.is_valid();
               });
}

/// The first input of a type; the first of all where none is of it.
const Argument& MostLike(const std::vector<Argument>& inputs, DataType type) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [type](const Argument& input) {
    return TellsPlace(input) && input.array.ref.type == type;
  });
  return found != inputs.end() ? *found : FirstGiven(inputs);
}

/// Whether the elements lie as these strides say; the stride of a dim of one element says nothing.
bool HasStrides(const TensorRef& ref, const Strides& strides) {
  for (int i = 0; i < ref.rank(); ++i) {
    if (ref.dims[i] > 1 && ref.strides[i] != strides[i]) {
      return false;
    }
  }
  return true;
}

/// Whether an input of images has its channels innermost, so that outputs are to have it too.
bool IsChannelsLast(const std::vector<Argument>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Argument& input) {
    const TensorRef& ref = input.array.ref;
    return input.object.is_valid() && ref.rank() > 2 && NumElements(ref.dims) > 0 &&
           HasStrides(ref, ChannelsLastStrides(ref.dims)) &&
           !HasStrides(ref, ContiguousStrides(ref.dims));
  });
}

std::vector<ConstTensorRef> Refs(const std::vector<Argument>& inputs) {
  std::vector<ConstTensorRef> refs;
  refs.reserve(inputs.size());
  for (const Argument& input : inputs) {
    refs.push_back(input.held ? internal::HoldingShape(*input.held) : input.array.ref);
  }
  return refs;
}

std::vector<TensorRef> Refs(const std::vector<Output>& outputs) {
  std::vector<TensorRef> refs;
  refs.reserve(outputs.size());
  for (const Output& output : outputs) {
    refs.push_back(output.array.ref);
  }
  return refs;
}

/// Whether the dims of some outputs may hang on those of others, which the caller passes.
bool MayBindDims(const OpSchema& op, const std::vector<Output>& given) {
  return std::any_of(
             op.symbols.begin(), op.symbols.end(),
             [](const SymbolSpec& symbol) { return symbol.from_outputs; }) &&
         std::any_of(given.begin(), given.end(), [](const Output& output) {
           return output.array.ref.present;
         });
}

/// How an input lies; of one that holds a shape, the dims that it holds.
std::optional<Layout> LayoutOf(const Argument& input) {
  if (input.held) {
    return Layout{*input.held, {}};
  }
  return input.object.is_valid()
             ? std::optional(Layout{input.array.ref.dims, input.array.ref.strides})
             : std::nullopt;
}

/// Whether forms were inferred for inputs that lie so.
bool HasLayouts(
    const std::vector<Argument>& inputs,
    const std::vector<std::optional<Layout>>& layouts) {
  return std::equal(
      inputs.begin(), inputs.end(), layouts.begin(), layouts.end(),
      [](const Argument& input, const std::optional<Layout>& expected) {
        if (!expected) {
          return !input.held && !input.object.is_valid();
        }
        const TensorRef& ref = input.array.ref;
        return input.held ? *input.held == expected->dims
                          : input.object.is_valid() && ref.dims == expected->dims &&
                                ref.strides == expected->strides;
      });
}

std::vector<std::optional<Layout>> LayoutsOf(const std::vector<Argument>& inputs) {
  std::vector<std::optional<Layout>> layouts(inputs.size());
  std::transform(inputs.begin(), inputs.end(), layouts.begin(), &LayoutOf);
  return layouts;
}

/// Whether two tuples hold the same objects.
bool HasItems(nb::handle a, nb::handle b) {
  const Py_ssize_t size = PyTuple_Size(a.ptr());
  if (PyTuple_Size(b.ptr()) != size) {
    return false;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (PyTuple_GetItem(a.ptr(), i) != PyTuple_GetItem(b.ptr(), i)) {
      return false;
    }
  }
  return true;
}

/// Whether an object is a tuple of what cannot change: plain numbers, texts, None, and tuples of
/// these.
bool IsFixed(nb::handle object) {
  if (PyTuple_CheckExact(object.ptr()) == 0) {
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(object.ptr()); ++i) {
    PyObject* const item = PyTuple_GetItem(object.ptr(), i);
    const bool is_plain = item == Py_None || PyLong_CheckExact(item) != 0 ||
                          PyFloat_CheckExact(item) != 0 || PyUnicode_CheckExact(item) != 0 ||
                          PyBool_Check(item) != 0;
    if (!is_plain && !IsFixed(item)) {
      return false;
    }
  }
  return true;
}

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

/// The output that a caller's array is to be, of which nothing has been read.
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
      schema_(rows_.front()->op) {
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
      values ? FindKernel(row, std::move(*values)) : FindKernel(row, attributes);
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
      (*outputs)[i] = library.Make(type, inferred->forms[i], device, like.object);
    }
  }
}

std::shared_ptr<const Op::Inferred> Op::Infer(
    CachedKernel& kernel,
    const std::vector<Argument>& inputs,
    const std::vector<Output>& given) {
  if (kernel.inferred == nullptr || !HasLayouts(inputs, kernel.inferred->layouts) ||
      MayBindDims(*kernel.row->op, given)) {
    const std::vector<ConstTensorRef> refs = Refs(inputs);
    const std::vector<TensorRef> passed = Refs(given);
    const std::vector<ConstTensorRef> outputs(passed.begin(), passed.end());
    const Result<std::vector<Dims>> shapes = kernel.kernel.InferShapes(
        std::span<const ConstTensorRef>(refs), std::span<const ConstTensorRef>(outputs));
    Check(shapes.status());
    const bool is_channels_last = IsChannelsLast(inputs);
    Inferred inferred{LayoutsOf(inputs), {}};
    for (const Dims& dims : *shapes) {
      inferred.forms.emplace_back(dims, is_channels_last);
    }
    kernel.inferred = std::make_shared<const Inferred>(std::move(inferred));
  }
  return kernel.inferred;
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

std::shared_ptr<Op::CachedKernel> Op::FindKernel(const Row& row, nb::handle values) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::shared_ptr<CachedKernel>& kernel : kernels_) {
      if (kernel->row == &row && kernel->values.is_valid() && HasItems(kernel->values, values)) {
        return kernel;
      }
    }
  }
  // What a value does to be read may be Python's code, which must not wait for the lock.
  std::shared_ptr<CachedKernel> kernel = FindKernel(row, ReadAttributes(*schema_, values));
  kernel->values = IsFixed(values) ? nb::borrow(values) : nb::object();
  return kernel;
}

std::shared_ptr<Op::CachedKernel> Op::FindKernel(
    const Row& row,
    std::vector<GivenAttribute> attributes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& kernel) {
    return kernel->row == &row && kernel->attributes == attributes;
  });
  if (found != kernels_.end()) {
    std::rotate(kernels_.begin(), found, found + 1);
    return kernels_.front();
  }
  const std::vector<Attribute> named = ToAttributes(*schema_, attributes);
  Result<Kernel> kernel = Kernel::Create(row, named);
  Check(kernel.status());
  if (kernels_.size() == kMaxKernels) {
    kernels_.pop_back();
  }
  auto made = std::make_shared<CachedKernel>(
      CachedKernel{&row, std::move(attributes), std::move(*kernel), {}, nullptr});
  kernels_.insert(kernels_.begin(), made);
  return made;
}

nb::list Op::Wanted(nb::handle outputs) const {
  return WantedNames(*schema_, outputs);
}

nb::object Op::InferShapes(nb::handle inputs, nb::handle attributes) {
  const Kernel kernel = FindKernel(*rows_.front(), attributes)->kernel;
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
