#include "reference/counting_sum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace gradsmith::reference {

CountingNumber CountingSum::Get() const {
  CountingNumber sum = sum_;
  sum.error += (terms_ + roundings_) * magnitude_;
  sum.bound = std::max(sum.bound, magnitude_ / sum.unit);
  return sum;
}

Expected Unknown(const Shape& dims) {
  const std::vector<double> zeros(static_cast<std::size_t>(Count(dims)));
  return {{dims, zeros}, zeros, zeros, zeros};
}

void Expect(const CountingNumber& number, double terms, std::size_t at, Expected& output) {
  output.value.values[at] = static_cast<double>(number.value);
  output.terms[at] = terms;
  output.bound[at] = static_cast<double>(number.bound);
  output.error[at] = static_cast<double>(number.error);
}

void Expect(const CountingSum& sum, std::size_t at, Expected& output) {
  Expect(sum.Get(), sum.terms(), at, output);
}

CountingSums::CountingSums(Shape dims, double roundings)
    : dims_(std::move(dims)),
      sums_(static_cast<std::size_t>(Count(dims_)), CountingSum(roundings)) {}

Expected CountingSums::Get() const {
  Expected output = Unknown(dims_);
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    Expect(sums_[i], i, output);
  }
  return output;
}

}  // namespace gradsmith::reference
