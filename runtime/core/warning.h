#ifndef GRADSMITH_CORE_WARNING_H_
#define GRADSMITH_CORE_WARNING_H_

#include <string>

namespace gradsmith::internal {

/// Warn passes a sentence to the handler that the program set (gradsmith/cache.h), otherwise to
/// standard error.
void Warn(const std::string& sentence);

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_WARNING_H_
