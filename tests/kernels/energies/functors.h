#ifndef GRADSMITH_TESTS_KERNELS_ENERGIES_FUNCTORS_H_
#define GRADSMITH_TESTS_KERNELS_ENERGIES_FUNCTORS_H_

#include <cstdint>

#include "patterns/windows_task.h"

/// What pooling by energy computes, by the pattern `windows` (patterns/windows.h). Kernels compile
/// it as well.
namespace gradsmith::energies {

template <typename A>
struct Sum {
  A sum = 0;
};

struct EnergyPoolWindow {
  static constexpr bool kCounts = false;
  static constexpr bool kPlaces = false;
  template <typename A>
  using State = Sum<A>;
  template <typename A>
  GRADSMITH_WINDOWS static void Take(A x, std::int64_t /*place*/, State<A>* state) {
    state->sum += x * x;
  }
  template <typename A>
  GRADSMITH_WINDOWS static A Value(const State<A>& state, A /*count*/) {
    return state.sum;
  }
};

/// A window gives to all that it holds, to each as much as the element says.
struct EnergyPoolGradWindows {
  static constexpr bool kCounts = false;
  static constexpr bool kReadsInput = true;
  static constexpr int kKey = -1;
  static constexpr int kOutput = 2;
  template <typename T>
  using Key = T;
  template <typename A>
  using State = Sum<A>;
  template <typename Window, typename A, typename T>
  GRADSMITH_WINDOWS static void
  Take(const Window& /*window*/, A dy, T /*none*/, A x, State<A>* state) {
    state->sum += 2 * x * dy;
  }
  template <typename A>
  GRADSMITH_WINDOWS static A Value(const State<A>& state, A /*whole*/) {
    return state.sum;
  }
};

}  // namespace gradsmith::energies

#endif  // GRADSMITH_TESTS_KERNELS_ENERGIES_FUNCTORS_H_
