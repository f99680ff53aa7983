#include "cuda/trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>

#include "core/plan.h"
#include "cuda/driver.h"
#include "cuda/exactness.h"
#include "runtime/cuda/gpu_tensor.h"

/// How far a result may be off, which needs no GPU, and what candidates may not write, which does.
namespace gradsmith::cuda {
namespace {

Difference Off(double relative) {
  Difference difference{};
  difference.squared_expected = 4;
  difference.squared_error = 4 * relative * relative;
  difference.largest_error = relative;
  difference.compared = 1000;
  return difference;
}

struct Limit {
  DataType type;
  Exactness exactness;
  double terms;
  double allowed;
};

/// Written out, so that they are not computed as the library does.
constexpr Limit kLimits[] = {
    {DataType::kFloat, Exactness::kStrict, 1, 1.03e-6},
    {DataType::kFloat, Exactness::kStrict, 10000, 4e-6},
    {DataType::kFloat, Exactness::kUsual, 1, 5.078e-6},
    {DataType::kFloat, Exactness::kUsual, 4096, 1e-5},
    {DataType::kFloat, Exactness::kTf32, 1, 2e-3},
    {DataType::kFloat, Exactness::kTf32, 4096, 2e-3},
    {DataType::kDouble, Exactness::kStrict, 4096, 2e-14},
    {DataType::kDouble, Exactness::kUsual, 4096, 2e-14},
    {DataType::kMLFloat16, Exactness::kStrict, 4096, 1.002e-3},
    {DataType::kMLFloat16, Exactness::kUsual, 4096, 1.502e-3},
    {DataType::kBFloat16, Exactness::kStrict, 4096, 8.002e-3},
    {DataType::kBFloat16, Exactness::kUsual, 4096, 8.002e-3},
};

TEST(CheckDifference, AllowsWhatATypeAndItsExactnessMayBeOff) {
  for (const Limit& limit : kLimits) {
    const auto check = [&](double relative) {
      return CheckDifference(Off(relative), limit.type, limit.terms, limit.exactness);
    };
    const std::string which = std::string(ToString(limit.type)) + ", exactness " +
                              std::to_string(static_cast<int>(limit.exactness)) + ", " +
                              std::to_string(limit.terms) + " terms";
    EXPECT_TRUE(check(0).ok()) << which;
    EXPECT_TRUE(check(0.999 * limit.allowed).ok()) << which;
    EXPECT_EQ(check(1.001 * limit.allowed).code(), StatusCode::kInternal) << which;
    EXPECT_FALSE(check(1).ok()) << which;
  }
}

/// What tensor cores cut off of a long sum is allowed, and not much more.
TEST(CheckDifference, AllowsWhatTensorCoresCutOff) {
  const auto is_right = [](double relative, DataType type, double terms, Exactness exactness) {
    return CheckDifference(Off(relative), type, terms, exactness, terms).ok();
  };
  for (const DataType type : {DataType::kMLFloat16, DataType::kBFloat16}) {
    EXPECT_TRUE(is_right(4.6e-3, type, 0x1p22, Exactness::kStrict)) << "as seen of cuDNN";
    EXPECT_TRUE(is_right(4.6e-3, type, 0x1p22, Exactness::kUsual));
    EXPECT_FALSE(is_right(2e-2, type, 0x1p22, Exactness::kUsual));
    // As many terms as there may be: what is missing is still seen.
    EXPECT_FALSE(is_right(2e-2, type, 0x1p28, Exactness::kUsual));
  }
  EXPECT_FALSE(is_right(1.1e-3, DataType::kMLFloat16, 4096, Exactness::kStrict)) << "a short sum";
  EXPECT_TRUE(is_right(9e-3, DataType::kFloat, 0x1p22, Exactness::kTf32));
  EXPECT_FALSE(is_right(1.3e-2, DataType::kFloat, 0x1p28, Exactness::kTf32));
  EXPECT_FALSE(is_right(3e-4, DataType::kFloat, 0x1p22, Exactness::kUsual)) << "no tensor cores";
  EXPECT_FALSE(CheckDifference(Off(4e-3), DataType::kMLFloat16, 0x1p22, Exactness::kStrict).ok())
      << "no products";
}

TEST(CheckDifference, SaysHowFarItIs) {
  const Status status = CheckDifference(Off(0.25), DataType::kMLFloat16, 4096, Exactness::kStrict);
  EXPECT_EQ(
      status.message(),
      "disagrees with the direct computation: relative error 2.50e-01, expected at most 1.00e-03; "
      "largest error 2.50e-01");
}

TEST(CheckDifference, WhatIsNotFiniteIsWrongHoweverCloseTheRest) {
  Difference difference = Off(0);
  difference.not_finite = 3;
  for (const DataType type :
       {DataType::kFloat, DataType::kDouble, DataType::kMLFloat16, DataType::kBFloat16}) {
    const Status status = CheckDifference(difference, type, 9, Exactness::kTf32);
    EXPECT_EQ(status.message(), "3 elements are not finite");
  }
}

TEST(CheckDifference, ExpectedZerosMustBeZero) {
  Difference difference{};
  difference.compared = 10;
  EXPECT_TRUE(CheckDifference(difference, DataType::kFloat, 9, Exactness::kStrict).ok());
  difference.squared_error = 1e-12;
  EXPECT_FALSE(CheckDifference(difference, DataType::kFloat, 9, Exactness::kStrict).ok());
}

/// A plan that sets bytes: all of its output, and one more that is not its own.
class Stray final : public internal::Plan {
 public:
  enum class Where : unsigned char { kNowhere, kBefore, kBehind, kBehindWorkspace };

