#include "core/checked_call.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/attribute_value.h"

namespace gradsmith::internal {

namespace {

using Words = CheckedCall::Words;

/// WordWriter adds words while there is room.
class WordWriter {
 public:
  explicit WordWriter(Words& words) : words_(words) {}

  void Add(std::integral auto word) {
    if (size_ < words_.all.size()) {
      words_.all[size_] = static_cast<std::int64_t>(word);
    }
    ++size_;
  }
  void Add(double number) { Add(std::bit_cast<std::int64_t>(number)); }
  void Add(const void* address) { Add(std::bit_cast<std::intptr_t>(address)); }
  template <typename Number>
  void Add(const BasicList<Number>& list) {
    Add(list.size());
    AddNumbers(list);
  }
  template <typename Number>
  void AddNumbers(const BasicList<Number>& list) {
    for (const Number number : list) {
      Add(number);
    }
  }

  /// Finish sets how many there are: none where not all had room.
  void Finish() { words_.size = size_ <= words_.all.size() ? size_ : 0; }

 private:
  Words& words_;
  std::size_t size_ = 0;
};

/// AddValue adds whether there is a value, and the value.
template <typename T>
void AddValue(const AttributeSpec& spec, const void* attributes, WordWriter& words) {
  const T* value = FindAttribute<T>(spec, attributes);
  if (spec.optional) {
    words.Add(value != nullptr);
  }
  if (value != nullptr) {
    words.Add(*value);
  }
}

void AddAttribute(const AttributeSpec& spec, const void* attributes, WordWriter& words) {
  switch (spec.kind) {
    case AttributeKind::kInt:
      AddValue<std::int64_t>(spec, attributes, words);
      break;
    case AttributeKind::kFloat:
      AddValue<double>(spec, attributes, words);
      break;
    case AttributeKind::kInts:
      AddValue<IntList>(spec, attributes, words);
      break;
    case AttributeKind::kFloats:
      AddValue<FloatList>(spec, attributes, words);
      break;
    case AttributeKind::kEnum:
      words.Add(AttributeAt<std::uint8_t>(spec, attributes));
      break;
    case AttributeKind::kBool:
      AddValue<bool>(spec, attributes, words);
      break;
    case AttributeKind::kString:
      break;  // GoesByWords: there is none
  }
}

/// TraitsOf packs what a tensor has beside its dims, strides, address and device.
std::int64_t TraitsOf(const ConstTensorRef& tensor) {
  return std::int64_t{tensor.present} | std::int64_t{tensor.accumulate} << 1 |
         std::int64_t{tensor.dims.too_long()} << 2 | std::int64_t{tensor.strides.too_long()} << 3 |
         static_cast<std::int64_t>(tensor.type) << 8 |
         static_cast<std::int64_t>(tensor.device.backend) << 16 |
         std::int64_t{tensor.dims.size()} << 24 | std::int64_t{tensor.strides.size()} << 32;
}

template <typename Ref>
void AddTensors(std::span<const Ref> tensors, WordWriter& words) {
  words.Add(tensors.size());
  for (const Ref& tensor : tensors) {
    words.Add(TraitsOf(tensor));
    words.Add(tensor.device.index);
    words.AddNumbers(tensor.dims);
    words.AddNumbers(tensor.strides);
  }
}

/// Whether the checks go by words alone. An op that is spelled out for lists of one length is made
/// for each call, a shape that an input holds lies in memory, and texts have any length.
bool GoesByWords(const OpSchema& op) {
  const auto holds_shape = [](const TensorSpec& spec) { return !spec.shape_of.empty(); };
  const auto is_text = [](const AttributeSpec& spec) {
    return spec.kind == AttributeKind::kString;
  };
  return op.list_length == 0 && std::none_of(op.inputs.begin(), op.inputs.end(), holds_shape) &&
         std::none_of(op.attributes.begin(), op.attributes.end(), is_text);
}

/// HashOf adds up products, which wait for nothing. Words that hash alike are compared anyway.
std::uint64_t HashOf(const Words& words) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  std::uint64_t factor = kOdd;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size; ++i, factor += 2 * kOdd) {
    sum += static_cast<std::uint64_t>(words.all[i]) * factor;
  }
  return (sum ^ sum >> 32U) * kOdd;
}

/// Place remembers one call, which a later one takes over.
struct Place {
  std::atomic_flag is_taken;  // while a thread reads or writes the words
  std::size_t size = 0;
  std::array<std::int64_t, CheckedCall::kMaxWords> words = {};
};

/// PlaceOf returns where a hash says that words are remembered. No memory is allocated, and nothing
/// is destroyed: calls may come until the process ends, and a plug-in is unloaded as any other.
Place& PlaceOf(const Words& words) {
  constexpr int kBits = 8;
  static constinit std::array<Place, 1U << kBits> places;  // 324 KiB, zero until they are written
  return places[HashOf(words) >> (64 - kBits)];
}

/// PlaceLock has a place for itself, unless another thread does: it never waits.
class PlaceLock {
 public:
  explicit PlaceLock(Place& place)
      : place_(place.is_taken.test_and_set(std::memory_order_acquire) ? nullptr : &place) {}
  ~PlaceLock() {
    if (place_ != nullptr) {
      place_->is_taken.clear(std::memory_order_release);
    }
  }
  PlaceLock(const PlaceLock&) = delete;
  PlaceLock& operator=(const PlaceLock&) = delete;
  PlaceLock(PlaceLock&&) = delete;
  PlaceLock& operator=(PlaceLock&&) = delete;

  [[nodiscard]] Place* place() const { return place_; }

 private:
  Place* place_;
};

}  // namespace

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): words are written before they are read
CheckedCall::CheckedCall(
    const Row& row,
    Device device,
    const void* attributes,
    std::span<const ConstTensorRef> inputs,
    std::span<const TensorRef> outputs) {
  const OpSchema& op = *row.op;
  if (!GoesByWords(op)) {
    return;
  }
  WordWriter words(words_);
  words.Add(&row);
  words.Add(&op);
  words.Add(op.inputs.data());
  words.Add(op.symbols.data());
  words.Add(static_cast<int>(device.backend));
  words.Add(device.index);
  for (const AttributeSpec& spec : op.attributes) {
    AddAttribute(spec, attributes, words);
  }
  AddTensors(inputs, words);
  AddTensors(outputs, words);
  words.Finish();
}

bool CheckedCall::HasPassed() const {
  if (words_.size == 0) {
    return false;
  }
  const PlaceLock lock(PlaceOf(words_));
  const Place* const place = lock.place();
  return place != nullptr && place->size == words_.size &&
         std::memcmp(place->words.data(), words_.all.data(), words_.size * sizeof(std::int64_t)) ==
             0;
}

void CheckedCall::NotePassed() const {
  if (words_.size == 0) {
    return;
  }
  const PlaceLock lock(PlaceOf(words_));
  if (Place* const place = lock.place()) {
    place->size = words_.size;
    std::copy_n(words_.all.begin(), words_.size, place->words.begin());
  }
}

}  // namespace gradsmith::internal
