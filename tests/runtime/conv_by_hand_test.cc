#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "conv/kernels.h"
#include "conv/problem.h"
#include "gradsmith/context.h"
#include "gradsmith/tensor.h"

/// Convolutions whose results were computed by hand, also of empty, huge and distant tensors.
namespace gradsmith::conv {
namespace {

using Values = std::vector<double>;

// The numbers are worked out by hand: X is 1 2 3 4, W is 1 10, and nothing is padded.
TEST(ConvByHand, Forward) {
  const Values x = {1, 2, 3, 4};
  const Values w = {1, 10};
  const Values b = {100};
  Values y(3);
  const ConstTensorRef X(DataType::kDouble, x.data(), {1, 1, 4});
  const ConstTensorRef W(DataType::kDouble, w.data(), {1, 1, 2});
  const ConstTensorRef B(DataType::kDouble, b.data(), {1});
  const TensorRef Y(DataType::kDouble, y.data(), {1, 1, 3});
  ASSERT_TRUE(Conv::RunCpu(Context(), {}, {.X = &X, .W = &W, .B = &B}, {.Y = &Y}).ok());
  EXPECT_EQ(y, (Values{121, 132, 143}));
}

TEST(ConvByHand, Gradients) {
  const Values x = {1, 2, 3, 4};
  const Values w = {1, 10};
  const Values dy = {1, 2, 3};
  Values dx(4);
  Values dw(2);
  Values db(1);
  const ConstTensorRef X(DataType::kDouble, x.data(), {1, 1, 4});
  const ConstTensorRef W(DataType::kDouble, w.data(), {1, 1, 2});
  const ConstTensorRef DY(DataType::kDouble, dy.data(), {1, 1, 3});
  const TensorRef DX(DataType::kDouble, dx.data(), {1, 1, 4});
  const TensorRef DW(DataType::kDouble, dw.data(), {1, 1, 2});
  const TensorRef DB(DataType::kDouble, db.data(), {1});
  ASSERT_TRUE(ConvGrad::RunCpu(
                  Context(), {}, {.dY = &DY, .X = &X, .W = &W}, {.dX = &DX, .dW = &DW, .dB = &DB})
                  .ok());
  EXPECT_EQ(dx, (Values{1, 12, 23, 30}));
  EXPECT_EQ(dw, (Values{1 * 1 + 2 * 2 + 3 * 3, 1 * 2 + 2 * 3 + 3 * 4}));
  EXPECT_EQ(db, (Values{6}));
}

TEST(ConvByHand, TransposeWithStrideAndSurplus) {
  const Values x = {1, 2};
  const Values w = {1, 10};
  const Values b = {100};
  Values y(7, -1);
  const ConstTensorRef X(DataType::kDouble, x.data(), {1, 1, 2});
  const ConstTensorRef W(DataType::kDouble, w.data(), {1, 1, 2});
  const ConstTensorRef B(DataType::kDouble, b.data(), {1});
  const TensorRef Y(DataType::kDouble, y.data(), {1, 1, 7});
  const TransposedAttributes attributes{{.strides = {3}}, {}, {7}};
  ASSERT_TRUE(
      ConvTranspose::RunCpu(Context(), attributes, {.X = &X, .W = &W, .B = &B}, {.Y = &Y}).ok());
  // Positions that no tap reaches have the bias alone.
  EXPECT_EQ(y, (Values{101, 110, 100, 102, 120, 100, 100}));
}

TEST(ConvByHand, EmptySumsGiveTheBias) {
  const Values b = {3, 5};
  Values y(4, -1);
  const ConstTensorRef X(DataType::kDouble, nullptr, {1, 0, 2});
  const ConstTensorRef W(DataType::kDouble, nullptr, {2, 0, 1});
  const ConstTensorRef B(DataType::kDouble, b.data(), {2});
  const TensorRef Y(DataType::kDouble, y.data(), {1, 2, 2});
  ASSERT_TRUE(Conv::RunCpu(Context(), {}, {.X = &X, .W = &W, .B = &B}, {.Y = &Y}).ok());
  EXPECT_EQ(y, (Values{3, 3, 5, 5}));
}

TEST(ConvByHand, HugePadsAndStridesDoNotWrap) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  const Values x = {1, 2, 3, 4};
  const Values w = {5};
  Values y(3, -1);
  const ConstTensorRef X(DataType::kDouble, x.data(), {1, 1, 4}, {4, 4, 1});
  const ConstTensorRef W(DataType::kDouble, w.data(), {1, 1, 1});
  const TensorRef Y(DataType::kDouble, y.data(), {1, 1, 3});
  const Attributes attributes{.strides = {kHuge}, .pads = {kHuge, kHuge}};
  ASSERT_TRUE(Conv::RunCpu(Context(), attributes, {.X = &X, .W = &W}, {.Y = &Y}).ok());
  EXPECT_EQ(y, (Values{0, 5, 0}));

