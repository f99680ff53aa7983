#include "core/cpu_candidates.h"

namespace gradsmith::internal {

bool CpuHasCandidates() {
  return false;
}

}  // namespace gradsmith::internal
