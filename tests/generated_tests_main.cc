#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "gradsmith/registry.h"
#include "gradsmith/types.h"
#include "support/device_allocation.h"
#include "support/generated_tests.h"
#include "support/memory.h"

// Operators of another library say what is tested.
#ifndef GRADSMITH_TESTED_OPS
#define GRADSMITH_TESTED_OPS "gradsmith/ops.h"
#define GRADSMITH_TESTED_NAMESPACE gradsmith
#endif
#include GRADSMITH_TESTED_OPS

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

std::optional<gradsmith::Backend> BackendNamed(const std::string& name) {
  for (const gradsmith::Backend backend : {gradsmith::Backend::kCpu, gradsmith::Backend::kCuda}) {
    if (name == ToString(backend)) {
      return backend;
    }
  }
  return std::nullopt;
}

bool HasArgument(int argc, char** argv, const char* argument) {
  return std::any_of(
      argv + 1, argv + argc, [&](const char* given) { return std::strcmp(given, argument) == 0; });
}

/// After each test forgets the calls that were recorded on the GPU.
class CallForgetter final : public testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    gradsmith::support::ForgetCallsOnDevice(0);
  }
};

}  // namespace

/// Runs the tests that the generator wrote from `ops.yaml`; with --backend=cpu or --backend=cuda
/// those of one backend. What else is wanted of them, --gtest_filter says. --forget-calls is for
/// runs on a GPU under compute-sanitizer.
int main(int argc, char** argv) {
  using gradsmith::Backend;
  testing::InitGoogleTest(&argc, argv);
  gradsmith::Registry registry;
  if (const gradsmith::Status status = GRADSMITH_TESTED_NAMESPACE::RegisterAll(registry);
      !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  std::optional<Backend> only;
  if (const char* name = BackendArgument(argc, argv); name != nullptr) {
    only = BackendNamed(name);
    if (!only) {
      std::fprintf(stderr, "--backend=%s is neither cpu nor cuda\n", name);
      return 1;
    }
    const std::string why = gradsmith::support::WhyUnavailable(*only);
    if (!why.empty()) {
      std::printf("skipped: %s\n", why.c_str());
      return kSkipped;
    }
  }
  gradsmith::support::RegisterGeneratedTests(registry, argv[0], only);
  if (HasArgument(argc, argv, "--forget-calls")) {
    testing::UnitTest::GetInstance()->listeners().Append(new CallForgetter);
  }
  const int result = RUN_ALL_TESTS();
  if (!testing::GTEST_FLAG(list_tests) &&
      testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test has a name that --gtest_filter matches\n");
    return 1;
  }
  return result;
}
