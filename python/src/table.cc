#include "table.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <string_view>
#include <vector>

#include "array.h"
#include "core/device_backend.h"
#include "core/explain.h"
#include "errors.h"
#ifdef GRADSMITH_PYTHON_OPS  // a library of own operators
#include GRADSMITH_PYTHON_OPS
#else
#include "gradsmith/ops.h"
#define GRADSMITH_PYTHON_NAMESPACE gradsmith
#endif

namespace gradsmith::python {

namespace nb = nanobind;

namespace {

nb::dict ToDict(const OpSchema& op, const TensorSpec& tensor) {
  nb::dict dict;
  dict["name"] = tensor.name;
  dict["type"] = tensor.type_parameter < 0 ? ToString(tensor.fixed_type)
                                           : op.type_parameters[tensor.type_parameter];
  dict["shape"] = tensor.shape_text;
  dict["optional"] = tensor.optional;
  dict["shape_only"] = tensor.shape_only;
  dict["shape_of"] = tensor.shape_of;
  dict["list"] = tensor.list;
  dict["may_be_on_host"] = tensor.may_be_on_host;
  nb::list of;
  for (const std::string_view name : tensor.gradient_of) {
    of.append(name);
  }
  dict["gradient_of"] = nb::tuple(of);
  return dict;
}

nb::list ToList(const OpSchema& op, std::span<const TensorSpec> tensors) {
  nb::list list;
  for (const TensorSpec& tensor : tensors) {
    list.append(ToDict(op, tensor));
  }
  return list;
}

nb::dict ToDict(const OpSchema& op) {
  nb::dict dict;
  nb::list attributes;
  for (const AttributeSpec& attribute : op.attributes) {
    attributes.append(attribute.name);
  }
  dict["name"] = op.name;
  dict["domain"] = op.domain;
  dict["since_version"] = op.since_version;
  dict["gradient_of"] = op.gradient_of;
  dict["kernel"] = op.kernel;
  dict["inputs"] = ToList(op, op.inputs);
  dict["outputs"] = ToList(op, op.outputs);
  dict["attributes"] = attributes;
  return dict;
}

nb::dict ToDict(const Row& row) {
  nb::dict types;
  for (std::size_t i = 0; i < row.types.size(); ++i) {
    types[nb::cast(row.op->type_parameters[i])] = ToString(row.types[i]);
  }
  nb::dict dict;
  dict["name"] = row.name;
  dict["types"] = types;
  dict["backend"] = ToString(row.backend);
  dict["repeatable"] = ToString(row.repeatable);
  dict["line"] = row.source_line();
  return dict;
}

/// Every operator of the build, with its rows.
nb::list Operators() {
  nb::list operators;
  const OpSchema* last = nullptr;
  nb::list rows;
  for (const Row* row : BuiltinRegistry().rows()) {
    if (row->op != last) {
      last = row->op;
      rows = nb::list();
      nb::dict dict = ToDict(*last);
      dict["rows"] = rows;
      operators.append(dict);
    }
    rows.append(ToDict(*row));
  }
  return operators;
}

/// The names of all element types, in the order of DataType.
nb::list ElementTypes() {
  nb::list names;
  for (int i = 0; i < kDataTypeCount; ++i) {
    names.append(ToString(static_cast<DataType>(i)));
  }
  return names;
}

DataType ParseType(std::string_view name) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    if (ToString(static_cast<DataType>(i)) == name) {
      return static_cast<DataType>(i);
    }
  }
  RaiseValueError("there is no type '" + std::string(name) + "'; expected " + DataTypeNames());
}

std::string Explain(const nb::str& op, const nb::list& types, bool is_cuda) {
  std::vector<DataType> parsed;
  for (const nb::handle type : types) {
    parsed.push_back(ParseType(TextOf(type)));
  }
  return internal::Explain(
      BuiltinRegistry(), TextOf(op), parsed, is_cuda ? Backend::kCuda : Backend::kCpu);
}

}  // namespace

const Registry& BuiltinRegistry() {
  static const Registry* const registry = [] {
    auto* result = new Registry();
    Check(::GRADSMITH_PYTHON_NAMESPACE::RegisterAll(*result));
    return result;
  }();
  return *registry;
}

void BindTable(nb::module_& module) {
  module.def("operators", &Operators);
  module.def("element_types", &ElementTypes);
  module.def("is_built", [](bool is_cuda) {
    return internal::CheckBuilt(is_cuda ? Backend::kCuda : Backend::kCpu).ok();
  });
  module.def("explain", &Explain, nb::arg("op"), nb::arg("types"), nb::arg("is_cuda"));
}

}  // namespace gradsmith::python
