#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conv/task.h"
#include "core/decision_file.h"
#include "core/problem_key.h"
#include "core/search_revision.h"
#include "gradsmith/cache.h"
#include "gradsmith/gradsmith.h"
#include "support/scratch_folder.h"

/// What a call makes of the candidates: it chooses, remembers, and runs what was chosen.
namespace gradsmith {
namespace {

using support::ScratchFolder;

/// ConvGrad of 2x16x9x9 by 3x3, all whose products are 1.
class Call {
 public:
  explicit Call(std::int64_t batch = 2)
      : x_{batch, 16, 9, 9},
        x_values_(static_cast<std::size_t>(NumElements(x_)), 1),
        w_values_(static_cast<std::size_t>(NumElements(w_)), 1),
        dx(x_values_.size(), -1),
        dw(w_values_.size(), -1),
        db(16, -1) {}

  Status Run(const Context& context, bool accumulate_dw = false) {
    const TensorView<float> dw_view = {dw.data(), w_};
    return ConvGrad<float>(
        context, {.pads = {1, 1, 1, 1}},
        {.dY = {x_values_.data(), x_}, .X = {x_values_.data(), x_}, .W = {w_values_.data(), w_}},
        {.dX = {dx.data(), x_},
         .dW = accumulate_dw ? dw_view.Accumulating() : dw_view,
         .dB = {db.data(), {16}}});
  }

  /// Elements in the middle, which meet all of the filter.
  [[nodiscard]] float MiddleOfDx() const { return dx.at(4 * 9 + 4); }
  [[nodiscard]] float MiddleOfDw() const { return dw.at(4); }

 private:
  Dims x_;
  Dims w_ = {16, 16, 3, 3};
  std::vector<float> x_values_;
  std::vector<float> w_values_;

 public:
  std::vector<float> dx;
  std::vector<float> dw;
  std::vector<float> db;
};

/// A context with its own file, which counts the searches. No clock chooses.
struct Counted {
  explicit Counted(const std::string& path, ContextOptions given = {}) {
    given.threads = given.threads == 0 ? 1 : given.threads;
    given.first_choice_seconds = 0;
    given.cache = path;
    given.on_search_progress = [this](const SearchProgress& progress) {
      searches += progress.tried == 1 ? 1 : 0;
    };
    context.emplace(given);
  }

  int searches = 0;
  std::optional<Context> context;
};

void ExpectRight(Call& call, const Context& context) {
  const Status status = call.Run(context);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(call.MiddleOfDx(), 16 * 9);
  EXPECT_EQ(call.MiddleOfDw(), 2 * 81);
  EXPECT_EQ(call.db.front(), 2 * 81);
}

TEST(CpuChoice, IsMadeOnceAndTold) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  Call call;
  for (int run = 0; run < 3; ++run) {
    ExpectRight(call, *counted.context);
  }
  EXPECT_EQ(counted.searches, 2);  // of dX and of dW
  const std::vector<CachedChoice> choices = CachedChoices(folder.path() + "/decisions.txt");
  ASSERT_EQ(choices.size(), 2U);
  for (const CachedChoice& choice : choices) {
    EXPECT_TRUE(choice.kernel.starts_with("onednn/")) << choice.kernel;
    EXPECT_NE(choice.problem.find(", on the CPU with 1 thread"), std::string::npos);
  }
}

TEST(CpuChoice, OutlivesTheProcess) {
  const ScratchFolder folder;
  Call call;
  ExpectRight(call, *Counted(folder.path() + "/first.txt").context);
  // Another file is another cache, as in a process that starts.
  std::filesystem::copy_file(folder.path() + "/first.txt", folder.path() + "/second.txt");
  Counted second(folder.path() + "/second.txt");
  ExpectRight(call, *second.context);
  EXPECT_EQ(second.searches, 0);
  // What was not timed does not serve who asks for the fastest.
  Counted fastest(folder.path() + "/second.txt", {.search_mode = SearchMode::kBenchmark});
  ExpectRight(call, *fastest.context);
  EXPECT_EQ(fastest.searches, 2);
  ExpectRight(call, *fastest.context);
  EXPECT_EQ(fastest.searches, 2);
}

TEST(CpuChoice, DependsOnThePolicies) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Call call;
  for (const ContextOptions& options :
       {ContextOptions{.threads = 1}, ContextOptions{.threads = 2},
        ContextOptions{.threads = 1, .deterministic = true},
        ContextOptions{.threads = 1, .search_mode = SearchMode::kDefault},
        ContextOptions{.threads = 1, .workspace_limit = 0}}) {
    Counted counted(path, options);
    ExpectRight(call, *counted.context);
    EXPECT_EQ(counted.searches, 2);
  }
  const std::vector<CachedChoice> choices = CachedChoices(path);
  EXPECT_EQ(choices.size(), 10U);
  // The last used first: that without workspace.
  EXPECT_EQ(choices.at(0).kernel, "own/gemm");
  EXPECT_EQ(choices.at(1).kernel, "own/gemm");
}

