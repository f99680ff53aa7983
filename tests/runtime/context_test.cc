#include "gradsmith/context.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "gradsmith/cache.h"

namespace gradsmith {
namespace {

/// With GRADSMITH_SEARCH_MODE as it was, whatever a test makes of it.
class SearchModeOfContext : public testing::Test {
 protected:
  SearchModeOfContext() {
    if (const char* given = std::getenv(kVariable); given != nullptr) {
      before_ = given;
    }
    SetWarningHandler([this](const std::string& sentence) { warnings_.push_back(sentence); });
  }
  ~SearchModeOfContext() override {
    SetWarningHandler({});
    if (before_) {
      setenv(kVariable, before_->c_str(), 1);
    } else {
      unsetenv(kVariable);
    }
  }

  static constexpr const char* kVariable = "GRADSMITH_SEARCH_MODE";
  static constexpr SearchMode kModes[] = {
      SearchMode::kDefault, SearchMode::kHeuristic, SearchMode::kBenchmark};

  std::vector<std::string> warnings_;

 private:
  std::optional<std::string> before_;
};

TEST_F(SearchModeOfContext, ComesFromTheEnvironment) {
  for (const SearchMode mode : kModes) {
    setenv(kVariable, std::string(ToString(mode)).c_str(), 1);
    EXPECT_EQ(Context().search_mode(), mode);
    EXPECT_EQ(Context({.device = {Backend::kCuda, 0}}).search_mode(), mode);
  }
  for (const char* nothing : {"", static_cast<const char*>(nullptr)}) {
    if (nothing == nullptr) {
      unsetenv(kVariable);
    } else {
      setenv(kVariable, nothing, 1);
    }
    EXPECT_EQ(Context().search_mode(), SearchMode::kHeuristic);
  }
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(SearchModeOfContext, IsTheOptionsFirst) {
  for (const char* given : {"benchmark", "bemchmark"}) {
    setenv(kVariable, given, 1);
    for (const SearchMode mode : kModes) {
      EXPECT_EQ(Context({.search_mode = mode}).search_mode(), mode);
    }
  }
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(SearchModeOfContext, AMistypedNameIsWarnedOf) {
  setenv(kVariable, "bemchmark", 1);
  EXPECT_EQ(Context().search_mode(), SearchMode::kHeuristic);
  EXPECT_EQ(
      warnings_, std::vector<std::string>{
                     "GRADSMITH_SEARCH_MODE is 'bemchmark'; expected default, heuristic or "
                     "benchmark; heuristic is taken"});
}

}  // namespace
}  // namespace gradsmith
