#ifndef GRADSMITH_CONV_REACH_H_
#define GRADSMITH_CONV_REACH_H_

#include <array>
#include <cstdint>
#include <vector>

#include "conv/task.h"

/// Which elements of a result an operand's element takes part in. What is not finite there must
/// make these not finite and no others: a kernel that multiplies padding, which is zero, or zeros
/// that fill its tiles, makes more of them NaN.
namespace gradsmith::conv {

/// Place is an element of an operand: its index along each of DimsOf(problem, operand).
struct Place {
  Operand operand = kX;
  std::vector<std::int64_t> index;
};

/// PlacesToTry returns elements of an operand from which a kernel that multiplies padding would
/// reach too far: the first, one in the middle and the last, each once. The operand is not empty.
std::vector<Place> PlacesToTry(const Problem& problem, Operand operand);

/// ReachedElements returns how many elements of a result have a product with an operand's element:
/// as many of the one other operand's shape as of the other's.
std::int64_t ReachedElements(const Problem& problem, const Place& place);

/// OffsetOf returns how many elements behind its operand's first a place lies in memory.
std::int64_t OffsetOf(const Problem& problem, const Place& place);

}  // namespace gradsmith::conv

#endif  // GRADSMITH_CONV_REACH_H_
