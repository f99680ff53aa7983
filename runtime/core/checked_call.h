#ifndef GRADSMITH_CORE_CHECKED_CALL_H_
#define GRADSMITH_CORE_CHECKED_CALL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gradsmith/schema.h"
#include "gradsmith/tensor.h"

namespace gradsmith::internal {

/// CheckedCall is everything that the checks of a call go by, but for addresses, as numbers. A
/// training loop makes the same calls in every step, and what has passed once need not be checked
/// again.
class CheckedCall {
 public:
  /// The call of a row, in a context that is on `device`.
  CheckedCall(
      const Row& row,
      Device device,
      const void* attributes,
      std::span<const ConstTensorRef> inputs,
      std::span<const TensorRef> outputs);

  /// Whether an equal call of this process has passed, as far as that is remembered.
  [[nodiscard]] bool HasPassed() const;
  /// NotePassed remembers that the call has passed its checks, where no other thread is at its
  /// place.
  void NotePassed() const;

  static constexpr std::size_t kMaxWords = 160;

  /// Words holds the numbers; it is empty where they are more than it can hold, or where the checks
  /// go by something else as well.
  struct Words {  // NOLINT(cppcoreguidelines-pro-type-member-init): see `all`
    std::array<std::int64_t, kMaxWords> all;  // only the first `size` are ever read
    std::size_t size = 0;
  };

 private:
  Words words_;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CHECKED_CALL_H_
