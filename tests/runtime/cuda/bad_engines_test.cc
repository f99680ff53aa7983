#include "cuda/bad_engines.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/cudnn.h"
#include "gradsmith/cache.h"
#include "support/scratch_folder.h"

namespace gradsmith::cuda {
namespace {

TEST(BadEngines, AreTheListedOnesOfTheLoadedVersion) {
  if (!LoadCudnn().ok()) {
    GTEST_SKIP() << LoadCudnn().status().message();
  }
  const int version = LoadCudnn()->version;
  EXPECT_EQ(IsKnownBad("backward-data", "graph/23", 3), version >= 90000 && version <= 99999);
  EXPECT_EQ(IsKnownBad("forward", "graph/23", 3), version >= 90800 && version <= 91599);
  EXPECT_FALSE(IsKnownBad("backward-data", "graph/23", 2));
  EXPECT_FALSE(IsKnownBad("backward-filter", "graph/23", 3));
  EXPECT_FALSE(IsKnownBad("backward-data", "legacy/23", 3));
  EXPECT_FALSE(IsKnownBad("backward-data", "graph/2", 3));
}

/// The user's list, in a process of its own; 0 where it is as it must be.
int UseList() {
  const support::ScratchFolder folder;
  const std::string path = folder.path() + "/bad.txt";
  support::WriteFile(
      path,
      "# engines that hurt\n"
      "\n"
      "forward graph/7 * 0 999999   # all axes\n"
      "forward graph/8 2 0 999999\n"
      "forward graph/9 2 0 1\n"
      "forward graph/10 2 many\n");
  setenv("GRADSMITH_BAD_ENGINES", path.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  std::vector<std::string> warnings;
  SetWarningHandler([&](const std::string& sentence) { warnings.push_back(sentence); });
  EXPECT_TRUE(IsKnownBad("forward", "graph/7", 1));
  EXPECT_TRUE(IsKnownBad("forward", "graph/8", 2));
  EXPECT_FALSE(IsKnownBad("forward", "graph/8", 3));
  EXPECT_FALSE(IsKnownBad("forward", "graph/9", 2));
  EXPECT_FALSE(IsKnownBad("forward", "graph/10", 2));
  const Status remembered =
      CheckEngine("forward", {.source = "graph", .variant = "engine 8/2=1"}, 2);
  EXPECT_EQ(remembered.code(), StatusCode::kUnsupported);
  EXPECT_NE(
      remembered.message().find("'graph/engine 8/2=1' is known to be bad in cuDNN"),
      std::string::npos)
      << remembered.message();
  EXPECT_TRUE(CheckEngine("forward", {.source = "graph", .variant = "engine 8/2=1"}, 3).ok());
  EXPECT_EQ(
      warnings, std::vector<std::string>{
                    path + ":6: expected <operation> <source>/<engine> <rank or *> <first version> "
                           "<last version>"});
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(BadEngines, AreTheUsersToo) {
  if (!LoadCudnn().ok()) {
    GTEST_SKIP() << LoadCudnn().status().message();
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has not read its list
  EXPECT_EXIT(_exit(UseList()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gradsmith::cuda
