#ifndef GRADSMITH_TESTS_SUPPORT_REFUSAL_H_
#define GRADSMITH_TESTS_SUPPORT_REFUSAL_H_

#include <string>
#include <string_view>
#include <vector>

#include "gradsmith/status.h"
#include "support/subject.h"

namespace gradsmith::support {

/// Mentions is true where `text` contains `phrase` and neither end of it goes on as a name or a
/// number: "X" is not in "dX", "1" not in "-1".
bool Mentions(std::string_view text, std::string_view phrase);

/// VerifyRefusal fails unless the status has the code, names the row as "ConvGrad[float] on cpu
/// (ops.yaml:57): ", and mentions every phrase.
void VerifyRefusal(
    const Subject& subject,
    const std::string& what,
    const Status& status,
    const std::vector<std::string>& phrases,
    Report& report);

/// VerifyPhrases fails unless the status has the code and mentions every phrase.
void VerifyPhrases(
    const std::string& what,
    const Status& status,
    StatusCode code,
    const std::vector<std::string>& phrases,
    Report& report);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_REFUSAL_H_
