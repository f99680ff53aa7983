#ifndef GRADSMITH_TESTS_SUPPORT_LARGE_MEMORY_H_
#define GRADSMITH_TESTS_SUPPORT_LARGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gradsmith/types.h"
#include "support/memory.h"

/// Tensors of more elements than 32 bits count: the host sees them in blocks.
namespace gradsmith::support {

/// FreeBytes returns how much memory of a device nothing holds; of the host, what the system says
/// is available.
std::size_t FreeBytes(Device device);

/// LargeMemory is elements on a device that follow each other. What is written and what is expected
/// repeats after a period of an odd number, or an odd multiple of some: an element that stands
/// where 2^31 or 2^32 others should be between the two is another one.
class LargeMemory {
 public:
  /// Every bit is set.
  LargeMemory(Device device, DataType type, std::int64_t count);

  [[nodiscard]] std::byte* data() const { return memory_->Address(); }
  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] std::int64_t count() const { return count_; }

  /// Writes values over and over, from the first element to the last.
  void Fill(std::span<const double> period);
  /// Does so with the elements from `begin` to `end`, of which the first has the first value.
  void Fill(std::span<const double> period, std::int64_t begin, std::int64_t end);
  /// Writes value(element) for all elements.
  void FillWith(const std::function<double(std::int64_t element)>& value);

  /// Compares all elements, bit for bit, with values over and over. Returns what the first that
  /// differs is and should be; empty where none does.
  [[nodiscard]] std::string Difference(std::span<const double> period) const;
  /// Does so with the elements from `begin` to `end`, of which the first should be the first value.
  [[nodiscard]] std::string
  Difference(std::span<const double> period, std::int64_t begin, std::int64_t end) const;
  /// Compares all elements with value(element).
  [[nodiscard]] std::string DifferenceFrom(
      const std::function<double(std::int64_t element)>& value) const;

  /// Returns the values of the elements from `begin` to `end`.
  [[nodiscard]] std::vector<double> Values(std::int64_t begin, std::int64_t end) const;

 private:
  using Bytes = std::vector<std::byte>;

  /// How many elements a block has at most.
  static constexpr std::int64_t kBlock = std::int64_t{1} << 23U;

  [[nodiscard]] std::size_t BytesOf(std::int64_t count) const;
  /// Some periods one after the other, as long as a block or shorter; one at least.
  [[nodiscard]] Bytes Repeated(std::span<const double> period) const;
  [[nodiscard]] Bytes Encoded(
      const std::function<double(std::int64_t element)>& value,
      std::int64_t begin,
      std::int64_t end) const;
  void Write(std::int64_t begin, std::span<const std::byte> bytes);
  [[nodiscard]] Bytes Read(std::int64_t begin, std::int64_t end) const;
  /// Compares the elements from `begin` on with bytes.
  [[nodiscard]] std::string Compare(std::int64_t begin, std::span<const std::byte> expected) const;

  Device device_;
  DataType type_;
  std::int64_t count_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_LARGE_MEMORY_H_
