#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuzz.h"
#include "gradsmith/gradsmith.h"
#include "gradsmith/kernel.h"

/// Whatever attributes and tensors the dynamic door is given on the CPU: it writes to the elements
/// of its outputs and nowhere else, to nothing where it refuses, and it refuses what is not memory.
/// Blocks have the size that their tensors span to the byte, so that a sanitizer sees the rest.
namespace gradsmith::fuzz {
namespace {

constexpr std::int64_t kMostElements = 1 << 14;

const Registry& All() {
  static const Registry registry = [] {
    Registry all;
    Expect(RegisterAll(all).ok(), "the rows cannot be registered");
    return all;
  }();
  return registry;
}

/// Mostly a small number, sometimes one at the edge of something.
std::int64_t OddNumber(Reader& reader) {
  constexpr std::int64_t kOdd[] = {
      -1,
      0,
      7,
      255,
      1LL << 31,
      1LL << 32,
      1LL << 62,
      std::numeric_limits<std::int64_t>::max(),
      std::numeric_limits<std::int64_t>::min()};
  return reader.OneIn(4) ? reader.Any() : kOdd[reader.Below(std::size(kOdd))];
}

std::int64_t SmallNumber(Reader& reader) {
  return reader.OneIn(80) ? OddNumber(reader) : 1 + reader.Below(3);
}

/// Memory of tensors, as large as they are.
struct Block {
  explicit Block(std::size_t count) : size(count), bytes(new std::uint8_t[count]) {}

  std::size_t size;
  std::unique_ptr<std::uint8_t[]> bytes;
  std::vector<std::uint8_t> before = {};
  /// Bytes that belong to elements of outputs.
  std::vector<bool> may_change = {};
};

/// A tensor, and where its elements lie.
struct Given {
  TensorRef ref = {};
  Block* block = nullptr;
  /// Byte offsets in the block; nothing where the tensor has no elements, or no memory.
  std::vector<std::size_t> elements = {};
  bool must_be_refused = false;
};

class Problem {
 public:
  explicit Problem(Reader& reader)
      : reader_(reader),
        row_(*All().rows()[reader.Below(static_cast<int>(All().rows().size()))]),
        op_(*row_.op),
        attributes_(op_.make_attributes()) {}

  void Run() {
    if (row_.backend != Backend::kCpu) {
      return;
    }
    BindSymbols();
    const std::vector<Attribute> attributes = Attributes();
    BindRules();
    const Result<Kernel> kernel = Kernel::Create(row_, attributes);
    if (!kernel.ok()) {
      Expect(!kernel.status().message().empty(), "refused without a sentence");
      return;
    }
    MakeInputs();
    std::vector<ConstTensorRef> inputs;
    for (const Given& input : inputs_) {
      inputs.emplace_back(input.ref);
    }
    const Result<std::vector<Dims>> dims = kernel->InferShapes(inputs);
    MakeOutputs(dims);
    std::vector<TensorRef> outputs;
    for (const Given& output : outputs_) {
      outputs.push_back(output.ref);
    }
    Remember();
    static const Context context(ContextOptions{.threads = 1});
    const Status status = kernel->Run(context, inputs, outputs);
    CheckMemory(status);
    CheckRefusals(status, dims);
  }

 private:
  /// Lengths and values for which the op may have been meant.
  void BindSymbols() {
    is_empty_ = reader_.OneIn(20);
    std::vector<int> lengths;
    for (const SymbolSpec& symbol : op_.symbols) {
      const bool is_other = symbol.length_if >= 0 && reader_.OneIn(2);
      const int length = (is_other ? symbol.min_length_if : symbol.min_length) + reader_.Below(4);
      const int most = is_other ? symbol.max_length_if : symbol.max_length;
      lengths.push_back(symbol.is_list ? std::min(length, most) : 1);
    }
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      std::size_t like = i;
      while (op_.symbols[like].length_of >= 0) {
        like = op_.symbols[like].length_of;
      }
      Dims values;
      for (int j = 0; j < lengths[like]; ++j) {
        values.push_back(DimOf(op_.symbols[i].is_list));
      }
      symbols_.push_back(values);
    }
  }

  std::int64_t DimOf(bool is_of_list) {
    if (is_empty_ && is_of_list && reader_.OneIn(2)) {
      return std::numeric_limits<std::int64_t>::max() >> reader_.Below(4);
    }
    return reader_.OneIn(80) ? OddNumber(reader_) : 1 + reader_.Below(5);
  }

  /// Symbols that the op computes of others, where it can.
  void BindRules() {
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      if (op_.symbols[i].rule != nullptr && !reader_.OneIn(32)) {
        const Result<Dims> dims = op_.symbols[i].rule(attributes_.get(), symbols_);
        symbols_[i] = dims.ok() ? *dims : symbols_[i];
      }
      const int given_by = op_.symbols[i].given_by;
      if (given_by >= 0 && !op_.symbols[i].is_list && !reader_.OneIn(32)) {
        symbols_[i] = {integers_[given_by]};
      }
    }
  }

