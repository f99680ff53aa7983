#include "patterns/map.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gradsmith/context.h"

/// The pattern `map`: how tensors become an index space, and what the CPU makes of it. The
/// generated tests of element-wise operators test both backends.
namespace gradsmith::internal {
namespace {

/// out = in[0] + scalar * in[1]
struct Axpy {
  static constexpr int kInputs = 2;
  static constexpr int kOutputs = 1;
  template <typename A>
  static void Map(const A* in, A* out, const A* scalars) {
    out[0] = in[0] + scalars[0] * in[1];
  }
};

TensorRef Ref(std::vector<float>& data, const Dims& dims, const Strides& strides) {
  return {DataType::kFloat, data.data(), dims, strides, {}};
}
TensorRef Ref(std::vector<float>& data, const Dims& dims) {
  return Ref(data, dims, ContiguousStrides(dims));
}

TEST(MapTask, DimsThatOneStrideServesAreOne) {
  std::vector<float> data(120);
  const Dims dims = {2, 3, 4, 5};
  const Strides channels_last = {60, 1, 15, 3};
  const std::array<TensorRef, 2> alike = {
      Ref(data, dims, channels_last), Ref(data, dims, channels_last)};
  const MapTask dense = MapTaskOf(alike, 1, {});
  EXPECT_EQ(dense.rank, 1);
  EXPECT_EQ(dense.dims[0], 120);
  EXPECT_EQ(dense.strides[0][0], 1);
  const std::array<TensorRef, 2> unlike = {Ref(data, dims), Ref(data, dims, channels_last)};
  const MapTask mixed = MapTaskOf(unlike, 1, {});
  EXPECT_EQ(mixed.count, 120);
  EXPECT_EQ(mixed.rank, 3);
  // The output goes along memory.
  EXPECT_EQ(mixed.strides[1][2], 1);
  EXPECT_EQ(mixed.strides[0][2], 20);
}

TEST(MapTask, EmptyAndOneElement) {
  std::vector<float> data(1);
  const std::array<TensorRef, 2> none = {Ref(data, {3, 0, 2}), Ref(data, {3, 0, 2})};
  EXPECT_EQ(MapTaskOf(none, 1, {}).count, 0);
  const std::array<TensorRef, 2> one = {Ref(data, {1, 1}), Ref(data, {1, 1})};
  const MapTask task = MapTaskOf(one, 1, {});
  EXPECT_EQ(task.count, 1);
  EXPECT_EQ(task.rank, 0);
}

/// out = in[0] where the bit is set, else -1
struct Kept {
  static constexpr int kInputs = 2;
  static constexpr int kOutputs = 1;
  static constexpr unsigned kBits = 0b10;
  template <typename A>
  static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = in[1] != 0 ? in[0] : A{-1};
  }
};

TEST(MapOnCpu, BitsAreInRowMajorOrderWhateverLiesInMemory) {
  const Dims dims = {3, 5, 7};
  const Strides turned = {1, 3, 15};
  std::vector<float> in(105);
  std::vector<float> out(105, std::numeric_limits<float>::quiet_NaN());
  // Every second word is one of the mask's; behind its last bit there are others.
  std::vector<std::uint32_t> words = {0x80000001, 0, 0xF0F0F0F0, 0, 0x12345678, 0, 0xFFFFFEAA};
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<float>(i);
  }
  const TensorRef of_in = Ref(in, dims, turned);
  const TensorRef of_words = {DataType::kUint32, words.data(), {4}, {2}, {}};
  const TensorRef of_out = Ref(out, dims, turned);
  const Status status = MapOnCpu<Kept>(Context(), {}, &of_in, &of_words, &of_out);
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t at = i / 35 + 3 * (i / 7 % 5) + 15 * (i % 7);
    const bool is_kept = (words[i / 32 * 2] >> (i % 32) & 1U) != 0;
    EXPECT_EQ(out[at], is_kept ? in[at] : -1.0F) << i;
  }
  const TensorRef fewer = {DataType::kUint32, words.data(), {3}, {1}, {}};
  EXPECT_NE(
      MapOnCpu<Kept>(Context(), {}, &of_in, &fewer, &of_out)
          .message()
          .find("input 1 has shape [3]; expected [4], a bit for each element"),
      std::string::npos);
}

