#ifndef GRADSMITH_TESTS_SUPPORT_GENERATED_TESTS_H_
#define GRADSMITH_TESTS_SUPPORT_GENERATED_TESTS_H_

#include <optional>
#include <string>

#include "gradsmith/registry.h"
#include "gradsmith/types.h"
#include "support/subject.h"

namespace gradsmith::support {

/// Assert makes a check's findings those of the running test: one failure that lists them and ends
/// with the line that reruns the test alone, or a skip.
void Assert(const Report& report, const std::string& rerun);

/// RegisterGeneratedTests makes GoogleTest tests of all that AddOpTests was given, named so that
/// each can be run alone and groups by a pattern:
///
///     ConvGrad.Exact/float_cpu_asymmetric      a kind of check (checks.h), row, backend, case
///     ConvGrad.Neighbours/float_cpu            likewise, of a row
///     GeneratedTests.CoverEveryRow             rows of the registry and of the shards are the same
///
/// Where `only` is given, the tests of other backends are left out; what belongs to none counts as
/// the CPU's. `program` is what a rerun starts. The registry outlives all tests.
void RegisterGeneratedTests(
    const Registry& registry,
    const std::string& program,
    std::optional<Backend> only);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_GENERATED_TESTS_H_
