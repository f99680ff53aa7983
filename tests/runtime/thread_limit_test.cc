#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "gradsmith/gradsmith.h"
#include "support/conv_grad_call.h"
#include "support/process_threads.h"

/// How many threads there are: no more than the system gives, and none that nobody uses.
namespace gradsmith {
namespace {

using support::ConvGradCall;
using support::ProcessComesTo;
using support::ProcessThreads;

constexpr int kWanted = 6;

/// Lets the process start so many threads more, and returns how many a Context that wants kWanted
/// then has. The limit counts what the user has running, so the process becomes a user who has
/// nothing. Who may not do so can start none, or is not limited at all.
int LimitThreads(int more) {
  const auto nobody = static_cast<uid_t>(64000 + (getpid() % 1000));
  const bool is_alone = geteuid() == 0 && setuid(nobody) == 0;
  const auto limit = static_cast<rlim_t>(is_alone ? 1 + more : 0);
  const rlimit limits = {limit, limit};
  setrlimit(RLIMIT_NPROC, &limits);
  if (is_alone) {
    return 1 + more;
  }
  try {
    std::thread([] {}).join();
    return kWanted;
  } catch (const std::system_error&) {
    return 1;
  }
}

/// In a child, which the limit then is for: 0 where a Context has the threads that there are, and
/// computes with them.
int ComputeWithin(int more) {
  ConvGradCall conv;
  const int expected = LimitThreads(more);
  const Context context({.threads = kWanted});
  if (context.threads() != expected) {
    return 1;
  }
  if (!context.status().ok()) {
    return 2;
  }
  const Context second({.threads = 3});  // there may be no more
  return conv.IsRightOn(context) && conv.IsRightOn(second) ? 0 : 3;
}

class ThreadLimit : public testing::TestWithParam<int> {};

TEST_P(ThreadLimit, AContextHasTheThreadsThatThereAre) {
  // _exit: checks for leaks at exit want threads too.
  EXPECT_EXIT(_exit(ComputeWithin(GetParam())), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(
    More,
    ThreadLimit,
    testing::Values(0, 1, 2, 4),
    testing::PrintToStringParamName());

TEST(Threads, EndWithTheLastCopy) {
  ConvGradCall conv;
  const int before = ProcessThreads();
  std::optional<Context> context;
  context.emplace(ContextOptions{.threads = 4});
  std::optional<Context> copy = context;
  std::optional<Context> preparing = context->ForPreparing();
  EXPECT_EQ(ProcessThreads(), before + 3);
  context.reset();
  preparing.reset();
  EXPECT_TRUE(conv.IsRightOn(*copy));
  EXPECT_EQ(ProcessThreads(), before + 3);
  const Context moved = *std::exchange(copy, std::nullopt);
  EXPECT_EQ(ProcessThreads(), before + 3);
  copy = moved;
  copy = Context({.threads = 1});
  EXPECT_EQ(ProcessThreads(), before + 3);
}

TEST(Threads, OfManyContextsAllEnd) {
  ConvGradCall conv;
  const int before = ProcessThreads();
  for (int threads = 1; threads <= 40; ++threads) {
    const Context context({.threads = threads});
    ASSERT_TRUE(conv.IsRightOn(context));
  }
  EXPECT_TRUE(ProcessComesTo(before)) << ProcessThreads() << ", before " << before;
}

TEST(Threads, EndWhereAContextIsReplacedOrMoved) {
  const int before = ProcessThreads();
  Context context({.threads = 3});
  Context other = std::move(context);
  context = Context({.threads = 2});
  EXPECT_EQ(ProcessThreads(), before + 3);
  other = std::move(context);
  EXPECT_TRUE(ProcessComesTo(before + 1)) << ProcessThreads() << ", before " << before;
}

TEST(MovedFrom, AContextRefusesCalls) {
  ConvGradCall conv;
  Context context({.threads = 2});
  const Context other = std::move(context);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  const Status status = conv.Run(context);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("the context was moved from"), std::string::npos)
      << status.message();
  EXPECT_EQ(context.threads(), 1);
  EXPECT_EQ(context.device(), Device());
  EXPECT_EQ(context.thread_pool(), nullptr);
  EXPECT_EQ(context.search_mode(), SearchMode::kHeuristic);
  EXPECT_EQ(conv.Run(context.ForPreparing()).code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(Synchronize(context).ok());
  context = other;
  EXPECT_TRUE(conv.IsRightOn(context));
  // NOLINTEND(bugprone-use-after-move)
}

}  // namespace
}  // namespace gradsmith