  std::vector<Attribute> Attributes() {
    std::vector<Attribute> attributes;
    integers_.assign(op_.attributes.size(), 1);
    for (std::size_t i = 0; i < op_.attributes.size(); ++i) {
      if (reader_.OneIn(2)) {
        const AttributeValue value = Value(op_.attributes[i], i);
        attributes.push_back({std::string(op_.attributes[i].name), value});
        Set(op_.attributes[i], value);
      }
    }
    if (reader_.OneIn(32)) {
      attributes.push_back({"no_attribute", 1});
    }
    return attributes;
  }

  /// As the op's own struct has it, for its rules.
  void Set(const AttributeSpec& spec, const AttributeValue& value) {
    std::uint8_t* field = static_cast<std::uint8_t*>(attributes_.get()) + spec.offset;
    if (const auto* integer = std::get_if<std::int64_t>(&value.variant())) {
      *reinterpret_cast<std::int64_t*>(field) = *integer;
    } else if (const auto* list = std::get_if<IntList>(&value.variant())) {
      *reinterpret_cast<IntList*>(field) = *list;
    } else if (const auto* name = std::get_if<std::string>(&value.variant())) {
      const auto choice = std::ranges::find(spec.choices, *name);
      *field = choice == spec.choices.end()
                   ? *field
                   : static_cast<std::uint8_t>(choice - spec.choices.begin());
    }
  }

  AttributeValue Value(const AttributeSpec& spec, std::size_t index) {
    if (reader_.OneIn(100)) {
      return "of another kind";
    }
    switch (spec.kind) {
      case AttributeKind::kInt:
        integers_[index] = SmallNumber(reader_);
        return integers_[index];
      case AttributeKind::kFloat: {
        const std::int64_t bits = reader_.Any();
        double value = 0;
        std::memcpy(&value, &bits, sizeof(value));
        return reader_.OneIn(4) ? value : 0.25 * reader_.Below(8);
      }
      case AttributeKind::kInts: {
        const int length = spec.length_of < 0
                               ? reader_.Below(4)
                               : spec.length_factor * symbols_[spec.length_of].size();
        IntList list;
        for (int i = reader_.OneIn(80) ? reader_.Below(12) : length; i > 0; --i) {
          list.push_back(reader_.OneIn(2) ? reader_.Below(3) : SmallNumber(reader_));
        }
        return list;
      }
      case AttributeKind::kBool:
        return reader_.OneIn(2);
      case AttributeKind::kFloats:
        return FloatList{0.25 * reader_.Below(8), 0.25 * reader_.Below(8)};
      case AttributeKind::kString:
        return std::string(static_cast<std::size_t>(reader_.Below(40)), 'a');
      case AttributeKind::kEnum:
        return std::string(spec.choices[reader_.Below(static_cast<int>(spec.choices.size()))]);
    }
    return 0;
  }

  /// What the schema would have, with the divisor's multiple where there is one.
  Dims DimsOf(const TensorSpec& spec) {
    Dims dims;
    for (const DimSpec& dim : spec.shape) {
      if (dim.condition >= 0 && reader_.OneIn(2)) {
        continue;
      }
      if (dim.kind == DimSpec::Kind::kConstant) {
        dims.push_back(dim.constant);
        continue;
      }
      for (const std::int64_t value : symbols_[dim.symbol]) {
        dims.push_back(
            dim.kind == DimSpec::Kind::kQuotient ? value : Multiplied(dim.symbol, value));
      }
    }
    return dims;
  }

  /// A dim that the group divides, where some shape divides it by the group.
  std::int64_t Multiplied(int symbol, std::int64_t value) const {
    int by = op_.symbols[symbol].multiple_of;
    for (const std::span<const TensorSpec> specs : {op_.inputs, op_.outputs}) {
      for (const TensorSpec& spec : specs) {
        for (const DimSpec& dim : spec.shape) {
          by = dim.kind == DimSpec::Kind::kQuotient && dim.symbol == symbol ? dim.divisor : by;
        }
      }
    }
    const bool is_small =
        by >= 0 && integers_[by] > 0 && integers_[by] < 8 && value >= 0 && value < 64;
    return is_small ? value * integers_[by] : value;
  }

  Strides StridesOf(const Dims& dims) {
    switch (reader_.Below(4)) {
      case 0:
        return ContiguousStrides(dims);
      case 1:
        return ChannelsLastStrides(dims);
      case 2:
        return SpacedStrides(dims);
      default: {
        Strides strides = ContiguousStrides(dims);
        if (strides.size() > 0 && reader_.OneIn(2)) {
          strides[reader_.Below(strides.size())] =
              reader_.OneIn(4) ? OddNumber(reader_) : reader_.Below(4) - 1;
        }
        return strides;
      }
    }
  }

