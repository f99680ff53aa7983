#ifndef GRADSMITH_PATTERNS_PLACES_H_
#define GRADSMITH_PATTERNS_PLACES_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "gradsmith/status.h"
#include "gradsmith/tensor.h"

/// Integers by which tables are looked up, where what lies outside of a table is refused.
namespace gradsmith::internal {

/// PlacesAlong is a dim of a call and how many places it has.
struct PlacesAlong {
  std::string_view dim;
  std::int64_t count = 0;
};

/// NeverRefused is an attribute whose value is no error, be it a place or not.
struct NeverRefused {
  std::string_view attribute = {};
  std::optional<std::int64_t> value = std::nullopt;
};

/// CheckPlaces returns the error of the first integer, in row-major order, that is no place along
/// the dim. The integers lie on the host, unless they are absent (null).
Status CheckPlaces(
    std::string_view name,
    const ConstTensorRef* integers,
    const PlacesAlong& places,
    const NeverRefused& allowed = {});

}  // namespace gradsmith::internal

#endif  // GRADSMITH_PATTERNS_PLACES_H_
