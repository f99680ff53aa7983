#ifndef GRADSMITH_TESTS_RUNTIME_CUDA_CHILD_PROCESS_H_
#define GRADSMITH_TESTS_RUNTIME_CUDA_CHILD_PROCESS_H_

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "runtime/cuda/op_call.h"

/// Tests that need a process of their own: what is read once at its start, and what outlives it.
namespace gradsmith::cuda {

struct ChildResult {
  int exit_code = -1;
  std::string output;

  /// The number behind "CHILD <name>=" in the output, or -1.
  [[nodiscard]] double Number(const std::string& name) const {
    const std::size_t at = output.find("CHILD " + name + "=");
    return at == std::string::npos ? -1 : std::atof(&output[at + 7 + name.size()]);
  }
  [[nodiscard]] bool Says(const std::string& text) const {
    return output.find(text) != std::string::npos;
  }
};

/// RunChild runs this program once more, with one test and more environment. Values are plain
/// words.
inline ChildResult RunChild(
    const std::string& test,
    const std::map<std::string, std::string>& environment) {
  // This process may run but some of the tests.
  std::string command =
      std::string("env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX ") + kChildVariable + "=1";
  for (const auto& [name, value] : environment) {
    command += " " + name + "='" + value + "'";
  }
  command += " '" + std::filesystem::read_symlink("/proc/self/exe").string() +
             "' --gtest_filter=" + test + " 2>&1";
  ChildResult result;
  // NOLINTNEXTLINE(cert-env33-c): the command is this program
  FILE* pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> part{};
  for (std::size_t count = 0; (count = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    result.output.append(part.data(), count);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

/// A child that failed or ran nothing.
inline void ExpectPassed(const ChildResult& child, const std::string& doing) {
  EXPECT_EQ(child.exit_code, 0) << doing << ":\n" << child.output;
  EXPECT_TRUE(child.Says("[  PASSED  ] 1 test")) << doing << ":\n" << child.output;
  EXPECT_FALSE(child.Says("[  SKIPPED ]")) << doing << ":\n" << child.output;
}

/// CudaChildTest is for tests that only run in such a process.
class CudaChildTest : public CudaTest {
 protected:
  void SetUp() override {
    if (std::getenv(kChildVariable) == nullptr) {
      GTEST_SKIP() << "runs in a process that another test starts";
    }
    CudaTest::SetUp();
  }
};

}  // namespace gradsmith::cuda

#endif  // GRADSMITH_TESTS_RUNTIME_CUDA_CHILD_PROCESS_H_
