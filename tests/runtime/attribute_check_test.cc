#include "core/attribute_check.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>

/// What is said of attributes' numbers that are out of range.
namespace gradsmith {
namespace {

struct Attributes {
  double epsilon = 0;
  double share = 0.5;
  double bias = 0;
  FloatList factors = {};
};

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::array<AttributeSpec, 4> kAttributes = {{
    {.name = "epsilon",
     .kind = AttributeKind::kFloat,
     .offset = offsetof(Attributes, epsilon),
     .maximum = kLargest},
    {.name = "share",
     .kind = AttributeKind::kFloat,
     .offset = offsetof(Attributes, share),
     .minimum = 1e-5,
     .maximum = 1},
    {.name = "bias",
     .kind = AttributeKind::kFloat,
     .offset = offsetof(Attributes, bias),
     .minimum = -kLargest,
     .maximum = kLargest},
    {.name = "factors",
     .kind = AttributeKind::kFloats,
     .offset = offsetof(Attributes, factors),
     .maximum = kLargest},
}};
constexpr OpSchema kOp = {.name = "Scale", .attributes = kAttributes};

std::string Error(const Attributes& attributes) {
  return internal::ValidateAttributes(kOp, &attributes).message();
}

TEST(AttributeCheck, TellsNumbersAsTheyAre) {
  EXPECT_EQ(Error({}), "");
  EXPECT_EQ(Error({.epsilon = -1}), "attribute epsilon is -1.0; expected at least 0");
  EXPECT_EQ(Error({.epsilon = -1e-300}), "attribute epsilon is -1e-300; expected at least 0");
  EXPECT_EQ(Error({.epsilon = -1e300}), "attribute epsilon is -1e+300; expected at least 0");
  // What is expected says what is wrong with each.
  EXPECT_EQ(
      Error({.epsilon = kInfinity}), "attribute epsilon is inf; expected at least 0 and finite");
  EXPECT_EQ(
      Error({.epsilon = -kInfinity}), "attribute epsilon is -inf; expected at least 0 and finite");
  EXPECT_EQ(Error({.share = 1e-6}), "attribute share is 1e-06; expected 1e-05 to 1");
  EXPECT_EQ(Error({.bias = kInfinity}), "attribute bias is inf; expected a finite number");
  EXPECT_EQ(Error({.bias = -kInfinity}), "attribute bias is -inf; expected a finite number");
}

TEST(AttributeCheck, TellsNumbersOfListsAsTheyAre) {
  EXPECT_EQ(
      Error({.factors = {2, 0.1, -1e-300}}),
      "attribute factors is [2.0, 0.1, -1e-300], with -1e-300; expected each at least 0");
  EXPECT_EQ(
      Error({.factors = {-1e300}}),
      "attribute factors is [-1e+300], with -1e+300; expected each at least 0");
  EXPECT_EQ(
      Error({.factors = {kInfinity}}),
      "attribute factors is [inf], with inf; expected each at least 0 and finite");
}

}  // namespace
}  // namespace gradsmith
