#ifndef GRADSMITH_ELEMENTWISE_FUNCTORS_H_
#define GRADSMITH_ELEMENTWISE_FUNCTORS_H_

#include <cmath>

#include "patterns/functor.h"

/// What element-wise operators compute of one element of each tensor, by the pattern `map`
/// (patterns/map.h). Kernels compile it as well.
namespace gradsmith::elementwise {

/// Without overflow for any X: the exponent is never positive.
struct SigmoidMap {
  static constexpr int kInputs = 1;  // X
  static constexpr int kOutputs = 1;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    const A power = std::exp(-std::abs(in[0]));
    out[0] = (in[0] < 0 ? power : A{1}) / (1 + power);
  }
};

struct SigmoidGradMap {
  static constexpr int kInputs = 2;  // dY, Y
  static constexpr int kOutputs = 1;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = in[0] * in[1] * (1 - in[1]);
  }
};

struct LeakyReluMap {
  static constexpr int kInputs = 1;  // X
  static constexpr int kOutputs = 1;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* alpha) {
    out[0] = in[0] > 0 ? in[0] : alpha[0] * in[0];
  }
};

/// The slope is alpha at 0, as PyTorch's.
struct LeakyReluGradMap {
  static constexpr int kInputs = 2;  // dY, X
  static constexpr int kOutputs = 1;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* alpha) {
    out[0] = in[1] > 0 ? in[0] : alpha[0] * in[0];
  }
};

}  // namespace gradsmith::elementwise

#endif  // GRADSMITH_ELEMENTWISE_FUNCTORS_H_
