#ifndef GRADSMITH_TESTS_SUPPORT_GENERATED_TESTS_H_
#define GRADSMITH_TESTS_SUPPORT_GENERATED_TESTS_H_

#include <string>

#include "gradsmith/registry.h"
#include "support/subject.h"

namespace gradsmith::support {

/// Assert makes a check's findings those of the running test: one failure that lists them and ends
/// with the line that reruns the test alone, or a skip.
void Assert(const Report& report, const std::string& rerun);

/// RegisterGeneratedTests makes GoogleTest tests of all that AddOpTests was given, named so that
/// each can be run alone and groups by a pattern:
///
///     ConvGrad.Exact/float_cpu_asymmetric      a kind of check (checks.h), a row, a backend, a
///     case ConvGrad.Neighbours/float_cpu            likewise, of a row
///     GeneratedTests.CoverEveryRow             rows of the registry and of the shards are the same
///
/// `program` is what a rerun starts. The registry outlives all tests.
void RegisterGeneratedTests(const Registry& registry, const std::string& program);

}  // namespace gradsmith::support

#endif  // GRADSMITH_TESTS_SUPPORT_GENERATED_TESTS_H_