  /// Dims in any order, with gaps between.
  Strides SpacedStrides(const Dims& dims) {
    Strides strides = Strides::Filled(dims.size(), 0);
    std::vector<int> order;
    for (int i = 0; i < dims.size(); ++i) {
      order.insert(order.begin() + reader_.Below(i + 1), i);
    }
    std::int64_t step = 1 + reader_.Below(2);
    for (const int dim : order) {
      strides[dim] = step;
      const bool is_small = dims[dim] >= 0 && dims[dim] <= kMostElements && step < kMostElements;
      step *= is_small ? dims[dim] + reader_.Below(2) : 1;
    }
    return strides;
  }

  DataType TypeOf(const TensorSpec& spec) {
    if (reader_.OneIn(64)) {
      return static_cast<DataType>(reader_.Below(kDataTypeCount));
    }
    return spec.type_parameter < 0 ? spec.fixed_type : row_.types[spec.type_parameter];
  }

  void MakeInputs() {
    for (const TensorSpec& spec : op_.inputs) {
      inputs_.push_back(
          reader_.OneIn(spec.optional ? 3 : 64) ? Given() : Tensor(spec, DimsOf(spec), nullptr));
    }
    while (reader_.OneIn(64) && !inputs_.empty()) {
      inputs_.pop_back();
    }
  }

  void MakeOutputs(const Result<std::vector<Dims>>& inferred) {
    for (std::size_t i = 0; i < op_.outputs.size(); ++i) {
      const TensorSpec& spec = op_.outputs[i];
      if (reader_.OneIn(spec.optional ? 3 : 64)) {
        outputs_.emplace_back();
        continue;
      }
      Dims dims = inferred.ok() && i < inferred->size() ? (*inferred)[i] : DimsOf(spec);
      const Given* shared = nullptr;
      if (spec.in_place_of >= 0 && reader_.OneIn(2)) {
        shared = At(spec.in_place_of);
      } else if (reader_.OneIn(12)) {
        shared = At(reader_.Below(static_cast<int>(inputs_.size())));
      }
      outputs_.push_back(Tensor(spec, dims, shared));
      outputs_.back().ref.accumulate = reader_.OneIn(6);
    }
  }

  [[nodiscard]] const Given* At(int input) const {
    return input < static_cast<int>(inputs_.size()) ? &inputs_[input] : nullptr;
  }

  /// A tensor in a block of its own, or, where it has room there, in that of another.
  Given Tensor(const TensorSpec& spec, Dims dims, const Given* shared) {
    if (dims.size() > 0 && reader_.OneIn(32)) {
      dims[reader_.Below(dims.size())] = reader_.OneIn(2) ? 0 : OddNumber(reader_);
    }
    if (is_empty_ && dims.size() > 1) {  // where other dims may be as large as they like
      dims[0] = 0;
    }
    if (reader_.OneIn(64)) {
      dims.push_back(1 + reader_.Below(2));
    }
    const bool is_twin = shared != nullptr && shared->ref.present && reader_.OneIn(2);
    Given given;
    given.ref =
        TensorRef(TypeOf(spec), nullptr, dims, is_twin ? shared->ref.strides : StridesOf(dims));
    const auto size = static_cast<std::int64_t>(SizeOf(given.ref.type));
    const std::int64_t count = NumElements(dims);
    given.must_be_refused = count < 0;
    if (count <= 0 || given.ref.strides.size() != dims.size()) {
      return given;
    }
    const std::vector<std::int64_t> offsets = Offsets(given.ref, count);
    if (offsets.empty()) {  // more than this test has memory for: there is none
      given.must_be_refused = true;
      return given;
    }
    const auto [first, last] = std::ranges::minmax(offsets);
    const std::int64_t shift = reader_.OneIn(64) ? 1 : 0;  // not aligned
    const std::int64_t bytes = (last - first + 1) * size + shift;
    given.must_be_refused = shift != 0;
    const bool has_room = shared != nullptr && shared->block != nullptr &&
                          static_cast<std::size_t>(bytes) <= shared->block->size;
    given.block = has_room ? shared->block : NewBlock(static_cast<std::size_t>(bytes));
    given.ref.data = given.block->bytes.get() + shift - first * size;
    for (const std::int64_t offset : offsets) {
      given.elements.push_back(static_cast<std::size_t>((offset - first) * size + shift));
    }
    return given;
  }

