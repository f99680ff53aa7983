#ifndef GRADSMITH_TESTS_REFERENCE_COUNTING_SUM_H_
#define GRADSMITH_TESTS_REFERENCE_COUNTING_SUM_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "reference/counting_number.h"
#include "reference/oracle.h"

/// Sums of counting numbers, and what oracles expect of either.
namespace gradsmith::reference {

/// CountingSum is a sum whose order is the kernel's.
class CountingSum {
 public:
  CountingSum() = default;
  /// A sum that is rounded so often beside its terms, each of which costs an addition.
  explicit CountingSum(double roundings) : roundings_(roundings) {}

  void Add(const CountingNumber& term) {
    sum_.value += term.value;
    sum_.error += term.error;
    sum_.unit = std::min(sum_.unit, term.unit);
    sum_.bound = std::max(sum_.bound, term.bound);
    sum_.margin = std::min(sum_.margin, term.margin);
    sum_.underflow = std::min(sum_.underflow, term.underflow);
    magnitude_ += std::abs(term.value);
    terms_ += 1;
  }
  /// Get returns the sum, 0 where there are no terms. Its partial sums are no larger than that of
  /// the terms' absolute values, which each addition may round.
  [[nodiscard]] CountingNumber Get() const;
  [[nodiscard]] double terms() const { return terms_; }

 private:
  CountingNumber sum_;
  double terms_ = 0;
  double roundings_ = 4;
  /// The sum of the terms' absolute values.
  long double magnitude_ = 0;
};

/// Unknown returns the expectation of an output with these dims, for Expect to fill.
Expected Unknown(const Shape& dims);
/// Expect says what an output's element should be, a result of so many terms.
void Expect(const CountingNumber& number, double terms, std::size_t at, Expected& output);
void Expect(const CountingSum& sum, std::size_t at, Expected& output);

/// CountingSums are sums of counting numbers, one for each element of an output.
class CountingSums {
 public:
  /// Each sum is rounded so often beside its terms.
  CountingSums(Shape dims, double roundings);
  void Add(std::size_t element, const CountingNumber& term) { sums_.at(element).Add(term); }
  [[nodiscard]] Expected Get() const;

 private:
  Shape dims_;
  std::vector<CountingSum> sums_;
};

}  // namespace gradsmith::reference

#endif  // GRADSMITH_TESTS_REFERENCE_COUNTING_SUM_H_
