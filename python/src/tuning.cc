#include "tuning.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "errors.h"
#include "gradsmith/device_buffer.h"
#include "gradsmith/kernel.h"
#include "lock.h"
#include "policies.h"
#include "problem_line.h"
#include "table.h"

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

/// Memory for the arguments of a call that is only prepared.
class Arguments {
 public:
  Arguments(const Row& row, bool is_channels_last, Device device)
      : row_(row), is_channels_last_(is_channels_last), device_(device) {}

  std::vector<TensorRef> Make(
      const std::vector<const TensorSpec*>& specs,
      const std::vector<std::optional<Dims>>& dims) {
    std::vector<TensorRef> refs(specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (dims[i]) {
        refs[i] = specs[i]->shape_of.empty() ? MakeOne(*specs[i], *dims[i]) : MakeHeld(*dims[i]);
      }
    }
    return refs;
  }

 private:
  /// An input that holds a shape, on the host.
  TensorRef MakeHeld(const Dims& held) {
    Result<DeviceBuffer> buffer =
        DeviceBuffer::Allocate(Device{}, static_cast<std::size_t>(kMaxRank) * sizeof(std::int64_t));
    Check(buffer.status());
    std::copy(held.begin(), held.end(), static_cast<std::int64_t*>(buffer->data()));
    buffers_.push_back(std::move(*buffer));
    return {DataType::kInt64, buffers_.back().data(), Dims{held.size()}, Device{}};
  }

  TensorRef MakeOne(const TensorSpec& spec, const Dims& dims) {
    const DataType type =
        spec.type_parameter < 0 ? spec.fixed_type : row_.types[spec.type_parameter];
    const auto elements = static_cast<std::size_t>(std::max<std::int64_t>(NumElements(dims), 1));
    Result<DeviceBuffer> buffer = DeviceBuffer::Allocate(device_, elements * SizeOf(type));
    Check(buffer.status());
    const bool is_permuted = is_channels_last_ && dims.size() > 2;
    const Strides strides = is_permuted ? ChannelsLastStrides(dims) : ContiguousStrides(dims);
    buffers_.push_back(std::move(*buffer));
    return {type, buffers_.back().data(), dims, strides, device_};
  }

  const Row& row_;
  bool is_channels_last_;
  Device device_;
  std::vector<DeviceBuffer> buffers_;
};

/// Chooses the kernels of the problem that a line describes, as gradsmith-tune's files have it.
void TuneProblem(const nb::str& text, Policies& policies, int index, bool is_cuda) {
  const Device device = {is_cuda ? Backend::kCuda : Backend::kCpu, index};
  const Registry& registry = BuiltinRegistry();
  const Result<tools::ProblemLine> line = tools::ParseProblemLine(registry, TextOf(text));
  Check(line.status());
  const Result<const Row*> row = tools::FindRow(registry, *line, device.backend);
  Check(row.status());
  const Result<tools::Shapes> shapes = tools::InferShapes(registry, *line, **row);
  Check(shapes.status());
  const Result<Kernel> kernel = Kernel::Create(**row, line->attributes);
  Check(kernel.status());
  Check(CheckDevice(device));

  const OpSchema& op = *(*row)->op;
  Arguments arguments(**row, line->channels_last, device);
  const int length = shapes->list_length;
  const std::vector<TensorRef> inputs =
      arguments.Make(tools::SpecsOf(op.inputs, length), shapes->inputs);
  std::vector<TensorRef> outputs =
      arguments.Make(tools::SpecsOf(op.outputs, length), shapes->outputs);
  tools::SetOutputs(op, *line, length, outputs);
  const std::vector<ConstTensorRef> read(inputs.begin(), inputs.end());
  const Context context = policies.On(device, nullptr);
  Check(WithoutLock([&] {
    return kernel->Prepare(
        context, std::span<const ConstTensorRef>(read), std::span<const TensorRef>(outputs));
  }));
}

struct AttributeToPython {
  nb::object operator()(std::int64_t value) const { return nb::int_(value); }
  nb::object operator()(double value) const { return nb::float_(value); }
  nb::object operator()(const std::string& value) const { return nb::str(value.c_str()); }
  nb::object operator()(const IntList& value) const { return ToPython(value); }
  nb::object operator()(bool value) const { return nb::bool_(value); }
  nb::object operator()(const FloatList& value) const { return ToPython(value); }

  template <typename Number>
  static nb::object ToPython(const BasicList<Number>& list) {
    nb::list result;
    for (const Number value : list) {
      result.append(value);
    }
    return nb::tuple(result);
  }
};

/// The dims of each input: a tuple, of a list a list of them, and None of what is absent.
nb::list DimsOfInputs(const OpSchema& op, const tools::Shapes& shapes) {
  nb::list inputs;
  auto dims = shapes.inputs.begin();
  for (const TensorSpec& spec : op.inputs) {
    nb::list tensors;
    const int count = spec.list.empty() ? 1 : shapes.list_length;
    for (int i = 0; i < count; ++i, ++dims) {
      if (*dims) {
        tensors.append(AttributeToPython::ToPython(**dims));
      }
    }
    if (tensors.size() == 0) {
      inputs.append(nb::none());
    } else if (spec.list.empty()) {
      inputs.append(nb::object(tensors[0]));
    } else {
      inputs.append(tensors);
    }
  }
  return inputs;
}

/// The problem that a line describes: its operator, row, layout, dims of all inputs, the outputs
/// that are wanted, those of them that are added to, attributes.
nb::dict ParseProblem(const nb::str& text) {
  const Registry& registry = BuiltinRegistry();
  const Result<tools::ProblemLine> line = tools::ParseProblemLine(registry, TextOf(text));
  Check(line.status());
  const Result<const Row*> row = tools::FindRow(registry, *line, Backend::kCpu);
  Check(row.status());
  const Result<tools::Shapes> shapes = tools::InferShapes(registry, *line, **row);
  Check(shapes.status());
  nb::list outputs;
  nb::list accumulated;
  for (const TensorSpec& output : (*row)->op->outputs) {
    const std::string name(output.name);
    if (!line->outputs.empty() && !line->outputs.contains(name)) {
      continue;
    }
    outputs.append(nb::str(name.c_str()));
    if (line->accumulated.contains(name)) {
      accumulated.append(nb::str(name.c_str()));
    }
  }
  nb::dict attributes;
  for (const Attribute& attribute : line->attributes) {
    attributes[attribute.name.c_str()] = std::visit(AttributeToPython{}, attribute.value.variant());
  }
  nb::dict problem;
  problem["op"] = line->op;
  problem["row"] = line->row;
  problem["channels_last"] = line->channels_last;
  problem["inputs"] = DimsOfInputs(*(*row)->op, *shapes);
  problem["outputs"] = nb::tuple(outputs);
  problem["accumulated"] = nb::tuple(accumulated);
  problem["attributes"] = attributes;
  return problem;
}

}  // namespace

void BindTuning(nb::module_& module) {
  module.def("parse_problem", &ParseProblem, nb::arg("text"));
  module.def(
      "tune_problem", &TuneProblem, nb::arg("text"), nb::arg("policies"), nb::arg("device"),
      nb::arg("is_cuda"));
}

}  // namespace gradsmith::python
