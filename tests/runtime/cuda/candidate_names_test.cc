#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "core/candidate_name.h"
#include "gradsmith/cache.h"
#include "runtime/cuda/op_problems.h"

/// The names of all that searches try are read, and written as they were.
namespace gradsmith::cuda {
namespace {

using internal::Arrangement;
using internal::CandidateName;

class CudaCandidateNames : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    ASSERT_TRUE(ClearCache().ok());
  }

  /// Those of a call's search.
  static void ReadBackAllOf(const OpCall& call, std::set<Arrangement>* arrangements) {
    SCOPED_TRACE(call.Describe());
    std::set<std::string> tried;
    ContextOptions options = OnGpu(SearchMode::kBenchmark, 1);
    options.on_search_progress = [&](const SearchProgress& p) { tried.insert(p.candidate); };
    ASSERT_TRUE(call.Run(Context(options)).ok());
    EXPECT_FALSE(tried.empty());
    for (const std::string& id : tried) {
      const std::optional<CandidateName> name = CandidateName::Read(id);
      ASSERT_TRUE(name) << id;
      EXPECT_EQ(name->Write(), id);
      arrangements->insert(name->arrangement);
    }
  }
};

TEST_F(CudaCandidateNames, AreReadBack) {
  Random random("cuda candidate names");
  std::set<Arrangement> arrangements;
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    for (const DataType type : {DataType::kFloat, DataType::kMLFloat16}) {
      for (const ConvShape& shape : {ConvGrouped(), ConvStrided(), ConvDepthwise()}) {
        ReadBackAllOf(MakeConvGrad(shape, type, layout, random), &arrangements);
      }
      const Sizes images = {4, 6, 5, 7};
      ReadBackAllOf(MakeBatchNorm(images, type, layout, random), &arrangements);
      ReadBackAllOf(MakeBatchNormGrad(images, type, layout, random), &arrangements);
    }
  }
  EXPECT_TRUE(arrangements.contains(Arrangement::kAlone));
  EXPECT_TRUE(arrangements.contains(Arrangement::kInTurn));
  EXPECT_TRUE(arrangements.contains(Arrangement::kSideBySide));
}

}  // namespace
}  // namespace gradsmith::cuda
