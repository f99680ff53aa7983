#ifndef GRADSMITH_PATTERNS_ROWS_INFO_H_
#define GRADSMITH_PATTERNS_ROWS_INFO_H_

#include <span>
#include <string_view>

#include "patterns/rows.h"
#include "patterns/rows_passes.h"

namespace gradsmith::cuda {

/// RowsInfo is what launches depend on of a functor of the pattern `rows`.
struct RowsInfo {
  internal::RowsCounts counts;
  int phases = 0;
  int results = 0;
  int elements_of_column = 0;
  bool rows_of_many_dims = false;
  bool is_flat = false;
};

template <typename Functor>
inline constexpr RowsInfo kRowsInfo = {
    .counts = internal::CountsOf<Functor>(),
    .phases = Functor::kPhases,
    .results = AtLeastOne(Functor::kResults),
    .elements_of_column = kElementsOfColumn<Functor>,
    .rows_of_many_dims = Functor::kRowsOfManyDims,
    .is_flat = Functor::kIsFlat};

/// RowsKernels are those of a functor: what their names have in common, and how they are launched.
struct RowsKernels {
  std::string_view name;
  RowsInfo info;
};

template <typename Functor>
constexpr RowsKernels RowsKernelsOf(std::string_view name) {
  return {.name = name, .info = kRowsInfo<Functor>};
}

/// RowsPassesInfo is the same of an operator whose formulas are computed by passes of rows.
struct RowsPassesInfo {
  internal::RowsPasses passes;
  /// The kernels of each pass.
  std::span<const RowsKernels> kernels;
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_ROWS_INFO_H_
