#include "cuda/selected_run.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/search_revision.h"
#include "cuda/cudnn.h"
#include "gradsmith/context.h"
#include "runtime/cuda/op_problems.h"

/// How a context's policies reach selection, and errors. Most of it needs no GPU.
namespace gradsmith::cuda {
namespace {

ContextOptions Options() {
  ContextOptions options;
  options.device = {Backend::kCuda, 0};
  options.search_mode = SearchMode::kHeuristic;
  options.cache = "off";
  return options;
}

TEST(PolicyOf, IsTheContexts) {
  ContextOptions options = Options();
  options.search_mode = SearchMode::kBenchmark;
  options.search_budget_seconds = 3;
  options.first_choice_seconds = 0.5;
  options.allow_tf32 = true;
  options.deterministic = true;
  const internal::SearchPolicy policy = PolicyOf(Context(options), DataType::kFloat);
  EXPECT_EQ(policy.mode, SearchMode::kBenchmark);
  EXPECT_EQ(policy.budget_seconds, 3);
  EXPECT_TRUE(policy.allow_tf32);
  EXPECT_TRUE(policy.deterministic);
  EXPECT_EQ(policy.workspace_limit, kNoLimit);
  // The same bits each time: no clock chooses.
  EXPECT_EQ(policy.first_choice_seconds, 0);
  options.deterministic = false;
  EXPECT_EQ(PolicyOf(Context(options), DataType::kFloat).first_choice_seconds, 0.5);
}

TEST(PolicyOf, OnlyDoubleIsDeterministicByItself) {
  const Context context(Options());
  EXPECT_FALSE(PolicyOf(context, DataType::kFloat).allow_tf32);
  for (const DataType type : kAllTypes) {
    EXPECT_EQ(PolicyOf(context, type).deterministic, type == DataType::kDouble);
  }
  ContextOptions options = Options();
  options.deterministic = false;
  EXPECT_FALSE(PolicyOf(Context(options), DataType::kDouble).deterministic);
}

/// Down to a power of two: what was chosen for less than the limit fits.
TEST(PolicyOf, LimitsThatDifferLittleShareTheirChoices) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1024}, std::size_t{1500}}) {
    ContextOptions options = Options();
    options.workspace_limit = limit;
    EXPECT_EQ(
        PolicyOf(Context(options), DataType::kFloat).workspace_limit,
        limit == 1500 ? std::size_t{1024} : limit);
  }
}

TEST(Explained, NamesWhatWasComputedPoliciesAndLibrary) {
  ContextOptions options = Options();
  options.workspace_limit = 1500;
  const Status status = Explained(
      Context(options), DataType::kDouble, "backward-data of double", Internal("STATUS_BAD"));
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  for (const std::string part :
       {"backward-data of double: STATUS_BAD (", "deterministic", "no TF32",
        "search mode heuristic", "workspace limit 1500", "cuDNN"}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "'" << part << "' is not in: " << status.message();
  }
  options.allow_tf32 = true;
  options.deterministic = false;
  options.workspace_limit = kNoLimit;
  const Status other = Explained(Context(options), DataType::kFloat, "", Internal("STATUS_BAD"));
  EXPECT_TRUE(other.message().starts_with(
      "STATUS_BAD (any order of sums, TF32 allowed, search mode heuristic, no workspace limit; "))
      << other.message();
  EXPECT_TRUE(Explained(Context(options), DataType::kFloat, "", Status()).ok());
}

std::string KeyOf(const ContextOptions& options, const Origin& origin) {
  internal::ProblemKey key;
  AddPolicy(Context(options), origin, DataType::kFloat, &key);
  return key.Text();
}

/// Each policy has its own choices.
TEST(AddPolicy, KeysTellPoliciesApart) {
  const auto key_of = [&](const auto& change) {
    ContextOptions options = Options();
    change(options);
    return KeyOf(options, {.device = 1, .cudnn = 2, .search = 3});
  };
  const std::string plain = key_of([](ContextOptions&) {});
  EXPECT_EQ(
      plain, key_of([](ContextOptions& options) { options.search_mode = SearchMode::kBenchmark; }));
  EXPECT_NE(
      plain, key_of([](ContextOptions& options) { options.search_mode = SearchMode::kDefault; }));
  EXPECT_NE(plain, key_of([](ContextOptions& options) { options.allow_tf32 = true; }));
  EXPECT_NE(plain, key_of([](ContextOptions& options) { options.deterministic = true; }));
  EXPECT_NE(plain, key_of([](ContextOptions& options) { options.workspace_limit = 1024; }));
  // What a clock has chosen is not taken where none is to choose.
  EXPECT_NE(plain, key_of([](ContextOptions& options) { options.first_choice_seconds = 0; }));
  EXPECT_EQ(plain, key_of([](ContextOptions& options) { options.first_choice_seconds = 1; }));
}

/// A choice of another card, driver, cuDNN or Gradsmith is not found, and so never used.
TEST(AddPolicy, KeysTellOriginsApart) {
  const Origin origin = {.device = 1, .cudnn = 2, .search = 3};
  const std::string plain = KeyOf(Options(), origin);
  EXPECT_EQ(plain, KeyOf(Options(), origin));
  for (std::int64_t Origin::*part : {&Origin::device, &Origin::cudnn, &Origin::search}) {
    Origin other = origin;
    other.*part += 1;
    EXPECT_NE(plain, KeyOf(Options(), other));
  }
  EXPECT_NE(plain, KeyOf(Options(), {.device = 2, .cudnn = 1, .search = 3}));
}

class CudaSelectedRun : public CudaTest {};

TEST_F(CudaSelectedRun, ChoicesAreOfThisDeviceCudnnAndSearch) {
  const Origin expected = {
      .device = device().fingerprint(),
      .cudnn = LoadCudnn()->version,
      .search = internal::SearchFingerprint(7)};
  EXPECT_EQ(OriginOf(device(), 7), expected);
}

}  // namespace
}  // namespace gradsmith::cuda
