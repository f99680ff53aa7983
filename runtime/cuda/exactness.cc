#include "cuda/exactness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "core/rounding.h"

namespace gradsmith::cuda {

namespace {

double WalkOf(double terms) {
  return 1 + (std::sqrt(terms) / 64);
}

/// Tensor cores cut off what their float sums have no bits for, always towards zero: of zero-mean
/// terms by some 0.4 of 2^-24 of the sum for every product of so many (seen: 4.6e-3 of 4.2 million
/// terms in half, in products of 16, by cuDNN's quickest kernel). Of very many a kernel must add up
/// several sums.
double CutOff(double terms, int of_product) {
  constexpr double kMost = 1e-2;
  return std::min(kMost, 0x1.0p-25 * terms / of_product);
}

double AllowedOfFloat(double terms, Exactness exactness) {
  switch (exactness) {
    case Exactness::kPromised:
      return internal::kPromisedOfFloat;
    case Exactness::kStrict:
      return internal::AllowedOfStrictFloat(terms);
    case Exactness::kUsual:
      return 5e-6 * WalkOf(terms);
    case Exactness::kTf32:
      break;
  }
  return 2e-3;
}

}  // namespace

double RelativeError(const Difference& difference) {
  return internal::RelativeError(difference.squared_error, difference.squared_expected);
}

Status CheckDifference(
    const Difference& difference,
    DataType type,
    double terms,
    Exactness exactness,
    double cut_off_terms) {
  // Rounding of the result, and a random walk of the rounding of partial sums.
  const double walk = WalkOf(terms);
  const bool is_strict = exactness == Exactness::kPromised || exactness == Exactness::kStrict;
  double allowed = 0;
  switch (type) {
    case DataType::kFloat:
      allowed = AllowedOfFloat(terms, exactness);
      break;
    case DataType::kDouble:
      allowed = 1e-14 * walk;
      break;
    case DataType::kMLFloat16:
      allowed = (is_strict ? 1e-3 : 1.5e-3) + (1e-6 * walk);
      break;
    case DataType::kBFloat16:
      allowed = 8e-3 + (1e-6 * walk);
      break;
    default:
      break;
  }
  if (SizeOf(type) == 2) {
    allowed += CutOff(cut_off_terms, 16);
  } else if (exactness == Exactness::kTf32) {
    allowed += CutOff(cut_off_terms, 8);
  }
  if (difference.not_finite > 0) {
    return Internal(std::to_string(difference.not_finite) + " elements are not finite");
  }
  const double relative = RelativeError(difference);
  if (relative <= allowed) {
    return {};
  }
  std::array<char, 160> text{};
  std::snprintf(
      text.data(), text.size(),
      "disagrees with the direct computation: relative error %.2e, expected at most %.2e; largest "
      "error %.2e",
      relative, allowed, difference.largest_error);
  return Internal(text.data());
}

}  // namespace gradsmith::cuda