  const ConstTensorRef DY(DataType::kDouble, y.data(), {1, 1, 3});
  Values dx(4, -1);
  const TensorRef DX(DataType::kDouble, dx.data(), {1, 1, 4});
  ASSERT_TRUE(
      ConvGrad::RunCpu(Context(), attributes, {.dY = &DY, .X = &X, .W = &W}, {.dX = &DX}).ok());
  EXPECT_EQ(dx, (Values{25, 0, 0, 0}));

  const TensorRef OneY(DataType::kDouble, y.data(), {1, 1, 1});
  const Attributes largest{.strides = {INT64_MAX}};
  ASSERT_TRUE(Conv::RunCpu(Context(), largest, {.X = &X, .W = &W}, {.Y = &OneY}).ok());
  EXPECT_EQ(y[0], 5);
  const ConstTensorRef OneDY = OneY;
  const Values w2 = {5, 6};
  const ConstTensorRef W2(DataType::kDouble, w2.data(), {1, 1, 2});
  ASSERT_TRUE(
      ConvGrad::RunCpu(Context(), largest, {.dY = &OneDY, .X = &X, .W = &W2}, {.dX = &DX}).ok());
  EXPECT_EQ(dx, (Values{25, 30, 0, 0}));
}

/// Address space without memory behind it but where it is touched.
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t size)
      : size_(size),
        data_(mmap(
            nullptr,
            size,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            -1,
            0)) {}
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory() {
    if (ok()) {
      munmap(data_, size_);
    }
  }

  [[nodiscard]] bool ok() const { return data_ != MAP_FAILED; }
  [[nodiscard]] BFloat16* data() const { return static_cast<BFloat16*>(data_); }

 private:
  std::size_t size_;
  void* data_;
};

TEST(ConvStrides, MayBeMoreThanTwoToThe31) {
  constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 8;
  std::vector<std::unique_ptr<SparseMemory>> blocks;
  for (int i = 0; i < 5; ++i) {
    blocks.push_back(std::make_unique<SparseMemory>(sizeof(BFloat16) * (kFar + 8)));
    if (!blocks.back()->ok()) {
      GTEST_SKIP() << "no address space for tensors that far apart";
    }
  }
  // Two images, or two filters, kFar apart.
  const auto fill = [&](int block, float first, float second) {
    BFloat16* data = blocks[block]->data();
    data[0] = BFloat16(first);
    data[1] = BFloat16(first + 1);
    data[kFar] = BFloat16(second);
    data[kFar + 1] = BFloat16(second + 1);
  };
  const auto far = [&](int block) {
    return TensorRef(DataType::kBFloat16, blocks[block]->data(), {2, 1, 2}, {kFar, kFar, 1});
  };
  const auto filters = [&](int block) {
    return TensorRef(DataType::kBFloat16, blocks[block]->data(), {2, 1, 1}, {kFar, 1, 1});
  };
  fill(0, 1, 3);
  fill(1, 5, 7);
  std::array<BFloat16, 8> dy{};
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy[i] = BFloat16(static_cast<float>(i));
  }
  const ConstTensorRef X = far(0);
  const ConstTensorRef W = filters(1);
  const ConstTensorRef DY(DataType::kBFloat16, dy.data(), {2, 2, 2});
  const TensorRef Y(DataType::kBFloat16, blocks[2]->data(), {2, 2, 2}, {4, kFar, 1});
  const TensorRef DX = far(3);
  const TensorRef DW = filters(4);
  ASSERT_TRUE(Conv::RunCpu(Context(), {}, {.X = &X, .W = &W}, {.Y = &Y}).ok());
  ASSERT_TRUE(
      ConvGrad::RunCpu(Context(), {}, {.dY = &DY, .X = &X, .W = &W}, {.dX = &DX, .dW = &DW}).ok());
  const auto value = [&](int block, std::int64_t offset) {
    return static_cast<float>(blocks[block]->data()[offset]);
  };
  EXPECT_EQ(value(2, 0), 5);
  EXPECT_EQ(value(2, 5), 20);
  EXPECT_EQ(value(2, kFar + 1), 14);
  EXPECT_EQ(value(2, kFar + 4), 21);
  EXPECT_EQ(value(3, 0), 2 * 7);
  EXPECT_EQ(value(3, kFar + 1), 5 * 5 + 7 * 7);
  EXPECT_EQ(value(4, 0), 0 * 1 + 1 * 2 + 4 * 3 + 5 * 4);
  EXPECT_EQ(value(4, kFar), 2 * 1 + 3 * 2 + 6 * 3 + 7 * 4);
}

}  // namespace
}  // namespace gradsmith::conv