/// Those of an earlier Gradsmith lie beside them and are not used.
TEST(CpuChoice, IsOfThisSearch) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/decisions.txt";
  Call call;
  ExpectRight(call, *Counted(path).context);
  internal::ProblemKey word;
  word.Add(internal::SearchFingerprint(conv::kRevision));
  internal::ProblemKey of_another;
  of_another.Add(internal::SearchFingerprint("0.0.1", internal::kSearchRevision, conv::kRevision));
  std::vector<std::string> warnings;
  std::vector<internal::StoredDecision> decisions = internal::DecisionFile(path).Read(&warnings);
  ASSERT_EQ(decisions.size(), 2U);
  for (internal::StoredDecision& stored : decisions) {
    std::string key = stored.key.Text();
    const std::size_t place = key.find("." + word.Text() + ".");
    ASSERT_NE(place, std::string::npos) << key;
    key.replace(place + 1, word.Text().size(), of_another.Text());
    stored.key = internal::ProblemKey::FromText(key);
  }
  ASSERT_TRUE(internal::DecisionFile(folder.path() + "/other.txt").Replace(decisions).ok());
  Counted counted(folder.path() + "/other.txt");
  ExpectRight(call, *counted.context);
  EXPECT_EQ(counted.searches, 2);
  EXPECT_EQ(CachedChoices(folder.path() + "/other.txt").size(), 4U);
}

TEST(CpuChoice, OfAKernelThatIsGoneIsMadeAnew) {
  const ScratchFolder folder;
  Call call;
  ExpectRight(call, *Counted(folder.path() + "/first.txt").context);
  std::vector<std::string> warnings;
  SetWarningHandler([&](const std::string& warning) { warnings.push_back(warning); });
  // As another build of oneDNN might leave it, of the same version.
  std::vector<std::string> unreadable;
  std::vector<internal::StoredDecision> decisions =
      internal::DecisionFile(folder.path() + "/first.txt").Read(&unreadable);
  for (internal::StoredDecision& stored : decisions) {
    stored.decision.id = "onednn/blocked/jit:abacus";
  }
  ASSERT_TRUE(internal::DecisionFile(folder.path() + "/second.txt").Replace(decisions).ok());
  Counted second(folder.path() + "/second.txt");
  ExpectRight(call, *second.context);
  SetWarningHandler(nullptr);
  EXPECT_EQ(second.searches, 2);
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_NE(
      warnings[0].find("the remembered kernel onednn/blocked/jit:abacus is not used"),
      std::string::npos)
      << warnings[0];
}

TEST(CpuChoice, AddsToWhatIsThere) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  Call call;
  ExpectRight(call, *counted.context);
  std::ranges::fill(call.dw, 1000);
  ASSERT_TRUE(call.Run(*counted.context, /*accumulate_dw=*/true).ok());
  EXPECT_EQ(call.MiddleOfDw(), 1000 + (2 * 81));
  EXPECT_EQ(counted.searches, 2);
}

