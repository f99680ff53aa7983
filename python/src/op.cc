#include "op.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
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

const Argument& FirstGiven(const std::vector<Argument>& inputs) {
  return *std::find_if(
      inputs.begin(), inputs.end(), [](const Argument& input) { return input.object.is_valid(); });
}

/// The first input of a type; the first of all where none is of it.
const Argument& MostLike(const std::vector<Argument>& inputs, DataType type) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [type](const Argument& input) {
    return input.object.is_valid() && input.array.ref.type == type;
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
    refs.emplace_back(input.array.ref);
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

Status RunWithoutLock(
    const Kernel& kernel,
    const Context& context,
    const std::vector<Argument>& inputs,
    const std::vector<Output>& outputs) {
  const std::vector<ConstTensorRef> in = Refs(inputs);
  const std::vector<TensorRef> out = Refs(outputs);
  const nb::gil_scoped_release released;
  return kernel.Run(context, std::span<const ConstTensorRef>(in), std::span<const TensorRef>(out));
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

Output OutputInto(
    const OpSchema& op,
    const Library& library,
    const std::string& name,
    const nb::object& object) {
  const std::string subject = "output " + name;
  const std::string op_name(op.name);
  const Library& its = Library::Of(object, op_name.c_str(), subject.c_str());
  if (!its.IsSame(library)) {
    RaiseTypeError(
        op_name + ": " + subject + " is an array of " + its.name() + ", the inputs are of " +
        library.name() + "; expected arrays of one library");
  }
  its.CheckGradients(object, op_name.c_str(), subject.c_str());
  Output output;
  output.object = object;
  output.array = its.Read(object, op_name.c_str(), subject.c_str());
  if (!output.array.is_writable || !its.is_writable()) {
    RaiseValueError(op_name + ": " + subject + " is read-only; expected an array to write to");
  }
  return output;
}

}  // namespace

Op::Op(const std::string& name, nb::object result)
    : name_(name),
      result_(std::move(result)),
      new_tuple_(nb::getattr(reinterpret_cast<PyObject*>(&PyTuple_Type), "__new__")) {
  for (const Row* row : BuiltinRegistry().rows()) {
    if (row->op->name == name) {
      rows_.push_back(row);
    }
  }
  if (rows_.empty()) {
    Raise(Unsupported("there is no operator " + name + " in this build"));
  }
  schema_ = rows_.front()->op;
}

nb::object Op::Call(
    nb::handle inputs,
    nb::handle attributes,
    nb::handle outputs,
    nb::handle out,
    Policies& policies) {
  const Library* library = nullptr;
  const std::vector<Argument> in = ReadInputs(inputs, &library);
  const Device device = FirstGiven(in).array.ref.device;
  const Row& row = FindRow(in, device);
  const Kernel kernel = FindKernel(row, ReadAttributes(*schema_, attributes));
  const std::vector<Wish> wishes = ReadWishes(*schema_, outputs, out);
  std::vector<Output> made = MakeOutputs(kernel, *library, in, wishes);
  const Context context = policies.On(device, library->CurrentStream(device));
  CheckRun(RunWithoutLock(kernel, context, in, made), row, in, made);
  for (const Wish& wish : wishes) {
    if (wish.into.is_valid()) {
      library->TellWritten(wish.into);
    }
  }

  const nb::object results = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(made.size())));
  for (std::size_t i = 0; i < made.size(); ++i) {
    const bool is_made = made[i].array.ref.present;
    nb::object object = is_made ? library->Finish(std::move(made[i]), context) : nb::none();
    PyTuple_SetItem(results.ptr(), static_cast<Py_ssize_t>(i), object.release().ptr());
  }
  return new_tuple_(result_, results);
}

