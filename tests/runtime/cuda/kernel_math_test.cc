#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "runtime/cuda/op_call.h"
#include "runtime/normal_distribution.h"

/// Functions that kernels of float and double have of their own (patterns/cuda/kernel_math.cuh).
namespace gradsmith::cuda {
namespace {

using Real = long double;

Real Sigmoid(Real x) {
  return 1 / (1 + std::exp(-x));
}

Real TanhOfSoftplus(Real x) {
  const Real power = std::exp(x);
  return x > 100 ? 1 : power * (power + 2) / (power * (power + 2) + 2);
}

/// An operator, what it is exactly, and what its errors are measured by: the sum of the absolute
/// values that it adds up.
struct Known {
  std::string op;
  Real (*exact)(Real);
  Real (*size)(Real);
  double units_of_float;  // in the last place
  double units_of_double;
};

const std::vector<Known>& AllKnown() {
  static const std::vector<Known>& known = *new std::vector<Known>{
      {"Exp", [](Real x) { return std::exp(x); }, nullptr, 2, 1.5},
      {"Sigmoid", &Sigmoid, nullptr, 4, 3},
      {"Gelu", [](Real x) { return x * ExactCdf(x); }, nullptr, 9, 6},
      {"GeluGrad", [](Real x) { return ExactCdf(x) + x * ExactPdf(x); },
       [](Real x) { return ExactCdf(x) + std::abs(x) * ExactPdf(x); }, 9, 6},
      {"SwishGrad", [](Real x) { return Sigmoid(x) * (1 + x * Sigmoid(-x)); },
       [](Real x) { return Sigmoid(x) * (1 + std::abs(x) * Sigmoid(-x)); }, 8, 8},
      {"Mish", [](Real x) { return x * TanhOfSoftplus(x); }, nullptr, 8, 6},
  };
  return known;
}

/// Numbers near and far, of both signs, and some of every power of 2.
template <typename T>
std::vector<double> Numbers() {
  std::vector<double> numbers;
  constexpr int kSteps = 1 << 14;
  const double near = sizeof(T) == sizeof(float) ? 15 : 39;
  for (const double far : {2.0, near, 50 * near}) {
    for (int i = -kSteps; i <= kSteps; ++i) {
      numbers.push_back(static_cast<T>(far * i / kSteps));
    }
  }
  using Limits = std::numeric_limits<T>;
  for (int power = Limits::min_exponent - Limits::digits; power < Limits::max_exponent; ++power) {
    const double x = std::ldexp(T{1.171875}, power);
    numbers.push_back(x);
    numbers.push_back(-x);
  }
  numbers.insert(numbers.end(), {0.0, -0.0, std::nan("")});  // infinite ones are generated tests'
  return numbers;
}

/// How far two numbers of a type are apart, in units in the last place of a third: of x times the
/// smallest normal number where that is smaller, since what x is multiplied by has no more digits.
template <typename T>
double UnitsApart(Real actual, Real exact, Real size, Real x) {
  using Limits = std::numeric_limits<T>;
  const Real smallest = Limits::min() * std::max<Real>(std::abs(x), 1);
  const Real least = std::max<Real>(std::abs(size), smallest);
  return static_cast<double>(
      std::abs(actual - exact) / std::ldexp(Real{1}, std::ilogb(least) - Limits::digits + 1));
}

template <typename T>
void ExpectUnits(const Context& context, DataType type, const Known& known, double most) {
  const std::vector<double> numbers = Numbers<T>();
  const auto make = [&] {
    return std::make_shared<GpuTensor>(
        type, Sizes{static_cast<std::int64_t>(numbers.size())}, Layout::kContiguous);
  };
  OpCall call{.name = "numbers", .op = known.op, .types = {type}};
  call.inputs = {make()};
  call.inputs[0]->Fill([&, at = std::size_t{0}]() mutable { return numbers[at++]; });
  if (known.op.ends_with("Grad")) {
    call.inputs.insert(call.inputs.begin(), make());
    call.inputs[0]->Fill([] { return 1; });
  }
  call.outputs = {make()};
  const Status status = call.Run(context);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  const std::vector<double> actual = call.outputs[0]->GpuValues();
  double worst = 0;
  double at = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Real exact = known.exact(numbers[i]);
    if (!(std::abs(exact) <= std::numeric_limits<T>::max())) {  // NaN, or too large
      EXPECT_FALSE(std::isfinite(actual[i])) << known.op << "(" << numbers[i] << ")";
      continue;
    }
    const Real size = known.size == nullptr ? exact : known.size(numbers[i]);
    const double units = UnitsApart<T>(actual[i], exact, size, numbers[i]);
    if (!(units <= worst)) {
      worst = std::isnan(units) ? std::numeric_limits<double>::infinity() : units;
      at = numbers[i];
    }
  }
  EXPECT_LE(worst, most) << known.op << " of " << ToString(type) << " at " << at;
  ::testing::Test::RecordProperty(known.op + std::string(ToString(type)), std::to_string(worst));
}

class CudaKernelMath : public CudaTest {};

/// A mean's gradient, dY / count, beside the division of the host: it is the same to the bit, but
/// for what is halfway between two subnormal numbers. tests/kernels/device/quotient_test.cc has
/// counts that no tensor of a test has.
template <typename T>
void ExpectQuotients(const Context& context, DataType type, std::int64_t count) {
  std::vector<double> numbers = Numbers<T>();
  numbers.erase(numbers.begin(), numbers.begin() + (1 << 16));
  const auto length = static_cast<std::int64_t>(numbers.size());
  const auto make = [&](const Sizes& dims) {
    return std::make_shared<GpuTensor>(type, dims, Layout::kContiguous);
  };
  OpCall call{.name = "quotients", .op = "ReduceMeanGrad", .types = {type}};
  call.attributes = {{"axis", std::int64_t{0}}};
  call.inputs = {make({length}), make({count, length})};
  call.inputs[0]->Fill([&, at = std::size_t{0}]() mutable { return numbers[at++]; });
  call.outputs = {make({count, length})};
  const Status status = call.Run(context);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_TRUE(Synchronize(context).ok());
  const std::vector<double> actual = call.outputs[0]->GpuValues();
  int wrong = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const T exact = static_cast<T>(numbers[i % numbers.size()]) / static_cast<T>(count);
    const double halfway =
        std::abs(exact) < std::numeric_limits<T>::min() ? std::numeric_limits<T>::denorm_min() : 0;
    const bool is_right =
        std::isnan(exact) ? std::isnan(actual[i]) : std::abs(actual[i] - exact) <= halfway;
    wrong += is_right ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0) << "of " << actual.size() << " quotients of " << ToString(type) << " by "
                      << count;
}

TEST_F(CudaKernelMath, ErrorsAreFewUnitsInTheLastPlace) {
  const Context context(OnGpu());
  for (const Known& known : AllKnown()) {
    ExpectUnits<float>(context, DataType::kFloat, known, known.units_of_float);
    ExpectUnits<double>(context, DataType::kDouble, known, known.units_of_double);
  }
}

TEST_F(CudaKernelMath, QuotientsByACountAreThoseOfADivision) {
  const Context context(OnGpu());
  for (const std::int64_t count : {1, 2, 3, 5, 7, 10, 14, 49}) {
    ExpectQuotients<float>(context, DataType::kFloat, count);
    ExpectQuotients<double>(context, DataType::kDouble, count);
  }
}

}  // namespace
}  // namespace gradsmith::cuda
