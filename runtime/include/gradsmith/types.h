#ifndef GRADSMITH_TYPES_H_
#define GRADSMITH_TYPES_H_

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gradsmith/foreign_macros_off.h"
#include "gradsmith/language.h"

namespace gradsmith {

/// GRADSMITH_ELEMENT_TYPES calls X(enumerator of DataType, C++ type, name in `ops.yaml`, DLPack's
/// type code, PyTorch's ScalarType) for every element type, the floating ones first. It is made of
/// codegen/gradsmith_codegen/data_types.py by `pytest tests/codegen --refresh`. A bool is a byte.
#define GRADSMITH_ELEMENT_TYPES(X)            \
  X(kFloat, float, "float", 2, 6)             \
  X(kDouble, double, "double", 2, 7)          \
  X(kMLFloat16, MLFloat16, "MLFloat16", 2, 5) \
  X(kBFloat16, BFloat16, "BFloat16", 4, 15)   \
  X(kInt32, std::int32_t, "int32", 0, 3)      \
  X(kInt64, std::int64_t, "int64", 0, 4)      \
  X(kUint8, std::uint8_t, "uint8", 1, 0)      \
  X(kUint32, std::uint32_t, "uint32", 1, 28)  \
  X(kBool, bool, "bool", 6, 11)

/// DataType is the element type of a tensor.
enum class DataType : std::uint8_t {
#define GRADSMITH_ENUMERATOR(enumerator, type, name, dlpack_code, torch_type) enumerator,
  GRADSMITH_ELEMENT_TYPES(GRADSMITH_ENUMERATOR)
#undef GRADSMITH_ENUMERATOR
};

/// kDataTypeCount is how many element types there are.
inline constexpr int kDataTypeCount = [] {
  int count = 0;
#define GRADSMITH_COUNT(enumerator, type, name, dlpack_code, torch_type) ++count;
  GRADSMITH_ELEMENT_TYPES(GRADSMITH_COUNT)
#undef GRADSMITH_COUNT
  return count;
}();

/// IsFloating returns whether elements of the type are real numbers, as those of whatever is
/// differentiated are. Of the others, integers and truth values, nothing is rounded.
constexpr bool IsFloating(DataType type) {
  constexpr std::array<bool, kDataTypeCount> kIsFloating = {
#define GRADSMITH_IS_FLOATING(enumerator, type, name, dlpack_code, torch_type) \
  (dlpack_code) == 2 || (dlpack_code) == 4,
      GRADSMITH_ELEMENT_TYPES(GRADSMITH_IS_FLOATING)
#undef GRADSMITH_IS_FLOATING
  };
  const auto index = static_cast<std::size_t>(type);
  return index < kIsFloating.size() && kIsFloating.at(index);
}

/// kFloatingTypeCount is how many of the element types are floating: the first ones.
inline constexpr int kFloatingTypeCount = [] {
  int count = 0;
  while (count < kDataTypeCount && IsFloating(static_cast<DataType>(count))) {
    ++count;
  }
  return count;
}();

namespace internal {

/// CutToOdd returns `value` as a float, cut to kDigits binary digits after the leading one; the
/// last of them is set where it is not exact. Rounding that to a format with two digits fewer, or
/// less, is rounding `value` once: the last digit keeps it off ties. (Boldo and Melquiond,
/// "Emulation of FMA and correctly rounded sums", 2008.)
template <int kDigits>
constexpr float CutToOdd(double value) {
  constexpr std::uint64_t kCut = (std::uint64_t{1} << (52 - kDigits)) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return static_cast<float>(std::bit_cast<double>((bits | ((bits & kCut) + kCut)) & ~kCut));
}

}  // namespace internal

/// MLFloat16 stores an IEEE 754 binary16 number. It is layout-compatible with `__half`, and
/// arithmetic is done in float.
struct MLFloat16 {
  std::uint16_t bits = 0;

  constexpr MLFloat16() = default;
  /// The number is rounded to the nearest, ties to even. Overflow becomes infinity, NaN stays NaN.
  explicit constexpr MLFloat16(float value) : bits(FromFloat(value)) {}
  /// The number is rounded once, as from float.
  explicit constexpr MLFloat16(double value) : bits(FromFloat(internal::CutToOdd<12>(value))) {}
  explicit constexpr MLFloat16(std::integral auto value) : MLFloat16(static_cast<double>(value)) {}
  explicit constexpr operator float() const { return ToFloat(bits); }

