#ifndef GRADSMITH_PATTERNS_ROWS_INFO_H_
#define GRADSMITH_PATTERNS_ROWS_INFO_H_

#include "patterns/rows.h"

namespace gradsmith::cuda {

/// RowsInfo is what launches depend on of a functor of the pattern `rows`.
struct RowsInfo {
  internal::RowsCounts counts;
  int phases = 0;
  int results = 0;
  bool rows_of_many_dims = false;
};

template <typename Functor>
inline constexpr RowsInfo kRowsInfo = {
    .counts = internal::CountsOf<Functor>(),
    .phases = Functor::kPhases,
    .results = AtLeastOne(Functor::kResults),
    .rows_of_many_dims = Functor::kRowsOfManyDims};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_PATTERNS_ROWS_INFO_H_
