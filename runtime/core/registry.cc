#include "gradsmith/registry.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "core/exceptions.h"

namespace gradsmith {

namespace {

constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio

std::uint64_t WordAt(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

/// Looks at the length and at three words of the name: enough to spread real names, and its cost
/// does not grow.
std::uint64_t HashName(std::string_view name) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (name.size() < kWord) {
    std::uint64_t word = name.size();
    for (const char letter : name) {
      word = word << 8U | static_cast<unsigned char>(letter);
    }
    return word * kMultiplier;
  }
  const std::uint64_t first = WordAt(name.data());
  const std::uint64_t middle = WordAt(name.data() + (name.size() - kWord) / 2);
  const std::uint64_t last = WordAt(name.data() + (name.size() - kWord));
  return (first * kMultiplier) ^ (middle * 0xC2B2AE3D27D4EB4FU) ^ (last * 0x165667B19E3779F9U) ^
         name.size();
}

std::uint64_t Key(std::string_view op, std::span<const DataType> types, Backend backend) {
  std::uint64_t packed = static_cast<std::uint64_t>(backend) + 1;
  for (const DataType type : types) {
    packed = packed << 4U | (static_cast<std::uint64_t>(type) + 1);
  }
  const std::uint64_t hash = (HashName(op) ^ packed) * kMultiplier;
  return hash ^ (hash >> 32U);
}

std::uint64_t Key(const Row& row) {
  return Key(row.op->name, row.types, row.backend);
}

bool Matches(
    const Row& row,
    std::string_view op,
    std::span<const DataType> types,
    Backend backend) {
  return row.backend == backend && row.op->name == op &&
         std::equal(row.types.begin(), row.types.end(), types.begin(), types.end());
}

}  // namespace

const Row* Registry::Find(std::string_view op, std::span<const DataType> types, Backend backend)
    const {
  if (slots_.empty()) {
    return nullptr;
  }
  const std::uint64_t key = Key(op, types, backend);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = key & mask; slots_[i].row != nullptr; i = (i + 1) & mask) {
    if (slots_[i].key == key && Matches(*slots_[i].row, op, types, backend)) {
      return slots_[i].row;
    }
  }
  return nullptr;
}

Status Registry::Add(DispatchTable table) {
  return internal::CatchExceptions([&] {
    Registry extended = *this;
    for (const std::span<const Row> op_rows : table) {
      if (Status status = extended.AddRows(op_rows); !status.ok()) {
        return status;
      }
    }
    *this = std::move(extended);
    return Status();
  });
}

Status Registry::AddRows(std::span<const Row> rows) {
  for (const Row& row : rows) {
    if (const Row* other = Find(row.op->name, row.types, row.backend)) {
      return InvalidArgument(ToString(row) + " is registered already: " + ToString(*other));
    }
    rows_.push_back(&row);
    Insert(&row);
  }
  return {};
}

void Registry::Insert(const Row* row) {
  if (slots_.size() < 2 * rows_.size()) {
    Rehash();
    return;
  }
  const std::uint64_t key = Key(*row);
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = key & mask;
  while (slots_[i].row != nullptr) {
    i = (i + 1) & mask;
  }
  slots_[i] = {key, row};
}

void Registry::Rehash() {
  std::size_t size = 64;
  while (size < 2 * rows_.size()) {
    size *= 2;
  }
  slots_.assign(size, Slot{});
  for (const Row* row : rows_) {
    Insert(row);
  }
}

}  // namespace gradsmith
