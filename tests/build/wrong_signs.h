#ifndef GRADSMITH_TESTS_BUILD_WRONG_SIGNS_H_
#define GRADSMITH_TESTS_BUILD_WRONG_SIGNS_H_

#include <algorithm>
#include <span>
#include <vector>

#include "gradsmith/ops.h"
#include "gradsmith/registry.h"
#include "wrong_signs/ops.h"

/// What generated_tests_main.cc tests here: gradients with wrong signs, beside the library's other
/// operators, of which they are the gradients.
namespace gradsmith_with_wrong_signs {

inline gradsmith::Status RegisterAll(gradsmith::Registry& registry) {
  if (gradsmith::Status status = wrong_signs::RegisterAll(registry); !status.ok()) {
    return status;
  }
  const std::vector<const gradsmith::Row*> wrong = registry.rows();
  for (const std::span<const gradsmith::Row> rows : gradsmith::BuiltinTable()) {
    const bool is_wrong = std::any_of(wrong.begin(), wrong.end(), [&](const gradsmith::Row* other) {
      return other->op->name == rows.front().op->name;
    });
    const std::span<const gradsmith::Row> right[] = {rows};
    if (gradsmith::Status status = is_wrong ? gradsmith::Status() : registry.Add(right);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace gradsmith_with_wrong_signs

#endif  // GRADSMITH_TESTS_BUILD_WRONG_SIGNS_H_