TEST(CpuChoice, IsMadeAheadOfTime) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  Call call;
  ASSERT_TRUE(call.Run(counted.context->ForPreparing()).ok());
  EXPECT_EQ(counted.searches, 2);
  for (const auto& output : {call.dx, call.dw, call.db}) {
    EXPECT_TRUE(std::ranges::all_of(output, [](float value) { return value == -1; }));
  }
  ExpectRight(call, *counted.context);
  EXPECT_EQ(counted.searches, 2);
}

TEST(CpuChoice, EmptyTensorsNeedNone) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  Call call(0);
  ASSERT_TRUE(call.Run(*counted.context).ok());
  EXPECT_EQ(counted.searches, 0);
  EXPECT_EQ(call.MiddleOfDw(), 0);
  EXPECT_EQ(call.db.front(), 0);
}

TEST(CpuChoice, ManyThreadsMakeOne) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Call call;
      for (int run = 0; run < 20; ++run) {
        ExpectRight(call, *counted.context);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(CachedChoices(folder.path() + "/decisions.txt").size(), 2U);
}

/// Plans are kept by threads, and a context's threads end with it.
TEST(CpuChoice, OutlivesTheContext) {
  const ScratchFolder folder;
  Call call;
  for (int i = 0; i < 3; ++i) {
    const Context context(
        {.threads = 2,
         .search_mode = SearchMode::kDefault,
         .cache = folder.path() + "/one.txt",
         .workspace_limit = 0});
    ExpectRight(call, context);
  }
  EXPECT_EQ(CachedChoices(folder.path() + "/one.txt").size(), 2U);
}

TEST(CpuChoice, ABiasAsksForAnother) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  const Dims dims = {1, 16, 9, 9};
  const Dims w_dims = {16, 16, 3, 3};
  const std::vector<float> x(16 * 81, 1);
  const std::vector<float> w(16 * 16 * 9, 1);
  // The bias has a gap behind each element.
  const std::vector<float> bias(32, 5);
  const TensorView<const float> b = {bias.data(), {16}, Strides{2}};
  std::vector<float> y(16 * 81);
  for (const bool with_bias : {true, false, true}) {
    const float expected = 16 * 9 + (with_bias ? 5 : 0);
    ConvInputs<float> inputs = {.X = {x.data(), dims}, .W = {w.data(), w_dims}};
    ConvTransposeInputs<float> transposed = {.X = {x.data(), dims}, .W = {w.data(), w_dims}};
    if (with_bias) {
      inputs.B = b;
      transposed.B = b;
    }
    ASSERT_TRUE(
        Conv<float>(*counted.context, {.pads = {1, 1, 1, 1}}, inputs, {.Y = {y.data(), dims}})
            .ok());
    EXPECT_EQ(y.at(4 * 9 + 4), expected);
    ASSERT_TRUE(ConvTranspose<float>(
                    *counted.context, {.pads = {1, 1, 1, 1}}, transposed, {.Y = {y.data(), dims}})
                    .ok());
    EXPECT_EQ(y.at(4 * 9 + 4), expected);
  }
  EXPECT_EQ(counted.searches, 4);
}

TEST(CpuChoice, TypesThatOneDnnIsNotAskedForChooseNothing) {
  const ScratchFolder folder;
  Counted counted(folder.path() + "/decisions.txt");
  const Dims dims = {1, 16, 9, 9};
  const std::vector<double> ones(16 * 81, 1);
  const std::vector<double> w(16 * 16 * 9, 1);
  std::vector<double> y(16 * 81);
  ASSERT_TRUE(Conv<double>(
                  *counted.context, {.pads = {1, 1, 1, 1}},
                  {.X = {ones.data(), dims}, .W = {w.data(), {16, 16, 3, 3}}},
                  {.Y = {y.data(), dims}})
                  .ok());
  EXPECT_EQ(y.at(4 * 9 + 4), 16 * 9);
  EXPECT_EQ(counted.searches, 0);
}

}  // namespace
}  // namespace gradsmith
