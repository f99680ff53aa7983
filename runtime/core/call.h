#ifndef GRADSMITH_CORE_CALL_H_
#define GRADSMITH_CORE_CALL_H_

#include "gradsmith/schema.h"

namespace gradsmith::internal {

/// WithRow returns an error with the row before its sentence, or, where there is no memory for
/// that, as it is; success stays success.
Status WithRow(const Row& row, const Status& status);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CALL_H_
