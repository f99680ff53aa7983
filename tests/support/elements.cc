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

  [[nodiscard]] constexpr int MinExponent() const { return 1 - max_exponent; }
  [[nodiscard]] constexpr int StoredDigits() const { return digits - 1; }
};

constexpr Format kHalf = {2, 11, 15};
constexpr Format kBFloat16 = {2, 8, 127};
constexpr Format kFloat = {4, 24, 127};
constexpr Format kDouble = {8, 53, 1023};

[[noreturn]] void ThrowWithoutFormat(DataType type) {
  throw std::invalid_argument(std::string(ToString(type)) + " has no floating format");
}

const Format& FormatOf(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return kFloat;
    case DataType::kDouble:
      return kDouble;
    case DataType::kMLFloat16:
      return kHalf;
    case DataType::kBFloat16:
      return kBFloat16;
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

/// The number of a format of 16 bits that is nearest to `value`.
template <const Format& kFormat>
double RoundTo16Bits(double value) {
  if (value == 0 || !std::isfinite(value)) {
    return value;
  }
  const int last = LastDigit(kFormat, value);
  const double rounded = std::nearbyint(value * PowerOfTwo(-last)) * PowerOfTwo(last);
  const bool overflow = ExponentOf(rounded) > kFormat.max_exponent;
  return overflow ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

/// The bits of a number that is one of a format of 16 bits.
template <const Format& kFormat>
std::uint16_t BitsOf(double value) {
  constexpr unsigned kInfinity = static_cast<unsigned>(2 * kFormat.max_exponent + 1)
                                 << kFormat.StoredDigits();
  constexpr unsigned kSign = 1U << 15U;
  unsigned magnitude = 0;
  if (std::isnan(value)) {
    magnitude = kInfinity | 1U << (kFormat.StoredDigits() - 1);
  } else if (std::isinf(value)) {
    magnitude = kInfinity;
  } else if (value != 0) {
    const int last = LastDigit(kFormat, value);
    // The leading bit of a normal number adds one to the exponent field below it.
    const auto significand = static_cast<unsigned>(std::abs(value) * PowerOfTwo(-last));
    const int exponent = last + kFormat.StoredDigits() - kFormat.MinExponent();
    magnitude = (static_cast<unsigned>(exponent) << kFormat.StoredDigits()) + significand;
  }
  return static_cast<std::uint16_t>((std::signbit(value) ? kSign : 0) | magnitude);
}

template <const Format& kFormat>
double ValueOf(std::uint16_t bits) {
  const bool negative = (bits >> 15U) != 0;
  const unsigned stored = bits & ((1U << kFormat.StoredDigits()) - 1);
  const int field = static_cast<int>(
      static_cast<unsigned>(bits) >> kFormat.StoredDigits() &
      static_cast<unsigned>(2 * kFormat.max_exponent + 1));
  double magnitude = 0;
  if (field == 2 * kFormat.max_exponent + 1) {
    magnitude = stored == 0 ? std::numeric_limits<double>::infinity()
                            : std::numeric_limits<double>::quiet_NaN();
  } else {
    const double leading = field == 0 ? 0 : PowerOfTwo(kFormat.StoredDigits());
    const int exponent = std::max(field, 1) - kFormat.max_exponent - kFormat.StoredDigits();
    magnitude = (leading + static_cast<double>(stored)) * PowerOfTwo(exponent);
  }
  return negative ? -magnitude : magnitude;
}

template <typename T>
void Write(T value, std::byte* element) {
  std::memcpy(element, &value, sizeof(T));  // little-endian, as every platform of the library is
}

template <typename T>
T Read(const std::byte* element) {
  T value{};
  std::memcpy(&value, element, sizeof(T));
  return value;
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
  switch (type) {
    case DataType::kDouble:
      return value;
    case DataType::kFloat:
      return static_cast<double>(static_cast<float>(value));
    case DataType::kMLFloat16:
      return RoundTo16Bits<kHalf>(value);
    case DataType::kBFloat16:
      return RoundTo16Bits<kBFloat16>(value);
    case DataType::kBool:
      return static_cast<double>(value != 0);
    default:
      return std::trunc(value);
  }
}

void Encode(DataType type, double value, std::byte* element) {
  switch (type) {
    case DataType::kDouble:
      Write(value, element);
      break;
    case DataType::kFloat:
      Write(static_cast<float>(value), element);
      break;
    case DataType::kMLFloat16:
      Write(BitsOf<kHalf>(RoundTo16Bits<kHalf>(value)), element);
      break;
    case DataType::kBFloat16:
      Write(BitsOf<kBFloat16>(RoundTo16Bits<kBFloat16>(value)), element);
      break;
    default:
      VisitInteger(type, [&]<typename T>(T /*type*/) { Write(static_cast<T>(value), element); });
  }
}

double Decode(DataType type, const std::byte* element) {
  switch (type) {
    case DataType::kDouble:
      return Read<double>(element);
    case DataType::kFloat:
      return static_cast<double>(Read<float>(element));
    case DataType::kMLFloat16:
      return ValueOf<kHalf>(Read<std::uint16_t>(element));
    case DataType::kBFloat16:
      return ValueOf<kBFloat16>(Read<std::uint16_t>(element));
    default:
      break;
  }
  double value = 0;
  VisitInteger(type, [&]<typename T>(T /*type*/) {
    // A byte that is neither true nor false is read as the number that it is.
    using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    value = static_cast<double>(Read<Stored>(element));
  });
  return value;
}

std::vector<double> RoundAll(DataType type, std::vector<double> values) {
  std::transform(values.begin(), values.end(), values.begin(), [&](double value) {
    return Round(type, value);
  });
  return values;
}

}  // namespace gradsmith::support
