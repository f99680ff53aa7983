#ifndef GRADSMITH_CUDA_BAD_ENGINES_H_
#define GRADSMITH_CUDA_BAD_ENGINES_H_

#include <string>

#include "core/candidate_name.h"
#include "gradsmith/status.h"

namespace gradsmith::cuda {

/// IsKnownBad says whether an engine of the loaded cuDNN is known to be wrong, to crash or to hang:
/// by a list of our own, or by the user's, which the environment variable GRADSMITH_BAD_ENGINES
/// names. Its lines are
///
///     <operation> <source>/<engine> <spatial rank or *> <first version> <last version>   # why
///
/// for example "backward-data graph/23 3 90000 99999". A line that cannot be read is warned of.
bool IsKnownBad(const std::string& operation, const std::string& engine, int spatial_rank);

/// CheckEngine is an error where IsKnownBad of a kernel's engine: what is remembered may have
/// become known since.
Status
CheckEngine(const std::string& operation, const internal::KernelName& kernel, int spatial_rank);

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_CUDA_BAD_ENGINES_H_
