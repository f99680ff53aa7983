#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "kernels/device/sample_ops.h"
#include "patterns/run_map.h"
#include "reference/random.h"
#include "runtime/cuda/op_call.h"

/// QuotientByCount of kernels (patterns/cuda/kernel_math.cuh), which multiplies by a reciprocal and
/// corrects what comes out, beside the division of the host.
namespace gradsmith::cuda {
namespace {

/// Counts of places: few, around powers of two, of many factors, prime, and so many that the type
/// holds no count between them.
template <typename T>
std::vector<T> Counts() {
  constexpr int kDigits = std::numeric_limits<T>::digits;
  std::vector<T> counts = {0};
  for (int count = 1; count <= 130; ++count) {
    counts.push_back(static_cast<T>(count));
  }
  for (int power = 8; power <= 62; power += power < kDigits + 2 ? 1 : 9) {
    const T count = std::ldexp(T{1}, power);
    counts.insert(counts.end(), {count - 1, count, count + 1, 3 * count, count + count / 2 - 1});
  }
  for (const double count : {224. * 224, 50257., 65521., 2796203., 5592406., 9e6, 16777213., 1e9}) {
    counts.push_back(static_cast<T>(count));
  }
  return counts;
}

/// Dividends of each kind for a count: what is not finite, the largest and the smallest numbers and
/// subnormal ones, multiples of the count and their neighbours, numbers near the middle between two
/// quotients, and random ones of every size.
template <typename T>
std::vector<T> Dividends(T count, Random& random) {
  using Limits = std::numeric_limits<T>;
  constexpr T kInfinity = Limits::infinity();
  std::vector<T> dividends = {
      0,
      1,
      Limits::max(),
      std::nextafter(Limits::max(), T{0}),
      Limits::min(),
      std::nextafter(Limits::min(), T{0}),
      Limits::denorm_min(),
      3 * Limits::denorm_min(),
      1 + Limits::epsilon(),
      2 - Limits::epsilon(),
      count * Limits::min(),
      kInfinity};
  const auto draw = [&] { return static_cast<T>(1 + random.Real(0, 1)); };
  for (int i = 0; i < 60; ++i) {
    const T quotient = draw();
    const T multiple = quotient * count;
    const T middle = std::fma(quotient, count, count * Limits::epsilon() / 2);
    dividends.insert(
        dividends.end(),
        {multiple, std::nextafter(multiple, T{0}), std::nextafter(multiple, kInfinity), middle,
         draw(), static_cast<T>(random.Integer(1, 1 << 20)),
         std::ldexp(draw(), static_cast<int>(random.Integer(-60, 60))),
         std::ldexp(draw(), Limits::min_exponent + static_cast<int>(random.Integer(-20, 30)))});
  }
  const std::size_t positive = dividends.size();
  for (std::size_t i = 0; i < positive; ++i) {
    dividends.push_back(-dividends[i]);
  }
  dividends.push_back(std::nan(""));
  return dividends;
}

/// Whether a count's digits are all ones, as those of 2^24 - 1: its reciprocal is next to a power
/// of two, and a unit off may be left in the quotient where the instruction's has that.
template <typename T>
bool IsAllOnes(T count) {
  int exponent = 0;
  return std::frexp(count, &exponent) == 1 - std::numeric_limits<T>::epsilon() / 2;
}

template <typename T>
bool IsQuotient(T actual, T dividend, T count) {
  const T exact = dividend / count;
  if (std::isnan(exact)) {
    return std::isnan(actual);
  }
  if (actual == exact) {
    return exact != 0 || std::signbit(actual) == std::signbit(exact);
  }
  // What is halfway between two subnormal numbers may be rounded to either.
  const bool may_be_off = std::fpclassify(exact) == FP_SUBNORMAL || exact == 0 || IsAllOnes(count);
  return may_be_off && std::nextafter(exact, actual) == actual;
}

class CudaQuotient : public CudaTest {
 protected:
  template <typename T>
  static void Check(DataType type) {
    Random random("quotients");
    std::vector<T> dividends;
    std::vector<T> counts;
    for (const T count : Counts<T>()) {
      for (const T dividend : Dividends(count, random)) {
        dividends.push_back(dividend);
        counts.push_back(count);
      }
    }
    const Sizes dims = {static_cast<std::int64_t>(counts.size())};
    GpuTensor X(type, dims, Layout::kContiguous);
    GpuTensor C(type, dims, Layout::kContiguous);
    GpuTensor Y(type, dims, Layout::kContiguous);
    X.Fill([&, at = std::size_t{0}]() mutable { return dividends[at++]; });
    C.Fill([&, at = std::size_t{0}]() mutable { return counts[at++]; });
    const Context context(OnGpu());
    const std::array<ConstTensorRef, 2> in = {X.GpuRef(), C.GpuRef()};
    const std::array<TensorRef, 1> out = {Y.GpuRef()};
    const Status status = internal::RunMapOnCuda(context, kQuotient, {}, in, out);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(Synchronize(context).ok());
    const std::vector<double> quotients = Y.GpuValues();
    int wrong = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (!IsQuotient(static_cast<T>(quotients[i]), dividends[i], counts[i]) && ++wrong <= 5) {
        ADD_FAILURE() << std::hexfloat << dividends[i] << " / " << counts[i] << " is "
                      << quotients[i] << "; expected " << dividends[i] / counts[i];
      }
    }
    EXPECT_EQ(wrong, 0) << "of " << counts.size() << " quotients of " << ToString(type);
  }
};

TEST_F(CudaQuotient, ByACountIsThatOfADivision) {
  Check<float>(DataType::kFloat);
  Check<double>(DataType::kDouble);
}

}  // namespace
}  // namespace gradsmith::cuda