  static constexpr MLFloat16 FromBits(std::uint16_t bits) {
    MLFloat16 result;
    result.bits = bits;
    return result;
  }

 private:
  static constexpr std::uint16_t FromFloat(float value);
  static constexpr float ToFloat(std::uint16_t bits);
};

/// BFloat16 stores the upper half of an IEEE 754 binary32 number. It is layout-compatible with
/// `__nv_bfloat16`, and arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;

  constexpr BFloat16() = default;
  /// The number is rounded to the nearest, ties to even. NaN stays NaN.
  explicit constexpr BFloat16(float value) : bits(FromFloat(value)) {}
  /// The number is rounded once, as from float.
  explicit constexpr BFloat16(double value) : bits(FromFloat(internal::CutToOdd<9>(value))) {}
  explicit constexpr BFloat16(std::integral auto value) : BFloat16(static_cast<double>(value)) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
  }

  static constexpr BFloat16 FromBits(std::uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }

 private:
  static constexpr std::uint16_t FromFloat(float value);
};

static_assert(sizeof(MLFloat16) == 2 && sizeof(BFloat16) == 2 && sizeof(bool) == 1);

/// SizeOf returns the size in bytes of one element.
constexpr std::size_t SizeOf(DataType type) {
  switch (type) {
#define GRADSMITH_SIZE(enumerator, type, name, dlpack_code, torch_type) \
  case DataType::enumerator:                                            \
    return sizeof(type);
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_SIZE)
#undef GRADSMITH_SIZE
  }
  return 0;
}

/// ToString returns the type's name as `ops.yaml` spells it.
constexpr std::string_view ToString(DataType type) {
  switch (type) {
#define GRADSMITH_NAME(enumerator, type, name, dlpack_code, torch_type) \
  case DataType::enumerator:                                            \
    return name;
    GRADSMITH_ELEMENT_TYPES(GRADSMITH_NAME)
#undef GRADSMITH_NAME
  }
  return "unknown type";
}

/// kDataTypeOf is the DataType of a C++ element type; other types do not compile.
template <typename T>
inline constexpr DataType kDataTypeOf = [] {
  static_assert(
      sizeof(T) == 0,
      "gradsmith: a tensor holds float, double, MLFloat16, BFloat16, std::int32_t, std::int64_t, "
      "std::uint8_t, std::uint32_t or bool");
  return DataType::kFloat;
}();
#define GRADSMITH_TYPE_OF(enumerator, type, name, dlpack_code, torch_type) \
  template <>                                                              \
  inline constexpr DataType kDataTypeOf<type> = DataType::enumerator;
GRADSMITH_ELEMENT_TYPES(GRADSMITH_TYPE_OF)
#undef GRADSMITH_TYPE_OF

/// Backend names who computes: the host's processors or a CUDA device.
enum class Backend : std::uint8_t { kCpu, kCuda };

inline constexpr int kBackendCount = 2;

/// ToString returns the backend's name as `ops.yaml` spells it.
constexpr std::string_view ToString(Backend backend) {
  return backend == Backend::kCpu ? "cpu" : "cuda";
}

/// Device says where a tensor's memory is: a backend and, for CUDA, the device's ordinal.
struct Device {
  Backend backend = Backend::kCpu;
  int index = 0;

  friend constexpr bool operator==(const Device&, const Device&) = default;
};

constexpr std::uint16_t MLFloat16::FromFloat(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word >> 16U) & 0x8000U);
  const std::uint32_t magnitude = word & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return sign | 0x7E00U;  // a quiet NaN
  }
  if (magnitude >= 0x477FF000U) {
    return sign | 0x7C00U;  // rounds to 65536 or more
  }
  if (magnitude < 0x38800000U) {
    // A subnormal half is a multiple of 2^-24: adding 0.5 leaves that multiple, rounded, in the low
    // bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U);
  }
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  return sign | static_cast<std::uint16_t>((magnitude - 0x38000000U + 0x0FFFU + odd) >> 13U);
}

constexpr float MLFloat16::ToFloat(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1FU) {
    return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13U));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1.0p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
}

constexpr std::uint16_t BFloat16::FromFloat(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7FFFFFFFU) > 0x7F800000U) {
    return static_cast<std::uint16_t>((word >> 16U) | 0x0040U);
  }
  return static_cast<std::uint16_t>((word + 0x7FFFU + ((word >> 16U) & 1U)) >> 16U);
}

}  // namespace gradsmith

#include "gradsmith/foreign_macros_on.h"

#endif  // GRADSMITH_TYPES_H_
