#ifndef GRADSMITH_CORE_ATTRIBUTE_CHECK_H_
#define GRADSMITH_CORE_ATTRIBUTE_CHECK_H_

#include "gradsmith/schema.h"
#include "gradsmith/status.h"

namespace gradsmith::internal {

/// ValidateAttributes checks ranges, and lengths of lists as far as they do not depend on shapes.
Status ValidateAttributes(const OpSchema& op, const void* attributes);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_ATTRIBUTE_CHECK_H_
