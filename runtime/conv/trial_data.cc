#include "conv/trial_data.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace gradsmith::conv {

namespace {

/// Numbers that the squares of errors, in double, have room for.
double LargestOf(DataType type) {
  switch (type) {
    case DataType::kMLFloat16:
      return 0x1.0p13;
    case DataType::kDouble:
      return 1e140;
    default:
      return 0x1.0p125;
  }
}

double SmallestOf(DataType type) {
  switch (type) {
    case DataType::kMLFloat16:
      return 0x1.0p-14;
    case DataType::kDouble:
      return 1e-140;
    default:
      // Its low digits, which TF32 takes apart, are normal as well.
      return 0x1.0p-100;
  }
}

}  // namespace

std::span<const TrialData> DataOf(bool allow_reduced_accuracy) {
  static constexpr std::array kAll = {TrialData::kUsual, TrialData::kLargest, TrialData::kSmallest};
  return std::span(kAll).first(allow_reduced_accuracy ? 1 : kAll.size());
}

std::string PrefixOf(TrialData data) {
  switch (data) {
    case TrialData::kUsual:
      break;
    case TrialData::kLargest:
      return "on numbers near the type's largest it ";
    case TrialData::kSmallest:
      return "on numbers near the type's smallest it ";
  }
  return "";
}

internal::UniformRange RangeOfData(TrialData data, DataType type) {
  switch (data) {
    case TrialData::kUsual:
      break;
    case TrialData::kLargest:
      return {.center = LargestOf(type), .radius = LargestOf(type) / 32};
    case TrialData::kSmallest:
      return {.center = 0, .radius = SmallestOf(type)};
  }
  return {};
}

internal::UniformRange RangeOfFactor(TrialData data, double terms) {
  if (data != TrialData::kLargest) {
    return {};
  }
  // Sums of as many terms come to twice the first factor.
  const double center = 2 / std::max(terms, 4.0);
  return {.center = center, .radius = center};
}

Operand FactorOf(Primitive primitive) {
  return primitive == Primitive::kForward ? kW : kY;
}

}  // namespace gradsmith::conv