std::vector<Argument> Op::ReadInputs(nb::handle inputs, const Library** library) const {
  std::vector<Argument> arguments(schema_->inputs.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const nb::handle object = PyTuple_GetItem(inputs.ptr(), static_cast<Py_ssize_t>(i));
    const TensorSpec& spec = schema_->inputs[i];
    if (object.is_none() && spec.optional) {
      continue;
    }
    const Library& its = Library::Of(object, name_.c_str(), spec.name.data());
    if (*library != nullptr && !its.IsSame(**library)) {
      RaiseTypeError(
          name_ + ": " + std::string(spec.name) + " is an array of " + its.name() +
          ", the inputs before it are of " + (*library)->name() +
          "; expected arrays of one library");
    }
    *library = &its;
    its.CheckGradients(object, name_.c_str(), spec.name.data());
    arguments[i] = {object, its.Read(object, name_.c_str(), spec.name.data())};
  }
  if (*library == nullptr) {
    RaiseTypeError(name_ + ": no input is given; expected at least one");
  }
  return arguments;
}

std::vector<Output> Op::MakeOutputs(
    const Kernel& kernel,
    const Library& library,
    const std::vector<Argument>& inputs,
    const std::vector<Wish>& wishes) const {
  std::vector<Output> outputs(wishes.size());
  const bool are_shapes_needed = std::any_of(wishes.begin(), wishes.end(), [](const Wish& wish) {
    return wish.is_wanted && !wish.into.is_valid();
  });
  std::vector<Dims> dims;
  if (are_shapes_needed) {
    const std::vector<ConstTensorRef> refs = Refs(inputs);
    Result<std::vector<Dims>> inferred = kernel.InferShapes(std::span<const ConstTensorRef>(refs));
    Check(inferred.status());
    dims = std::move(*inferred);
  }
  const bool is_channels_last = are_shapes_needed && IsChannelsLast(inputs);
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const TensorSpec& spec = schema_->outputs[i];
    if (wishes[i].into.is_valid()) {
      outputs[i] = OutputInto(*schema_, library, std::string(spec.name), wishes[i].into);
    } else if (wishes[i].is_wanted) {
      const DataType type = ExpectedType(kernel.row(), spec);
      const Argument& like = MostLike(inputs, type);
      const Device device = like.array.ref.device;
      outputs[i] = is_channels_last && dims[i].size() > 2
                       ? library.MakeChannelsLast(type, dims[i], device, like.object)
                       : library.Make(type, dims[i], device, like.object);
    }
  }
  return outputs;
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
  const Row* row = BuiltinRegistry().Find(name_, types, device.backend);
  if (row == nullptr) {
    Raise(Unsupported(BuiltinRegistry().Explain(name_, types, device.backend)));
  }
  return *row;
}

Kernel Op::FindKernel(const Row& row, std::vector<GivenAttribute> attributes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      std::find_if(kernels_.begin(), kernels_.end(), [&](const CachedKernel& kernel) {
        return kernel.row == &row && kernel.attributes == attributes;
      });
  if (found != kernels_.end()) {
    std::rotate(kernels_.begin(), found, found + 1);
    return kernels_.front().kernel;
  }
  const std::vector<Attribute> named = ToAttributes(*schema_, attributes);
  Result<Kernel> kernel = Kernel::Create(row, named);
  Check(kernel.status());
  if (kernels_.size() == kMaxKernels) {
    kernels_.pop_back();
  }
  kernels_.insert(kernels_.begin(), {&row, std::move(attributes), *kernel});
  return *kernel;
}

nb::object Op::InferShapes(nb::handle inputs, nb::handle attributes) {
  const Kernel kernel = FindKernel(*rows_.front(), ReadAttributes(*schema_, attributes));
  std::vector<ConstTensorRef> refs(schema_->inputs.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const nb::handle dims = PyTuple_GetItem(inputs.ptr(), static_cast<Py_ssize_t>(i));
    if (!dims.is_none()) {
      const std::string subject = name_ + ": the dims of " + std::string(schema_->inputs[i].name);
      refs[i] = ConstTensorRef(DataType::kFloat, nullptr, ReadInts(dims, subject));
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
