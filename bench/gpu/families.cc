#include <stdexcept>

#include "bench_families.h"
#include "gpu/cases.h"

#define GRADSMITH_DECLARE(family) \
  namespace family {              \
  Family BenchFamily();           \
  }
#define GRADSMITH_CALL(family) family::BenchFamily(),

namespace gradsmith::bench {

GRADSMITH_FAMILIES(GRADSMITH_DECLARE)

std::vector<Family> Families() {
  return {GRADSMITH_FAMILIES(GRADSMITH_CALL)};
}

CaseKind KindOf(const SuiteCase& suite_case) {
  for (const Family& family : Families()) {
    for (const CaseKind& kind : family.kinds) {
      if (kind.has(suite_case)) {
        return kind;
      }
    }
  }
  throw std::runtime_error("no family knows cases with the columns of " + suite_case.Name());
}

}  // namespace gradsmith::bench