TEST(MapOnCpu, BroadcastsInputs) {
  constexpr std::int64_t kChannels = 3;
  constexpr std::int64_t kSpatial = 7;
  const Dims dims = {2, kChannels, kSpatial};
  std::vector<float> a(42);
  std::vector<float> b = {10, 20, 30};
  std::vector<float> out(42, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i);
  }
  const TensorRef of_a = Ref(a, dims);
  const TensorRef of_b = Ref(b, {kChannels, 1});
  const TensorRef of_out = Ref(out, dims);
  const Status status = MapOnCpu<Axpy>(Context(), {0.5}, &of_a, &of_b, &of_out);
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(out[i], a[i] + b[i / kSpatial % kChannels] / 2) << i;
  }
}

/// Sums of in[0] over what either output lacks, beside in[0] + 1.
struct Sums {
  static constexpr int kInputs = 1;
  static constexpr int kOutputs = 3;
  static constexpr bool kSums = true;
  template <typename A>
  static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = in[0] + 1;
    out[1] = in[0];
    out[2] = 2 * in[0];
  }
};

/// Sums along all dims but one, of as many terms as more than one piece has, and along the others.
TEST(MapOnCpu, SumsOverWhatOutputsLack) {
  constexpr std::int64_t kRows = 19;
  constexpr std::int64_t kColumns = 70000;
  for (const bool is_transposed : {false, true}) {
    const Dims dims = {kRows, kColumns};
    const Strides strides = is_transposed ? Strides{1, kRows} : ContiguousStrides(dims);
    std::vector<float> data(kRows * kColumns);
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t column = 0; column < kColumns; ++column) {
        data[static_cast<std::size_t>(row * strides[0] + column * strides[1])] =
            static_cast<float>((row + column) % 3);
      }
    }
    const float poison = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> of_rows(kRows, poison);
    std::vector<float> of_columns(kColumns, poison);
    const TensorRef in = Ref(data, dims, strides);
    const TensorRef rows = Ref(of_rows, {kRows, 1});
    const TensorRef columns = Ref(of_columns, {kColumns});
    // The first output lies over the input, so that sums come before it.
    const Status status = MapOnCpu<Sums>(Context(), {}, &in, &in, &rows, &columns);
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t expected = (kColumns - 1) + (row % 3);
      ASSERT_EQ(of_rows[static_cast<std::size_t>(row)], static_cast<float>(expected)) << row;
    }
    for (std::int64_t column = 0; column < kColumns; ++column) {
      const std::int64_t expected = 2 * (kRows - 1 + column % 3);
      ASSERT_EQ(of_columns[static_cast<std::size_t>(column)], static_cast<float>(expected));
    }
    EXPECT_EQ(data[0], 1);
    EXPECT_EQ(data.back(), static_cast<float>((kRows + kColumns - 2) % 3 + 1));
  }
}

TEST(MapOnCpu, SumsAreOfDoubles) {
  constexpr float kLarge = 1 << 24;  // one more is no float
  std::vector<float> data = {kLarge, 1, 1, -kLarge};
  std::vector<float> sum(1, -1);
  const TensorRef in = Ref(data, {4});
  const TensorRef of_all = Ref(sum, {1});
  const TensorRef* absent = nullptr;
  ASSERT_TRUE(MapOnCpu<Sums>(Context(), {}, &in, absent, &of_all, absent).ok());
  EXPECT_EQ(sum[0], 2);
}

/// What has no terms is zero, and what is not wanted is left out.
TEST(MapOnCpu, SumsOfNothing) {
  std::vector<float> data(1);
  std::vector<float> sums(3, std::numeric_limits<float>::quiet_NaN());
  const TensorRef in = Ref(data, {3, 0});
  const TensorRef rows = Ref(sums, {3, 1});
  const TensorRef* absent = nullptr;
  const Status status = MapOnCpu<Sums>(Context(), {}, &in, absent, &rows, absent);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(sums, std::vector<float>(3, 0));
}

