#ifndef GRADSMITH_SCHEMA_H_
#define GRADSMITH_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "gradsmith/context.h"
#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/status.h"
#include "gradsmith/tensor.h"
#include "gradsmith/types.h"

/// The tables that the generator writes from `ops.yaml`: what an op's arguments must be, and which
/// rows (op x type combination x backend) there are. They are constants; nothing in them needs
/// start-up code.

namespace gradsmith {

/// DimSpec is one entry of a tensor's shape: `N`, `*D` (a list of dims), `C / group`,
/// `ceil(N / 32)`, or a number. One such as `N if reduction == none` is there only where an
/// attribute has the value.
struct DimSpec {
  enum class Kind : std::uint8_t { kSymbol, kQuotient, kConstant, kCeil };
  Kind kind = Kind::kSymbol;
  /// Index into OpSchema::symbols, for kSymbol, kQuotient and kCeil.
  std::int16_t symbol = -1;
  /// Index into OpSchema::attributes of an int attribute, for kQuotient.
  std::int8_t divisor = -1;
  /// Index into OpSchema::attributes of an enum or bool attribute, or -1 where the entry is there
  /// whatever the attributes.
  std::int8_t condition = -1;
  /// The value of that attribute with which the entry is there: the number of an enumerator, or 1
  /// for true.
  std::int8_t condition_value = 0;
  /// The dim for kConstant, the divisor for kCeil.
  std::int64_t constant = 0;
};

/// ShapeRule computes a list symbol from an op's attributes struct and the symbols bound so far, in
/// the order of OpSchema::symbols.
using ShapeRule = Result<Dims> (*)(const void* attributes, std::span<const Dims> symbols);

/// SymbolSpec is a name that shapes share. A scalar symbol is one dim; a list symbol is several.
struct SymbolSpec {
  std::string_view name = {};
  bool is_list = false;
  /// The least and the largest number of dims of a list.
  std::int8_t min_length = 0;
  std::int8_t max_length = kMaxRank;
  /// The index of a bool attribute, or -1: where it is true, a list has min_length_if to
  /// max_length_if dims instead.
  std::int8_t length_if = -1;
  std::int8_t min_length_if = 0;
  std::int8_t max_length_if = 0;
  /// The index of the symbol whose length a list has, or -1.
  std::int16_t length_of = -1;
  /// The index of an int attribute, an axis, before which a list's dims stand, or -1.
  std::int8_t length_axis = -1;
  /// The index of the list symbol that a list's dims broadcast to, the last ones together and each
  /// 1 or equal, or -1.
  std::int16_t broadcast_to = -1;
  /// The index of the attribute that gives the dims, or -1. A list's is an ints attribute and
  /// counts where it is neither empty nor absent; a scalar's is an int attribute, which the dim
  /// equals.
  std::int8_t given_by = -1;
  /// True where the outputs that the caller passes bind the symbol if nothing else does.
  bool from_outputs = false;
  /// The index of an int attribute that a scalar's dim must be a multiple of, or -1.
  std::int8_t multiple_of = -1;
  /// True of a symbol that only lists of tensors have. The tensors at one place of all lists share
  /// it, and those at another have one of their own.
  bool of_each = false;
  /// The index of the scalar symbol, one of_each, whose sum over the lists a scalar's dim is, or
  /// -1.
  std::int8_t sum_of = -1;
  /// The function that computes the symbol once the inputs are known, or null. `rule_name` is what
  /// messages call it.
  ShapeRule rule = nullptr;
  std::string_view rule_name = {};
};

/// TensorSpec is an input or an output.
struct TensorSpec {
  std::string_view name = {};
  /// The index into OpSchema::type_parameters, or -1 where the type is `fixed_type` in every row.
  std::int8_t type_parameter = -1;
  DataType fixed_type = DataType::kFloat;
  bool optional = false;
  /// The name of the length where the argument is a list of tensors, which all have the type; empty
  /// where it is one tensor. The tensors of an optional list may each be absent.
  std::string_view list = {};
  /// The output whose dims an input holds, or empty. The input is then a vector of int64 on the
  /// host, and `shape` is the output's.
  std::string_view shape_of = {};
  std::span<const DimSpec> shape = {};
  /// The shape as `ops.yaml` writes it and messages quote it, for example "[N, M, *O]".
  std::string_view shape_text = {};
  /// True of an input of which only the shape is needed. Its data are never read and may be null.
  bool shape_only = false;
  /// True of an input that may lie on the host also where the context is on another device.
  bool may_be_on_host = false;
  /// The index of the input in whose very memory an output may be written, or -1.
  std::int16_t in_place_of = -1;
  /// The forward operator's tensor that this is the gradient of, or none. An output may be the
  /// gradient of several inputs, each of which has that very gradient.
  std::span<const std::string_view> gradient_of = {};
};

/// AttributeKind says what values an attribute has.
enum class AttributeKind : std::uint8_t { kInt, kFloat, kInts, kEnum, kBool, kFloats, kString };

/// AttributeSpec is an attribute: where it lies in the op's attributes struct and which values it
/// may have.
struct AttributeSpec {
  std::string_view name = {};
  AttributeKind kind = AttributeKind::kInt;
  /// The field's offset in bytes. By kind it is a std::int64_t, a double, an IntList, an enum with
  /// one byte, a bool, a FloatList or a std::string.
  std::size_t offset = 0;
  /// True of an attribute that has no default and whose absence means something. Its field is a
  /// std::optional of that type; enums are never optional.
  bool optional = false;
  /// The inclusive bounds of a number, or of each number of a list. They are the least and the
  /// largest double where any finite number will do, and infinite where the number may be that.
  double minimum = 0;
  double maximum = 0;
  /// The names of an enum's enumerators, in their order from 0.
  std::span<const std::string_view> choices = {};
  /// A list that is not empty has length_factor * (length of symbol length_of) entries. It may have
  /// any number of them where length_of is -1.
  std::int8_t length_factor = 1;
  std::int8_t length_of = -1;
  /// The index of the input of which an int is an axis, from -rank to rank - 1, or -1. Where that
  /// input is a list of tensors, the attribute is an axis of the first, and all have its
  /// rank.
  std::int16_t axis_of = -1;
};

/// Repeatable says whether two calls of a row give the same bits: always, where the context is
/// deterministic, or never, so that a deterministic context refuses the row.
enum class Repeatable : std::uint8_t { kAlways, kPolicy, kNever };

/// ToString returns the word as `ops.yaml` spells it.
constexpr std::string_view ToString(Repeatable repeatable) {
  constexpr std::string_view kWords[] = {"always", "policy", "never"};
  return kWords[static_cast<std::size_t>(repeatable)];
}

struct Row;

/// OpSchema is all that `ops.yaml` says of an op.
struct OpSchema {
  std::string_view domain = {};
  std::string_view name = {};
  int since_version = 1;
  /// The op whose gradient this is, or empty.
  std::string_view gradient_of = {};
  /// The name of the handwritten kernel, for example "conv::ConvGrad".
  std::string_view kernel = {};
  std::string_view source_file = {};
  std::span<const std::string_view> type_parameters = {};
  std::span<const SymbolSpec> symbols = {};
  std::span<const TensorSpec> inputs = {};
  std::span<const TensorSpec> outputs = {};
  std::span<const AttributeSpec> attributes = {};
  /// True where arguments are lists of tensors, all of one length, which each call chooses. The
  /// tensors of a list then stand one after another in its place among the arguments, and none is
  /// left out.
  bool has_lists = false;
  /// What such an op is for lists of one length: an op of so many tensors in the place of each list
  /// (internal::SpellOut). 0 for all other ops.
  std::int16_t list_length = 0;
  /// The function that makes the op's attributes struct with its defaults.
  std::shared_ptr<void> (*make_attributes)() = nullptr;
};

/// RunFunction binds positional arguments to the handwritten kernel's names and runs it. The
/// arguments have been validated.
using RunFunction = Status (*)(
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

/// Row is one line of the dispatch table: an op with one type combination on one backend.
struct Row {
  const OpSchema* op = nullptr;
  /// The combination's name in `ops.yaml`, for example "half_float_stats".
  std::string_view name = {};
  /// One type for each of the op's type parameters.
  std::span<const DataType> types = {};
  Backend backend = Backend::kCpu;
  Repeatable repeatable = Repeatable::kPolicy;
  RunFunction run = nullptr;
  /// The line of the entry of `ops.yaml` that holds the row, and how many lines further down the
  /// row is. Entry lines are kept in the dispatch table's file alone, so that an edit of one entry
  /// recompiles no other.
  const std::int32_t* entry_line = nullptr;
  std::int32_t line_offset = 0;

  /// The row's line in `ops.yaml`, counted from 1.
  [[nodiscard]] std::int32_t source_line() const { return *entry_line + line_offset; }
};

/// ToString returns, for example, "ConvGrad[float] on cpu (ops.yaml:57)".
std::string ToString(const Row& row);

/// Call validates the arguments against the row's schema and runs its kernel. The typed functions
/// and Kernel::Run both end here. Errors are prefixed by ToString(row).
Status Call(
    const Row& row,
    const Context& context,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs);

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_SCHEMA_H_
