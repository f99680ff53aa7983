#ifndef GRADSMITH_CORE_PROBLEM_KEY_H_
#define GRADSMITH_CORE_PROBLEM_KEY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// ProblemKey is everything on which the choice of a plan depends, as a list of numbers. It never
/// allocates, so that a call whose plan is ready only compares. Keys of more than kCapacity words
/// are told apart by two hashes of what they have more; their choices are not found in files.
class ProblemKey {  // NOLINT(cppcoreguidelines-pro-type-member-init): see words_
 public:
  static constexpr int kCapacity = 96;

  void Add(std::int64_t word) {
    if (size_ < kCapacity) {
      words_[size_++] = word;
    } else {
      // There is no room: the last word stands for all from there on, beside the hash.
      words_[kCapacity - 1] = Fold(words_[kCapacity - 1], word);
    }
    hash_ = (hash_ ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15U;
    hash_ ^= hash_ >> 29U;
  }
  void Add(const IntList& list) {
    Add(list.size());
    for (const std::int64_t value : list) {
      Add(value);
    }
  }

  /// A text of any length, as one word: its hash.
  void AddText(std::string_view text) { Add(HashOfText(text)); }
  static constexpr std::int64_t HashOfText(std::string_view text) {
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const char character : text) {
      hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3U;
    }
    return static_cast<std::int64_t>(hash);
  }

  [[nodiscard]] std::uint64_t hash() const { return hash_; }

  /// Words in hexadecimal, with dots between: what the cache file stores.
  [[nodiscard]] std::string Text() const;
  /// FromText is the key of a text; an empty key where it is none.
  static ProblemKey FromText(std::string_view text);
  [[nodiscard]] bool empty() const { return size_ == 0; }

  friend bool operator==(const ProblemKey& a, const ProblemKey& b) {
    return a.hash_ == b.hash_ && a.size_ == b.size_ &&
           std::memcmp(a.words_.data(), b.words_.data(), a.size_ * sizeof(std::int64_t)) == 0;
  }

 private:
  static std::int64_t Fold(std::int64_t last, std::int64_t word) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(last ^ word) * 0x100000001B3U);
  }

  std::array<std::int64_t, kCapacity> words_;  // only the first size_ are ever read
  std::uint64_t hash_ = 0x2545F4914F6CDD1DU;
  int size_ = 0;
};

struct ProblemKeyHash {
  std::size_t operator()(const ProblemKey& key) const { return key.hash(); }
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_PROBLEM_KEY_H_
