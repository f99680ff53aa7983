#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "gradsmith/ops.h"
#include "gradsmith/registry.h"
#include "support/generated_tests.h"
#include "support/memory.h"

namespace {

/// What CTest reads as "skipped".
constexpr int kSkipped = 77;

/// The value of --backend=, or null.
const char* BackendArgument(int argc, char** argv) {
  constexpr const char* kOption = "--backend=";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kOption, std::strlen(kOption)) == 0) {
      return argv[i] + std::strlen(kOption);
    }
  }
  return nullptr;
}

/// Runs the tests of one backend alone, with those that belong to none where it is the CPU.
void FilterBackend(const std::string& backend) {
  testing::GTEST_FLAG(filter) =
      "*_" + backend + "*" + (backend == "cpu" ? ":GeneratedTests.*" : "");
}

}  // namespace

/// Runs the tests that the generator wrote from `ops.yaml`; with --backend=cpu or --backend=cuda
/// those of one backend.
int main(int argc, char** argv) {
  using gradsmith::Backend;
  testing::InitGoogleTest(&argc, argv);
  gradsmith::Registry registry;
  if (const gradsmith::Status status = gradsmith::RegisterAll(registry); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  if (const char* backend = BackendArgument(argc, argv); backend != nullptr) {
    FilterBackend(backend);
    const std::string why = gradsmith::support::WhyUnavailable(
        std::strcmp(backend, "cuda") == 0 ? Backend::kCuda : Backend::kCpu);
    if (!why.empty()) {
      std::printf("skipped: %s\n", why.c_str());
      return kSkipped;
    }
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
