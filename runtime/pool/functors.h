#ifndef GRADSMITH_POOL_FUNCTORS_H_
#define GRADSMITH_POOL_FUNCTORS_H_

#include <cstdint>
#include <limits>

#include "patterns/windows_task.h"

/// What pooling computes of a window, and of the windows that hold an element, by the pattern
/// `windows` (patterns/windows.h). Kernels compile it as well: plain C++17.
namespace gradsmith::pool {

/// Y and Indices of X: the first of the largest, or the last NaN, as PyTorch chooses.
struct MaxPoolWindow {
  static constexpr bool kCounts = false;
  static constexpr bool kPlaces = true;
  template <typename A, typename Place = std::int64_t>
  struct State {
    A best = -std::numeric_limits<A>::infinity();
    Place place = -1;
  };
  /// Begin is for windows whose elements come in order, and begin at a place.
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static void Begin(Place place, State<A, Place>* state) {
    state->place = place;
  }
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static void TakeNext(A x, Place place, State<A, Place>* state) {
    if (x > state->best || internal::IsNan(x)) {
      state->best = x;
      state->place = place;
    }
  }
  template <typename A>
  GRADSMITH_WINDOWS static void Take(A x, std::int64_t place, State<A>* state) {
    if (x > state->best || internal::IsNan(x) || state->place < 0) {
      state->best = x;
      state->place = place;
    }
  }
  /// Whichever comes first in the window, indices tell.
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static void Merge(const State<A, Place>& other, State<A, Place>* state) {
    const bool is_later = other.place > state->place;
    const bool is_nan = internal::IsNan(state->best);
    const bool replaces =
        internal::IsNan(other.best)
            ? !is_nan || is_later
            : !is_nan && (other.best > state->best || (other.best == state->best && !is_later));
    if (other.place >= 0 && (replaces || state->place < 0)) {
      *state = other;
    }
  }
  /// The state of elements whose places begin at zero, as if they began at another.
  template <typename A>
  GRADSMITH_WINDOWS static State<A> Moved(const State<A, int>& state, std::int64_t to) {
    return {state.best, to + state.place};
  }
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static A Value(const State<A, Place>& state, A /*count*/) {
    return state.best;
  }
  template <typename A>
  GRADSMITH_WINDOWS static std::int64_t Place(const State<A>& state) {
    return state.place;
  }
};

/// Y of X. A window that counts nothing has mean 0.
struct AveragePoolWindow {
  static constexpr bool kCounts = true;
  static constexpr bool kPlaces = false;
  template <typename A, typename Place = std::int64_t>
  struct State {
    A sum = 0;
  };
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static void Begin(Place /*place*/, State<A, Place>* /*state*/) {}
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static void TakeNext(A x, Place /*place*/, State<A, Place>* state) {
    state->sum += x;
  }
  template <typename A>
  GRADSMITH_WINDOWS static void Take(A x, std::int64_t /*place*/, State<A>* state) {
    state->sum += x;
  }
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static void Merge(const State<A, Place>& other, State<A, Place>* state) {
    state->sum += other.sum;
  }
  template <typename A>
  GRADSMITH_WINDOWS static State<A> Moved(const State<A, int>& state, std::int64_t /*to*/) {
    return {state.sum};
  }
  template <typename A, typename Place>
  GRADSMITH_WINDOWS static A Value(const State<A, Place>& state, A count) {
    return count == 0 ? A{0} : state.sum / count;
  }
};

/// The sum of gradients, for those that take them whole.
template <typename A>
struct GradientSum {
  A sum = 0;
};

/// dX of dY, Indices. An index that names no element of its window adds to nothing, and none is
/// ever used as an address.
struct MaxPoolGradWindows {
  static constexpr bool kCounts = false;
  static constexpr bool kReadsInput = false;
  static constexpr int kKey = 1;
  static constexpr int kOutput = 2;
  template <typename T>
  using Key = std::int64_t;
  template <typename A>
  using State = GradientSum<A>;

  template <typename Window, typename A>
  GRADSMITH_WINDOWS static void
  Take(const Window& window, A dy, std::int64_t index, A /*x*/, State<A>* state) {
    state->sum += index == window.place ? dy : A{0};
  }
  template <typename A>
  GRADSMITH_WINDOWS static A Value(const State<A>& state, A /*whole*/) {
    return state.sum;
  }
};

/// dX of dY, X, Y.
struct MaxPoolXYGradWindows {
  static constexpr bool kCounts = false;
  static constexpr bool kReadsInput = true;
  static constexpr int kKey = 2;
  static constexpr int kOutput = 3;
  template <typename T>
  using Key = T;
  template <typename A>
  using State = GradientSum<A>;

  template <typename Window, typename A, typename T>
  GRADSMITH_WINDOWS static void Take(const Window& window, A dy, T y, A x, State<A>* state) {
    if (window.IsChosen(x, window.access.template Load<A>(&y))) {
      state->sum += dy;
    }
  }

  /// Whether an element may be the one that a window of maximum y gives to: the first of those, or
  /// where y is not a number the last.
  template <typename A>
  GRADSMITH_WINDOWS static bool Matches(A x, A y) {
    return x == y || (internal::IsNan(y) && internal::IsNan(x));
  }
  template <typename A>
  GRADSMITH_WINDOWS static bool GivesToLast(A y) {
    return internal::IsNan(y);
  }
  template <typename A>
  GRADSMITH_WINDOWS static A Value(const State<A>& state, A /*whole*/) {
    return state.sum;
  }
};

/// dX of dY. Windows without padding are all divided by one number, once.
struct AveragePoolGradWindows {
  static constexpr bool kCounts = true;
  static constexpr bool kReadsInput = false;
  static constexpr int kKey = -1;
  static constexpr int kOutput = 1;
  template <typename T>
  using Key = T;
  template <typename A>
  struct State {
    A whole = 0;
    A rest = 0;
  };

  template <typename Window, typename A, typename T>
  GRADSMITH_WINDOWS static void
  Take(const Window& window, A dy, T /*none*/, A /*x*/, State<A>* state) {
    if (window.count == window.whole) {
      state->whole += dy;
    } else {
      state->rest += dy / window.count;
    }
  }
  template <typename A>
  GRADSMITH_WINDOWS static A Value(const State<A>& state, A whole) {
    return state.rest + (state.whole / whole);
  }
};

}  // namespace gradsmith::pool

#endif  // GRADSMITH_POOL_FUNCTORS_H_