  /// The offset of each element, counted in elements; nothing where they are many or far apart.
  static std::vector<std::int64_t> Offsets(const TensorRef& tensor, std::int64_t count) {
    std::vector<std::int64_t> offsets = {0};
    if (count > kMostElements) {
      return {};
    }
    for (int i = 0; i < tensor.rank(); ++i) {
      std::vector<std::int64_t> next;
      for (const std::int64_t offset : offsets) {
        for (std::int64_t index = 0; index < tensor.dims[i]; ++index) {
          std::int64_t step = 0;
          if (__builtin_mul_overflow(index, tensor.strides[i], &step) ||
              __builtin_add_overflow(step, offset, &step) || step < -4 * kMostElements ||
              step > 4 * kMostElements) {
            return {};
          }
          next.push_back(step);
        }
      }
      offsets = std::move(next);
    }
    return offsets;
  }

  Block* NewBlock(std::size_t size) {
    blocks_.push_back(std::make_unique<Block>(size));
    for (std::size_t i = 0; i < size; ++i) {
      // Numbers of every type that are near 1 and differ.
      blocks_.back()->bytes[i] = static_cast<std::uint8_t>(i % 2 == 0 ? reader_.Byte() : 0x3F);
    }
    return blocks_.back().get();
  }

  void Remember() {
    for (const std::unique_ptr<Block>& block : blocks_) {
      block->before.assign(block->bytes.get(), block->bytes.get() + block->size);
      block->may_change.assign(block->size, false);
    }
    for (const Given& output : outputs_) {
      for (const std::size_t element : output.elements) {
        std::fill_n(
            output.block->may_change.begin() + static_cast<std::ptrdiff_t>(element),
            SizeOf(output.ref.type), true);
      }
    }
  }

  void CheckMemory(const Status& status) const {
    for (const std::unique_ptr<Block>& block : blocks_) {
      for (std::size_t i = 0; i < block->size; ++i) {
        const bool is_same = block->bytes[i] == block->before[i];
        Expect(is_same || status.ok(), "refused, but wrote");
        Expect(is_same || block->may_change[i], "wrote beside the elements of its outputs");
      }
    }
  }

  void CheckRefusals(const Status& status, const Result<std::vector<Dims>>& dims) const {
    if (!status.ok()) {
      Expect(!status.message().empty(), "refused without a sentence");
      Expect(status.code() != StatusCode::kInternal, "refused as a fault: " + status.message());
      return;
    }
    Expect(dims.ok(), "ran, where no shapes could be inferred");
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Given& output = outputs_[i];
      Expect(
          !output.ref.present || output.ref.dims == (*dims)[i],
          "ran with an output of other dims than were inferred");
      Expect(!output.ref.present || !output.must_be_refused, "wrote to what is no memory");
      Expect(!OverlapsItself(output), "wrote two elements to one place");
      for (std::size_t j = 0; j < inputs_.size(); ++j) {
        const bool may = op_.outputs[i].in_place_of == static_cast<int>(j) &&
                         AreTwins(output.ref, inputs_[j].ref);
        Expect(may || !Overlap(output, inputs_[j]), "wrote to an input");
      }
      for (std::size_t j = 0; j < i; ++j) {
        Expect(!Overlap(output, outputs_[j]), "wrote two outputs to one place");
      }
    }
  }

  static bool AreTwins(const TensorRef& a, const TensorRef& b) {
    return a.data == b.data && a.type == b.type && a.dims == b.dims;
  }

  static std::vector<bool> BytesOf(const Given& tensor) {
    std::vector<bool> bytes(tensor.block == nullptr ? 0 : tensor.block->size);
    for (const std::size_t element : tensor.elements) {
      std::fill_n(
          bytes.begin() + static_cast<std::ptrdiff_t>(element), SizeOf(tensor.ref.type), true);
    }
    return bytes;
  }

  static bool Overlap(const Given& a, const Given& b) {
    if (a.block == nullptr || a.block != b.block) {
      return false;
    }
    const std::vector<bool> of_a = BytesOf(a);
    const std::vector<bool> of_b = BytesOf(b);
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      if (of_a[i] && of_b[i]) {
        return true;
      }
    }
    return false;
  }

  static bool OverlapsItself(const Given& tensor) {
    std::vector<std::size_t> elements = tensor.elements;
    std::ranges::sort(elements);
    return std::ranges::adjacent_find(elements) != elements.end();
  }

  Reader& reader_;
  const Row& row_;
  const OpSchema& op_;
  std::shared_ptr<void> attributes_;
  bool is_empty_ = false;
  std::vector<Dims> symbols_;
  std::vector<std::int64_t> integers_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Given> inputs_;
  std::vector<Given> outputs_;
};

}  // namespace
}  // namespace gradsmith::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradsmith::fuzz::Reader reader(data, size);
  gradsmith::fuzz::Problem(reader).Run();
  return 0;
}
