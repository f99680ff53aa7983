#include <gtest/gtest.h>

#include <cstdio>

#include "gradsmith/ops.h"
#include "gradsmith/registry.h"
#include "support/generated_tests.h"

/// Runs the tests that the generator wrote from `ops.yaml`.
int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gradsmith::Registry registry;
  if (const gradsmith::Status status = gradsmith::RegisterAll(registry); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  gradsmith::support::RegisterGeneratedTests(registry, argv[0]);
  const int result = RUN_ALL_TESTS();
  if (!testing::GTEST_FLAG(list_tests) &&
      testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test has a name that --gtest_filter matches\n");
    return 1;
  }
  return result;
}
