#include "core/list_schema.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/lru_map.h"
#include "core/text.h"

namespace gradsmith::internal {

namespace {

/// An op spelled out, with all that its tables point to.
struct SpelledOut {
  OpSchema schema;
  std::deque<std::string> names;  // which stay where they are
  std::deque<std::vector<DimSpec>> shapes;
  std::deque<std::vector<std::string_view>> gradients;
  std::vector<SymbolSpec> symbols;
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<AttributeSpec> attributes;
};

class Speller {
 public:
  Speller(const OpSchema& op, int length) : op_(op), length_(length) {}

  std::shared_ptr<const OpSchema> Spell() {
    MakeSymbols();
    MakeTensors(op_.inputs, result_->inputs);
    MakeTensors(op_.outputs, result_->outputs);
    MakeAttributes();
    result_->schema = op_;
    result_->schema.symbols = result_->symbols;
    result_->schema.inputs = result_->inputs;
    result_->schema.outputs = result_->outputs;
    result_->schema.attributes = result_->attributes;
    result_->schema.has_lists = false;
    result_->schema.list_length = static_cast<std::int16_t>(length_);
    return {result_, &result_->schema};
  }

 private:
  /// "W[2]"; the name lives as long as the result.
  std::string_view NameOf(std::string_view name, int place) {
    return result_->names.emplace_back(std::string(name) + "[" + std::to_string(place) + "]");
  }

  std::span<const std::string_view> NamesOf(std::span<const std::string_view> names, int place) {
    auto& made = result_->gradients.emplace_back();
    for (const std::string_view name : names) {
      made.push_back(NameOf(name, place));
    }
    return made;
  }

  /// A symbol's index where it stands in a shape of the tensors at a place of the lists: there is a
  /// table of all symbols for each place, of which those after the first have only those of each.
  [[nodiscard]] std::int16_t SymbolAt(std::int16_t symbol, int place) const {
    const bool is_of_each = symbol >= 0 && op_.symbols[symbol].of_each;
    const auto size = static_cast<int>(op_.symbols.size());
    return static_cast<std::int16_t>(symbol + (is_of_each ? place * size : 0));
  }

  void MakeSymbols() {
    result_->symbols.reserve(op_.symbols.size() * static_cast<std::size_t>(length_));
    for (int place = 0; place < length_; ++place) {
      for (const SymbolSpec& symbol : op_.symbols) {
        if (!symbol.of_each) {
          result_->symbols.push_back(place == 0 ? symbol : SymbolSpec{.name = symbol.name});
          continue;
        }
        SymbolSpec& own = result_->symbols.emplace_back(symbol);
        own.name = NameOf(symbol.name, place);
        own.length_of = SymbolAt(symbol.length_of, place);
        own.broadcast_to = SymbolAt(symbol.broadcast_to, place);
      }
    }
  }

  /// Where an input stands, or the first of a list.
  [[nodiscard]] std::int16_t InputAt(int input) const {
    int at = 0;
    for (int i = 0; i < input; ++i) {
      at += op_.inputs[i].list.empty() ? 1 : length_;
    }
    return static_cast<std::int16_t>(at);
  }

  void MakeTensors(std::span<const TensorSpec> specs, std::vector<TensorSpec>& made) {
    for (const TensorSpec& spec : specs) {
      const int count = spec.list.empty() ? 1 : length_;
      for (int place = 0; place < count; ++place) {
        TensorSpec& tensor = made.emplace_back(spec);
        if (spec.in_place_of >= 0) {
          tensor.in_place_of = static_cast<std::int16_t>(InputAt(spec.in_place_of) + place);
        }
        if (spec.list.empty()) {
          continue;
        }
        tensor.list = {};
        tensor.name = NameOf(spec.name, place);
        tensor.shape = ShapeAt(spec, place);
        tensor.gradient_of = NamesOf(spec.gradient_of, place);
      }
    }
  }

