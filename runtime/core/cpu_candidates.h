#ifndef GRADSMITH_CORE_CPU_CANDIDATES_H_
#define GRADSMITH_CORE_CPU_CANDIDATES_H_

namespace gradsmith::internal {

/// CpuHasCandidates says whether the CPU backend has kernels to choose among: in a build with
/// oneDNN (defined in onednn/library.cc), not in one without (core/no_onednn).
bool CpuHasCandidates();

}  // namespace gradsmith::internal

#endif  // GRADSMITH_CORE_CPU_CANDIDATES_H_
