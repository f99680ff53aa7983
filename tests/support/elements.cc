#include "support/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace gradsmith::support {

namespace {

/// A binary interchange format: sign, biased exponent, significand without its leading bit.
struct Format {
  int size;
  int digits;
  int max_exponent;

  [[nodiscard]] int MinExponent() const { return 1 - max_exponent; }
  [[nodiscard]] int StoredDigits() const { return digits - 1; }
  [[nodiscard]] bool IsDouble() const { return size == sizeof(double); }
};

[[noreturn]] void ThrowWithoutFormat(DataType type) {
  throw std::invalid_argument(std::string(ToString(type)) + " has no floating format");
}

Format FormatOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return {4, 24, 127};
    case DataType::kDouble:
      return {8, 53, 1023};
    case DataType::kMLFloat16:
      return {2, 11, 15};
    case DataType::kBFloat16:
      return {2, 8, 127};
    default:
      ThrowWithoutFormat(type);
  }
}

// Tests convert many millions of numbers: the functions of <cmath> would take half of their time,
// and float, which the language has, as much again as what is tested.
constexpr int kDoubleBias = 1023;
constexpr int kDoubleStoredDigits = 52;

/// 2 to the power of an exponent that normal doubles have.
double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(
      static_cast<std::uint64_t>(exponent + kDoubleBias) << kDoubleStoredDigits);
}

/// The exponent of a finite number; for zero and subnormal doubles, the least of the normal ones.
int ExponentOf(double value) {
  const auto magnitude = std::bit_cast<std::uint64_t>(std::abs(value));
  return std::max(static_cast<int>(magnitude >> kDoubleStoredDigits), 1) - kDoubleBias;
}

/// Calls visit with a value of the integer type, or with a bool.
template <typename Visit>
void VisitInteger(DataType type, Visit visit) {
  switch (type) {
#define GRADSMITH_CASE(enumerator, type, name, dlpack_code, torch_type)   \
  case DataType::enumerator:                                              \
    /* NOLINTBEGIN(bugprone-macro-parentheses) type is the name of one */ \
    if constexpr (std::is_integral_v<type>) {                             \
      visit(type{});                                                      \
    }                                                                     \
    /* NOLINTEND(bugprone-macro-parentheses) */                           \
    break;
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_CASE)
#undef GRADSMITH_CASE
  }
}

/// The exponent of the last digit that the format keeps of `value`.
int LastDigit(const Format& format, double value) {
  return std::max(ExponentOf(value), format.MinExponent()) - format.StoredDigits();
}

std::uint64_t BitsOf(const Format& format, double value) {
  const std::uint64_t sign = std::signbit(value) ? 1 : 0;
  const std::uint64_t infinity = static_cast<std::uint64_t>(2 * format.max_exponent + 1)
                                 << format.StoredDigits();
  std::uint64_t magnitude = 0;
  if (std::isnan(value)) {
    magnitude = infinity | (std::uint64_t{1} << (format.StoredDigits() - 1));
  } else if (std::isinf(value)) {
    magnitude = infinity;
  } else if (format.IsDouble()) {
    magnitude = std::bit_cast<std::uint64_t>(std::abs(value));
  } else if (value != 0) {
    const int last = LastDigit(format, value);
    // The leading bit of a normal number adds one to the exponent field below it.
    const auto significand = static_cast<std::uint64_t>(std::abs(value) * PowerOfTwo(-last));
    const int exponent = last + format.StoredDigits() - format.MinExponent();
    magnitude = (static_cast<std::uint64_t>(exponent) << format.StoredDigits()) + significand;
  }
  return (sign << (8 * format.size - 1)) | magnitude;
}

}  // namespace

int Digits(DataType type) {
  return FormatOf(type).digits;
}

double UnitRoundoff(DataType type) {
  return std::ldexp(1, -Digits(type));
}

double SmallestPositive(DataType type) {
  const Format format = FormatOf(type);
  return std::ldexp(1, format.MinExponent() - format.StoredDigits());
}

double OverflowLimit(DataType type) {
  return std::ldexp(1, FormatOf(type).max_exponent + 1);
}

double Round(DataType type, double value) {
  if (!IsFloating(type)) {
    return type == DataType::kBool ? static_cast<double>(value != 0) : std::trunc(value);
  }
  if (value == 0 || !std::isfinite(value) || type == DataType::kDouble) {
    return value;
  }
  if (type == DataType::kFloat) {
    return static_cast<double>(static_cast<float>(value));
  }
  const Format format = FormatOf(type);
  const int last = LastDigit(format, value);
  const double rounded = std::nearbyint(value * PowerOfTwo(-last)) * PowerOfTwo(last);
  const bool overflow = ExponentOf(rounded) > format.max_exponent;
  return overflow ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

void Encode(DataType type, double value, std::byte* element) {
  if (!IsFloating(type)) {
    VisitInteger(type, [&]<typename T>(T integer) {
      integer = static_cast<T>(value);
      std::memcpy(element, &integer, sizeof(T));
    });
    return;
  }
  if (type == DataType::kFloat) {
    const auto stored = static_cast<float>(value);
    std::memcpy(element, &stored, sizeof(stored));
    return;
  }
  const Format format = FormatOf(type);
  const std::uint64_t bits = BitsOf(format, Round(type, value));
  std::memcpy(element, &bits, format.size);  // little-endian, as every platform of the library is
}

double Decode(DataType type, const std::byte* element) {
  if (!IsFloating(type)) {
    double value = 0;
    VisitInteger(type, [&]<typename T>(T integer) {
      // A byte that is neither true nor false is read as the number that it is.
      using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
      auto stored = static_cast<Stored>(integer);
      std::memcpy(&stored, element, sizeof(T));
      value = static_cast<double>(stored);
    });
    return value;
  }
  if (type == DataType::kFloat) {
    float stored = 0;
    std::memcpy(&stored, element, sizeof(stored));
    return static_cast<double>(stored);
  }
  const Format format = FormatOf(type);
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, format.size);
  const bool negative = (bits >> (8 * format.size - 1)) != 0;
  const std::uint64_t stored = bits & ((std::uint64_t{1} << format.StoredDigits()) - 1);
  const int field = static_cast<int>(
      (bits >> format.StoredDigits()) & static_cast<std::uint64_t>(2 * format.max_exponent + 1));
  double magnitude = 0;
  if (field == 2 * format.max_exponent + 1) {
    magnitude = stored == 0 ? std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::quiet_NaN();
  } else if (format.IsDouble()) {
    std::memcpy(&magnitude, element, sizeof(magnitude));
    magnitude = std::abs(magnitude);
  } else {
    const double leading = field == 0 ? 0 : PowerOfTwo(format.StoredDigits());
    const int exponent = std::max(field, 1) - format.max_exponent - format.StoredDigits();
    magnitude = (leading + static_cast<double>(stored)) * PowerOfTwo(exponent);
  }
  return negative ? -magnitude : magnitude;
}

std::vector<double> RoundAll(DataType type, std::vector<double> values) {
  std::transform(values.begin(), values.end(), values.begin(), [&](double value) {
    return Round(type, value);
  });
  return values;
}

}  // namespace gradsmith::support
