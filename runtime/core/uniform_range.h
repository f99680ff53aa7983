#ifndef GRADSMITH_CORE_UNIFORM_RANGE_H_
#define GRADSMITH_CORE_UNIFORM_RANGE_H_

namespace gradsmith::internal {

/// UniformRange is [center - radius, center + radius).
struct UniformRange {
  double center = 0;
  double radius = 1;
  /// How many values there are on either side of the center; 0 for all.
  double levels = 0;

  friend bool operator==(const UniformRange&, const UniformRange&) = default;
};

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_UNIFORM_RANGE_H_