/// out[0] = in[1] where the mask is set, out[1] = its opposite.
struct Choose {
  static constexpr int kInputs = 2;
  static constexpr int kOutputs = 2;
  static constexpr unsigned kMasks = 0b01;
  static constexpr bool kSums = true;
  template <typename A>
  static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = in[0] != 0 ? in[1] : A{0};
    out[1] = in[0] != 0 ? A{0} : in[1];
  }
};

/// A mask is broadcast, begins at an odd address, and is set by any byte that is not zero.
TEST(MapOnCpu, MasksAreReadByteByByte) {
  std::vector<float> data(12);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(i + 1);
  }
  std::array<std::uint8_t, 5> bytes = {255, 0, 2, 0, 128};
  const TensorRef mask(DataType::kBool, bytes.data() + 1, Dims{4}, Strides{1}, {});
  const TensorRef in = Ref(data, {3, 4});
  std::vector<float> chosen(12, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> left(4, std::numeric_limits<float>::quiet_NaN());
  const TensorRef out = Ref(chosen, {3, 4});
  const TensorRef sums = Ref(left, {4});
  const Status status = MapOnCpu<Choose>(Context(), {}, &mask, &in, &out, &sums);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(chosen, (std::vector<float>{0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12}));
  EXPECT_EQ(left, (std::vector<float>{1 + 5 + 9, 0, 3 + 7 + 11, 0}));
}

TEST(MapOnCpu, RefusesOtherMasks) {
  std::vector<float> data(4);
  const TensorRef tensor = Ref(data, {4});
  const Status status = MapOnCpu<Choose>(Context(), {}, &tensor, &tensor, &tensor, &tensor);
  EXPECT_NE(
      std::string(status.message()).find("input 0 has type float; expected bool"),
      std::string::npos);
}

/// Both outputs are in[0].
struct Twins {
  static constexpr int kInputs = 1;
  static constexpr int kOutputs = 2;
  template <typename A>
  static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = out[1] = in[0];
  }
};

TEST(MapOnCpu, RefusesOutputsOfOtherDimsThanTheFirst) {
  std::vector<float> data(12);
  const TensorRef whole = Ref(data, {3, 4});
  const TensorRef last = Ref(data, {4});
  const auto told = [&](const TensorRef& second) {
    return std::string(MapOnCpu<Twins>(Context(), {}, &whole, &whole, &second).message());
  };
  EXPECT_EQ(told(whole), "");
  EXPECT_EQ(told(last), "output 1 has shape [4]; expected [3, 4]");
}

TEST(MapOnCpu, RefusesWhatDoesNotFit) {
  std::vector<float> data(12);
  std::vector<double> doubles(12);
  const ConstTensorRef right = Ref(data, {3, 4});
  const ConstTensorRef shorter = Ref(data, {4, 3});
  const ConstTensorRef longer = Ref(data, {2, 3, 4});
  const ConstTensorRef other(
      DataType::kDouble, doubles.data(), Dims{3, 4}, ContiguousStrides({3, 4}), {});
  const TensorRef output = Ref(data, {3, 4});
  const auto told = [&](const ConstTensorRef& y) {
    return std::string(MapOnCpu<Axpy>(Context(), {0.5}, &right, &y, &output).message());
  };
  EXPECT_EQ(told(right), "");
  EXPECT_NE(told(shorter).find("input 1 has shape [4, 3]; expected [3, 4]"), std::string::npos);
  EXPECT_NE(told(longer).find("input 1 has shape [2, 3, 4]"), std::string::npos);
  EXPECT_NE(told(other).find("input 1 has type double; expected float"), std::string::npos);
  const ConstTensorRef* const none = nullptr;
  EXPECT_EQ(
      MapOnCpu<Axpy>(Context(), {0.5}, &right, none, &output).message(),
      "input 1 of a map is absent");
}

}  // namespace
}  // namespace gradsmith::internal
