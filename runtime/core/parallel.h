#ifndef GRADSMITH_CORE_PARALLEL_H_
#define GRADSMITH_CORE_PARALLEL_H_

#include <cstdint>
#include <functional>

#include "gradsmith/context.h"

namespace gradsmith::internal {

/// ParallelFor calls body(begin, end) on pieces of [0, total) on the context's threads and returns
/// when all are done. Pieces hold at least `grain` indices. How the range is cut depends on the
/// number of threads, so a body must not let its results depend on where a piece begins. The first
/// exception of a body is rethrown.
void ParallelFor(
    const Context& context,
    std::int64_t total,
    std::int64_t grain,
    const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_PARALLEL_H_
