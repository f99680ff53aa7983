// Compiled alone: it has definitions of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/bad_engines.h"
#include "cuda/cudnn.h"

/// What depends on cuDNN's version and answers, with a library in its place that says what a test
/// needs. It is loaded once: each test loads it in a process of its own.
namespace gradsmith::cuda {
namespace {

class FakeCudnn : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void Load(int version) {
    setenv("GRADSMITH_CUDNN_LIBRARY", GRADSMITH_FAKE_CUDNN, 1);
    setenv("FAKE_CUDNN_VERSION", std::to_string(version).c_str(), 1);
    unsetenv("GRADSMITH_BAD_ENGINES");
  }
};

int CompareCandidates() {
  unsetenv("GRADSMITH_CUDNN_LIBRARY");
  setenv("CUDA_HOME", "/opt/toolkit", 1);
  std::vector<std::string> expected = {
      "libcudnn.so.9", "/opt/toolkit/lib64/libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
  if (constexpr std::string_view last = GRADSMITH_CUDNN_LAST; !last.empty()) {
    expected.emplace_back(last);
  }
  EXPECT_EQ(CudnnCandidates(), expected);
  setenv("GRADSMITH_CUDNN_LIBRARY", "/opt/libcudnn.so", 1);
  EXPECT_EQ(CudnnCandidates(), std::vector<std::string>{"/opt/libcudnn.so"});
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST_F(FakeCudnn, IsSoughtLastWhereTheBuildHasFoundOne) {
  EXPECT_EXIT(_exit(CompareCandidates()), testing::ExitedWithCode(0), "");
}

struct KnownBad {
  const char* operation;
  const char* engine;
  int spatial_rank;
  int first_version;
  int last_version;
};

constexpr KnownBad kKnownBad[] = {
    {"forward", "graph/23", 3, 90800, 91599},       {"forward", "graph/5", 1, 92301, 92499},
    {"forward", "graph/5", 2, 92301, 92499},        {"forward", "graph/5", 3, 92301, 92499},
    {"backward-data", "graph/23", 3, 90000, 99999},
};

int CompareBadEngines(int version) {
  for (const KnownBad& bad : kKnownBad) {
    EXPECT_EQ(
        IsKnownBad(bad.operation, bad.engine, bad.spatial_rank),
        version >= bad.first_version && version <= bad.last_version)
        << bad.operation << " " << bad.engine << ", " << bad.spatial_rank << " axes, cuDNN "
        << version;
  }
  EXPECT_FALSE(IsKnownBad("forward", "graph/23", 2));
  EXPECT_FALSE(IsKnownBad("backward-filter", "graph/23", 3));
  EXPECT_FALSE(IsKnownBad("backward-data", "graph/5", 3));
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST_F(FakeCudnn, EnginesAreBadFromTheirFirstVersionToTheirLast) {
  for (const int version :
       {90000, 90799, 90800, 91599, 91600, 91900, 92300, 92301, 92499, 92500, 99999}) {
    EXPECT_EXIT(
        {
          Load(version);
          _exit(CompareBadEngines(version));
        },
        testing::ExitedWithCode(0), "")
        << version;
  }
}

void ExpectStatus(cudnnStatus_t result, StatusCode code, const std::string& message) {
  const Status status = ToStatus(result, "making a descriptor");
  EXPECT_EQ(status.code(), code) << result;
  EXPECT_EQ(status.message(), message) << result;
}

int CompareStatuses() {
  const std::string plain = "making a descriptor: FAKE_STATUS";
  const std::string with_reason = plain + " (dims[2] is odd)";
  ExpectStatus(CUDNN_STATUS_SUCCESS, StatusCode::kOk, "");
  setenv("FAKE_CUDNN_LAST_ERROR", "dims[2] is odd", 1);
  ExpectStatus(CUDNN_STATUS_BAD_PARAM, StatusCode::kUnsupported, with_reason);
  ExpectStatus(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, StatusCode::kUnsupported, with_reason);
  ExpectStatus(CUDNN_STATUS_EXECUTION_FAILED, StatusCode::kInternal, with_reason);
  ExpectStatus(
      CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, StatusCode::kOutOfMemory, with_reason);
  ExpectStatus(
      CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, StatusCode::kOutOfMemory, with_reason);
  setenv("FAKE_CUDNN_LAST_ERROR", "", 1);
  ExpectStatus(CUDNN_STATUS_BAD_PARAM, StatusCode::kUnsupported, plain);
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST_F(FakeCudnn, AStatusGivesCudnnsLastError) {
  EXPECT_EXIT(
      {
        Load(91900);
        _exit(CompareStatuses());
      },
      testing::ExitedWithCode(0), "");
}

int CompareVersion(int version, const std::string& error) {
  EXPECT_EQ(LoadCudnn().ok() ? "" : LoadCudnn().status().message(), error);
  if (error.empty()) {
    EXPECT_EQ(LoadCudnn()->version, version);
  }
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST_F(FakeCudnn, AnOldVersionIsRefused) {
  const std::string old =
      std::string(GRADSMITH_FAKE_CUDNN) + " is version 8999; expected 9.0 or later";
  for (const auto& [version, error] : {std::pair(8999, old), std::pair(90000, std::string())}) {
    EXPECT_EXIT(
        {
          Load(version);
          _exit(CompareVersion(version, error));
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace gradsmith::cuda
