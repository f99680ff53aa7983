#include "gradsmith/kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/call.h"
#include "core/device_backend.h"
#include "core/exceptions.h"
#include "core/explain.h"
#include "core/text.h"
#include "core/validate.h"

namespace gradsmith {

namespace {

std::string_view KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
      return "an integer";
    case AttributeKind::kFloat:
      return "a number";
    case AttributeKind::kInts:
      return "a list of integers";
    case AttributeKind::kEnum:
      return "a name";
  }
  return "unknown";
}

std::string ValueText(const AttributeValue& value) {
  struct Visitor {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return std::to_string(v); }
    std::string operator()(const std::string& v) const { return internal::Quoted(v); }
    std::string operator()(const IntList& v) const { return ToString(v); }
  };
  return std::visit(Visitor{}, value.variant());
}

Status WrongKind(const AttributeSpec& spec, const AttributeValue& value) {
  return InvalidArgument(
      "attribute " + std::string(spec.name) + " is " + ValueText(value) + "; expected " +
      std::string(KindName(spec.kind)));
}

Status SetEnum(const AttributeSpec& spec, const std::string& name, std::byte* field) {
  const auto choice = std::find(spec.choices.begin(), spec.choices.end(), name);
  if (choice == spec.choices.end()) {
    return InvalidArgument(
        "attribute " + std::string(spec.name) + " is " + internal::Quoted(name) +
        "; expected one of " + internal::Join(spec.choices) +
        internal::DidYouMean(name, spec.choices));
  }
  *reinterpret_cast<std::uint8_t*>(field) =
      static_cast<std::uint8_t>(choice - spec.choices.begin());
  return {};
}

Status SetAttribute(const AttributeSpec& spec, const AttributeValue& value, void* attributes) {
  std::byte* field = static_cast<std::byte*>(attributes) + spec.offset;
  const AttributeValue::Variant& variant = value.variant();
  if (spec.kind == AttributeKind::kEnum && std::holds_alternative<std::string>(variant)) {
    return SetEnum(spec, std::get<std::string>(variant), field);
  }
  if (spec.kind == AttributeKind::kInts && std::holds_alternative<IntList>(variant)) {
    *reinterpret_cast<IntList*>(field) = std::get<IntList>(variant);
    return {};
  }
  if (const auto* integer = std::get_if<std::int64_t>(&variant)) {
    if (spec.kind == AttributeKind::kInt) {
      *reinterpret_cast<std::int64_t*>(field) = *integer;
      return {};
    }
    if (spec.kind == AttributeKind::kFloat) {
      *reinterpret_cast<double*>(field) = static_cast<double>(*integer);
      return {};
    }
  }
  if (spec.kind == AttributeKind::kFloat && std::holds_alternative<double>(variant)) {
    *reinterpret_cast<double*>(field) = std::get<double>(variant);
    return {};
  }
  return WrongKind(spec, value);
}

Status UnknownAttribute(const OpSchema& op, std::string_view name) {
  std::vector<std::string_view> names;
  for (const AttributeSpec& spec : op.attributes) {
    names.push_back(spec.name);
  }
  return InvalidArgument(
      "there is no attribute " + internal::Quoted(name) + "; expected one of " +
      internal::Join(names) + internal::DidYouMean(name, names));
}

Status SetAttributes(const OpSchema& op, std::span<const Attribute> given, void* attributes) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i].name;
    const auto spec = std::find_if(
        op.attributes.begin(), op.attributes.end(),
        [&](const AttributeSpec& s) { return s.name == name; });
    if (spec == op.attributes.end()) {
      return UnknownAttribute(op, name);
    }
    const bool twice = std::any_of(
        given.begin(), given.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const Attribute& other) { return other.name == name; });
    if (twice) {
      return InvalidArgument("attribute " + name + " is given twice; expected once");
    }
    if (Status status = SetAttribute(*spec, given[i].value, attributes); !status.ok()) {
      return status;
    }
  }
  return internal::ValidateAttributes(op, attributes);
}

}  // namespace

Result<Kernel> Kernel::Create(const Row& row, std::span<const Attribute> attributes) {
  std::shared_ptr<void> storage;
  const Status status = internal::CatchExceptions([&] {
    storage = row.op->make_attributes();
    return SetAttributes(*row.op, attributes, storage.get());
  });
  if (!status.ok()) {
    return internal::WithRow(row, status);
  }
  return Kernel(&row, std::move(storage));
}

Result<Kernel> Kernel::Create(
    const Registry& registry,
    std::string_view op,
    std::span<const DataType> types,
    Backend backend,
    std::span<const Attribute> attributes) {
  const Row* row = registry.Find(op, types, backend);
  if (row == nullptr || !internal::CheckBuilt(backend).ok()) {
    return internal::CatchExceptions([&]() -> Result<Kernel> {
      return Unsupported(internal::Explain(registry, op, types, backend));
    });
  }
  return Create(*row, attributes);
}

Status Kernel::Run(
    const Context& context,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) const {
  return Call(*row_, context, attributes_.get(), inputs, outputs);
}

Result<std::vector<Dims>> Kernel::InferShapes(std::span<const ConstTensorRef> inputs) const {
  Result<std::vector<Dims>> shapes = internal::InferShapes(*row_->op, attributes_.get(), inputs);
  if (!shapes.ok()) {
    return internal::WithRow(*row_, shapes.status());
  }
  return shapes;
}

}  // namespace gradsmith
