#include "core/shape_rules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// What generated shape rules are made of.
namespace gradsmith::internal {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

TEST(Extent, StaysAtTheEnds) {
  EXPECT_EQ((Extent(kMost) + 1).number, kMost);
  EXPECT_EQ((Extent(kMost - 1) + 1).number, kMost);
  EXPECT_EQ((Extent(kLeast) + -1).number, kLeast);
  EXPECT_EQ((Extent(kLeast) - 1).number, kLeast);
  EXPECT_EQ((Extent(0) - kLeast).number, kMost);
  EXPECT_EQ((-Extent(kLeast)).number, kMost);
  EXPECT_EQ((Extent(kMost) * 2).number, kMost);
  EXPECT_EQ((Extent(-2) * kLeast).number, kMost);
  EXPECT_EQ((Extent(kMost) * -2).number, kLeast);
  EXPECT_EQ((Extent(kMost) * 0).number, 0);
}

TEST(Extent, QuotientsAreRoundedDownOrUp) {
  constexpr std::int64_t kLarge = std::int64_t{5} << 40;
  struct Quotient {
    std::int64_t dividend;
    std::int64_t divisor;
    std::int64_t floor;
    std::int64_t ceil;
  };
  for (const Quotient& one : {
           Quotient{7, 2, 3, 4},
           Quotient{-7, 2, -4, -3},
           Quotient{8, 2, 4, 4},
           Quotient{-8, 2, -4, -4},
           Quotient{0, 3, 0, 0},
           Quotient{kLarge + 1, 5, std::int64_t{1} << 40, (std::int64_t{1} << 40) + 1},
           Quotient{-kLarge - 1, 5, -(std::int64_t{1} << 40) - 1, -(std::int64_t{1} << 40)},
           Quotient{7, kLarge, 0, 1},
           Quotient{-7, kLarge, -1, 0},
           Quotient{7, 0, 0, 0},
           Quotient{7, -1, 0, 0},
       }) {
    EXPECT_EQ(FloorDiv(one.dividend, one.divisor).number, one.floor) << one.dividend;
    EXPECT_EQ(CeilDiv(one.dividend, one.divisor).number, one.ceil) << one.dividend;
  }
}

TEST(Extent, AnEntryThatIsNotThereIsAnother) {
  const IntList list = {4, 5};
  EXPECT_EQ(EntryOf(list, 1, 9).number, 5);
  EXPECT_EQ(EntryOf(list, 2, 9).number, 9);
  EXPECT_EQ(EntryOf({}, 0, 9).number, 9);
}

struct Less {
  const IntList& steps;
  const Dims& D;
  const Dims& K;
  int axis;

  Extent value = Extent{D[axis]} - K[axis] - EntryOf(steps, axis, 0);

  [[nodiscard]] bool Holds() const { return value != 3; }
  [[nodiscard]] Status Fault() const { return InvalidArgument("3 on axis " + RuleText(axis)); }
};

TEST(SizesBy, ComputesEachAxisOrSaysWhyThereIsNoSize) {
  const IntList steps = {1};
  const Result<Dims> sizes = SizesBy<Less>(steps, Dims{9, 9}, Dims{2, 2});
  ASSERT_TRUE(sizes.ok()) << sizes.status().message();
  EXPECT_EQ(*sizes, (Dims{6, 7}));
  EXPECT_EQ(*SizesBy<Less>(steps, Dims{}, Dims{}), Dims());
  EXPECT_EQ(SizesBy<Less>(steps, Dims{9, 5}, Dims{2, 2}).status().message(), "3 on axis 1");
  EXPECT_EQ(
      SizesBy<Less>(steps, Dims{2}, Dims{4}).status().message(),
      "axis 0: the shape rule gives -3 positions; expected 0 or more");
  EXPECT_EQ(
      SizesBy<Less>(steps, Dims{9, 9}, Dims{2}).status().message(),
      "a shape rule is given lists of dims of different lengths; expected one length");
}

}  // namespace
}  // namespace gradsmith::internal
