#ifndef GRADSMITH_TESTS_REFERENCE_RANDOM_H_
#define GRADSMITH_TESTS_REFERENCE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gradsmith::reference {

/// Random is a stream of numbers that depends on a name only: the same on every machine, whichever
/// tests ran before. (SplitMix64 by Steele, Lea and Flood, seeded with FNV-1a.)
class Random {
 public:
  explicit Random(std::string_view name) {
    for (const char character : name) {
      state_ = (state_ ^ static_cast<unsigned char>(character)) * 0x100000001B3U;
    }
  }

  std::uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }

  /// Integer returns one of low, ..., high.
  std::int64_t Integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(high - low + 1));
  }

  /// Real returns a number in [low, high).
  double Real(double low, double high) {
    return low + (high - low) * static_cast<double>(Next() >> 11U) * 0x1.0p-53;
  }

  bool Chance(double probability) { return Real(0, 1) < probability; }

  template <typename T>
  const T& Choice(const std::vector<T>& values) {
    return values[Next() % values.size()];
  }

  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[Next() % i]);
    }
  }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325U;
};

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_RANDOM_H_