  Stray(const ConstTensorRef& output, Where where) : output_(output), where_(where) {}

  [[nodiscard]] std::size_t workspace() const override { return kWorkspace; }

  Status Run(const internal::Launch& launch) override {
    auto* output = static_cast<std::byte*>(launch.operands[1]);
    auto* workspace = static_cast<std::byte*>(launch.workspace);
    const std::size_t size = NumElements(output_.dims) * SizeOf(output_.type);
    Status status = Zero(launch, output, size);
    if (status.ok()) {
      status = Zero(launch, workspace, kWorkspace);
    }
    if (status.ok() && where_ != Where::kNowhere) {
      status = Zero(
          launch,
          where_ == Where::kBefore   ? output - 1
          : where_ == Where::kBehind ? output + size
                                     : workspace + kWorkspace,
          1);
    }
    return status;
  }

 private:
  static constexpr std::size_t kWorkspace = 512;

  static Status Zero(const internal::Launch& launch, std::byte* place, std::size_t size) {
    return ToStatus(
        Driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(place), 0, size, launch.stream),
        "setting bytes");
  }

  ConstTensorRef output_;
  Where where_;
};

class CudaTrial : public GpuTest {
 protected:
  /// What a trial says of a plan whose output is aligned to 4 bytes and no more.
  Status Try(Stray::Where where, bool accumulate) {
    const Block memory(256);
    ConstTensorRef tensor(DataType::kFloat, memory.data() + 4, Dims{3, 5}, Strides{5, 1});
    const ConstTensorRef input = tensor;
    tensor.accumulate = accumulate;
    Result<std::unique_ptr<Trial>> trial =
        Trial::Create(device(), kStream, {{input, false}, {tensor, true}});
    if (!trial.ok()) {
      return trial.status();
    }
    Stray plan(tensor, where);
    const Status status = (*trial)->Run(plan);
    return status.ok() ? (*trial)->CheckWritten() : status;
  }
};

TEST_F(CudaTrial, WhatIsWrittenBeyondAnOutputIsSaid) {
  using enum Stray::Where;
  for (const bool accumulate : {false, true}) {
    EXPECT_EQ(Try(kNowhere, accumulate).message(), "");
    EXPECT_EQ(Try(kBefore, accumulate).message(), "wrote 1 bytes before an output");
    EXPECT_EQ(Try(kBehind, accumulate).message(), "wrote 1 bytes behind an output");
    EXPECT_EQ(Try(kBehindWorkspace, accumulate).message(), "wrote 1 bytes behind its workspace");
  }
}

}  // namespace
}  // namespace gradsmith::cuda
