#ifndef GRADSMITH_CORE_EXPLAIN_H_
#define GRADSMITH_CORE_EXPLAIN_H_

#include <span>
#include <string>
#include <string_view>

#include "gradsmith/registry.h"

namespace gradsmith::internal {

/// Explain is Registry::Explain, but throws std::bad_alloc where there is no memory for it.
std::string Explain(
    const Registry& registry,
    std::string_view op,
    std::span<const DataType> types,
    Backend backend);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_EXPLAIN_H_