  std::span<const DimSpec> ShapeAt(const TensorSpec& spec, int place) {
    auto& shape = result_->shapes.emplace_back(spec.shape.begin(), spec.shape.end());
    for (DimSpec& dim : shape) {
      dim.symbol = SymbolAt(dim.symbol, place);
    }
    return shape;
  }

  void MakeAttributes() {
    result_->attributes.assign(op_.attributes.begin(), op_.attributes.end());
    for (AttributeSpec& attribute : result_->attributes) {
      attribute.axis_of = attribute.axis_of < 0 ? attribute.axis_of : InputAt(attribute.axis_of);
    }
  }

  const OpSchema& op_;
  int length_;
  std::shared_ptr<SpelledOut> result_ = std::make_shared<SpelledOut>();
};

using Key = std::pair<const OpSchema*, int>;

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return std::hash<const OpSchema*>()(key.first) ^
           (static_cast<std::size_t>(key.second) * 0x9E3779B97F4A7C15U);
  }
};

/// Those that were used last, of all ops and lengths.
struct Kept {
  static constexpr std::size_t kCapacity = 64;
  std::mutex mutex;
  LruMap<Key, std::shared_ptr<const OpSchema>, KeyHash> schemas{kCapacity};
};

Kept& AllKept() {
  static auto& kept = *new Kept;  // calls may come while static objects are destroyed
  return kept;
}

std::string ListNames(std::span<const TensorSpec> specs) {
  std::vector<std::string_view> names;
  for (const TensorSpec& spec : specs) {
    if (!spec.list.empty()) {
      names.push_back(spec.name);
    }
  }
  return Join(names);
}

}  // namespace

Result<int>
ListLengthOf(std::string_view role, std::span<const TensorSpec> specs, std::size_t count) {
  const auto lists = static_cast<std::size_t>(std::count_if(
      specs.begin(), specs.end(), [](const TensorSpec& spec) { return !spec.list.empty(); }));
  const std::size_t single = specs.size() - lists;
  if (lists == 0) {
    return 0;
  }
  const std::size_t length = count < single ? 0 : (count - single) / lists;
  if (length >= 1 && length <= kMaxListLength && single + lists * length == count) {
    return static_cast<int>(length);
  }
  const std::string each = lists == 1 ? "n" : std::to_string(lists) + " * n";
  return InvalidArgument(
      Counted(static_cast<std::int64_t>(count), role) + (count == 1 ? " was" : " were") +
      " given; expected " + (single > 0 ? std::to_string(single) + " + " : "") + each +
      ", n from 1 to " + std::to_string(kMaxListLength) + " being the length of " +
      ListNames(specs));
}

Result<int> ListLength(const OpSchema& op, std::size_t inputs, std::size_t outputs) {
  Result<int> of_inputs = ListLengthOf("input", op.inputs, inputs);
  if (!of_inputs.ok()) {
    return of_inputs;
  }
  Result<int> of_outputs = ListLengthOf("output", op.outputs, outputs);
  if (!of_outputs.ok() || *of_inputs == 0 || *of_inputs == *of_outputs) {
    return of_outputs;
  }
  if (*of_outputs == 0) {
    return of_inputs;
  }
  return InvalidArgument(
      "the outputs are for lists of " + std::to_string(*of_outputs) + " in " +
      ListNames(op.outputs) + "; expected " + std::to_string(*of_inputs) + ", as there are of " +
      ListNames(op.inputs));
}

std::shared_ptr<const OpSchema> SpellOut(const OpSchema& op, int length) {
  Kept& kept = AllKept();
  const Key key{&op, length};
  {
    const std::scoped_lock lock(kept.mutex);
    if (const auto* known = kept.schemas.Find(key)) {
      return *known;
    }
  }
  std::shared_ptr<const OpSchema> made = Speller(op, length).Spell();
  const std::scoped_lock lock(kept.mutex);
  return kept.schemas.Insert(key, std::move(made));
}

}  // namespace gradsmith::internal
