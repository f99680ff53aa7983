#ifndef GRADSMITH_CORE_TILES_H_
#define GRADSMITH_CORE_TILES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gradsmith::internal {

/// CeilDivide rounds a / b up, for a >= 0. A divisor of 0, the size of a piece of nothing, counts
/// as 1.
constexpr std::int64_t CeilDivide(std::int64_t a, std::int64_t b) {
  const std::int64_t divisor = b > 0 ? b : 1;
  return (a / divisor) + (a % divisor != 0 ? 1 : 0);
}

/// RoundUp returns the least multiple of b, which is not 0, that is not less than a.
constexpr std::size_t RoundUp(std::size_t a, std::size_t b) {
  return (a + b - 1) / b * b;
}

/// Range is the indices from begin to end, without end.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }

  friend bool operator==(const Range&, const Range&) = default;
};

/// Tiles cuts [0, total) into pieces of nearly the same size, none larger than `largest`.
class Tiles {
 public:
  Tiles(std::int64_t total, std::int64_t largest)
      : total_(total), count_(CeilDivide(total, largest)) {}

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t largest() const { return CeilDivide(total_, count_); }
  [[nodiscard]] Range operator[](std::int64_t i) const { return {Start(i), Start(i + 1)}; }

 private:
  /// The first total % count pieces are longer by one.
  [[nodiscard]] std::int64_t Start(std::int64_t i) const {
    return (i * (total_ / count_)) + std::min(i, total_ % count_);
  }

  std::int64_t total_;
  std::int64_t count_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_TILES_H_
