#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "runtime/cuda/op_call.h"
#include "support/elements.h"

/// Functions that kernels approximate where results are rounded to 16 bits
/// (patterns/cuda/fast_math.cuh).
namespace gradsmith::cuda {
namespace {

constexpr std::int64_t kNumbers = 1 << 16;

/// Every number of a type of 16 bits, infinite ones and NaN among them.
TensorPointer AllNumbers(DataType type) {
  auto tensor = std::make_shared<GpuTensor>(type, Sizes{kNumbers}, Layout::kContiguous);
  std::uint16_t bits = 0;
  tensor->Fill([&] {
    const std::uint16_t next = bits++;
    return support::Decode(type, reinterpret_cast<const std::byte*>(&next));
  });
  return tensor;
}

double Rounded(DataType type, double value) {
  std::uint16_t bits = 0;
  support::Encode(type, value, reinterpret_cast<std::byte*>(&bits));
  return support::Decode(type, reinterpret_cast<const std::byte*>(&bits));
}

/// Whether it is what the exact value is rounded to, or would be if that were off by 2^-6 of a
/// rounding.
bool IsRoundedFrom(DataType type, double actual, double exact) {
  const double rounded = Rounded(type, exact);
  if (std::isnan(rounded) || std::isinf(rounded)) {
    return std::isnan(rounded) ? std::isnan(actual) : actual == rounded;
  }
  const double rounding =
      support::UnitRoundoff(type) * std::abs(exact) + support::SmallestPositive(type) / 2;
  return std::abs(actual - exact) <= rounding * (1 + 0x1p-6);
}

class CudaFastMath : public CudaTest {};

TEST_F(CudaFastMath, EveryNumberOf16BitsIsRoundedFromTheExactValue) {
  const Context context(OnGpu());
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    for (const std::string op : {"Exp", "Sigmoid", "Tanh", "Gelu", "Reciprocal"}) {
      OpCall call{.name = "all numbers", .op = op, .types = {type}};
      call.inputs = {AllNumbers(type)};
      call.outputs = {std::make_shared<GpuTensor>(type, Sizes{kNumbers}, Layout::kContiguous)};
      const Status status = call.Run(context);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_TRUE(Synchronize(context).ok());
      const std::vector<double> exact = call.Expected()[0];
      const std::vector<double> actual = call.outputs[0]->GpuValues();
      const std::vector<double> numbers = call.inputs[0]->HostValues();
      int wrong = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        if (!IsRoundedFrom(type, actual[i], exact[i]) && ++wrong <= 3) {
          ADD_FAILURE() << call.Describe() << ": " << op << "(" << numbers[i] << ") is "
                        << actual[i] << "; expected " << exact[i] << ", rounded";
        }
      }
      EXPECT_EQ(wrong, 0) << call.Describe();
    }
  }
}

}  // namespace
}  // namespace gradsmith::cuda
