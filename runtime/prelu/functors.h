#ifndef GRADSMITH_PRELU_FUNCTORS_H_
#define GRADSMITH_PRELU_FUNCTORS_H_

#include "patterns/functor.h"

/// PRelu by the pattern `map` (patterns/map.h). Kernels compile it as well.
namespace gradsmith::prelu {

struct PReluMap {
  static constexpr int kInputs = 2;  // X, slope
  static constexpr int kOutputs = 1;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = in[0] > 0 ? in[0] : in[1] * in[0];
  }
};

/// The slope is that of the negative side at 0, as PyTorch's.
struct PReluGradMap {
  static constexpr int kInputs = 3;   // dY, X, slope
  static constexpr int kOutputs = 2;  // dX, dSlope
  static constexpr bool kSums = true;
  template <typename A>
  GRADSMITH_FUNCTOR static void Map(const A* in, A* out, const A* /*scalars*/) {
    out[0] = in[1] > 0 ? in[0] : in[2] * in[0];
    out[1] = in[1] > 0 ? A{0} : in[1] * in[0];
  }
};

}  // namespace gradsmith::prelu

#endif  // GRADSMITH_PRELU_FUNCTORS_H_
