#include "gradsmith/kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/attribute_check.h"
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
    case AttributeKind::kBool:
      return "true or false";
    case AttributeKind::kFloats:
      return "a list of numbers";
    case AttributeKind::kString:
      return "a text";
  }
  return "unknown";
}

std::string ValueText(const AttributeValue& value) {
  struct Visitor {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return internal::RealText(v); }
    std::string operator()(const std::string& v) const { return internal::Quoted(v); }
    std::string operator()(const IntList& v) const { return ToString(v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const FloatList& v) const { return ToString(v); }
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

/// The value as the type of a field; none where it is of another kind. An integer serves as a real
/// number, 0 and 1 serve as truth values, as in ONNX.
template <typename T>
std::optional<T> As(const AttributeValue::Variant& value) {
  if (const auto* same = std::get_if<T>(&value)) {
    return *same;
  }
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      return static_cast<double>(*integer);
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (integer != nullptr && (*integer == 0 || *integer == 1)) {
      return *integer == 1;
    }
  } else if constexpr (std::is_same_v<T, FloatList>) {
    if (const auto* integers = std::get_if<IntList>(&value)) {
      FloatList list;
      for (const std::int64_t integer : *integers) {
        list.push_back(static_cast<double>(integer));
      }
      return integers->too_long() ? std::nullopt : std::optional(list);
    }
  }
  return std::nullopt;
}

template <typename T>
Status Set(const AttributeSpec& spec, const AttributeValue& value, std::byte* field) {
  std::optional<T> given = As<T>(value.variant());
  if (!given) {
    return WrongKind(spec, value);
  }
  if (spec.optional) {
    *reinterpret_cast<std::optional<T>*>(field) = std::move(given);
  } else {
    *reinterpret_cast<T*>(field) = *std::move(given);
  }
  return {};
}

Status SetAttribute(const AttributeSpec& spec, const AttributeValue& value, void* attributes) {
  std::byte* field = static_cast<std::byte*>(attributes) + spec.offset;
  switch (spec.kind) {
    case AttributeKind::kInt:
      return Set<std::int64_t>(spec, value, field);
    case AttributeKind::kFloat:
      return Set<double>(spec, value, field);
    case AttributeKind::kInts:
      return Set<IntList>(spec, value, field);
    case AttributeKind::kBool:
      return Set<bool>(spec, value, field);
    case AttributeKind::kFloats:
      return Set<FloatList>(spec, value, field);
    case AttributeKind::kString:
      return Set<std::string>(spec, value, field);
    case AttributeKind::kEnum:
      break;
  }
  const auto* name = std::get_if<std::string>(&value.variant());
  return name != nullptr ? SetEnum(spec, *name, field) : WrongKind(spec, value);
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

Result<std::vector<Dims>> Kernel::InferShapes(
    std::span<const ConstTensorRef> inputs,
    std::span<const ConstTensorRef> outputs) const {
  Result<std::vector<Dims>> shapes =
      internal::InferShapes(*row_->op, attributes_.get(), inputs, outputs);
  if (!shapes.ok()) {
    return internal::WithRow(*row_, shapes.status());
  }
  return shapes;
}

}  // namespace gradsmith
