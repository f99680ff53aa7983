#ifndef GRADSMITH_PATTERNS_ROWS_FUNCTOR_H_
#define GRADSMITH_PATTERNS_ROWS_FUNCTOR_H_

#include <cstdint>

#include "patterns/functor.h"

/// What functors of the pattern `rows` (patterns/rows.h) are made of. Kernels compile it as well:
/// plain C++17.
namespace gradsmith {

/// RowValues are what is known of a row while its elements are visited. A is float, or double for
/// tensors of doubles.
template <typename A>
struct RowValues {
  /// The row's element of each row input; 0 where the input is absent.
  const A* inputs = nullptr;
  /// The row's element of each integer input, as it is: also one that no A holds.
  const std::int64_t* integers = nullptr;
  /// What each table has at the integer that it is looked up by.
  const A* lookups = nullptr;
  /// The place in the row of the element that is visited; not in Finish and RowOutputs.
  std::int64_t index = 0;
  /// What the phases before this one found.
  const A* results = nullptr;
  /// The first element of the input kPivot, near which all of a row often lie; 0 where it is not
  /// finite.
  A pivot = 0;
  /// How many elements the row has.
  A length = 0;
  std::int64_t exact_length = 0;
  const A* scalars = nullptr;
  /// The same as they were given, so that integers are whole.
  const double* exact_scalars = nullptr;
};

/// RowsLookup says what a functor looks up: the numbers of the table and of the integer by which
/// it is, and whether what lies outside of the table is NaN and not 0.
struct RowsLookup {
  int table = 0;
  int integer = 0;
  bool refuses_outside = false;
};

/// RowsFunctor is what a functor of the pattern has where it says nothing else.
struct RowsFunctor {
  static constexpr int kRowInputs = 0;
  static constexpr int kRowOutputs = 0;
  static constexpr int kColumnInputs = 0;
  static constexpr int kColumnSums = 0;
  /// Inputs with an integer or a truth value for each row.
  static constexpr int kIntegerInputs = 0;
  /// Inputs with an element for each place of a row, of any floating type, of which elements are
  /// looked up (LookupAt). What has no such place is 0, or NaN where it is refused, and what an
  /// absent table has is 0.
  static constexpr int kTables = 0;
  static constexpr int kLookups = 0;
  /// The element input whose first element of a row is RowValues::pivot; -1 for none.
  static constexpr int kPivot = -1;
  /// Bit i is set where the i-th operand has the second element type of the kernel, and not the
  /// first. Row inputs and outputs have any.
  static constexpr unsigned kSecondTypes = 0;
  /// Bit i is set where the i-th element input may be absent, so that its elements are 0. The first
  /// is always there.
  static constexpr unsigned kOptionalInputs = 0;
  /// Bit i is set where terms of the i-th sum of columns are made of RowValues::results. Where sums
  /// of columns alone are wanted, and none of these, results are not found.
  static constexpr unsigned kSumsOfResults = 0;
  /// Whether rows are mostly made of dims that no one stride serves. Kernels on CUDA then compute
  /// where each vector of a row lies; else they read such rows one element at a time.
  static constexpr bool kRowsOfManyDims = false;
  /// Whether calls have one row, of all dims, of which nothing is reduced or looked up and which
  /// has nothing of columns: a map, with what there is once for all elements beside it. Kernels on
  /// CUDA are then those of patterns/cuda/rows_flat.cuh.
  static constexpr bool kIsFlat = false;

  GRADSMITH_FUNCTOR static constexpr RowsLookup LookupAt(int /*lookup*/) { return {}; }
  /// Whether a result is the largest of its terms, and not their sum.
  GRADSMITH_FUNCTOR static constexpr bool IsMax(int /*result*/) { return false; }
  /// Makes of a phase's sums what later phases and the outputs need.
  template <typename A>
  GRADSMITH_FUNCTOR static void Finish(int /*phase*/, const RowValues<A>& /*row*/, A* /*results*/) {
  }
  template <typename A>
  GRADSMITH_FUNCTOR static void RowOutputs(const RowValues<A>& /*row*/, A* /*outputs*/) {}
  /// The element output whose values are the terms of a sum of columns, before they are rounded;
  /// -1 where none is. Kernels then compute them once.
  GRADSMITH_FUNCTOR static constexpr int OutputOf(int /*sum*/) { return -1; }
  /// An element's terms of its column's sums, of which those of kSumsOfResults may be made of
  /// RowValues::results.
  template <typename A>
  GRADSMITH_FUNCTOR static void
  ColumnTerms(const RowValues<A>& /*row*/, const A* /*in*/, const A* /*columns*/, A* /*terms*/) {}
};

/// ChannelsFunctor is the same for a functor of the pattern `channels`, whose rows are the batch
/// and the spatial dims.
struct ChannelsFunctor : RowsFunctor {
  static constexpr bool kRowsOfManyDims = true;
};

/// RowsPlaces says where a functor's operands stand among those of the operator.
template <typename Functor>
struct RowsPlaces {
  static constexpr int kColumnInput = Functor::kInputs;
  static constexpr int kRowInput = kColumnInput + Functor::kColumnInputs;
  static constexpr int kIntegerInput = kRowInput + Functor::kRowInputs;
  static constexpr int kTable = kIntegerInput + Functor::kIntegerInputs;
  static constexpr int kOutput = kTable + Functor::kTables;
  static constexpr int kColumnSum = kOutput + Functor::kOutputs;
  static constexpr int kRowOutput = kColumnSum + Functor::kColumnSums;
  static constexpr int kEnd = kRowOutput + Functor::kRowOutputs;
};

/// MayBeAbsent is true of an element input that a call may lack.
template <typename Functor>
GRADSMITH_FUNCTOR constexpr bool MayBeAbsent(int input) {
  return (Functor::kOptionalInputs >> input & 1U) != 0;
}

/// SumsOutputs is true where a sum of columns adds up an element output.
template <typename Functor>
constexpr bool SumsOutputs() {
  for (int s = 0; s < Functor::kColumnSums; ++s) {
    if (Functor::OutputOf(s) >= 0) {
      return true;
    }
  }
  return false;
}

/// WantsSumsOfResults returns whether a sum of columns is wanted that is made of results. `tensors`
/// are null where an operand is absent.
template <typename Functor>
GRADSMITH_FUNCTOR bool WantsSumsOfResults(void* const* tensors) {
  bool are_wanted = false;
  for (int s = 0; s < Functor::kColumnSums; ++s) {
    are_wanted = are_wanted || ((Functor::kSumsOfResults >> s & 1U) != 0 &&
                                tensors[RowsPlaces<Functor>::kColumnSum + s] != nullptr);
  }
  return are_wanted;
}

/// kElementsOfColumn is how many elements a row has in each column, of inputs and of what is made
/// of them.
template <typename Functor>
inline constexpr int kElementsOfColumn =
    Functor::kInputs + Functor::kColumnInputs + Functor::kColumnSums + Functor::kOutputs;

/// AtLeastOne is the size of an array that may have no elements.
constexpr int AtLeastOne(int count) {
  return count > 1 ? count : 1;
}

}  // namespace gradsmith

#endif  // GRADSMITH_PATTERNS_ROWS_FUNCTOR_H_
