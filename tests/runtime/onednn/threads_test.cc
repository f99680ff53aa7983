#include "onednn/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "gradsmith/gradsmith.h"
#include "onednn/openmp.h"

namespace gradsmith::onednn {
namespace {

TEST(OneDnnThreads, AreTheContexts) {
  EXPECT_EQ(ThreadsOf(Context({.threads = 1})), 1);
  EXPECT_EQ(ThreadsOf(Context({.threads = 3})), 3);
}

TEST(OneDnnThreads, ALimitEndsWithItsScope) {
  const int before = omp_get_max_threads();
  omp_set_dynamic(1);
  {
    const ThreadLimit limit(3);
    EXPECT_EQ(omp_get_max_threads(), 3);
    EXPECT_EQ(omp_get_dynamic(), 0);
  }
  EXPECT_EQ(omp_get_max_threads(), before);
  EXPECT_EQ(omp_get_dynamic(), 1);
  omp_set_dynamic(0);
}

/// There OpenMP gives kernels one thread, whatever they were made for.
TEST(OneDnnThreads, CallsFromAParallelRegionAreRight) {
  const Context context({.threads = 4, .search_mode = SearchMode::kDefault, .cache = "off"});
  const Dims x_dims = {8, 32, 24, 24};
  const Dims w_dims = {32, 32, 3, 3};
  std::vector<float> x(8 * 32 * 24 * 24, 1);
  std::atomic<int> wrong = 0;
  const auto call = [&] {
    std::vector<float> dw(32 * 32 * 9, -1);
    const Status status = ConvGrad<float>(
        context, {.pads = {1, 1, 1, 1}},
        {.dY = {x.data(), x_dims}, .X = {x.data(), x_dims}, .W = {x.data(), w_dims}},
        {.dW = {dw.data(), w_dims}});
    // The middle tap meets all of x.
    for (std::size_t i = 4; i < dw.size(); i += 9) {
      wrong += status.ok() && dw[i] == 8 * 24 * 24 * x[0] * x[0] ? 0 : 1;
    }
  };
  call();                              // chooses for four threads
  std::fill(x.begin(), x.end(), 2.F);  // what the threads have left must not pass for these sums
#pragma omp parallel num_threads(2)
  {
    EXPECT_EQ(ThreadsOf(context), omp_in_parallel() != 0 ? 1 : 4);
    call();
  }
  EXPECT_EQ(wrong, 0);
}

/// Nor does OpenMP start any where it may not.
TEST(OneDnnThreads, AreOneWhereThereMayBeNoTeam) {
  const int before = omp_get_max_active_levels();
  omp_set_max_active_levels(0);
  EXPECT_EQ(ThreadsOf(Context({.threads = 3})), 1);
  omp_set_max_active_levels(before);
  EXPECT_EQ(ThreadsOf(Context({.threads = 3})), 3);
}

/// OpenMP's threads do not come along.
TEST(OneDnnThreads, AForksChildDoesNotWaitForThem) {
  const std::vector<float> x(8 * 32 * 24 * 24, 1);
  const auto call = [&] {
    const Context context({.threads = 4, .search_mode = SearchMode::kDefault, .cache = "off"});
    std::vector<float> dw(32 * 32 * 9, -1);
    const Status status = ConvGrad<float>(
        context, {.pads = {1, 1, 1, 1}},
        {.dY = {x.data(), {8, 32, 24, 24}},
         .X = {x.data(), {8, 32, 24, 24}},
         .W = {x.data(), {32, 32, 3, 3}}},
        {.dW = {dw.data(), {32, 32, 3, 3}}});
    return status.ok() && dw[4] == 8 * 24 * 24;
  };
  ASSERT_TRUE(call());  // starts the threads
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(call() ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
}

}  // namespace
}  // namespace gradsmith::onednn
