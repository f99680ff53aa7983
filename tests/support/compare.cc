#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>

#include "support/elements.h"

namespace gradsmith::support {

double AllowedError(DataType accumulator, DataType stored, double value, double error) {
  const double before_storing =
      (UnitRoundoff(accumulator) + UnitRoundoff(DataType::kDouble)) * error;
  return before_storing + UnitRoundoff(stored) * (std::abs(value) + before_storing) +
         SmallestPositive(stored) / 2;
}

std::string IndexText(const reference::Shape& dims, std::size_t position) {
  std::vector<std::int64_t> index(dims.size());
  auto rest = static_cast<std::int64_t>(position);
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = rest % dims[axis];
    rest /= dims[axis];
  }
  return ToString(index);
}

void CompareElements(
    const std::string& doing,
    const std::string& tensor,
    const std::vector<double>& actual,
    const reference::Tensor& expected,
    const std::function<double(std::size_t)>& allowed,
    Report& report) {
  std::size_t wrong = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double wanted = expected.values[i];
    const bool equal = actual[i] == wanted || (std::isnan(actual[i]) && std::isnan(wanted)) ||
                       std::abs(actual[i] - wanted) <= allowed(i);
    if (!equal && wrong++ == 0) {
      first = i;
    }
  }
  if (wrong == 0) {
    return;
  }
  std::ostringstream text;
  text.precision(17);
  text << doing << ": " << tensor << IndexText(expected.dims, first) << " is " << actual[first]
       << "; expected " << expected.values[first] << " within " << allowed(first) << "; " << wrong
       << " of " << actual.size() << " elements are wrong";
  report.Fail(text.str());
}

namespace {

/// What an element may be off where it is rounded before its last term is added as well.
double InterimRounding(
    const Subject& subject,
    DataType stored,
    const reference::Expected& expected,
    std::size_t i) {
  const bool applies =
      subject.row->backend == Backend::kCuda && SizeOf(stored) == 2 && !expected.interim.empty();
  return applies ? UnitRoundoff(stored) * expected.interim[i] : 0;
}

}  // namespace

void CompareWithin(
    const Subject& subject,
    const std::string& doing,
    const TensorSpec& spec,
    const TestTensor& actual,
    const reference::Expected& expected,
    Report& report) {
  const double limit = OverflowLimit(actual.type());
  const auto limited = [limit](std::vector<double> values) {
    for (double& value : values) {
      value = std::isnan(value) ? value : std::clamp(value, -limit, limit);
    }
    return values;
  };
  CompareElements(
      doing, std::string(spec.name), limited(actual.Values()),
      {expected.value.dims, limited(expected.value.values)},
      [&](std::size_t i) {
        const double value = expected.value.values[i];
        if (!std::isfinite(value)) {
          return 0.0;
        }
        return AllowedError(subject.AccumulatorType(), actual.type(), value, expected.error[i]) +
               InterimRounding(subject, actual.type(), expected, i);
      },
      report);
}

void CompareExactly(
    const std::string& doing,
    const TensorSpec& spec,
    const TestTensor& actual,
    const reference::Expected& expected,
    Report& report) {
  CompareElements(
      doing, std::string(spec.name), actual.Values(), expected.value, [](std::size_t) { return 0; },
      report);
}

}  // namespace gradsmith::support
